"""The system's clock, the only source of the present time."""

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

    def wall(self) -> Instant:
        """The time of the system, which may have been set back."""
        return Instant(time.time_ns() // 1_000)

    def steady(self) -> int:
        """Microseconds since the machine started, from a clock that cannot be set."""
        return time.monotonic_ns() // 1_000

    async def wait_until(self, instant: Instant) -> None:
        """Return at or after `instant`."""
        while (left := instant - self.now()) > 0:  # noqa: ASYNC110 (time, not an event)
            await anyio.sleep(min(left / SECOND, self.SLICE_SECONDS))
