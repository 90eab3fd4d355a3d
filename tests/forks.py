"""`python -m pytest -p tests.forks --forks N` runs the collected tests in N forks of this process.

Each process of pytest-xdist imports and collects all tests by itself, 7 CPU seconds each on a quiet
machine, and a report costs it and its master a millisecond. Forks have what was collected and share
its memory. Each takes the next file as soon as it is free, and sends its reports to this process,
which prints them. A test whose fork ends before it fails.
"""

import atexit
import io
import os
import pickle
import random
import selectors
import signal
import struct
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from _pytest._io import TerminalWriter
from _pytest.assertion import rewrite

Group = list[pytest.Item]
"""The tests of one file, which share what its fixtures make."""

_NUMBER = struct.Struct("!H")
_LENGTH = struct.Struct("!I")
_READ_BYTES = 65_536
_LOOK_SECONDS = 1.0
"""So often, at least, it is seen whether a fork has ended."""

_WAITS = frozenset({"acceptance", "contracts", "crash", "recording", "web"})
"""Folders whose tests wait for other processes much of their time."""

_SMALL = frozenset({"api", "architecture", "mutants", "unit"})
"""Folders whose files take few seconds each: at the end they keep all processes busy alike."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option `--forks`."""
    parser.addoption("--forks", type=int, default=0, metavar="N", help="run the tests in N forks")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """In a new checkout, a fork compiles the last modules while this process imports the first."""
    helper = 0
    files = sorted((session.config.rootpath / "tests").rglob("test_*.py"))
    whole = session.config.args == session.config.getini("testpaths")
    if session.config.getoption("forks") > 1 and whole and not _compiled(files[-1]):
        helper = _forked(partial(_compile_from_the_end, session.config.rootpath, files))
    try:
        return (yield)
    finally:
        if helper:
            os.waitpid(helper, 0)


def _compiled(file: Path) -> bool:
    return (rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}").exists()


def _compile_from_the_end(root: Path, files: Sequence[Path]) -> None:
    """Imports test modules, the last ones first, until it comes to one that is compiled."""
    for file in reversed(files):
        if _compiled(file):
            return
        try:
            # As pytest names them.
            __import__(".".join(file.relative_to(root).with_suffix("").parts))
        # The collection imports it again, and says what is wrong.
        except BaseException:
            continue


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs the tests in forks, unless the collection failed or was all that is wanted."""
    count = session.config.getoption("forks")
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    reporter.showfspath = False  # Files come side by side.
    Forks(session, count).run()
    return True


def in_order(groups: Sequence[Group]) -> list[Group]:
    """The files in the order in which they begin.

    Those that wait and those that compute come evenly among each other, so that neither all
    processes wait nor all compute. Small ones come last.
    """
    parts: dict[int, list[Group]] = defaultdict(list)
    for group in groups:
        folders = PurePosixPath(group[0].nodeid.partition("::")[0]).parts
        folder = folders[1] if len(folders) > 2 else ""
        parts[0 if folder in _WAITS else 2 if folder in _SMALL else 1].append(group)
    both = [
        (number / len(parts[kind]), kind, group)
        for kind in (0, 1)
        for number, group in enumerate(parts[kind])
    ]
    return [group for _, _, group in sorted(both, key=lambda row: row[:2])] + parts[2]


class Forks:
    """The forks of a run, the files that are left, and what was reported."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session = session
        self._config = session.config
        by_file: dict[Path, Group] = defaultdict(list)
        for item in session.items:
            by_file[item.path].append(item)
        self._groups = in_order(list(by_file.values()))
        self._count = min(count, len(self._groups))
        self._done: set[str] = set()
        self._forks: list[_Fork] = []

    def run(self) -> None:
        """Runs all tests and reports each."""
        # A pipe is a queue for several readers. It has room for more files than there are.
        self._queue, numbers = os.pipe()
        os.write(numbers, b"".join(map(_NUMBER.pack, range(len(self._groups)))))
        os.close(numbers)
        interrupted = False
        try:
            for number in range(self._count):
                reading, writing = os.pipe()
                process = _forked(partial(self._work, number, writing))
                os.close(writing)
                self._forks.append(_Fork(process, reading))
            self._receive()
        except KeyboardInterrupt:
            interrupted = True
            raise
        finally:
            while os.read(self._queue, _READ_BYTES):
                pass
            for fork in self._forks:
                fork.end(interrupt=not interrupted)
        self._report_missing()

    def _receive(self) -> None:
        """Reports what the forks send, until all have ended."""
        with selectors.DefaultSelector() as selector:
            for fork in self._forks:
                selector.register(fork.pipe, selectors.EVENT_READ, fork)
            while selector.get_map():
                for key, _ in selector.select(_LOOK_SECONDS):
                    self._read(key.data)
                for fork in [key.data for key in selector.get_map().values()]:
                    # What a test left running may hold the other end of the pipe.
                    if fork.has_ended():
                        while self._read(fork):
                            pass
                        selector.unregister(fork.pipe)

    def _read(self, fork: "_Fork") -> bool:
        part = fork.read()
        for message in _messages(fork.buffer):
            self._report(*message)
        return part

    def _report(self, nodeid: str, location: Any, reports: Sequence[dict[str, Any]]) -> None:
        hook = self._config.hook
        hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        for data in reports:
            report = hook.pytest_report_from_serializable(config=self._config, data=data)
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
        self._done.add(nodeid)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)

    def _report_missing(self) -> None:
        ends = ", ".join(str(fork.status) for fork in self._forks if fork.status)
        for item in self._session.items:
            if item.nodeid not in self._done:
                report = pytest.TestReport(
                    nodeid=item.nodeid,
                    location=item.location,
                    keywords={},
                    outcome="failed",
                    longrepr=f"its process ended before it (status {ends})",
                    when="call",
                )
                self._config.hook.pytest_runtest_logreport(report=report)

    def _work(self, number: int, pipe: int) -> None:
        """Runs files in a fork until none is left."""
        manager = self._config.pluginmanager
        capture = manager.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        manager.unregister(name="terminalreporter")
        manager.register(_Silent(), "terminalreporter")
        manager.register(_Sender(self._config, pipe))
        factory = self._config._tmp_path_factory
        factory._basetemp = factory.mktemp(f"fork{number}", numbered=False)
        random.seed()
        left = self._left()
        item = next(left, None)
        try:
            while item is not None and not self._session.shouldstop:
                following = next(left, None)
                self._config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                item = following
        finally:
            self._session._setupstate.teardown_exact(None)

    def _left(self) -> Iterator[pytest.Item]:
        while number := os.read(self._queue, _NUMBER.size):
            yield from self._groups[_NUMBER.unpack(number)[0]]


