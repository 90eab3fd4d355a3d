"""Kubernetes quantities: exact numbers that keep the text in which they were written.

A `Quantity` is a number, a format and perhaps a remembered text. The number has one of two forms:
compact (a 64-bit mantissa times a power of ten) or decimal (any precision). Forms differ in
`is_integer`, in the rounding of negatives and in the printed text after arithmetic. Their numbers
are equal, so code that only counts uses the integer `nanos`.

Parity: allocator.md 12. Two bounds are ours: a number has at most `DIGITS_MAX` digits and an
exponent of at most `EXPONENT_MAX`; beyond them upstream would compute for minutes.

Equality of two quantities (`==`) means identical, text and form included; use `compare` for
numbers.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

DIGITS_MAX = 4_000
EXPONENT_MAX = 1_000
_NANO_EXPONENT = -9
_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)
_BINARY_CAP_NANOS = _INT64_MAX * 10**9

FORMAT_ERROR = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
SUFFIX_ERROR = "unable to parse quantity's suffix"
NUMERIC_ERROR = "unable to parse numeric part of quantity"


class QuantityError(ValueError):
    """A text that is not a quantity; the message is one of the three texts of the API."""


class QuantityFormat(StrEnum):
    """The format in which a quantity prints. UNKNOWN is for one that was not read from a text."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"
    UNKNOWN = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number (`mantissa` times ten to the `exponent`) with its format and remembered text.

    `nanos` is the exact value in units of 10**-9; every quantity is a multiple of that.
    `compact` tells the form; a compact mantissa fits a signed 64-bit integer.
    """

    nanos: int
    mantissa: int
    exponent: int
    format: QuantityFormat
    compact: bool
    text: str | None = None

    def __str__(self) -> str:
        return self.text if self.text is not None else _canonical(self)


_POWERS = tuple(10**power for power in range(64))


def _power_of_ten(power: int) -> int:
    return _POWERS[power] if power < 64 else int(10**power)


def _compact(
    mantissa: int, exponent: int, form: QuantityFormat, text: str | None = None
) -> Quantity:
    nanos = mantissa * _power_of_ten(exponent - _NANO_EXPONENT)
    return Quantity(
        nanos=nanos, mantissa=mantissa, exponent=exponent, format=form, compact=True, text=text
    )


def _decimal(nanos: int, form: QuantityFormat, text: str | None = None) -> Quantity:
    return Quantity(
        nanos=nanos,
        mantissa=nanos,
        exponent=_NANO_EXPONENT,
        format=form,
        compact=False,
        text=text,
    )


ZERO = _compact(0, 0, QuantityFormat.UNKNOWN)
"""The quantity of an absent or null value."""

_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL_SUFFIXES = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_DECIMAL_NAMES = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_NAMES = {bits: suffix for suffix, bits in _BINARY_SUFFIXES.items()}


@lru_cache(maxsize=65_536)
def parse(text: str) -> Quantity:
    """The quantity that `text` denotes. Raises QuantityError with the text of the API.

    Surrounding white space is an error here; see `from_json` for the JSON form.
    """
    if text == "0":
        return _compact(0, 0, QuantityFormat.DECIMAL_SI, text)
    shape = _SHAPE.fullmatch(text) if text else None
    if shape is None:
        raise QuantityError(FORMAT_ERROR)
    sign, whole, fraction, suffix = shape.groups()
    digits = whole.lstrip("0") or "0"
    fraction = fraction or ""
    if len(digits) + len(fraction) > DIGITS_MAX:
        raise QuantityError(NUMERIC_ERROR)
    bits = _BINARY_SUFFIXES.get(suffix)
    if bits is None:
        exponent, form = _decimal_suffix(suffix)
        compact = _parse_compact_decimal(text, sign, digits, fraction, exponent, form)
    else:
        exponent, form = bits, QuantityFormat.BINARY_SI
        compact = None if fraction else _parse_compact_binary(text, sign, digits, bits)
    if compact is not None:
        return compact
    if not whole and not fraction:
        raise QuantityError(NUMERIC_ERROR)
    magnitude = _magnitude_in_nanos(int(digits + fraction), len(fraction), exponent, form)
    return _capped(-magnitude if sign == "-" else magnitude, form)


def from_json(value: Any) -> Quantity:
    """The quantity of a decoded JSON value: text, number, or null for zero.

    White space around a text is dropped. Raises QuantityError for anything else.
    """
    if value is None:
        return ZERO
    if isinstance(value, str):
        return parse(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QuantityError(FORMAT_ERROR)
    return parse(str(value) if isinstance(value, int) else repr(value))


def from_integer(value: int, form: QuantityFormat = QuantityFormat.DECIMAL_SI) -> Quantity:
    """An integer as a compact quantity; `value` must fit a signed 64-bit integer."""
    assert _INT64_MIN <= value <= _INT64_MAX
    return _compact(value, 0, form)


def from_nanos(nanos: int, form: QuantityFormat = QuantityFormat.DECIMAL_SI) -> Quantity:
    """The quantity of `nanos` units of 10**-9."""
    return _decimal(nanos, form)


def compare(left: Quantity, right: Quantity) -> int:
    """Compares the numbers, independent of their formats: -1, 0 or 1."""
    return (left.nanos > right.nanos) - (left.nanos < right.nanos)


def add(left: Quantity, right: Quantity) -> Quantity:
    """The exact sum in the left format; a zero on the left takes the right format."""
    form = left.format if left.nanos else right.format
    if left.compact and right.compact:
        if right.mantissa == 0:
            return _compact(left.mantissa, left.exponent, form)
        if left.mantissa == 0:
            return _compact(right.mantissa, right.exponent, form)
        exponent = min(left.exponent, right.exponent)
        ours = left.mantissa * _power_of_ten(left.exponent - exponent)
        theirs = right.mantissa * _power_of_ten(right.exponent - exponent)
        total = ours + theirs
        if _fits(ours) and _fits(theirs) and _fits(total):
            return _compact(total, exponent, form)
    return _decimal(left.nanos + right.nanos, form)


def subtract(left: Quantity, right: Quantity) -> Quantity:
    """The exact difference in the left format; a zero on the left takes the right format."""
    return add(left, negate(right))


def negate(value: Quantity) -> Quantity:
    """The same number with the other sign; the remembered text is dropped."""
    if value.compact and value.mantissa != _INT64_MIN:
        return _compact(-value.mantissa, value.exponent, value.format)
    return _decimal(-value.nanos, value.format)


def to_decimal(value: Quantity) -> Quantity:
    """The same quantity in decimal form; upstream converts what it compares with a decimal form."""
    return _decimal(value.nanos, value.format, value.text) if value.compact else value


def is_integer(value: Quantity) -> bool:
    """True for the compact form with an exponent of at least 0 whose value fits 64 bits.

    About representation, not about the number: `1000m` and `1.5Gi` are not integers.
    Parity: allocator.md 11.4.
    """
    return value.compact and value.exponent >= 0 and _fits(value.nanos // 10**9)


def as_integer(value: Quantity) -> int:
    """The integer value of a quantity. Raises QuantityError unless `is_integer` holds for it."""
    if not is_integer(value):
        raise QuantityError("cannot convert value to integer")
    return value.nanos // 10**9


def as_approximate_float(value: Quantity) -> float:
    """The nearest float; infinite beyond the range of floats."""
    try:
        return value.nanos / 10**9
    except OverflowError:
        return float("inf") if value.nanos > 0 else float("-inf")


def round_up(value: Quantity) -> int:
    """Whole units as a signed 64-bit integer; positive fractions go up.

    Negative fractions go away from zero in compact form and towards zero plus one in decimal
    form; an integer beyond 64 bits is 0 in compact form and wraps in decimal form.
    Parity: allocator.md 12.4.
    """
    whole, rest = divmod(abs(value.nanos), 10**9)
    if value.compact:
        units = whole + (1 if rest else 0)
        result = units if value.nanos >= 0 else -units
        return result if _fits(result) else 0
    result = (whole if value.nanos >= 0 else -whole) + (1 if rest else 0)
    return wrap_int64(result)


def identical(left: Quantity, right: Quantity) -> bool:
    """Equal in number, form, format and text; a decimal form is not identical even to itself.

    Parity: allocator.md 8.2.
    """
    return left.compact and right.compact and left == right


def wrap_int64(value: int) -> int:
    """The value wrapped to a signed 64-bit integer (two's complement)."""
    return (value - _INT64_MIN) % 2**64 + _INT64_MIN


def _fits(value: int) -> bool:
    return _INT64_MIN <= value <= _INT64_MAX


def _decimal_suffix(suffix: str) -> tuple[int, QuantityFormat]:
    exponent = _DECIMAL_SUFFIXES.get(suffix)
    if exponent is not None:
        return exponent, QuantityFormat.DECIMAL_SI
    written = _EXPONENT.fullmatch(suffix)
    if written is None or len(suffix) > 20:
        raise QuantityError(SUFFIX_ERROR)
    exponent = int(written.group(1))
    if exponent > EXPONENT_MAX:
        raise QuantityError(NUMERIC_ERROR)
    return exponent, QuantityFormat.DECIMAL_EXPONENT


def _parse_compact_decimal(
    text: str, sign: str, digits: str, fraction: str, exponent: int, form: QuantityFormat
) -> Quantity | None:
    shifted = digits + fraction
    scale = exponent - len(fraction)
    if len(shifted) > 18 or scale < _NANO_EXPONENT:
        return None
    value = int(shifted)
    kept = scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
    return _compact(-value if sign == "-" else value, scale, form, text if kept else None)


def _parse_compact_binary(text: str, sign: str, digits: str, bits: int) -> Quantity | None:
    if 15 - len(digits) - bits * 3 // 10 - 1 < 0:
        return None
    value = int(digits)
    product = value << bits
    if product > _INT64_MAX:
        return None
    kept = text if value % 8 else None
    return _compact(-product if sign == "-" else product, 0, QuantityFormat.BINARY_SI, kept)


def _magnitude_in_nanos(mantissa: int, decimals: int, exponent: int, form: QuantityFormat) -> int:
    """The absolute value in units of 10**-9, rounded up."""
    if form is QuantityFormat.BINARY_SI:
        mantissa <<= exponent
        exponent = 0
    shift = exponent - decimals - _NANO_EXPONENT
    if shift >= 0:
        return mantissa * _power_of_ten(shift)
    if -shift > DIGITS_MAX + 64:
        return 1 if mantissa else 0
    return -(-mantissa // _power_of_ten(-shift))


def _capped(nanos: int, form: QuantityFormat) -> Quantity:
    """The decimal form: binary amounts are capped, binary fractions below 1 become decimal."""
    if form is QuantityFormat.BINARY_SI:
        nanos = max(-_BINARY_CAP_NANOS, min(_BINARY_CAP_NANOS, nanos))
        if 0 < abs(nanos) < 10**9:
            form = QuantityFormat.DECIMAL_SI
    return _decimal(nanos, form)


def _canonical(value: Quantity) -> str:
    """The canonical text. Parity: allocator.md 12.3, with its lost suffixes."""
    nanos = value.nanos
    if nanos == 0:
        return "0"
    if (
        value.format is QuantityFormat.BINARY_SI
        and abs(nanos) >= 1024 * 10**9
        and nanos % 10**9 == 0
    ):
        number, bits = nanos // 10**9, 0
        while number % 1024 == 0:
            number //= 1024
            bits += 10
        return f"{number}{_BINARY_NAMES.get(bits, '')}"
    number, exponent = nanos, _NANO_EXPONENT
    while number % 1000 == 0:
        number //= 1000
        exponent += 3
    if value.format in (QuantityFormat.DECIMAL_SI, QuantityFormat.BINARY_SI):
        return f"{number}{_DECIMAL_NAMES.get(exponent, '')}"
    return f"{number}e{exponent}" if exponent else str(number)
