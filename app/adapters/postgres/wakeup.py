"""LISTEN and NOTIFY: one connection per process that receives hints about grown histories.

One task keeps the connection: it connects again when the connection ends, sends a keep-alive
statement now and then, and hints all listeners after a gap, because notifications in the gap are
lost. Listeners poll as well; a hint only shortens the wait.

    connected ──connection ends, no answer──▶ broken ──pause, connect──▶ connected, hint all
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import asyncpg
from anyio import CancelScope

from app.adapters.hints import HintListener
from app.adapters.postgres.names import APPLICATION_NAME, channel
from app.adapters.postgres.problems import Unreachable, translated
from app.domain.errors import LogError
from app.domain.log import HistoryId, Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUpBounds:
    """The time to wait for the server, and the pauses between attempts to reconnect."""

    connect_seconds: float = 10.0
    answer_seconds: float = 5.0
    keep_alive_seconds: float = 30.0
    pause_first_seconds: float = 0.1
    pause_max_seconds: float = 5.0
    close_seconds: float = 2.0


class PostgresWakeUp:
    """A WakeUp. Create it by `open_wake_up`."""

    def __init__(self, url: str, bounds: WakeUpBounds) -> None:
        self._url = url
        self._bounds = bounds
        self._listeners: dict[str, set[HintListener]] = {}
        self._connection: asyncpg.Connection | None = None
        self._broken = anyio.Event()
        self._talking = anyio.Lock()
        self.connections = 0

    @asynccontextmanager
    async def listen(self, history: HistoryId) -> AsyncIterator[HintListener]:
        """Yield a listener for hints until the context ends, also across lost connections."""
        name = channel(history)
        listener = HintListener()
        listeners = self._listeners.setdefault(name, set())
        listeners.add(listener)
        try:
            if len(listeners) == 1:
                await self._start_listening(name)
            yield listener
        finally:
            listeners.discard(listener)
            if not listeners:
                with CancelScope(shield=True), anyio.move_on_after(self._bounds.close_seconds):
                    await self._stop_listening(name)

    async def connect(self) -> None:
        """Connect and listen on the channels of all listeners. Raises LogUnavailable."""
        self._broken = anyio.Event()
        with translated():
            connection = await asyncpg.connect(
                self._url,
                timeout=self._bounds.connect_seconds,
                command_timeout=self._bounds.answer_seconds,
                server_settings={"application_name": f"{APPLICATION_NAME} listener"},
            )
            connection.add_termination_listener(self._note_end)
            self._connection = connection
            self.connections += 1
            for name in self._listeners:
                await connection.add_listener(name, self._note_hint)

    async def keep(self) -> None:
        """Keep the connection alive until cancelled."""
        try:
            while True:
                with anyio.move_on_after(self._bounds.keep_alive_seconds):
                    await self._broken.wait()
                if not self._broken.is_set():
                    await self._ask_for_life()
                if self._broken.is_set():
                    await self._connect_again()
        finally:
            with CancelScope(shield=True):
                await self._close()

    async def _connect_again(self) -> None:
        pause = self._bounds.pause_first_seconds
        while True:
            await self._close()
            try:
                async with self._talking:
                    await self.connect()
            except LogError:
                # The log reports to callers that the database is away; here the task only waits.
                await anyio.sleep(pause)
                pause = min(pause * 2, self._bounds.pause_max_seconds)
                continue
            self._hint_all()
            return

    async def _ask_for_life(self) -> None:
        async with self._talking:
            if self._connection is not None:
                try:
                    await self._connection.execute("SELECT 1")
                except Unreachable:
                    self._broken.set()

    async def _start_listening(self, name: str) -> None:
        """Send LISTEN before the subscription begins; a broken connection does so on reconnect."""
        async with self._talking:
            if self._connection is not None and not self._broken.is_set():
                try:
                    await self._connection.add_listener(name, self._note_hint)
                except Unreachable:
                    self._broken.set()

    async def _stop_listening(self, name: str) -> None:
        async with self._talking:
            if self._listeners.get(name):
                return
            self._listeners.pop(name, None)
            if self._connection is not None and not self._broken.is_set():
                try:
                    await self._connection.remove_listener(name, self._note_hint)
                except Unreachable:
                    self._broken.set()

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.remove_termination_listener(self._note_end)
            with suppress(*Unreachable):
                await connection.close(timeout=self._bounds.close_seconds)

    def _hint_all(self) -> None:
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.hint()

    def _note_hint(self, connection: object, pid: int, name: str, payload: object) -> None:
        # A notification by another program names no revision, but is still a hint.
        revision = Revision(int(str(payload)) if _names_revision(payload) else 0)
        for listener in self._listeners.get(name, ()):
            listener.hint(revision)

    def _note_end(self, connection: object) -> None:
        if connection is self._connection:
            self._broken.set()


def _names_revision(payload: object) -> bool:
    """Whether the payload is the decimal number of a revision: the column has at most 19 digits."""
    return (
        isinstance(payload, str) and len(payload) < 20 and payload.isascii() and payload.isdigit()
    )


@asynccontextmanager
async def open_wake_up(
    url: str, bounds: WakeUpBounds = WakeUpBounds()
) -> AsyncIterator[PostgresWakeUp]:
    """Connect, keep the connection while inside, close it on leaving. Raises LogUnavailable."""
    wake_up = PostgresWakeUp(url, bounds)
    await wake_up.connect()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wake_up.keep)
        try:
            yield wake_up
        finally:
            tasks.cancel_scope.cancel()
