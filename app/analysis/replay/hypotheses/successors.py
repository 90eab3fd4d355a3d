"""The hypotheses about a scheduler that was replaced: the next one knows nothing of its choices."""

from collections.abc import Iterator
from itertools import pairwise

from app.analysis.replay import tolerances
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.classes import DifferenceClass
from app.analysis.replay.facts import (
    Allocated,
    Bound,
    ConditionSet,
    Created,
    EventSeen,
    Fact,
    FieldChanged,
    FinalizerAdded,
    Nominated,
    Released,
    Reserved,
    Unreserved,
)
from app.analysis.replay.hypotheses.hypothesis import Hypothesis
from app.analysis.replay.lags import Waits
from app.analysis.replay.lateness import Process
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.variants import Hold, Succession
from app.analysis.replay.writers import short_name
from app.analysis.verify.handovers import HANDED_OVER
from app.analysis.verify.invariants.violations import LATE_AFTER
from app.domain.controllers.scheduling.reports import messages
from app.domain.values import event_reasons
from app.domain.values.timestamps import SECOND, Instant

_CHOSEN = (Nominated, Created, FieldChanged, FinalizerAdded, Allocated, Reserved)
"""What a scheduler writes of a placement before the pod is bound.

The field is the one that names the claim for extended resources, which the scheduler creates.
"""


class Successors:
    """Proposes that the scheduler was replaced, for pods that this explains."""

    def __init__(self, recorded: Trace, waits: Waits, scheduler: Process) -> None:
        self._recorded = recorded
        self._waits = waits
        self._scheduler = scheduler

    def lost(self, pod: str, whom: str, again: Trace) -> Iterator[Hypothesis]:
        """Hypotheses that the choice for a pod was lost amid its writes; `whom` names the pod."""
        certain, bound = successions(pod, self._recorded, self._scheduler, self._waits)
        bound |= self._unfinished(pod, again)
        for lost in dict.fromkeys((certain, certain | bound)):
            if lost:
                yield Hypothesis(
                    reason=DifferenceClass.TIMING,
                    detail=f"the scheduler was replaced, and the next one tried {whom} anew",
                    field="lost",
                    target=lost,
                )

    def _unfinished(self, pod: str, again: Trace) -> frozenset[Succession]:
        """The end of a scheduler amid a wait that only this side ended, or that bound the pod.

        The next one may not try the pod at all, since its claim is to be deleted by then. So the
        pauses in question are that around the end of the wait, and those around such a deletion.
        """
        recorded = self._recorded
        chosen, ended = last_choice(pod, recorded), wait_ended(pod, again)
        if ended is None or chosen is None or pod in recorded.node_of or chosen > ended:
            return frozenset()
        marked = (
            at
            for uid, at in recorded.marked.items()
            if recorded.owner_of.get(uid) == pod and chosen < at < ended
        )
        pauses = ((at, self._scheduler.pause_around(at)) for at in (ended, *marked))
        return frozenset(
            Succession(pod=pod, since=Instant(max(pause[0], chosen + 1)), until=pause[1])
            for at, pause in pauses
            if pause is not None and not self._scheduler.is_one(*pause)
            if pause[1] - pause[0] >= HANDED_OVER and pause[1] - at <= LATE_AFTER
        )

    def begun(self, pod: str) -> Iterator[Hypothesis]:
        """A hypothesis about a pod that the next scheduler placed as soon as it began.

        A new process tries all pods that wait, whatever has woken them. What it comes to is decided
        here.
        """
        nominated = (
            step.time for step in self._recorded.writes.get(pod, ()) if _has(step, Nominated)
        )
        if any(map(self._is_newly_begun, nominated)):
            yield Hypothesis(
                reason=DifferenceClass.TIMING,
                detail="the scheduler was replaced, and the next one tried what waited",
                field="tried",
                target=pod,
            )

    def _is_newly_begun(self, at: Instant) -> bool:
        """Whether a write may be of the first attempts of a process that took over."""
        came = Instant(at + self._waits.slack)
        pause = self._scheduler.pause_before(came, HANDED_OVER)
        if pause is None or self._scheduler.is_one(*pause):
            return False
        return self._waits.longest(came) - pause[1] <= tolerances.TABLE.act_after

    def gone_before(self, pod: str, again: Trace) -> Iterator[Hypothesis]:
        """A hypothesis about a pod that was gone before the next scheduler could try it.

        The old one sent nothing after it could have tried the pod, no Lease shows a process that
        could have, and none is away for longer than `LATE_AFTER`. What the old one did for the pod
        before that stays.
        """
        recorded, scheduler = self._recorded, self._scheduler
        gone, placed = recorded.removed.get(pod), again.node_of.get(pod)
        is_nominated = any(
            isinstance(fact, Nominated)
            for each in recorded.writes.get(pod, ())
            for fact in each.facts
        )
        if gone is None or placed is None or pod in recorded.node_of or is_nominated:
            return
        since = Instant(placed.time - tolerances.TABLE.unseen)
        begin = Instant(placed.time + tolerances.TABLE.unseen)
        end = Instant(gone - tolerances.TABLE.act_after)
        is_there = scheduler.is_seen(since, gone) or scheduler.is_one(since, gone)
        is_there |= scheduler.is_led(begin, end)
        if not is_there and HANDED_OVER <= gone - since <= LATE_AFTER:
            done = [each.time for each in recorded.writes.get(pod, ()) if each.time < since]
            after = Instant(min(max(done) + tolerances.TABLE.coarse, since) if done else 0)
            yield Hypothesis(
                reason=DifferenceClass.TIMING,
                detail="the scheduler was replaced, and a pod was gone before the next one began",
                field="held",
                target=Hold(pod=pod, since=after, until=Instant(gone + SECOND)),
            )


