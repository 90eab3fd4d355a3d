"""`redra` as a separate process, forked from a process that has already loaded it.

Starting Python and loading a server takes a second of work, and dozens of tests start one. A
process of the standard library's `forkserver` loads redra once: in a whole run for all processes of
the tests (`tests/loaded_tests.py`), else in each. Every command is a fork of that: a real process
with its own number, files, environment and signals. `tests/acceptance/test_command_processes.py`
and `test_command_line.py` test the installed command.
"""

import io
import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from subprocess import STDOUT, TimeoutExpired
from typing import IO

from dask import config

from tests.run_folder import run_folder

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = "REDRA_TESTS_PROGRAM"
"""A variable: the program that a server starts for its jobs, instead of a new interpreter."""

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["__main__", "distributed.nanny", "tests.loaded_redra"])


@contextmanager
def forked_dask_workers() -> Iterator[None]:
    """Lets Dask fork its worker processes, too, during the block.

    Users' workers are new interpreters, each of which loads redra and Dask in a second of work.
    """
    # The defaults of its settings must be there before one is changed.
    import distributed  # noqa: F401

    # Dask would have the process of forks load other modules, unless that runs.
    forkserver.ensure_running()
    with config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        yield


class RedraProcess:
    """A running `redra`, used like a `subprocess.Popen` in text mode.

    `words` are the arguments of the command; `environment` is added to that of the tests. `stdout`
    and `stderr` are pipes to read from, unless `stderr` is an open file or `subprocess.STDOUT`.
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
        """The exit status; negative after a signal, None while the process runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The same as `returncode`."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the process to end; returns the exit status. Raises TimeoutExpired."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            assert timeout is not None
            raise TimeoutExpired(self.args, timeout)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str | None]:
        """Reads the output until the process ends. Kills it, then raises TimeoutExpired."""
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
        """Sends a signal, unless the process has ended."""
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _rest(pipe: IO[str]) -> str:
    with pipe:
        return pipe.read()


def _pipe() -> tuple[IO[str], Connection]:
    """The reading end of a new pipe as a text stream, and the writing end for the process."""
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
    """Runs `redra` in the fork."""
    for number, connection in ((1, out), (2, error)):
        os.dup2(connection.fileno(), number)
        connection.close()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    run_command(words, environment, folder)


def run_command(words: list[str], environment: dict[str, str], folder: str) -> None:
    """Runs `redra` in a fork whose first three files are the streams of the command.

    `-m` and the name of a module, as for Python, run that module.
    """
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
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
        if words[:1] == ["-m"]:
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__")
        else:
            main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def forks() -> ForkServerContext:
    """The context of `multiprocessing` whose processes are forks of one that has loaded redra."""
    return _FORKS


def begin_forks() -> None:
    """Starts the process that has loaded redra, for all forks of this process to share."""
    # Its address; a folder of its own would stay where this process is killed.
    settings = process.current_process()._config  # type: ignore[attr-defined]  # no public name
    settings["tempdir"] = str(run_folder())
    # The path of the folder may be too long for an address.
    with suppress(OSError):
        forkserver.ensure_running()


def share_forks() -> None:
    """Has a fork use the process that its parent has begun, if there is one."""
    server = forkserver._forkserver  # type: ignore[attr-defined]  # no public name
    if server._forkserver_pid is not None:
        # Without looking whether it runs: only its parent can wait for it.
        server.ensure_running = forkserver.ensure_running = resource_tracker.ensure_running
