"""`python -m tests.durations [PATH …]` runs tests and prints the CPU time of each.

The figure is the CPU time, user and system, of the tests' process and of every process that it
started: forks, databases, browsers, detached processes and ended ones. Unlike wall-clock time, CPU
time does not depend on the load of the machine. The tests run one after another in one process, so
all work belongs to the running test; the work of a database after a test counts with the next test.

`python -m tests.durations -n 3 --dist loadfile --no-loadscope-reorder` measures what `make test`
does. Each process of the tests then counts its own descendants, but not detached processes, nor the
process that imports all tests before a whole run (`tests/loaded_tests.py`): 7 CPU seconds, 14 more
in a new checkout.

The whole is compared with BUDGET_SECONDS, which `make test` is to keep to.

The kernel counts other processes in hundredths of a second, so only sums are meaningful.
"""

import argparse
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path, PurePosixPath

import pytest

_ROOT = "REDRA_DURATIONS_ROOT"
_KEEP = "REDRA_DURATIONS_KEEP"
_PR_SET_CHILD_SUBREAPER = 36
_TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
BUDGET_SECONDS = 680
"""The CPU time of a whole run on a quiet machine: two processors, busy for 95 % of six minutes."""

LONG_SECONDS = 0.5
"""A test that takes longer should come by day or in turn with others (tests/draws.py)."""

_AFTER_COMM = 11
"""The fields `utime`, `stime`, `cutime`, `cstime` of /proc/PID/stat, counted behind the name."""

Row = tuple[str, str, float]
"""A kind ("test", "fixture" or "rest"), a name, CPU seconds."""


def tree_seconds(root: int) -> float:
    """The CPU seconds of a process and of its descendants, including ended ones.

    The part of this process is exact; the part of other processes is counted in ticks.
    """
    own, ticks, waiting = os.getpid(), 0, [root]
    seconds = time.process_time()
    while waiting:
        number = waiting.pop()
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            used = [int(field) for field in stat[_AFTER_COMM : _AFTER_COMM + 4]]
            ticks += sum(used[2:]) if number == own else sum(used)
            for thread in Path(f"/proc/{number}/task").iterdir():
                children = (thread / "children").read_text()
                waiting += map(int, children.split())
    return seconds + ticks * _TICK_SECONDS


class Meter:
    """A pytest plug-in that measures tests and fixtures, and writes each figure at once."""

    def __init__(self, root: int, keep: Path) -> None:
        self._root = root
        self._keep = keep.open("w", encoding="utf-8", buffering=1)
        self._tests = 0.0
        self._nested = [0.0]

    def _note(self, kind: str, name: str, seconds: float) -> None:
        self._keep.write(f"{kind}\t{seconds:.4f}\t{name}\n")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measures a test with all its fixtures."""
        before = tree_seconds(self._root)
        try:
            return (yield)
        finally:
            seconds = tree_seconds(self._root) - before
            self._tests += seconds
            self._note("test", item.nodeid, seconds)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object]
    ) -> Generator[None, object, object]:
        """Measures the setup of a fixture without the fixtures that it requests meanwhile."""
        self._nested.append(0.0)
        before = tree_seconds(self._root)
        try:
            return (yield)
        finally:
            whole = tree_seconds(self._root) - before
            name = f"{fixturedef.baseid}::{fixturedef.argname} ({fixturedef.scope})"
            self._note("fixture", name, whole - self._nested.pop())
            self._nested[-1] += whole

    def pytest_unconfigure(self) -> None:
        """Notes the CPU time that belongs to no test."""
        rest = tree_seconds(self._root) - self._tests
        self._note("rest", "collection, and the end of what all tests share", rest)
        self._keep.close()


def pytest_configure(config: pytest.Config) -> None:
    """Registers the meter in a run that this command started, in each process that runs tests."""
    if _ROOT not in os.environ:
        return
    keep = Path(os.environ[_KEEP])
    worker: dict[str, str] | None = getattr(config, "workerinput", None)
    if worker is not None:
        keep = keep.with_name(f"{keep.name}.{worker['workerid']}")
        config.pluginmanager.register(Meter(os.getpid(), keep))
    elif not config.getoption("numprocesses", None):
        config.pluginmanager.register(Meter(int(os.environ[_ROOT]), keep))


def measure(arguments: list[str], keep: Path) -> int:
    """Runs pytest as a child process; orphans become children of this process and are counted.

    Returns pytest's exit status.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Shells begin what runs in the background without it, and tests of Ctrl-C would hang on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [sys.executable, "-m", "pytest", "-p", "tests.durations", "-q"]
    for old in keep.parent.glob(f"{keep.name}.gw*"):
        old.unlink()
    # As `make test` does: or each process would compile everything that it imports.
    compiled = {"PYTHONDONTWRITEBYTECODE": ""}
    variables = os.environ | compiled | {_ROOT: str(os.getpid()), _KEEP: str(keep)}
    child = subprocess.Popen([*command, *arguments], env=variables)
    while True:
        number, status = os.waitpid(-1, 0)
        if number == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode


def read(keep: Path) -> Iterator[Row]:
    """Reads the figures of a run: of its one process, or of each of several ones."""
    for file in (keep, *sorted(keep.parent.glob(f"{keep.name}.gw*"))):
        for line in file.read_text().splitlines() if file.exists() else ():
            kind, seconds, name = line.split("\t")
            yield kind, name, float(seconds)


def tables(rows: list[Row], top: int) -> Iterator[str]:
    """The tables of CPU time: folders, and the most expensive modules, tests and fixtures."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    counts: Counter[str] = Counter()
    for kind, name, seconds in rows:
        sums[kind][name] += seconds
        if kind == "test":
            module = PurePosixPath(name.partition("::")[0])
            for part in ("folder", str(module.parent)), ("module", str(module)):
                sums[part[0]][part[1]] += seconds
                counts[part[1]] += 1
    seconds_of_tests = [seconds for kind, _, seconds in rows if kind == "test"]
    whole = sum(sums["test"].values()) + sum(sums["rest"].values())
    yield f"{whole:.1f} CPU seconds for {len(seconds_of_tests)} tests"
    long = [seconds for seconds in seconds_of_tests if seconds > LONG_SECONDS]
    yield f"{sum(long):.1f} of them for {len(long)} tests over {LONG_SECONDS} CPU seconds"
    yield f"{whole / BUDGET_SECONDS:.0%} of {BUDGET_SECONDS}, the budget of a whole run"
    for kind in ("folder", "rest", "module", "fixture", "test"):
        yield f"\n{kind}s, CPU seconds" if kind != "rest" else "\nthe rest, CPU seconds"
        for name, seconds in sums[kind].most_common(None if kind == "folder" else top):
            many = f"  ({counts[name]} tests)" if name in counts else ""
            yield f"{seconds:9.2f}  {name}{many}"


def main() -> int:
    """Runs the tests and prints the tables."""
    parser = argparse.ArgumentParser(prog="tests.durations", description=__doc__)
    parser.add_argument("--top", type=int, default=50, help="how many modules, fixtures and tests")
    parser.add_argument("--keep", type=Path, help="a file for all figures, as tab-separated lines")
    chosen, arguments = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        keep = chosen.keep or Path(folder) / "durations.tsv"
        status = measure(arguments or ["tests"], keep)
        for line in tables(list(read(keep)), chosen.top):
            print(line)
    return status


if __name__ == "__main__":
    sys.exit(main())
