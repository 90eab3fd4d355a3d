"""`--forks` runs every test once, in one fork per file, and reports what happened."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.forks import in_order

LINES = """
import os, pathlib, pytest

PLACE = pathlib.Path(__file__)

@pytest.fixture(scope="module")
def made():
    with PLACE.with_suffix(".made").open("a") as file:
        print("made", file=file)
    yield
    with PLACE.with_suffix(".made").open("a") as file:
        print("ended", file=file)

@pytest.mark.parametrize("number", range(3))
def test_with_what_is_made(made, number, tmp_path):
    print("printed", number)
    assert number != 1

def test_left_out():
    pytest.skip("for a reason")
"""

DIES = """
import os, pathlib, signal

def test_before():
    pass

def test_dies():
    # What it leaves running holds what it had open.
    if left := os.fork():
        pathlib.Path(__file__).with_suffix(".left").write_text(str(left))
        os._exit(9)
    signal.pause()

def test_after():
    pass
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Path, str]:
    """What came of each test, the folder, and the output."""
    folder = tmp_path_factory.mktemp("forks")
    for name, text in ("a", LINES), ("b", LINES), ("c", DIES), ("d", LINES):
        (folder / f"test_{name}.py").write_text(text)
    (folder / "pytest.ini").touch()
    command = ["-q", "-ra", "-p", "tests.forks", "--forks", "2", f"--junitxml={folder}/results.xml"]
    plain = ["--disable-plugin-autoload", "-p", "no:cacheprovider", f"--rootdir={folder}"]
    output = folder / "output"
    with output.open("w") as file:
        subprocess.run(
            [sys.executable, "-m", "pytest", *command, *plain, "-c", folder / "pytest.ini", folder],
            stdout=file,
        )
    os.kill(int((folder / "test_c.left").read_text()), signal.SIGKILL)
    cases = ElementTree.parse(folder / "results.xml").iter("testcase")
    rows = {
        f"{case.get('classname')}.{case.get('name')}": case[0].tag if len(case) else "passed"
        for case in cases
    }
    return rows, folder, output.read_text()


def test_each_test_has_its_outcome(outcomes):
    rows, _, _ = outcomes
    for name in "abd":
        assert [rows[f"test_{name}.test_with_what_is_made[{number}]"] for number in range(3)] == [
            "passed",
            "failure",
            "passed",
        ]
        assert rows[f"test_{name}.test_left_out"] == "skipped"
    assert rows["test_c.test_before"] == "passed"
    assert len(rows) == 15


def test_tests_of_a_process_that_ended_fail(outcomes):
    rows, _, output = outcomes
    assert rows["test_c.test_dies"] == rows["test_c.test_after"] == "failure"
    assert "its process ended before it (status 9)" in output


def test_what_a_test_printed_comes_with_its_failure(outcomes):
    _, _, output = outcomes
    assert output.count("printed 1") == 3
    assert "printed 0" not in output
    assert "for a reason" in output


def test_fixture_of_a_file_is_made_once(outcomes):
    _, folder, _ = outcomes
    for name in "abd":
        assert (folder / f"test_{name}.made").read_text() == "made\nended\n"


class Item:
    """As much of a test as the order depends on."""

    def __init__(self, file: str) -> None:
        self.nodeid = f"tests/{file}::test"


def test_files_that_wait_come_among_those_that_compute_and_small_ones_last():
    files = ["unit/a", "web/a", "web/b", "acceptance/a", "conformance/a", "conformance/b", "unit/b"]
    assert [group[0].nodeid[6:-6] for group in in_order([[Item(file)] for file in files])] == [
        "web/a",
        "conformance/a",
        "web/b",
        "conformance/b",
        "acceptance/a",
        "unit/a",
        "unit/b",
    ]
