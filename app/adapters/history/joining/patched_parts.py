"""Parts of an object that a patch does not name, and that are changed in its answer.

An audit log has both the body of a patch and the object after it. What changed although the patch
does not name it was written before, by a request that is not in the log. What was written before
and is overwritten by the patch shows in `metadata.managedFields` alone. Parity: history-formats.md
4.5.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

from app.domain.log.records import PatchedEffect
from app.domain.objects.write.commands import PatchType
from app.domain.values import condition_types, json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

Part: TypeAlias = tuple[str, str]
"""The sort of a part, and the name of the annotation, label, condition or field."""

_ANNOTATION, _CONDITION, _STATUS = "annotation", "condition", "status"
_LABEL, _SPEC = "label", "spec"
NODE_SORTS = frozenset((_LABEL, _SPEC))
"""The sorts that are judged of nodes alone."""

_NODE = "Node"
"""The kind of which labels and fields of the spec are judged.

A binding changes those of pods, defaults those of other kinds.
"""

_ANY = ""
"""The name of a part that stands for all of its sort."""

_CONDITIONS = "conditions"
BOUND: frozenset[Part] = frozenset(
    ((_STATUS, "nominatedNodeName"), (_CONDITION, condition_types.POD_SCHEDULED))
)
"""The parts that a binding changes. Parity: controllers.md 4.6."""

NO_PATCH = PatchedEffect(media_type=PatchType.MERGE.value, body={})
"""The patch with the same effect on the judged parts as a deletion: none."""

_ANCIENT = "ancient-changes"
"""The manager under which a server joins the oldest entries of others. Parity: api.md 8."""

_BY_TYPE = frozenset((PatchType.STRATEGIC.value, PatchType.APPLY.value))
"""Patches that name single conditions; others replace the list of all."""


_MARKS = frozenset(("$patch", "$retainKeys"))
"""Marks in a patch that replace or remove the mapping in which they are."""

_TYPE = re.compile(r'k:\{"type":"([^"]+)"\}')
"""The key of a condition in `fieldsV1`."""

_PATHS = {
    _ANNOTATION: ("metadata", "annotations"),
    _LABEL: ("metadata", "labels"),
    _SPEC: ("spec",),
    _STATUS: ("status",),
}
"""Where the names of each sort are; those of conditions are in a list."""


def changed_beside(before: JsonView, after: JsonView, patch: PatchedEffect) -> Iterator[Part]:
    """The parts that the patch does not name and that changed; `after` is its answer.

    Server-side apply also removes what its manager had set before. The type of a patch may be a
    guess: where the answer has just the conditions of the patch, these may have replaced others.
    """
    named = set(parts_of(patch))
    is_apply = patch.media_type == PatchType.APPLY
    old, new = _content(before), _content(after)
    if _of_sort(named, _CONDITION) == _of_sort(new, _CONDITION):
        named.add((_CONDITION, _ANY))
    for part in sorted(old.keys() | new.keys()):
        is_named = part in named or (part[0], _ANY) in named
        is_removed = part not in new and is_apply
        if old.get(part) != new.get(part) and not (is_named or is_removed):
            yield part


def is_managed_beside(before: JsonView, after: JsonView, named: Collection[Part]) -> bool:
    """Whether the managers of fields show several writes between two states, all but one unseen.

    A write adds or renews one entry of `managedFields`. A write that changes nothing is not stored,
    so each changed a part that a later one has overwritten: `named` are the parts that these name.
    """
    old, new = _entries(before), _entries(after)
    fresh = [parts & set(named) for entry, parts in new.items() if old and entry not in old]
    return len(fresh) > 1 and all(fresh)


def parts_of(patch: PatchedEffect) -> Iterator[Part]:
    """The parts that a patch names; a list of operations may change any."""
    body = patch.body
    if not isinstance(body, dict):
        yield from ((sort, _ANY) for sort in (*_PATHS, _CONDITION))
        return
    for sort, path in _PATHS.items():
        yield from ((sort, name) for name in _named(body, *path) if name != _CONDITIONS)
    fields = set(_named(body, *_PATHS[_STATUS]))
    if _ANY in fields:
        yield _CONDITION, _ANY
    elif _CONDITIONS in fields:
        yield from ((_CONDITION, name) for name in _types(patch, body["status"][_CONDITIONS]))


def _named(body: JsonView, *path: str) -> Iterator[str]:
    """The names in a mapping of a patch; `_ANY` where it is replaced or removed as a whole."""
    value: object = body
    for step in (*path, ""):
        if not isinstance(value, dict) or value.keys() & _MARKS:
            yield _ANY
            return
        if not step:
            yield from value
        elif step not in value:
            return
        else:
            value = value[step]


def _types(patch: PatchedEffect, items: object) -> Iterator[str]:
    """The types of the conditions in a patch; `_ANY` where it replaces the list of all."""
    for item in items if isinstance(items, list) else [None]:
        name = item.get("type") if isinstance(item, dict) else None
        is_single = isinstance(name, str) and patch.media_type in _BY_TYPE
        yield name if is_single and isinstance(name, str) else _ANY


def _of_sort(parts: Iterable[Part], sort: str) -> set[str]:
    return {name for each, name in parts if each == sort}


def _content(tree: JsonView) -> dict[Part, object]:
    """The judged parts with their values, without those that a source may omit.

    The time of a condition is left out: that of a binding is derived from its answer.
    """
    sorts = _PATHS if tree.get("kind") == _NODE else (_ANNOTATION, _STATUS)
    content: dict[Part, object] = {
        (sort, name): bare
        for sort in sorts
        for name, value in json_tree.mapping(tree, *_PATHS[sort]).items()
        if name != _CONDITIONS and (bare := _bare(value)) not in (None, {}, [])
    }
    for each in meta.conditions(tree):
        content[_CONDITION, each.type] = (each.status, each.reason, each.message)
    return content


def _entries(tree: JsonView) -> dict[tuple[str, ...], set[Part]]:
    """The entries of `managedFields` by manager, operation, subresource and time, with parts."""
    names = ("manager", "operation", "subresource", "time")
    return {
        tuple(str(entry.get(name, "")) for name in names): set(_managed(entry))
        for entry in meta.managed_entries(tree)
        if entry.get("manager") != _ANCIENT
    }


def _managed(entry: JsonView) -> Iterator[Part]:
    """The parts that an entry of `managedFields` names."""
    for name in json_tree.mapping(entry, "fieldsV1", "f:metadata", "f:annotations"):
        yield _ANNOTATION, name.removeprefix("f:")
    status = json_tree.mapping(entry, "fieldsV1", "f:status")
    names = (name.removeprefix("f:") for name in status)
    yield from ((_STATUS, name) for name in names if name != _CONDITIONS)
    for name in json_tree.mapping(status, "f:conditions"):
        if match := _TYPE.fullmatch(name):
            yield _CONDITION, match[1]


def _bare(value: object) -> object:
    """A value without what a source may omit at any depth: empty mappings and lists, and nulls."""
    if isinstance(value, dict):
        bare = ((name, _bare(item)) for name, item in value.items())
        return {name: item for name, item in bare if item not in (None, {}, [])}
    return [_bare(item) for item in value] if isinstance(value, list) else value
