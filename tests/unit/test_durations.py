"""What tests cost is counted whole: with what they start, and once."""

import os
import subprocess
import sys

from tests.durations import BUDGET_SECONDS, read, tables, tree_seconds

BUSY = "import time\nwhile time.process_time() < {}: pass"


def test_work_of_processes_that_have_ended_is_counted():
    before = tree_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", BUSY.format(0.3)], check=True)
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY.format(0.3)!r}])"
    subprocess.run([sys.executable, "-c", inner], check=True)
    assert tree_seconds(os.getpid()) - before > 0.5


def test_folders_and_modules_add_up_to_the_whole():
    rows = [
        ("test", "tests/a/test_x.py::test_one", 1.5),
        ("fixture", "tests/a::server (module)", 1.0),
        ("test", "tests/a/test_y.py::test_two[a::b]", 0.25),
        ("test", "tests/b/test_z.py::test_three", 2.0),
        ("rest", "collection", 0.25),
    ]
    lines = list(tables(rows, top=1))
    assert lines[0] == "4.0 CPU seconds for 3 tests"
    assert lines[1] == "3.5 of them for 2 tests over 0.5 CPU seconds"
    assert lines[2] == f"{4 / BUDGET_SECONDS:.0%} of {BUDGET_SECONDS}, the budget of a whole run"
    words = [line.split(maxsplit=1) for line in lines[1:] if line.startswith(" ")]
    assert [(float(seconds), name) for seconds, name in words] == [
        (2.0, "tests/b  (1 tests)"),
        (1.75, "tests/a  (2 tests)"),
        (0.25, "collection"),
        (2.0, "tests/b/test_z.py  (1 tests)"),
        (1.0, "tests/a::server (module)"),
        (2.0, "tests/b/test_z.py::test_three"),
    ]


def test_figures_of_several_processes_are_read_together(tmp_path):
    keep = tmp_path / "durations.tsv"
    for number in range(2):
        keep.with_name(f"{keep.name}.gw{number}").write_text(
            f"test\t1.5\ttests/test_{number}.py::a\n"
        )
    assert sorted(read(keep)) == [
        ("test", "tests/test_0.py::a", 1.5),
        ("test", "tests/test_1.py::a", 1.5),
    ]
