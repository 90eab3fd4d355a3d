"""Runs the tests of an area once for each mutant, in forks of a process that has collected them.

A first fork runs all tests and notes which lines each one reaches and what it costs. Then each
mutant gets a fork, in which its function is changed and the tests that reach the changed statement
run, the cheapest first, until one fails. Nothing is imported or collected twice, and no test sees
what another fork left behind.
"""

import contextlib
import ctypes
import json
import math
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import coverage
import pytest

from tests import draws
from tests.mutants.making import Mutant, NotApplicable

KILLED, TIMED_OUT, SURVIVED = "killed", "timed out", "survived"
UNEXPECTED = "unexpected"
"""The key of what ended the work of a fork early, as a traceback."""
UNREACHED, UNUSABLE = "reached by no test", "not applicable"

CPU_SECONDS_SPARE = 20
CPU_TIMES_MAX = 5
"""A mutant may cost so many times what its tests cost without it, and so many seconds more."""

LOOK_SECONDS = 0.5
SLEEPING_LOOKS_MAX = 60
"""A fork that sleeps nearly whenever one looks, with all processes below it, waits for something
that does not come, though it may look for it again and again. One that the machine has no time for
does not sleep."""

LOOKS_OF_WORK = 4
"""So many looks at a sleeping fork count for nothing with each at one that works."""

SLEEPING = frozenset("SZ")
"""The states of processes that sleep, or have ended and are not waited for."""

PR_SET_PDEATHSIG = 1

MEMORY_BYTES_MAX = 6 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    test: str = ""
    """The test that failed, or why the mutant is not applicable."""
    left_out: int = 0
    """Tests that reach the mutant and were too dear to run."""


@dataclass(slots=True)
class Survey:
    """What the tests cost and reach, without any change."""

    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    """Tests that fail without a change; they judge nothing."""
    reached: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    """By file and line the tests that run it."""

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that run the changed statement, the cheapest first."""
        lines = self.reached.get(str(mutant.path), {})
        names = {name for line in mutant.lines for name in lines.get(line, ())}
        if not names and mutant.lines.start <= mutant.body.start:
            # Defaults are evaluated where the function is defined.
            names = {name for line in mutant.body for name in lines.get(line, ())}
        return sorted(names - set(self.failed), key=lambda name: (self.seconds[name], name))

    def write(self, path: Path) -> None:
        data = {"seconds": self.seconds, "failed": self.failed, "reached": self.reached}
        path.write_text(json.dumps(data), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> "Survey":
        data = json.loads(path.read_text(encoding="utf-8"))
        reached = {
            file: {int(line): names for line, names in lines.items()}
            for file, lines in data["reached"].items()
        }
        return Survey(data["seconds"], data["failed"], reached)


class EachDay:
    """A pytest plug-in that leaves out what some runs lack: rows and tests by day and in turn."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not item.get_closest_marker(draws.BY_DAY.name)]


