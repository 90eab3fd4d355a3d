"""Verification and scan of a history as its events arrive.

It uses the same judges as for a whole history: the invariants, the incidents of the gallery,
decisions made again with their effects, and allocations of others decided again. Each finding is
reported once, as soon as it is certain:

| finding | reported |
|---|---|
| an invariant | with the event that broke it; a late restoration once it has lasted too long |
| an incident | with the event that shows it; one that shows only by lasting at the end |
| a decision, effect or allocation | when nothing that it depends on can be in flight |

An allocation may have been chosen up to `WINDOW` before it was written, so it is decided again when
that much time has passed in the history and no scheduler still has requests from then waiting for
its rate limit, or when no event came for that long (`settle`). The work
for an event depends on what it touches and on what is broken, not on the length of the history.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.analysis.scan.scanning import Scan
from app.analysis.scan.sightings import IncidentSighting
from app.analysis.verify.allocation_index import AllocationIndex
from app.analysis.verify.compare import ComparisonCounts, Difference, DifferenceKind
from app.analysis.verify.in_flight import WINDOW
from app.analysis.verify.invariants import InvariantWatch, Switches, Violation
from app.analysis.verify.parts import (
    Deciders,
    PartFindings,
    PartVerifier,
    VerifiedPart,
    joined,
)
from app.domain.log import Event, EventType, Revision, doubts
from app.domain.log.pages import Page
from app.domain.values.json_tree import JsonObject

LAST = Revision(2**62)
"""A revision after all others."""


class JudgeName(StrEnum):
    """The judge that made a finding."""

    INVARIANT = "invariant"
    INCIDENT = "incident"
    DECISION = "decision"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A violation, or a known defect that shows.

    `name` is the rule, the incident, or the subject of the decision; `kind` is its severity or
    certainty. `revision` is where it began, `seen` the last event that had arrived when it was
    reported. A failure breaks a rule or is a known defect. `is_other_choice` is true if it is an
    allocation that breaks no rule where redra would choose other devices.
    """

    judge: JudgeName
    name: str
    kind: str
    revision: Revision
    seen: Revision
    message: str
    objects: tuple[str, ...] = ()
    is_failure: bool = True
    is_other_choice: bool = False

    def __str__(self) -> str:
        """The observation as a line for readers."""
        objects = f" [{', '.join(self.objects)}]" if self.objects else ""
        name = f"{self.judge.value} {self.name} ({self.kind})"
        return f"{self.revision}: {name}: {self.message}{objects}"

    def to_json(self) -> JsonObject:
        """The observation as JSON for programs."""
        return {
            "judge": self.judge.value,
            "name": self.name,
            "kind": self.kind,
            "revision": self.revision,
            "seen": self.seen,
            "message": self.message,
            "objects": list(self.objects),
            "failure": self.is_failure,
        }


