"""A temporary folder that all processes of a run of the tests share.

What is costly to make is made there once, under a lock, by the first process that needs it. All
other temporary files of a run are there, too, in memory where there is room: those of tests, of
imports and of servers come and go by thousands, and on a disk each waits for it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.util import Finalize
from pathlib import Path

from tests import in_memory

_VARIABLE = "REDRA_TESTS_FOLDER"
_LAST = -200
"""The folder of multiprocessing itself has -100."""


def run_folder() -> Path:
    """The folder of this run. The first process makes it, and removes it at its end.

    It is the system's temporary folder for all that begins afterwards.
    """
    if _VARIABLE not in os.environ:
        folder = _new_folder()
        os.environ[_VARIABLE] = os.environ["TMPDIR"] = folder
        tempfile.tempdir = None  # Python keeps the first one that it sees.
        # What multiprocessing removes at the end of the process is in it, and must be gone before.
        Finalize(None, _remove, (folder, os.getpid()), exitpriority=_LAST)
    return Path(os.environ[_VARIABLE])


def _new_folder() -> str:
    """A new folder in memory, if the programs that tests write can run there."""
    folder = in_memory.new_folder() if in_memory.runs_programs() else None
    return str(folder or tempfile.mkdtemp(prefix="redra-tests-"))


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
