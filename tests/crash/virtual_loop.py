"""An event loop with virtual time: nothing waits for real time.

When no task is ready, the clock jumps to the next timer. There is no input from outside, so the
speed of the machine has no effect.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

from app.domain.values.timestamps import SECOND, Instant


class _NeverWaits(selectors.DefaultSelector):
    """A selector that does not wait; it adds the time that it would have waited to `now`."""

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
    """An event loop whose time is the virtual seconds since it began."""

    def __init__(self) -> None:
        self._virtual = _NeverWaits()
        super().__init__(self._virtual)
        # Two timers that are closer than this are one instant; the system's would be 1e-9.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._virtual.now


class LoopClock:
    """The Clock port over a virtual loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, start: Instant) -> None:
        self._loop = loop
        self._start = start

    def now(self) -> Instant:
        return Instant(self._start + int(self._loop.time() * SECOND))

    def wall(self) -> Instant:
        return self.now()

    def steady(self) -> int:
        return self.now()

    async def wait_until(self, instant: Instant) -> None:
        left = (instant - self.now()) / SECOND
        await asyncio.sleep(max(left, 0.0))  # waits: virtual time


def run(make: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine to its end on a new virtual loop."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(make)
