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
    """The least and the greatest size that a value can have."""

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
    """The size of something that is known."""
    return Size(amount, amount)


def up_to(greatest: int) -> Size:
    """The size of something that may be empty."""
    return Size(0, greatest)


def sum_of(left: Size, right: Size) -> Size:
    """The size of two things put together."""
    return Size(plus(left.least, right.least), plus(left.greatest, right.greatest))


def union(left: Size, right: Size) -> Size:
    """The size of one or the other."""
    return Size(min(left.least, right.least), max(left.greatest, right.greatest))


def product(left: Size, right: Size) -> Size:
    """The size of one thing for each of another."""
    return Size(times(left.least, right.least), times(left.greatest, right.greatest))
