"""The pass through a history in which all detectors read its events."""

from collections import deque
from collections.abc import Iterator, Sequence

from app.analysis.recordings.uncertainty import JUDGED
from app.analysis.scan import attempts, broken_rules, lasting_states, reports, traces
from app.analysis.scan.attempts import RecordedScheduler, RemadeAttempts
from app.analysis.scan.lasting_states import Standing
from app.analysis.scan.reports import Reports
from app.analysis.scan.sightings import IncidentSighting, ScanReport, Sightings
from app.analysis.scan.traces import Traces
from app.analysis.scope import LabelledObjects
from app.analysis.verify.invariants import InvariantWatch, Switches
from app.analysis.views import LiveViews
from app.domain.log import Event, EventType
from app.domain.values import api_resources
from app.domain.values.fields import dra
from app.domain.values.timestamps import Instant

LOOKED_FOR = (
    *broken_rules.LOOKED_FOR,
    *reports.LOOKED_FOR,
    *traces.LOOKED_FOR,
    *lasting_states.LOOKED_FOR,
    *attempts.LOOKED_FOR,
)
"""The incidents searched for, by name; the last ones need repeated attempts."""


class Scan:
    """Takes the events of a history from the first on, and returns the incidents that they show.

    With the scheduler of the history, its attempts are made again, too. With `labelled`, only
    occurrences at such objects count.
    """

    def __init__(
        self,
        switches: Switches = Switches(),
        scheduler: RecordedScheduler | None = None,
        labelled: LabelledObjects | None = None,
        *,
        lacking: frozenset[str] = frozenset(),
    ) -> None:
        """`lacking` is as in `uncertainty.lacking`."""
        self._labelled = labelled
        wants = None if labelled is None else labelled.has
        self._lacking = set(lacking)
        self._sightings = Sightings(wants=wants, lacking=self._lacking)
        self._attempts = None if scheduler is None else RemadeAttempts(self._sightings, scheduler)
        self._invariants = InvariantWatch(switches, lacking)
        self._reports = Reports(self._sightings)
        self._traces = Traces(self._sightings)
        self._standing = Standing(self._sightings)
        self._by_rules = Sightings(wants=wants, lacking=self._lacking)
        self._counting: dict[str, frozenset[str]] = {}

    def follow(self, events: Sequence[Event]) -> None:
        """Processes the next events."""
        deque(self.following(events), maxlen=0)

    def following(self, events: Sequence[Event]) -> Iterator[None]:
        """Processes the next events; yields after each attempt that was made again."""
        self._invariants.follow(events)
        for event in events:
            if event.type is EventType.GAP_OBSERVED:
                # A gap without a resource is one of all resources.
                self._lacking.update((event.key.resource,) if event.key.resource else JUDGED)
            if self._labelled is not None:
                self._labelled.fold(event)
            if self._attempts is not None:
                yield from self._attempts.follow(event)
            self._reports.see(event)
            self._traces.see(event)
            self._standing.see(event)
            place = event.key.group, event.key.resource
            if place == api_resources.RESOURCE_SLICES and dra.shared_counters(event.object):
                pool = dra.pool_name(event.object)
                known = self._counting.get(pool, frozenset())
                self._counting[pool] = known | {dra.driver(event.object)}

    def turn(self, scheduler: RecordedScheduler, views: LiveViews) -> None:
        """Makes further attempts again by another scheduler, from its views of this moment on."""
        if self._attempts is not None:
            self._attempts.turn(scheduler, views)

    def news(self) -> list[IncidentSighting]:
        """The sightings that later events cannot change; not those that show only by lasting."""
        broken_rules.see(self._invariants.news(), self._counting, self._by_rules)
        return [*self._sightings.sightings(), *self._by_rules.sightings()]

    def sightings(self, now: Instant = Instant(0)) -> list[IncidentSighting]:
        """The sightings of the history, if nothing more happens in it until `now`."""
        sightings = self._sightings.copy()
        violations = self._invariants.violations()
        self._traces.end(sightings, now, broken_rules.unsure_claims(violations))
        self._standing.end(sightings, now)
        if self._attempts is not None:
            self._attempts.end(sightings, now)
        broken_rules.see(violations, self._counting, sightings)
        return sightings.sightings()

    def report(self, now: Instant = Instant(0)) -> ScanReport:
        """The same sightings, and the number of attempts that were not made again."""
        left_out = 0 if self._attempts is None else self._attempts.left_out
        return ScanReport(sightings=self.sightings(now), attempts_left_out=left_out)
