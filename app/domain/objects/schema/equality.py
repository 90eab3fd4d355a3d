"""Equality of trees as in the API: quantities are compared by value, unset and empty are equal.

Parity: objects.md 2. Python's equality is tried first, because it nearly always decides.
"""

from typing import Any

import msgspec

from app.domain.objects.schema import structural
from app.domain.objects.schema.structural import SchemaNode, SchemaShape
from app.domain.values import quantity
from app.domain.values.json_tree import JsonView

_encode = msgspec.json.Encoder(order="sorted").encode


def semantic_equal(left: Any, right: Any, node: SchemaNode | None = None) -> bool:
    """Whether the API considers the two values at `node` equal.

    Without a node, only null, empty collections and absence are equal. Booleans and integers
    differ, as they do in JSON.
    """
    if left == right and not _mixes_numbers(left, right):
        return True
    if node is not None and node.shape is SchemaShape.ANY:
        # Raw JSON is compared as written, because the meaning of empty parts is unknown here. In
        # managed fields an empty part means that the field is owned.
        return equal_json(left, right)
    if isinstance(left, dict) or isinstance(right, dict):
        return _equal_objects(left, right, node)
    if isinstance(left, list) or isinstance(right, list):
        return _equal_lists(left, right, node)
    if node is not None and node.shape is SchemaShape.QUANTITY:
        return _equal_quantities(left, right)
    if left is None or right is None:
        other = right if left is None else left
        return node is not None and node.omits_zero and not other
    return False


def same_object(left: JsonView, right: JsonView, node: SchemaNode, *, is_custom: bool) -> bool:
    """Whether a write from one object to the other changes nothing.

    Custom objects are stored as written, so an empty part differs from an absent one.
    """
    return equal_json(left, right) if is_custom else semantic_equal(left, right, node)


def is_unchanged(new: Any, stored: Any) -> bool:
    """Whether the values are equal in the sense of rules for immutable fields."""
    return bool(new == stored) and not _mixes_numbers(new, stored)


def _mixes_numbers(left: Any, right: Any) -> bool:
    """Whether a boolean is compared with a number equal to it in Python, at any depth."""
    if isinstance(left, (dict, list)):
        return left is not right and _encode(left) != _encode(right)
    return isinstance(left, bool) is not isinstance(right, bool)


def equal_json(left: Any, right: Any) -> bool:
    """Whether JSON values are equal, with empty parts. Unlike in Python, `true` is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            equal_json(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            equal_json(one, other) for one, other in zip(left, right, strict=True)
        )
    return bool(left == right) and not _mixes_numbers(left, right)


def _equal_objects(left: Any, right: Any, node: SchemaNode | None) -> bool:
    if left is None or right is None:
        # An empty struct differs from an absent one; an empty map does not.
        is_map = node is None or node.shape is SchemaShape.MAP
        return is_map and not (left or right)
    if not isinstance(left, dict) or not isinstance(right, dict):
        return False
    for key in left.keys() | right.keys():
        ours, theirs = left.get(key), right.get(key)
        if ours is not theirs and not semantic_equal(ours, theirs, structural.child_of(node, key)):
            return False
    return True


def _equal_lists(left: Any, right: Any, node: SchemaNode | None) -> bool:
    ours = [] if left is None else left
    theirs = [] if right is None else right
    if not isinstance(ours, list) or not isinstance(theirs, list) or len(ours) != len(theirs):
        return False
    items = node.items if node is not None and node.shape is SchemaShape.LIST else None
    return all(semantic_equal(one, other, items) for one, other in zip(ours, theirs, strict=True))


def _equal_quantities(left: Any, right: Any) -> bool:
    try:
        ours, theirs = quantity.from_json(left), quantity.from_json(right)
    except quantity.QuantityError:
        return False
    return quantity.compare(ours, theirs) == 0
