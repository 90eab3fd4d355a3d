"""The reader of scheduler simulator records: lines of time, event and resource.

Parity: history-formats.md 10.1.
"""

from collections.abc import Iterator

import msgspec

from app.adapters.history import documents, json_text, kinds
from app.adapters.history.reading import Notes, object_record
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Op, Quality, Record
from app.domain.values import json_tree, timestamps
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant, TimestampError

_OPS = {"Add": Op.ADDED, "Update": Op.MODIFIED, "Delete": Op.DELETED}


def read(source: ByteSource, number: int, notes: Notes) -> Iterator[Record]:
    """The records of one file; leading additions are the initial list. Raises InputError.

    A truncated last line is noted and left out.
    """
    listed: set[ObjectKey] = set()
    is_listing = True
    newest = ""
    pending: InputError | None = None
    lines = _items(source) if source.head(1) == b"[" else source.lines()
    for index, (line_number, line) in enumerate(lines, start=1):
        if pending is not None:
            raise pending
        place = f"{source.name}:{line_number}"
        try:
            content, _ = documents.split_stamp(line)
            value = json_text.decode(content, place, source.limits)
            notes.lose_repeated(json_text.repeated_keys(content, value), place)
        except InputError as problem:
            # Only the last line may be cut.
            pending = problem
            continue
        try:
            record = _record(value, source.name, str(line_number), (number, index))
        except InputError as problem:
            notes.refuse(problem)
            continue
        if is_listing and record.op is Op.ADDED and record.key not in listed:
            listed.add(record.key)
            newest = max(newest, record.order_key[1])
            yield msgspec.structs.replace(record, op=Op.BASELINE)
            continue
        is_listing = False
        newest = max(newest, record.order_key[1])
        if record.op is Op.DELETED:
            # Its version, if any, is that of the last change, so only its position is known.
            order_key = (0, newest, 1, number, index)
            record = msgspec.structs.replace(record, order_key=order_key, resource_version="")
        yield record
    if pending is not None:
        notes.add(f"{pending.place}: the last line is cut and left out")


def _items(source: ByteSource) -> Iterator[tuple[int, bytes]]:
    """The items of a record that is one array, as lines."""
    values = json_text.decode(source.whole(), source.name, source.limits)
    yield from ((number, json_text.encode(value)) for number, value in enumerate(values, start=1))


def _record(value: JsonObject, source: str, position: str, order: tuple[int, int]) -> Record:
    place = f"{source}:{position}"
    tree = value.get("resource") if isinstance(value, dict) else None
    op = _OPS.get(json_tree.text(value, "event")) if isinstance(value, dict) else None
    if op is None or not isinstance(tree, dict):
        raise InputError("it is not a line of time, event and resource", place=place)
    moment = _instant(json_tree.text(value, "time"), place)
    if op is not Op.DELETED:
        return object_record(
            tree, op, source=source, position=position, order=order, observed_at=moment
        )
    key = kinds.key_of(tree, place)
    is_full = bool(meta.uid(tree))
    record = object_record(
        tree, op, source=source, position=position, order=order, observed_at=moment
    )
    if is_full:
        return record
    return msgspec.structs.replace(
        record,
        namespace=key.namespace,
        object=None,
        object_quality=Quality.IDENTITY,
        losses=tuple(sorted({*record.losses, Loss.NO_DELETE_STATE})),
    )


def _instant(text: str, place: str) -> Instant:
    try:
        return timestamps.parse(text)
    except TimestampError as problem:
        raise InputError(str(problem), place=place) from problem
