"""The scheduling queue: the pods that wait for the scheduler.

    place           leaves it
    gated           when PreEnqueue passes (an event must make it pass)
    active          popped: higher priority first, then earlier time, then earlier creation
    backoff         when its time is up; early, when `active` is empty (not after an error)
    unschedulable   when an event concerns it, or by the flush after five minutes
    held            popped, and its pace says later: active again at that instant
    in flight       popped; its decision in the log says where it goes

Parity: controllers.md 4.1. Times are instants in the queue; nothing sleeps. Attempt counters come
from the decisions in the log, so a restarted process continues to count.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from app.domain.controllers.pacing import Pace
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.log import Revision
from app.domain.values.identifiers import NamespacedName
from app.domain.values.timestamps import SECOND, Instant

BACKOFF_FIRST = 1 * SECOND
BACKOFF_MAX = 10 * SECOND
FLUSH_AGE = 300 * SECOND
FLUSH_ROUND = 30 * SECOND

QUEUE = "scheduling"
"""The name of the queue in a pace; its keys are uids of pods."""


class QueuePart(StrEnum):
    """The part of the queue that a pod is in."""

    GATED = "gated"
    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error-backoff"
    UNSCHEDULABLE = "unschedulable"
    HELD = "held"
    IN_FLIGHT = "in-flight"
    BINDING = "binding"


_WAITING = frozenset((QueuePart.BACKOFF, QueuePart.ERROR_BACKOFF, QueuePart.UNSCHEDULABLE))

_COUNTED_AS = {
    QueuePart.ACTIVE: "active",
    QueuePart.HELD: "active",
    QueuePart.BACKOFF: "backoff",
    QueuePart.ERROR_BACKOFF: "backoff",
    QueuePart.UNSCHEDULABLE: "unschedulable",
    QueuePart.GATED: "gated",
}


@dataclass(slots=True, kw_only=True, eq=False)
class QueuedPod:
    """A pod without a node.

    `since` is the queue timestamp, `plugins` are the plug-ins that rejected the last attempt,
    `unfit` and `errors` count attempts in a row, `ready_at` is the end of the back-off.
    `was_flushed` is true of a pod that became active because of its time, without an event.
    """

    spec: PodSpec
    order: Revision
    since: Instant
    where: QueuePart = QueuePart.GATED
    plugins: frozenset[str] = frozenset()
    unfit: int = 0
    errors: int = 0
    ready_at: Instant = Instant(0)
    ticket: int = 0
    cause: Revision = Revision(0)
    touched: Revision = Revision(0)
    was_flushed: bool = False

    @property
    def place(self) -> NamespacedName:
        """The namespace and name of the pod."""
        return (self.spec.facts.namespace, self.spec.facts.name)


_Wait: TypeAlias = tuple[Instant, tuple[int, ...], int, NamespacedName]
"""The end of a wait, the rank among waits with the same end, and ticket and place of the pod."""


@dataclass(slots=True)
class _Heaps:
    active: list[tuple[int, Instant, Revision, int, NamespacedName]] = field(default_factory=list)
    backoff: list[_Wait] = field(default_factory=list)
    early: list[_Wait] = field(default_factory=list)
    flush: list[_Wait] = field(default_factory=list)
    held: list[_Wait] = field(default_factory=list)


class SchedulingQueue:
    """The queue. Heap entries have a ticket; an entry with an old ticket is skipped."""

    def __init__(self, *, pops_early: bool = True, pace: Pace | None = None) -> None:
        self._pace = pace
        self._put_off: list[tuple[NamespacedName, int]] = []
        self._seen = Revision(0)
        self._pods: dict[NamespacedName, QueuedPod] = {}
        self._heaps = _Heaps()
        self._pops_early = pops_early
        self.rejected_by: dict[str, dict[NamespacedName, None]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def counts(self) -> dict[str, int]:
        """The numbers of pods per queue, by upstream's names (controllers.md 11.3)."""
        counts = dict.fromkeys(("active", "backoff", "unschedulable", "gated"), 0)
        for pod in self._pods.values():
            name = _COUNTED_AS.get(pod.where)
            if name is not None:
                counts[name] += 1
        return counts

    def get(self, place: NamespacedName) -> QueuedPod | None:
        """The pod in any part of the queue, or None."""
        return self._pods.get(place)

    def put(self, pod: QueuedPod) -> None:
        """Adds a new pod, which is gated until it is activated."""
        self.remove(pod.place)
        self._pods[pod.place] = pod

    def remove(self, place: NamespacedName) -> QueuedPod | None:
        """Removes a pod and returns it, or None when it is not in the queue."""
        pod = self._pods.pop(place, None)
        if pod is not None:
            self._leave(pod)
        return pod

    def gate(self, pod: QueuedPod) -> None:
        """Gates a pod that PreEnqueue rejects."""
        self._leave(pod)
        pod.where = QueuePart.GATED

    def activate(self, pod: QueuedPod, now: Instant, cause: Revision) -> None:
        """Moves a pod to the active part, or to back-off until its back-off ends."""
        self._leave(pod)
        pod.cause = cause
        pod.was_flushed = False
        if pod.ready_at > now:
            self._enter_backoff(pod)
            return
        self._enter_active(pod)

    def try_now(self, place: NamespacedName, now: Instant) -> None:
        """Activates a pod that waits or is held, for replays that know of an attempt."""
        pod = self._pods.get(place)
        if pod is not None and pod.where is QueuePart.HELD:
            self._leave(pod)
            self._enter_active(pod)
        if pod is None or pod.where not in _WAITING:
            return
        pod.ready_at = min(pod.ready_at, now)
        self.activate(pod, now, pod.cause)

    def fail(self, pod: QueuedPod, now: Instant, plugins: frozenset[str]) -> None:
        """Makes a pod unschedulable after an attempt in which plug-ins rejected it."""
        self._leave(pod)
        pod.plugins = plugins
        pod.since = now
        pod.unfit += 1
        pod.errors = 0
        pod.ready_at = backoff_end(now, pod.unfit)
        pod.where = QueuePart.UNSCHEDULABLE
        for plugin in plugins:
            self.rejected_by.setdefault(plugin, {})[pod.place] = None
        heapq.heappush(self._heaps.flush, (flush_end(now), (pod.order,), pod.ticket, pod.place))

    def err(self, pod: QueuedPod, now: Instant) -> None:
        """Puts a pod into back-off after an error; no event shortens it."""
        self._leave(pod)
        pod.plugins = frozenset()
        pod.since = now
        pod.errors += 1
        pod.ready_at = backoff_end(now, pod.errors)
        pod.where = QueuePart.ERROR_BACKOFF
        heapq.heappush(self._heaps.backoff, _backoff_entry(pod))

    def settle_failure(
        self, pod: QueuedPod, outcome: str, plugins: frozenset[str], now: Instant
    ) -> None:
        """Settles an attempt without a node; without a rejecting plug-in it counts as an error."""
        if outcome == "Error" or not plugins:
            self.err(pod, now)
        else:
            self.fail(pod, now, plugins)

    def hold(self, pod: QueuedPod) -> None:
        """Moves a pod that has its devices to the part that waits for binding conditions."""
        self._leave(pod)
        pod.where = QueuePart.BINDING

    def may_have(self, now: Instant) -> bool:
        """False when no pod can be tried; the queue is asked for one much more often."""
        self._promote(now)
        return bool(self._heaps.active or (self._pops_early and self._heaps.early))

    def pop(self, now: Instant) -> QueuedPod | None:
        """Takes the next pod to try, which is then in flight; None when there is none."""
        self._promote(now)
        heaps = self._heaps
        while heaps.active:
            *_, ticket, place = heapq.heappop(heaps.active)
            pod = self._pods.get(place)
            if pod is not None and pod.ticket == ticket and not self._hold_back(pod, now):
                return self._fly(pod)
        while self._pops_early and heaps.early:
            *_, ticket, place = heapq.heappop(heaps.early)
            pod = self._pods.get(place)
            if pod is not None and pod.ticket == ticket and not self._hold_back(pod, now):
                return self._fly(pod)
        return None

    def put_off(self, pod: QueuedPod, until: Instant) -> None:
        """Puts off a pod that was tried too early, until the instant or the next `try_again`."""
        self._hold(pod, until)
        self._put_off.append((pod.place, pod.ticket))

    def try_again(self, revision: Revision) -> None:
        """Activates the pods that were put off, if the revision has changed since the last call."""
        if revision == self._seen:
            return
        self._seen = revision
        for place, ticket in self._put_off:
            pod = self._pods.get(place)
            if pod is not None and pod.ticket == ticket:
                self._leave(pod)
                self._enter_active(pod)
        self._put_off.clear()

    def due(self) -> Instant | None:
        """The instant at which the next back-off, flush or hold ends."""
        heaps = self._heaps
        nexts = [_next(self._pods, heap) for heap in (heaps.backoff, heaps.flush, heaps.held)]
        return min((entry[0] for entry in nexts if entry is not None), default=None)

    def waiting(self, plugin: str) -> list[QueuedPod]:
        """The unschedulable pods that this plug-in rejected, in the order of their failures."""
        return [self._pods[place] for place in self.rejected_by.get(plugin, ())]

    def _hold_back(self, pod: QueuedPod, now: Instant) -> bool:
        """Holds the pod if its pace requires it, and returns whether it does."""
        if self._pace is None:
            return False
        due = self._pace.not_before(QUEUE, (pod.spec.facts.uid,), now)
        if due <= now:
            return False
        self._hold(pod, due)
        return True

    def _hold(self, pod: QueuedPod, until: Instant) -> None:
        self._leave(pod)
        pod.where = QueuePart.HELD
        heapq.heappush(self._heaps.held, (until, (pod.order,), pod.ticket, pod.place))

    def _fly(self, pod: QueuedPod) -> QueuedPod:
        self._leave(pod)
        pod.where = QueuePart.IN_FLIGHT
        return pod

    def _leave(self, pod: QueuedPod) -> None:
        pod.ticket += 1
        if pod.where is QueuePart.UNSCHEDULABLE:
            for plugin in pod.plugins:
                held = self.rejected_by.get(plugin)
                if held is not None:
                    held.pop(pod.place, None)
                    if not held:
                        del self.rejected_by[plugin]

    def _enter_active(self, pod: QueuedPod) -> None:
        pod.where = QueuePart.ACTIVE
        entry = (-pod.spec.priority, pod.since, pod.order, pod.ticket, pod.place)
        heapq.heappush(self._heaps.active, entry)

    def _enter_backoff(self, pod: QueuedPod) -> None:
        pod.where = QueuePart.BACKOFF
        entry = _backoff_entry(pod)
        heapq.heappush(self._heaps.backoff, entry)
        if self._pops_early:
            heapq.heappush(self._heaps.early, entry)

    def _promote(self, now: Instant) -> None:
        heaps = self._heaps
        for heap in (heaps.backoff, heaps.held):
            while (entry := _next(self._pods, heap)) is not None and entry[0] <= now:
                heapq.heappop(heap)
                pod = self._pods[entry[-1]]
                self._leave(pod)
                self._enter_active(pod)
        while (entry := _next(self._pods, heaps.flush)) is not None and entry[0] <= now:
            heapq.heappop(heaps.flush)
            pod = self._pods[entry[-1]]
            self.activate(pod, now, pod.cause)
            pod.was_flushed = True


