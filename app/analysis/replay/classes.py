"""The classes of differences, and the ones that need no run to be proved.

A class is proved for its case: a hypothesis (`hypotheses`) changes one thing, and the run with it
(`proving`) comes to the recorded outcome of that object. Two classes are seen in the two traces
themselves: what lies after the end of the comparison, and what replica controllers wrote.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain

from app.analysis.replay import tolerances
from app.analysis.replay.differences import Aspect, DifferenceKey, Sides, contradictions
from app.analysis.replay.facts import Fact
from app.analysis.replay.traces import Step, Trace
from app.domain.values import api_groups
from app.domain.values.timestamps import Instant


class DifferenceClass(StrEnum):
    """The classes of differences, gravest first.

    An effect of a switch has a class of its own besides these: `switch --quirk c22=on`.
    """

    UNEXPLAINED = "unexplained"
    """No hypothesis gives the recorded outcome: a defect here, or something not yet known there."""
    IGNORED_RULES = "released bug C24"
    """The recorded scheduler did not see a DeviceTaintRule."""
    FINISHED_POD = "quirk C8 or C22"
    """A finished pod is reserved again, or gets a second claim, until its controller catches up."""
    NOT_COMPARABLE = "not comparable"
    """What it rests on was not recorded, so no run can tell."""
    NOT_EMULATED = "not emulated"
    """It rests on what nobody records: a node whose Lease was not renewed."""
    REPLICAS = "replica controller"
    """What replica controllers wrote is kept as recorded, also where it no longer fits."""
    QUEUE_ORDER = "race: order of waiting pods"
    """Several pods wait for one device; which is tried first depends on milliseconds."""
    FOLLOWS = "follows from another difference"
    """It is gone when an earlier difference is set to what was recorded."""
    IN_FLIGHT = "in flight"
    """An attempt met a claim that was being allocated, on one side only."""
    RACE = "race"
    """Two writers, or two writes of one, came in another order."""
    TIMING = "timing"
    """An attempt or a status update took place at another instant, or another number of times."""
    AFTER_END = "after the end"
    """It was done here after the moment up to which is compared, or is recorded after it."""


UNPROVED = frozenset((DifferenceClass.UNEXPLAINED, DifferenceClass.NOT_COMPARABLE))
"""The classes that say that nothing is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The class of a difference, and what proves it or speaks against it."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The last instant that is compared, and what is recorded after it.

    With `is_of_recording` the recording ends there, too: nothing is known of what came later.
    `queued` has, by writer, since when a request may have waited for the limit of its client then.
    """

    at: Instant
    later: Trace
    is_of_recording: bool = False
    queued: Mapping[str, Instant] = field(default_factory=dict)

    def since(self, aspect: Aspect) -> Instant:
        """The instant after which a write may have been under way at the end."""
        if aspect is Aspect.SAID:
            # An Event is written after the act that it tells, which may be the last one recorded.
            return Instant(self.at - tolerances.TABLE.same_attempt)
        return Instant(self.at - tolerances.TABLE.sure_after * self.is_of_recording)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """A difference of a class, in an aspect (empty: in any), which is all that is wanted.

    `shown` has the uids of the subjects of such differences, with what proved each, if only these
    are meant. `explained` has, by subject, the uids about which nothing may be unexplained then.
    With `placed`, only the placements of these uids may differ, besides those that switches turned
    before everything else explain, and switches are tried for its own class alone: fewer runs, and
    whatever is proved is proved without that limit too.
    """

    reason: str
    aspect: str = ""
    shown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    explained: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    placed: tuple[str, ...] | None = None

    def fits(self, key: DifferenceKey) -> bool:
        """Whether a difference may be meant, whatever its class turns out to be."""
        return self.aspect in ("", key[0].value) and (not self.shown or key[1] in self.shown)

    def is_it(self, key: DifferenceKey, judgement: Judgement) -> bool:
        """Whether a difference with this judgement is it.

        Where nothing is proved, what speaks against each hypothesis may have changed.
        """
        if judgement.reason != self.reason or not self.fits(key):
            return False
        return not self.shown or self.reason in UNPROVED or judgement.detail in self.shown[key[1]]

    def is_in(self, judgements: Mapping[DifferenceKey, Judgement]) -> bool:
        """Whether one of these is it."""
        return any(self.is_it(key, each) for key, each in judgements.items())

    def is_proved(
        self, judgements: Mapping[DifferenceKey, Judgement], left: Collection[DifferenceKey]
    ) -> bool:
        """Whether it is proved, whatever becomes of the differences that are left."""
        waiting = {uid for _, uid, _ in left}
        return any(
            self.is_it(key, each) and self._is_clear(key, judgements, waiting)
            for key, each in judgements.items()
        )

    def is_decided(
        self, judgements: Mapping[DifferenceKey, Judgement], left: Collection[DifferenceKey]
    ) -> bool:
        """Whether it is proved, or no judgement about the differences left can make one it."""
        possible = [key for key, each in judgements.items() if self.is_it(key, each)]
        possible += [key for key in left if self.fits(key)]
        if not any(self._is_clear(key, judgements) for key in possible):
            return True
        return self.is_proved(judgements, left)

    def _is_clear(
        self,
        key: DifferenceKey,
        judgements: Mapping[DifferenceKey, Judgement],
        waiting: Collection[str] = (),
    ) -> bool:
        """Whether nothing is unexplained, or waits, that has to be explained beside it."""
        beside = self.explained.get(key[1], ())
        if any(uid in waiting for uid in beside):
            return False
        return not beside or not any(
            each.reason == DifferenceClass.UNEXPLAINED and uid in beside
            for (_, uid, _), each in judgements.items()
        )

    def may_try(self, reasons: Collection[str]) -> bool:
        """Whether switches of these classes may be tried for it."""
        return self.placed is None or self.reason in reasons

    def may_differ(self, uids: Collection[str]) -> bool:
        """Whether the placement of a pod or claim, given with its owner, may differ."""
        return self.placed is None or any(uid in self.placed for uid in uids)


def seen_in_traces(sides: Sides, recorded: Trace, again: Trace, end: End) -> Judgement | None:
    """The judgement that the two traces give by themselves; None when a run has to tell."""
    if _is_after_end(sides, recorded, again, end):
        return Judgement(reason=DifferenceClass.AFTER_END, detail="it lies after the end")
    if sides.aspect is Aspect.SAID and not recorded.said:
        # Audit policies often leave Events out. One binding alone would have left one.
        detail = "the recording has no Events of controllers"
        return Judgement(reason=DifferenceClass.NOT_COMPARABLE, detail=detail)
    key = recorded.keys.get(sides.uid) or again.keys.get(sides.uid)
    if key is None:
        return None
    is_only_theirs = sides.uid in recorded.other_writers and sides.uid not in recorded.writes
    if sides.aspect is Aspect.FINAL and key.group == api_groups.APPS and is_only_theirs:
        return Judgement(
            reason=DifferenceClass.REPLICAS, detail="replica controllers do not decide again"
        )
    return None


def contradicts(recorded: Trace, again: Trace, end: End, known: Set[DifferenceKey]) -> bool:
    """Whether an unfinished run has a difference that is not `known` and that stays.

    What is recorded after the end may have been done too early here; that alone is none.
    """
    return any(
        key not in known and key[1] not in end.later.writes and key[1] not in end.later.said
        for key in contradictions(recorded, again)
    )


def _is_after_end(sides: Sides, recorded: Trace, again: Trace, end: End) -> bool:
    """Whether nothing is missing here, and all that is more was done or is recorded later."""
    late = {*_facts_of(end.later, sides), *_late_facts(again, sides, end)}
    if sides.aspect in (Aspect.DEVICES, Aspect.FINAL):
        if sides.aspect is Aspect.DEVICES and len(sides.recorded) == len(sides.again):
            return False  # the recorded ones were written by the end, with other content
        # They are compared as wholes: the writes that made them tell.
        missing = _counted(recorded, sides.uid) - _counted(again, sides.uid)
        return bool(late) and not missing
    more = list(sides.facts("again"))
    return not sides.only_recorded and bool(more) and all(fact in late for fact in more)


def _counted(trace: Trace, uid: str) -> Counter[tuple[Fact, ...]]:
    return Counter(step.facts for step in trace.writes.get(uid, ()))


def _facts_of(trace: Trace, sides: Sides) -> Iterator[Fact]:
    """All facts about an object, or about a pod and its claims."""
    for step in _steps_of(trace, sides.uid, sides.name):
        yield from step.facts


def _late_facts(again: Trace, sides: Sides, end: End) -> Iterator[Fact]:
    """The facts of writes that may have been under way at the end, or came later.

    What the recording does not show is made seconds after it was due, so one that is made near the
    end, or after it, was not always under way then.
    """
    for step in _steps_of(again, sides.uid, sides.name):
        since = end.since(sides.aspect)
        if end.is_of_recording:
            since = min(since, end.queued.get(step.writer, since))
        if (again.due_at(step) if end.is_of_recording else step.time) > since:
            yield from step.facts


def _steps_of(trace: Trace, uid: str, name: str) -> Iterator[Step]:
    steps = (
        *(trace.writes.get(uid, ()), trace.of_pod.get(uid, ()), trace.said.get(uid, ())),
        trace.conditions.get((uid, name), ()),
    )
    return chain.from_iterable(steps)
