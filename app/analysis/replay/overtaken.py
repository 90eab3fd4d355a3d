"""Pods that were refused before, and the order in which a scheduler must have tried them again.

Two pods that one change wakes leave the queue in the order of their last failures (controllers.md
4.1). Where the recording names both failures and nothing else may have woken one of the pods, the
order is proven: the attempt for the first pod saw what the placement of the second one saw. If the
first pod fits here then, with devices that the second one got, its refusal was wrong, whatever the
instants of the two attempts are.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import accumulate
from typing import TypeAlias

from app.analysis.replay import tolerances
from app.analysis.replay.attempts import Try
from app.analysis.replay.lateness import Delay, FirstAttempt, Timers
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.unmade import UnmadeAttempts
from app.domain.controllers import pods
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.scheduling.queue.waiting_pods import (
    BACKOFF_FIRST,
    BACKOFF_MAX,
    QUEUE,
    backoff_end,
)
from app.domain.controllers.scheduling.scheduling_cycle.cycle import DEVICES
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.values import api_resources, counts, timestamps
from app.domain.values.fields import core, dra
from app.domain.values.timestamps import Instant

_HELPS = frozenset(
    (
        api_resources.RESOURCE_SLICES,
        api_resources.RESOURCE_SLICE_PATCHES,
        api_resources.DEVICE_CLASSES,
        api_resources.DEVICE_TAINT_RULES,
        api_resources.NODES,
    )
)
"""The kinds of which each change may wake a pod that lacks devices. Parity: controllers.md 3.9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """A pod that was refused although it fitted, and the one after it that got its devices."""

    key: ObjectKey
    by: ObjectKey
    devices: tuple[str, ...]
    woken: Instant

    @property
    def text(self) -> str:
        """The refusal as text, for reports."""
        devices = counts.plural(len(self.devices), "device")
        return (
            f"was refused although {devices} {', '.join(self.devices)} fitted it from "
            f"{timestamps.micro_text(self.woken)} on, which {self.by} got, a pod behind it in the "
            "queue"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rank:
    """The facts that determine the place of a new pod in the queue."""

    key: ObjectKey
    made: Instant
    scheduler: str
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wake:
    """The first reason to try a pod since its last attempt."""

    at: Instant
    revision: Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """The last failed attempt for a pod: how many there were, and whether its order is certain."""

    attempt: Try
    number: int
    is_prompt: bool
    is_certain: bool


_Queue: TypeAlias = list[tuple[int, str]]
"""A heap of pods, with the negative instants of their refusals: the last refused one is first."""


class _Queues:
    """The queues of a scheduler by priority, with the last refusal at or below each priority.

    A bound names the queue that it comes from, and may be too late: a queue loses pods without
    notice. So a question looks at one queue, and at all only when that has lost its last one.
    """

    def __init__(self) -> None:
        self._by_priority: dict[int, _Queue] = {}
        self._priorities: list[int] = []
        self._bounds: list[tuple[int, int]] = []

    def add(self, priority: int, refused: Instant, pod: str) -> None:
        """Adds a pod that was refused."""
        index = bisect_left(self._priorities, priority)
        if priority not in self._by_priority:
            self._by_priority[priority] = []
            self._priorities.insert(index, priority)
            self._bounds.insert(index, self._bounds[index - 1] if index else (-1, priority))
        heappush(self._by_priority[priority], (-refused, pod))
        for place in range(index, len(self._bounds)):
            if self._bounds[place][0] >= refused:
                break
            self._bounds[place] = (refused, priority)

    def have(self, priority: int, refused: Instant, last_of: Callable[[_Queue], int]) -> bool:
        """Whether a pod of no higher priority was refused later; `last_of` drops who is gone."""
        index = bisect_right(self._priorities, priority) - 1
        while index >= 0 and self._bounds[index][0] > refused:
            if last_of(self._by_priority[self._bounds[index][1]]) > refused:
                return True
            self._look_again(last_of)
            index = bisect_right(self._priorities, priority) - 1
        return False

    def _look_again(self, last_of: Callable[[_Queue], int]) -> None:
        """Makes the bounds exact; queues without a pod are dropped."""
        lasts = [(last_of(self._by_priority[each]), each) for each in self._priorities]
        lasts = [(last, priority) for last, priority in lasts if last >= 0]
        self._priorities = [priority for _, priority in lasts]
        self._by_priority = {each: self._by_priority[each] for each in self._priorities}
        self._bounds = list(accumulate(lasts, max))


class _PlacedNext:
    """The refused pods whose next recorded attempt places them, the last refused one first.

    `later` has those of all refused pods that the recording places later: of very many pods, few
    may be. A pod is asked about by its scheduler and priority, and no pod is compared with each.
    """

    def __init__(self, recorded: RecordedPace) -> None:
        self._recorded = recorded
        self._later: dict[str, Instant] = {}
        self._queues: dict[str, _Queues] = defaultdict(_Queues)
        self._queued: dict[str, Instant] = {}

    def add(self, pod: str, rank: _Rank, refused: Instant) -> None:
        """Notes the last refusal of a pod that the recording places later."""
        self._later[pod] = refused
        self.note(pod, rank)

    def remove(self, pod: str) -> None:
        """Notes that a pod is gone or was tried; what its queue has of it is dropped there."""
        self._later.pop(pod, None)

    def note(self, pod: str, rank: _Rank | None) -> None:
        """Notes that attempts of a pod may have been made since the last time."""
        refused = self._later.get(pod)
        if refused is None or rank is None or self._queued.get(pod) == refused:
            return
        if self._is_next(pod):
            self._queues[rank.scheduler].add(rank.priority, refused, pod)
            self._queued[pod] = refused

    def has_behind(self, rank: _Rank, refused: Instant) -> bool:
        """Whether one was refused later than a pod, at its scheduler, with no higher priority."""
        queues = self._queues.get(rank.scheduler)
        return queues is not None and queues.have(rank.priority, refused, self._last_of)

    def _last_of(self, queue: _Queue) -> int:
        while queue:
            negative, pod = queue[0]
            if self._later.get(pod) == -negative and self._is_next(pod):
                return -negative
            heappop(queue)
            if self._queued.get(pod) == -negative:
                del self._queued[pod]
        return -1

    def _is_next(self, pod: str) -> bool:
        attempt = self._recorded.next_attempt(pod)
        return attempt is not None and attempt.placing is not None


class WaitingPods:
    """The pods that wait in a run: since when each may be tried, and which were passed over.

    `seconds` are second attempts for pods, since when they could be made. Each leaves a trace: the
    Event of the first one is repeated. Those in `forgotten` have none: their pods wait to the end.
    """

    def __init__(self, recorded: RecordedPace, timers: Timers) -> None:
        self.passed_over: list[PassedOver] = []
        self.seconds: dict[str, FirstAttempt] = {}
        self.forgotten: dict[str, Instant] = {}
        self.unmade = UnmadeAttempts(recorded, timers)
        self._recorded = recorded
        self._timers = timers
        self._revision = Revision(0)
        self._ranks: dict[str, _Rank] = {}
        self._allocated: set[ObjectKey] = set()
        self._changes: list[Instant] = []
        self._wakes: dict[str, _Wake] = {}
        self._refused: dict[str, _Refusal] = {}
        self._placed_next = _PlacedNext(recorded)
        self._fits: dict[str, frozenset[str]] = {}
        self._trials: dict[str, Instant] = {}

    def follow(self, event: Event) -> None:
        """Notes the changes that wake pods, and the ranks of new pods."""
        self._revision = event.revision
        # What fitted in another state proves nothing.
        self._fits.clear()
        kind = event.key[:2]
        is_gone = event.type is EventType.OBJECT_DELETED
        if kind == api_resources.RESOURCE_CLAIMS:
            if not is_gone and dra.allocation(event.object):
                self._allocated.add(event.key)
            elif event.key in self._allocated:
                self._allocated.discard(event.key)
                self._changes.append(event.stamp.time)
        elif kind in _HELPS:
            self._changes.append(event.stamp.time)
        elif kind == api_resources.PODS:
            if is_gone:
                self._forget(event.uid)
            elif event.type is EventType.OBJECT_CREATED and not pods.facts_of(event).group:
                self._ranks[event.uid] = _Rank(
                    key=event.key,
                    made=event.stamp.time,
                    scheduler=core.scheduler_name(event.object),
                    priority=core.priority(event.object) or 0,
                )

    def look(self, pod: str, now: Instant) -> None:
        """Notes that the queue has a pod, which may be tried from now on."""
        self._placed_next.note(pod, self._ranks.get(pod))
        if pod in self._wakes:
            return
        wake = self._wakes[pod] = _Wake(at=now, revision=self._revision)
        last = self._refused.get(pod)
        if last is None or last.number > 1 or not last.is_certain or self._changed(wake) > 1:
            return
        if now - last.attempt.last <= tolerances.TABLE.unseen:
            return
        if not self._is_newest(pod, last):
            return
        if left := self._recorded.attempts_left(pod):
            self.seconds[pod] = FirstAttempt(ready=now, attempt=left[0])
        elif self._changed(wake):
            # A pod that only the flush moved may be tried in vain without a trace.
            self.forgotten[pod] = now

    def second_attempts(self, end: Instant, queued: Instant) -> Mapping[str, FirstAttempt]:
        """The second attempts, with those that may come after the end of the recording.

        What was sent at the end may have waited for the limit of the client since `queued`.
        """
        later = Try(instant=end, first=queued, last=end, tried=AttemptOutcome())
        forgotten = {
            pod: FirstAttempt(ready=since, attempt=later) for pod, since in self.forgotten.items()
        }
        return {**self.seconds, **forgotten}

    def next_try(self, pod: str, now: Instant, due: Instant) -> Instant:
        """The instant at which a pod is tried whose recorded attempt is due later, or then.

        Where a recorded placement may show that an attempt for the pod came before it, what that
        attempt comes to is noted. It does not count, and is made again when something happens.
        """
        look = self.unmade.next_look(pod, now, due)
        if not self._may_be_first(pod):
            return look
        self._trials[pod] = due
        return now

    def end_trial(self, pod: str, tried: AttemptOutcome) -> Instant | None:
        """The instant of the recorded attempt that a trial came before; None for others."""
        due = self.unmade.end_look(pod, tried)
        if pod not in self._trials:
            return due
        self.defer(pod, tried)
        return self._trials.pop(pod)

    def defer(self, pod: str, tried: AttemptOutcome) -> None:
        """Notes an attempt whose result does not count."""
        self._placed_next.note(pod, self._ranks.get(pod))
        self._fits.pop(pod, None)
        if tried.node and pod in self._refused:
            self._fits[pod] = _places(tried)

    def count(self, pod: str, tried: AttemptOutcome, now: Instant) -> Instant:
        """Notes an attempt whose result counts; returns since when it could be made."""
        wake = self._wakes.pop(pod, None) or _Wake(at=now, revision=self._revision)
        self._fits.pop(pod, None)
        if pod in self._ranks:
            self.unmade.count(self._ranks[pod].key, pod, tried, now)
        made, left = self._recorded.attempts(pod), self._recorded.attempts_left(pod)
        number = len(made) - len(left)
        self._placed_next.remove(pod)
        if not number or tried.node:
            if number and tried.node:
                self._judge(pod, tried, wake)
            self._refused.pop(pod, None)
            return wake.at
        last = self._refused.get(pod)
        attempt = made[number - 1]
        is_prompt = attempt.instant - wake.at < BACKOFF_FIRST and (last is None or last.is_prompt)
        refusal = self._refused[pod] = _Refusal(
            attempt=attempt,
            number=1 if last is None else last.number + 1,
            is_prompt=is_prompt,
            # A change that the scheduler saw during the attempt would have woken the pod again.
            is_certain=attempt.is_exact
            and attempt.is_reported
            and wake.revision == self._revision
            and tried.plugins == {DEVICES}
            and self._changed(wake) <= (last is not None),
        )
        if pod in self._ranks and any(each.placing is not None for each in left):
            self._placed_next.add(pod, self._ranks[pod], refusal.attempt.instant)
        return wake.at

    def _may_be_first(self, pod: str) -> bool:
        """Whether a pod comes before one in the queue that is placed next in the recording."""
        last, wake = self._refused.get(pod), self._wakes.get(pod)
        if last is None or wake is None or not last.is_certain:
            return False
        if self._is_forgotten(pod, last, wake):
            return True
        if self._changed(wake) > 1 or _ready_at(last) > wake.at:
            return False
        rank = self._ranks.get(pod)
        return rank is not None and self._placed_next.has_behind(rank, last.attempt.instant)

    def _judge(self, pod: str, tried: AttemptOutcome, wake: _Wake) -> None:
        """Notes the pods before this one in the queue that fit with the devices that it got."""
        if pod not in self._ranks:
            return
        places, since = _places(tried), self._ranks[pod].made
        if pod in self._refused:
            made, left = self._recorded.attempts(pod), self._recorded.attempts_left(pod)
            mine = made[len(made) - len(left) - 2]
            since = mine.instant if mine.is_exact and mine.is_reported else Instant(0)
        for other, fit in self._fits.items():
            last, woken = self._refused[other], self._wakes.get(other)
            if (
                woken is not None
                and fit <= places
                and last.is_certain
                and self._is_newest(other, last)
                and last.attempt.instant < since
                and self._is_before(other, pod)
                and self._was_tried(other, woken, wake)
                and self._is_one_process(last.attempt.instant, wake.at)
            ):
                self.passed_over.append(
                    PassedOver(
                        key=self._ranks[other].key,
                        by=self._ranks[pod].key,
                        devices=tuple(sorted(fit)),
                        woken=woken.at,
                    )
                )

    def _is_newest(self, pod: str, refusal: _Refusal) -> bool:
        """Whether no later attempt for a pod is recorded, such as one that had no reason here.

        A process that has just begun tries all that waits, and the order is that of its attempts.
        """
        made, left = self._recorded.attempts(pod), self._recorded.attempts_left(pod)
        return made[len(made) - len(left) - 1] is refusal.attempt

    def _was_tried(self, pod: str, woken: _Wake, wake: _Wake) -> bool:
        """Whether a pod must have been tried before one behind it in the queue.

        Either one change (`wake`) woke both, or the pod had been in the queue for a while.
        """
        ready = max(_ready_at(self._refused[pod]), woken.at)
        if woken == wake and ready == woken.at and self._changed(wake) <= 1:
            return True
        is_later = wake.at - ready > tolerances.TABLE.unseen
        return is_later and self._is_forgotten(pod, self._refused[pod], woken)

    def _is_before(self, pod: str, other: str) -> bool:
        """Whether one scheduler tries both, the first one with no lower priority."""
        one, two = self._ranks.get(pod), self._ranks.get(other)
        if one is None or two is None or one.scheduler != two.scheduler:
            return False
        return one.priority >= two.priority

    def _is_forgotten(self, pod: str, last: _Refusal, wake: _Wake) -> bool:
        """Whether the second attempt for a pod, which leaves a trace, was not made when it was due.

        The pod is in the queue until then.
        """
        left = self._recorded.attempts_left(pod)
        is_late = not left or left[0].first - wake.at > tolerances.TABLE.act_after
        return is_late and last.number == 1

    def _is_one_process(self, first: Instant, last: Instant) -> bool:
        """Whether no other scheduler may have begun in between, which lists pods in its own order.

        Without a record of its process, the pause must be shorter than a change of the leader.
        """
        if QUEUE not in self._timers.processes:
            return last - first < tolerances.TABLE.replaced_after
        return self._timers.begun_anew(QUEUE, first, last) is None

    def _changed(self, wake: _Wake) -> int:
        """The changes around a wake, and since then, that may wake pods without devices."""
        since = Instant(wake.at - tolerances.TABLE.unseen)
        return len(self._changes) - bisect_right(self._changes, since)

    def _forget(self, pod: str) -> None:
        self.unmade.forget(pod)
        self._placed_next.remove(pod)
        for known in (self._ranks, self._wakes, self._refused, self._fits, self._trials):
            known.pop(pod, None)
        self.forgotten.pop(pod, None)


def late_seconds(
    seconds: Mapping[str, FirstAttempt],
    late: Callable[[Mapping[str, FirstAttempt]], Iterable[Delay]],
) -> Iterator[Delay]:
    """The second attempts that came too late; `late` judges attempts beside those of younger pods.

    The pods that came afterwards are behind a pod in the queue, which has been there for longer.
    """
    waited = {
        uid: second
        for uid, second in seconds.items()
        if second.attempt.first - second.ready > tolerances.TABLE.act_after
    }
    for delay in late(waited) if waited else ():
        is_made = waited[delay.uid].attempt.tried != AttemptOutcome()
        yield delay if is_made else replace(delay, act="was not tried even")


def _ready_at(refusal: _Refusal) -> Instant:
    """The latest end of the back-off after a refusal.

    Only where each attempt came less than a back-off after its reason, none is unknown.
    """
    if refusal.is_prompt:
        return backoff_end(refusal.attempt.instant, refusal.number)
    return backoff_end(Instant(refusal.attempt.instant + BACKOFF_MAX), refusal.number)


def _places(tried: AttemptOutcome) -> frozenset[str]:
    """The devices of an attempt, as `pool/device`, without the requests that they are for."""
    return frozenset(device.partition(": ")[2] for device in tried.devices)