def _next(pods: Mapping[NamespacedName, QueuedPod], heap: list[_Wait]) -> _Wait | None:
    """The first entry with a valid ticket; invalid entries before it are dropped."""
    while heap:
        _, _, ticket, place = heap[0]
        pod = pods.get(place)
        if pod is not None and pod.ticket == ticket:
            return heap[0]
        heapq.heappop(heap)
    return None


def flush_end(now: Instant) -> Instant:
    """The instant at which a pod rejected now is tried again without an event."""
    due = now + FLUSH_AGE
    return Instant(due + -due % FLUSH_ROUND)


def backoff_end(now: Instant, count: int) -> Instant:
    """The end of the back-off after the `count`-th attempt in a row without a node."""
    # Parity: controllers.md 4.1; the end is cut to whole seconds, and the second that it falls into
    # belongs to it. Example: a first failure at 5.01 s ends at 6.01, cut to 6; the pod is ready at
    # 7.
    end = now + backoff_length(count)
    return Instant(end - end % SECOND + SECOND)


def backoff_length(count: int) -> int:
    """The length of the back-off after the `count`-th attempt in a row without a node."""
    return min(BACKOFF_FIRST << min(max(count, 1) - 1, 10), BACKOFF_MAX)


def _backoff_entry(pod: QueuedPod) -> _Wait:
    return (pod.ready_at, (-pod.spec.priority, pod.since, pod.order), pod.ticket, pod.place)
