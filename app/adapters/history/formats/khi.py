"""The reader of files of Kubernetes History Inspector (KHI), version 6.

Parity: history-formats.md 10.4.

A file is a header and gzipped chunks of protobuf messages. Texts stand in a pool; an object is a
set of paths with a value for each. Timelines are a tree (cluster, API version, kind, namespace,
resource); the revisions of a resource are its states.

    revision of core/v1 > pod > shop > web    paths metadata␀name, spec    values "web", {…}
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.adapters.history import json_text, kinds, times
from app.adapters.history.compression import UnpackedSize
from app.adapters.history.reading import Notes, object_record
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log import Actor
from app.domain.log.records import Loss, Op, Quality, Record, comparable_version
from app.domain.objects import registry
from app.domain.values import protobuf, timestamps
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.protobuf import ProtobufError
from app.domain.values.timestamps import Instant

VERSION = 6
HEADER_BYTES = 4
"""Bytes before the first chunk: the letters KHI and the version."""
CHUNK_BYTES_MAX = 64 * 1024 * 1024
"""Unpacked bytes of a chunk; the format splits larger ones."""

_POOL, _STYLE, _TIMELINES = 2, 4, 5
_ROOTS = {_POOL: "khi.Pool", _STYLE: "khi.Styles", _TIMELINES: "khi.Timelines"}
_NANOS_OF_SECOND = 1_000_000_000
_DELETED, _PARTIAL = 2, 3
"""How the state after a revision is drawn: the object is gone, or is not known as a whole."""

_NO_NAMESPACE = "cluster-scope"
_NO_PRINCIPAL = "N/A"
_CREATE, _DELETE = "create", "delete"
_UPON_PODS = ("binding", "eviction")
"""Subresources whose creation changes a pod."""
_OF_A_CHANGE = ("at", "principal", "verb")

_DELETE_OPTIONS = "DeleteOptions"
"""The kind of the body of a deletion request, which is no state of an object."""

_MESSAGES = protobuf.parse_table(
    "khi",
    """
Pool: 1:strings=Text[], 2:paths=Paths[]
Text: 1:id=int64, 2:value
Paths: 1:id=int64, 2:names=int64[]
Styles: 2:verbs=Label[], 4:states=State[], 5:types=Label[]
Label: 1:id=int64, 2:label
State: 1:id=int64, 2:label, 6:style=int64
Timelines: 1:timelines=Timeline[], 2:items=Items[]
Timeline: 1:id=int64, 2:type=int64, 3:name=int64, 4:items=int64, 5:parent=int64
Items: 1:id=int64, 2:revisions=Revision[]
Revision: 2:at=Moment, 3:body=Struct, 4:principal=int64, 5:verb=int64, 6:state=int64
Moment: 1:seconds=int64, 2:nanos=int64
Struct: 1:paths=int64, 2:values=Value[]
Value: 1:null=int64, 2:int=int64, 3:double=double, 4:string=int64, 5:bool=bool, 6:struct=Struct,
  7:list=Values, 8:moment=Moment
