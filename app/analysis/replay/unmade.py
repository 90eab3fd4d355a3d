"""Attempts to place refused pods that were due and were not made, although something had changed.

An attempt that fails for the stated reason writes nothing, so a recording may show none for hours.
But an attempt that places the pod, or fails for another reason, leaves a trace. So where a run
gives that at each look for longer than a pod may wait, nobody tried the pod there. It is a wrong if
the scheduler was at work meanwhile.
"""

from dataclasses import dataclass

from app.analysis.replay import tolerances
from app.analysis.replay.lateness import Delay, Process, Timers
from app.analysis.replay.pace import RecordedPace
from app.analysis.verify.invariants.violations import LATE_AFTER
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.scheduling.queue.waiting_pods import (
    BACKOFF_MAX,
    FLUSH_AGE,
    FLUSH_ROUND,
    QUEUE,
)
from app.domain.log import ObjectKey
from app.domain.values.timestamps import Instant

TRIED_WITHIN = FLUSH_AGE + FLUSH_ROUND + BACKOFF_MAX + LATE_AFTER
"""How long a pod waits at most for its next attempt, whatever wakes it. Parity: controllers.md 4.2.

The rounds of the flush move it at the latest; then it waits for its back-off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unlike:
    """The outcome that an attempt would have had from an instant on, not the stated one."""

    since: Instant
    outcome: AttemptOutcome


class UnmadeAttempts:
    """The looks at refused pods whose next recorded attempt is far away, and the wrongs in them.

    A look is made when the pod is ready, and at each change while it would come to something new. A
    look at a pod that is refused as before is not made again before the queue would move it.
    """

    def __init__(self, recorded: RecordedPace, timers: Timers) -> None:
        self.late: list[Delay] = []
        self._recorded = recorded
        self._scheduler = timers.processes.get(QUEUE, Process(()))
        self._keys: dict[str, ObjectKey] = {}
        self._stated: dict[str, AttemptOutcome] = {}
        self._looks: dict[str, tuple[Instant, Instant]] = {}
        self._unlike: dict[str, _Unlike] = {}
        self._rests_until: dict[str, Instant] = {}

    def next_look(self, pod: str, now: Instant, due: Instant) -> Instant:
        """The instant of the next look at a pod whose recorded attempt is due later, or then."""
        is_far = due - now > TRIED_WITHIN or pod in self._unlike
        if pod not in self._stated or not is_far or not self._recorded.attempts_left(pod):
            return due
        until = self._rests_until.get(pod, now)
        if now < until:
            return min(until, due)
        self._looks[pod] = now, due
        return now

    def end_look(self, pod: str, tried: AttemptOutcome) -> Instant | None:
        """The instant of the recorded attempt that a look came before; None for others."""
        look = self._looks.pop(pod, None)
        if look is None:
            return None
        now, due = look
        if self._is_stated(pod, tried):
            unlike = self._unlike.pop(pod, None)
            if unlike is not None:
                self._judge(pod, unlike, now)
            self._rests_until[pod] = Instant(now + FLUSH_AGE)
        elif pod not in self._unlike:
            self._unlike[pod] = _Unlike(since=now, outcome=tried)
        return due

    def count(self, key: ObjectKey, pod: str, tried: AttemptOutcome, now: Instant) -> None:
        """Notes an attempt whose result counts, and judges how long it was not made."""
        left = len(self._recorded.attempts_left(pod))
        made = self._recorded.attempts(pod)
        self._keys[pod], unlike = key, self._unlike.get(pod)
        self.forget(pod)
        if unlike is not None and len(made) > left:
            self._judge(pod, unlike, min(now, made[-left - 1].first))
        if not tried.node:
            self._stated[pod] = tried

    def forget(self, pod: str) -> None:
        """Notes that a pod is gone, or was tried."""
        for known in (self._stated, self._looks, self._unlike, self._rests_until):
            known.pop(pod, None)

    def _is_stated(self, pod: str, tried: AttemptOutcome) -> bool:
        """Whether an attempt fails for the reason of the last one, which writes nothing."""
        if tried.node or tried.moves_others:
            return False
        left = len(self._recorded.attempts_left(pod))
        before = self._recorded.attempts(pod)[: -left or None]
        is_recorded = bool(before) and before[-1].came_to(tried)
        return is_recorded or tried.message == self._stated[pod].message

    def _judge(self, pod: str, unlike: _Unlike, came: Instant) -> None:
        """Notes that no attempt was made before `came`, if a scheduler was at work for so long."""
        since = unlike.since
        if came - since <= TRIED_WITHIN or not self._was_at_work(since, came):
            return
        node = unlike.outcome.node
        reason = f"it fitted on {node}" if node else "its reasons had changed"
        proof = f"it was not tried again although {reason} and the scheduler was at work"
        self.late.append(Delay(key=self._keys[pod], uid=pod, due=since, came=came, proof=proof))

    def _was_at_work(self, since: Instant, came: Instant) -> bool:
        """Whether a scheduler that was there must have tried a pod between two instants.

        One that was there all the time, by its Lease or its writes, had to. So had one that came
        back, unless it ended at once: twice in a row is no explanation.
        """
        process, due = self._scheduler, Instant(since + TRIED_WITHIN - LATE_AFTER)
        if process.is_one(since, came):
            return True
        if process.longest_at_work(due, Instant(came - LATE_AFTER)) > tolerances.TABLE.act_after:
            return True
        end = Instant(came - tolerances.TABLE.act_after)
        pause = process.pause_before(end, tolerances.TABLE.replaced_after)
        return pause is not None and due <= pause[0]
