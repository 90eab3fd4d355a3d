"""Data folders that already have a database, for tests that start many servers.

In a new folder a server works two or three seconds to create the files and schema of the database.
The first process of a run that needs one creates it, with the command that users have for it, and
all copy it. Other tests cover folders without a database.
"""

import shutil
from functools import cache
from pathlib import Path

from tests.redra_process import RedraProcess
from tests.run_folder import made_once


def prepare(data: Path) -> None:
    """Creates a data folder with an empty database of the current schema, unless it has one."""
    if not data.exists():
        shutil.copytree(_made(), data)


@cache
def _made() -> Path:
    return made_once("data", _migrate)


def _migrate(data: Path) -> None:
    process = RedraProcess(["migrate", "--data", data])
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
