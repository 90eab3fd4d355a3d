"""The hypotheses about a scheduler that was replaced: the next one knows nothing of its choices."""

from collections.abc import Iterator

from app.analysis.replay import tolerances
from app.analysis.replay.classes import DifferenceClass
from app.analysis.replay.facts import Nominated
from app.analysis.replay.hypotheses.hypothesis import Hypothesis
from app.analysis.replay.lags import Waits
from app.analysis.replay.lateness import Process, last_choice, successions
from app.analysis.replay.traces import Trace
from app.analysis.replay.variants import Hold, Succession
from app.analysis.verify.handovers import HANDED_OVER
from app.analysis.verify.invariants.violations import LATE_AFTER
from app.domain.values.timestamps import SECOND, Instant


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
        """The end of a scheduler amid a wait, if only this side bound the pod, and none did later.

        The next one may not try the pod at all, since its claim is to be deleted by then.
        """
        placed, chosen = again.node_of.get(pod), last_choice(pod, self._recorded)
        if placed is None or chosen is None or pod in self._recorded.node_of:
            return frozenset()
        pause = self._scheduler.pause_around(placed.time)
        if pause is None or self._scheduler.is_one(*pause) or chosen > placed.time:
            return frozenset()
        begin, end = pause
        if end - begin < HANDED_OVER or end - placed.time > LATE_AFTER:
            return frozenset()
        return frozenset({Succession(pod=pod, since=Instant(max(begin, chosen + 1)), until=end)})

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
