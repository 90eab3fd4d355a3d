"""Hints within one process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.adapters.hints import HintListener
from app.domain.log import HistoryId, Revision


class MemoryWakeUp:
    """A WakeUp. Pass its method `grown` to the MemoryLog."""

    def __init__(self) -> None:
        self._listeners: dict[HistoryId, set[HintListener]] = {}

    def grown(self, history: HistoryId, revision: Revision) -> None:
        """Wake the listeners of a history."""
        for listener in self._listeners.get(history, ()):
            listener.hint(revision)

    @asynccontextmanager
    async def listen(self, history: HistoryId) -> AsyncIterator[HintListener]:
        """Yield a listener for hints until the context ends."""
        listener = HintListener()
        listeners = self._listeners.setdefault(history, set())
        listeners.add(listener)
        try:
            yield listener
        finally:
            listeners.discard(listener)
