"""Versions of the store that no line of an audit log is about.

A store counts its writes: each gets the next version. Where a line has each version, no write is
missing. Where versions are left over, some write has no line: the policy leaves it out, or the line
is lost. Some recorded writes have no version in their line: a binding, a removal by the last
finalizer, and the first of the two writes that remove a pod. Each fills one version that was given
while the request was under way. Parity: history-formats.md 4.3.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import NamedTuple

from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.records import BASELINE_VERB, Loss
from app.domain.values.timestamps import Instant

_UNDATED = ("derived", "none")
"""The qualities of the times of sources that do not date each write."""


class WriteSpan(NamedTuple):
    """The time between the arrival of a request and an answer."""

    since: Instant
    until: Instant


@dataclass(slots=True)
class _Slot:
    """Versions between two recorded ones, and the time in which they were given."""

    first: int
    count: int
    span: WriteSpan


class NameSuccession(NamedTuple):
    """An object that got the name of another one, and the writes between the two without a line."""

    key: ObjectKey
    old: str
    new: str
    writes: tuple[WriteSpan, ...]


class Versions:
    """Follows the versions of an audit log event by event."""

    def __init__(self, *, are_requests: bool = True) -> None:
        """`are_requests` is false if some of the writes are from another source."""
        self._last: int | None = None
        self._since = Instant(0)
        self._slots: list[_Slot] = []
        self._unversioned: list[WriteSpan] = []
        self._skew = 0
        self._are_requests = are_requests
        self._filled: int | None = None
        self._falls = False

    @property
    def are_proofs(self) -> bool:
        """Whether versions are recorded, each of a request, and all of one store in its order."""
        return self._last is not None and self._are_requests and not self._falls

    def follow(self, event: Event) -> None:
        """Processes the next event."""
        origin = event.stamp.origin
        if origin is None or not event.is_about_object or event.stamp.verb == BASELINE_VERB:
            return
        if not event.stamp.request_id:
            # A deletion that was concluded is no request; other sources have none at all.
            self._are_requests &= Loss.SYNTHETIC_DELETE in origin.losses
            return
        answered = Instant(origin.answered or event.stamp.time)
        span = WriteSpan(Instant(origin.asked or answered), answered)
        is_dated = origin.time_quality not in _UNDATED
        is_removal = event.type is EventType.OBJECT_DELETED
        if is_removal and Loss.COLLAPSED in origin.losses:
            self.note_unversioned(span)
        if origin.resource_version.isdigit() and Loss.NO_RV not in origin.losses:
            until = event.stamp.time if is_dated else answered
            self.note(int(origin.resource_version), span._replace(until=until))
            if origin.asked and is_dated:
                self._skew = max(self._skew, origin.asked - event.stamp.time)
        elif is_removal or event.stamp.verb in ("create", "deletecollection"):
            self.note_unversioned(span)

    def note_unversioned(self, span: WriteSpan) -> None:
        """Notes a write whose line has no version."""
        self._filled = None
        self._unversioned.append(span)

    def note(self, version: int, span: WriteSpan) -> None:
        """Notes a version; it was given later than each smaller one."""
        self._filled = None
        self._falls |= self._last is not None and version < self._last
        if self._last is not None and version > self._last + 1:
            span_left = WriteSpan(min(self._since, span.until), span.until)
            self._slots.append(_Slot(self._last + 1, version - self._last - 1, span_left))
        self._last, self._since = version, max(self._since, span.since)

    def may_hide(self, first: Instant, last: Instant, beside: Sequence[WriteSpan] = ()) -> bool:
        """Whether a write between two instants may have no line.

        `first` may be later than `last`: the answer to a write may come after what is known by it.
        Then a version is left for it, beside those that the writes without versions fill, and those
        `beside` it that have no line either. Which version one of these filled is not known, only
        which ones it can have filled. In a recording of another kind, versions prove nothing.
        """
        return self.may_hide_all([WriteSpan(first, last)], beside)

    def may_hide_all(self, writes: Sequence[WriteSpan], beside: Sequence[WriteSpan] = ()) -> bool:
        """Whether several writes may have no line, each a version of its own."""
        if not self._are_requests:
            return False
        known = [*self._unversioned, *beside]
        if beside:
            filled = self._count_filled(known)
        else:
            if self._filled is None:
                self._filled = self._count_filled(known)
            filled = self._filled
        return self._count_filled([*known, *writes]) == filled + len(writes)

    def are_all_recorded(self, low: int, high: int) -> bool:
        """Whether it is proved that each write between two recorded versions has a line."""
        if not (self.are_proofs and low < high):
            return False
        place = bisect_left(self._slots, low, key=lambda slot: slot.first)
        return place == len(self._slots) or self._slots[place].first > high

    def _count_filled(self, writes: Iterable[WriteSpan]) -> int:
        """The number of these writes that can have filled versions at the same time.

        Times are as exact as the clocks of several servers are. No request comes after the answer
        to a later write of the store: so much as one seems to, clocks differ at least.
        """
        skew, count = self._skew, 0
        waiting = sorted(
            (WriteSpan(Instant(each.since - skew), Instant(each.until + skew)) for each in writes),
            reverse=True,
        )
        open_ones: list[Instant] = []
        for slot in self._slots:
            while waiting and waiting[-1].since <= slot.span.until:
                heappush(open_ones, waiting.pop().until)
            while open_ones and open_ones[0] < slot.span.since:
                heappop(open_ones)
            filled = min(slot.count, len(open_ones))
            for _ in range(filled):
                heappop(open_ones)
            count += filled
        return count


@dataclass(frozen=True, slots=True)
class _End:
    """The unrecorded end of an object; `is_made_unseen` if that of the next one is no line too."""

    uid: str
    span: WriteSpan
    is_made_unseen: bool = False


class Successions:
    """Finds names that another object got although no write for that can be without a line.

    The removal of the first object is a write, and so is the creation of the second one. Where a
    later line alone shows them, each needs a version of its own that no line is about, between the
    last line of the first object and the first line of the second one.
    """

    def __init__(self) -> None:
        self._ends: dict[ObjectKey, _End] = {}

    def follow(self, event: Event, versions: Versions) -> NameSuccession | None:
        """A succession that the event proves to be impossible; versions have followed the event."""
        origin, key = event.stamp.origin, event.key
        if origin is None or not event.is_about_object:
            return None
        if event.type is EventType.OBJECT_DELETED and Loss.SYNTHETIC_DELETE in origin.losses:
            if event.uid and origin.asked and origin.answered:
                span = WriteSpan(Instant(origin.asked), Instant(origin.answered))
                self._ends[key] = _End(event.uid, span)
            return None
        end = self._ends.pop(key, None)
        if end is None:
            return None
        if Loss.SYNTHETIC_CREATE in origin.losses:
            self._ends[key] = replace(end, is_made_unseen=True)
            return None
        is_versioned = origin.resource_version.isdigit() and Loss.NO_RV not in origin.losses
        if not (is_versioned and event.stamp.request_id and event.uid not in ("", end.uid)):
            return None
        writes = (end.span,) * (1 + end.is_made_unseen)
        if not versions.are_proofs or versions.may_hide_all(writes):
            return None
        return NameSuccession(key, end.uid, event.uid, writes)
