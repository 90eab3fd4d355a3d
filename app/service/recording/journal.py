"""The journal: a recorder's appends, with reports that hold the positions to resume from.

A report is an event about the import. It holds the fidelity report at that time, from which the
doubts of answers are read. For each kind it also holds the cluster's resource version up to which
all changes are in the log. Once the recording has begun, the append of every gap contains a report,
so that no gap is ever without its doubt.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio

from app.analysis.recordings.fidelity import FidelityCollector
from app.domain.errors import ChainBroken, HeadMoved, LogUnavailable
from app.domain.log import Event, Head, HistoryInfo, LeaseToken
from app.domain.log.records import WATCH, Loss, Op, Record, comparable_version
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND
from app.ports import Clock, EventLog
from app.service.recorded_events import Sealer, import_draft, record_draft
from app.service.recording.window import WindowEntry

RECORDING, STOPPED, FINISHED = "recording", "stopped", "finished"
"""The phases of a recording in its reports: it continues, was stopped, or was one snapshot."""

GAPS_NAMED_MAX = 10
"""The gaps that are kept to be named; all are counted."""

_NUMBER = re.compile(r"[0-9]+")
_PATH = re.compile(r"/apis?/\S+: ")


@dataclass(slots=True, kw_only=True)
class RecordingProgress:
    """The recorded facts about a recording: the counts of its report, positions by kind, notes.

    `newest` is the newest version of the common counter that an event has. `alone` are the kinds
    that have another counter.
    """

    collector: FidelityCollector = field(default_factory=FidelityCollector)
    positions: dict[str, str] = field(default_factory=dict)
    newest: str = ""
    alone: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    def note_newest(self, record: Record) -> None:
        """Take in the version of a watched change, if the change uses the common counter."""
        if record.position == WATCH and Loss.NO_RV not in record.losses:
            newest = comparable_version(self.newest)
            if comparable_version(record.resource_version) > newest:
                self.newest = record.resource_version


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalBounds:
    """Bounds of a journal.

    `report_seconds` is the longest time without a report while objects change. An unavailable store
    is tried again after a pause that doubles up to `pause_seconds_max`.
    """

    report_seconds: float = 300.0
    pause_seconds: float = 0.2
    pause_seconds_max: float = 10.0


def _keep_quiet(_problem: str) -> None:
    """Report no waiting."""


@dataclass(slots=True)
class AlikeGaps:
    """Gaps whose texts differ only in numbers, or in the kind: the last text, and how many.

    A text names the object, or the kind alone. `kinds` are those of gaps of whole kinds.
    """

    text: str
    count: int = 1
    kinds: list[str] = field(default_factory=list)

    def join(self, later: "AlikeGaps") -> None:
        """Take in later gaps that are alike."""
        self.text, self.count = later.text, self.count + later.count
        self.kinds += [kind for kind in later.kinds if kind not in self.kinds]


@dataclass(slots=True)
class NewGaps:
    """The gaps that were stored and that nobody has read since, by what they have in common.

    The first `GAPS_NAMED_MAX` are kept that differ; all are counted.
    """

    alike: dict[str, AlikeGaps] = field(default_factory=dict)
    count: int = 0

    def note(self, record: Record) -> None:
        """Add a gap."""
        self.count += 1
        name = "/".join(part for part in (record.namespace, record.name) if part)
        kind = ".".join(part for part in (record.resource, record.group) if part)
        about = " ".join(part for part in (record.resource, name) if part)
        message = record.message or ""
        text = f"{about}: {message}" if name else message
        shape = text if name else _PATH.sub("", message).replace(f"changes of {kind} ", "")
        shape = _NUMBER.sub("", shape)
        gap = AlikeGaps(text, kinds=[] if name or not kind else [kind])
        if shape in self.alike:
            self.alike[shape].join(gap)
        elif len(self.alike) < GAPS_NAMED_MAX:
            self.alike[shape] = gap


class Journal:
    """Appends to one history. A lease ensures that no other recorder appends.

    `problem` is the reason why the store takes nothing at present; `note` is called with each.
    """

    def __init__(
        self,
        log: EventLog,
        info: HistoryInfo,
        *,
        head: Head,
        progress: RecordingProgress,
        clock: Clock,
        secrets: SecretCipher | None,
        bounds: JournalBounds,
        leases: Sequence[LeaseToken] = (),
        note: Callable[[str], None] = _keep_quiet,
    ) -> None:
        self._log = log
        self._info = info
        self._clock = clock
        self._secrets = secrets
        self._bounds = bounds
        self._leases = leases
        self._note = note
        self._reported = clock.steady()
        self._is_changed = False
        self.head = head
        self.progress = progress
        self.problem = ""
        self._gaps = NewGaps()

    def new_gaps(self) -> NewGaps:
        """The gaps that were stored since the last call."""
        gaps, self._gaps = self._gaps, NewGaps()
        return gaps

    async def begin(self, body: JsonObject) -> None:
        """Append the event that names the recorded cluster."""
        sealer = self._sealer()
        await self._append([sealer.seal(import_draft(self._info.name, sealer.time, body))])

    async def add(self, records: Sequence[Record]) -> None:
        """Append records as they are, without a report."""
        await self.write(
            [WindowEntry(kind="", record=record) for record in records], may_report=False
        )

    async def write(self, entries: Sequence[WindowEntry], *, may_report: bool = True) -> None:
        """Append the records of entries, with a report when one is required or due."""
        progress, sealer = self.progress, self._sealer()
        events: list[Event] = []
        wants_report = False
        for entry in entries:
            record = entry.record
            if entry.is_restored:
                progress.newest = ""
            if record is not None:
                progress.collector.add(record)
                progress.note_newest(record)
                events.append(sealer.seal(record_draft(record, sealer.advance(record))))
                wants_report = wants_report or record.op is Op.GAP
            if entry.is_lost:
                progress.positions.pop(entry.kind, None)
            if entry.version:
                progress.positions[entry.kind] = entry.version
            if entry.is_listed:
                resource, _, group = entry.kind.partition(".")
                progress.collector.note_listed(group, resource)
                wants_report = True
        self._is_changed = self._is_changed or bool(events)
        is_due = self._is_changed and (
            self._clock.steady() - self._reported >= self._bounds.report_seconds * SECOND
        )
        if may_report and (wants_report or is_due):
            events.append(self._report(sealer, RECORDING))
        if events:
            await self._append(events)
        for entry in entries:
            if entry.record is not None and entry.record.op is Op.GAP:
                self._gaps.note(entry.record)

    async def report(self, phase: str) -> None:
        """Append a report."""
        await self._append([self._report(self._sealer(), phase)])

    def _report(self, sealer: Sealer, phase: str) -> Event:
        self._reported, self._is_changed = self._clock.steady(), False
        progress = self.progress
        body: JsonObject = {
            "phase": phase,
            "report": progress.collector.report(notes=progress.notes).to_json(),
            "counted": progress.collector.counted(),
            "positions": dict(sorted(progress.positions.items())),
            "newest": progress.newest,
            "alone": sorted(progress.alone),
        }
        return sealer.seal(import_draft(self._info.name, sealer.time, body))

    def _sealer(self) -> Sealer:
        return Sealer(self.head, self._info.created, self._secrets)

    async def _append(self, events: Sequence[Event]) -> None:
        """Append, however long the store is unavailable: changes wait in the window.

        Raises StaleLease and HeadMoved when another recorder has taken over.
        """
        pause = self._bounds.pause_seconds
        while True:
            try:
                self.head = await self._append_once(events)
                break
            except LogUnavailable as problem:
                if str(problem) != self.problem:
                    self.problem = str(problem)
                    self._note(self.problem)
                await anyio.sleep(pause)
                pause = min(pause * 2, self._bounds.pause_seconds_max)
        self.problem = ""

    async def _append_once(self, events: Sequence[Event]) -> Head:
        """The head after an append, which may have been done although its answer was lost."""
        try:
            return await self._log.append(
                self._info.id, expected=self.head, events=events, leases=self._leases
            )
        except (HeadMoved, ChainBroken):
            stored = await self._log.head(self._info.id)
            if stored.hash != events[-1].hash:
                raise
            return stored
