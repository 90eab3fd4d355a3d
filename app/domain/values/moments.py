"""Moments as people write them: RFC 3339, a date, a time of day, or how long before the end.

A revision is a moment too; those who know the history resolve it (`app/service/moments.py`).

2026-01-02T03:04:05Z   2026-01-02 03:04:05   2026-01-02   (UTC where no zone is given)
03:04:05   03:04       the last such time of day up to the end
10m   1h30m   2d   -45s   so long before the end
"""

import re

from app.domain.errors import InputError
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant, TimestampError

DAY = 86_400 * SECOND

_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?)?Z?")
_TIME = re.compile(r"(\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?Z?")
_BEFORE = re.compile(r"-?(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9})s)?")
_UNITS = (86_400, 3_600, 60, 1)
_DIGITS_MAX = 18


def is_revision(text: str) -> bool:
    """Whether a moment is given as a revision."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX


def check(text: str) -> None:
    """Raises InputError for a text that means no moment of any history."""
    if not is_revision(text):
        try:
            parse(text, timestamps.LATEST)
        except TimestampError as problem:
            raise refusal(text) from problem


def refusal(text: str) -> InputError:
    """What is said of a text that means no moment, wherever it is given."""
    return InputError(
        f"{text!r} is neither a revision nor an instant",
        cure="give a number such as 42, a time such as 2026-01-02T03:04:05Z or 03:04:05, or 10m "
        "(before the end)",
    )


def needs_end(text: str) -> bool:
    """Whether a moment means something only together with the end of a history."""
    return _TIME.fullmatch(text) is not None or _BEFORE.fullmatch(text) is not None


def parse(text: str, end: Instant | None = None) -> Instant:
    """The instant that a text means in a history that ends at `end`.

    Raises TimestampError for another text, and for one that needs an end where there is none.
    """
    date = _DATE.fullmatch(text)
    if date is not None:
        return timestamps.parse(f"{date[1]}T{date[2] or '00:00'}{date[3] or ':00'}Z")
    if end is not None:
        if (time := _TIME.fullmatch(text)) is not None:
            return _last(f"{time[1]}{time[2] or ':00'}", end)
        before = _BEFORE.fullmatch(text)
        if before is not None and any(before.groups()):
            amounts = zip(before.groups(), _UNITS, strict=True)
            seconds = sum(int(amount or 0) * unit for amount, unit in amounts)
            return Instant(max(timestamps.EARLIEST, end - seconds * SECOND))
    return timestamps.parse(text)


def _last(time: str, end: Instant) -> Instant:
    """The last instant up to the end that has this time of day."""
    day = timestamps.seconds_text(end).partition("T")[0]
    instant = timestamps.parse(f"{day}T{time}Z")
    if instant > end:
        instant = Instant(instant - DAY)
    if instant < timestamps.EARLIEST:
        raise TimestampError(f"{time!r} is before the first year")
    return instant
