"""How busy the cluster was: events and decisions counted per minute of cluster time.

Minutes are counted since 1970, so that gaps in a recorded history stay visible. Rates are these
counts divided by sixty seconds; SQL and the pages that draw them do that.
"""

import msgspec

from app.domain.log import Event, EventType, Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Row, RowKey, Table
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
        known, touched = self._events, self._touched
        begin = end = 0
        for event in page.events:
            stamp = event.stamp
            time = stamp.time
            if not begin <= time < end:
                begin = time - time % MINUTE
                end = begin + MINUTE
            kind = event.type
            group, resource, _, _ = event.key
            key = (begin, _TYPES[kind], group, resource, stamp.verb, stamp.actor.user)
            counts = known.get(key)
            if counts is None:
                counts = known[key] = [0, 0]
            counts[0] += 1
            counts[1] += len(event.body)
            touched.add(key)
            if kind is _DECIDED:
                self._count_outcome(begin, event)

    def tables(self) -> tuple[Table, ...]:
        """Events and decisions per minute."""
        return (ACTIVITY, OUTCOMES)

    def take_changed(self) -> dict[str, set[RowKey]]:
        """Keys of the counts that moved since the last call."""
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
        """Become what was dumped; the view must be empty."""
        self.revision, events, outcomes = _snapshot.decode(state)
        for key, count, size in events:
            self._events[key] = [count, size]
        self._outcomes.update(outcomes)
        self._touched.update(self._events)
        self._touched_outcomes.update(self._outcomes)

    def _count_outcome(self, minute: int, event: Event) -> None:
        decided = outlines.decision(event.body)
        key = (minute, decided.controller, decided.outcome)
        self._outcomes[key] = self._outcomes.get(key, 0) + 1
        self._touched_outcomes.add(key)

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


_DECIDED = EventType.DECISION_RECORDED
_TYPES = {kind: kind.value for kind in EventType}
"""Plain texts: rows hold JSON values, not members of an enumeration."""

_encoder = msgspec.msgpack.Encoder()
_Count = tuple[tuple[int, str, str, str, str, str], int, int]
_Outcome = tuple[tuple[int, str, str], int]
_snapshot = msgspec.msgpack.Decoder(tuple[Revision, list[_Count], list[_Outcome]])
