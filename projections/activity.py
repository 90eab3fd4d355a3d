"""The activity of the cluster: events and decisions counted per minute of cluster time.

Minutes are counted from 1970, so that gaps in a recorded history stay visible. A rate is a count
divided by sixty seconds; SQL and the pages that draw the rates do the division.
"""

from collections.abc import Mapping, Sequence

import msgspec

from app.domain.log import Event, EventType, Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Row, RowKey, Table
from app.domain.values.identifiers import GroupResource
from app.domain.values.timestamps import SECOND
from projections import outlines
from projections.row_changes import PagedView, RowChanges
from projections.tables import ACTIVITY, OUTCOMES

MINUTE = 60 * SECOND
"""Microseconds in a minute."""


class ActivityProjection(PagedView):
    """Folds every event into two tables of counts.

    Example: two claims created by alice within one minute: one row of `view_activity` with
    events 2.
    """

    name = "activity"
    version = 1

    def __init__(self) -> None:
        self.revision = Revision(0)
        self._events: dict[RowKey, list[int]] = {}
        self._outcomes: dict[RowKey, int] = {}
        self._changes = RowChanges((ACTIVITY, OUTCOMES), self._compute)
        self._touched = self._changes.touched(ACTIVITY.name)
        self._touched_outcomes = self._changes.touched(OUTCOMES.name)

    def _take(self, page: Page) -> None:
        """Count the events."""
        for place, splits in page.kinds.items():
            self._count(place, [event for event, _ in splits])
        facts: dict[GroupResource, list[Event]] = {}
        for event in page.facts:
            facts.setdefault(event.key[:2], []).append(event)
        for place, events in facts.items():
            self._count(place, events)
        for event, decided in page.decisions(outlines.decision):
            time = event.stamp.time
            key = (time - time % MINUTE, decided.controller, decided.outcome)
            self._outcomes[key] = self._outcomes.get(key, 0) + 1
            self._touched_outcomes.add(key)

    def _count(self, place: GroupResource, events: Sequence[Event]) -> None:
        """Count events of one kind."""
        begin = end = 0
        counted: dict[tuple[EventType, str, str], list[int]] = {}
        for event in events:
            stamp = event.stamp
            if not begin <= stamp.time < end:
                self._add(begin, place, counted)
                begin = stamp.time - stamp.time % MINUTE
                end = begin + MINUTE
                counted = {}
            key = (event.type, stamp.verb, stamp.actor.user)
            counts = counted.get(key)
            if counts is None:
                counted[key] = [1, len(event.body)]
            else:
                counts[0] += 1
                counts[1] += len(event.body)
        self._add(begin, place, counted)

    def _add(
        self,
        minute: int,
        place: GroupResource,
        counted: Mapping[tuple[EventType, str, str], list[int]],
    ) -> None:
        """Add the counts of one minute."""
        for (kind, verb, user), (count, size) in counted.items():
            key = (minute, _TYPES[kind], *place, verb, user)
            counts = self._events.get(key)
            if counts is None:
                self._events[key] = [count, size]
            else:
                counts[0] += count
                counts[1] += size
            self._touched.add(key)

    def tables(self) -> tuple[Table, ...]:
        """Events and decisions per minute."""
        return (ACTIVITY, OUTCOMES)

    def take_changed(self) -> dict[str, set[RowKey]]:
        """Keys of the counts that changed since the last call."""
        return self._changes.take()

    def row(self, table: str, key: RowKey) -> Row | None:
        """One row of counts."""
        return self._changes.row(table, key)

    def state_hash(self) -> str:
        """The hash over all rows."""
        return self._changes.state_hash()

    def dump(self) -> bytes:
        """All counts, sorted by key."""
        events = sorted((key, *counts) for key, counts in self._events.items())
        return _encoder.encode((self.revision, events, sorted(self._outcomes.items())))

    def load(self, state: bytes) -> None:
        """Restore a dumped state; the view must be empty."""
        self.revision, events, outcomes = _snapshot.decode(state)
        for key, count, size in events:
            self._events[key] = [count, size]
        self._outcomes.update(outcomes)
        self._touched.update(self._events)
        self._touched_outcomes.update(self._outcomes)

    def _compute(self, table: str, key: RowKey) -> Row | None:
        if table == OUTCOMES.name:
            decisions = self._outcomes.get(key)
            if decisions is None:
                return None
            return {**dict(zip(OUTCOMES.key, key, strict=True)), "decisions": decisions}
        counts = self._events.get(key)
        if counts is None:
            return None
        events, size = counts
        return {**dict(zip(ACTIVITY.key, key, strict=True)), "events": events, "bytes": size}


_TYPES = {kind: kind.value for kind in EventType}
"""Plain texts: rows hold JSON values, not members of an enumeration."""

_encoder = msgspec.msgpack.Encoder()
_Count = tuple[tuple[int, str, str, str, str, str], int, int]
_Outcome = tuple[tuple[int, str, str], int]
_snapshot = msgspec.msgpack.Decoder(tuple[Revision, list[_Count], list[_Outcome]])
