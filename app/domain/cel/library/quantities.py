"""Functions on quantities and semantic versions.

Parity: allocator.md 11.4 and 11.5. Comparing a compact quantity with one in decimal form
converts the receiver to decimal form for the rest of the evaluation; `Forms` records it.
"""

from collections.abc import Callable

from app.domain.cel.values.value import CelError, QuantityValue, Value
from app.domain.values import quantity, semver
from app.domain.values.quantity import QuantityError
from app.domain.values.semver import Semver, SemverError

Forms = dict[int, QuantityValue]
"""The quantities that were converted to decimal form during an evaluation, by identity."""


def parse_quantity(text: str) -> Value:
    """`quantity(text)`."""
    try:
        return QuantityValue(quantity.parse(text))
    except QuantityError as error:
        return CelError(str(error))


def is_quantity(text: str) -> Value:
    """`isQuantity(text)`."""
    return isinstance(parse_quantity(text), QuantityValue)


def sign(value: QuantityValue) -> Value:
    """`sign(q)`: -1, 0 or 1."""
    nanos = value.quantity.nanos
    return (nanos > 0) - (nanos < 0)


def compare(forms: Forms, left: QuantityValue, right: QuantityValue) -> int:
    """Returns -1, 0 or 1; records the receiver's form if it changes."""
    ours, theirs = left.quantity, right.quantity
    if ours.compact and not (theirs.compact and id(right) not in forms):
        forms[id(left)] = left
    return (ours.nanos > theirs.nanos) - (ours.nanos < theirs.nanos)


def comparison(wanted: int) -> Callable[[Forms, QuantityValue, QuantityValue], Value]:
    """`isGreaterThan` for 1, `isLessThan` for -1."""

    def ask(forms: Forms, left: QuantityValue, right: QuantityValue) -> Value:
        return compare(forms, left, right) == wanted

    return ask


def is_integer(forms: Forms, value: QuantityValue) -> Value:
    """`q.isInteger()`, which depends on the representation, not only on the number."""
    return id(value) not in forms and quantity.is_integer(value.quantity)


def as_integer(forms: Forms, value: QuantityValue) -> Value:
    """`q.asInteger()`."""
    if is_integer(forms, value) is not True:
        return CelError("cannot convert value to integer")
    return quantity.as_integer(value.quantity)


def as_approximate_float(value: QuantityValue) -> Value:
    """`q.asApproximateFloat()`."""
    return quantity.as_approximate_float(value.quantity)


def add(left: QuantityValue, right: QuantityValue) -> Value:
    """`q.add(other)`."""
    return QuantityValue(quantity.add(left.quantity, right.quantity), derived=True)


def add_integer(left: QuantityValue, right: int) -> Value:
    """`q.add(integer)`."""
    return add(left, QuantityValue(quantity.from_integer(right)))


def subtract(left: QuantityValue, right: QuantityValue) -> Value:
    """`q.sub(other)`."""
    return QuantityValue(quantity.subtract(left.quantity, right.quantity), derived=True)


def subtract_integer(left: QuantityValue, right: int) -> Value:
    """`q.sub(integer)`."""
    return subtract(left, QuantityValue(quantity.from_integer(right)))


# Semantic versions


def parse_semver(text: str, normalise: bool = False) -> Value:
    """`semver(text)` and `semver(text, normalize)`."""
    try:
        return semver.parse_normalised(text) if normalise else semver.parse(text)
    except SemverError as error:
        return CelError(str(error))


def is_semver(text: str, normalise: bool = False) -> Value:
    """`isSemver(text)` and `isSemver(text, normalize)`."""
    return isinstance(parse_semver(text, normalise), Semver)


def is_newer(left: Semver, right: Semver) -> Value:
    """`v.isGreaterThan(other)`."""
    return left.key > right.key


def is_older(left: Semver, right: Semver) -> Value:
    """`v.isLessThan(other)`."""
    return left.key < right.key


def compare_versions(left: Semver, right: Semver) -> Value:
    """`v.compareTo(other)`."""
    return semver.compare(left, right)


def major(value: Semver) -> Value:
    """`v.major()`."""
    return _int64(value.major)


def minor(value: Semver) -> Value:
    """`v.minor()`."""
    return _int64(value.minor)


def patch(value: Semver) -> Value:
    """`v.patch()`."""
    return _int64(value.patch)


def _int64(number: int) -> int:
    """A part of a version as signed 64-bit integer; larger ones wrap, as upstream's cast does."""
    return quantity.wrap_int64(number)
