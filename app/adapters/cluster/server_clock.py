"""The offset of the server's clock from ours, derived from the dates of its answers.

A date has whole seconds, and some servers refresh it once a second. So one answer bounds the offset
to two seconds plus the time of its round trip; several answers narrow the bounds. A busy server may
refresh its date late, but a date is never ahead of its clock, so that a later answer corrects it.
"""

from email.utils import parsedate_to_datetime

from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant

_COARSENESS = 2 * SECOND

CONTRADICTIONS_MAX = 4
"""Contradicting answers in a row that are ignored before a further one is believed."""


class ServerClock:
    """Collects the dates of answers; our instants plus `offset` are the server's instants."""

    def __init__(self) -> None:
        self._low: int | None = None
        self._high = 0
        self._contradictions = 0

    def note(self, date: str, sent: Instant, received: Instant) -> None:
        """Use the `Date` header of an answer; a header that is not a date is ignored."""
        try:
            instant = timestamps.from_datetime(parsedate_to_datetime(date))
        except (TypeError, ValueError):
            return
        low, high = instant - received, instant + _COARSENESS - sent
        if self._low is not None:
            if max(low, self._low) <= min(high, self._high):
                low, high = max(low, self._low), min(high, self._high)
            elif high < self._low and self._contradictions < CONTRADICTIONS_MAX:
                # A busy server may be late with its date.
                self._contradictions += 1
                return
            # Otherwise the earlier dates were late or one of the clocks was set: the earlier
            # bounds are no longer valid.
        self._low, self._high, self._contradictions = low, high, 0

    @property
    def offset(self) -> int:
        """Microseconds by which the server's clock is certainly ahead (negative: behind).

        0 while a zero offset is possible; otherwise the middle of the possible range.
        """
        if self._low is None or self._low <= 0 <= self._high:
            return 0
        return (self._low + self._high) // 2

    @property
    def spread(self) -> int:
        """Microseconds by which the offset may be wrong, if no date was older than one second."""
        return 0 if self._low is None else (self._high - self._low + 1) // 2
