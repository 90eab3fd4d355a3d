"""Data folders that already have a database, for tests that start many servers.

In a new folder a server works two or three seconds to create the files and schema of the database.
The first process of a run that needs one creates it, with the command that users have for it, and
all copy it. Other tests cover folders without a database, and
imports.

A copy is in memory, if there is room, and the data folder is a link to it: on ext4 its 1,400 files
take half a second of work, as much as the start of a server.
"""

import atexit
import os
import shutil
from functools import cache
from pathlib import Path

from tests import in_memory
from tests.redra_process import ROOT, RedraProcess
from tests.run_folder import made_once

RECORDING = ROOT / "examples" / "recordings" / "maintenance"

_COPIES: list[tuple[int, Path]] = []
"""The copies in memory, each with the process that made it."""


def prepare(data: Path, *, recorded: bool = False) -> None:
    """Creates a data folder with a database of the current schema, unless there is one.

    It is empty, or has the recording of a maintenance as the history `prod`.
    """
    if data.exists():
        return
    made = _recorded() if recorded else _made()
    folder = in_memory.new_folder()
    if folder is None:
        shutil.copytree(made, data)
        return
    _COPIES.append((os.getpid(), folder))
    data.symlink_to(shutil.copytree(made, folder / "data"))


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
    _run("migrate", data)


@cache
def _recorded() -> Path:
    return made_once("recorded", _import)


def _import(data: Path) -> None:
    shutil.copytree(_made(), data)
    _run("import", data, RECORDING, "--history", "prod")


def _run(command: str, data: Path, *words: object) -> None:
    process = RedraProcess([command, *words, "--data", data])
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
