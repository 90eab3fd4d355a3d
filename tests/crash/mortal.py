"""Ports of a process that can be killed at any of its calls.

A killed process does nothing more: the call at which it dies never returns, and neither does any
later call. It dies before the call reaches the store, or after it; then the effect is stored and
the answer is lost. Clean-up code of the dying process has no effect.
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
    """The life of a process: it dies before or after the last of `calls` calls of its ports.

    `number` is unique. With `only_writes`, only calls in `WRITES` count. A process without `calls`
    is not killed.
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
        """Calls a port; this may be the last call of the process."""
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
    """Wraps an adapter so that its asynchronous methods are calls of a life."""

    def __init__(self, life: Life, target: object) -> None:
        self._life = life
        self._target = target

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._target, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            return await self._life.call(name, function, *arguments, **options)

        return call


class MortalWakeUp:
    """Wraps a wake-up that loses some hints; a listener of a dead process waits for ever."""

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