class Oversight:
    """Takes the events of a history from the first on; each call returns the new observations.

    `begin` is the first own event of a fork: earlier violations are judged with the parent.
    `revision` is the last event taken.
    """

    def __init__(
        self,
        deciders: Deciders,
        *,
        invariants: Switches,
        scan: Switches,
        lacking: frozenset[str] = frozenset(),
        kinds_lacking: tuple[str, ...] = (),
        begin: Revision = Revision(0),
    ) -> None:
        self._invariants = InvariantWatch(invariants, lacking)
        self._scan = Scan(scan, lacking=lacking)
        self._index = AllocationIndex(
            lacks_ends=doubts.ENDS in lacking, lacks_times=doubts.TIMES in lacking
        )
        part = VerifiedPart(
            after=begin,
            observers={},
            deciders=frozenset(controller.name for controller in deciders.controllers),
            index=self._index,
            lacking=kinds_lacking,
            begun=begin,
            # The end of the recorded inputs is not known yet.
            paced_until=LAST if begin else Revision(0),
        )
        self._verifier = PartVerifier(part, deciders)
        self._waiting: deque[Event] = deque()
        self._begin = begin
        self._differences = [0, 0, 0]
        self._incidents: set[str] = set()
        self._found: PartFindings | None = None
        self.revision = Revision(0)

    def take(self, events: Sequence[Event]) -> list[Observation]:
        """Takes the next events of the history."""
        if not events:
            return []
        page = Page(events)
        self._invariants.follow_page(page)
        self._index.lacks_rules = self._invariants.lacks_rules
        self._scan.follow(events)
        for event, parts in page.splits:
            if event.type is EventType.DECISION_RECORDED:
                self._verifier.expect(event)
            elif event.type is EventType.REQUEST_OBSERVED:
                self._index.note_sent(event)
            elif event.is_about_object or event.type is EventType.GAP_OBSERVED:
                self._index.add(event, parts)
            self._waiting.append(event)
        self.revision = events[-1].revision
        now = events[-1].stamp.time
        settled = self._index.open_since(now) - WINDOW
        while self._waiting and self._waiting[0].stamp.time < settled:
            self._verifier.take(self._waiting.popleft())
        return self._new(self._invariants.news(), self._scan.news())

    def settle(self) -> list[Observation]:
        """Judges the waiting events after a pause so long that nothing can be in flight."""
        while self._waiting:
            self._verifier.take(self._waiting.popleft())
        return self._new((), ())

    def end(self) -> list[Observation]:
        """Ends the history: judges the waiting events, and reports what shows only by lasting."""
        if self._found is not None:
            return []
        settled = self.settle()
        self._found = self._verifier.findings()
        violations = self._invariants.news(is_end=True)
        return settled + self._new(violations, self._scan.sightings())

    def compared(self) -> tuple[ComparisonCounts, ComparisonCounts, ComparisonCounts]:
        """The comparisons of decisions, effects and allocations; only after the end."""
        assert self._found is not None, "asked after the end"
        return self._found.decisions, self._found.effects, joined([self._found.allocations])

    def _new(
        self, violations: Sequence[Violation], sightings: Sequence[IncidentSighting]
    ) -> list[Observation]:
        new = [
            self._of_violation(each)
            for each in violations
            if not self._begin or each.begin.revision > self._begin
        ]
        for sighting in sightings:
            if sighting.incident not in self._incidents:
                self._incidents.add(sighting.incident)
                new.append(self._of_sighting(sighting))
        for place, differences in enumerate(self._verifier.differences()):
            known = self._differences[place]
            new += [self._of_difference(each) for each in differences[known:]]
            self._differences[place] = len(differences)
        return new

    def _of_violation(self, violation: Violation) -> Observation:
        return Observation(
            judge=JudgeName.INVARIANT,
            name=violation.rule,
            kind=violation.kind.value,
            revision=violation.begin.revision,
            seen=self.revision,
            message=violation.message,
            objects=tuple(str(key) for key in violation.objects),
            is_failure=violation.kind.is_failure,
        )

    def _of_sighting(self, sighting: IncidentSighting) -> Observation:
        return Observation(
            judge=JudgeName.INCIDENT,
            name=sighting.incident,
            kind=sighting.certainty.value,
            revision=sighting.revision,
            seen=self.revision,
            message=sighting.message,
            objects=tuple(str(key) for key in sighting.objects),
        )

    def _of_difference(self, difference: Difference) -> Observation:
        is_other_choice = difference.kind is DifferenceKind.OTHER_CHOICE
        judgement = f"{difference.judgement}; " if difference.judgement else ""
        return Observation(
            judge=JudgeName.DECISION,
            name=difference.subject,
            kind=difference.kind.value,
            revision=Revision(difference.revision),
            seen=self.revision,
            message=f"{judgement}{difference.path}: recorded {difference.recorded!r}, decided "
            f"again {difference.again!r}"[:500],
            objects=difference.objects,
            is_failure=not is_other_choice,
            is_other_choice=is_other_choice,
        )
