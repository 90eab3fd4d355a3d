"""Data folders that hold a database already, for tests that start many servers.

A new folder costs a server two or three seconds of work: the database's files, then the schema.
They are made once in each process of the tests, by the command that users have for it, and copied.
What happens in a folder without a database is the matter of tests of its own.
"""

import atexit
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def prepare(data: Path) -> None:
    """Make a data folder with an empty database of the present schema, unless it is there."""
    if not data.exists():
        shutil.copytree(_made(), data)


@cache
def _made() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="redra-data-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [sys.executable, "-m", "app.cli", "migrate", "--data", str(folder / "data")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder / "data"
