"""A clock that tests advance; nothing waits for time that passes."""

import heapq

import anyio

from app.domain.values.timestamps import Instant


class VirtualClock:
    """A clock that stands still until it is advanced, and then wakes its waiters."""

    def __init__(self, start: Instant = Instant(0)) -> None:
        self._now = start
        self._number = 0
        self._waiting: list[tuple[Instant, int, anyio.Event]] = []

    def now(self) -> Instant:
        """The instant to which the clock was last advanced."""
        return self._now

    def wall(self) -> Instant:
        """The virtual time, which nobody sets back."""
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
