"""The window that brings the watches of all kinds into one order.

The kinds of a cluster share one counter of resource versions, and each watch shows its own kind in
that order. An entry waits until all other watches are known to be beyond its version, or until the
window's time is over. Then it is taken out by version. An entry that arrives after a later version
of another kind was taken out is marked `LATE`. Entries of kinds with another counter, and of lists,
are ordered by arrival.
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
"""The shortest wait between two checks of the window's time."""

SLICES = 5
"""The least number of steps in which the window's time passes; all watches are read in each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBounds:
    """Bounds of the window.

    `seconds` is the longest wait for other kinds. `away_seconds` is the longest wait for a kind
    whose watch has ended and is about to continue. At most `entries_max` entries may wait at once;
    then reading from the watches pauses.
    """

    seconds: float = 0.25
    away_seconds: float = 20.0
    entries_max: int = 10_000


@dataclass(slots=True, kw_only=True)
class WindowEntry:
    """An entry of one kind: a record, or only the version that the kind has reached.

    `version` is the position from which the kind continues once the entry is stored. `is_lost`
    means that the kind has no position any more, `is_listed` that all existing objects are listed.
    `is_restored` means that versions begin anew below those of before.
    """

    kind: str
    record: Record | None = None
    version: str = ""
    is_lost: bool = False
    is_listed: bool = False
    is_restored: bool = False
    arrived: int = 0
    is_out: bool = False


@dataclass(order=True, slots=True)
class _Queued:
    order: str
    number: int
    entry: WindowEntry = field(compare=False)
    is_ordered: bool = field(compare=False)


class Window:
    """A buffer into which followers put entries and from which one committer takes them."""

    def __init__(self, clock: Clock, bounds: WindowBounds, given: str = "") -> None:
        """`given` is the newest version of the common counter that is already in the log."""
        self._clock = clock
        self._bounds = bounds
        self._micros = int(bounds.seconds * SECOND)
        self._slice = self._micros // SLICES
        self._age = 0
        self._ticked = clock.steady()
        self._heap: list[_Queued] = []
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
        """The number of entries in the window."""
        return len(self._heap)

    def follow(self, kind: str, version: str) -> None:
        """Note that a watch of this kind begins, at `version` of the common counter."""
        self._reached[kind] = comparable_version(version)
        self._began[kind] = self._tick()
        self._away.pop(kind, None)

    def wait_for(self, kind: str) -> None:
        """Note that no watch of this kind runs at present; another is about to begin."""
        self._read[kind] = self._read_until(kind)
        self._began.pop(kind, None)
        self._away.setdefault(kind, self._clock.steady())

    def leave(self, kind: str) -> None:
        """Stop waiting for this kind."""
        for known in (self._reached, self._began, self._read, self._away):
            known.pop(kind, None)
        self._wake()

    async def put(self, entry: WindowEntry, *, version: str = "") -> None:
        """Add an entry at its `version` of the common counter, or by arrival when that is empty.

        Waits while the window is full.
        """
        while len(self._heap) >= self._bounds.entries_max:
            await self._wait()
        if entry.is_restored:
            self._newest = self._given = ""
        order = comparable_version(version)
        if order:
            self._newest = max(self._newest, order)
            if entry.kind in self._reached:
                self._reached[entry.kind] = order
        self._number += 1
        entry.arrived = self._tick()
        queued = _Queued(order or self._newest, self._number, entry, bool(order))
        heapq.heappush(self._heap, queued)
        self._arrivals.append(entry)
        self._wake()

    async def take(self, limit: int) -> list[WindowEntry]:
        """The next entries in order, as soon as there are any; empty when the window is closed."""
        while not self._is_closed:
            entries = self._due(limit)
            if entries:
                return entries
            with anyio.move_on_after(self._seconds_left()):
                await self._wait()
        return []

    def stored(self, entries: Sequence[WindowEntry]) -> None:
        """Note that entries that were taken are in the log."""
        self._stored += len(entries)
        self._wake()

    async def flush(self) -> None:
        """Wait until everything that is in the window now is in the log."""
        number = self._number
        while self._stored < number:
            await self._wait()

    def close(self) -> None:
        """Stop taking out entries: the next recorder requests the remaining changes again."""
        self._is_closed = True
        self._wake()

    def _due(self, limit: int) -> list[WindowEntry]:
        # For a kind that was not followed yet, the version that it has reached is unknown.
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
            queued = heapq.heappop(self._heap)
            queued.entry.is_out = True
            self._note_order(queued)
            entries.append(queued.entry)
        return entries

    def _note_order(self, queued: _Queued) -> None:
        if not queued.is_ordered:
            return
        record = queued.entry.record
        if queued.order < self._given and record is not None:
            losses = join_losses(record.losses, (Loss.LATE,))
            queued.entry.record = msgspec.structs.replace(record, losses=losses)
        if queued.order > self._given and record is not None:
            self._given = queued.order

    def _over(self) -> int:
        """The time up to which entries need not wait: all watches have been read well after it."""
        steady, seconds = self._clock.steady(), self._bounds.away_seconds
        oldest = steady - seconds * SECOND
        for kind in [kind for kind, since in self._away.items() if since < oldest]:
            self.leave(kind)
        now = self._tick()
        kinds = self._began.keys() | self._away.keys()
        read = min((self._read_until(kind) for kind in kinds), default=now - self._micros)
        # Watches that end repeatedly before they are read delay the others no longer than this.
        return max(read, now - int(seconds * SECOND))

    def _read_until(self, kind: str) -> int:
        """The time up to which this kind's changes have been shown, given the window's time."""
        over = self._age - self._micros
        is_read = kind in self._began and over >= self._began[kind]
        return over if is_read else self._read.get(kind, -1)

    def _seconds_left(self) -> float | None:
        """Seconds until an entry is due by time; None when no entry waits."""
        while self._arrivals and self._arrivals[0].is_out:
            self._arrivals.popleft()
        if not self._arrivals:
            return None
        return max(self._slice / SECOND, SECONDS_MIN)

    def _tick(self) -> int:
        """The time of the window in microseconds, which stops while this process is stopped.

        After a pause of the process all watches have changes to read, so the wait for each is long
        enough.
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
