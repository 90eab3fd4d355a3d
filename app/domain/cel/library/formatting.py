"""`text.format(list)`: clauses such as `%s`, `%d`, `%.2f`, checked at compilation if possible.

Parity: allocator.md 11.3 (strings, version 2), cel.md 3 for the checks of literal texts.
"""

import math
import re
from dataclasses import dataclass
from typing import Final

from app.domain.cel.values import conversions
from app.domain.cel.values.value import (
    CelError,
    Duration,
    Timestamp,
    TypeValue,
    Value,
    VisitBudget,
    check_text,
    key_value,
    type_name,
)

_CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]*))?([A-Za-z])|([\s\S]?))")
_PRECISION_MAX: Final = 1000
_KNOWN: Final = frozenset("sdfebxXo")
_STRING_REFUSAL: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types,"
    " durations, and timestamps"
)


class FormatError(ValueError):
    """A text or an argument cannot be formatted; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of the text that takes an argument; `precision` is -1 without one."""

    verb: str
    precision: int
    start: int
    end: int


def clauses(text: str) -> list[Clause]:
    """The clauses of a text that take arguments. Raises FormatError for an unknown clause."""
    listed: list[Clause] = []
    for match in _CLAUSE.finditer(text):
        percent, precision, verb, other = match.groups()
        if percent is not None:
            continue
        if verb is None or verb not in _KNOWN:
            shown = verb if verb is not None else other
            if not shown:
                raise FormatError("unexpected end of string")
            raise FormatError(f"could not parse formatting clause: unrecognized clause {shown!r}")
        wanted = -1
        if precision is not None:
            wanted = int(precision or 0) if len(precision) < 6 else _PRECISION_MAX + 1
            if wanted > _PRECISION_MAX:
                raise FormatError("error while parsing precision: value out of range")
        listed.append(Clause(verb, wanted, match.start(), match.end()))
    return listed


def format_text(text: str, arguments: tuple[Value, ...]) -> Value:
    """`text.format(arguments)`."""
    try:
        verbs = clauses(text)
        if len(verbs) > len(arguments):
            raise FormatError(f"index {len(arguments)} out of range")
        if len(verbs) < len(arguments):
            raise FormatError(
                "too many arguments supplied to string.format"
                f" (expected {len(verbs)}, got {len(arguments)})"
            )
        parts: list[str] = []
        position = 0
        for clause, argument in zip(verbs, arguments, strict=True):
            parts.append(text[position : clause.start].replace("%%", "%"))
            parts.append(_written(clause, argument))
            check_text(sum(map(len, parts)))
            position = clause.end
        parts.append(text[position:].replace("%%", "%"))
    except FormatError as error:
        return CelError(str(error))
    return "".join(parts)


def _written(clause: Clause, value: Value) -> str:
    match clause.verb:
        case "s":
            return _string(value, VisitBudget())
        case "d":
            return _decimal(value)
        case "f":
            return _fixed(value, clause.precision)
        case "e":
            return _scientific(value, clause.precision)
        case "b":
            if isinstance(value, bool):
                return "1" if value else "0"
            return _based(value, "b", "only integers and bools can be formatted as binary")
        case "o":
            return _based(value, "o", "octal clause can only be used on integers")
        case _:
            return _hexadecimal(value, clause.verb)


def _refuse(what: str, value: Value) -> FormatError:
    return FormatError(f"error during formatting: {what}, was given {type_name(value)}")


def _string(value: Value, budget: VisitBudget) -> str:
    """The text of any value; nested strings are not quoted, map entries are sorted by key."""
    budget.spend(1)
    match value:
        case str():
            budget.spend(len(value) // 10)
            return value
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case float():
            return _special(value) or conversions.plain_double_text(value)
        case int():
            return str(int(value))
        case bytes():
            return value.decode(errors="replace")
        case Duration() | Timestamp():
            return str(conversions.to_text(value))
        case TypeValue():
            return value.name
        case tuple():
            return "[" + ", ".join(_string(item, budget) for item in value) + "]"
        case dict():
            pairs = sorted(
                (_string(key_value(k), budget), _string(v, budget)) for k, v in value.items()
            )
            return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
        case _:
            raise _refuse(_STRING_REFUSAL, value)


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return ""


def _decimal(value: Value) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and _special(value):
        return _special(value)
    raise _refuse("decimal clause can only be used on integers", value)


def _number(value: Value, clause: str) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise _refuse(f"{clause} clause can only be used on doubles", value)


def _fixed(value: Value, precision: int) -> str:
    number = _number(value, "fixed-point")
    return _special(number) or f"{number:.{6 if precision < 0 else precision}f}"


def _scientific(value: Value, precision: int) -> str:
    number = _number(value, "scientific")
    return _special(number) or f"{number:.{6 if precision < 0 else precision}e}"


def _based(value: Value, base: str, refusal: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return format(int(value), base)
    raise _refuse(refusal, value)


def _hexadecimal(value: Value, verb: str) -> str:
    match value:
        case bool():
            pass
        case int():
            return format(int(value), verb)
        case str() | bytes():
            octets = value.encode() if isinstance(value, str) else value
            return octets.hex().upper() if verb == "X" else octets.hex()
    raise _refuse("only integers, byte buffers, and strings can be formatted as hex", value)


def accepts(verb: str, kind: str) -> str | None:
    """The error of a clause for a static type, or None. `kind` is the name of the type.

    Parity: cel.md 3; a type that is only known at run time is accepted.
    """
    if kind in ("dyn", "any"):
        return None
    match verb:
        case "d":
            allowed, text = {"int", "uint"}, "decimal clause can only be used on integers"
        case "o":
            allowed, text = {"int", "uint"}, "octal clause can only be used on integers"
        case "b":
            allowed = {"int", "uint", "bool"}
            text = "only integers and bools can be formatted as binary"
        case "x" | "X":
            allowed = {"int", "uint", "string", "bytes"}
            text = "only integers, byte buffers, and strings can be formatted as hex"
        case "f":
            allowed, text = {"double"}, "fixed-point clause can only be used on doubles"
        case "e":
            allowed, text = {"double"}, "scientific clause can only be used on doubles"
        case _:
            allowed = {"string", "bool", "bytes", "int", "uint", "double", "map", "list", "type"}
            allowed |= {"duration", "timestamp", "null_type"}
            text = _STRING_REFUSAL
    return None if kind in allowed else f"error during formatting: {text}, was given {kind}"
