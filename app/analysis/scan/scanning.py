"""Follows a history once with all detectors."""

from collections.abc import Sequence

from app.analysis.scan import broken_rules, reports, traces
from app.analysis.scan.reports import Reports
from app.analysis.scan.sightings import Sighting, Sightings
from app.analysis.scan.traces import Traces
from app.analysis.verify.invariants import InvariantWatch, Switches
from app.domain.log import Event
from app.domain.values import api_resources
from app.domain.values.fields import dra

LOOKED_FOR = (*broken_rules.LOOKED_FOR, *reports.LOOKED_FOR, *traces.LOOKED_FOR)
"""The incidents that are looked for, by name."""


class Scan:
    """Takes the events of a history from the first on, then tells what they show."""

    def __init__(self, switches: Switches = Switches()) -> None:
        self._sightings = Sightings()
        self._invariants = InvariantWatch(switches)
        self._reports = Reports(self._sightings)
        self._traces = Traces(self._sightings)
        self._by_rules = Sightings()
        self._counting: dict[str, frozenset[str]] = {}

    def follow(self, events: Sequence[Event]) -> None:
        """Take the next events."""
        self._invariants.follow(events)
        for event in events:
            self._reports.see(event)
            self._traces.see(event)
            place = event.key.group, event.key.resource
            if place == api_resources.RESOURCE_SLICES and dra.shared_counters(event.object):
                pool = dra.pool_name(event.object)
                known = self._counting.get(pool, frozenset())
                self._counting[pool] = known | {dra.driver(event.object)}

    def news(self) -> list[Sighting]:
        """What shows by now whatever comes later, without what shows by staying as it is."""
        broken_rules.see(self._invariants.news(), self._counting, self._by_rules)
        return [*self._sightings.found(), *self._by_rules.found()]

    def found(self) -> list[Sighting]:
        """What the history shows, if it ends here."""
        sightings = self._sightings.copy()
        self._traces.end(sightings)
        broken_rules.see(self._invariants.violations(), self._counting, sightings)
        return sightings.found()
