"""From paths on the command line to one ordered, joined stream of records.

paths → files (folders walked, archives listed) → format of each → readers
      → normalised records in a spool → places → resolved records
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from app.adapters.history import detection, documents, unpacking
from app.adapters.history.audit import lines
from app.adapters.history.detection import Format
from app.adapters.history.formats import dumps, kwok, simkube, simulator, watch
from app.adapters.history.joining import normalising, placing
from app.adapters.history.joining.resolving import Resolver
from app.adapters.history.joining.spool import Spool, replace_times
from app.adapters.history.limits import ImportLimits
from app.adapters.history.reading import Notes, ReadOptions, SkippedRecord
from app.adapters.history.storage import etcd, kine
from app.adapters.history.unpacking import ByteSource
from app.analysis.recordings.releases import ReleaseEvidence
from app.domain.errors import InputError
from app.domain.log.records import CHANGES, Contradiction, Op, Record
from app.domain.objects.rules import Rules
from app.domain.values.json_tree import JsonObject

UNREAD = {
    Format.TAR: "unpack it and give the folder",
    Format.KSHRK: "kshrk archives are not read yet",
}
"""What to do about formats that are told apart and not read."""


LOGS = frozenset(
    {
        Format.AUDIT,
        Format.WATCH,
        Format.KWOK,
        Format.SIMKUBE,
        Format.SIMULATOR_RECORD,
        Format.ETCD,
        Format.KINE,
    }
)
"""Formats that tell of changes; beside one of them manifests are inputs, not history."""

SUFFIXES = (
    ".yaml",
    ".yml",
    ".json",
    ".jsonl",
    ".ndjson",
    ".log",
    ".db",
    ".zip",
    ".kwok",
    ".sktrace",
)
"""Endings of the files that are looked at in a folder, `.gz` after them or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of an import: where it is, what it is, and a digest of its bytes."""

    source: ByteSource
    format: Format
    is_named: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """What a report says of one file."""

    name: str
    format: str
    sha256: str
    bytes: int


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
        """What the recording says of the release of its cluster."""
        self.resources = resources
        """Group and plural of what was there, not of what was only asked for."""
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
        self.close()

    def close(self) -> None:
        """Remove what was kept while reading."""
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
        """How many records were read; the resolved stream has a few more or less."""
        return self._spool.count

    @property
    def notes(self) -> tuple[str, ...]:
        """Guesses and assumptions, as sentences; complete once `records` has been read."""
        counted = (f"{name}: {count}" for name, count in sorted(self._notes.counts.items()))
        return (*self._notes.texts, *counted)

    @property
    def refusals(self) -> tuple[SkippedRecord, ...]:
        """What was passed over, the first of it when it is much."""
        return tuple(self._notes.refusals)

    @property
    def refused(self) -> int:
        """How much was passed over."""
        return self._notes.refused

    @property
    def refused_places(self) -> list[tuple[str, str]]:
        """The kept refusals as place and problem."""
        return [(refusal.place, refusal.problem) for refusal in self._notes.refusals]

    @property
    def contradictions(self) -> Sequence[Contradiction]:
        """What sources show differently, the first of it; complete once `records` has been read."""
        return tuple(self._notes.contradictions)

    @property
    def described(self) -> list[JsonObject]:
        """The files with formats and digests, for the log."""
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
        """The final records in order. May be called again for the same stream."""
        settled = replace_times(self._spool.times())
        schemas = None if self._rules is None else self._rules.schemas
        yield from Resolver(self._spool, self._notes, schemas).records(settled)


def open_history(paths: Sequence[Path], options: ReadOptions) -> RecordedHistory:
    """Read everything that the paths name. Raises InputError; nothing is left behind then."""
    if options.format not in ("auto", *detection.NAMED):
        raise InputError(
            f"there is no format {options.format!r}",
            place="--format",
            cure=f"choose from auto, {', '.join(detection.NAMED)}",
        )
    notes = Notes(keep_going=options.keep_going, refusals_max=options.limits.refusals_max)
    files = find_files(paths, options, notes)
    spool = Spool(options.limits)
    resources: set[tuple[str, str]] = set()
    releases = ReleaseEvidence()
    try:
        for record in _read_all(files, options, notes):
            try:
                normal = normalising.normalise(record, options, notes)
                if normal is not None:
                    if not spool.add(normal):
                        notes.count("records that repeat an earlier line of a log, left out")
                        continue
                    releases.add(normal)
                    if normal.op in CHANGES:
                        resources.add((normal.group, normal.resource))
            except InputError as problem:
                notes.refuse(problem)
        if not spool.count:
            raise _nothing(paths, notes)
        placing.place(spool, one_counter=options.one_counter, notes=notes)
        infos = tuple(_info(file) for file in files)
    except BaseException:
        spool.close()
        raise
    name = " ".join(path.name for path in paths)
    return RecordedHistory(name, infos, spool, notes, options.rules, frozenset(resources), releases)


def is_bundle(path: Path) -> bool:
    """True when the path is a native bundle, which is imported event by event."""
    if not path.is_file():
        return False
    source = unpacking.file_source(path, path.name, ImportLimits())
    return detection.is_zip(source) and detection.detect_zip(path, path.name) is Format.BUNDLE


def find_files(paths: Sequence[Path], options: ReadOptions, notes: Notes) -> list[SourceFile]:
    """The files that the paths name, with their formats, in a fixed order. Raises InputError."""
    files: list[SourceFile] = []
    for path in paths:
        if path.is_dir():
            files.extend(_in_folder(path, options, notes))
        else:
            files.extend(_in_file(path, path.name, options, notes, is_named=True))
        if len(files) > options.limits.sources_max:
            raise InputError(
                f"more than {options.limits.sources_max} files",
                place=str(path),
                cure="split the import or raise sources_max",
            )
    return files


def _in_folder(folder: Path, options: ReadOptions, notes: Notes) -> Iterator[SourceFile]:
    seen = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_symlink() or not path.is_file() or path.name.startswith("."):
            continue
        seen += 1
        if len(name.parts) > options.limits.path_depth_max or seen > options.limits.sources_max:
            raise InputError(
                f"{name} lies deeper than {options.limits.path_depth_max} folders, or the folder "
                f"holds more than {options.limits.sources_max} files",
                place=str(folder),
                cure="name the files that matter",
            )
        if not _is_readable_name(path.name):
            notes.count("files left out for their names")
            continue
        yield from _in_file(path, name.as_posix(), options, notes, is_named=False)


def _is_readable_name(name: str) -> bool:
    return name.lower().removesuffix(".gz").endswith(SUFFIXES)


def _in_file(
    path: Path, name: str, options: ReadOptions, notes: Notes, *, is_named: bool
) -> Iterator[SourceFile]:
    source = unpacking.file_source(path, name, options.limits)
    try:
        if detection.is_zip(source):
            found = detection.detect_zip(path, name)
            if found is Format.SCHEDULER_SNAPSHOT:
                source = next(
                    entry
                    for entry in unpacking.zip_sources(path, name, options.limits)
                    if entry.name.endswith("snapshot.json")
                )
        elif options.format != "auto" and is_named:
            found = Format(options.format)
        else:
            found = detection.detect(source)
        if found in UNREAD or found is Format.BUNDLE:
            raise InputError(
                f"the format {found.value} cannot be joined with others here",
                place=name,
                cure=UNREAD.get(found, "import the bundle on its own"),
            )
        if found is Format.UNKNOWN:
            raise InputError(
                "the file is in no format that is read here",
                place=name,
                cure="name the format with --format if it is one of them",
            )
    except InputError as problem:
        if is_named:
            notes.refuse(problem)
        else:
            notes.add(f"{name} is left out: {problem.problem}")
        return
    yield SourceFile(source=source, format=found, is_named=is_named)


def _read_all(files: list[SourceFile], options: ReadOptions, notes: Notes) -> Iterator[Record]:
    """The records of all files; those of watch streams together, for their seams."""
    has_log = any(file.format in LOGS for file in files)
    watches: list[watch.WatchFile] = []
    survey = dumps.Survey()
    for number, file in enumerate(files):
        try:
            match file.format:
                case Format.AUDIT:
                    yield from lines.read(file.source, number, options, notes)
                case Format.WATCH:
                    watches.append(watch.scan(file.source, number, notes))
                case Format.DUMP:
                    for record in _read_dump(file, number, options, notes, has_log=has_log):
                        survey.note(record, number)
                        yield record
                case Format.KWOK:
                    yield from kwok.read(file.source, number, options, notes)
                case Format.SIMKUBE:
                    yield from simkube.read(file.source, number, notes)
                case Format.SIMULATOR_RECORD:
                    yield from simulator.read(file.source, number, notes)
                case Format.KINE:
                    yield from kine.read(file.source, number, notes)
                case Format.ETCD:
                    yield from etcd.read(file.source, number, options, notes)
                case Format.SIMULATOR_EXPORT | Format.SCHEDULER_SNAPSHOT:
                    yield from _read_keyed(file, number, options)
                case Format.EMPTY:
                    notes.count("empty files")
                case _:
                    raise InputError(
                        f"the format {file.format.value} is not read yet", place=file.source.name
                    )
        except InputError as problem:
            notes.refuse(problem)
    if not has_log:
        yield from survey.deletions()
    try:
        yield from watch.read(watches, notes)
    except InputError as problem:
        notes.refuse(problem)


def _read_dump(
    file: SourceFile, number: int, options: ReadOptions, notes: Notes, *, has_log: bool
) -> Iterator[Record]:
    """The objects of a dump. In a folder with a log, single objects are inputs and left out."""
    if file.is_named or not has_log:
        yield from dumps.read(file.source, number, options, notes)
        return
    aside = Notes(keep_going=True, refusals_max=0)
    for record in dumps.read(file.source, number, options, aside):
        if record.op is Op.ADDED or "[" not in record.position:
            notes.count("manifests beside a log, left out")
        else:
            yield record
    if aside.refused:
        notes.count("unreadable manifests beside a log, left out", aside.refused)


def _read_keyed(file: SourceFile, number: int, options: ReadOptions) -> Iterator[Record]:
    for _, value in documents.read_documents(file.source):
        if isinstance(value, dict):
            raw = value.get("rawObjects")
            tree = raw if isinstance(raw, dict) else value
            yield from dumps.read_keyed(file.source, tree, number, options)


def _info(file: SourceFile) -> SourceInfo:
    digest, size = file.source.sha256()
    return SourceInfo(name=file.source.name, format=file.format.value, sha256=digest, bytes=size)


def _nothing(paths: Sequence[Path], notes: Notes) -> InputError:
    place = " ".join(str(path) for path in paths)
    if notes.refusals:
        first = notes.refusals[0]
        return InputError(
            f"nothing could be taken; {notes.refused} refused, the first: {first.problem}",
            place=first.place or place,
        )
    return InputError(
        "there is no object and no request in it",
        place=place,
        cure="give an audit log, a watch stream, a dump or a folder of them",
    )
