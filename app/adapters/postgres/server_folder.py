"""The folder of an embedded server: who owns it, where it listens, what a crash left behind.

    folder/
      lock          held by whoever owns the server, and by every process of the server itself
      users         held by each other process that uses the server for a short time
      server.json   where it listens and who owns it, for other commands on the same folder
      server.log    what PostgreSQL writes
      data/         PostgreSQL's data directory (data.new while it is being made)
      run/          the socket (elsewhere when the path would be too long for one)

The lock is an open file description that the server's processes inherit. As long as one of them
lives, even an orphan after a crash, nobody else can start on the folder; as soon as the last is
gone, the folder is free, whatever the old pid file says.
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

from app.adapters.postgres.binaries import ServerIdentity
from app.domain.errors import InputError

DATABASE = "redra"
ROLE = "redra"

_SOCKET_NAME = ".s.PGSQL.5432"

_SOCKET_PATH_MAX = 100
"""Unix socket paths end at 107 bytes on Linux and 103 elsewhere."""

_POLL_SECONDS = 0.01


class FolderInUse(InputError):
    """Another process owns the folder, and has no server there that could be shared yet."""


def running_url(folder: Path) -> str | None:
    """The address of the server that runs on this folder now, started by any process; or None."""
    folder = folder.resolve()
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
    """The address of a database behind a socket, for asyncpg and SQLAlchemy."""
    return f"postgresql://{ROLE}@/{database}?host={quote(str(socket))}"


def take_lock(folder: Path, timeout_seconds: float) -> int:
    """The lock file, locked. Waits for a server that is ending, not for one that is owned."""
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
                f"the folder is in use by {owner or 'an old server that does not end'}",
                place=str(folder),
                cure="stop it first, or choose another folder with --data",
            ) from None
        return lock


def note_owner(folder: Path, socket: Path, *, stays: bool = False, is_new: bool = False) -> None:
    """Write down that this process owns the folder, and where its server listens.

    An owner that `stays` is no command that ends soon. A server that is new has no database yet, so
    that nobody can use it.
    """
    fresh = folder / "server.json.new"
    noted = {"owner": os.getpid(), "socket": str(socket), "stays": stays, "new": is_new}
    fresh.write_text(json.dumps(noted))
    fresh.replace(folder / "server.json")


def owner_stays(folder: Path) -> bool:
    """Whether the owner of the server has said that it stays."""
    return bool(_noted(folder.resolve()).get("stays"))


def use(folder: Path) -> int | None:
    """A file that keeps the owner from stopping the server at once, to be closed after the use.

    None when the server is being stopped.
    """
    try:
        users = os.open(folder.resolve() / "users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(users, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(users)
        return None
    return users


def wait_for_users(folder: Path, timeout_seconds: float) -> int | None:
    """Wait until no other process uses the server, for a bounded time.

    Nobody begins to until the file that is returned is closed. None where there is no such file.
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
    """The end of `note_owner`; removes a socket folder that is not inside."""
    (folder / "server.json").unlink(missing_ok=True)
    if socket.parent != folder:
        shutil.rmtree(socket, ignore_errors=True)


def make_socket_folder(folder: Path, identity: ServerIdentity) -> Path:
    """An empty folder for the socket that only its owner may enter, with a short path."""
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
    """We hold the lock, so no server of ours runs; a server started by hand is respected.

    Without this, a pid that now belongs to any other process would keep PostgreSQL from starting,
    which is common in containers.
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
    """The major version that made the data directory; None when there is none."""
    try:
        return int((data / "PG_VERSION").read_text().strip().split(".")[0])
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise InputError(
            "the folder does not look like PostgreSQL's",
            place=str(data),
            cure="choose another with --data",
        ) from problem


def is_ready(data: Path) -> bool:
    """PostgreSQL writes `ready` into its pid file once it takes connections."""
    lines = _pid_file(data)
    return len(lines) >= 8 and lines[7].strip() == "ready"


def postmaster(data: Path) -> int | None:
    """The process that the pid file names; None when there is no such file."""
    lines = _pid_file(data)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None


def tree(folder: Path) -> Iterator[Path]:
    """The folder and everything in it; links are not followed."""
    yield folder
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(place, name)


def _short_folder(folder: Path, owners: set[int]) -> Path:
    """A folder of ours in the system's temporary one; never one that somebody else prepared."""
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
