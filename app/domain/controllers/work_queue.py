"""The work queue of a controller: ready keys in order, waiting keys with their due instant.

A key is in the queue once, however often it is added. Retries follow upstream's item back-off: 5 ms
doubling to 1000 s (controllers.md 1.1), without jitter and without the global bucket, which only
affects bursts of more than a hundred failures.
"""

import heapq
from collections import OrderedDict
from typing import Generic, Protocol, TypeVar

from app.domain.controllers.pacing import Pace
from app.domain.log import Revision
from app.domain.values.timestamps import Instant

RETRY_FIRST_MICROS = 5_000
RETRY_MAX_MICROS = 1_000_000_000
REPORT_LAG_MICROS = 50_000
"""How exact recorded instants are: two reports of one key may be so much nearer than the tries."""

Key = TypeVar("Key", bound=tuple[str, ...])


class AnyQueue(Protocol):
    """The part of a queue that metrics read, for any type of key."""

    adds: int
    retries: int

    @property
    def depth(self) -> int: ...


class WorkQueue(Generic[Key]):
    """A queue with ready keys in the order of adding and waiting keys in the order of (due, key).

    Each key keeps the revision at which it was last added, so that a decision in the log removes
    exactly the work that it handled. `adds` and `retries` are counters for metrics.
    """

    def __init__(self, name: str = "", pace: Pace | None = None) -> None:
        """`pace` decides from when on a ready key of the queue with this name may be taken."""
        self._name = name
        self._pace = pace
        # The first key of a plain dictionary is found behind the places of all that were removed
        # before it: taking a hundred thousand keys, as a start does, would take their square.
        self._ready: OrderedDict[Key, Revision] = OrderedDict()
        self._urgent: OrderedDict[Key, Revision] = OrderedDict()
        self._begun: set[Key] = set()
        self._waiting: dict[Key, tuple[Instant, Revision]] = {}
        self._heap: list[tuple[Instant, Key]] = []
        self._failures: dict[Key, int] = {}
        self._failed: dict[Key, Instant] = {}
        self._retried: dict[Key, Instant] = {}
        self._ready_since: dict[Key, Instant] = {}
        self.adds = 0
        self.retries = 0

    def __len__(self) -> int:
        return len(self._ready) + len(self._urgent) + len(self._waiting)

    @property
    def depth(self) -> int:
        """The number of ready keys; keys that wait for an instant do not count."""
        return len(self._ready) + len(self._urgent)

    def add(self, key: Key, revision: Revision = Revision(0)) -> None:
        """Makes the key ready; a key that is already ready keeps its position."""
        self.adds += 1
        if key in self._urgent:
            self._urgent[key] = revision
        else:
            self._ready[key] = revision

    def add_first(self, key: Key, revision: Revision = Revision(0)) -> None:
        """Makes the key ready before all keys that are not urgent, because its work has begun."""
        self.adds += 1
        self._ready.pop(key, None)
        self._urgent[key] = revision

    def resume(self, key: Key, revision: Revision = Revision(0)) -> None:
        """Makes the key ready before all others, whatever the pace says: its work has begun."""
        self.add_first(key, revision)
        self._begun.add(key)

    def add_at(self, key: Key, due: Instant, revision: Revision = Revision(0)) -> None:
        """Makes the key ready at `due`, or earlier if it already waits for an earlier instant."""
        known = self._waiting.get(key)
        if known is not None and known[0] <= due:
            self._waiting[key] = (known[0], revision)
            return
        self._waiting[key] = (due, revision)
        heapq.heappush(self._heap, (due, key))

    def wait_until(self, key: Key, due: Instant, revision: Revision = Revision(0)) -> None:
        """Makes the key ready at `due`, whatever instant it waits for; a ready key stays ready."""
        self._waiting.pop(key, None)
        self.add_at(key, due, revision)

    def may_have(self, now: Instant) -> bool:
        """False when no key is ready; a queue is asked for work much more often than it has any."""
        return bool(self._ready or self._urgent or (self._heap and self._heap[0][0] <= now))

    def take(self, now: Instant) -> tuple[Key, Revision] | None:
        """Removes the next ready key and returns it with the revision at which it was added."""
        self._promote(now)
        while item := self._first():
            key, revision = item
            if self._pace is None or key in self._begun:
                self._begun.discard(key)
                return item
            due = self._pace.not_before(self._name, key, now)
            if due <= now:
                ready = self._ready_since.pop(key, now)
                if key not in self._failures:
                    self._failed[key] = ready
                return item
            self._ready_since.setdefault(key, now)
            self.add_at(key, due, revision)
        return None

    def retry(self, key: Key, now: Instant) -> None:
        """Puts the key back after a failure, with a growing delay of its own.

        At a recorded pace the failure may have come before `now`: a recording shows its report, and
        that waits for the limit of a client. So a recorded act that comes before the end of the
        delay is the next try, unless it comes too early whenever the failures were.
        """
        self.retries += 1
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        delay = _delay(count)
        due = Instant(now + delay)
        self.add_at(key, due if self._pace is None else self._recorded_due(key, now, delay))

    def _recorded_due(self, key: Key, now: Instant, delay: int) -> Instant:
        assert self._pace is not None
        failed = Instant(min(self._failed.get(key, now), now))
        failures = (self._retried.get(key, failed), now)
        due, earliest = Instant(now + delay), failed + delay
        again = self._pace.next_try(self._name, key, failures, due)
        is_early = again is not None and again.latest < earliest - _slack(delay)
        if again is not None and is_early and again.begun is not None:
            # The process that failed now counts this failure alone, or the next one does none.
            count = self._failures[key] = int(again.begun <= now)
            delay = _delay(count - 1) if count else 0
            earliest = again.begun + delay
            due = Instant(now + delay)
        self._failed[key], self._retried[key] = Instant(earliest), now
        if again is not None and earliest - _slack(delay) <= again.latest:
            return again.at
        return due

    def forget(self, key: Key) -> None:
        """Resets the failures of a key, so that its next failure has the shortest delay."""
        self._failures.pop(key, None)
        self._failed.pop(key, None)
        self._retried.pop(key, None)

    def settle(self, key: Key, problem: str | None, now: Instant) -> None:
        """Settles a key after its write: retries it after a problem, otherwise forgets failures."""
        if problem is not None:
            self.retry(key, now)
        else:
            self.forget(key)

    def drop(self, key: Key, until: Revision, now: Instant | None = None) -> None:
        """Removes a key that was added at or before revision `until`.

        With `now`, a key that becomes ready after that instant stays: an earlier look does not
        replace a later one.
        """
        for keys in (self._urgent, self._ready):
            if keys.get(key, until + 1) <= until:
                del keys[key]
                self._begun.discard(key)
        waiting = self._waiting.get(key)
        if waiting is not None and waiting[1] <= until and (now is None or waiting[0] <= now):
            del self._waiting[key]

    def clear(self) -> None:
        """Empties the queue, as a restart does."""
        self._ready.clear()
        self._urgent.clear()
        self._begun.clear()
        self._waiting.clear()
        self._heap.clear()
        self._failures.clear()
        self._failed.clear()
        self._retried.clear()
        self._ready_since.clear()

    def due(self) -> Instant | None:
        """The earliest instant at which a waiting key becomes ready."""
        while self._heap:
            due, key = self._heap[0]
            waiting = self._waiting.get(key)
            if waiting is not None and waiting[0] == due:
                return due
            heapq.heappop(self._heap)
        return None

    def _first(self) -> tuple[Key, Revision] | None:
        keys = self._urgent or self._ready
        return keys.popitem(last=False) if keys else None

    def _promote(self, now: Instant) -> None:
        while (due := self.due()) is not None and due <= now:
            _, key = heapq.heappop(self._heap)
            _, revision = self._waiting.pop(key)
            if key not in self._urgent:
                self._ready.setdefault(key, revision)


def _delay(failures: int) -> int:
    """The delay after a failure that so many others in a row came before."""
    return min(RETRY_FIRST_MICROS << min(failures, 30), RETRY_MAX_MICROS)


def _slack(delay: int) -> int:
    return min(delay // 2, REPORT_LAG_MICROS)
