"""Detection of sources that show different content for one version of one object.

A server has one content per resource version, so at least one source is wrong, or the sources are
from different clusters. Content that a source may omit (managed fields, empty values, kind and API
version of a list's items) is not a difference, nor what a client of an older release leaves out
because it does not know the field. Parity: history-formats.md 3.4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from app.adapters.history.joining.spool import Row
from app.domain.log.records import Contradiction, Loss, Op, Quality, Record, join_losses
from app.domain.values.json_tree import JsonObject

_SHOWN = frozenset({Op.BASELINE, Op.ADDED, Op.MODIFIED})
"""Operations whose object has the content of its version.

A deletion may show the content before it with the version after it.
"""

_LEFT_OUT = frozenset({"managedFields", "selfLink"})


@dataclass(frozen=True, slots=True)
class _Absent:
    """The marker of a value that one side does not have."""


_ABSENT = _Absent()


def find(rows: Sequence[Row]) -> Contradiction | None:
    """The first contradiction between rows of one version of one object; None when all agree."""
    shown = [row for row in rows if _is_whole(row)]
    if len(shown) < 2 or len({row.body for row in shown}) == 1:
        return None
    first = shown[0]
    tree = first.tree() or {}
    for other in shown[1:]:
        path = difference(tree, other.tree() or {})
        if path and not _is_shortened(first, other):
            return Contradiction(
                key=first.record.key,
                version=first.record.resource_version,
                first=first.record.place,
                second=other.record.place,
                path=path,
            )
    return None


def of_uid(first: Record, record: Record) -> Contradiction:
    """The contradiction that two objects have one uid."""
    return Contradiction(
        key=record.key,
        version=record.resource_version,
        first=first.place,
        second=record.place,
        path=f"metadata.uid, which {first.key} has, too",
    )


def of_generation(before: Record, record: Record) -> Contradiction:
    """The contradiction that the generation of an object does not rise with its spec, or falls."""
    return Contradiction(
        key=record.key,
        version="",
        first=before.place,
        second=record.place,
        path="metadata.generation, which rises by one with each change of the spec",
    )


def of_version(first: Record, record: Record) -> Contradiction:
    """The contradiction that two objects were written with one version."""
    path = f"metadata.resourceVersion {record.resource_version}, which a write of {first.key} has"
    return _between(first, record, path)


def of_precondition(before: Record, record: Record) -> Contradiction:
    """The contradiction that a request was accepted upon a version that was no longer stored."""
    path = f"metadata.resourceVersion {record.upon} of the request, which is older than the stored"
    return _between(before, record, path)


def of_meant(before: Record, record: Record) -> Contradiction:
    """The contradiction that a request was accepted that means another object of the name."""
    path = f"metadata.uid {record.meant} of the request, which is not that of the object"
    return _between(before, record, path)


def of_answer(record: Record, path: str) -> Contradiction:
    """The contradiction that a request gives another value than its own answer shows."""
    return _between(record, record, f"{path}, to which the request gives another value")


def of_binding(first: Record, record: Record) -> Contradiction:
    """The contradiction that a pod was bound twice."""
    return _between(first, record, "spec.nodeName, which is set once")


def of_creation(before: Record, record: Record) -> Contradiction:
    """The contradiction that one object was created at two times."""
    return _between(before, record, "metadata.creationTimestamp, which is set once")


def of_fixed(before: Record, record: Record, path: str) -> Contradiction:
    """The contradiction that two states show another value of what no write changes."""
    return _between(before, record, f"{path}, which no write changes so")


def of_removed(removal: Record, record: Record) -> Contradiction:
    """The contradiction that a request was accepted about an object that was gone."""
    return _between(removal, record, f"metadata.uid {record.uid}, which was removed before")


def _between(first: Record, record: Record, path: str) -> Contradiction:
    return Contradiction(
        key=record.key, version="", first=first.place, second=record.place, path=path
    )


def marked(record: Record, loss: Loss = Loss.CONTRADICTED) -> Record:
    """The record, marked with the loss that it contradicts another source or what was before."""
    losses = join_losses(record.losses, (loss,))
    return msgspec.structs.replace(record, losses=losses)


def difference(one: JsonObject, other: JsonObject) -> str:
    """The path of the first difference between two objects; empty when they are equivalent."""
    return _difference(_content(one), _content(other), "")


def _is_shortened(one: Row, other: Row) -> bool:
    """True if a client with types printed one of them, which has nothing that the other lacks."""
    trees = [_content(row.tree() or {}) for row in (one, other)]
    return (one.record.is_typed and _covers(trees[1], trees[0])) or (
        other.record.is_typed and _covers(trees[0], trees[1])
    )


def _covers(whole: Any, part: Any) -> bool:
    """Whether a value has all that another one has, which may lack fields of objects in it."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(_covers(whole.get(name, _ABSENT), each) for name, each in part.items())
    if isinstance(whole, list) and isinstance(part, list) and len(whole) == len(part):
        return all(map(_covers, whole, part))
    return bool(whole == part) or (_is_empty(whole) and _is_empty(part))


def _is_whole(row: Row) -> bool:
    record = row.record
    return (
        row.body is not None
        and record.op in _SHOWN
        and record.effect is None
        and record.object_quality is Quality.FULL
    )


def _content(tree: JsonObject) -> JsonObject:
    content = {name: value for name, value in tree.items() if name not in ("apiVersion", "kind")}
    metadata = content.get("metadata")
    if isinstance(metadata, dict):
        content["metadata"] = {
            name: value for name, value in metadata.items() if name not in _LEFT_OUT
        }
    return content


def _difference(one: Any, other: Any, path: str) -> str:
    if one == other:
        return ""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys(), key=str):
            deeper = f"{path}.{name}" if path else str(name)
            difference = _difference(one.get(name, _ABSENT), other.get(name, _ABSENT), deeper)
            if difference:
                return difference
        return ""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            difference = _difference(left, right, f"{path}[{index}]")
            if difference:
                return difference
        return ""
    return "" if _is_empty(one) and _is_empty(other) else path


def _is_empty(value: Any) -> bool:
    """True for a value that a source may omit. A mapping of empty values is also empty."""
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return value is None or value is _ABSENT or value == []
