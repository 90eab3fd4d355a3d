"""Commands as processes of their own do what they do in the process of the tests.

One of each family: what starts, waits for a database, writes files, asks, refuses.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import draws
from tests.command_line import EXAMPLES, ROOT, database_running, redra

pytestmark = [pytest.mark.database, pytest.mark.slow]

COMMANDS = (
    "histories -o json",
    draws.repeated("histories --deleted"),
    "histories delete manifests",
    draws.repeated("log manifests --limit 3"),
    "timeline manifests --last 5",
    draws.repeated("replay manifests -o json"),
    "verify manifests -o json",
    draws.repeated("head manifests"),
    "rebuild manifests",
    "sql -",
    draws.repeated("blast --delete deviceclass/gpu.example.com --history manifests"),
    "why pod/none --history manifests",
)
STATEMENT = "SELECT count(*) AS devices FROM view_devices"


def process(*words: str, data: Path) -> tuple[int, str, str]:
    """A command by the program that is installed."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "redra"), *words, "--data", str(data)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, input=STATEMENT,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with the history `manifests`, imported by a process; its database runs."""
    folder = tmp_path_factory.mktemp("processes") / "data"
    with database_running(folder):
        code, _, error = process("import", str(EXAMPLES), "--history", "manifests", data=folder)
        assert code == 0, error
        assert redra("rebuild", "manifests", data=folder)[0] == 0
        yield folder


@draws.BY_DAY
@pytest.mark.parametrize("line", COMMANDS)
def test_process_says_what_the_command_says(data: Path, line: str) -> None:
    alone = process(*line.split(), data=data)
    assert alone == redra(*line.split(), data=data, stdin=STATEMENT)


@draws.in_turn(
    "ends",
    each_day="contracts/test_embedded_server.py::test_killed_guardian_takes_the_server_with_it",
)
def test_process_that_ends_takes_its_database_along(tmp_path: Path) -> None:
    """Nobody runs a database here: the process makes one, starts it and ends it."""
    code, out, error = process("migrate", data=tmp_path / "data")
    assert (code, out.startswith("the schema is at ")) == (0, True), error
    assert not (tmp_path / "data" / "postgres" / "postmaster.pid").exists()
