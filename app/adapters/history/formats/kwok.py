"""The reader of kwok recordings: objects, then patches with time offsets from the start.

Parity: history-formats.md 8.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from app.adapters.history import documents, kinds
from app.adapters.history.reading import Notes, ReadOptions, object_record
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Op, PatchedEffect, Quality, Record, TimeQuality
from app.domain.objects.write.commands import PatchType
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

FIXED_START = timestamps.parse("2000-01-01T00:00:00Z")
"""The start of a recording that has none; its times are marked as missing."""

_OFFSET = re.compile(r"\$\(time-offset-nanosecond (-?\d{1,19})\)")
_MICRO_FIELDS = frozenset({"eventTime", "lastObservedTime", "renewTime", "acquireTime"})
"""Fields with microseconds; all other times of the API are whole seconds."""


def read(source: ByteSource, number: int, options: ReadOptions, notes: Notes) -> Iterator[Record]:
    """The records of baseline objects, then of patches by offset. Raises InputError.

    `options.at` is the start of the recording; without it every time is an offset from a fixed
    instant. Objects keep their uid; resource versions are blanked, because patches have none.
    """
    start = options.at if options.at is not None else FIXED_START
    losses: tuple[Loss, ...] = (Loss.NO_ACTOR, Loss.NO_RV)
    if options.at is None:
        losses = (*losses, Loss.NO_TIME)
        notes.add(f"{source.name}: the start is not recorded (--at): times are offsets only")
    patches: list[tuple[int, int, str, JsonObject]] = []
    index = 0
    for position, value in documents.read_documents(source, notes):
        if not isinstance(value, dict):
            raise InputError("it is not an object", place=f"{source.name}:{position}")
        index += 1
        if value.get("kind") == "ResourcePatch":
            duration = json_tree.integer(value, "durationNanosecond") or 0
            patches.append((duration, index, position, value))
            continue
        tree = _without_version(restore_times(value, start))
        yield object_record(
            tree,
            Op.BASELINE,
            source=source.name,
            position=position,
            order=(number, index),
            observed_at=start,
            losses=losses,
        )
    for turn, (duration, _, position, value) in enumerate(sorted(patches, key=lambda p: p[:2])):
        moment = Instant(start + duration // 1000)
        try:
            yield _patch_record(
                value, source.name, position, (number, index + turn + 1), moment, start, losses
            )
        except InputError as problem:
            notes.refuse(problem)


def _patch_record(
    value: JsonObject,
    source: str,
    position: str,
    order: tuple[int, int],
    moment: Instant,
    start: Instant,
    losses: tuple[Loss, ...],
) -> Record:
    method = json_tree.text(value, "method")
    template = value.get("template")
    body = restore_times(template, start) if isinstance(template, dict) else None
    key = ObjectKey(
        json_tree.text(value, "resource", "group"),
        json_tree.text(value, "resource", "resource"),
        json_tree.text(value, "target", "namespace"),
        json_tree.text(value, "target", "name"),
    )
    if not key.resource or not key.name:
        raise InputError("the patch names no object", place=f"{source}:{position}")
    record = Record(
        source=source,
        position=position,
        op=_op(method, body, f"{source}:{position}"),
        group=key.group,
        version=json_tree.text(value, "resource", "version"),
        resource=key.resource,
        namespace="" if kinds.is_cluster_resource(key.resource) else key.namespace,
        name=key.name,
        observed_at=moment,
        time_quality=TimeQuality.EXACT if Loss.NO_TIME not in losses else TimeQuality.DERIVED,
        order_key=(0, "", 0, *order),
        verb=method,
        losses=tuple(sorted(losses)),
    )
    if method == "create" and body is not None:
        return object_record(
            _without_version(body),
            Op.ADDED,
            source=source,
            position=position,
            order=order,
            observed_at=moment,
            losses=losses,
        )
    if method == "patch" and body is not None:
        return msgspec.structs.replace(
            record,
            object_quality=Quality.RECONSTRUCTED,
            effect=PatchedEffect(media_type=PatchType.STRATEGIC.value, body=body),
        )
    return msgspec.structs.replace(
        record,
        object_quality=Quality.IDENTITY,
        losses=tuple(sorted({*losses, Loss.NO_DELETE_STATE})),
    )


def _op(method: str, body: JsonObject | None, place: str) -> Op:
    if method == "delete":
        return Op.DELETED
    if method in ("create", "patch") and body is not None:
        return Op.ADDED if method == "create" else Op.MODIFIED
    raise InputError(
        f"a patch with method {method!r} {'and' if body is not None else 'without'} a template",
        place=place,
        cure="create and patch need a template, delete none",
    )


def restore_times(value: Any, start: Instant, field: str = "") -> Any:
    """The tree with times (start + N ns) for offsets, in whole seconds where the API has them.

    Example: offset -5000000000 with start 00:00:10 → `…:00:05Z`.
    """
    if isinstance(value, dict):
        return {name: restore_times(item, start, name) for name, item in value.items()}
    if isinstance(value, list):
        return [restore_times(item, start, field) for item in value]
    if isinstance(value, str) and value.startswith("$("):
        match = _OFFSET.fullmatch(value)
        if match is not None:
            moment = Instant(start + int(match.group(1)) // 1000)
            is_micro = field in _MICRO_FIELDS
            return timestamps.micro_text(moment) if is_micro else timestamps.seconds_text(moment)
    return value


def _without_version(tree: JsonObject) -> JsonObject:
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict):
        return tree
    kept = {name: item for name, item in metadata.items() if name != "resourceVersion"}
    return {**tree, "metadata": kept}
