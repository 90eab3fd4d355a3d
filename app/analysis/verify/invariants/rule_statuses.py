"""Statuses of DeviceTaintRules: they show which rules a recording does not.

The taint controller writes the status of each rule that evicted a pod ten seconds later, and of
every rule when it starts. So a rule that evicted, and of which there is no line before, has one
soon afterwards, where such writes and the deletions of rules are recorded. Parity: controllers.md
1.6.

Example: the first line about a rule comes at 08:05:32, and a pod was evicted at 08:05:13. By
08:06:23 no other rule has shown that existed at 08:05:13, so none evicted the pod.
"""

from collections.abc import Collection

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.stock import SINCE_EVER
from app.analysis.verify.invariants.violations import CLOCK_TOLERANCE, LATE_AFTER, Moment
from app.domain.log import Event, EventType, Revision
from app.domain.log.records import IMPORTER_USER, Loss
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant, TimestampError

REPORTED_WITHIN = 10 * SECOND + LATE_AFTER
"""The time within which the status of a rule that evicted is written: the controller's delay, and
what another controller needs to take over. Parity: controllers.md 1.6."""

_LISTED = "baseline"


class RuleStatuses:
    """The first lines about rules, the users who write their statuses, and odd evictions."""

    def __init__(self) -> None:
        self._first: Revision | None = None
        self._rules: dict[tuple[str, str], tuple[Instant, Instant]] = {}
        """When each rule, by name and uid, was first shown, and when it was made."""
        self._writers: set[str] = set()
        self._evictors: dict[Revision, str] = {}
        self._gaps: list[Instant] = []

    @property
    def odd_evictions(self) -> Collection[Revision]:
        """The revisions at which a pod was evicted for a taint that no recorded object shows."""
        return self._evictors.keys()

    def note_rule(self, event: Event) -> None:
        """Notes a line about a rule."""
        if self._first is None:
            self._first = event.revision
        place = event.key.name, event.uid
        if place not in self._rules:
            self._rules[place] = event.stamp.time, made_at(event)
        if event.type is EventType.OBJECT_UPDATED:
            self._writers.add(event.stamp.actor.user)

    def note_eviction(self, event: Event) -> None:
        """Notes the mark of a pod that no known taint explains."""
        self._evictors[event.revision] = event.stamp.actor.user

    def note_gap(self, kinds: Collection[str], now: Instant) -> None:
        """Notes a gap in which lines about these kinds may be missing."""
        if "devicetaintrules" in kinds:
            self._gaps.append(now)

    def knew_rules(self, begin: Moment) -> bool:
        """Whether a rule was recorded before a moment."""
        return self._first is not None and self._first <= begin.revision

    def exclude(self, begin: Moment, now: Instant) -> bool | None:
        """Whether no rule without a line until `begin` evicted then; None if it may yet show."""
        until = begin.time + REPORTED_WITHIN
        latest = begin.time + CLOCK_TOLERANCE
        evictor = self._evictors.get(begin.revision, IMPORTER_USER)
        if (
            evictor == IMPORTER_USER
            or any(made <= latest and shown <= until for shown, made in self._rules.values())
            or any(begin.time <= gap <= until for gap in self._gaps)
        ):
            return False
        return True if now > until and evictor in self._writers else None


def made_at(event: Event) -> Instant:
    """The instant at which the rule was made, in whole seconds, as far as its line tells."""
    metadata = reading.get(reading.value(event.body), "metadata")
    try:
        return timestamps.parse(reading.text(metadata, "creationTimestamp"))
    except TimestampError:
        origin = event.stamp.origin
        is_synthetic = origin is not None and Loss.SYNTHETIC_CREATE in origin.losses
        is_made = event.type is EventType.OBJECT_CREATED and event.stamp.verb != _LISTED
        return event.stamp.time if is_made and not is_synthetic else SINCE_EVER
