"""Parts of timestamps and durations, such as `getHours()`, also in a named time zone.

Parity: the language's definition; the default zone is UTC (allocator.md 11.3).
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from app.domain.cel.values.value import CelError, Duration, Timestamp, Value

_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)
_ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,62}", re.ASCII)

_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
    "getMilliseconds": lambda moment: moment.microsecond // 1000,
}
_UNITS: Final = {
    "getHours": 3600 * 10**9,
    "getMinutes": 60 * 10**9,
    "getSeconds": 10**9,
    "getMilliseconds": 10**6,
}


def part_of_duration(name: str) -> Callable[[Duration], Value]:
    """The function `name` on durations: whole units, truncated towards zero."""
    unit = _UNITS[name]

    def read(value: Duration) -> Value:
        whole = abs(value.nanoseconds) // unit
        return whole if value.nanoseconds >= 0 else -whole

    return read


def part_of_timestamp(name: str) -> Callable[[Timestamp], Value]:
    """The function `name` on timestamps, in UTC."""
    read_part = _PARTS[name]

    def read(value: Timestamp) -> Value:
        return read_part(_moment(value, UTC))

    return read


def part_in_zone(name: str) -> Callable[[Timestamp, str], Value]:
    """The function `name` on timestamps, in the zone that the argument names."""
    read_part = _PARTS[name]

    def read(value: Timestamp, zone: str) -> Value:
        offset = _zone(zone)
        if offset is None:
            return CelError(f"unknown time zone {zone}")
        try:
            return read_part(_moment(value, offset))
        except OverflowError:
            return CelError("timestamp overflow")

    return read


def _moment(value: Timestamp, zone: tzinfo) -> datetime:
    seconds, rest = divmod(value.nanoseconds, 10**9)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
        seconds=seconds, microseconds=rest // 1000
    )
    return moment.astimezone(zone)


def _zone(name: str) -> tzinfo | None:
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        minutes = int(offset.group(2)) * 60 + int(offset.group(3))
        if minutes >= 24 * 60:
            return None
        return timezone(timedelta(minutes=-minutes if offset.group(1) == "-" else minutes))
    if name in ("", "UTC"):
        return UTC
    if not _ZONE_NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
