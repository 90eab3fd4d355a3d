"""The heads of lines of klog, whole or as people shorten them.

    I0102 03:04:05.000006     222 scheduler.go:33] "Attempting to schedule pod" pod="ns/a"
    03:04:05.000006     222 scheduler.go:33] "Attempting to schedule pod" pod="ns/a"
    scheduler.go:33] "Attempting to schedule pod" pod="ns/a"
    "Attempting to schedule pod" pod="ns/a"

A line has no year; without its level it has no day either.
"""

import re
from typing import NamedTuple

from app.domain.values import timestamps
from app.domain.values.timestamps import Instant, TimestampError

_PLACE = r"[\w./-]+\.go:(?:\d+|\.\.\.)\] "
_WHOLE = re.compile(
    r"(?<!\w)[IWEF](?P<day>\d{4}) (?P<clock>\d\d:\d\d:\d\d\.\d{6})\s+\d+ "
    rf"{_PLACE}(?P<rest>.*)"
)
_SHORTENED = re.compile(
    r"(?:(?P<clock>\d\d:\d\d:\d\d\.\d{6})\s+(?:\d+\s+)?)?"
    rf"(?:{_PLACE}|(?=\"[^\"\\]+\" \w+=)|(?=Event\(v1\.ObjectReference\{{))(?P<rest>.*)"
)
"""What is left of a head at the begin of a line; without its place, a message and a field."""


class KlogHead(NamedTuple):
    """The begin of a head in its line, its day and clock as far as it has them, and the rest."""

    begin: int
    day: str
    clock: str
    rest: str

    def moment(self, given: Instant | None) -> Instant | None:
        """The instant of the line in the year of a given one; None without a day."""
        if given is None or not self.day:
            return None
        year = timestamps.seconds_text(given)[:4]
        try:
            return timestamps.parse(f"{year}-{self.day[:2]}-{self.day[2:]}T{self.clock}Z")
        except TimestampError:
            return None


def head_of(line: str) -> KlogHead | None:
    """The head of a line of klog; a shortened one begins the line. None for other lines."""
    match = _WHOLE.search(line)
    if match is not None:
        return KlogHead(match.start(), match["day"], match["clock"], match["rest"])
    match = _SHORTENED.match(line)
    return None if match is None else KlogHead(0, "", match["clock"] or "", match["rest"])
