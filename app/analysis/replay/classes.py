"""The classes of differences, and the ones that need no run to be proved.

A class is proved for each difference: a hypothesis (`hypotheses`) changes one thing, and the run
with it (`proving`) gives the recorded outcome of that object. Two classes follow from the two
traces alone: acts after the end of the comparison, and writes of replica controllers.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain

from app.analysis.replay import tolerances
from app.analysis.replay.differences import Aspect, DifferenceKey, Sides, contradictions, node
from app.analysis.replay.facts import Bound, EventSeen, Fact
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.writers import MANAGED, short_name
from app.domain.controllers.nodes import readiness
from app.domain.controllers.scheduling.reports import messages
from app.domain.values import api_groups, timestamps
from app.domain.values.timestamps import Instant


class DifferenceClass(StrEnum):
    """The classes of differences, gravest first.

    An effect of a switch has a class of its own besides these: `switch --quirk c22=on`.
    """

    UNEXPLAINED = "unexplained"
    """No hypothesis gives the recorded outcome: a defect here, or unknown behaviour there."""
    IGNORED_RULES = "released bug C24"
    """The recorded scheduler did not see a DeviceTaintRule."""
    FINISHED_POD = "quirk C8 or C22"
    """A finished pod is reserved again, or gets a second claim, until its controller catches up."""
    NOT_COMPARABLE = "not comparable"
    """The recording lacks what it depends on, so no run can prove anything."""
    NOT_EMULATED = "not emulated"
    """It depends on an object that no recording has: a node whose Lease was not renewed."""
    REPLICAS = "replica controller"
    """Writes of replica controllers are kept as recorded, even if they no longer fit."""
    QUEUE_ORDER = "race: order of waiting pods"
    """Several pods wait for one device; which is tried first depends on milliseconds."""
    FOLLOWS = "follows from another difference"
    """It vanishes when the writes of an earlier difference are taken as recorded."""
    IN_FLIGHT = "in flight"
    """An attempt met a claim that was being allocated, on one side only."""
    RACE = "race"
    """Writes of two writers, or two writes of one, happened in another order."""
    TIMING = "timing"
    """An attempt or a status update took place at another instant, or another number of times."""
    AFTER_END = "after the end"
    """It was done here, or is recorded, after the end of the comparison."""


_MANAGED = frozenset(("", *map(short_name, MANAGED)))

UNPROVED = frozenset((DifferenceClass.UNEXPLAINED, DifferenceClass.NOT_COMPARABLE))
"""The classes of differences for which nothing is proved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The class of a difference, and what proves it or speaks against it."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The last instant that is compared, and what is recorded after it.

    With `is_of_recording` the recording ends there, too: nothing later is known. `queued` has, by
    writer, the earliest instant from which a request may have waited for its client's rate limit
    at the end, `undone` that after which nothing shows that its process did what was due.
    """

    at: Instant
    later: Trace
    is_of_recording: bool = False
    queued: Mapping[str, Instant] = field(default_factory=dict)
    undone: Mapping[str, Instant] = field(default_factory=dict)

    def since(self, aspect: Aspect) -> Instant:
        """The instant after which a write may have been in progress at the end."""
        if aspect is Aspect.SAID:
            # An Event is written after the act that it reports, which may be the last recorded
            # write.
            return Instant(self.at - tolerances.TABLE.same_attempt)
        return Instant(self.at - tolerances.TABLE.sure_after * self.is_of_recording)

    @property
    def earliest(self) -> Instant:
        """The earliest instant after which something that was due may be undone."""
        return min((*self.undone.values(), self.since(Aspect.WRITES)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """The differences that a search looks for: a class, and an aspect (empty: any).

    If `shown` is not empty, only differences of its subjects (uids) with one of its proofs match.
    `explained` maps a subject to uids without unexplained differences beside the match. With
    `placed`, a run is of use only if no placements differ but those of these uids and those that
    switches turned first explain; switches are then tried only for this class. This takes fewer
    runs, and proofs found in this way hold without the limit too.
    """

    reason: str
    aspect: str = ""
    shown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    explained: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    placed: tuple[str, ...] | None = None

    def fits(self, key: DifferenceKey) -> bool:
        """Whether a difference matches, apart from its class."""
        return self.aspect in ("", key[0].value) and (not self.shown or key[1] in self.shown)

    def is_it(self, key: DifferenceKey, judgement: Judgement) -> bool:
        """Whether a difference with this judgement matches.

        For classes without a proof, the detail of the judgement is not compared.
        """
        if judgement.reason != self.reason or not self.fits(key):
            return False
        return not self.shown or self.reason in UNPROVED or judgement.detail in self.shown[key[1]]

    def is_in(self, judgements: Mapping[DifferenceKey, Judgement]) -> bool:
        """Whether one of these differences matches."""
        return any(self.is_it(key, each) for key, each in judgements.items())

    def is_proved(
        self, judgements: Mapping[DifferenceKey, Judgement], left: Collection[DifferenceKey]
    ) -> bool:
        """Whether a match is proved, whatever the judgements of the differences that are left."""
        waiting = {uid for _, uid, _ in left}
        return any(
            self.is_it(key, each) and self._is_clear(key, judgements, waiting)
            for key, each in judgements.items()
        )

    def is_decided(
        self, judgements: Mapping[DifferenceKey, Judgement], left: Collection[DifferenceKey]
    ) -> bool:
        """Whether a match is proved, or there can be no match any more."""
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
        """Whether everything that `explained` requires for this difference is explained."""
        beside = self.explained.get(key[1], ())
        if any(uid in waiting for uid in beside):
            return False
        return not beside or not any(
            each.reason == DifferenceClass.UNEXPLAINED and uid in beside
            for (_, uid, _), each in judgements.items()
        )

    def may_try(self, reasons: Collection[str]) -> bool:
        """Whether switches of these classes may be tried in this search."""
        return self.placed is None or self.reason in reasons

    def may_differ(self, uids: Collection[str]) -> bool:
        """Whether the placement of a pod or claim may differ; `uids` are of it and its owner."""
        return self.placed is None or any(uid in self.placed for uid in uids)


def seen_in_traces(sides: Sides, recorded: Trace, again: Trace, end: End) -> Judgement | None:
    """The judgement that follows from the two traces; None if a run is needed."""
    if _is_after_end(sides, recorded, again, end):
        return Judgement(reason=DifferenceClass.AFTER_END, detail="it lies after the end")
    if sides.aspect is Aspect.SAID and not recorded.said:
        # Audit policies often leave Events out. With them, even a single binding has an Event.
        detail = "the recording has no Events of controllers"
        return Judgement(reason=DifferenceClass.NOT_COMPARABLE, detail=detail)
    key = recorded.keys.get(sides.uid) or again.keys.get(sides.uid)
    if key is None:
        return None
    if (unseen := _unseen_end(sides, recorded)) is not None:
        return Judgement(reason=DifferenceClass.NOT_COMPARABLE, detail=unseen)
    if _crosses_an_end(sides, recorded):
        detail = "what its Event tells of passed the end of the namespace, or the Event did"
        return Judgement(reason=DifferenceClass.RACE, detail=detail)
    is_only_theirs = sides.uid in recorded.other_writers and sides.uid not in recorded.writes
    if sides.aspect is Aspect.FINAL and key.group == api_groups.APPS and is_only_theirs:
        return Judgement(
            reason=DifferenceClass.REPLICAS, detail="replica controllers do not decide again"
        )
    return None


def _crosses_an_end(sides: Sides, recorded: Trace) -> bool:
    """Whether a run lacks the Event of a binding that was asked for as its namespace was to end.

    A server looks at the namespace before it stores what is new in it. A binding has no version, so
    an order of answers may have it after the Event that tells of it, and after the end. The Event
    has to be about the node that the pod has.
    """
    bound = recorded.node_of.get(sides.uid)
    if sides.aspect is not Aspect.SAID or sides.only_again or bound is None:
        return False
    if not sides.only_recorded:
        return False  # the same Events in another order
    key = recorded.keys[sides.uid]
    return all(
        (step.revision in recorded.crossing or _is_bound_late(step, bound, recorded))
        and isinstance(fact, EventSeen)
        and any(
            isinstance(write, Bound)
            and fact.note == messages.assigned(key.namespace, key.name, write.node)
            for write in bound.facts
        )
        for step in sides.only_recorded
        for fact in step.facts
    )


def _is_bound_late(said: Step, bound: Step, recorded: Trace) -> bool:
    """Whether a namespace begins to end between an Event and the binding that it tells of."""
    end = recorded.soon_ends(said.key.namespace, said.time)
    return end is not None and said.revision < bound.revision and end <= bound.time


def _unseen_end(sides: Sides, recorded: Trace) -> str | None:
    """The reason why nobody recorded may have seen the end of a node that only a run reports.

    A controller reports the end of a node that it knew. A process that takes over lists the nodes
    that are left.
    """
    gone = recorded.removed.get(sides.uid)
    only = [*sides.only_recorded, *sides.only_again]
    is_report = sides.aspect is Aspect.SAID and all(
        isinstance(fact, EventSeen) and fact.reason == readiness.REMOVING
        for step in only
        for fact in step.facts
    )
    if gone is None or not is_report or sides.only_recorded or not sides.only_again:
        return None
    # Where nobody is named, any of them may have written.
    instants = sorted(
        step.time
        for steps in chain(recorded.writes.values(), recorded.said.values())
        for step in steps
        if step.writer in _MANAGED
    )
    number = bisect_left(instants, gone + readiness.FAREWELL)
    if number == len(instants):
        return None
    # Where nobody has written before, none may have been there yet.
    last, back = instants[number - 1] if number else gone, instants[number]
    if back - last < tolerances.TABLE.replaced_after:
        return None
    since = f"from {timestamps.micro_text(last)} to" if number else "before"
    return (
        "another process may have taken over, which did not know the node: no controller wrote "
        f"anything {since} {timestamps.micro_text(back)}"
    )


def contradicts(recorded: Trace, again: Trace, end: End, known: Set[DifferenceKey]) -> bool:
    """Whether an unfinished run has a difference that is not `known` and cannot vanish later.

    Subjects with writes after the end do not count: these may have been done too early here.
    """
    return any(
        key not in known and key[1] not in end.later.writes and key[1] not in end.later.said
        for key in contradictions(recorded, again)
    )


def _is_after_end(sides: Sides, recorded: Trace, again: Trace, end: End) -> bool:
    """Whether the run lacks nothing, and its additional facts are late or recorded later."""
    if _is_placed_elsewhere(sides.uid, recorded, again):
        return False  # what is late follows from the other node
    late = {*facts_of(end.later, sides), *_late_facts(again, sides, end)}
    if sides.aspect in (Aspect.DEVICES, Aspect.FINAL):
        if sides.aspect is Aspect.DEVICES and len(sides.recorded) == len(sides.again):
            return False  # the recorded ones were written by the end, with other content
        # Objects are compared as a whole, so the facts of their writes are compared instead.
        missing = _counted(recorded, sides.uid) - _counted(again, sides.uid)
        return bool(late) and not missing
    more = list(sides.facts("again"))
    return not sides.only_recorded and bool(more) and all(fact in late for fact in more)


def _is_placed_elsewhere(pod: str, recorded: Trace, again: Trace) -> bool:
    """Whether a pod was bound on both sides, to different nodes."""
    bindings = [trace.node_of[pod] for trace in (recorded, again) if pod in trace.node_of]
    return len(bindings) == 2 and node(bindings[0]) != node(bindings[1])


def _counted(trace: Trace, uid: str) -> Counter[tuple[Fact, ...]]:
    return Counter(step.facts for step in trace.writes.get(uid, ()))


def facts_of(trace: Trace, sides: Sides) -> Iterator[Fact]:
    """All facts about an object, or about a pod and its claims."""
    for step in _steps_of(trace, sides.uid, sides.name):
        yield from step.facts


def _late_facts(again: Trace, sides: Sides, end: End) -> Iterator[Fact]:
    """The facts of writes that may have been in progress at the end, or came later.

    A run makes writes without a recorded counterpart seconds after they were due. So at the end of
    a recording, the instant at which a write was due counts.
    """
    for step in _steps_of(again, sides.uid, sides.name):
        since = end.since(sides.aspect)
        if end.is_of_recording:
            since = min(since, end.queued.get(step.writer, since))
            ready = again.ready.get((step.uid, step.time), Instant(0))
            if ready > end.undone.get(step.writer, ready):
                yield from step.facts
                continue
        if (again.due_at(step) if end.is_of_recording else step.time) > since:
            yield from step.facts


def _steps_of(trace: Trace, uid: str, name: str) -> Iterator[Step]:
    steps = (
        *(trace.writes.get(uid, ()), trace.of_pod.get(uid, ()), trace.said.get(uid, ())),
        trace.conditions.get((uid, name), ()),
    )
    return chain.from_iterable(steps)
