"""Watches: the hub that hands the events of a history to its followers.

A subscription sees every event after its start exactly once and in order. It is registered first,
then reads the events it missed from the log, then drops those it has seen already. Each
subscription has a bounded queue. A subscription that falls behind is cut off (Expired); the hub
never waits for it.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

import anyio.lowlevel

from app.domain.controllers.plan import Reads, is_for_all
from app.domain.errors import Expired
from app.domain.log import Event, HistoryId, Revision
from app.domain.log.event import EVENTS_PAGE
from app.domain.values.identifiers import GroupResource
from app.ports import EventLog
from app.signals import Signal

_Key = TypeVar("_Key")


class Subscription:
    """One follower. Iterate over it for lists of events; leave it to end the subscription."""

    def __init__(
        self,
        hub: "Watches",
        *,
        after: Revision,
        group_resource: GroupResource | None,
        reads: Reads,
        queue_max: int,
    ) -> None:
        self._hub = hub
        self.after = after
        self.group_resource = group_resource
        self.reads = reads
        self._queue_max = queue_max
        self._queue: deque[Event] = deque()
        self._grown = Signal()
        self._listener: Callable[[], None] | None = None
        self._lost = hub.ended
        self._live_from = hub.published
        hub.register(self)

    def offer(self, events: Sequence[Event]) -> None:
        """Add events of interest to the queue; cut the subscription off when the queue is full.

        Called by the hub.
        """
        if self._lost:
            return
        if len(self._queue) + len(events) > self._queue_max:
            text = f"the watcher fell more than {self._queue_max} events behind and was cut off"
            self.cut_off(text)
            return
        self._queue.extend(events)
        self._grown.raise_()
        if self._listener is not None:
            self._listener()

    def cut_off(self, text: str) -> None:
        """Drop the queue; `take` raises Expired with this text from now on."""
        self._lost = text
        self._queue.clear()
        self._grown.raise_()
        if self._listener is not None:
            self._listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Set a function that is called with each offer and may `take`; it must not raise."""
        self._listener = listener

    @property
    def has_more(self) -> bool:
        """Whether `take` would return events or raise an error now."""
        return bool(self._queue or self._lost)

    def close(self) -> None:
        """End the subscription; pending events are dropped."""
        self._hub.forget(self)

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[list[Event]]:
        return self._batches()

    async def next_batch(self, timeout_seconds: float) -> list[Event]:
        """The next live events, empty after the timeout. Call `catch_up` until empty first."""
        if not self._queue and not self._lost:
            if timeout_seconds <= 0:
                await anyio.lowlevel.checkpoint()
            else:
                await self._grown.wait_for(timeout_seconds)
        return self.take()

    async def wait_batch(self) -> list[Event]:
        """The next live events; empty after a `nudge`. Uses no timer, unlike `next_batch`."""
        if not self._queue and not self._lost:
            await self._grown.wait()
        return self.take()

    async def grown(self, timeout_seconds: float) -> bool:
        """Wait for live events without taking them; False after the timeout."""
        if not self.has_more:
            await self._grown.wait_for(timeout_seconds)
        return self.has_more

    def nudge(self) -> None:
        """Make `wait_batch` return, so that its caller can check the time."""
        self._grown.raise_()

    async def catch_up(self) -> list[Event]:
        """The next events from before the subscription was live; empty when there are no more."""
        if self.group_resource is not None and self.after < self._hub.floor:
            raise Expired(too_old(self.after, self._hub.floor))
        while self.after < self._live_from:
            if self._hub.ended:
                raise Expired(self._hub.ended)
            events = await self._hub.past(self.after, self._live_from)
            if not events:
                self.after = self._live_from
                break
            self.after = events[-1].revision
            wanted = [event for event in events if self._wants(event)]
            if wanted:
                return wanted
        return []

    def _wants(self, event: Event) -> bool:
        group_resource = (event.key.group, event.key.resource)
        if self.group_resource is not None:
            return group_resource == self.group_resource
        return self.reads is None or group_resource in self.reads or is_for_all(event)

    def take(self) -> list[Event]:
        """The queued live events, without waiting. Raises Expired after a cut-off."""
        if self._lost:
            raise Expired(self._lost)
        queue = self._queue
        if queue and queue[0].revision > self.after:
            events = list(queue)
        else:
            events = [event for event in queue if event.revision > self.after]
        queue.clear()
        self._grown.lower()
        # Every published event of interest has been offered.
        self.after = max(self.after, self._hub.published)
        return events

    async def _batches(self) -> AsyncIterator[list[Event]]:
        while events := await self.catch_up():
            yield events
        while True:
            events = await self.next_batch(3600.0)
            if events:
                yield events


