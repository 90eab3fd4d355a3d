"""Ports of a process that can be killed at any of its calls.

A killed process does nothing any more: the call at which it dies never returns, nor does any call
after it. It dies before the call has reached the store, or after: then the effect is there and the
answer is lost. Cleaning up that the dying program would do reaches nobody.
"""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel

from app.domain.log import HistoryId

WRITES = frozenset({"append", "write"})
"""Calls that change the log or the view tables."""


class Life:
    """How long a process lives: so many calls of its ports, then death before or after the call.

    `number` is like no other life's. `only_writes`: only calls of `WRITES` are counted. A process
    without `calls` is not killed.
    """

    def __init__(
        self, number: int, draw: random.Random, *, calls: int | None, only_writes: bool = False
    ) -> None:
        self.number = number
        self.draw = draw
        self.calls = calls
        self.only_writes = only_writes
        self.count = 0
        self.is_dead = False
        self.died = anyio.Event()
        self.where = ""

    def die(self, where: str) -> None:
        self.where = where
        self.is_dead = True
        self.died.set()

    async def call(self, name: str, function: Any, *arguments: Any, **options: Any) -> Any:
        """One call of a port, which may be the last."""
        await self._live()
        for _ in range(self.draw.randrange(3)):
            await anyio.lowlevel.checkpoint()
        await self._live()
        is_counted = not self.only_writes or name in WRITES
        self.count += is_counted
        is_last = is_counted and self.calls is not None and self.count >= self.calls
        if is_last and self.draw.random() < 0.5:
            self.die(f"before {name}")
            await anyio.sleep_forever()
        found = await function(*arguments, **options)
        if is_last:
            self.die(f"after {name}")
        for _ in range(self.draw.randrange(3)):
            await anyio.lowlevel.checkpoint()
        await self._live()
        return found

    async def _live(self) -> None:
        if self.is_dead:
            await anyio.sleep_forever()


class Mortal:
    """An adapter whose asynchronous methods are calls of a life."""

    def __init__(self, life: Life, target: object) -> None:
        self._life = life
        self._target = target

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._target, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            return await self._life.call(name, function, *arguments, **options)

        return call


class MortalWakeUp:
    """Hints that come and get lost; a listener of a dead process waits for ever."""

    def __init__(self, life: Life, target: Any, lost: float) -> None:
        self._life = life
        self._target = target
        self._lost = lost

    @asynccontextmanager
    async def listen(self, history: HistoryId) -> AsyncIterator["_MortalListener"]:
        async with self._target.listen(history) as listener:
            yield _MortalListener(self._life, listener, self._lost)


class _MortalListener:
    def __init__(self, life: Life, target: Any, lost: float) -> None:
        self._life = life
        self._target = target
        self._lost = lost

    @property
    def named(self) -> Any:
        return self._target.named

    async def wait(self, timeout_seconds: float) -> bool:
        hinted = await self._life.call("wait", self._target.wait, timeout_seconds)
        if hinted and self._life.draw.random() < self._lost:
            return bool(await self._life.call("wait", self._target.wait, timeout_seconds))
        return bool(hinted)
