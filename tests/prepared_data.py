"""Data folders that already have a database, for tests that start many servers.

In a new folder a server works two or three seconds to create the files and schema of the database.
Each process of the tests creates them once, with the command that users have for it, and copies
them. Other tests cover folders without a database.
"""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from tests.redra_process import RedraProcess


def prepare(data: Path) -> None:
    """Creates a data folder with an empty database of the current schema, unless it has one."""
    if not data.exists():
        shutil.copytree(_made(), data)


@cache
def _made() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="redra-data-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    process = RedraProcess(["migrate", "--data", folder / "data"])
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return folder / "data"
