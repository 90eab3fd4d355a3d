"""Quantities as exact numbers of billionths; text that is not a quantity counts as 0."""

import re
from functools import lru_cache

BILLION = 10**9

_FORM = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def billionths(value: object) -> int:
    """The value of a quantity in billionths, rounded away from zero."""
    if isinstance(value, str | int | float):
        return _read(str(value).strip())
    return 0


@lru_cache(maxsize=65_536)
def _read(text: str) -> int:
    parts = _FORM.fullmatch(text)
    if parts is None:
        return 0
    sign, whole, fraction, exponent, suffix = parts.groups()
    digits = whole + (fraction or "")
    if not digits:
        return 0
    factor = BILLION << _BINARY.get(suffix or "", 0)
    power = (int(exponent) if exponent else _DECIMAL.get(suffix or "", 0)) - len(fraction or "")
    number = int(digits) * factor
    ten: int = 10 ** abs(power)
    exact = number * ten if power >= 0 else -(-number // ten)
    return -exact if sign == "-" else exact


def text(amount: int) -> str:
    """The amount in decimal notation."""
    whole, part = divmod(abs(amount), BILLION)
    sign = "-" if amount < 0 else ""
    return f"{sign}{whole}.{part:09d}".rstrip("0") if part else f"{sign}{whole}"


def compared(*amounts: int) -> tuple[str, ...]:
    """Amounts that a sentence compares: by suffix if each is whole mebibytes, else in decimals."""
    if not all(amount % (BILLION << _BINARY["Mi"]) == 0 for amount in amounts):
        return tuple(text(amount) for amount in amounts)
    return tuple(_by_suffix(amount) for amount in amounts)


def _by_suffix(amount: int) -> str:
    for suffix, bits in reversed(_BINARY.items()):
        if amount and amount % (BILLION << bits) == 0:
            return f"{text(amount >> bits)}{suffix}"
    return text(amount)