Values: 1:values=Value[]
""".strip(),
)


class _UnknownKind(InputError):
    """A kind of which only a name in small letters is known: lacking, and no damage."""


@dataclass(slots=True)
class _File:
    """The content of a file: texts, paths and labels by id, and its timelines."""

    texts: dict[int, str] = field(default_factory=dict)
    paths: dict[int, list[int]] = field(default_factory=dict)
    verbs: dict[int, str] = field(default_factory=dict)
    styles: dict[int, int] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    timelines: dict[int, JsonObject] = field(default_factory=dict)
    items: dict[int, list[JsonObject]] = field(default_factory=dict)

    def add(self, kind: int, chunk: JsonObject) -> None:
        """Add the content of a chunk of this type."""
        if kind == _POOL:
            self.texts.update((_id(text), text.get("value", "")) for text in _all(chunk, "strings"))
            self.paths.update((_id(each), each.get("names", [])) for each in _all(chunk, "paths"))
        elif kind == _STYLE:
            self.verbs.update((_id(each), each.get("label", "")) for each in _all(chunk, "verbs"))
            self.styles.update((_id(each), each.get("style", 0)) for each in _all(chunk, "states"))
            self.types.update((_id(each), each.get("label", "")) for each in _all(chunk, "types"))
        else:
            self.timelines.update((_id(each), each) for each in _all(chunk, "timelines"))
            for each in _all(chunk, "items"):
                self.items.setdefault(_id(each), []).extend(_all(each, "revisions"))

    def is_resource(self, timeline: JsonObject) -> bool:
        """True for the timeline of an object, whose revisions are its states."""
        return self.types.get(timeline.get("type", 0)) == "resource"

    def names(self, timeline: JsonObject) -> dict[str, str]:
        """The names of a timeline and of those above it, by the labels of their types."""
        names: dict[str, str] = {}
        above: JsonObject | None = timeline
        while above is not None and len(names) < len(self.timelines):
            label = self.types.get(above.get("type", 0), "")
            if label in names:
                break
            names[label] = self.texts.get(above.get("name", 0), "")
            above = self.timelines.get(above.get("parent", 0))
        return names

    def tree(self, body: JsonObject) -> JsonObject:
        """The object of a set of paths and their values. Raises InputError."""
        tree: JsonObject = {}
        paths, values = self.paths.get(body.get("paths", 0), []), _all(body, "values")
        if len(paths) != len(values):
            raise InputError(f"an object has {len(paths)} paths and {len(values)} values")
        for path, value in zip(paths, values, strict=True):
            if path not in self.texts:
                raise InputError(f"the text {path} is in no pool")
            *above, last = self.texts[path].split("\0")
            place = tree
            for step in above:
                place = place.setdefault(step, {})
                if not isinstance(place, dict):
                    raise InputError(f"the field {step!r} has a value and fields")
            if last in place:
                raise InputError(f"the field {last!r} has two values")
            place[last] = self._value(value)
        return tree

    def _value(self, value: JsonObject) -> Any:
        match value:
            case {"string": int(text)}:
                if text and text not in self.texts:
                    raise InputError(f"the text {text} is in no pool")
                return self.texts.get(text, "")
            case {"struct": dict(body)}:
                return self.tree(body)
            case {"list": dict(items)}:
                return [self._value(item) for item in _all(items, "values")]
            case {"moment": dict(moment)}:
                at = _instant(moment)
                is_whole = not at % timestamps.SECOND
                return timestamps.seconds_text(at) if is_whole else timestamps.micro_text(at)
            case {"null": _}:
                return None
        for name in ("int", "double", "bool"):
            if name in value:
                return value[name]
        raise InputError("a value is of no type that is read here")


def read(source: ByteSource, number: int, notes: Notes) -> Iterator[Record]:
    """The records of the revisions of all resources. Raises InputError for a damaged file."""
    content = source.whole()
    if not content.startswith(b"KHI"):
        raise InputError("it does not begin with the letters KHI", place=source.name)
    version = content[HEADER_BYTES - 1] if len(content) >= HEADER_BYTES else 0
    if version != VERSION:
        raise InputError(
            f"the file of Kubernetes History Inspector has version {version}, {VERSION} is read",
            place=source.name,
            cure="export the logs again with a version that writes it",
        )
    file = _File()
    for place, kind, chunk in _chunks(content, source):
        try:
            file.add(kind, protobuf.decode(_MESSAGES, _ROOTS[kind], chunk))
        except ProtobufError as problem:
            raise InputError(
                f"a chunk has another form than that of version {VERSION}: {problem}",
                place=place,
            ) from problem
    yield from _records(file, source, number, notes)


def _chunks(content: bytes, source: ByteSource) -> Iterator[tuple[str, int, bytes]]:
    """The place, type and unpacked bytes of each chunk about objects."""
    at = HEADER_BYTES
    unpacked = UnpackedSize(source.name, source.limits, len(content))
    while at < len(content):
        place = f"{source.name}:{at}"
        if at + 8 > len(content):
            raise InputError("the file ends in the middle of a chunk", place=place)
        size, kind = struct.unpack_from("<II", content, at)
        at += 8
        if at + size > len(content):
            raise InputError("the file ends in the middle of a chunk", place=place)
        if kind in _ROOTS:
            chunk = _unpacked(content[at : at + size], place)
            unpacked.add(chunk)
            yield place, kind, chunk
        at += size


def _unpacked(packed: bytes, place: str) -> bytes:
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        chunk = unpacker.decompress(packed, CHUNK_BYTES_MAX)
    except zlib.error as problem:
        raise InputError(f"a chunk cannot be unpacked: {problem}", place=place) from problem
    if unpacker.unconsumed_tail or not unpacker.eof:
        reason = "is longer than the format allows" if unpacker.unconsumed_tail else "was cut"
        raise InputError(f"a chunk {reason}", place=place)
    if unpacker.unused_data:
        raise InputError("a chunk has bytes after its end", place=place)
    return chunk


def _records(file: _File, source: ByteSource, number: int, notes: Notes) -> Iterator[Record]:
    index = others = unknown = 0
    _check_cluster(file, source.name)
    upon_pods = _changes_of_pods(file)
    for key, timeline in sorted(file.timelines.items()):
        items = timeline.get("items", 0)
        revisions = file.items.get(items, [])
        if not file.is_resource(timeline):
            others += len(revisions)
            continue
        if items and items not in file.items:
            place = f"{source.name}:{key}"
            notes.refuse(InputError(f"the revisions {items} are in no chunk", place=place))
        names = file.names(timeline)
        if key in upon_pods:
            others -= len(upon_pods[key])
            revisions = sorted([*revisions, *upon_pods[key]], key=_moment)
        version = ""
        for turn, revision in enumerate(revisions):
            index += 1
            position = f"{key}/{turn}"
            try:
                record = _record(file, revision, names, source, position, (number, index), version)
            except _UnknownKind as problem:
                notes.lose(InputError(problem.problem, place=f"{source.name}:{position}"))
                continue
            except InputError as problem:
                place = problem.place or f"{source.name}:{position}"
                notes.refuse(InputError(problem.problem, place=place))
                continue
            if record is None:
                unknown += 1
                continue
            version = record.resource_version or version
            yield record
    if others:
        notes.pass_over(source.name, "revisions of subresources, conditions and containers", others)
    if unknown:
        notes.pass_over(source.name, "revisions that KHI concluded without a body", unknown)


def _changes_of_pods(file: _File) -> dict[int, list[JsonObject]]:
    """The creations of bindings and evictions, by the id of the pod's timeline, without bodies.

    No state of the pod shows them before its next write, so each is a gap.
    """
    changes: dict[int, list[JsonObject]] = {}
    for timeline in file.timelines.values():
        names = file.names(timeline)
        name = names.get("subresource", "")
        if name not in _UPON_PODS or names.get("kind") != "pod":
            continue
        for revision in file.items.get(timeline.get("items", 0), []):
            if file.verbs.get(revision.get("verb", 0), "").lower() == _CREATE:
                bare = {part: revision[part] for part in _OF_A_CHANGE if part in revision}
                changes.setdefault(timeline.get("parent", 0), []).append({**bare, "upon": name})
    return changes


def _moment(revision: JsonObject) -> tuple[int, int]:
    at = revision.get("at", {})
    return at.get("seconds", 0), at.get("nanos", 0)


def _check_cluster(file: _File, name: str) -> None:
    """Raise InputError if objects of several clusters are in the file, which then mix."""
    clusters: set[str] = set()
    for timeline in file.timelines.values():
        if file.is_resource(timeline) and file.items.get(timeline.get("items", 0)):
            clusters.add(file.names(timeline).get("k8sCluster", ""))
    if len(clusters) > 1:
        first, second, *_ = sorted(clusters)
        raise InputError(
            f"the file tells of several clusters, {first!r} and {second!r}",
            place=name,
            cure="export them one by one",
        )


def _record(
    file: _File,
    revision: JsonObject,
    names: Mapping[str, str],
    source: ByteSource,
    position: str,
    order: tuple[int, int],
    version: str,
) -> Record | None:
    """The record of a revision; None for one that KHI concluded and whose body is not known.

    Among these is the creation that KHI takes from the creationTimestamp of a later body.
    `version` is the resource version of the revision before: KHI applies patches by itself, and the
    version of what comes of it is an old one.
    """
    style = file.styles.get(revision.get("state", 0), 0)
    verb = file.verbs.get(revision.get("verb", 0), "").lower()
    principal = file.texts.get(revision.get("principal", 0), "")
    has_user = principal not in ("", _NO_PRINCIPAL)
    body = file.tree(revision.get("body", {}))
    json_text.check_depth(body, f"{source.name}:{position}", source.limits)
    if kinds.is_answer(body) or body.get("kind") == _DELETE_OPTIONS:
        body = {}
    is_deletion = verb.startswith(_DELETE) and style != _DELETED
    if is_deletion and not meta.deletion_timestamp(body):
        # A server sets the time or removes the object: this is the state before the deletion.
        body = {}
    has_body = bool(body)
    if not has_body and (style == _PARTIAL or (verb == _CREATE and not has_user)):
        return None
    tree = _completed(body, names)
    quality = Quality.FULL if style != _PARTIAL and _is_whole(tree) else Quality.PARTIAL
    is_old = bool(version) and meta.resource_version(tree) in ("", version)
    if is_old and has_body:
        tree["metadata"].pop("resourceVersion", None)
        quality = Quality.RECONSTRUCTED if quality is Quality.FULL else quality
    op = Op.DELETED if style == _DELETED else Op.ADDED if verb == _CREATE else Op.MODIFIED
    record = object_record(
        tree,
        op,
        source=source.name,
        position=position,
        order=order,
        observed_at=_changed_at(revision),
        quality=quality,
    )
    if is_old:
        record = msgspec.structs.replace(
            record, order_key=(0, comparable_version(version), 1, order[0], order[1])
        )
    actor = Actor(user=principal) if has_user else None
    kept = tuple(loss for loss in record.losses if loss is not Loss.NO_ACTOR or actor is None)
    record = msgspec.structs.replace(record, actor=actor, verb=verb, losses=kept)
    if subresource := revision.get("upon", ""):
        record = msgspec.structs.replace(record, subresource=subresource)
    return record if has_body else _without_body(record)


def _without_body(record: Record) -> Record:
    """The end of an object, or the gap of a change, of which only the key is known."""
    if record.op is Op.DELETED:
        losses = {*record.losses, Loss.NO_DELETE_STATE}
        return msgspec.structs.replace(
            record, object=None, object_quality=Quality.IDENTITY, losses=tuple(sorted(losses))
        )
    return msgspec.structs.replace(
        record,
        op=Op.GAP,
        object=None,
        object_quality=Quality.IDENTITY,
        losses=(Loss.GAP, Loss.METADATA_ONLY),
        message=f"{record.verb or 'change'} {record.subresource}".rstrip()
        + ": the body was not recorded",
    )


def _completed(tree: JsonObject, names: Mapping[str, str]) -> JsonObject:
    """The object with what its body lacks, from the names of its timelines."""
    version = names.get("apiVersion", "").removeprefix("core/")
    own = {name: tree[name] for name in ("apiVersion", "kind") if tree.get(name)}
    kind = own.get("kind") or _kind(version, names.get("kind", ""))
    metadata = dict(meta.metadata(tree))
    metadata["name"] = metadata.get("name") or names.get("resource", "")
    namespace = names.get("namespace", "")
    if namespace and namespace != _NO_NAMESPACE:
        metadata["namespace"] = metadata.get("namespace") or namespace
    rest = {name: value for name, value in tree.items() if name != "@type"}
    return {**rest, "apiVersion": version, "kind": kind, **own, "metadata": metadata}


def _kind(version: str, name: str) -> str:
    """The kind of this name, which KHI writes in small letters. Raises _UnknownKind."""
    group = version.rpartition("/")[0]
    for kind in registry.find_name(name):
        if group in {served for served, _ in kind.group_versions}:
            return kind.kind
    raise _UnknownKind(f"the kind {name!r} of {version} is not known by its name in small letters")


def _is_whole(tree: JsonObject) -> bool:
    """False for a patch whose object was not known before: a server gives each object both."""
    return bool(meta.uid(tree)) and times.creation(tree) is not None


def _changed_at(revision: JsonObject) -> Instant | None:
    """The time of a revision; None if it is not set. Raises InputError."""
    at = _instant(revision.get("at", {}))
    return at if at > 0 else None


def _instant(moment: JsonObject) -> Instant:
    seconds, nanos = moment.get("seconds", 0), moment.get("nanos", 0)
    at = seconds * timestamps.SECOND + nanos // 1000
    if not timestamps.EARLIEST <= at <= timestamps.LATEST or not 0 <= nanos < _NANOS_OF_SECOND:
        raise InputError(f"a time of {seconds} seconds and {nanos} nanoseconds is out of range")
    return Instant(at)


def _id(part: JsonObject) -> int:
    number = part.get("id", 0)
    assert isinstance(number, int)
    return number


def _all(part: JsonObject, name: str) -> list[Any]:
    items = part.get(name, [])
    assert isinstance(items, list)
    return items
