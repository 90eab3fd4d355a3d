"""The reader of etcd snapshots: every write since the last compaction, and the state before.

Parity: history-formats.md 11.
"""

import hashlib
import mmap
import re
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import msgspec

from app.adapters.history import kinds
from app.adapters.history.reading import Notes, object_record
from app.adapters.history.storage import stored_values, write_logs
from app.adapters.history.storage.bbolt import BoltFile
from app.adapters.history.storage.write_logs import EtcdEntry, EtcdKeys, LoggedRequests
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Op, Quality, Record, TimeQuality, comparable_version
from app.domain.objects import registry
from app.domain.values import counts
from app.domain.values.json_tree import JsonObject
from app.domain.values.protobuf import MAGIC, ProtobufError, message_fields

DIGEST_BYTES = 32
PREFIXES = ("/registry/", "/kubernetes.io/", "/openshift.io/")
"""Prefixes of the keys of objects, in upstream Kubernetes and in OpenShift."""
NOT_OBJECTS = ("ranges/", "masterleases/", "peerserverleases/")
_COMPACTIONS = (b"finishedCompactRev", b"scheduledCompactRev")
_APPLIED = b"consistent_index"
_INDEX = struct.Struct(">Q")
_REVISION = struct.Struct(">QxQ")
_PLACES = {
    "minions": "nodes",
    "services/specs": "services",
    "services/endpoints": "endpoints",
    "controllers": "replicationcontrollers",
    "ingress": "ingresses",
}
"""Resources by the paths that do not begin with the plural. Parity: history-formats.md 11.5."""


def read(
    source: ByteSource, number: int, notes: Notes, logs: tuple[ByteSource, ...] = ()
) -> Iterator[Record]:
    """The records of a snapshot or of a data folder, whose write-ahead log has several files.

    Raises InputError for a damaged file or a wrong digest.
    """
    with _mapped(source) as (buffer, size):
        size = _check_digest(buffer, size, source.name)
        bolt = BoltFile(buffer, size, source.name)
        compacted = _compacted(bolt)
        notes.add(f"{source.name}: compacted at revision {compacted}; every later write is present")
        entries = _entries(bolt, source.name)
        if logs:
            entries = _and_logged(entries, bolt, compacted, logs, notes)
        yield from _records(entries, compacted, source, number, notes)


def _records(
    entries: Iterator[EtcdEntry],
    compacted: int,
    source: ByteSource,
    number: int,
    notes: Notes,
) -> Iterator[Record]:
    baseline: dict[str, EtcdEntry] = {}
    known: dict[str, Record] = {}
    index = 0
    is_flushed = False
    for entry in entries:
        if entry.main <= compacted:
            if entry.value is None:
                baseline.pop(entry.key, None)
            else:
                baseline[entry.key] = entry
            continue
        if not is_flushed:
            is_flushed = True
            for old in sorted(baseline.values(), key=lambda item: (item.main, item.sub)):
                index += 1
                yield from entry_records(old, Op.BASELINE, source, (number, index), known, notes)
            baseline.clear()
        op = Op.DELETED if entry.value is None else Op.ADDED if entry.version == 1 else Op.MODIFIED
        index += 1
        yield from entry_records(entry, op, source, (number, index), known, notes)
    for old in sorted(baseline.values(), key=lambda item: (item.main, item.sub)):
        index += 1
        yield from entry_records(old, Op.BASELINE, source, (number, index), known, notes)


def entry_records(
    entry: EtcdEntry,
    op: Op,
    source: ByteSource,
    order: tuple[int, int],
    known: dict[str, Record],
    notes: Notes,
) -> Iterator[Record]:
    """The record of one write; none for a key that is not an object.

    `known` holds the identity of each existing key, for later deletions.
    """
    position = f"{entry.main}/{entry.sub}" if entry.main else str(entry.sub)
    place = f"{source.name}:{position}"
    path = _path(entry.key) or _path_elsewhere(entry, known)
    if not path or path.startswith(NOT_OBJECTS):
        notes.count("keys of the store that are not objects")
        return
    revision = str(entry.main) if entry.main else ""
    order_key = (0, comparable_version(revision), 0, *order)
    if entry.value is None:
        last = known.pop(entry.key, None)
        if last is not None:
            yield msgspec.structs.replace(
                last,
                op=Op.DELETED,
                position=position,
                resource_version=revision,
                order_key=order_key,
                observed_at=None,
                time_quality=TimeQuality.NONE,
                losses=tuple(sorted({Loss.NO_ACTOR, Loss.NO_TIME})),
            )
        else:
            notes.count("deletions of keys that nothing before them shows")
        return
    try:
        record = _object_record(entry, op, source, position, order, place)
    except InputError as problem:
        notes.refuse(problem)
        return
    if record is None:
        notes.count("values of the store that are not objects")
        return
    notes.lose_repeated(stored_values.repeated_keys(entry.value), place)
    record = msgspec.structs.replace(record, order_key=order_key)
    known[entry.key] = msgspec.structs.replace(record, object=None)
    yield record


