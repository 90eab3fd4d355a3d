"""The guardian of a PostgreSQL server, which keeps it alive for as long as its owner lives.

The guardian runs as a separate program that needs only the standard library (`python -I -S -B
guardian.py OPTIONS`, where OPTIONS is JSON). Its standard input is a pipe whose other end only the
owner holds; when the pipe ends, the guardian stops the server. When the guardian dies, the kernel
sends the server a signal. So the server stops and cleans up, whichever process is killed.

    owner ──pipe──▶ guardian ──parent death signal──▶ postgres
                       │ a byte through the pipe means: the server has been ready; from now on
                       ▼ start it again whenever it ends, after a pause that grows

PostgreSQL refuses to run as root. `identity` selects the user of the guardian, and so of the
server: `same`; `namespace`, a user namespace in which root appears as the ordinary user
`uid`:`gid`, while files keep belonging to root; or `user`, after setuid to `uid`:`gid`.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

CANNOT_BECOME = 91
"""Exit code: the system refused the identity."""

CANNOT_RUN = 92
"""Exit code: the program or the folder cannot be reached under this identity."""

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 1.0

_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
"""The signals that the guardian handles, and its child does not."""


class GuardianOptions:
    """The command and how to run it, from the JSON argument."""

    def __init__(self, text: str) -> None:
        arguments = json.loads(text)
        self.command: list[str] = arguments["command"]
        self.folder: str = arguments["folder"]
        self.identity: str = arguments["identity"]
        self.uid: int = arguments["uid"]
        self.gid: int = arguments["gid"]
        self.guard: bool = arguments["guard"]
        self.pause_first_seconds: float = arguments["pause_first_seconds"]
        self.pause_max_seconds: float = arguments["pause_max_seconds"]
        self.grace_seconds: float = arguments["grace_seconds"]
        self.owner: int = arguments["owner"]


def main(arguments: Sequence[str]) -> int:
    """Become the identity, then run the command once, or guard it until the owner stops it."""
    options = GuardianOptions(arguments[1])
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        become(options, libc)
    except OSError as problem:
        print(f"cannot become {options.identity}: {problem}", file=sys.stderr)  # noqa: T201
        return CANNOT_BECOME
    try:
        os.chdir(options.folder)
    except OSError as problem:
        print(f"cannot enter {options.folder}: {problem}", file=sys.stderr)  # noqa: T201
        return CANNOT_RUN
    if not options.guard:
        return wait_for(spawn(options, libc))
    return Guard(options, libc).run()


def become(options: GuardianOptions, libc: ctypes.CDLL) -> None:
    """Take on the identity permanently. Raises OSError when the system refuses."""
    if options.identity == "user":
        os.setgroups([])
        os.setgid(options.gid)
        os.setuid(options.uid)
    elif options.identity == "namespace":
        uid, gid = os.geteuid(), os.getegid()
        if libc.unshare(_CLONE_NEWUSER) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/gid_map", f"{options.gid} {gid} 1")
        _write("/proc/self/uid_map", f"{options.uid} {uid} 1")


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def spawn(options: GuardianOptions, libc: ctypes.CDLL) -> int:
    """Start the command as a child that gets a signal when this process dies; returns its pid."""
    guardian = os.getpid()
    # In the child the guardian's handlers would take a signal to stop, and it would be lost.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    try:
        child = os.fork()
        if child == 0:
            _exec(options, libc, guardian)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child


def _exec(options: GuardianOptions, libc: ctypes.CDLL, guardian: int) -> NoReturn:
    try:
        signal.set_wakeup_fd(-1)
        for number in _HANDLED:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
        if hasattr(libc, "prctl"):
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != guardian:
            os._exit(0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execv(options.command[0], options.command)  # noqa: S606 (no shell is wanted)
    except BaseException as problem:
        print(f"cannot run {options.command[0]}: {problem}", file=sys.stderr, flush=True)  # noqa: T201
    os._exit(CANNOT_RUN)


def wait_for(child: int) -> int:
    """The exit code of a child; 128 + number for a signal."""
    return exit_code(os.waitpid(child, 0)[1])


def exit_code(status: int) -> int:
    """The exit code in a wait status; 128 + number for a signal."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


class Guard:
    """The loop: waits for a message or the end of the owner, the end of the child, or a second."""

    def __init__(self, options: GuardianOptions, libc: ctypes.CDLL) -> None:
        self._options = options
        self._libc = libc
        self._child = 0
        self._code = 0
        self._stopping = False
        self._keeping = False
        self._wakes, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def run(self) -> int:
        """Guard until stopped, or until the server ends before it was ready."""
        signal.set_wakeup_fd(self._wake)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note_stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        pause = self._options.pause_first_seconds
        while True:
            start = time.monotonic()
            self._child = spawn(self._options, self._libc)
            self._watch()
            if self._stopping or not self._keeping:
                return self._code
            if time.monotonic() - start > self._options.pause_max_seconds:
                pause = self._options.pause_first_seconds
            if self._pause(pause):
                return self._code
            pause = min(pause * 2, self._options.pause_max_seconds)

    def _watch(self) -> None:
        """Return when the child has ended; end the child when a stop is requested."""
        while not self._reap():
            if self._wait_for_stop(_POLL_SECONDS):
                self._end_child()
                return

    def _end_child(self) -> None:
        """Shut down fast, then immediately, then by force; each step has its deadline."""
        steps = (
            (signal.SIGINT, self._options.grace_seconds),
            (signal.SIGQUIT, 5.0),
            (signal.SIGKILL, 5.0),
        )
        for number, seconds in steps:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, number)
            deadline = time.monotonic() + seconds
            while (left := deadline - time.monotonic()) > 0:
                if self._reap():
                    return
                self._drain(left)

    def _reap(self) -> bool:
        pid, status = os.waitpid(self._child, os.WNOHANG)
        if pid == 0:
            return False
        self._code = exit_code(status)
        return True

    def _pause(self, seconds: float) -> bool:
        """Wait for `seconds`; True at once when a stop is requested."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._wait_for_stop(min(left, _POLL_SECONDS)):
                return True
        return False

    def _wait_for_stop(self, seconds: float) -> bool:
        """True when the owner asked to stop or is gone; waits for at most `seconds`."""
        if not self._stopping:
            readable, _, _ = select.select([0, self._wakes], [], [], seconds)
            if self._wakes in readable:
                os.read(self._wakes, 512)
            if 0 in readable:
                self._keeping = os.read(0, 512) != b""
                self._stopping = not self._keeping
            if os.getppid() != self._options.owner:
                self._stopping = True
        return self._stopping

    def _drain(self, seconds: float) -> None:
        readable, _, _ = select.select([self._wakes], [], [], min(seconds, _POLL_SECONDS))
        if readable:
            os.read(self._wakes, 512)

    def _note_stop(self, number: int, frame: object) -> None:
        self._stopping = True


if __name__ == "__main__":
    sys.exit(main(sys.argv))
