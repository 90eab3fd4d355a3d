"""Data folders that already have a database, for tests that start many servers.

In a new folder a server works two or three seconds to create the files and schema of the database.
The first process of a run that needs one creates it, with the command that users have for it, and
all copy it. Other tests cover folders without a database.

A copy is in memory, if there is room, and the data folder is a link to it: on ext4 its 1,400 files
take half a second of work, as much as the start of a server.
"""

import atexit
import os
import shutil
from functools import cache
from pathlib import Path

from tests import in_memory
from tests.redra_process import RedraProcess
from tests.run_folder import made_once

_COPIES: list[tuple[int, Path]] = []
"""The copies in memory, each with the process that made it."""


def prepare(data: Path) -> None:
    """Creates a data folder with an empty database of the current schema, unless it has one."""
    if data.exists():
        return
    folder = in_memory.new_folder()
    if folder is None:
        shutil.copytree(_made(), data)
        return
    _COPIES.append((os.getpid(), folder))
    data.symlink_to(shutil.copytree(_made(), folder / "data"))


@atexit.register
def forget() -> None:
    """Removes the copies in memory, whose servers have ended; at the end of a module of tests."""
    while _COPIES:
        maker, folder = _COPIES.pop()
        # A process that was forked from here ends before the servers do.
        if maker == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _made() -> Path:
    return made_once("data", _migrate)


def _migrate(data: Path) -> None:
    process = RedraProcess(["migrate", "--data", data])
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
