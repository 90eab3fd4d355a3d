"""Recorders inside `redra up`: each attached cluster is recorded and served at once.

A cluster that does not answer when the server starts is an error. Later, no failure of a recorder
ends the server: failures are reported, and the recorder starts again if that may help. A server
without attached clusters does not load the modules that read them.
"""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from app.bootstrap.recording.recording_request import Wanted
from app.bootstrap.stores import Store
from app.domain.errors import InputError, RedraError
from app.settings import Settings

if TYPE_CHECKING:
    from app.bootstrap.recording.recorders import Opened


class Attachments:
    """The attached clusters of one server: `open`, then `start`, and finally `stop`."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        wanted: Sequence[Wanted],
        note: Callable[[str], None],
    ) -> None:
        self._store = store
        self._settings = settings
        self._wanted = wanted
        self._note = note
        self._opened: list[tuple[Wanted, Opened]] = []
        self._stopped = anyio.Event()
        self._running = 0
        self._ended = anyio.Event()

    @property
    def names(self) -> tuple[str, ...]:
        """The histories that are recorded."""
        return tuple(wanted.history for wanted in self._wanted)

    async def open(self, stack: AsyncExitStack) -> None:
        """Connect to all clusters until the stack is left. Raises InputError."""
        if not self._wanted:
            return
        from app.bootstrap.recording import recorders

        for wanted in self._wanted:
            opened = await stack.enter_async_context(
                recorders.open_cluster(
                    self._store,
                    self._settings,
                    wanted,
                    note=partial(self._note_of, wanted.history),
                )
            )
            for problem in opened.denied.values():
                self._note(f"{wanted.history}: not recorded: {problem}")
            self._opened.append((wanted, opened))

    def start(self, tasks: TaskGroup, begun: Callable[[str], None]) -> None:
        """Start recording; `begun` is called with the name of each history that exists then."""
        for wanted, opened in self._opened:
            self._running += 1
            tasks.start_soon(self._run, wanted, opened, begun)

    async def stop(self) -> None:
        """End the recorders in order, in a bounded time."""
        self._stopped.set()
        with anyio.move_on_after(2 * self._settings.record_stop_seconds):
            while self._running:
                await self._ended.wait()

    def _note_of(self, name: str, text: str) -> None:
        self._note(f"{name}: {text}")

    async def _run(self, wanted: Wanted, opened: "Opened", begun: Callable[[str], None]) -> None:
        pause = 1.0
        try:
            while not self._stopped.is_set():
                problems: list[BaseException] = []
                try:
                    await self._record(wanted, opened, begun)
                except* RedraError as group:
                    problems = _leaves(group)
                for problem in problems:
                    self._note(f"{wanted.history}: not recorded: {problem}")
                if any(isinstance(problem, InputError) for problem in problems):
                    break
                with anyio.move_on_after(pause):
                    await self._stopped.wait()
                pause = min(pause * 2, self._settings.record_pause_seconds_max)
        finally:
            self._running -= 1
            self._ended.set()
            self._ended = anyio.Event()

    async def _record(self, wanted: Wanted, opened: "Opened", begun: Callable[[str], None]) -> None:
        from app.bootstrap.recording import recorders

        info = await recorders.begin(self._store, self._settings, wanted, opened, note=self._note)
        begun(info.name)
        await recorders.follow(
            self._store,
            self._settings,
            opened,
            info,
            started=partial(self._note, recorders.recording_text(info, opened)),
            note=self._note,
            stopped=self._stopped,
        )


def _leaves(group: BaseExceptionGroup[RedraError]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for problem in group.exceptions:
        leaves += _leaves(problem) if isinstance(problem, BaseExceptionGroup) else [problem]
    return leaves
