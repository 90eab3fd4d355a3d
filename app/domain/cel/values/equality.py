"""Equality, order and membership at run time.

Parity: cel.md 4. Numbers compare across int, uint and double; otherwise values of different kinds
are unequal, except that a Semver or Quantity on the left refuses another kind on the right.
"""

import math
from typing import Final

from app.domain.cel.values.value import (
    NO_SUCH_OVERLOAD,
    CelError,
    DefaultingMap,
    Duration,
    OptionalValue,
    QuantityValue,
    Timestamp,
    Uint,
    Value,
    VisitBudget,
    map_key,
)
from app.domain.values.semver import Semver

NOT_ORDERED: Final = CelError("NaN values cannot be ordered")
_NUMBERS: Final = frozenset({int, Uint, float})
_LARGE: Final = 2**53


def equal(left: Value, right: Value, budget: VisitBudget | None = None) -> bool | CelError:
    """`left == right`, by the rules of the left value as upstream.

    Nested values may share parts, so a comparison is bounded; `budget` counts its parts.
    """
    kind, other = left.__class__, right.__class__
    if kind is str or other is str:
        return kind is other and left == right
    if kind in _NUMBERS:
        return other in _NUMBERS and _equal_numbers(left, right)
    if left is None or right is None:
        return left is right
    if kind is QuantityValue:
        return _equal_quantities(left, right)
    if isinstance(left, Semver):
        return left.key == right.key if isinstance(right, Semver) else NO_SUCH_OVERLOAD
    if kind is tuple:
        return other is tuple and _equal_lists(left, right, budget or VisitBudget())  # type: ignore[arg-type]  # tuples
    if kind is dict or kind is DefaultingMap:
        is_map = other is dict or other is DefaultingMap
        return is_map and _equal_maps(left, right, budget or VisitBudget())  # type: ignore[arg-type]  # both are dicts
    if kind is OptionalValue and other is OptionalValue:
        return _equal_optionals(left, right)  # type: ignore[arg-type]  # both are optional
    return kind is other and left == right


def _equal_numbers(left: Value, right: Value) -> bool:
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    if (left.__class__ is float) is not (right.__class__ is float):
        # An integer is compared with a double as a double, so large integers lose digits.
        return float(left) == float(right)
    return left == right


def _equal_quantities(left: Value, right: Value) -> bool | CelError:
    assert isinstance(left, QuantityValue)
    if not isinstance(right, QuantityValue) or right.derived:
        return NO_SUCH_OVERLOAD
    return left.quantity.nanos == right.quantity.nanos


def _equal_lists(left: tuple[Value, ...], right: tuple[Value, ...], budget: VisitBudget) -> bool:
    if len(left) != len(right):
        return False
    budget.spend(len(left))
    for ours, theirs in zip(left, right, strict=True):
        if equal(ours, theirs, budget) is False:
            return False
    return True


def _equal_maps(left: dict[Value, Value], right: dict[Value, Value], budget: VisitBudget) -> bool:
    if len(left) != len(right):
        return False
    budget.spend(len(left))
    for key, value in left.items():
        if key not in right or equal(value, right[key], budget) is False:
            return False
    return True


def _equal_optionals(left: OptionalValue, right: OptionalValue) -> bool | CelError:
    if not (left.present and right.present):
        return left.present is right.present
    return equal(left.value, right.value)


def compare(left: Value, right: Value) -> int | CelError:
    """Returns -1, 0 or 1, or the error of values without an order."""
    kind, other = left.__class__, right.__class__
    if kind in _NUMBERS and other in _NUMBERS:
        return _compare_numbers(left, right)
    if kind is other:
        match left, right:
            case Duration(), Duration():
                return _sign(left.nanoseconds, right.nanoseconds)
            case Timestamp(), Timestamp():
                return _sign(left.nanoseconds, right.nanoseconds)
            case (str(), str()) | (bytes(), bytes()) | (bool(), bool()):
                return _sign(left, right)  # type: ignore[arg-type]  # both of the same kind
    return NO_SUCH_OVERLOAD


def _compare_numbers(left: Value, right: Value) -> int | CelError:
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    if left.__class__ is float or right.__class__ is float:
        if math.isnan(left) or math.isnan(right):
            return NOT_ORDERED
        if abs(left) > _LARGE or abs(right) > _LARGE:
            return _sign(float(left), float(right))
    return _sign(left, right)


def _sign(left: float, right: float) -> int:
    return (left > right) - (left < right)


def is_ordered(value: Value) -> bool:
    """Whether `<` accepts the kind of the value as its left operand."""
    return value.__class__ in _ORDERED


_ORDERED: Final = frozenset({bool, int, Uint, float, str, bytes, Duration, Timestamp})


def contains(element: Value, container: Value) -> bool | CelError:
    """`element in container`; an error of a comparison counts as not equal."""
    if isinstance(container, dict):
        return find_key(container, element)
    if isinstance(container, tuple):
        return any(equal(element, item) is True for item in container)
    return NO_SUCH_OVERLOAD


def find_key(container: dict[Value, Value], key: Value) -> bool | CelError:
    """Whether the map has the key; False for a value that cannot be a key."""
    try:
        return map_key(key) in container
    except TypeError:
        return False
