"""Functions on lists and sets.

Parity: allocator.md 11.3. Lists are tuples; an element that cannot be compared gives an error.
"""

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Final, cast

from app.domain.cel.values import arithmetic
from app.domain.cel.values.equality import compare, equal
from app.domain.cel.values.value import (
    NO_SUCH_OVERLOAD,
    NONE,
    CelError,
    Duration,
    OptionalValue,
    Uint,
    Value,
    VisitBudget,
    check_elements,
    map_key,
    plain_text,
    size,
)

List = tuple[Value, ...]


class _NoOrder(Exception):
    """Two elements have no order; the exception has the CEL error."""

    def __init__(self, error: CelError) -> None:
        super().__init__(error.message)
        self.error = error


def _ordered(left: Value, right: Value) -> int:
    order = compare(left, right)
    if isinstance(order, CelError):
        raise _NoOrder(order)
    return order


def measure(value: Value) -> Value:
    """`size(value)`."""
    if isinstance(value, str | bytes | tuple | dict):
        return len(value)
    return CelError("no such overload: size")


def is_sorted(items: Value) -> Value:
    """`items.isSorted()`."""
    if not isinstance(items, tuple):
        return CelError("no such overload: isSorted")
    try:
        return all(_ordered(a, b) <= 0 for a, b in pairwise(items))
    except _NoOrder as found:
        return found.error


def total(items: Value) -> Value:
    """`items.sum()`; the sum of an empty list is the zero of the element type, here int."""
    if not isinstance(items, tuple):
        return CelError("no such overload: sum")
    if not items:
        return 0
    running: Value = _ZEROS.get(items[0].__class__, NO_SUCH_OVERLOAD)
    for item in items:
        if isinstance(running, CelError):
            return running
        running = arithmetic.add(running, item)
    return running


_ZEROS: Final[dict[type, Value]] = {int: 0, Uint: Uint(0), float: 0.0, Duration: Duration(0)}


def _extreme(name: str, wanted: int) -> Callable[[Value], Value]:
    def find(items: Value) -> Value:
        if not isinstance(items, tuple):
            return CelError(f"no such overload: {name}")
        if not items:
            return CelError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            order = compare(item, best)
            if isinstance(order, CelError):
                return order
            if order == wanted:
                best = item
        return best

    return find


minimum: Final = _extreme("min", -1)
maximum: Final = _extreme("max", 1)


def index_of(items: List, wanted: Value) -> Value:
    """`items.indexOf(wanted)`: the first position, or -1."""
    for index, item in enumerate(items):
        if equal(item, wanted) is True:
            return index
    return -1


def last_index_of(items: List, wanted: Value) -> Value:
    """`items.lastIndexOf(wanted)`: the last position, or -1."""
    for index in range(len(items) - 1, -1, -1):
        if equal(items[index], wanted) is True:
            return index
    return -1


def slice_of(items: List, start: int, end: int) -> Value:
    """`items.slice(start, end)`."""
    if start < 0 or end < 0:
        return CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return CelError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(items):
        return CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def flatten(items: List, depth: int = 1) -> Value:
    """`items.flatten(depth)`."""
    if depth < 0:
        return CelError("level must be non-negative")
    for _ in range(depth):
        flat: list[Value] = []
        nested = False
        for item in items:
            if isinstance(item, tuple):
                nested = True
                check_elements(len(flat) + len(item))
                flat.extend(item)
            else:
                flat.append(item)
        items = tuple(flat)
        if not nested:
            break
    return items


def range_of(length: int) -> Value:
    """`lists.range(length)`."""
    check_elements(length)
    return tuple(range(length))


def distinct(items: List) -> Value:
    """`items.distinct()`: each value once, at its first position."""
    kept: list[Value] = []
    budget = VisitBudget()
    for item in items:
        budget.spend(len(kept))
        if not any(equal(item, other) is True for other in kept):
            kept.append(item)
    return tuple(kept)


def reverse(items: List) -> Value:
    """`items.reverse()`."""
    return items[::-1]


def sort(items: List) -> Value:
    """`items.sort()`, which is stable."""
    return sort_by_keys(items, items)


def sort_by_keys(items: List, keys: List) -> Value:
    """The items in the order of their keys; keys must have the same ordered type."""
    if len(keys) != len(items):
        return CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list,"
            f" but got {len(items)} and {len(keys)} elements respectively"
        )
    if any(key.__class__ is not keys[0].__class__ for key in keys):
        return CelError("list elements must have the same type")
    if keys and keys[0].__class__ in _NATIVE_ORDER:
        native = sorted(range(len(items)), key=cast(Callable[[int], int], keys.__getitem__))
        return tuple(items[index] for index in native)
    order = cmp_to_key(_ordered)
    try:
        indexes = sorted(range(len(items)), key=lambda index: order(keys[index]))
        return tuple(items[index] for index in indexes)
    except _NoOrder:
        return CelError("list elements must be comparable")


_NATIVE_ORDER: Final = frozenset({int, str, bytes, bool})


def first(items: List) -> Value:
    """`items.first()`."""
    return OptionalValue(items[0]) if items else NONE


def last(items: List) -> Value:
    """`items.last()`."""
    return OptionalValue(items[-1]) if items else NONE


def unwrap(items: List) -> Value:
    """The values of the optionals that have a value."""
    return tuple(i.value for i in items if isinstance(i, OptionalValue) and i.present)


def _has(items: List, wanted: Value) -> bool:
    return any(equal(item, wanted) is True for item in items)


def set_contains(items: List, wanted: List) -> Value:
    """`sets.contains(items, wanted)`."""
    VisitBudget().spend(len(items) * len(wanted))
    return all(_has(items, value) for value in wanted)


def set_intersects(left: List, right: List) -> Value:
    """`sets.intersects(left, right)`."""
    VisitBudget().spend(len(left) * len(right))
    return any(_has(right, value) for value in left)


def set_equivalent(left: List, right: List) -> Value:
    """`sets.equivalent(left, right)`."""
    VisitBudget().spend(2 * len(left) * len(right))
    return all(_has(right, v) for v in left) and all(_has(left, v) for v in right)


def insert(entries: dict[Value, Value], key: Value, value: Value) -> Value:
    """`cel.@mapInsert(entries, key, value)`; an existing key is an error."""
    if map_key(key) in entries:
        return CelError(f"insert failed: key {plain_text(key)} already exists")
    return {**entries, map_key(key): value}


def insert_all(entries: dict[Value, Value], added: dict[Value, Value]) -> Value:
    """`cel.@mapInsert(entries, added)`."""
    for key in added:
        if key in entries:
            return CelError(f"insert failed: key {plain_text(key)} already exists")
    return {**entries, **added}


def non_zero_optional(value: Value) -> Value:
    """`optional.ofNonZeroValue(value)`."""
    is_zero = value is None or value is False or (isinstance(value, int | float) and value == 0)
    if isinstance(value, str | bytes | tuple | dict):
        is_zero = size(value) == 0
    if isinstance(value, Duration):
        is_zero = value.nanoseconds == 0
    return NONE if is_zero else OptionalValue(value)


def optional_value(value: OptionalValue) -> Value:
    """`opt.value()`."""
    return value.value if value.present else CelError("optional.none() dereference")
