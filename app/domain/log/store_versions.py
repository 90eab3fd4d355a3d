"""Versions of the store that no line of an audit log is about.

A store counts its writes: each gets the next version. Where a line has each version, no write is
missing. Where versions are left over, some write has no line: the policy leaves it out, or the line
is lost. Some recorded writes have no version in their line: a binding, a removal by the last
finalizer, and the first of the two writes that remove a pod. Each fills one version that was given
while the request was under way. Parity: history-formats.md 4.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from app.domain.log import Event, EventType
from app.domain.log.records import BASELINE_VERB, Loss
from app.domain.values.timestamps import Instant

_UNDATED = ("derived", "none")
"""The qualities of the times of sources that do not date each write."""


class _Span(NamedTuple):
    """The time between the arrival of a request and an answer."""

    since: Instant
    until: Instant


@dataclass(slots=True)
class _Slot:
    """Versions between two recorded ones, and the time in which they were given."""

    count: int
    span: _Span


class Versions:
    """Follows the versions of an audit log event by event."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._last_span = _Span(Instant(0), Instant(0))
        self._slots: list[_Slot] = []
        self._unversioned: list[_Span] = []
        self._skew = 0
        self._are_requests = True
        self._holes: list[_Span] | None = None

    def follow(self, event: Event) -> None:
        """Processes the next event."""
        origin = event.stamp.origin
        if origin is None or not event.is_about_object or event.stamp.verb == BASELINE_VERB:
            return
        if not event.stamp.request_id:
            # A deletion that was concluded is no request; other sources have none at all.
            self._are_requests &= Loss.SYNTHETIC_DELETE in origin.losses
            return
        self._holes = None
        answered = Instant(origin.answered or event.stamp.time)
        span = _Span(Instant(origin.asked or answered), answered)
        is_removal = event.type is EventType.OBJECT_DELETED
        if is_removal and Loss.COLLAPSED in origin.losses:
            self._unversioned.append(span)
        if origin.resource_version.isdigit() and Loss.NO_RV not in origin.losses:
            self._note(int(origin.resource_version), span)
            if origin.asked and origin.time_quality not in _UNDATED:
                self._skew = max(self._skew, origin.asked - event.stamp.time)
        elif is_removal or event.stamp.verb in ("create", "deletecollection"):
            self._unversioned.append(span)

    def _note(self, version: int, span: _Span) -> None:
        if self._last is not None and version > self._last + 1:
            since = min(self._last_span.since, span.since)
            self._slots.append(_Slot(version - self._last - 1, _Span(since, span.until)))
        self._last, self._last_span = version, span

    def may_hide(self, first: Instant, last: Instant) -> bool:
        """Whether a write between two instants may have no line.

        In a recording of another kind, versions prove nothing.
        """
        if self._holes is None:
            self._holes = [self._reach(each) for each in self._left_over()]
        is_any = any(each.since <= last and first <= each.until for each in self._holes)
        return self._are_requests and is_any

    def _reach(self, hole: _Span) -> _Span:
        """The time in which a version that is left over may have been given.

        Which version an unversioned write got is a guess: it may be this one instead of another
        that was given while its request was under way.
        """
        beside = [each for each in self._widened() if _meet(each, hole)]
        since = min((each.since for each in beside), default=hole.since)
        until = max((each.until for each in beside), default=hole.until)
        return _Span(min(since, hole.since), max(until, hole.until))

    def _widened(self) -> list[_Span]:
        """The times of the unversioned writes, as exact as clocks of several servers are.

        No request comes after the answer to a later write of the store: so much as one seems to,
        clocks differ at least.
        """
        skew = self._skew
        return [
            _Span(Instant(each.since - skew), Instant(each.until + skew))
            for each in self._unversioned
        ]

    def _left_over(self) -> Iterator[_Span]:
        """The times of versions that are left over when each unversioned write has filled one."""
        waiting = sorted(self._widened(), reverse=True)
        open_ones: list[Instant] = []
        for slot in self._slots:
            while waiting and waiting[-1].since <= slot.span.until:
                heappush(open_ones, waiting.pop().until)
            while open_ones and open_ones[0] < slot.span.since:
                heappop(open_ones)
            filled = min(slot.count, len(open_ones))
            for _ in range(filled):
                heappop(open_ones)
            if slot.count > filled:
                yield slot.span


def _meet(one: _Span, other: _Span) -> bool:
    return one.since <= other.until and other.since <= one.until