def successions(
    pod: str, recorded: Trace, scheduler: Process, waits: Waits
) -> tuple[frozenset[Succession], frozenset[Succession]]:
    """The ends of schedulers that may have chosen for a pod and not written all of it.

    Such a one wrote nothing for a while, and the next one tried the pod as soon as it began. The
    second part are those after which the pod was bound, which both may have done.
    """
    steps = (*recorded.of_pod.get(pod, ()), *recorded.said.get(pod, ()))
    own = (each for each in steps if each.writer in ("", short_name(SCHEDULER)))
    is_chosen = False
    certain, bound = set[Succession](), set[Succession]()
    for before, after in pairwise(sorted(own, key=lambda each: each.time)):
        if not _has(before, EventSeen):
            is_chosen = _has(before, *_CHOSEN)
        came = Instant(after.time + waits.slack)
        pause = scheduler.pause_before(came, HANDED_OVER) if is_chosen else None
        if pause is None or scheduler.is_one(*pause) or _ends_wait(after):
            continue
        is_first = before.time < pause[1] - waits.slack  # a source may have whole seconds alone
        if is_first and waits.longest(came) - pause[1] <= tolerances.TABLE.act_after:
            since = Instant(max(pause[0], before.time + 1))
            each = Succession(pod=pod, since=since, until=pause[1])
            (bound if any(map(_binds, after.facts)) else certain).add(each)
    return frozenset(certain), frozenset(bound)


def last_choice(pod: str, recorded: Trace) -> Instant | None:
    """The instant of a scheduler's last write about a pod, if that was a part of a choice."""
    steps = (*recorded.of_pod.get(pod, ()), *recorded.said.get(pod, ()))
    own = [each for each in steps if each.writer in ("", short_name(SCHEDULER))]
    own = sorted((each for each in own if not _has(each, EventSeen)), key=lambda each: each.time)
    return own[-1].time if own and _has(own[-1], *_CHOSEN) else None


def wait_ended(pod: str, again: Trace) -> Instant | None:
    """The instant at which a run bound a pod, or else first gave up a wait for its devices."""
    bound = again.node_of.get(pod)
    steps = (*again.of_pod.get(pod, ()), *again.said.get(pod, ()))
    own = (each for each in steps if each.writer == short_name(SCHEDULER))
    ended = min((each.time for each in own if _ends_wait(each)), default=None)
    return ended if bound is None else bound.time


def _binds(fact: Fact) -> bool:
    """Whether a fact is the binding of a pod, or tells of it."""
    is_said = isinstance(fact, EventSeen) and fact.reason == event_reasons.SCHEDULED
    return is_said or isinstance(fact, Bound)


def _ends_wait(step: Step) -> bool:
    """Whether a step ends a wait for devices without a node: only the process that waits does."""
    is_given_back = _has(step, Unreserved) and not _has(step, Released)
    said = (
        fact.message if isinstance(fact, ConditionSet) else fact.note
        for fact in step.facts
        if isinstance(fact, ConditionSet | EventSeen)
    )
    return is_given_back or any(messages.prebind_failure("") in text for text in said)


def _has(step: Step, *types: type) -> bool:
    return any(isinstance(fact, types) for fact in step.facts)
