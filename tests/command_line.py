"""Runs commands of the command line in the process of the tests.

A separate process would spend a second on imports for each command.
`tests/acceptance/test_command_processes.py` checks that processes behave alike; the tests of the
tutorial and of the servers do so too.
"""

import contextlib
import gc
import io
import os
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from unittest import mock

from app.adapters.postgres.server import EmbeddedServer
from app.cli import console
from app.cli.application import application
from tests.prepared_data import prepare

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "cluster"


def redra(
    *arguments: object,
    data: Path | None = None,
    stdin: str = "",
    folder: Path = ROOT,
    **environment: str,
) -> tuple[int, str, str]:
    """Runs a command in a folder; returns exit code, standard output and standard error.

    Raises the exceptions that the command does not handle; a process would print a traceback.
    """
    words = [*map(str, arguments)]
    if data is not None:
        words += ["--data", str(data)]
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    out, error = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        mock.patch.dict(os.environ, environment),
        contextlib.chdir(folder),
        mock.patch.object(sys, "stdin", given),
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", error),
        garbage_looked_for_as_before(),
    ):
        console.prepare()
        code = application(words)
    return code, _text(out), _text(error)


@contextlib.contextmanager
def garbage_looked_for_as_before() -> Iterator[None]:
    """Restores the thresholds and the callbacks of the garbage collector after the block.

    A command that loads a history sets thresholds with which a process looks at its old objects
    hardly ever, and one that serves excludes what is left after each look from all later ones. Both
    are for a process of their own; the process of the tests goes on, and would keep all garbage.
    """
    thresholds, callbacks = gc.get_threshold(), [*gc.callbacks]
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks[:] = callbacks


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    binary = stream.buffer
    assert isinstance(binary, io.BytesIO)
    return binary.getvalue().decode()


def pytest_command(*words: object) -> list[str]:
    """The command line of a pytest that loads no plug-in of this environment but redra's.

    The others take two seconds of work.
    """
    names = {point.name for point in entry_points(group="pytest11")} - {"redra"}
    left_out = [word for name in sorted(names) for word in ("-p", f"no:{name}")]
    options = ("-q", "-p", "no:cacheprovider")
    return [sys.executable, "-m", "pytest", *options, *left_out, *map(str, words)]


@contextlib.contextmanager
def database_running(data: Path, *, recorded: bool = False) -> Iterator[None]:
    """Runs the database of a data folder during the block, so that commands do not start one.

    Creates the database if the folder has none; `recorded` as in `prepare`.
    """
    prepare(data, recorded=recorded)
    with EmbeddedServer(data / "postgres", stays=True):
        yield
