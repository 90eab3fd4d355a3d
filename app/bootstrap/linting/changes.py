"""Changes of objects in recordings, bundles and stored histories."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from anyio import lowlevel

from app.adapters.history import opening
from app.adapters.history.archives import Unpacked
from app.adapters.history.detection import Format
from app.adapters.history.formats.bundle import BundleReader, names_the_bundle
from app.adapters.history.limits import ImportLimits
from app.adapters.history.reading import Notes, ReadOptions
from app.adapters.history.sources import Finder, SourceFile
from app.analysis.lint.subjects import TOLD, LintedObject
from app.domain.errors import Rejected
from app.domain.log import Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.log.event import EVENTS_PAGE
from app.domain.log.records import CHANGES, Op
from app.domain.objects import registry
from app.domain.objects.schema import conversion
from app.domain.values import api_groups, counts
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog

YAML = (".yaml", ".yml")
MANIFESTS = (*YAML, ".json")
"""Suffixes of files with objects that users write."""

MARKS_OF_LOGS = (b"audit.k8s.io/", b"kwok.x-k8s.io/")
"""Marks in the first bytes of a log that is written as YAML."""

HEAD_BYTES = 8_192


@dataclass(kw_only=True, frozen=True, slots=True)
class ObjectChange:
    """An object after a change, or before its deletion."""

    key: ObjectKey
    subject: LintedObject
    time: Instant
    is_deletion: bool


def is_recording(path: Path, options: ReadOptions) -> bool:
    """Whether a file, or a file in a folder, is a log or an archive instead of manifests.

    A file of objects that is named itself holds manifests whatever its suffix is, as for kubectl.
    """
    if path.suffix in YAML and path.is_file():
        # A large file is not parsed for this check: its first bytes show whether it is a log.
        with path.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
        if not any(mark in head for mark in MARKS_OF_LOGS):
            return False
    notes = Notes(keep_going=True, refusals_max=0)
    with Unpacked(options.limits, notes) as unpacked:
        files = Finder(options, notes, unpacked).find([path])
        if any(file.format in opening.LOGS for file in files):
            return True
        if not path.is_file() or path.suffix in MANIFESTS:
            return False
        return [_is_plain(file, path) for file in files] != [True]


def _is_plain(file: SourceFile, path: Path) -> bool:
    """Whether a source is a whole file of objects, as it is on the disk."""
    if file.format is not Format.DUMP or file.whole is not None:
        return False
    with path.open("rb") as opened:
        return opened.read(HEAD_BYTES) == file.source.head(HEAD_BYTES)[:HEAD_BYTES]


def of_recording(
    path: Path, options: ReadOptions, not_checked: list[str]
) -> Iterator[ObjectChange]:
    """The changes in a recording, and at the end sentences about what was left out of it.

    Raises InputError.
    """
    with opening.open_history([path], options) as history:
        for record in history.records():
            if record.op not in CHANGES or record.object is None or record.kind not in TOLD:
                continue
            line = int(record.position) if record.position.isdigit() else 0
            subject = LintedObject(
                kind=record.kind, tree=record.object, source=record.source, line=line
            )
            time = record.settled_at or record.observed_at or Instant(0)
            yield ObjectChange(
                key=record.key,
                subject=subject,
                time=time,
                is_deletion=record.op is Op.DELETED,
            )
        if history.beside:
            manifests = counts.of(history.beside, "manifest")
            not_checked.append(
                f"{manifests} beside a log in {path}; lint their files apart from the log"
            )
        if history.refused:
            places = counts.of(history.refused, "place")
            first = history.refusals[0]
            not_checked.append(
                f"{places} in {path} that cannot be read, the first {first.place}: {first.problem}"
            )


def of_bundle(path: Path, limits: ImportLimits) -> Iterator[ObjectChange]:
    """The changes of a native bundle. Raises InputError."""
    reader = BundleReader(path, limits)
    with names_the_bundle(reader):
        reader.check()
    for events in reader.batches():
        yield from _of_events(events, path.name)


async def of_history(log: EventLog, info: HistoryInfo, until: Revision) -> list[ObjectChange]:
    """The changes of a stored history up to a revision."""
    changes: list[ObjectChange] = []
    after = Revision(0)
    while after < until:
        events = await log.read(info.id, after=after, limit=EVENTS_PAGE, until=until)
        if not events:
            break
        changes += _of_events(events, info.name)
        after = events[-1].revision
        # A log in memory answers without waiting.
        await lowlevel.checkpoint()
    return changes


def _of_events(events: Iterable[Event], name: str) -> Iterator[ObjectChange]:
    for event in events:
        if not event.is_about_object or event.key.group not in (api_groups.RESOURCE, ""):
            continue
        kind = registry.find(event.key.group, event.key.resource)
        if kind is None or kind.kind not in TOLD:
            continue
        tree: JsonObject = {
            **event.object,
            "apiVersion": event.object.get("apiVersion", kind.storage_api_version),
            "kind": kind.kind,
        }
        yield ObjectChange(
            key=event.key,
            subject=LintedObject(
                kind=kind.kind, tree=tree, source=name, revision=int(event.revision)
            ),
            time=event.stamp.time,
            is_deletion=event.type is EventType.OBJECT_DELETED,
        )


def converted(subject: LintedObject) -> LintedObject:
    """The subject in its storage version, or unchanged when it cannot be converted."""
    kind = next(
        (each for each in registry.find_name(subject.kind) if each.kind == subject.kind), None
    )
    version = subject.tree.get("apiVersion")
    if kind is None or not isinstance(version, str) or version == kind.storage_api_version:
        return subject
    try:
        tree = conversion.convert(subject.tree, kind, version, kind.storage_api_version)
    except Rejected:
        return subject
    return replace(subject, tree=tree)
