"""Data folders that hold a database already, for tests that start many servers.

A new folder costs a server two or three seconds of work: the database's files, then the schema.
They are made once in each process of the tests, by the command that users have for it, and copied.
What happens in a folder without a database is the matter of tests of its own.
"""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from tests.redra_process import RedraProcess


def prepare(data: Path) -> None:
    """Make a data folder with an empty database of the present schema, unless it is there."""
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
