"""Hints within one process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from app.domain.log import HistoryId


class MemoryListener:
    """One subscription; several hints between two waits count as one."""

    def __init__(self) -> None:
        self._hinted = anyio.Event()

    def hint(self) -> None:
        """Say that the history grew."""
        self._hinted.set()

    async def wait(self, timeout_seconds: float) -> bool:
        """True when a hint came since the last call, False when the time was up."""
        with anyio.move_on_after(timeout_seconds):
            await self._hinted.wait()
        hinted = self._hinted.is_set()
        if hinted:
            self._hinted = anyio.Event()
        return hinted


class MemoryWakeUp:
    """A WakeUp. Pass `grown` to the MemoryLog whose histories are listened to."""

    def __init__(self) -> None:
        self._listeners: dict[HistoryId, set[MemoryListener]] = {}

    def grown(self, history: HistoryId) -> None:
        """Wake the listeners of a history."""
        for listener in self._listeners.get(history, ()):
            listener.hint()

    @asynccontextmanager
    async def listen(self, history: HistoryId) -> AsyncIterator[MemoryListener]:
        """Hints from the moment of entering until leaving."""
        listener = MemoryListener()
        listeners = self._listeners.setdefault(history, set())
        listeners.add(listener)
        try:
            yield listener
        finally:
            listeners.discard(listener)
