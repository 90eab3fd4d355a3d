"""Reading of recordings: from paths to one ordered, joined stream of records.

paths → files (folders walked, archives opened) → format of each → readers
      → normalised records in a spool → places → resolved records
"""

import dataclasses
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import TracebackType

from app.adapters.history import detection, unpacking
from app.adapters.history.archives import Unpacked
from app.adapters.history.audit import lines
from app.adapters.history.detection import Format
from app.adapters.history.formats import (
    component_logs,
    dumps,
    khi,
    kshrk,
    kwok,
    list_pages,
    simkube,
    simulator,
    watch,
)
from app.adapters.history.formats.later_lists import LaterLists
from app.adapters.history.joining import normalising, odd_times, placing
from app.adapters.history.joining.applied_manifests import AppliedManifests
from app.adapters.history.joining.printed_objects import PrintedObjects
from app.adapters.history.joining.resolving import Resolver
from app.adapters.history.joining.spool import Spool, replace_times
from app.adapters.history.joining.unlisted import ListsBesideLog
from app.adapters.history.limits import ImportLimits
from app.adapters.history.reading import Notes, ReadOptions, SkippedRecord
from app.adapters.history.sources import Finder, SourceFile
from app.adapters.history.storage import etcd, etcdctl, kine
from app.adapters.history.unpacking import ByteSource
from app.analysis.recordings.releases import ReleaseEvidence
from app.domain.errors import InputError
from app.domain.log.records import CHANGES, Contradiction, Loss, Op, Record
from app.domain.objects.rules import Rules
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject

LOGS = frozenset(
    {
        Format.AUDIT,
        Format.WATCH,
        Format.KWOK,
        Format.KHI,
        Format.SIMKUBE,
        Format.SIMULATOR_RECORD,
        Format.ETCD,
        Format.KINE,
    }
)
"""Formats that record changes. Next to one of them, manifests are inputs and not history."""

_NAMESPACE = "kube-system"
CLUSTERS_MAX = 100
"""Clusters that are named as such; more are only read."""