def _object_record(
    entry: EtcdEntry, op: Op, source: ByteSource, position: str, order: tuple[int, int], place: str
) -> Record | None:
    stored = stored_values.decode(entry.value or b"", place, source.limits)
    if stored is None:
        return None
    tree = stored.tree
    quality = Quality.FULL
    if stored.losses:
        path = _path_key(entry.key)
        tree = {**tree, "metadata": {"name": path.name, "namespace": path.namespace}}
        quality = Quality.IDENTITY
        if "kind" not in tree:
            return _unreadable(entry, op, source.name, position, order, path, stored.losses)
    metadata = tree.get("metadata")
    own: JsonObject = dict(metadata) if isinstance(metadata, dict) else {}
    if entry.main:
        own["resourceVersion"] = str(entry.main)
    return object_record(
        {**tree, "metadata": own},
        op,
        source=source.name,
        position=position,
        order=order,
        losses=stored.losses,
        quality=quality,
    )


def _unreadable(
    entry: EtcdEntry,
    op: Op,
    source: str,
    position: str,
    order: tuple[int, int],
    key: ObjectKey,
    losses: tuple[Loss, ...],
) -> Record:
    """The gap of a value that cannot be read: only its key is known."""
    return Record(
        source=source,
        position=position,
        op=Op.GAP,
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        object_quality=Quality.IDENTITY,
        order_key=(0, comparable_version(str(entry.main) if entry.main else ""), 0, *order),
        losses=tuple(sorted({*losses, Loss.GAP})),
        message=f"the stored value is {losses[0].value} ({op.value})",
    )


def _path(key: str) -> str:
    """The key of an object without its prefix; empty for other keys."""
    return next((key[len(prefix) :] for prefix in PREFIXES if key.startswith(prefix)), "")


def _path_elsewhere(entry: EtcdEntry, known: Mapping[str, Record]) -> str:
    """The key of an object below a prefix that somebody chose; empty for what others store there.

    An API server stores protobuf, which no other program does, or a custom resource below its
    group: `/registry-prod/example.com/widgets/shop/a`.
    """
    path = entry.key[1:].partition("/")[2] if entry.key.startswith("/") else ""
    if entry.value is None:
        return path if entry.key in known else ""
    if entry.value.startswith(MAGIC):
        return path
    group = path.partition("/")[0]
    version = rb'"apiVersion"\s*:\s*"' + re.escape(group).encode() + b"/"
    return path if "." in group and re.search(version, entry.value) is not None else ""


def _path_key(key: str) -> ObjectKey:
    """The identity of an object from its key in the store.

    The path has a group for custom resources only. For known kinds the group is that of the plural,
    with the core group first.
    """
    parts = _path(key).split("/")
    for path, resource in _PLACES.items():
        steps = path.split("/")
        if parts[: len(steps)] == steps:
            parts = [resource, *parts[len(steps) :]]
            break
    group = ""
    if "." in parts[0]:
        group, parts = parts[0], parts[1:] or [""]
    resource, rest = parts[0], parts[1:]
    if not group and registry.find("", resource) is None:
        group = next((each.group for each in registry.kinds() if each.plural == resource), "")
    namespace = "/".join(rest[:-1])
    if kinds.is_cluster_resource(resource):
        namespace = ""
    return ObjectKey(group, resource, namespace, rest[-1] if rest else "")


