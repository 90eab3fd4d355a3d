"""Private folders for files that live as long as a process works on them.

A folder is locked while it is used, by one process or by several that share it. A process that is
killed leaves its folder behind, and the lock ends with it: the next process that makes such a
folder, and a server that starts, removes those that nobody holds.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

PREFIX = "redra-held-"
"""The beginning of the name of a locked folder in the system's temporary folder."""

_NEW = "redra-new-"


class PrivateFolder:
    """A new folder that only this user can read; leaving the context removes it.

    Raises OSError when it cannot be made.
    """

    def __init__(self) -> None:
        remove_left()
        made = Path(tempfile.mkdtemp(prefix=_NEW))
        self._lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        # Only a locked folder has the name by which others look for folders that nobody holds.
        self.path = made.rename(made.with_name(PREFIX + made.name.removeprefix(_NEW)))

    @property
    def name(self) -> str:
        """The path as text."""
        return str(self.path)

    def cleanup(self) -> None:
        """Remove the folder; nothing happens the second time."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> str:
        return self.name

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cleanup()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the folder of another process, which may end before the context is left."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def remove_left() -> None:
    """Remove the folders of this user that no process holds."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            _remove_if_free(folder)


def _remove_if_free(folder: Path) -> None:
    """Remove the folder if it is ours and nobody holds it. Raises OSError otherwise."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
