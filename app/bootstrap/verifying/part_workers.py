"""The workers that verify parts of a history beside this process: its forks, or Dask's."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import msgspec
from anyio import to_thread
from anyio.from_thread import BlockingPortal

from app.adapters import packed_events
from app.adapters.packed_events import PackedEvents
from app.analysis.verify.parts import Division, PartFindings, PartVerifier, VerifiedPart
from app.bootstrap import executors, garbage_collection
from app.bootstrap.deciders import deciders_of
from app.bootstrap.executors import Done, Executor, Task
from app.bootstrap.recordings import PROGRAM
from app.bootstrap.verifying import forks
from app.bootstrap.verifying.folding_ahead import AheadBounds, FoldingAhead
from app.bootstrap.verifying.forks import Forks
from app.domain.errors import InputError
from app.domain.log import Event, HistoryInfo, Revision
from app.service.replays.kept_events import KeptEvents

OPTION = "--processes"

WORKERS_MAX = 64
"""The most parts into which a history is divided."""

FORKED = Division(load=0, start=100_000)
"""The costs of a fork: only modules that are loaded on first use, compiled selectors and other
caches are made again."""

AHEAD = replace(FORKED, ahead=30)
"""The costs of a fork that folds while this process checks the log."""

_Data: TypeAlias = tuple[int, HistoryInfo, VerifiedPart]
"""The number of a part, its history, and the part."""

_Content: TypeAlias = bytes | tuple[KeptEvents, bytes]
"""Packed events; a fork also finds those that come before them and are kept in this process."""


def usable() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_of(wanted: int) -> int:
    """The number of parts for a history on this machine; `wanted` of 0 leaves the choice open.

    Raises InputError when more than one is wanted, this process cannot be forked and Dask is not
    installed.
    """
    if forks.ARE_POSSIBLE:
        return wanted or min(usable(), WORKERS_MAX)
    if wanted > 1:
        executors.check_installed(OPTION)
    return wanted or (min(usable(), WORKERS_MAX) if executors.is_installed() else 1)


def verify_part_elsewhere(content: bytes, data: _Data) -> PartFindings:
    """Verify a part on a worker that is no fork of this process, and goes on after it."""
    garbage_collection.expect_large_heap()
    return verify_part(content, data)


def verify_part(content: _Content, data: _Data) -> PartFindings:
    """Verify a part of the history whose events are the content.

    A fork looks for garbage as seldom as the process that has made it, so not at its end either.
    """
    _, history, part = data
    verifier = PartVerifier(part, deciders_of(history))
    with garbage_collection.one_pass():
        for events in _pages(content):
            for event in events:
                if event.revision > part.until:
                    return verifier.findings()
                verifier.take_sound(event)
            executors.send_message(events[-1].revision)
        return verifier.findings()


def _pages(content: _Content) -> Iterator[Sequence[Event]]:
    kept, packed = (None, content) if isinstance(content, bytes) else content
    if kept is not None:
        yield from kept.read()
    yield from packed_events.unpack(packed)


class PartWorkers:
    """Verifies parts on workers. A context manager: leaving ends the workers it has started.

    With a `scheduler`, the workers of its cluster are used and `count` is ignored. Otherwise up to
    `count` - 1 workers are started here when there is work: forks where that is possible, else
    Dask's. At most `bytes_max` of packed events are kept for them; beyond that this process
    verifies the history alone. A fork that does nothing for `silence_seconds` is replaced; one
    that uses `step_seconds` of processor time between two messages fails the verification. Of
    `events`, the number of events that are read, and `bounds` depends whether forks fold ahead.
    Raises InputError on entering when no scheduler answers.
    """

    def __init__(
        self,
        history: HistoryInfo,
        *,
        count: int,
        bytes_max: int,
        scheduler: str = "",
        events: int = 0,
        silence_seconds: float = forks.SILENCE_SECONDS,
        step_seconds: float = forks.STEP_SECONDS,
        bounds: AheadBounds = AheadBounds(),
    ) -> None:
        self._history = history
        self._count = count
        self._bytes_max = bytes_max
        self._scheduler = scheduler
        self._silence_seconds, self._step_seconds = silence_seconds, step_seconds
        self._events = PackedEvents()
        self._kept: KeptEvents | None = None
        self._open = ExitStack()
        self._executor: Executor | None = None
        self._forks: Forks | None = None
        self._events_count = events
        self._bounds = bounds
        self._ahead: FoldingAhead | None = None
        self._beside = 0

    def __enter__(self) -> "PartWorkers":
        if self._scheduler:
            self._executor = self._open.enter_context(executors.opened(0, self._scheduler))
            self._count = min(self._executor.width, WORKERS_MAX - 1) + 1
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def count(self) -> int:
        """The number of parts into which the history may be divided."""
        return self._count

    @property
    def division(self) -> Division:
        """The costs of starting these workers."""
        if self._goes_ahead:
            return AHEAD
        return FORKED if self._forks_here else Division()

    @property
    def _forks_here(self) -> bool:
        return forks.ARE_POSSIBLE and not self._scheduler

    @property
    def _goes_ahead(self) -> bool:
        """Whether forks fold ahead: of a recording, they have little to fold."""
        return (
            self._forks_here
            and self._count > 1
            and self._bounds.forks_max > 0
            and self._events_count >= self._bounds.events_min
            and not (self._history.is_recorded or self._history.is_fork)
        )

    def expect(self, beside: int) -> None:
        """Note what this process does besides: by as much, parts of others begin earlier."""
        self._beside = beside

    def keep(self, events: Sequence[Event], kept: KeptEvents | None) -> None:
        """Keep the events for the workers; forks find those that this process keeps anyway."""
        if self._count == 1:
            return
        if self._forks_here and kept is not None:
            try:
                if self._kept is None and self._goes_ahead:
                    self._begin_ahead()
                if self._ahead is not None:
                    self._ahead.add(events)
            except OSError:
                self._end_ahead()
            self._kept = kept
            return
        self._end_ahead()
        self._events.add(events)
        if self._events.size > self._bytes_max:
            self._count = 1
            self._events.clear()

    async def start(self, parts: Sequence[VerifiedPart]) -> None:
        """Start a local worker for each part, unless there are workers.

        They are ready some time later.
        """
        if self._forks_here:
            content, tasks = self._tasks(parts)
            running = self._forks or self._new_forks()
            running.content = content if self._kept is None else (self._kept, content)
            begun = {}
            if self._ahead is not None:
                try:
                    begun = self._ahead.assign(parts)
                except OSError:
                    self._end_ahead()
            running.start(tasks, begun)
        elif self._executor is None:
            opened = executors.opened(len(parts), "", waits=False)
            # Not interrupted in between: a half-started executor would be left behind.
            self._executor = await to_thread.run_sync(self._open.enter_context, opened)

    async def verify(
        self, parts: Sequence[VerifiedPart], reached: Callable[[int, Revision], None]
    ) -> list[PartFindings]:
        """Verify the parts for which workers were started, each on one worker.

        Raises InputError when all workers that tried a part have died.
        """
        async with BlockingPortal() as portal:

            def report(task: Task, message: object) -> None:
                portal.start_task_soon(reached, task.data[0], Revision(int(str(message))))

            running = partial(self._run, parts, report)
            answers = await to_thread.run_sync(running, abandon_on_cancel=True)
        return list(answers)

    def _run(
        self, parts: Sequence[VerifiedPart], on_message: executors.OnMessage
    ) -> list[PartFindings]:
        by_place: dict[int, PartFindings] = {}
        for done in self._results(parts, on_message):
            place, _, part = done.task.data
            if done.problem:
                raise InputError(
                    f"revisions {part.after + 1} to {part.until} could not be verified by a "
                    f"worker: {done.problem}",
                    place=OPTION,
                    cure="use fewer processes, or 1, which needs the least memory",
                )
            by_place[place] = done.result
        return [by_place[place] for place in range(len(parts))]

    def _results(
        self, parts: Sequence[VerifiedPart], on_message: executors.OnMessage
    ) -> Iterator[Done]:
        if self._forks is not None:
            return self._forks.results(on_message)
        assert self._executor is not None, "workers were started"
        content, tasks = self._tasks(parts)
        return self._executor.map(
            verify_part_elsewhere, {tasks[0].bundle: content}, tasks, on_message
        )

    def _new_forks(self) -> Forks:
        self._forks = Forks(
            function=verify_part,
            content=b"",
            silence_seconds=self._silence_seconds,
            step_seconds=self._step_seconds,
        )
        self._open.callback(self._forks.close)
        return self._forks

    def _begin_ahead(self) -> None:
        """Start forks that fold ahead. Raises OSError when there is no memory for the events."""
        running = self._new_forks()
        self._ahead = FoldingAhead(
            running,
            self._history,
            self._events_count,
            self._count,
            replace(self.division, beside=self._beside),
            self._bounds,
        )
        self._open.callback(self._ahead.close)

    def _end_ahead(self) -> None:
        """Let forks be made when the log is checked."""
        if self._forks is not None:
            self._forks.end_early()
        self._ahead = None

    def _tasks(self, parts: Sequence[VerifiedPart]) -> tuple[bytes, list[Task]]:
        """The packed events, and a task for each part."""
        content = self._events.content()
        bundle = hashlib.sha256(content).hexdigest()
        return content, [
            Task(
                digest=self._digest(bundle, part),
                bundle=bundle,
                data=(place, self._history, part),
            )
            for place, part in enumerate(parts)
        ]

    def _digest(self, bundle: str, part: VerifiedPart) -> str:
        settings = msgspec.json.encode(self._history.settings, order="sorted")
        words = [PROGRAM, bundle, part.after, part.until, part.ends]
        return hashlib.sha256(repr(words).encode() + settings).hexdigest()
