"""The embedded server of a data folder, run on by a process that shares it when its owner ends.

Several servers may use one data folder; the first of them runs PostgreSQL. When that one ends, by
order or not, another takes the folder's lock, runs PostgreSQL at the same address and is the owner.
"""

from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
from anyio import CancelScope

from app.adapters.postgres.server_folder import FolderInUse, running_url
from app.domain.errors import InputError, LogUnavailable

_POLL_SECONDS = 1.0
"""The pause between looks at whether the owner is gone; nobody reports its end."""


class SharedServer:
    """The server that another process runs at `url`, and this one after it."""

    def __init__(self, folder: Path, url: str, programs: Path | None, users_seconds: float) -> None:
        from app.adapters.postgres.server import EmbeddedServer, ServerBounds

        self.url = url
        self._folder = folder
        bounds = ServerBounds(users_seconds=users_seconds)
        self._own = EmbeddedServer(folder, programs=programs, bounds=bounds, stays=True)
        self._is_leaving = False

    def leave(self) -> None:
        """Record that this process stops, if it has become the owner; it does not become one."""
        self._is_leaving = True
        self._own.leave()

    async def stop(self) -> None:
        """Stop the server, if this process has become the owner."""
        self._is_leaving = True
        with CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._own.stop)

    async def inherit(self, note: Callable[[str], None]) -> None:
        """Run the server once its owner is gone; `note` is called then."""
        said = ""
        while not self._is_leaving:
            await anyio.sleep(_POLL_SECONDS)
            if running_url(self._folder) is not None:
                continue
            try:
                with CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self._own.start)
            except FolderInUse:
                # Its owner starts or stops its server.
                continue
            except (InputError, LogUnavailable) as problem:
                if said != str(problem):
                    said = str(problem)
                    note(f"the database of the folder cannot be run on: {said}")
                continue
            if self._own.url == self.url:
                note("the process that ran the database has ended; this one runs it now")
            else:
                await anyio.to_thread.run_sync(self._own.stop)
                note("the database of the folder has ended; start this server again")
            return