@dataclass(slots=True)
class _Clusters:
    """The clusters of the records of an import, by the uid of their namespace kube-system.

    A cluster keeps this namespace as long as it exists, so that two of its uids name two clusters.
    Tools take this uid for the identity of a cluster.
    """

    _places: dict[Uid, str] = field(default_factory=dict)

    def note(self, record: Record, notes: Notes) -> None:
        """Examine a record; one of another cluster than the first is noted as a loss."""
        if record.name != _NAMESPACE or record.resource != "namespaces" or record.group:
            return
        if not record.uid or record.op not in CHANGES or Loss.PRINTED in record.losses:
            return
        if record.uid in self._places or len(self._places) >= CLUSTERS_MAX:
            return
        first = next(iter(self._places.values()), "")
        self._places[record.uid] = record.place
        if first:
            notes.lose(
                InputError(
                    f"{_NAMESPACE} has another uid than at {first}: the files are of different "
                    "clusters, whose objects are mixed up in this history",
                    place=record.place,
                    cure="import the files of each cluster into a history of its own",
                )
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """The name, format, digest and size of one source file, for the report."""

    name: str
    format: str
    sha256: str
    bytes: int


_BESIDE = "manifests beside a log, left out"
"""The name under which objects are counted that are taken for inputs of a log."""

_INPUTS = "manifests beside a log, which are read only if the file itself is named"


class RecordedHistory:
    """A recorded history that was read, joined and checked.

    Use as a context manager: leaving removes the temporary store.
    """

    def __init__(
        self,
        name: str,
        sources: tuple[SourceInfo, ...],
        spool: Spool,
        notes: Notes,
        rules: Rules | None,
        resources: frozenset[tuple[str, str]],
        releases: ReleaseEvidence,
    ) -> None:
        self.releases = releases
        """The evidence in the recording for the Kubernetes release of its cluster."""
        self.resources = resources
        """Group and plural of resources with recorded changes, not of merely requested ones."""
        self._name = name
        self._rules = rules
        self.sources = sources
        self._spool = spool
        self._notes = notes

    def __enter__(self) -> "RecordedHistory":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._spool.close_after(problem)

    def close(self) -> None:
        """Remove the temporary store."""
        self._spool.close()

    @property
    def name(self) -> str:
        """The paths, for messages."""
        return self._name

    @property
    def format(self) -> str:
        """The formats that were read, joined by a plus sign."""
        return "+".join(sorted({source.format for source in self.sources}))

    @property
    def count(self) -> int:
        """The number of records read; the resolved stream may have a few more or fewer."""
        return self._spool.count

    @property
    def notes(self) -> tuple[str, ...]:
        """Guesses and assumptions, as sentences.

        The list is complete once `records` has been read.
        """
        return tuple(self._notes.sentences())

    @property
    def beside(self) -> int:
        """The number of manifests that were left out beside a log, readable or not.

        The number is complete once `records` has been read.
        """
        counts = self._notes.counts
        return counts.get(_BESIDE, 0) + counts.get(f"unreadable {_BESIDE}", 0)

    @property
    def refusals(self) -> tuple[SkippedRecord, ...]:
        """The refused records, up to a bound."""
        return tuple(self._notes.refusals)

    @property
    def refused(self) -> int:
        """The number of refused records."""
        return self._notes.refused

    @property
    def refused_places(self) -> list[tuple[str, str]]:
        """The place and problem of each kept refusal."""
        return [(refusal.place, refusal.problem) for refusal in self._notes.refusals]

    @property
    def left_out(self) -> list[tuple[str, str]]:
        """Files and parts of files that hold no objects, with the reason for each."""
        return [
            (place, f"{reason} ({count})" if count > 1 else reason)
            for (place, reason), count in self._notes.left_out.items()
        ]

    @property
    def contradictions(self) -> Sequence[Contradiction]:
        """The first contradictions between sources.

        The list is complete once `records` has been read.
        """
        return tuple(self._notes.contradictions)

    @property
    def described(self) -> list[JsonObject]:
        """The source files with formats and digests, for the log."""
        return [
            {
                "name": source.name,
                "format": source.format,
                "sha256": source.sha256,
                "bytes": source.bytes,
            }
            for source in self.sources
        ]

    def records(self) -> Iterator[Record]:
        """The resolved records in order. Each call yields the same stream."""
        rows = list(self._spool.times())
        requests = odd_times.PackedRequests(self._spool.requests())
        early = odd_times.too_early(requests, rows)
        undated = odd_times.before_creation(early, rows, self._spool.creations())
        for place in (*odd_times.outliers(requests), *undated):
            rows[place] = (None, False)
        settled = replace_times(rows)
        schemas = None if self._rules is None else self._rules.schemas
        yield from Resolver(self._spool, self._notes, schemas).records(settled)


def open_history(paths: Sequence[Path], options: ReadOptions) -> RecordedHistory:
    """Read the recordings at the paths. Raises InputError, and then removes all temporary data."""
    if options.format not in ("auto", *detection.NAMED):
        raise InputError(
            f"there is no format {options.format!r}",
            place="--format",
            cure=f"choose from auto, {', '.join(detection.NAMED)}",
        )
    try:
        return _read(paths, options)
    except InputError as problem:
        is_offered = options.way_on and not options.keep_going
        if not is_offered or not _has_rest(paths, dataclasses.replace(options, keep_going=True)):
            raise
        cure = ", ".join(text for text in (problem.cure, options.way_on) if text)
        raise type(problem)(problem.problem, place=problem.place, cure=cure) from problem


def _read(paths: Sequence[Path], options: ReadOptions) -> RecordedHistory:
    notes = Notes(keep_going=options.keep_going, refusals_max=options.limits.refusals_max)
    with Unpacked(options.limits, notes) as unpacked:
        releases = ReleaseEvidence()
        files = Finder(options, notes, unpacked, releases).find(paths)
        return _opened(paths, files, options, notes, releases)


def _has_rest(paths: Sequence[Path], options: ReadOptions) -> bool:
    """Whether the sources hold anything beside what cannot be read."""
    notes = Notes(keep_going=True, refusals_max=0)
    with suppress(InputError), Unpacked(options.limits, notes) as unpacked:
        files = Finder(options, notes, unpacked).find(paths)
        for record in _read_all(files, options, notes, ListsBesideLog()):
            with suppress(InputError):
                if normalising.normalise(record, options, notes) is not None:
                    return True
    return False


def _opened(
    paths: Sequence[Path],
    files: list[SourceFile],
    options: ReadOptions,
    notes: Notes,
    releases: ReleaseEvidence,
) -> RecordedHistory:
    spool = Spool(options.limits)
    resources: set[tuple[str, str]] = set()
    clusters = _Clusters()
    printed = PrintedObjects(spool, notes)
    applied = AppliedManifests(spool, notes)
    beside = ListsBesideLog()
    every = _read_all(files, options, notes, beside)
    records = chain(printed.held_back(every), _of_texts(printed.alone(), notes))
    try:
        for record in records:
            try:
                normal = normalising.normalise(record, options, notes)
                if normal is not None:
                    if not spool.add(normal):
                        notes.count("records that repeat an earlier line of a log, left out")
                        continue
                    applied.note(record, normal, spool.count)
                    releases.add(normal)
                    clusters.note(normal, notes)
                    if normal.op in CHANGES:
                        resources.add((normal.group, normal.resource))
            except InputError as problem:
                notes.refuse(problem)
        if not spool.count:
            raise _nothing(paths, notes)
        applied.settle()
        placing.place(spool, one_counter=options.one_counter, notes=notes)
        beside.conclude(spool, list_pages.chains(notes.pages), notes)
        infos = tuple(dict.fromkeys(_info(file) for file in files))
    except BaseException as problem:
        spool.close_after(problem)
        raise
    name = " ".join(path.name for path in paths)
    return RecordedHistory(name, infos, spool, notes, options.rules, frozenset(resources), releases)


def is_bundle(path: Path) -> bool:
    """True when the path is a native bundle, which is imported event by event."""
    if not path.is_file():
        return False
    if not detection.is_zip(unpacking.file_source(path, path.name, ImportLimits())):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return detection.is_bundle(set(archive.namelist()))
    except (OSError, zipfile.BadZipFile) as problem:
        with path.open("rb") as file:
            if not detection.begins_bundle(file.read(detection.HEAD_BYTES)):
                return False
        raise InputError(
            "the bundle is cut or damaged", place=path.name, cure="copy it again"
        ) from problem


def _of_texts(records: Iterator[Record], notes: Notes) -> Iterator[Record]:
    """The records, of which one that is refused is a loss: a text is treated like a folder."""
    with notes.reading(is_named=False):
        yield from records


def _read_all(
    files: list[SourceFile], options: ReadOptions, notes: Notes, beside: ListsBesideLog
) -> Iterator[Record]:
    """The records of all files. Watch streams are read together, to join them at their seams."""
    beside.logs.update(place for place, file in enumerate(files) if file.format in LOGS)
    has_log = bool(beside.logs)
    watches: list[watch.WatchFile] = []
    captures: list[tuple[ByteSource, int]] = []
    lists = LaterLists()
    late: list[SourceFile] = []
    for number, file in enumerate(files):
        # A mixture is treated like a folder: one bad document does not discredit the others.
        with notes.reading(is_named=file.is_named and file.whole is None):
            try:
                match file.format:
                    case Format.WATCH:
                        watches.append(watch.scan(file.source, number, notes))
                        late.append(file)
                    case Format.KSHRK:
                        captures.append((file.source, number))
                        late.append(file)
                    case Format.DUMP | Format.SIMULATOR_EXPORT | Format.SCHEDULER_SNAPSHOT:
                        for record in _read_dump(file, number, options, notes, has_log=has_log):
                            (beside if has_log else lists).note(record, number)
                            yield record
                    case _:
                        yield from _read_one(file, number, options, notes)
            except InputError as problem:
                notes.refuse(problem)
    chains = list_pages.chains(notes.pages)
    for page in chains.cut:
        place = f"{page.source}:{page.position}"
        notes.lose(InputError(list_pages.NEXT_PAGE, place=place))
    with notes.reading(is_named=any(file.is_named for file in late)):
        yield from kshrk.read(captures, options, notes)
        if not has_log:
            yield from lists.ends(chains)
        try:
            yield from watch.read(watches, notes)
        except InputError as problem:
            notes.refuse(problem)


def _read_one(
    file: SourceFile, number: int, options: ReadOptions, notes: Notes
) -> Iterator[Record]:
    """The records of a file that can be read without the others."""
    match file.format:
        case Format.AUDIT:
            yield from lines.read(file.source, number, options, notes)
        case Format.KWOK:
            yield from kwok.read(file.source, number, options, notes)
        case Format.KHI:
            yield from khi.read(file.source, number, notes)
        case Format.SIMKUBE:
            yield from simkube.read(file.source, number, notes)
        case Format.SIMULATOR_RECORD:
            yield from simulator.read(file.source, number, notes)
        case Format.KINE:
            yield from kine.read(file.source, number, notes, next(iter(file.logs), None))
        case Format.ETCD:
            yield from etcd.read(file.source, number, notes, file.logs)
        case Format.ETCDCTL:
            yield from etcdctl.read(file.source, number, notes)
        case Format.PRINTED:
            yield from dumps.read(file.source, number, options, notes, losses=(Loss.PRINTED,))
        case Format.SCHEDULER_LOG:
            yield from component_logs.read(
                file.source, number, options, notes, is_beside_audit=file.is_beside
            )
        case Format.EMPTY:
            notes.count("empty files")
        case _:
            raise InputError(
                f"the format {file.format.value} is not read yet", place=file.source.name
            )


def _read_dump(
    file: SourceFile, number: int, options: ReadOptions, notes: Notes, *, has_log: bool
) -> Iterator[Record]:
    """The objects of a dump.

    In a folder with a log, single manifests are inputs, and are left out. A file of such only may
    also be unreadable without a loss.
    """
    if file.is_named or not has_log:
        yield from dumps.read(file.source, number, options, notes)
        return
    aside = Notes(keep_going=True, refusals_max=notes.refusals_max)
    has_objects = False
    for record in dumps.read(file.source, number, options, aside):
        if record.op is Op.ADDED:
            notes.count(_BESIDE)
            notes.pass_over(file.source.name, _INPUTS)
        else:
            has_objects = True
            yield record
    if has_objects:
        notes.lose_all_of(aside)
        notes.pages += aside.pages
    elif aside.refused:
        notes.count(f"unreadable {_BESIDE}", aside.refused)


def _info(file: SourceFile) -> SourceInfo:
    digest, size = (file.whole or file.source).sha256()
    return SourceInfo(name=file.source.name, format=file.format.value, sha256=digest, bytes=size)


def _nothing(paths: Sequence[Path], notes: Notes) -> InputError:
    place = " ".join(str(path) for path in paths)
    if notes.refusals:
        first = notes.refusals[0]
        return InputError(
            f"no record could be read; {notes.refused} refused, the first: {first.problem}",
            place=first.place or place,
        )
    if notes.pages and not notes.left_out and not any(page.items for page in notes.pages):
        resources = ", ".join(sorted({page.resource for page in notes.pages} - {""}))
        return InputError(
            f"no object is in it: every list of {resources or 'objects'} in it is empty",
            place=place,
            cure="list what the cluster has, in all namespaces (kubectl get pods -A -o yaml)",
        )
    reasons = [f"{name}: {reason}" for name, reason in notes.left_out]
    more = f"; {len(reasons)} left out, the first: {reasons[0]}" if reasons else ""
    return InputError(
        f"there is no object and no request in it{more}",
        place=place,
        cure="give an audit log, a watch stream, a dump or a folder of them",
    )
