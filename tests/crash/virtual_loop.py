"""An event loop whose clock jumps: nothing waits for real time.

When nothing is ready the loop goes at once to the next timer. There is no input from outside, so
the speed of the machine changes nothing.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

from app.domain.values.timestamps import SECOND, Instant


class _NeverWaits(selectors.DefaultSelector):
    """Selects without waiting; the time that would have passed is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everybody waits for somebody else: the program is stuck")
        if timeout > 0:
            self.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Seconds since the loop began, as asyncio and anyio see them."""

    def __init__(self) -> None:
        self._virtual = _NeverWaits()
        super().__init__(self._virtual)
        # Two timers that are closer than this are one instant; the system's would be 1e-9.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._virtual.now


class LoopClock:
    """The Clock port over such a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, start: Instant) -> None:
        self._loop = loop
        self._start = start

    def now(self) -> Instant:
        return Instant(self._start + int(self._loop.time() * SECOND))

    def steady(self) -> int:
        return self.now()

    async def wait_until(self, instant: Instant) -> None:
        left = (instant - self.now()) / SECOND
        await asyncio.sleep(max(left, 0.0))  # waits: virtual time


def run(make: Coroutine[Any, Any, Any]) -> Any:
    """Run to the end on a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(make)