class _Fork:
    """A fork that runs tests, as this process sees it."""

    def __init__(self, process: int, pipe: int) -> None:
        self.pipe = pipe
        self.buffer = bytearray()
        self.status: int | None = None
        self._process = process
        os.set_blocking(pipe, False)

    def read(self) -> bool:
        """Reads a part of what it sent; False when there is nothing."""
        try:
            part = os.read(self.pipe, _READ_BYTES)
        except BlockingIOError:
            return False
        self.buffer += part
        return bool(part)

    def has_ended(self, options: int = os.WNOHANG) -> bool:
        """True when it has ended, with a status."""
        if self.status is None:
            process, status = os.waitpid(self._process, options)
            self.status = os.waitstatus_to_exitcode(status) if process else None
        return self.status is not None

    def end(self, *, interrupt: bool) -> None:
        """Waits for its end. An interrupt of the terminal has come to it, too."""
        os.close(self.pipe)
        if interrupt and not self.has_ended():
            os.kill(self._process, signal.SIGINT)
        self.has_ended(0)


class _Silent:
    """Stands for the reporter of a terminal in a fork, where plug-ins ask for its writer."""

    def __init__(self) -> None:
        self._tw = TerminalWriter(io.StringIO())


class _Sender:
    """A plug-in that sends the reports of a test when it has ended."""

    def __init__(self, config: pytest.Config, pipe: int) -> None:
        self._config = config
        self._pipe = pipe
        self._reports: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the report of a phase."""
        to_data = self._config.hook.pytest_report_to_serializable
        self._reports.append(to_data(config=self._config, report=report))

    def pytest_runtest_logfinish(self, nodeid: str, location: object) -> None:
        """Sends the reports of all phases."""
        message = pickle.dumps((nodeid, location, self._reports))
        self._reports = []
        left = memoryview(_LENGTH.pack(len(message)) + message)
        while left:
            left = left[os.write(self._pipe, left) :]


def _messages(buffer: bytearray) -> Iterator[Any]:
    """The whole messages at the beginning of a buffer, which are taken out of it."""
    begin = 0
    while len(buffer) >= begin + _LENGTH.size:
        end = begin + _LENGTH.size + _LENGTH.unpack_from(buffer, begin)[0]
        if len(buffer) < end:
            break
        yield pickle.loads(buffer[begin + _LENGTH.size : end])
        begin = end
    del buffer[:begin]


def _forked(work: Callable[[], None]) -> int:
    """The process id of a fork that does some work and ends."""
    sys.stdout.flush()
    sys.stderr.flush()
    if child := os.fork():
        return child
    # What was registered so far is for the end of the process that registered it.
    atexit._clear()
    status = 1
    try:
        work()
        status = 0
    except (KeyboardInterrupt, BrokenPipeError):
        status = 2
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        atexit._run_exitfuncs()
        os._exit(status)
