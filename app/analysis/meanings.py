"""The meaning of an object: one form for all trees that the API does not distinguish.

Two trees mean the same when their meanings are equal. Verify and decide both compare meanings, so
that notation makes no difference: `5G` and `5000000000`, an absent list and an empty one, an
instant with and without fractions, the order of a list whose items have keys. A field that the
kind does not declare, as of a newer release, is left out: readers that do not know it drop it. Raw
JSON (parameters of drivers) and atomic lists are compared as written. Parity: objects.md 2.
"""

from collections.abc import Collection, Sequence
from typing import Any

from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.objects.schema import structural
from app.domain.objects.schema.structural import SchemaNode, Schemas, SchemaShape, storage_node
from app.domain.values import api_groups, quantity, timestamps
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import QuantityError
from app.domain.values.timestamps import TimestampError

RANDOM = frozenset(("allocationTimestamp", "shareID"))
"""Fields of an allocation that are random or from a clock, and differ when decided again."""

_NANO = 10**9


def node_of(schemas: Schemas, key: ObjectKey) -> SchemaNode | None:
    """The schema of an object's kind as it is stored; None for an unknown kind."""
    kind = registry.find(key.group, key.resource)
    return None if kind is None else storage_node(schemas, kind)


def allocation_node(schemas: Schemas) -> SchemaNode | None:
    """The schema of `status.allocation` of a ResourceClaim."""
    node = node_of(schemas, ObjectKey(api_groups.RESOURCE, "resourceclaims", "", ""))
    for name in ("status", "allocation"):
        node = None if node is None else structural.child_of(node, name)
    return node


def of_allocation(allocation: JsonView, schemas: Schemas) -> JsonObject:
    """The meaning of an allocation without its random fields."""
    meaning: JsonObject = of(allocation, allocation_node(schemas), without=RANDOM)
    return meaning


def is_declared(node: SchemaNode | None, path: Sequence[str]) -> bool:
    """Whether the kind declares the field of a path; keys of maps and items of lists are its own.

    Without a node, every field counts as declared.
    """
    for name in path:
        if node is None or node.shape is not SchemaShape.OBJECT:
            return True
        if _is_undeclared(node, name):
            return False
        node = node.fields.get(name)
    return True


def at(node: SchemaNode | None, path: Sequence[str]) -> SchemaNode | None:
    """The schema at the path of a field; None where none is declared."""
    for name in path:
        node = structural.child_of(node, name)
    return node


def of(tree: Any, node: SchemaNode | None, *, without: Collection[str] = ()) -> Any:
    """The meaning of a tree at `node`; without a node, only null and empty collections are dropped.

    Fields named in `without` are left out wherever an object has them. A quantity becomes its exact
    value in decimal notation, a time its instant in microseconds. A value that cannot be parsed as
    either stays as written.
    """
    if node is not None and node.shape is SchemaShape.ANY:
        return tree
    if isinstance(tree, dict):
        is_map = node is not None and node.shape is SchemaShape.MAP
        return {
            name: meaning
            for name, value in tree.items()
            if is_map or name not in without
            if node is None or not _is_undeclared(node, name)
            if not _is_nothing(
                meaning := of(value, structural.child_of(node, name), without=without), node, name
            )
        }
    if isinstance(tree, list):
        items = node.items if node is not None and node.shape is SchemaShape.LIST else None
        return _ordered([of(item, items, without=without) for item in tree], node)
    if node is None or tree is None:
        return tree
    if node.shape is SchemaShape.QUANTITY:
        return _amount(tree)
    if node.shape in (SchemaShape.TIME, SchemaShape.MICRO_TIME):
        return _instant(tree)
    return tree


def _is_undeclared(node: SchemaNode, name: str) -> bool:
    """Whether an object may not have this field: a server that does not know a field drops it."""
    return node.shape is SchemaShape.OBJECT and not node.is_open and name not in node.fields


def _is_nothing(meaning: Any, parent: SchemaNode | None, name: str) -> bool:
    """Whether a field with this value means the same as an absent one."""
    if meaning is None or meaning == []:
        return True
    if parent is not None and parent.shape is SchemaShape.MAP:
        return False
    node = structural.child_of(parent, name)
    if meaning == {} and name == "status" and structural.child_of(parent, "metadata") is not None:
        # An object without a status is answered with or without an empty one.
        return True
    if meaning == {}:
        # A set struct differs from an absent one: `nodeSelector: {}` selects nothing.
        return node is None or node.shape is SchemaShape.MAP
    is_zero = meaning is False or meaning == "" or (meaning == 0 and meaning is not True)
    return is_zero and node is not None and node.omits_zero


def _ordered(items: list[Any], node: SchemaNode | None) -> list[Any]:
    """The items of a set or of a list with keys, sorted by these; other lists keep their order."""
    if node is None or node.shape is not SchemaShape.LIST:
        return items
    if node.list_type == "set":
        return sorted(items, key=repr)
    if node.list_type == "map" and all(isinstance(item, dict) for item in items):
        return sorted(items, key=lambda item: [repr(item.get(key)) for key in node.list_keys])
    return items


def _amount(value: Any) -> Any:
    try:
        nanos = quantity.from_json(value).nanos
    except QuantityError:
        return value
    whole, part = divmod(abs(nanos), _NANO)
    sign = "-" if nanos < 0 else ""
    return f"{sign}{whole}.{part:09d}".rstrip("0") if part else f"{sign}{whole}"


def _instant(value: Any) -> Any:
    try:
        return timestamps.micro_text(timestamps.parse(value))
    except (TimestampError, TypeError, AttributeError):
        return value