def _entries(bolt: BoltFile, place: str) -> Iterator[EtcdEntry]:
    """The writes in the bucket `key`, in the order of their revisions."""
    for key, value in bolt.bucket(b"key"):
        if len(key) not in (17, 18) or key[8:9] != b"_":
            raise InputError(
                f"a revision key of {len(key)} bytes", place=place, cure="take it again"
            )
        main, sub = _REVISION.unpack(key[:17])
        fields = _key_value(value, f"{place}:{main}/{sub}")
        is_tombstone = len(key) == 18 and key[17:] == b"t"
        yield EtcdEntry(
            main=main,
            sub=sub,
            key=fields.key.decode("utf-8", "replace"),
            version=fields.version,
            value=None if is_tombstone else fields.value,
            created=fields.created,
            lease=fields.lease,
        )


@dataclass(slots=True)
class _KeyValue:
    key: bytes = b""
    created: int = 0
    version: int = 0
    value: bytes = b""
    lease: int = 0


def _key_value(raw: bytes, place: str) -> _KeyValue:
    """The message `KeyValue{1 key, 2 create_revision, 4 version, 5 value, 6 lease}`."""
    try:
        fields = message_fields(raw)
    except ProtobufError as problem:
        problem_text = "a number or text in a stored key is cut"
        raise InputError(problem_text, place=place, cure="take it again") from problem
    parsed = _KeyValue()
    for number, _, value in fields:
        if isinstance(value, bytes):
            if number == 1:
                parsed.key = value
            elif number == 5:
                parsed.value = value
        elif number == 2:
            parsed.created = value
        elif number == 4:
            parsed.version = value
        elif number == 6:
            parsed.lease = value
    return parsed


def _and_logged(
    entries: Iterator[EtcdEntry],
    bolt: BoltFile,
    compacted: int,
    logs: tuple[ByteSource, ...],
    notes: Notes,
) -> Iterator[EtcdEntry]:
    """The writes of a database, and those that stand in its log alone."""
    requests = LoggedRequests()
    for log in logs:
        requests.read(log.whole())
    applied = next((_INDEX.unpack(each)[0] for each in _meta(bolt, _APPLIED)), 0)
    leases = {_INDEX.unpack(key)[0] for key, _ in bolt.bucket(b"lease") if len(key) == _INDEX.size}
    store = EtcdKeys(compacted, {}, leases)
    for entry in entries:
        yield entry
        store.note(entry)
    place, count = logs[-1].name, 0
    try:
        for entry in write_logs.writes(store, requests.after(applied, place), place):
            count += 1
            yield entry
    except InputError as problem:
        notes.lose(problem)
    if count:
        notes.add(f"{place}: {counts.of(count, 'write')} that the database does not have yet")
    if requests.uncommitted:
        unsure = counts.of(requests.uncommitted, "request")
        notes.lose(
            InputError(
                f"{unsure} at the end of the log, of which it does not say that a majority of "
                "the members has them",
                place=place,
            )
        )


def _meta(bolt: BoltFile, name: bytes) -> list[bytes]:
    return [value for key, value in bolt.bucket(b"meta") if key == name and len(value) == 8]


def _compacted(bolt: BoltFile) -> int:
    """The last revision up to which writes may be missing, also by a compaction under way."""
    revisions = [
        _REVISION.unpack(value[:17])[0]
        for key, value in bolt.bucket(b"meta")
        if key in _COMPACTIONS and len(value) >= 17
    ]
    return max(revisions, default=0)


def _check_digest(buffer: mmap.mmap, size: int, place: str) -> int:
    """The size without the digest that the snapshot command appends.

    Raises InputError for a wrong digest.
    """
    if size % 512 != DIGEST_BYTES:
        return size
    digest = hashlib.sha256()
    end = size - DIGEST_BYTES
    for at in range(0, end, 1 << 20):
        digest.update(buffer[at : min(at + (1 << 20), end)])
    if digest.digest() != buffer[end:size]:
        raise InputError(
            "the snapshot does not have the SHA-256 at its end", place=place, cure="take it again"
        )
    return end


@contextmanager
def _mapped(source: ByteSource) -> Iterator[tuple[mmap.mmap, int]]:
    """The unpacked bytes as a memory map of a temporary file, which is removed afterwards."""
    with tempfile.TemporaryFile() as file:
        size = _copy(source, file)
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as buffer:
            yield buffer, size


def _copy(source: ByteSource, file: IO[bytes]) -> int:
    size = 0
    for chunk in source.chunks():
        file.write(chunk)
        size += len(chunk)
    if not size:
        raise InputError("the file is empty", place=source.name)
    file.flush()
    return size
