"""A temporary folder that all processes of a run of the tests share.

What is costly to make is made there once, under a lock, by the first process that needs it.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_VARIABLE = "REDRA_TESTS_FOLDER"


def run_folder() -> Path:
    """The folder of this run. The first process makes it, and removes it at its end."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="redra-tests-")
        atexit.register(_remove, os.environ[_VARIABLE], os.getpid())
    return Path(os.environ[_VARIABLE])


def _remove(folder: str, maker: int) -> None:
    # A process that was forked from here ends before the run does.
    if os.getpid() == maker:
        shutil.rmtree(folder, ignore_errors=True)


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """A file or folder of the run; `make` is called with a path beside it, unless it is there."""
    with locked(name) as made:
        if not made.exists():
            begun = Path(tempfile.mkdtemp(dir=run_folder())) / name
            make(begun)
            begun.rename(made)
    return made


@contextmanager
def locked(name: str) -> Iterator[Path]:
    """The path of a file or folder of the run, which no other process makes during the block."""
    with (run_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield run_folder() / name
