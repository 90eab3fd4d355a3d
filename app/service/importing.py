"""Import of recordings: records become the sealed events of a new history.

The source has been read, joined and checked before anything is appended (the adapters keep it in a
temporary store), so a refusal comes before the first append. The first event names the sources and
their digests; the last one carries the fidelity report.

Events are appended to the log directly, in large batches: an import has no readers yet, and
recorded states are stored as they are, without rules.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Protocol

from anyio import create_task_group, to_thread

from app.analysis.recordings.fidelity import FidelityCollector, FidelityReport
from app.domain.errors import InputError
from app.domain.log import Event, Head, HistoryInfo, chain
from app.domain.log.event import EVENTS_PAGE
from app.domain.log.records import Contradiction, Op, Record
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import history_creation, recorded_events
from app.service.history_creation import check_name
from app.service.recorded_events import Sealer


class RecordedSource(Protocol):
    """A recording as the importer reads it; `records` may be called more than once."""

    @property
    def name(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def refused(self) -> int: ...
    @property
    def described(self) -> list[JsonObject]: ...
    @property
    def refused_places(self) -> Sequence[tuple[str, str]]: ...
    @property
    def left_out(self) -> Sequence[tuple[str, str]]: ...
    @property
    def contradictions(self) -> Sequence[Contradiction]: ...
    def records(self) -> Iterator[Record]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Options of an import.

    `with_requests` keeps requests that changed nothing as `RequestObserved` events. `batch_events`
    events are appended in one step. `started` is the time of the first event when no record has a
    time. `settings` are those of the recorded cluster; that it is a recording is added to them.
    """

    with_requests: bool = True
    batch_events: int = EVENTS_PAGE
    seed: int = 0
    settings: JsonObject = field(default_factory=dict)
    started: Instant = Instant(0)
    notes: tuple[str, ...] = ()
    """Sentences for the report, before those of the source."""
    secrets: Callable[[HistoryInfo], SecretCipher] | None = None
    """Returns the cipher for values of Secrets in the new history; None keeps them as recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """A finished import."""

    history: HistoryInfo
    head: Head
    report: FidelityReport


async def check_name_is_free(log: EventLog, name: str, *, place: str = "--history") -> None:
    """Raise InputError when the name, which was given at a place, is invalid or taken.

    Called before a recording is read.
    """
    if await log.find_history(check_name(name)) is not None:
        raise InputError(
            f"the history {name!r} already exists", place=place, cure="choose another name"
        )


async def import_records(
    log: EventLog,
    source: RecordedSource,
    *,
    name: str,
    options: ImportOptions,
    progress: Callable[[int, int], None] | None = None,
) -> ImportResult:
    """Make the history `name` from a recording. Raises InputError when the name is taken.

    `progress` is called with the number of appended records and the number of all. An import that
    fails leaves no history.
    """
    await check_name_is_free(log, name)
    start = _first_time(source, options.started)
    # A history begins when its recording does: times never fall along a log.
    seed, settings = options.seed, options.settings | {"recorded": True}
    make = partial(
        log.create_history,
        seed=seed,
        settings=settings,
        created=start,
        hash=chain.genesis(seed=seed, settings=settings, created=start),
    )
    async with history_creation.unfinished(log, name, make) as info:
        head = await log.head(info.id)
        cipher = None if options.secrets is None else options.secrets(info)
        with closing(_Batches(source, name, Sealer(head, start, cipher), options)) as batches:
            batch = await to_thread.run_sync(batches.next)
            while batch:
                head, batch = await _append_and_prepare(log, info, head, batch, batches)
                if progress is not None:
                    progress(min(head.revision, source.count), source.count)
    return ImportResult(history=info, head=head, report=batches.report())


async def _append_and_prepare(
    log: EventLog, info: HistoryInfo, head: Head, batch: list[Event], batches: "_Batches"
) -> tuple[Head, list[Event]]:
    """Append a batch while a thread makes the next; returns the new head and the next batch."""
    following: list[Event] = []
    problems: list[Exception] = []

    async def prepare() -> None:
        try:
            following.extend(await to_thread.run_sync(batches.next))
        except Exception as problem:
            # Raised below: leaving a task group would wrap it.
            problems.append(problem)

    async with create_task_group() as tasks:
        tasks.start_soon(prepare)
        try:
            head = await log.append(info.id, expected=head, events=batch)
        except Exception as problem:
            problems.append(problem)
    if problems:
        raise problems[0]
    return head, following


class _Batches:
    """The sealed events of an import in batches: the opening, the records, then the report."""

    def __init__(
        self, source: RecordedSource, name: str, sealer: Sealer, options: ImportOptions
    ) -> None:
        self._source = source
        self._name = name
        self._sealer = sealer
        self._options = options
        self._collector = FidelityCollector()
        self._report: FidelityReport | None = None
        self._events = self._all()
        self._reading = threading.Lock()
        self._is_closed = False

    def next(self) -> list[Event]:
        """The next events in order; empty when all have been returned."""
        with self._reading:
            return list(islice(self._events, self._options.batch_events))

    def close(self) -> None:
        """The end of all reading: afterwards the source may be closed.

        A task that Ctrl-C cancels does not wait for its thread, which reads on.
        """
        self._is_closed = True
        with self._reading:
            self._events.close()

    def report(self) -> FidelityReport:
        """The report; available after the last batch was returned."""
        assert self._report is not None, "the report is made with the last batch"
        return self._report

    def _all(self) -> Generator[Event]:
        sealer = self._sealer
        yield sealer.seal(
            recorded_events.import_draft(self._name, sealer.time, _begun(self._source))
        )
        for record in self._source.records():
            if self._is_closed:
                return
            self._collector.add(record)
            if record.op is not Op.CONTEXT or self._options.with_requests:
                yield sealer.seal(recorded_events.record_draft(record, sealer.advance(record)))
        self._report = self._collector.report(
            notes=(
                *self._options.notes,
                *self._source.notes,
            ),
            refused=self._source.refused,
            refusals=self._source.refused_places,
            contradictions=self._source.contradictions,
            left_out=self._source.left_out,
        )
        closing = {"phase": "finished", "report": self._report.to_json()}
        yield sealer.seal(recorded_events.import_draft(self._name, sealer.time, closing))


def _first_time(source: RecordedSource, default: Instant) -> Instant:
    """The time of the first record that has one: records before it happened no later."""
    for record in source.records():
        moment = record.settled_at if record.settled_at is not None else record.observed_at
        if moment is not None:
            return moment
    return default


def _begun(source: RecordedSource) -> JsonObject:
    return {
        "phase": "begun",
        "name": source.name,
        "format": source.format,
        "sources": list(islice(source.described, 1_000)),
        "sourceCount": len(source.described),
    }
