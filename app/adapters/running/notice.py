"""The notice of a running server in its data folder, for commands on the same folder.

    folder/serving.json   address, kubeconfig and database of the server; locked while it runs

The lock decides: it ends with the process in any case, and the content of an unlocked file is
ignored. Another user may own the folder, so files that belong to other users, or that other users
may write, are not trusted.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.domain.errors import InputError

FILE = "serving.json"
_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The address of a server and the kubeconfig with its credentials."""

    url: str
    kubeconfig: Path


class Place:
    """The place of the notice in a data folder, as one server has it.

    `is_taken` means that another server runs on the folder. The server that has the place also
    has the folder's `kubeconfig`, so that both name the same server.
    """

    def __init__(self, file: int | None, *, is_taken: bool) -> None:
        self._file = file
        self.is_taken = is_taken

    def post(self, notice: Notice, *, database: str) -> None:
        """Post the notice of the server; `database` is the external one, if any.

        A second server on the same folder posts nothing: the first one answers.
        """
        if self._file is None:
            return
        tree = {
            "url": notice.url,
            "kubeconfig": str(notice.kubeconfig.resolve()),
            "database": _mark(database),
        }
        # On a full disk the notice is empty or cut, which is the same as none.
        with contextlib.suppress(OSError):
            os.pwrite(self._file, json.dumps(tree).encode(), 0)


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[Place]:
    """Claim the place of the notice for a server that starts, until the block ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        # Without a notice, commands open the data themselves.
        yield Place(None, is_taken=False)
        return
    try:
        if not _locks(folder, file):
            yield Place(None, is_taken=True)
            return
        os.ftruncate(file, 0)  # The notice of a server that was killed is not ours.
        try:
            yield Place(file, is_taken=False)
        finally:
            os.ftruncate(file, 0)
    finally:
        os.close(file)


def _locks(folder: Path, file: int) -> bool:
    """Lock the file of the notice; False when another server has locked it.

    A command that reads the notice shares the lock for a moment, and is waited for. Servers that
    start do this one after the other.
    """
    starting = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(starting, fcntl.LOCK_EX)
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        fcntl.flock(file, fcntl.LOCK_EX)
        return True
    finally:
        os.close(starting)


def read(folder: Path, *, database: str) -> Notice | None:
    """The notice of the server that runs on the folder with this database; None without one.

    Raises InputError for a notice that another user may have written.
    """
    place = folder / FILE
    try:
        # O_NONBLOCK: opening must not block, whatever kind of file it is.
        file = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        tree = json.loads(os.pread(file, 65_536, 0))
        if tree["database"] != _mark(database):
            return None
        _check_owner(file, place)
        kubeconfig = Path(tree["kubeconfig"]).resolve()
        if not kubeconfig.is_relative_to(folder.resolve()):
            raise InputError("it names a kubeconfig outside the folder", place=str(place))
        return Notice(url=str(tree["url"]), kubeconfig=kubeconfig)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        os.close(file)


def read_own(path: Path) -> bytes:
    """The content of a file that no other user can write. Raises InputError, OSError."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        _check_owner(file, path)
        return os.pread(file, _BYTES_MAX, 0)
    finally:
        os.close(file)


def _check_owner(file: int, place: Path) -> None:
    about = os.fstat(file)
    if not stat.S_ISREG(about.st_mode):
        raise InputError("it is not a file", place=str(place))
    if about.st_uid not in (os.geteuid(), 0):
        raise InputError("it belongs to another user and is not trusted", place=str(place))
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InputError("other users may write it, so it is not trusted", place=str(place))


def _mark(database: str) -> str:
    """A digest that identifies a database without revealing its password."""
    return hashlib.sha256(database.encode()).hexdigest() if database else ""
