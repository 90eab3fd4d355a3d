"""What the mutation runs say of a small package whose gaps in the tests are known."""

import json
import os
import subprocess
import sys

import pytest

from tests import draws
from tests.mutants.areas import AREAS
from tests.mutants.intervals import interval
from tests.shared_data import REPOSITORY

pytestmark = draws.modules_in_turn("deliveries")

CODE = """
from dataclasses import dataclass

def fits(count, wanted=1):
    return count >= wanted

def unasked():
    return 1

def taken(count):
    while count > 0:
        count -= 1
    return count

@dataclass(frozen=True, slots=True)
class Pool:
    devices: int

    def left(self, used):
        return self.devices - used

    @classmethod
    def empty(cls):
        return cls(0)
"""

RESERVED = """
def reserved(count):
    return count * 2
"""

TESTS = """
from pool.devices import Pool, fits, taken
from pool.reserve.counts import reserved

def test_fits():
    assert fits(3, 2)
    assert not fits(0)

def test_taken():
    assert taken(3) == 0

def test_left():
    assert Pool(3).left(0) == 3

def test_empty():
    assert Pool.empty() == Pool(0)

def test_reserved():
    assert reserved(2) == 4

def test_fails_anyway():
    assert fits(0)
"""

RUN = """
import json, sys
from pathlib import Path
import pytest
from tests.mutants import judging, making

judging.CPU_SECONDS_SPARE = 1
root = Path.cwd()
verdicts = []
ENDLESS = ("count = 1", "count = None", "count -= 2")
mutants = [
    mutant
    for mutant in making.mutants(root, Path("pool/devices.py"))
    if not mutant.difference()[-1].endswith(ENDLESS)
]
paths = [Path("pool/devices.py"), Path("pool/reserve/counts.py")]
judge = judging.Judge(root, paths, mutants, root / "kept.json", 60, verdicts.append)
pytest.main(["-q", "-p", "no:cacheprovider", "test_pool.py"], plugins=[judge])
others = list(making.mutants(root, paths[1]))
again = judging.Judge(root, paths, others, root / "kept.json", 60, verdicts.append)
pytest.main(["-q", "-p", "no:cacheprovider", "test_pool.py"], plugins=[again])
rows = [(v.mutant.name, "".join(v.mutant.difference()), v.outcome, v.test) for v in verdicts]
print("ROWS" + json.dumps([rows, judge.survey.failed]))
"""

ALONE = {"PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Variables for a pytest without the plug-ins of this environment, which take long to load."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[list[str]], list[str]]:
    """The verdicts on all mutants of the package, and the tests that fail anyway."""
    root = tmp_path_factory.mktemp("mutants")
    (root / "pool").mkdir()
    (root / "pool" / "reserve").mkdir()
    (root / "pool" / "__init__.py").touch()
    (root / "pool" / "reserve" / "__init__.py").touch()
    (root / "pool" / "reserve" / "counts.py").write_text(RESERVED)
    (root / "pool" / "devices.py").write_text(CODE)
    (root / "test_pool.py").write_text(TESTS)
    (root / "pyproject.toml").write_text(
        '[tool.mutmut]\nsource_paths = ["pool"]\n[tool.pytest.ini_options]\npythonpath = ["."]\n'
    )
    ended = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=root,
        env={**os.environ, **ALONE, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert "ROWS" in ended.stdout, ended.stdout + ended.stderr
    rows, failed = json.loads(ended.stdout.partition("ROWS")[2])
    return rows, failed


def verdict(told: tuple[list[list[str]], list[str]], added: str) -> list[str]:
    """The outcome and the test of the mutant with an added line."""
    (row,) = [row for row in told[0] if row[1].endswith("+" + added)]
    return row[2:]


@pytest.mark.parametrize(
    ("added", "outcome", "test"),
    [
        ("    return count > wanted", "survived", ""),
        ("def fits(count, wanted=2):", "survived", ""),
        ("        return self.devices + used", "survived", ""),
        ("    return 2", "reached by no test", ""),
        ("        return cls(1)", "killed", "test_pool.py::test_empty"),
        ("    while count >= 0:", "killed", "test_pool.py::test_taken"),
        ("        count += 1", "timed out", "signal 24"),
    ],
)
def test_each_change_is_judged_by_the_tests_that_run_it(told, added, outcome, test) -> None:
    assert verdict(told, added) == [outcome, test]


def test_a_survey_serves_samples_of_other_folders(told) -> None:
    assert verdict(told, "    return count / 2") == ["killed", "test_pool.py::test_reserved"]
    assert verdict(told, "    return count * 3") == ["killed", "test_pool.py::test_reserved"]


def test_no_folder_below_an_area_is_in_none() -> None:
    patterns = {pattern for area in AREAS.values() for pattern in area.sources}
    mutated = {path for pattern in patterns for path in REPOSITORY.glob(pattern)}
    for pattern in patterns:
        if pattern.endswith("*.py"):
            folder = REPOSITORY / pattern.partition("*")[0]
            assert set(folder.rglob("*.py")) <= mutated, pattern


def test_a_test_that_fails_anyway_kills_nothing(told) -> None:
    assert told[1] == ["test_pool.py::test_fails_anyway"]
    assert all("anyway" not in row[3] for row in told[0])


POLLING = """
import time
while True:
    sum(range(50_000))
    time.sleep(0.05)  # waits: for what does not come
"""

WAITING = """
import math, subprocess, sys
from tests.mutants import judging

judging.LOOK_SECONDS, judging.SLEEPING_LOOKS_MAX = 0.01, 40

def work():
    return {"code": str(subprocess.call([sys.executable, "-c", sys.argv[1]]))}

with judging._forked(work, math.inf) as ended:
    print("ENDED", ended)
"""


@pytest.mark.parametrize(
    ("below", "ended"),
    [
        ("for _ in range(20_000_000): pass", "(0, {'code': '0'})"),
        ("import threading; threading.Event().wait()", "(9, None)"),
        (POLLING, "(9, None)"),
    ],
    ids=["works", "waits for ever", "looks for ever"],
)
def test_fork_that_waits_for_a_process_is_ended_only_if_that_sleeps_too(below, ended) -> None:
    run = subprocess.run(
        [sys.executable, "-c", WAITING, below],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert f"ENDED {ended}" in run.stdout, run.stdout + run.stderr


def test_interval_of_a_share_is_wilsons() -> None:
    """Figures of the standard example of 95 %: 0 of 10, 81 of 263, 10 of 10."""
    assert interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert interval(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
