"""The reader of SimKube traces, version 2: applied and deleted objects, with times in seconds.

Parity: history-formats.md 9.

A trace holds specifications only: no status, uid or resource version. It can be replayed as input;
the replay makes its own allocations.
"""

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from app.adapters.history import json_text
from app.adapters.history.reading import Notes, object_record
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Op, Quality, Record
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

VERSION = 2
TRACE_UIDS = uuid.UUID("0d5b8e55-65a8-5d0c-8f0e-3a6d7a3b9c21")
"""UUID namespace of the derived uids of objects in a trace."""

_LOSSES = (Loss.COARSE_TIME, Loss.NO_STATUS, Loss.SPEC_ONLY)


def read(source: ByteSource, number: int, notes: Notes) -> Iterator[Record]:
    """The records of a trace; the objects of the first second are baseline. Raises InputError."""
    trace = _decode(source, notes)
    if trace.get("version") != VERSION:
        raise InputError(
            f"the trace has version {trace.get('version')!r}, {VERSION} is read",
            place=source.name,
            cure="export it again with a newer SimKube",
        )
    events = trace.get("events")
    if not isinstance(events, list):
        raise InputError("the trace has no events", place=source.name)
    lifecycles = trace.get("pod_lifecycles")
    if isinstance(lifecycles, dict) and lifecycles:
        notes.add(f"{source.name}: run times of {len(lifecycles)} owners of pods are left out")
    incarnations: dict[ObjectKey, int] = {}
    known: dict[ObjectKey, str] = {}
    first: int | None = None
    index = 0
    for turn, event in enumerate(events):
        seconds = event.get("ts") if isinstance(event, dict) else None
        if not isinstance(seconds, int):
            raise InputError("an event without a time", place=f"{source.name}:{turn}")
        first = seconds if first is None else first
        moment = Instant(seconds * timestamps.SECOND)
        for field, is_deletion in (("applied_objs", False), ("deleted_objs", True)):
            for place, tree in enumerate(event.get(field) or ()):
                index += 1
                position = f"{turn}/{field}[{place}]"
                if not isinstance(tree, dict):
                    raise InputError("it is not an object", place=f"{source.name}:{position}")
                op = Op.DELETED if is_deletion else Op.BASELINE if seconds == first else Op.ADDED
                record = _record(tree, op, source.name, position, (number, index), moment)
                yield _identified(record, known, incarnations)


def _record(
    tree: JsonObject,
    op: Op,
    source: str,
    position: str,
    order: tuple[int, int],
    moment: Instant,
) -> Record:
    return object_record(
        tree,
        op,
        source=source,
        position=position,
        order=order,
        observed_at=moment,
        losses=_LOSSES,
        quality=Quality.PARTIAL,
    )


def _identified(
    record: Record, known: dict[ObjectKey, str], incarnations: dict[ObjectKey, int]
) -> Record:
    """The record with a derived uid: the same in every import, and a new one after a deletion."""
    key = record.key
    op = record.op
    if op is Op.DELETED:
        uid = known.pop(key, "")
        losses = tuple(sorted({*record.losses, Loss.NO_DELETE_STATE}))
        return msgspec.structs.replace(
            record, uid=uid, object=None, object_quality=Quality.IDENTITY, losses=losses
        )
    if key in known:
        op = Op.MODIFIED
    else:
        turn = incarnations[key] = incarnations.get(key, 0) + 1
        known[key] = str(uuid.uuid5(TRACE_UIDS, f"{record.source}\0{key}\0{turn}"))
    tree = record.object or {}
    metadata = {**tree.get("metadata", {}), "uid": known[key]}
    return msgspec.structs.replace(
        record, op=op, uid=known[key], object={**tree, "metadata": metadata}
    )


def _decode(source: ByteSource, notes: Notes) -> dict[str, Any]:
    content = source.whole()
    if content.lstrip()[:1] == b"{":
        value = json_text.decode(content, source.name, source.limits)
        notes.lose_repeated(json_text.repeated_keys(content, value), source.name)
    else:
        try:
            value = msgspec.msgpack.decode(content)
        except (msgspec.DecodeError, RecursionError, TypeError, ValueError) as problem:
            raise InputError(f"it is not MessagePack: {problem}", place=source.name) from problem
        json_text.check_depth(value, source.name, source.limits)
    if not isinstance(value, dict):
        raise InputError("the trace is not a map", place=source.name)
    return value
