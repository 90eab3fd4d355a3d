"""Quantities as exact fractions, implemented independently (allocator.md 12.2)."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

EXPONENT_MAX: Final = 100
"""The greatest exponent and length of a text that is read; no capacity needs more."""

_FORM: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<parts>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_MAX: Final = 2**63 - 1
_NANOS: Final = 10**9


class UnreadableAmount(ValueError):
    """The text is not a quantity."""


class UnusualAmount(Exception):
    """The text may be a quantity, but in a form that this module does not support."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity. `derived` marks results of `add` and `sub`."""

    value: Fraction
    derived: bool = False


def parse(text: str) -> Amount:
    """Parses a quantity. Raises UnreadableAmount and UnusualAmount."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise UnreadableAmount(text)
    whole, parts, suffix = form["whole"], form["parts"] or "", form["suffix"] or ""
    if not whole and not parts:
        if text in ("", "E"):
            raise UnreadableAmount(text)
        raise UnusualAmount("a quantity without digits")
    if len(text) > EXPONENT_MAX or abs(int(form["exponent"] or 0)) > EXPONENT_MAX:
        raise UnusualAmount("a quantity is very long or very large")
    value = Fraction(int((whole + parts) or "0"), 10 ** len(parts))
    if suffix in _BINARY:
        value *= 2 ** _BINARY[suffix]
    else:
        value *= Fraction(10) ** int(form["exponent"] or _DECIMAL.get(suffix, 0))
    # Decimals beyond the ninth are rounded away from zero.
    nanos = -(-value.numerator * _NANOS // value.denominator)
    value = Fraction(nanos, _NANOS)
    if suffix in _BINARY:
        value = min(value, Fraction(_BINARY_MAX))
    return Amount(-value if form["sign"] == "-" else value)
