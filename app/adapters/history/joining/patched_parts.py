"""Parts of an object that a patch does not name, and that are changed in its answer.

An audit log has both the body of a patch and the object after it. What changed although the patch
does not name it was written before, by a request that is not in the log. Parity: history-formats.md
4.5.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from app.domain.log.records import PatchedEffect
from app.domain.objects.write.commands import PatchType
from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

Part: TypeAlias = tuple[str, str]
"""`annotation`, `condition` or `status`, and the name of the annotation, condition or field."""

_ANNOTATION, _CONDITION, _STATUS = "annotation", "condition", "status"
_ANY = ""
"""The name of a part that stands for all of its sort."""

_CONDITIONS = "conditions"
_BY_TYPE = frozenset((PatchType.STRATEGIC.value, PatchType.APPLY.value))
"""Patches that name single conditions; others replace the list of all."""


_MARKS = frozenset(("$patch", "$retainKeys"))
"""Marks in a patch that replace or remove the mapping in which they are."""

_EVERYTHING = ((_ANNOTATION, _ANY), (_CONDITION, _ANY), (_STATUS, _ANY))


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


def parts_of(patch: PatchedEffect) -> Iterator[Part]:
    """The parts that a patch names; a list of operations may change any."""
    body = patch.body
    if not isinstance(body, dict):
        yield from _EVERYTHING
        return
    yield from ((_ANNOTATION, name) for name in _named(body, "metadata", "annotations"))
    fields = set(_named(body, "status"))
    yield from ((_STATUS, name) for name in fields)
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
    content: dict[Part, object] = {
        (_ANNOTATION, name): value for name, value in meta.annotations(tree).items()
    }
    for name, value in json_tree.mapping(tree, "status").items():
        if name != _CONDITIONS and value not in (None, {}, []):
            content[_STATUS, name] = value
    for each in meta.conditions(tree):
        content[_CONDITION, each.type] = (each.status, each.reason, each.message)
    return content
