"""Patched objects as the API server prints them if it cannot decode them."""

from collections.abc import Mapping
from typing import Any

from app.domain.objects.protobuf.fields import MESSAGES
from app.domain.objects.schema.structural import SchemaNode, SchemaShape, short_name
from app.domain.values.json_tree import JsonObject

Touched = Mapping[str, Any]
"""The paths of a patch: a tree of keys, with an empty tree after the last key."""


def reached(patch: Any) -> Touched:
    """The paths of a merge patch: the keys of its nested objects."""
    if not isinstance(patch, Mapping):
        return {}
    return {key: reached(value) for key, value in patch.items()}


def reached_by(paths: list[list[str]]) -> Touched:
    """The paths of the operations of a JSON patch."""
    reached: dict[str, Any] = {}
    for path in paths:
        place = reached
        for part in path:
            place = place.setdefault(part, {})
    return reached


def ordered(value: Any, node: SchemaNode | None, touched: Touched | None) -> Any:
    """A patched object in printed order: keys sorted along the patch's paths, else by type.

    Parity: api.md 8; a JSON or merge patch decodes only the parts on its paths, and leaves the
    others as they were written.
    """
    if isinstance(value, list):
        items = node.items if node is not None and node.shape is SchemaShape.LIST else None
        below = touched or {}
        return [ordered(item, items, below.get(str(at))) for at, item in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    is_map = node is not None and node.shape is SchemaShape.MAP
    names = sorted(value) if touched is not None else _in_type_order(value, node)
    pairs: JsonObject = {}
    for name in names:
        child = None if node is None else node.items if is_map else node.fields.get(name)
        pairs[name] = ordered(value[name], child, None if touched is None else touched.get(name))
    return pairs


def _in_type_order(value: Mapping[str, Any], node: SchemaNode | None) -> list[str]:
    message = MESSAGES.get(short_name(node.definition)) if node is not None else None
    if message is None:
        return sorted(value)
    places = {field.name: number for number, field in message.items()}
    return sorted(value, key=lambda name: (places.get(name, 0), name))
