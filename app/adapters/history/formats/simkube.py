"""The reader of SimKube traces, versions 1 to 3: applied and deleted objects by the second.

Parity: history-formats.md 9.

A trace holds specifications only: no uid or resource version, and rarely a status. It can be
replayed as input; the replay makes its own allocations. Version 3 adds the objects that exist
before the first event. Version 1 is an array of the parts that are named later, in their order.
"""

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from app.adapters.history import json_text, kinds
from app.adapters.history.reading import Notes, object_record
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Op, Quality, Record
from app.domain.values import counts, timestamps
from app.domain.values.timestamps import Instant

VERSIONS = (1, 2, 3)
_PARTS_OF_1 = ("config", "events", "index", "pod_lifecycles")
_ARRAY_OF_1 = bytes([0x90 + len(_PARTS_OF_1)])
"""The first byte of version 1 as MessagePack."""

_TRACKED = "trackedObjects"
TRACE_UIDS = uuid.UUID("0d5b8e55-65a8-5d0c-8f0e-3a6d7a3b9c21")
"""UUID namespace of the derived uids of objects in a trace."""

_LOSSES = (Loss.COARSE_TIME, Loss.SPEC_ONLY)


def is_trace(value: Any) -> bool:
    """True for a decoded trace; its events are looked at where it has no version."""
    if isinstance(value, list):
        return len(value) > 1 and isinstance(value[0], dict) and _TRACKED in value[0]
    if not isinstance(value, dict) or not isinstance(value.get("events"), list):
        return False
    if {"version", "config"} <= value.keys():
        return True
    return any(isinstance(each, dict) and {"ts", "applied_objs"} <= each.keys()
               for each in value["events"])  # fmt: skip


def begins_packed_array(head: bytes) -> bool:
    """True when bytes begin like a trace of version 1 as MessagePack."""
    return head.startswith(_ARRAY_OF_1) and _TRACKED.encode() in head[:64]


def is_packed(source: ByteSource) -> bool:
    """True when a file is one map or array of MessagePack."""
    try:
        return isinstance(msgspec.msgpack.decode(source.whole()), dict | list)
    except (InputError, msgspec.DecodeError, RecursionError, TypeError, ValueError):
        return False


def read(source: ByteSource, number: int, notes: Notes) -> Iterator[Record]:
    """The records of a trace. Raises InputError.

    Baseline are the objects of the initial state; without any, those of the first second.
    """
    trace = _decode(source, notes)
    _check_version(trace.get("version", 1), source.name)
    events, state = trace.get("events"), trace.get("initial_state") or []
    if not isinstance(events, list) or not isinstance(state, list):
        raise InputError("the trace has no list of events or of objects", place=source.name)
    lifecycles = trace.get("pod_lifecycles")
    if isinstance(lifecycles, dict) and lifecycles:
        owners = counts.of(len(lifecycles), "owner")
        notes.add(f"{source.name}: run times of {owners} of pods are left out")
    incarnations: dict[ObjectKey, int] = {}
    known: dict[ObjectKey, str] = {}
    first: int | None = None
    index = 0
    for place, tree in enumerate(state):
        index += 1
        begin = _seconds(events[0], f"{source.name}:0") if events else None
        moment = None if begin is None else Instant(begin * timestamps.SECOND)
        position = f"initial_state[{place}]"
        record = _record(tree, Op.BASELINE, source.name, position, (number, index), moment)
        yield _identified(record, known, incarnations)
    for turn, event in enumerate(events):
        seconds = _seconds(event, f"{source.name}:{turn}")
        first = seconds if first is None else first
        moment = Instant(seconds * timestamps.SECOND)
        for field, is_deletion in (("applied_objs", False), ("deleted_objs", True)):
            for place, tree in enumerate(event.get(field) or ()):
                index += 1
                position = f"{turn}/{field}[{place}]"
                is_state = seconds == first and not state
                op = Op.DELETED if is_deletion else Op.BASELINE if is_state else Op.ADDED
                record = _record(tree, op, source.name, position, (number, index), moment)
                yield _identified(record, known, incarnations)


def _check_version(version: Any, name: str) -> None:
    if version in VERSIONS:
        return
    raise InputError(
        f"the trace has version {version!r}; {VERSIONS[0]} to {VERSIONS[-1]} are read",
        place=name,
        cure="export it with an older SimKube",
    )


def _seconds(event: Any, place: str) -> int:
    seconds = event.get("ts") if isinstance(event, dict) else None
    if not isinstance(seconds, int):
        raise InputError("an event without a time", place=place)
    return seconds


def _record(
    tree: Any,
    op: Op,
    source: str,
    position: str,
    order: tuple[int, int],
    moment: Instant | None,
) -> Record:
    if not isinstance(tree, dict):
        raise InputError("it is not an object", place=f"{source}:{position}")
    return object_record(
        tree,
        op,
        source=source,
        position=position,
        order=order,
        observed_at=moment,
        losses=(*_LOSSES, Loss.NO_STATUS) if kinds.lacks_status(tree) else _LOSSES,
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
    if content.lstrip()[:1] in (b"{", b"["):
        value = json_text.decode(content, source.name, source.limits)
        notes.lose_repeated(json_text.repeated_keys(content, value), source.name)
    else:
        try:
            value = msgspec.msgpack.decode(content)
        except (msgspec.DecodeError, RecursionError, TypeError, ValueError) as problem:
            raise InputError(f"it is not MessagePack: {problem}", place=source.name) from problem
        json_text.check_depth(value, source.name, source.limits)
    if isinstance(value, list):
        value = dict(zip(_PARTS_OF_1, value, strict=False))
    if not isinstance(value, dict):
        raise InputError("the trace is not a map", place=source.name)
    return value
