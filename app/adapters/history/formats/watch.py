"""The reader of watch streams: lines of `{"type", "object"}`. Parity: history-formats.md 5.

A file is read twice. The scan reads only identities, to determine the baseline at its beginning and
the seams between files of one type before records are made. A file to which a second watch was
appended has such a seam within: there it lists objects again that it knows.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple, TypeAlias

import msgspec

from app.adapters.history import documents, json_text, kinds
from app.adapters.history.formats.repeated_lines import RepeatedLines
from app.adapters.history.limits import BoundReached
from app.adapters.history.reading import Notes, object_record
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Op, Record, comparable_version
from app.domain.values import counts, json_tree, well_known
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

TypeName: TypeAlias = tuple[str, str]
"""Group and resource."""


_TABLES = "the stream holds tables, not objects"
_OPS = {"ADDED": Op.ADDED, "MODIFIED": Op.MODIFIED, "DELETED": Op.DELETED}


class _WatchedMetadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    created: str | None = msgspec.field(default="", name="creationTimestamp")
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct):
    api_version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""
    metadata: _WatchedMetadata = msgspec.field(default_factory=_WatchedMetadata)
    code: Any = 0


class _Event(msgspec.Struct):
    type: str
    object: _Object


_event_decoder = msgspec.json.Decoder(_Event)


@dataclass(slots=True, kw_only=True)
class TypeSummary:
    """The events of one type in one file, or in a part of it, in summary.

    `start` events of the type are before them. `baseline` is the number of leading events that form
    the initial list; `listed` are its keys with uid and version, `final` the keys that exist at the
    end. `first` and `last` are the comparable versions of the list and of the last event.
    """

    start: int = 0
    baseline: int = 0
    is_guess: bool = True
    listed: dict[ObjectKey, tuple[str, str]] = field(default_factory=dict)
    final: dict[ObjectKey, tuple[str, str]] = field(default_factory=dict)
    first: str = ""
    last: str = ""
    list_version: str = ""
    last_version: str = ""


@dataclass(slots=True, kw_only=True)
class WatchFile:
    """One scanned file; `number` is the number of its source in the import.

    `types` has a summary for each watch of a type that the file holds, in their order. `skipped`
    are the positions of events that cannot be read.
    """

    source: ByteSource
    number: int
    types: dict[TypeName, list[TypeSummary]]
    skipped: Set[str]


class _Added(NamedTuple):
    """An ADDED event, and the last version before it."""

    key: ObjectKey
    version: str
    item: _Object
    last: tuple[str, str]


@dataclass(slots=True)
class _Run:
    """The leading ADDED events of one type during the scan.

    `count` is the number of all events. `recent` are the ADDED events in a row at the end of them
    whose keys rise.
    """

    count: int = 0
    recent: list[_Added] = field(default_factory=list)
    keys: list[ObjectKey] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    seen: set[ObjectKey] = field(default_factory=set)
    ended: bool = False
    marked: int | None = None


def scan(source: ByteSource, number: int, notes: Notes) -> WatchFile:
    """Read the identities in a file. Raises InputError naming a bad line, unless it is passed over.

    A watch whose version is gone ends with an error; its client lists anew before the next one.
    """
    types: dict[TypeName, list[TypeSummary]] = {}
    runs: dict[TypeName, list[_Run]] = {}
    is_expired, skipped = False, set[str]()
    repeated = RepeatedLines(source.name)
    for position, kind, item, content in _identities(source, notes, skipped):
        if kind == "ERROR":
            repeated.forget_line()
            is_expired = item.code == HTTPStatus.GONE and len(types) == 1
            for *_, latest in runs.values():
                latest.ended = True
                if is_expired:
                    latest.recent.clear()
            continue
        group, _ = kinds.split_version(item.api_version)
        name = (group, kinds.resource_of(item.kind))
        summary = types.setdefault(name, [TypeSummary()])[-1]
        run = runs.setdefault(name, [_Run()])[-1]
        version = comparable_version(item.metadata.resource_version)
        if kind == "BOOKMARK":
            if (item.metadata.annotations or {}).get(
                well_known.INITIAL_EVENTS_END
            ) == "true" and not run.ended:
                run.marked = len(run.keys)
                run.ended = True
            if version > summary.last:
                summary.last, summary.last_version = version, item.metadata.resource_version
            continue
        try:
            key = _key(kind, item, f"{source.name}:{position}")
        except InputError as problem:
            skipped.add(position)
            notes.refuse(problem)
            continue
        identity = item.metadata.uid, item.metadata.resource_version
        if repeated.repeats(kind, key, identity, content, position, notes):
            skipped.add(position)
            continue
        if kind != "ADDED" or (run.recent and key <= run.recent[-1].key):
            run.recent.clear()
        is_known = summary.final.get(key, ("", ""))[0] == item.metadata.uid
        is_anew, is_expired = is_known or is_expired, False
        if kind == "ADDED" and is_anew:
            summary, run = _list_anew(summary, run)
            types[name].append(summary)
            runs[name].append(run)
        run.count += 1
        if kind == "ADDED":
            last = summary.last, summary.last_version
            run.recent.append(_Added(key, version, item, last))
        _note_leading(run, kind, key, version, item)
        if kind == "DELETED":
            summary.final.pop(key, None)
        else:
            summary.final[key] = identity
        if version > summary.last:
            summary.last, summary.last_version = version, item.metadata.resource_version
    for name, summaries in types.items():
        for summary, run in zip(summaries, runs[name], strict=True):
            _conclude(summary, run, f"{source.name} ({name[1]})", notes)
    return WatchFile(source=source, number=number, types=types, skipped=skipped)


def read(files: list[WatchFile], notes: Notes) -> Iterator[Record]:
    """The records of all files, with gaps and synthetic deletions at the seams between them."""
    earlier: dict[TypeName, TypeSummary] = {}
    for file in _in_order(files):
        seams: dict[TypeName, TypeSummary] = {}
        for name, (summary, *more) in file.types.items():
            before = earlier.get(name)
            if before is not None and summary.first and summary.first > before.last:
                seams[name] = before
                yield from _seam(file, name, before, summary)
            last = more[-1] if more else summary
            if before is None or last.last >= before.last:
                earlier[name] = last
        yield from _records(file, seams, notes)


def _in_order(files: list[WatchFile]) -> list[WatchFile]:
    """The files sorted by the version of their first list, so that continuations are in order."""

    def begin(file: WatchFile) -> tuple[str, int]:
        firsts = (summaries[0].first for summaries in file.types.values())
        return min(firsts, default=""), file.number

    return sorted(files, key=begin)


def _seam(
    file: WatchFile, name: TypeName, before: TypeSummary, after: TypeSummary, epoch: int = 0
) -> Iterator[Record]:
    """The gap at a seam, and the deletions of objects that are no longer listed after it."""
    group, resource = name
    gap = Record(
        source=file.source.name,
        group=group,
        resource=resource,
        position=f"seam/{resource}",
        op=Op.GAP,
        losses=(Loss.GAP,),
        order_key=(epoch, before.last, 5, file.number, 0),
        message=f"nothing was recorded between resource versions {before.last_version} and "
        f"{after.list_version}",
    )
    yield gap
    for index, (key, (uid, _)) in enumerate(sorted(before.final.items()), start=1):
        if key not in after.listed:
            yield msgspec.structs.replace(
                gap,
                position=f"seam/{resource}/{index}",
                op=Op.DELETED,
                namespace=key.namespace,
                name=key.name,
                uid=uid,
                losses=(Loss.NO_ACTOR, Loss.NO_RV, Loss.SYNTHETIC_DELETE),
                order_key=(epoch, before.last, 6, file.number, index),
                message="",
            )


def _records(file: WatchFile, seams: dict[TypeName, TypeSummary], notes: Notes) -> Iterator[Record]:
    seen: dict[TypeName, int] = {}
    parts = {name: list(reversed(summaries)) for name, summaries in file.types.items()}
    newest: dict[TypeName, str] = {}
    epoch, last = 0, ""
    source = file.source.name
    for index, (position, stamp, kind, tree) in enumerate(
        _events(file.source, notes, file.skipped), start=1
    ):
        if kind == "ERROR":
            yield _broken_off(file, position, index, tree, epoch, last)
            notes.add(f"{source}: a watch ended with an error at line {position}")
            continue
        last = max(last, comparable_version(meta.resource_version(tree)))
        if kind == "BOOKMARK":
            continue
        record = object_record(
            tree,
            _OPS[kind],
            source=source,
            position=position,
            order=(file.number, index),
            observed_at=stamp,
            epoch=epoch,
        )
        name = (record.group, record.resource)
        count = seen[name] = seen.get(name, 0) + 1
        if len(parts[name]) > 1 and count > parts[name][-2].start:
            before = seams[name] = parts[name].pop()
            if _has_news(before, parts[name][-1]):
                yield from _seam(file, name, before, parts[name][-1], epoch)
        summary = parts[name][-1]
        if count - summary.start <= summary.baseline:
            listed = _listed(record, seams.get(name))
            if listed is not None:
                yield listed
            continue
        version = record.order_key[1]
        if version and version < newest.get(name, "") and not record.order_key[2]:
            epoch += 1
            newest.clear()
            yield _restored(file, record, epoch, position, index)
            record = msgspec.structs.replace(
                record, order_key=(epoch, version, 0, file.number, index)
            )
        newest[name] = version or newest.get(name, "")
        yield record


def _has_news(before: TypeSummary, after: TypeSummary) -> bool:
    """Whether a list shows that something was missed since the watch before it."""
    return after.first > before.last or not before.final.keys() <= after.listed.keys()


def _listed(record: Record, before: TypeSummary | None) -> Record | None:
    """The record of an item of the initial list: baseline, or after a seam a change."""
    if before is None:
        return msgspec.structs.replace(record, op=Op.BASELINE)
    known = before.final.get(record.key)
    if known == (record.uid, record.resource_version):
        return None
    op = Op.MODIFIED if known is not None and known[0] == record.uid else Op.ADDED
    losses = tuple(sorted({*record.losses, Loss.COLLAPSED}))
    return msgspec.structs.replace(record, op=op, losses=losses)


def _restored(file: WatchFile, record: Record, epoch: int, position: str, index: int) -> Record:
    return Record(
        source=file.source.name,
        position=f"{position}/epoch",
        op=Op.GAP,
        losses=(Loss.GAP,),
        order_key=(epoch, "", 0, file.number, index),
        message=f"resource versions of {record.resource} fell to {record.resource_version}: the "
        "store was restored or replaced",
    )


def _broken_off(
    file: WatchFile, position: str, index: int, tree: JsonObject, epoch: int, version: str
) -> Record:
    return Record(
        source=file.source.name,
        position=position,
        op=Op.GAP,
        code=json_tree.integer(tree, "code") or 0,
        losses=(Loss.GAP,),
        order_key=(epoch, version, 5, file.number, index),
        message=json_tree.text(tree, "message") or "the watch ended with an error",
    )


def _list_anew(before: TypeSummary, run: _Run) -> tuple[TypeSummary, _Run]:
    """The part of a file that begins with another list, which names a key that is there.

    A list is sorted, so what was added just before with lower keys belongs to it: if it had been
    there already, it would be listed again.
    """
    lower = run.recent
    after = TypeSummary(start=before.start + run.count - len(lower))
    begun = _Run(count=len(lower))
    if lower:
        before.last, before.last_version = lower[0].last
    for each in lower:
        uid, version = each.item.metadata.uid, each.item.metadata.resource_version
        before.final.pop(each.key, None)
        after.final[each.key] = uid, version
        _note_leading(begun, "ADDED", each.key, each.version, each.item)
        after.last, after.last_version = max(
            (after.last, after.last_version), (each.version, version)
        )
    run.ended = True
    return after, begun


def _note_leading(run: _Run, kind: str, key: ObjectKey, version: str, item: _Object) -> None:
    if run.ended:
        return
    if kind != "ADDED" or key in run.seen:
        run.ended = True
        return
    run.seen.add(key)
    run.keys.append(key)
    run.versions.append(f"{version}\0{item.metadata.uid}\0{item.metadata.resource_version}")
    run.created.append(item.metadata.created or "")


def _conclude(summary: TypeSummary, run: _Run, place: str, notes: Notes) -> None:
    """Decide how many of the leading events form the initial list.

    A list is sorted by key and its versions may fall; live creations have rising versions and keys
    in any order. Events that fit both count as the list, and a note reports this.
    """
    versions = [part.split("\0") for part in run.versions]
    if run.marked is not None:
        summary.baseline, summary.is_guess = run.marked, False
    else:
        end = len(run.keys)
        for index in range(1, len(run.keys)):
            if run.keys[index] < run.keys[index - 1]:
                end = index
                break
        for index in range(len(versions) - 1, 0, -1):
            if versions[index][0] < versions[index - 1][0]:
                end = max(end, index + 1)
                break
        summary.baseline = end
    for key, (_, uid, version) in zip(
        run.keys[: summary.baseline], versions[: summary.baseline], strict=True
    ):
        summary.listed[key] = (uid, version)
        comparable = comparable_version(version)
        if comparable > summary.first:
            summary.first, summary.list_version = comparable, version
    if summary.is_guess and summary.baseline:
        notes.add_alike(
            "no mark ends the list of existing objects, so the first events are taken as the list",
            f"{place}: {counts.of(summary.baseline, 'event')}",
        )


def _key(kind: str, item: _Object, place: str) -> ObjectKey:
    if kind not in _OPS:
        raise InputError(f"unknown event type {kind!r}", place=place)
    if item.kind == "Table":
        raise InputError(_TABLES, place=place, cure="record with -o json")
    return kinds.key_of(
        {
            "apiVersion": item.api_version,
            "kind": item.kind,
            "metadata": {"name": item.metadata.name, "namespace": item.metadata.namespace},
        },
        place,
    )


def _identities(
    source: ByteSource, notes: Notes, skipped: set[str]
) -> Iterator[tuple[str, str, _Object, int]]:
    """The identity of each event, and a number that events of equal content have.

    Those that cannot be read are refused, and added to `skipped`.
    """
    for position, content in _contents(source, notes):
        place = f"{source.name}:{position}"
        try:
            if isinstance(content, bytes):
                event = _event_decoder.decode(content)
                yield position, event.type, event.object, hash(content)
            else:
                kind, tree = _parts(content, place)
                yield position, kind, msgspec.convert(tree, _Object), hash(repr(content))
        except (msgspec.DecodeError, RecursionError) as problem:
            skipped.add(position)
            notes.refuse(
                InputError(
                    f"it is not a watch event: {problem}",
                    place=place,
                    cure="record with --output-watch-events -o json",
                )
            )
        except BoundReached:
            raise
        except InputError as problem:
            skipped.add(position)
            notes.refuse(problem)


def _contents(source: ByteSource, notes: Notes) -> Iterator[tuple[str, Any]]:
    """The events in a file: lines of JSON as bytes, and documents as values."""
    if documents.is_json_lines(source):
        for number, line in documents.log_lines(source, notes):
            yield str(number), documents.split_stamp(line)[0]
        return
    # The second reading names repeated keys.
    yield from documents.read_documents(source, Notes(keep_going=True))


def _events(
    source: ByteSource, notes: Notes, skipped: Set[str]
) -> Iterator[tuple[str, Instant | None, str, JsonObject]]:
    """The events of a file but for the skipped ones, which were refused before."""
    if documents.is_json_lines(source):
        for number, line in documents.log_lines(source, notes):
            if str(number) in skipped:
                continue
            content, stamp = documents.split_stamp(line)
            place = f"{source.name}:{number}"
            value = json_text.decode(content, place, source.limits)
            notes.lose_repeated(json_text.repeated_keys(content, value), place)
            kind, tree = _parts(value, place)
            yield str(number), stamp, kind, tree
        return
    for position, value in documents.read_documents(source, notes):
        if position not in skipped:
            kind, tree = _parts(value, f"{source.name}:{position}")
            yield position, None, kind, tree


def _parts(value: Any, place: str) -> tuple[str, JsonObject]:
    kind = value.get("type") if isinstance(value, dict) else None
    tree = value.get("object") if isinstance(value, dict) else None
    if not isinstance(kind, str) or not isinstance(tree, dict):
        raise InputError(
            "it is not a watch event with type and object",
            place=place,
            cure="record with --output-watch-events -o json",
        )
    if tree.get("kind") == "Table":
        raise InputError(_TABLES, place=place, cure="record with -o json")
    return kind, tree
