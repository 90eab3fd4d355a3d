"""`redra` as a process of its own, forked from one that has loaded it already.

Starting Python and loading a server costs a second of work; dozens of tests start one. Here a
process of the standard library's `forkserver` loads it once in each process of the tests, and
every command is a fork of that: a real process with its own number, files, environment and signals.
That the installed command starts, and what it costs, is the matter of
`tests/acceptance/test_command_processes.py` and `test_command_line.py`.
"""

import io
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import STDOUT, TimeoutExpired
from typing import IO

ROOT = Path(__file__).resolve().parent.parent

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["__main__", "app.cli.application", "app.bootstrap.serving"])


class RedraProcess:
    """A running `redra`, used like a `subprocess.Popen` in text mode.

    `words` are the command's; `environment` is set beside that of the tests. `stdout` and `stderr`
    are pipes to read from, unless `stderr` goes to a file that is given open, or is
    `subprocess.STDOUT`.
    """

    def __init__(
        self,
        words: Sequence[object],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path = ROOT,
        stderr: IO[str] | int | None = None,
    ) -> None:
        assert stderr is None or stderr == STDOUT or not isinstance(stderr, int)
        self.args = [*map(str, words)]
        self.stdout, out = _pipe()
        self.stderr: IO[str] | None = None
        if stderr is None:
            self.stderr, error = _pipe()
        else:
            file = out if isinstance(stderr, int) else stderr
            error = Connection(os.dup(file.fileno()), readable=False)
        variables = os.environ | (environment or {})
        self._process = _FORKS.Process(
            target=_run, args=(self.args, dict(variables), str(folder), out, error), daemon=True
        )
        self._process.start()
        out.close()
        error.close()
        number = self._process.pid
        assert number is not None
        self.pid: int = number

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for the signal that ended it; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The same."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; returns the exit status. Raises TimeoutExpired."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            assert timeout is not None
            raise TimeoutExpired(self.args, timeout)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str | None]:
        """Read what it writes until it has ended. After TimeoutExpired it is killed."""
        with ThreadPoolExecutor(2) as beside:
            texts = [
                None if pipe is None else beside.submit(_rest, pipe)
                for pipe in (self.stdout, self.stderr)
            ]
            try:
                self.wait(timeout)
            except TimeoutExpired:
                self.kill()
                raise
            out, errors = (None if text is None else text.result() for text in texts)
        assert out is not None
        return out, errors

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def _rest(pipe: IO[str]) -> str:
    with pipe:
        return pipe.read()


def _pipe() -> tuple[IO[str], Connection]:
    """What is read of a new pipe, and the end for the process."""
    reading, writing = _FORKS.Pipe(duplex=False)
    number = os.dup(reading.fileno())
    reading.close()
    return io.TextIOWrapper(io.FileIO(number), encoding="utf-8"), writing


def _run(
    words: list[str],
    environment: dict[str, str],
    folder: str,
    out: Connection,
    error: Connection,
) -> None:
    """Become `redra`: runs in the fork."""
    for number, connection in ((1, out), (2, error)):
        os.dup2(connection.fileno(), number)
        connection.close()
    sys.stdin = io.TextIOWrapper(io.FileIO(os.open(os.devnull, os.O_RDONLY)), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8")
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), encoding="utf-8", line_buffering=True
    )
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["redra", *words]
    from app.cli import main

    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
