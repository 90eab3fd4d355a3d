"""Moments as users write them: RFC 3339, a date, a time of day, or a duration back.

A revision is a moment too; `app/service/moments.py`, which knows the history, resolves it.

2026-01-02T03:04:05Z   2026-01-02 03:04:05   2026-01-02   (UTC where no zone is given)
03:04:05   03:04       the last such time of day up to the end
10m   1h30m   2d   -45s   a duration before the end

The end of a live history is now, as for kubectl. A history whose time is its own (a recording, a
paced replay, a fork) ends with its last event: it may be years ago.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.errors import InputError
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant, TimestampError

DAY = 86_400 * SECOND

_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?)?Z?")
_TIME = re.compile(r"(\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?Z?")
_BEFORE = re.compile(r"-?(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9})s)?")
_UNITS = (86_400, 3_600, 60, 1)
_DIGITS_MAX = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEnd:
    """The instant from which relative moments count back: now, or that of the last event."""

    instant: Instant
    is_now: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Moments in absolute form; `meanings` says which instants the relative ones name."""

    moments: tuple[str, ...]
    meanings: tuple[str, ...] = ()

    @property
    def as_of(self) -> dict[str, str]:
        """The field of an answer in JSON that has the meanings; empty without any."""
        return {AS_OF: "; ".join(self.meanings)} if self.meanings else {}


AS_OF = "asOf"
"""The field of answers that says which instant a relative moment names."""


def is_revision(text: str) -> bool:
    """Whether a moment is written as a revision."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX


def check(text: str) -> None:
    """Raises InputError for a text that is not a moment of any history."""
    if not is_revision(text):
        try:
            parse(text, timestamps.LATEST)
        except TimestampError as problem:
            raise refusal(text) from problem


def refusal(text: str) -> InputError:
    """The error for a text that is not a moment."""
    return InputError(
        f"{text!r} is neither a revision nor an instant",
        cure="give a number such as 42, a time such as 2026-01-02T03:04:05Z or 03:04:05, or 10m "
        "(before now, in a recording before its last event)",
    )


def needs_end(text: str) -> bool:
    """Whether a moment has a meaning only relative to the end of a history."""
    return _TIME.fullmatch(text) is not None or _BEFORE.fullmatch(text) is not None


def are_relative(texts: Iterable[str]) -> bool:
    """Whether any of the moments is relative."""
    return any(text and not is_revision(text) and needs_end(text) for text in texts)


def absolute(text: str, end: HistoryEnd) -> str:
    """The moment, as an instant if it is relative. Raises TimestampError."""
    if is_revision(text) or not needs_end(text):
        return text
    return _exactly(parse(text, end.instant))


def meaning(text: str, end: HistoryEnd) -> str:
    """The sentence that says which instant a relative moment names; empty for other moments."""
    if is_revision(text) or not needs_end(text):
        return ""
    try:
        instant = absolute(text, end)
    except TimestampError:
        return ""
    last = _exactly(end.instant)
    origin = f"now, {last}," if end.is_now else f"the last event at {last}"
    if _TIME.fullmatch(text):
        return f"{text} is {instant}, the last such time up to {origin.rstrip(',')}"
    return f"{text.lstrip('-')} before {origin} is {instant}"


def _exactly(instant: Instant) -> str:
    has_fraction = instant % SECOND
    return (timestamps.micro_text if has_fraction else timestamps.seconds_text)(instant)


def parse(text: str, end: Instant | None = None) -> Instant:
    """The instant that a text denotes in a history that ends at `end`.

    Raises TimestampError for an unreadable text, and for one that needs `end` when it is None.
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
    """The last instant with this time of day that is not after the end."""
    day = timestamps.seconds_text(end).partition("T")[0]
    instant = timestamps.parse(f"{day}T{time}Z")
    if instant > end:
        instant = Instant(instant - DAY)
    if instant < timestamps.EARLIEST:
        raise TimestampError(f"{time!r} is before the first year")
    return instant
