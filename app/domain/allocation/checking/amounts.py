"""Quantities as exact fractions, and what a request consumes of a capacity. Parity: allocator.md 8
and 12.
"""

import re
from fractions import Fraction
from math import ceil, floor

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView

_NUMBER = re.compile(r"([+-]?)(\d*)\.?(\d*)([a-zA-Z]*)([+-]?\d*)")
_BINARY = {f"{letter}i": Fraction(1024) ** (n + 1) for n, letter in enumerate("KMGTPE")}
_DECIMAL = {
    **{letter: Fraction(1000) ** (n + 1) for n, letter in enumerate("kMGTPE")},
    **{letter: Fraction(1, 1000) ** (n + 1) for n, letter in enumerate("mun")},
    "": Fraction(1),
}
_LARGEST_BINARY = 2**63 - 1
_NANO = 10**9


def read(value: object) -> Fraction:
    """The number of a quantity. Raises ValueError for a value that is not a quantity.

    Beyond nine decimals it is rounded away from zero; a binary suffix is capped at 63 bits.
    """
    if value is None:
        return Fraction(0)
    text = str(value).strip()
    match = _NUMBER.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"{value!r} is not a quantity")
    sign, whole, rest, suffix, exponent = match.groups()
    number = Fraction(int(f"0{whole}{rest}"), 10 ** len(rest))
    if exponent and suffix in ("e", "E"):
        number *= Fraction(10) ** int(exponent)
    elif exponent:
        raise ValueError(f"{value!r} is not a quantity")
    elif suffix in _BINARY:
        number = min(number * _BINARY[suffix], Fraction(_LARGEST_BINARY))
    elif suffix in _DECIMAL:
        number *= _DECIMAL[suffix]
    else:
        raise ValueError(f"{value!r} is not a quantity")
    number = Fraction(ceil(number * _NANO), _NANO)
    return -number if sign == "-" else number


def consumed(capacity: JsonView, requested: object) -> Fraction:
    """The amount that a request consumes of one capacity; `requested` is None if not requested."""
    policy = json_tree.mapping(capacity, "requestPolicy")
    if requested is None:
        return read(policy["default"] if "default" in policy else capacity.get("value"))
    wanted = read(requested)
    limits = json_tree.mapping(policy, "validRange")
    if "min" in limits:
        least = read(limits["min"])
        if wanted < least:
            return least
        if "step" not in limits:
            return wanted
        start, step = ceil(least), ceil(read(limits["step"]))
        return Fraction(start + ceil(Fraction(ceil(wanted) - start, step)) * step)
    return next((v for v in map(read, policy.get("validValues") or ()) if wanted <= v), wanted)


def most(capacity: JsonView, held: Fraction) -> Fraction | None:
    """The largest amount that a request may have beside what is held; None if there is none."""
    policy = json_tree.mapping(capacity, "requestPolicy")
    limit = read(capacity.get("value")) - held
    if "validRange" in policy:
        limits = json_tree.mapping(policy, "validRange")
        if "max" in limits:
            limit = min(limit, read(limits["max"]))
        if "step" in limits:
            start, step = ceil(read(limits.get("min"))), ceil(read(limits["step"]))
            limit = Fraction(start + floor((limit - start) / step) * step)
        return None if "min" in limits and limit < read(limits["min"]) else limit
    values = [read(value) for value in policy.get("validValues") or ()]
    return max((value for value in values if value <= limit), default=None) if values else limit


def breaks_policy(capacity: JsonView, amount: Fraction) -> bool:
    """Whether the request policy of a capacity forbids the amount."""
    policy = json_tree.mapping(capacity, "requestPolicy")
    if "default" in policy and amount == read(policy["default"]):
        return False
    if "validRange" in policy:
        limits = json_tree.mapping(policy, "validRange")
        if "max" in limits and amount > read(limits["max"]):
            return True
        if "step" not in limits:
            return False
        return (ceil(amount) - ceil(read(limits.get("min")))) % ceil(read(limits["step"])) != 0
    values = policy.get("validValues") or ()
    return bool(values) and amount not in [read(value) for value in values]


def is_long(amount: object) -> bool:
    """Whether a quantity may be kept in decimal form: fractions and large numbers with a binary
    suffix, and very many digits. Parity: allocator.md 12.2.
    """
    text = str(amount).strip().lstrip("+-")
    digits = sum(char.isdigit() for char in text)
    return digits > 12 or (text.endswith("i") and ("." in text or digits > 2))
