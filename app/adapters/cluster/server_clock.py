"""How far the server's clock is from ours, as the dates of its answers tell.

A date has whole seconds and some servers refresh it once a second, so one answer bounds the offset
to two seconds and the time of its round trip; the answers together bound it closer. A busy server
may refresh its date later. It never sends one that lies ahead, so that a later answer corrects it.
"""

from email.utils import parsedate_to_datetime

from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant

_COARSENESS = 2 * SECOND

CONTRADICTIONS_MAX = 4
"""Answers in a row that may contradict those before without being believed."""


class ServerClock:
    """Takes the dates of answers; `offset` is what to add to our instants to get the server's."""

    def __init__(self) -> None:
        self._low: int | None = None
        self._high = 0
        self._contradictions = 0

    def note(self, date: str, sent: Instant, received: Instant) -> None:
        """Take the `Date` header of an answer; one that is no date says nothing."""
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
            # Otherwise the dates before were late or one of the clocks was set: what was known
            # holds no more.
        self._low, self._high, self._contradictions = low, high, 0

    @property
    def offset(self) -> int:
        """Microseconds that the server is surely ahead (negative: behind); 0 where it may be none.

        The middle of what is possible once none is impossible.
        """
        if self._low is None or self._low <= 0 <= self._high:
            return 0
        return (self._low + self._high) // 2

    @property
    def spread(self) -> int:
        """Microseconds that the offset may be off, where no date was older than a second."""
        return 0 if self._low is None else (self._high - self._low + 1) // 2
