"""Amounts of one comparison in one notation, so that people compare them at a glance.

A quantity keeps the notation in which it was written, and `3906250Ki` beside `3G` hides which is
more. Here all amounts of a comparison have the same unit, which is chosen for short texts:
`4G`, `3G` and `10G`. What an API object is written with keeps its own notation.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from app.domain.values import quantity
from app.domain.values.quantity import QuantityError, QuantityFormat

DIGITS_MAX = 7
"""The most digits of an exact amount; amounts with more are rounded, and say so."""

_DECIMALS = 3
"""The decimals of an exact amount, and those up to which amounts are rounded unless they are equal
then."""

_DECIMALS_MAX = 4
"""The most decimals of a rounded amount; amounts that are equal then are written out."""

_ABOUT = "about "
"""The word before a rounded amount."""

_UNIT = 10**9
"""The nanos of one."""

_DECIMAL = tuple(
    (1000**power, suffix) for power, suffix in enumerate(("n", "u", "m", "", *"kMGTPE"))
)
_BINARY = tuple(
    (1024**power * _UNIT, f"{letter}i") for power, letter in enumerate("KMGTPE", start=1)
)
_MEBI = _BINARY[1][0]
_OTHER_BASE = 8
"""The characters that the other base than that of the total must save."""

_POINT = 3
"""The characters that a unit without decimals may cost more."""


def alike(amounts: Sequence[int], form: QuantityFormat = QuantityFormat.UNKNOWN) -> list[str]:
    """The texts of amounts, in nanos, all with one unit; zero has none.

    `form` is the notation of the amount that the others are a part of. Without one, the units are
    powers of two for multiples of Mi, as drivers publish bytes. An amount with too many digits is
    rounded and begins with `about`, in the other notation if fewer are rounded there; different
    amounts never have one text.
    """
    texts = exactly_alike(amounts, form)
    if max(map(_digits, texts), default=0) <= DIGITS_MAX:
        return texts
    bases = (_BINARY, _DECIMAL) if _is_binary(amounts, form) else (_DECIMAL, _BINARY)
    rounded = [one for units in bases if (one := _rounded(amounts, units))]
    return min(rounded, key=lambda one: str(one).count(_ABOUT), default=texts)


def exactly_alike(
    amounts: Sequence[int], form: QuantityFormat = QuantityFormat.UNKNOWN
) -> list[str]:
    """The texts of amounts as `alike` has them, however many digits they need: for programs."""
    return min(_exact(amounts, is_binary=_is_binary(amounts, form)), key=_length)[1]


def alike_texts(*written: object) -> list[str]:
    """Quantities of API objects in the notation of the last; as written if one cannot be read."""
    try:
        values = [quantity.from_json(one) for one in written]
    except QuantityError:
        return list(map(str, written))
    return alike([one.nanos for one in values], values[-1].format)


def _rounded(amounts: Sequence[int], units: Sequence[tuple[int, str]]) -> list[str]:
    """The rounded texts of amounts in the largest unit; empty where different ones look equal."""
    largest = max(map(abs, amounts))
    unit, suffix = max((one for one in units if one[0] <= largest), default=units[0])
    for decimals in range(_DECIMALS - 1, _DECIMALS_MAX + 1):
        near = [round(Fraction(amount, unit), decimals) for amount in amounts]
        if len({0, *near}) == len({0, *amounts}):
            return [
                ("" if number * unit == amount else _ABOUT) + _text(number, suffix)
                for amount, number in zip(amounts, near, strict=True)
            ]
    return []


def _is_binary(amounts: Sequence[int], form: QuantityFormat) -> bool:
    if form is QuantityFormat.UNKNOWN:
        return any(amounts) and all(amount % _MEBI == 0 for amount in amounts)
    return form is QuantityFormat.BINARY_SI


def _exact(amounts: Sequence[int], *, is_binary: bool) -> Iterator[tuple[int, list[str]]]:
    """The exact texts in each unit that writes all amounts with few decimals, with their cost."""
    for of_base, units in ((False, _DECIMAL), (True, _BINARY)):
        if of_base and not is_binary and any(amount % _MEBI for amount in amounts):
            continue
        for unit, suffix in units:
            if any(amount * 10**_DECIMALS % unit for amount in amounts):
                continue
            texts = [_text(Fraction(amount, unit), suffix) for amount in amounts]
            cost = 0 if of_base == is_binary or not suffix else _OTHER_BASE
            cost += _POINT * any("." in text for text in texts)
            yield cost + sum(map(len, texts)), texts


def _length(written: tuple[int, list[str]]) -> int:
    return written[0]


def _digits(text: str) -> int:
    return sum(one.isdigit() for one in text)


def _text(number: Fraction, suffix: str) -> str:
    """A number with a finite decimal fraction, without zeros at its end."""
    if not number:
        return "0"
    sign = "-" if number < 0 else ""
    whole, rest = divmod(abs(number), 1)
    digits = ""
    while rest:
        digit, rest = divmod(rest * 10, 1)
        digits += str(digit)
    return f"{sign}{whole}{'.' if digits else ''}{digits}{suffix}"
