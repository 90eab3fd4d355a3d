"""The window in which the watches of all kinds become one order.

The kinds of a cluster share one counter of resource versions, and each watch shows its own kind in
that order. What arrives waits until every other watch is known to be beyond it, or until the
window's time is over; then it is given out by version. What still comes after a later version of
another kind is marked `LATE`. Kinds with another counter, and what a list shows, stand where they
arrived.
"""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import msgspec

from app.domain.log.records import Loss, Record, comparable_version, join_losses
from app.domain.values.timestamps import SECOND
from app.ports import Clock

SECONDS_MIN = 0.005
"""The shortest wait between two looks at the window's time."""

SLICES = 5
"""The window's time passes in as many steps at least; in each all watches are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBounds:
    """`seconds` is the longest wait for other kinds, `away_seconds` that for one whose watch has
    ended and is about to go on. `entries_max` may wait at once: then the watches are not read on.
    """

    seconds: float = 0.25
    away_seconds: float = 20.0
    entries_max: int = 10_000


@dataclass(slots=True, kw_only=True)
class WindowEntry:
    """Something that one kind shows: a record, or without one that the kind has come so far.

    `version` is the position from which the kind goes on once the entry is stored; `is_lost` says
    that there is none any more, `is_listed` that all that exists has been listed.
    """

    kind: str
    record: Record | None = None
    version: str = ""
    is_lost: bool = False
    is_listed: bool = False
    arrived: int = 0
    is_out: bool = False


@dataclass(order=True, slots=True)
class _Place:
    order: str
    number: int
    entry: WindowEntry = field(compare=False)
    is_ordered: bool = field(compare=False)


class Window:
    """Followers put entries in, one committer takes them out."""

    def __init__(self, clock: Clock, bounds: WindowBounds, given: str = "") -> None:
        """`given` is the newest version of the common counter that is in the log already."""
        self._clock = clock
        self._bounds = bounds
        self._micros = int(bounds.seconds * SECOND)
        self._slice = self._micros // SLICES
        self._age = 0
        self._ticked = clock.steady()
        self._heap: list[_Place] = []
        self._arrivals: deque[WindowEntry] = deque()
        self._reached: dict[str, str] = {}
        self._newest = ""
        self._given = comparable_version(given)
        self._away: dict[str, int] = {}
        self._began: dict[str, int] = {}
        self._read: dict[str, int] = {}
        self._number = 0
        self._stored = 0
        self._changed = anyio.Event()
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How many entries are in the window."""
        return len(self._heap)

    def follow(self, kind: str, version: str) -> None:
        """A watch of this kind begins, which has come to `version` of the common counter."""
        self._reached[kind] = comparable_version(version)
        self._began[kind] = self._tick()
        self._away.pop(kind, None)

    def wait_for(self, kind: str) -> None:
        """No watch of this kind runs now; another is about to begin."""
        self._read[kind] = self._read_until(kind)
        self._began.pop(kind, None)
        self._away.setdefault(kind, self._clock.steady())

    def leave(self, kind: str) -> None:
        """Wait for this kind no more."""
        for known in (self._reached, self._began, self._read, self._away):
            known.pop(kind, None)
        self._wake()

    async def put(self, entry: WindowEntry, *, version: str = "") -> None:
        """Take an entry in; `version` is its place in the common counter, empty: where it arrives.

        Waits while the window is full.
        """
        while len(self._heap) >= self._bounds.entries_max:
            await self._wait()
        order = comparable_version(version)
        if order:
            self._newest = max(self._newest, order)
            if entry.kind in self._reached:
                self._reached[entry.kind] = order
        self._number += 1
        entry.arrived = self._tick()
        place = _Place(order or self._newest, self._number, entry, bool(order))
        heapq.heappush(self._heap, place)
        self._arrivals.append(entry)
        self._wake()

    async def take(self, limit: int) -> list[WindowEntry]:
        """The next entries in order, once there are some; empty when the window is closed."""
        while not self._is_closed:
            entries = self._due(limit)
            if entries:
                return entries
            with anyio.move_on_after(self._seconds_left()):
                await self._wait()
        return []

    def stored(self, entries: Sequence[WindowEntry]) -> None:
        """What was taken is in the log."""
        self._stored += len(entries)
        self._wake()

    async def flush(self) -> None:
        """Return once everything that is in the window now is in the log."""
        number = self._number
        while self._stored < number:
            await self._wait()

    def close(self) -> None:
        """Give nothing out any more: what is here still is asked for again by the next recorder."""
        self._is_closed = True
        self._wake()

    def _due(self, limit: int) -> list[WindowEntry]:
        # Of a kind that was not followed yet nobody knows how far it has come.
        is_known = self._away.keys() <= self._reached.keys()
        floor = min(self._reached.values(), default="") if is_known else ""
        over = self._over()
        entries: list[WindowEntry] = []
        while self._heap and len(entries) < limit:
            while self._arrivals and self._arrivals[0].is_out:
                self._arrivals.popleft()
            is_over = bool(self._arrivals) and self._arrivals[0].arrived <= over
            if not is_over and self._heap[0].order > floor:
                break
            place = heapq.heappop(self._heap)
            place.entry.is_out = True
            self._note_order(place)
            entries.append(place.entry)
        return entries

    def _note_order(self, place: _Place) -> None:
        if not place.is_ordered:
            return
        record = place.entry.record
        if place.order < self._given and record is not None:
            losses = join_losses(record.losses, (Loss.LATE,))
            place.entry.record = msgspec.structs.replace(record, losses=losses)
        if place.order > self._given and record is not None:
            self._given = place.order

    def _over(self) -> int:
        """What arrived until then waits no more: all watches were read long enough after it."""
        steady, seconds = self._clock.steady(), self._bounds.away_seconds
        oldest = steady - seconds * SECOND
        for kind in [kind for kind, since in self._away.items() if since < oldest]:
            self.leave(kind)
        now = self._tick()
        kinds = self._began.keys() | self._away.keys()
        read = min((self._read_until(kind) for kind in kinds), default=now - self._micros)
        # Watches that end again and again before they are read hold nothing up for longer.
        return max(read, now - int(seconds * SECOND))

    def _read_until(self, kind: str) -> int:
        """What happened in this kind until then has been shown, if the window's time is enough."""
        over = self._age - self._micros
        is_read = kind in self._began and over >= self._began[kind]
        return over if is_read else self._read.get(kind, -1)

    def _seconds_left(self) -> float | None:
        """How long until something is due by time."""
        while self._arrivals and self._arrivals[0].is_out:
            self._arrivals.popleft()
        if not self._arrivals:
            return None
        return max(self._slice / SECOND, SECONDS_MIN)

    def _tick(self) -> int:
        """The time of the window in microseconds, which stands still while this process does.

        After a pause of the process all watches have something to read, so none is waited for too
        short a time.
        """
        now = self._clock.steady()
        self._age += min(now - self._ticked, self._slice)
        self._ticked = now
        return self._age

    async def _wait(self) -> None:
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
