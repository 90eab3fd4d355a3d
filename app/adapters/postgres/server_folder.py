"""The folder of an embedded server: its owner, its socket, and the cleanup after a crash.

    folder/
      lock          held by the owner of the server, and by every process of the server itself
      users         held by each other process that uses the server for a short time
      server.json   the socket and the owner, for other commands on the same folder
      server.log    the log of PostgreSQL
      data/         PostgreSQL's data directory (data.new while it is being made)
      run/          the socket (elsewhere when the path would be too long for one)

The lock is an open file description that the server's processes inherit. While one of them lives,
even an orphan after a crash, no other process can start a server on the folder. When the last one
has ended, the folder is free, whatever the old pid file says.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from app.adapters import whole_files
from app.adapters.postgres.binaries import ServerIdentity
from app.domain.errors import InputError

DATABASE = "redra"
ROLE = "redra"

_SOCKET_NAME = ".s.PGSQL.5432"

_SOCKET_PATH_MAX = 100
"""Unix socket paths end at 107 bytes on Linux and 103 elsewhere."""

_POLL_SECONDS = 0.01


class FolderInUse(InputError):
    """Another process owns the folder, and its server cannot be shared yet."""


def running_url(folder: Path) -> str | None:
    """The address of the server that runs on this folder, started by any process; or None."""
    folder = whole_files.real(folder)
    try:
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        noted = _noted(folder)
        socket = noted.get("socket")
        if isinstance(socket, str) and not noted.get("new") and is_ready(folder / "data"):
            return url(Path(socket))
        return None
    finally:
        os.close(lock)
    return None


def url(socket: Path, database: str = DATABASE) -> str:
    """The address of a database at a socket, for asyncpg and SQLAlchemy."""
    return f"postgresql://{ROLE}@/{database}?host={quote(str(socket))}"


def take_lock(folder: Path, timeout_seconds: float) -> int:
    """Lock the lock file and return it; waits for a server that is ending, not for an owned one."""
    try:
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise InputError(
            f"the folder cannot be written: {problem.strerror}",
            place=str(folder),
            cure="choose another with --data",
        ) from problem
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = _living_owner(folder)
            if owner is None and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                continue
            os.close(lock)
            raise FolderInUse(
                f"the folder is in use by {owner or 'an old server that does not stop'}",
                place=str(folder),
                cure="stop it first, or choose another folder with --data",
            ) from None
        return lock


def note_owner(folder: Path, socket: Path, *, stays: bool = False, is_new: bool = False) -> None:
    """Record that this process owns the folder, and the socket of its server.

    `stays` means that the owner is not a command that ends soon. `is_new` means that the server has
    no database yet, so that no other process can use it.
    """
    fresh = folder / "server.json.new"
    noted = {"owner": os.getpid(), "socket": str(socket), "stays": stays, "new": is_new}
    fresh.write_text(json.dumps(noted))
    fresh.replace(folder / "server.json")


def owner_stays(folder: Path) -> bool:
    """Whether the owner of the server has recorded that it stays."""
    return bool(_noted(whole_files.real(folder)).get("stays"))


def use(folder: Path) -> int | None:
    """Open a file that delays the owner's stop of the server; the caller closes it after use.

    None when the server is being stopped.
    """
    try:
        users = os.open(
            whole_files.real(folder) / "users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
    except OSError:
        return None
    try:
        fcntl.flock(users, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(users)
        return None
    return users


def wait_for_users(folder: Path, timeout_seconds: float) -> int | None:
    """Wait until no other process uses the server, at most `timeout_seconds`.

    After a wait that succeeded no process can begin to use it until the returned file is closed.
    None when the file cannot be opened.
    """
    try:
        users = os.open(folder / "users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                continue
        return users


def forget_owner(folder: Path, socket: Path) -> None:
    """Undo `note_owner`; remove a socket folder that is outside of the folder."""
    (folder / "server.json").unlink(missing_ok=True)
    if socket.parent != folder:
        shutil.rmtree(socket, ignore_errors=True)


def make_socket_folder(folder: Path, identity: ServerIdentity) -> Path:
    """Make an empty folder for the socket that only its owner can enter, with a short path."""
    near = folder / "run"
    if len(os.fsencode(near / _SOCKET_NAME)) <= _SOCKET_PATH_MAX:
        place = near
        place.mkdir(mode=0o700, exist_ok=True)
    else:
        place = _short_folder(folder, {os.geteuid(), identity.owner[0]})
    if os.geteuid() == 0:
        os.chown(place, *identity.owner)
    for left in place.glob(_SOCKET_NAME + "*"):
        left.unlink()
    return place


def remove_stale_pid_file(data: Path) -> None:
    """Remove a pid file that a crash left behind.

    The caller holds the lock, so no server of redra runs. Raises InputError when a server that was
    started by hand runs on the folder. Without the removal, PostgreSQL would not start when another
    process has the pid, which is common in containers.
    """
    pid = postmaster(data)
    if pid is None:
        return
    try:
        is_running = Path(f"/proc/{pid}/cwd").resolve(strict=True) == data
    except OSError:
        is_running = False
    if is_running:
        raise InputError(
            f"a PostgreSQL server (process {pid}) that redra did not start runs on the folder",
            place=str(data),
            cure="stop it first",
        )
    if Path("/proc/self").exists():
        (data / "postmaster.pid").unlink(missing_ok=True)


def data_version(data: Path) -> int | None:
    """The major version that made the data directory; None when there is no data directory."""
    try:
        return int((data / "PG_VERSION").read_text().strip().split(".")[0])
    except FileNotFoundError:
        return None
    except PermissionError as problem:
        raise InputError(
            "the folder may not be read by this user",
            place=str(data),
            cure="run redra as the user who made it, or choose another with --data",
        ) from problem
    except (OSError, ValueError) as problem:
        raise InputError(
            "the folder does not look like PostgreSQL's",
            place=str(data),
            cure="choose another with --data",
        ) from problem


def is_ready(data: Path) -> bool:
    """Whether PostgreSQL takes connections; it then writes `ready` into its pid file."""
    lines = _pid_file(data)
    return len(lines) >= 8 and lines[7].strip() == "ready"


def postmaster(data: Path) -> int | None:
    """The process in the pid file; None when there is no pid file."""
    lines = _pid_file(data)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None


def tree(folder: Path) -> Iterator[Path]:
    """The folder and everything in it; does not follow links."""
    yield folder
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(place, name)


def _short_folder(folder: Path, owners: set[int]) -> Path:
    """A folder of ours in the system's temporary folder; never one that another user made."""
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    place = Path(tempfile.gettempdir()) / f"redra-{os.geteuid()}-{digest}"
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    status = place.lstat()
    if stat.S_ISDIR(status.st_mode) and status.st_uid in owners and not status.st_mode & 0o077:
        return place
    return Path(tempfile.mkdtemp(prefix="redra-"))


def _noted(folder: Path) -> dict[str, object]:
    try:
        noted = json.loads((folder / "server.json").read_text())
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _living_owner(folder: Path) -> str | None:
    owner = _noted(folder).get("owner")
    if not isinstance(owner, int):
        return None
    try:
        os.kill(owner, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return f"process {owner}"


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return []