class Judge:
    """A pytest plug-in that runs the collected tests for mutants, not for themselves."""

    def __init__(
        self,
        root: Path,
        sources: Iterable[Path],
        mutants: list[Mutant],
        kept: Path,
        seconds: float,
        tell: Callable[[Verdict], None],
    ) -> None:
        self._root = root
        self._sources = sources
        """All modules that samples are drawn from, relative to `root`; other samples read the
        survey of this one."""
        self._mutants = mutants
        self._kept = kept
        """The file of the survey, which is made when it is not there."""
        self._seconds = seconds
        self._tell = tell
        self._failed = ""
        self.survey = Survey()

    def pytest_sessionstart(self) -> None:
        """Hypothesis tries the same examples for each mutant, and looks for no smaller ones."""
        # pytest rewrites what it loads as plug-ins, and refuses it when it was loaded before.
        from hypothesis import Phase, settings

        settings.register_profile(
            "mutants",
            parent=settings.default,
            phases=(Phase.explicit, Phase.generate),
            derandomize=True,
            database=None,
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed = self._failed or report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors while tests were collected")
        if not self._kept.exists():
            with _forked(lambda: self._take_survey(session), math.inf) as (signalled, told):
                if told is None or UNEXPECTED in told:
                    problem = f"signal {signalled}" if told is None else told[UNEXPECTED]
                    # pytest says nothing of why a session failed.
                    print(f"the tests ended early without any change: {problem}", flush=True)
                    raise session.Failed
        self.survey = Survey.read(self._kept)
        items = {item.nodeid: item for item in session.items}
        for mutant in self._mutants:
            self._tell(self._judge(session, items, mutant))
        return True

    def _judge(
        self, session: pytest.Session, items: dict[str, pytest.Item], mutant: Mutant
    ) -> Verdict:
        names = self.survey.tests(mutant)
        if not names:
            return Verdict(mutant=mutant, outcome=UNREACHED)
        cost, chosen = 0.0, []
        for name in names:
            cost += self.survey.seconds[name]
            if chosen and cost > self._seconds:
                break
            chosen.append(items[name])
        limit = CPU_SECONDS_SPARE + CPU_TIMES_MAX * min(cost, self._seconds)
        with _forked(lambda: self._try(session, chosen, mutant), limit) as (signalled, told):
            if told is None or UNEXPECTED in told:
                late = signalled in (signal.SIGXCPU, signal.SIGKILL)
                outcome = TIMED_OUT if late else KILLED
                return Verdict(mutant=mutant, outcome=outcome, test=f"signal {signalled}")
            return Verdict(mutant=mutant, left_out=len(names) - len(chosen), **told)

    def _try(
        self, session: pytest.Session, items: list[pytest.Item], mutant: Mutant
    ) -> dict[str, str]:
        try:
            mutant.apply()
        except (NotApplicable, SyntaxError) as problem:
            return {"outcome": UNUSABLE, "test": str(problem)}
        for _ in self._run(session, items):
            if self._failed:
                return {"outcome": KILLED, "test": self._failed}
        return {"outcome": SURVIVED}

    def _run(self, session: pytest.Session, items: list[pytest.Item]) -> Iterator[pytest.Item]:
        """Runs tests one after another; ends their fixtures also when nobody asks for more."""
        try:
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                yield item
        finally:
            with contextlib.suppress(BaseException):
                session._setupstate.teardown_exact(None)

    def _take_survey(self, session: pytest.Session) -> dict[str, str]:
        survey = Survey()
        files = sorted(str(self._root / path) for path in self._sources)
        watch = coverage.Coverage(data_file=None, include=files, config_file=False)
        watch.start()
        begun = time.process_time()
        if session.items:
            watch.switch_context(session.items[0].nodeid)
        following = iter([*session.items[1:], None])
        for item in self._run(session, session.items):
            ended = time.process_time()
            survey.seconds[item.nodeid] = round(ended - begun, 4)
            if self._failed:
                survey.failed.append(item.nodeid)
            self._failed, begun = "", ended
            after = next(following)
            watch.switch_context(after.nodeid if after else "")
        watch.stop()
        data = watch.get_data()
        for file in data.measured_files():
            lines = data.contexts_by_lineno(file)
            survey.reached[str(Path(file).relative_to(self._root))] = {
                line: [name for name in names if name] for line, names in lines.items()
            }
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        survey.write(self._kept)
        return {}


@contextlib.contextmanager
def _forked(
    work: Callable[[], dict[str, str]], cpu_seconds: float
) -> Iterator[tuple[int, dict[str, str] | None]]:
    """The signal that ended a fork, and what its work returned; None when it was ended early."""
    with tempfile.TemporaryDirectory(prefix="redra-mutant-") as folder:
        answer = Path(folder) / "answer"
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _work(work, answer, cpu_seconds)
        signalled = _wait(child)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        yield signalled, json.loads(answer.read_text()) if answer.exists() else None


def _work(work: Callable[[], dict[str, str]], answer: Path, cpu_seconds: float) -> None:
    """What a fork does; it does not return."""
    code = 1
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silence, descriptor)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if cpu_seconds < math.inf:
            limit = math.ceil(cpu_seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        try:
            told = work()
        except BaseException:
            told = {UNEXPECTED: traceback.format_exc()}
        partial = answer.with_suffix(".part")
        partial.write_text(json.dumps(told))
        partial.rename(answer)
        code = 0
    finally:
        os._exit(code)


def _wait(child: int) -> int:
    """The signal that ended a process, or 0; one that sleeps for long is killed."""
    looks = 0
    with os.fdopen(os.pidfd_open(child)) as ending:
        while not select.select([ending], [], [], LOOK_SECONDS)[0]:
            looks = looks + 1 if _sleeps(child) else max(0, looks - LOOKS_OF_WORK)
            if looks >= SLEEPING_LOOKS_MAX:
                os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _sleeps(process: int) -> bool:
    """Whether a process and all processes below it sleep."""
    states, below = {}, defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        # Processes end while one looks.
        with contextlib.suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            states[int(path.parent.name)] = state
            below[int(parent)].append(int(path.parent.name))
    awaited = [process]
    for each in awaited:
        awaited.extend(below[each])
    return all(states.get(each, "S") in SLEEPING for each in awaited)
