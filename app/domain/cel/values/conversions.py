"""Conversions between kinds of values, and texts of values.

Parity: cel.md 3 (constant conversions run when a program is compiled) and the texts of allocator.md
11.2. Texts follow Go: shortest digits for doubles, RFC 3339 for times, seconds for durations.
"""

import calendar
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from app.domain.cel.values import arithmetic
from app.domain.cel.values.value import (
    INT_MAX,
    INT_MIN,
    INT_OVERFLOW,
    UINT_MAX,
    UINT_OVERFLOW,
    CelError,
    Duration,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    type_name,
)

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED = re.compile(r"[0-9]+", re.ASCII)
_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)
_DIGITS_MAX: Final = 400
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)


def _failure(value: Value, target: str) -> CelError:
    return CelError(f"type conversion error from '{type_name(value)}' to '{target}'")


def to_bool(value: Value) -> Value:
    """`bool(x)` of a string."""
    if isinstance(value, str) and (value in _TRUE or value in _FALSE):
        return value in _TRUE
    return _failure(value, "bool")


def to_int(value: Value) -> Value:
    """`int(x)`: doubles are truncated, durations give nanoseconds, timestamps whole seconds."""
    match value:
        case Uint():
            return int(value) if value <= INT_MAX else INT_OVERFLOW
        case float():
            fits = -(2.0**63) < value < 2.0**63
            return int(value) if fits else INT_OVERFLOW
        case Timestamp():
            return value.nanoseconds // 10**9
        case Duration():
            return value.nanoseconds
        case str() if _INTEGER.fullmatch(value) and len(value) <= _DIGITS_MAX:
            number = int(value)
            if INT_MIN <= number <= INT_MAX:
                return number
    return _failure(value, "int")


def to_uint(value: Value) -> Value:
    """`uint(x)`."""
    match value:
        case int():
            return Uint(value) if value >= 0 else UINT_OVERFLOW
        case float():
            fits = 0 <= value < 2.0**64
            return Uint(int(value)) if fits else UINT_OVERFLOW
        case str() if _UNSIGNED.fullmatch(value) and len(value) <= _DIGITS_MAX:
            number = int(value)
            if number <= UINT_MAX:
                return Uint(number)
    return _failure(value, "uint")


def to_double(value: Value) -> Value:
    """`double(x)`."""
    if isinstance(value, int):
        return float(value)
    if isinstance(value, str) and len(value) <= _DIGITS_MAX and _DOUBLE.fullmatch(value):
        if "_" in value:
            return _failure(value, "double")
        number = float(value)
        if not math.isinf(number) or "inf" in value.lower():
            return number
    return _failure(value, "double")


def to_text(value: Value) -> Value:
    """`string(x)` of CEL's own kinds."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return double_text(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return CelError("invalid UTF-8 in bytes, cannot convert to string")
        case Timestamp():
            return timestamp_text(value)
        case Duration():
            return duration_text(value)
    return _failure(value, "string")


def to_bytes(value: Value) -> Value:
    """`bytes(x)` of a string."""
    return value.encode() if isinstance(value, str) else _failure(value, "bytes")


def to_duration(value: Value) -> Value:
    """`duration(x)` of a string such as `1h30m`, or of nanoseconds."""
    if isinstance(value, int):
        return Duration(int(value))
    duration = parse_duration(value) if isinstance(value, str) else None
    return _failure(value, "google.protobuf.Duration") if duration is None else duration


def to_timestamp(value: Value) -> Value:
    """`timestamp(x)` of an RFC 3339 string, or of seconds since 1970."""
    if isinstance(value, int):
        return arithmetic.timestamp(int(value) * 10**9)
    instant = parse_timestamp(value) if isinstance(value, str) else None
    return _failure(value, "google.protobuf.Timestamp") if instant is None else instant


def type_of(value: Value) -> Value:
    """`type(x)`."""
    return TypeValue(type_name(value))


def identity(value: Value) -> Value:
    """`dyn(x)`, and the conversion of a kind to itself."""
    return value


def parse_duration(text: str) -> Duration | None:
    """The duration of a text in Go's form; None for other texts."""
    sign = -1 if text.startswith("-") else 1
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return Duration(0)
    total = 0
    position = 0
    while position < len(body):
        part = _DURATION_PART.match(body, position)
        if part is None or len(part.group()) > _DIGITS_MAX:
            return None
        whole, fraction, unit = part.groups()
        if not whole and not fraction:
            return None
        total += int(whole or 0) * _UNITS[unit]
        if fraction:
            total += int(fraction) * _UNITS[unit] // 10 ** len(fraction)
        position = part.end()
    total *= sign
    return Duration(total) if body and INT_MIN <= total <= INT_MAX else None


def parse_timestamp(text: str) -> Timestamp | None:
    """The timestamp of an RFC 3339 text; None for other texts."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match.group(index)) for index in range(1, 7))
    fraction, sign, offset_hours, offset_minutes = match.group(7, 8, 9, 10)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = calendar.timegm(moment.timetuple())
    if sign is not None:
        if int(offset_hours) > 24 or int(offset_minutes) > 60:
            return None
        offset = int(offset_hours) * 3600 + int(offset_minutes) * 60
        seconds -= offset if sign == "+" else -offset
    nanoseconds = int((fraction or "0")[:9].ljust(9, "0"))
    made = arithmetic.timestamp(seconds * 10**9 + nanoseconds)
    return made if isinstance(made, Timestamp) else None


def double_text(value: float) -> str:
    """A double as Go's `%g`: shortest digits, scientific below 1e-4 and from 1e+06."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = _shortest(value)
    if -4 <= exponent < 6:
        return sign + _plain(digits, exponent)
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def plain_double_text(value: float) -> str:
    """A double with its shortest digits and never an exponent."""
    if math.isnan(value) or math.isinf(value):
        return double_text(value)
    sign, digits, exponent = _shortest(value)
    return sign + _plain(digits, exponent)


def _shortest(value: float) -> tuple[str, str, int]:
    """Sign, significant digits and the exponent of the first one."""
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return sign, "0", 0
    mantissa, _, power = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole) - 1 if whole != "0" else len(digits) - len(fraction) - 1
    return sign, digits.rstrip("0"), leading + int(power or 0)


def _plain(significant: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + significant
    if len(significant) <= exponent + 1:
        return significant.ljust(exponent + 1, "0")
    return significant[: exponent + 1] + "." + significant[exponent + 1 :]


def duration_text(value: Duration) -> str:
    """A duration in seconds, such as `3600s` or `0.5s`, as a double that may lose digits."""
    whole, rest = divmod(abs(value.nanoseconds), 10**9)
    seconds = float(whole) + rest / 1e9
    return plain_double_text(-seconds if value.nanoseconds < 0 else seconds) + "s"


def timestamp_text(value: Timestamp) -> str:
    """A timestamp in RFC 3339 with as many decimals as needed."""
    seconds, rest = divmod(value.nanoseconds, 10**9)
    days, of_day = divmod(seconds, 86400)
    moment = datetime.fromordinal(719163 + days)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    clock = f"{of_day // 3600:02d}:{of_day // 60 % 60:02d}:{of_day % 60:02d}"
    return f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}T{clock}{fraction}Z"


CONVERSIONS: Final[dict[str, Callable[[Value], Value]]] = {
    "bool": to_bool,
    "bytes": to_bytes,
    "double": to_double,
    "duration": to_duration,
    "dyn": identity,
    "int": to_int,
    "string": to_text,
    "timestamp": to_timestamp,
    "type": type_of,
    "uint": to_uint,
}
"""The conversions by function name; those of a constant run when a program is compiled."""
