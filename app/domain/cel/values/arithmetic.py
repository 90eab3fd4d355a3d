"""`+ - * / %` and negation at run time.

Integers are checked against their 64 bits, division of integers truncates, and an operator on
other kinds gives `no such overload` (with the operator's name if the left kind does not have the
operator at all). Parity: cel.md 2 and 4.
"""

import math
from collections.abc import Callable
from typing import Final

from app.domain.cel.values.value import (
    INT_MAX,
    INT_MIN,
    INT_OVERFLOW,
    NO_SUCH_OVERLOAD,
    UINT_MAX,
    UINT_OVERFLOW,
    CelError,
    Duration,
    Timestamp,
    Uint,
    Value,
    check_elements,
    check_text,
)

TIMESTAMP_MIN: Final = -62135596800 * 10**9
TIMESTAMP_MAX: Final = 253402300799 * 10**9 + 999_999_999
DURATION_OVERFLOW: Final = CelError("duration overflow")
TIMESTAMP_OVERFLOW: Final = CelError("timestamp overflow")
DIVISION_BY_ZERO: Final = CelError("division by zero")
MODULUS_BY_ZERO: Final = CelError("modulus by zero")


def integer(value: int) -> int | CelError:
    """An int, or the error of an overflow of 64 bits."""
    return value if INT_MIN <= value <= INT_MAX else INT_OVERFLOW


def unsigned(value: int) -> Uint | CelError:
    """A uint, or the error of an overflow of 64 bits."""
    return Uint(value) if 0 <= value <= UINT_MAX else UINT_OVERFLOW


def duration(nanoseconds: int) -> Duration | CelError:
    """A duration, or the error of an overflow of 64 bits of nanoseconds."""
    fits = INT_MIN <= nanoseconds <= INT_MAX
    return Duration(nanoseconds) if fits else DURATION_OVERFLOW


def timestamp(nanoseconds: int) -> Timestamp | CelError:
    """A timestamp, or the error of a time outside the years 1 to 9999."""
    fits = TIMESTAMP_MIN <= nanoseconds <= TIMESTAMP_MAX
    return Timestamp(nanoseconds) if fits else TIMESTAMP_OVERFLOW


def add(left: Value, right: Value) -> Value:
    """`left + right`."""
    if left.__class__ is not right.__class__:
        match left, right:
            case Duration(), Timestamp():
                return timestamp(left.nanoseconds + right.nanoseconds)
            case Timestamp(), Duration():
                return timestamp(left.nanoseconds + right.nanoseconds)
        return _refuse("_+_", left, _ADDERS)
    match left, right:
        case (Uint(), Uint()):
            return unsigned(int(left) + int(right))
        case (bool(), bool()):
            return CelError("no such overload: _+_")
        case (int(), int()):
            return integer(left + right)
        case (float(), float()):
            return left + right
        case (str(), str()):
            check_text(len(left) + len(right))
            return left + right
        case (bytes(), bytes()):
            return left + right
        case (tuple(), tuple()):
            check_elements(len(left) + len(right))
            return (*left, *right)
        case (Duration(), Duration()):
            return duration(left.nanoseconds + right.nanoseconds)
    return _refuse("_+_", left, _ADDERS)


def subtract(left: Value, right: Value) -> Value:
    """`left - right`."""
    match left, right:
        case (Timestamp(), Timestamp()):
            return duration(left.nanoseconds - right.nanoseconds)
        case (Timestamp(), Duration()):
            return timestamp(left.nanoseconds - right.nanoseconds)
        case (Duration(), Duration()):
            return duration(left.nanoseconds - right.nanoseconds)
    return _numeric("_-_", left, right, lambda a, b: a - b, _SUBTRACTORS)


def multiply(left: Value, right: Value) -> Value:
    """`left * right`."""
    return _numeric("_*_", left, right, lambda a, b: a * b, _NUMBERS)


def divide(left: Value, right: Value) -> Value:
    """`left / right`; integers truncate, doubles follow IEEE 754."""
    if left.__class__ is float and right.__class__ is float:
        assert isinstance(left, float)
        assert isinstance(right, float)
        return _divide_doubles(left, right)
    if left.__class__ in _INTEGERS and left.__class__ is right.__class__ and right == 0:
        return DIVISION_BY_ZERO
    return _numeric("_/_", left, right, _truncated, _NUMBERS)


def modulo(left: Value, right: Value) -> Value:
    """`left % right`; the sign is that of the left side."""
    if left.__class__ in _INTEGERS and left.__class__ is right.__class__ and right == 0:
        return MODULUS_BY_ZERO
    if left == INT_MIN and right == -1:
        return INT_OVERFLOW
    if left.__class__ is float:
        return CelError("no such overload: _%_")
    return _numeric("_%_", left, right, lambda a, b: a - b * _truncated(a, b), _INTEGERS)


def negate(value: Value) -> Value:
    """`-value`."""
    if isinstance(value, float):
        return -value
    if value.__class__ is int:
        assert isinstance(value, int)
        return integer(-value)
    return CelError("no such overload: -_")


_INTEGERS: Final = frozenset({int, Uint})
_NUMBERS: Final = frozenset({int, Uint, float})
_SUBTRACTORS: Final = _NUMBERS | {Duration, Timestamp}
_ADDERS: Final = _SUBTRACTORS | {str, bytes, tuple}


def _refuse(operator: str, left: Value, accepted: frozenset[type]) -> CelError:
    if left.__class__ in accepted:
        return NO_SUCH_OVERLOAD
    return CelError(f"no such overload: {operator}")


def _numeric(
    operator: str,
    left: Value,
    right: Value,
    compute: Callable[[int, int], int],
    accepted: frozenset[type],
) -> Value:
    kind = left.__class__
    if kind is not right.__class__ or kind not in _NUMBERS:
        return _refuse(operator, left, accepted)
    if kind is int:
        return integer(compute(left, right))  # type: ignore[arg-type]  # both are int
    if kind is Uint:
        return unsigned(compute(int(left), int(right)))  # type: ignore[call-overload]  # Uint
    return compute(left, right)  # type: ignore[arg-type]  # both are float


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) is (right < 0) else -quotient


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)
