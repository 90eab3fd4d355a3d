"""The clocks, the only source of the present time: the system's clock and a virtual clock."""

import heapq
import time

import anyio

from app.domain.values.timestamps import SECOND, Instant


class SystemClock:
    """Wall-clock time that never goes backwards; when set back, it continues from its last time."""

    SLICE_SECONDS = 60.0
    """Seconds between looks at the clock in a longer wait; wall-clock time may be adjusted."""

    def __init__(self) -> None:
        self._last = Instant(0)
        self._ticks = self.steady()

    def now(self) -> Instant:
        """The present instant; after the clock was set back, the last one plus the elapsed time."""
        # The wall clock is read first: a pause between the readings must not put us ahead of it.
        wall = time.time_ns() // 1_000
        ticks = self.steady()
        self._last = Instant(max(wall, self._last + ticks - self._ticks))
        self._ticks = ticks
        return self._last

    def steady(self) -> int:
        """Microseconds since the machine started, from a clock that cannot be set."""
        return time.monotonic_ns() // 1_000

    async def wait_until(self, instant: Instant) -> None:
        """Return at or after `instant`."""
        while (left := instant - time.time_ns() // 1_000) > 0:  # noqa: ASYNC110 (time, not an event)
            await anyio.sleep(min(left / SECOND, self.SLICE_SECONDS))


class VirtualClock:
    """A clock that stands still until it is advanced; for replays, simulations and tests."""

    def __init__(self, start: Instant = Instant(0)) -> None:
        self._now = start
        self._number = 0
        self._waiting: list[tuple[Instant, int, anyio.Event]] = []

    def now(self) -> Instant:
        """The instant to which the clock was last advanced."""
        return self._now

    def steady(self) -> int:
        """The virtual time, which is also the steady clock."""
        return self._now

    def advance_to(self, instant: Instant) -> None:
        """Move forward and wake the waiters whose instant has come; never moves backwards."""
        self._now = Instant(max(self._now, instant))
        while self._waiting and self._waiting[0][0] <= self._now:
            heapq.heappop(self._waiting)[2].set()

    def due(self) -> Instant | None:
        """The earliest instant that a task waits for; None when no task waits."""
        return self._waiting[0][0] if self._waiting else None

    def jump(self) -> bool:
        """Advance to the next instant that a task waits for; False when no task waits."""
        instant = self.due()
        if instant is None:
            return False
        self.advance_to(instant)
        return True

    async def wait_until(self, instant: Instant) -> None:
        """Return when the clock has been advanced to `instant` or beyond."""
        if instant <= self._now:
            return
        self._number += 1
        reached = anyio.Event()
        entry = (instant, self._number, reached)
        heapq.heappush(self._waiting, entry)
        try:
            await reached.wait()
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)
                heapq.heapify(self._waiting)