class Watches:
    """The hub of one history in this process.

    `published` is the last revision that was handed to followers. `guests` counts outside followers
    that share a subscription of ours; the code that serves them counts them. `ended` is the reason
    why nothing is handed on any more; it is empty while the history is followed. Clients cannot
    follow from a revision before `floor`, where a paced replay was moved: they must list again.
    """

    def __init__(
        self, log: EventLog, history: HistoryId, *, queue_max: int, recent_max: int
    ) -> None:
        self._log = log
        self._history = history
        self._queue_max = queue_max
        self._recent: deque[Event] = deque(maxlen=recent_max)
        self._by_resource: dict[GroupResource, set[Subscription]] = {}
        self._by_reads: dict[Reads, set[Subscription]] = {}
        self.published = Revision(0)
        self.guests = 0
        self.ended = ""
        self.floor = Revision(0)

    def turn(self, floor: Revision) -> None:
        """Cut off all clients; they may follow from `floor` from now on. Our own loops continue."""
        self.floor = floor
        for followers in tuple(self._by_resource.values()):
            for follower in tuple(followers):
                follower.cut_off(too_old(follower.after, floor))

    def end(self) -> None:
        """Cut off all subscriptions, also later ones: nothing will be published any more."""
        self.ended = (
            "the history is being read again, or the server is stopping; list and watch again"
        )
        for followers in (*self._by_resource.values(), *self._by_reads.values()):
            for follower in tuple(followers):
                follower.cut_off(self.ended)

    def start(self, revision: Revision) -> None:
        """Set the revision up to which events have been folded already."""
        self.published = revision

    def subscribe(
        self, *, after: Revision, group_resource: GroupResource | None = None, reads: Reads = None
    ) -> Subscription:
        """Follow the history after the revision `after`: one resource, or what `reads` names."""
        return Subscription(
            self, after=after, group_resource=group_resource, reads=reads, queue_max=self._queue_max
        )

    def hand_to_clients(self, events: Sequence[Event]) -> None:
        """Hand newly committed events to the followers of a resource, in order.

        `hand_to_loops` follows with the same events before anything is awaited.
        """
        if not events:
            return
        self._recent.extend(events)
        self.published = events[-1].revision
        for group_resource, events_there in _by_resource(events).items():
            for follower in tuple(self._by_resource.get(group_resource, ())):
                follower.offer(events_there)

    def hand_to_loops(self, events: Sequence[Event]) -> None:
        """Hand the events to the loops of this process, which read many resources, in order.

        They come after clients: tasks run in the order of their wake-up, and clients are quick.
        """
        if not events:
            return
        pairs = [(event.key[:2], event) for event in events]
        there = {group_resource for group_resource, _event in pairs}
        for_all = {event.revision for event in events if is_for_all(event)}
        for reads, followers in tuple(self._by_reads.items()):
            wanted: Sequence[Event] = events
            if reads is not None and not there <= reads:
                if not for_all and reads.isdisjoint(there):
                    continue
                if for_all:
                    wanted = [
                        event
                        for group_resource, event in pairs
                        if group_resource in reads or event.revision in for_all
                    ]
                else:
                    wanted = [event for group_resource, event in pairs if group_resource in reads]
            for follower in tuple(followers):
                follower.offer(wanted)

    async def past(self, after: Revision, until: Revision) -> list[Event]:
        """Up to a page of events above `after` and not above `until`, from memory or the log."""
        recent = self._recent
        if recent and recent[0].revision <= after + 1:
            first = after + 1 - recent[0].revision
            last = min(first + EVENTS_PAGE, until + 1 - recent[0].revision)
            return [recent[index] for index in range(first, min(last, len(recent)))]
        return await self._log.read(self._history, after=after, limit=EVENTS_PAGE, until=until)

    def register(self, subscription: Subscription) -> None:
        """Add a new subscription; called by the subscription."""
        if subscription.group_resource is None:
            self._by_reads.setdefault(subscription.reads, set()).add(subscription)
        else:
            self._by_resource.setdefault(subscription.group_resource, set()).add(subscription)

    def forget(self, subscription: Subscription) -> None:
        """Remove a subscription that ends; called by the subscription."""
        if subscription.group_resource is None:
            _discard(self._by_reads, subscription.reads, subscription)
        else:
            _discard(self._by_resource, subscription.group_resource, subscription)

    @contextmanager
    def guest(self) -> Iterator[None]:
        """Count an outside follower that is served by a subscription of ours."""
        self.guests += 1
        try:
            yield
        finally:
            self.guests -= 1

    def count_clients(self) -> int:
        """The number of followers from outside; controllers and other loops are not counted."""
        return self.guests + sum(len(followers) for followers in self._by_resource.values())

    def count(self) -> int:
        """The number of followers of the history."""
        followers_there = (*self._by_resource.values(), *self._by_reads.values())
        return self.guests + sum(len(followers) for followers in followers_there)


def too_old(after: int, oldest: int) -> str:
    """The message for a client that would follow from before the oldest possible revision."""
    return f"too old resource version: {after} ({oldest})"


def _discard(
    followers: dict[_Key, set[Subscription]], key: _Key, subscription: Subscription
) -> None:
    subscriptions = followers.get(key)
    if subscriptions is not None:
        subscriptions.discard(subscription)
        if not subscriptions:
            del followers[key]


def _by_resource(events: Iterable[Event]) -> dict[GroupResource, list[Event]]:
    """The events of each group and resource, in order."""
    by_resource: dict[GroupResource, list[Event]] = {}
    for event in events:
        by_resource.setdefault(event.key[:2], []).append(event)
    return by_resource
