"""Instants as microseconds since 1970 in UTC, and their texts.

An `Instant` is an integer, so that comparison, subtraction and hashing are exact. The API writes
most times in whole seconds (`seconds_text`), some with six digits (`micro_text`).
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NewType

Instant = NewType("Instant", int)
"""Microseconds since 1970-01-01T00:00:00Z."""

SECOND = 1_000_000
"""Microseconds in a second."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

EARLIEST = Instant(-62_135_596_800 * SECOND)
LATEST = Instant(253_402_300_800 * SECOND - 1)
"""The first and the last instant that have a text: years 1 to 9999. A computed instant may lie
outside this range; it is then written as the nearer end."""

_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))"
)


class TimestampError(ValueError):
    """A text that is not an RFC 3339 instant."""


def parse(text: str) -> Instant:
    """The instant that an RFC 3339 text denotes; digits beyond microseconds are cut.

    Raises TimestampError for anything else, and for a day or hour that does not exist.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise TimestampError(f"{text!r} is not an RFC 3339 instant such as 2026-01-02T03:04:05Z")
    whole, fraction, sign, hours, minutes = match.groups()
    try:
        micros = _second_of(whole) * SECOND
    except ValueError as problem:
        raise TimestampError(f"{text!r} is not an instant: {problem}") from problem
    if fraction:
        micros += int(fraction.ljust(6, "0")[:6])
    if sign:
        offset = (int(hours) * 3600 + int(minutes) * 60) * SECOND
        micros += -offset if sign == "+" else offset
    if not EARLIEST <= micros <= LATEST:
        raise TimestampError(f"{text!r} is not an instant of the years 1 to 9999 in UTC")
    return Instant(micros)


@lru_cache(maxsize=1_024)
def _second_of(text: str) -> int:
    """The second of a text without fraction and zone, cached as `_second` is. Raises ValueError."""
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:])
    moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    if second > 60:
        raise ValueError("second must be in 0..60")
    return (moment - EPOCH) // timedelta(seconds=1) + (second - min(second, 59))


def instant_of(text: str) -> Instant | None:
    """The instant of a field; None when the field has none."""
    try:
        return parse(text)
    except TimestampError:
        return None


def seconds_text(instant: Instant) -> str:
    """The instant cut to whole seconds, as the API writes most times: `2026-01-02T03:04:05Z`."""
    return _second(instant // SECOND) + "Z"


def micro_text(instant: Instant) -> str:
    """The instant with six fractional digits: `2026-01-02T03:04:05.000006Z`."""
    return f"{_second(instant // SECOND)}.{instant % SECOND:06}Z"


@lru_cache(maxsize=1_024)
def _second(seconds: int) -> str:
    """The text of a whole second, cached because successive instants often share one."""
    return to_datetime(Instant(seconds * SECOND)).isoformat(timespec="seconds")[:19]


def from_datetime(moment: datetime) -> Instant:
    """The instant of an aware datetime."""
    return Instant((moment - EPOCH) // timedelta(microseconds=1))


def to_datetime(instant: Instant) -> datetime:
    """The instant as an aware datetime in UTC."""
    try:
        return EPOCH + timedelta(microseconds=instant)
    except OverflowError:
        nearest = EARLIEST if instant < EARLIEST else LATEST
        return EPOCH + timedelta(microseconds=nearest)
