"""Arithmetic of costs and sizes: unsigned 64-bit, saturating, factors in double precision.

Parity: cel.md 6.3, its last paragraph, and the introduction.
"""

import math
from dataclasses import dataclass
from typing import Final

from app.domain.cel.limits import COST_MAX

STRING_FACTOR: Final = 0.1
REGEX_FACTOR: Final = 0.25
PASSES_FACTOR: Final = 0.2


@dataclass(frozen=True, slots=True)
class Size:
    """The minimum and the maximum size of a value."""

    least: int
    greatest: int


UNKNOWN: Final = Size(0, COST_MAX)
ONE: Final = Size(1, 1)


def plus(*parts: int) -> int:
    """The sum, at most `COST_MAX`."""
    return min(sum(parts), COST_MAX)


def times(left: int, right: int) -> int:
    """The product, at most `COST_MAX`."""
    return min(left * right, COST_MAX)


def scaled(amount: int, factor: float) -> int:
    """`amount` times `factor`, rounded up, at most `COST_MAX`."""
    return min(math.ceil(float(amount) * factor), COST_MAX)


def exactly(amount: int) -> Size:
    """The size of a known value."""
    return Size(amount, amount)


def up_to(greatest: int) -> Size:
    """The size of a value that may be empty."""
    return Size(0, greatest)


def sum_of(left: Size, right: Size) -> Size:
    """The size of the concatenation of two values."""
    return Size(plus(left.least, right.least), plus(left.greatest, right.greatest))


def union(left: Size, right: Size) -> Size:
    """The size of a value that is one of two."""
    return Size(min(left.least, right.least), max(left.greatest, right.greatest))


def product(left: Size, right: Size) -> Size:
    """The product of two sizes."""
    return Size(times(left.least, right.least), times(left.greatest, right.greatest))
