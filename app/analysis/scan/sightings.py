"""Sightings: incidents that a history shows, and where."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from app.analysis import chronicle
from app.domain.log import ObjectKey, Revision
from app.domain.log.doubts import ENDS
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND

LASTED = 60 * SECOND
"""The time that a normally momentary state must last to be an incident."""

OBJECTS_MAX = 20
"""The number of objects that one sighting names."""


class Certainty(StrEnum):
    """The certainty of a sighting.

    `CERTAIN`: the history cannot exist without the incident. `LIKELY`: something else may explain
    it.
    """

    CERTAIN = "certain"
    LIKELY = "likely"


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentSighting:
    """An incident by its name in the gallery, its first revision, and its number of occurrences.

    `message` is that of the first occurrence.
    """

    incident: str
    certainty: Certainty
    revision: Revision
    times: int
    objects: tuple[ObjectKey, ...]
    message: str

    def to_json(self) -> JsonObject:
        """The sighting as JSON for programs."""
        return {
            "incident": self.incident,
            "certainty": self.certainty.value,
            "revision": self.revision,
            "times": self.times,
            "objects": [str(key) for key in self.objects],
            "message": self.message,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """The sightings of a history up to `examined`, as if it ended there.

    `attempts_left_out` counts attempts beyond the bound. A report that is not complete was made
    while the scan went on.
    """

    sightings: Sequence[IncidentSighting]
    attempts_left_out: int = 0
    examined: Revision = Revision(0)
    is_complete: bool = True

    def unread(self, until: Revision) -> str:
        """The note that the log was not scanned to its end yet; empty if it was."""
        return "" if self.is_complete else chronicle.unread(self.examined, until)


@dataclass(slots=True, kw_only=True)
class _Collected:
    certainty: Certainty
    revision: Revision
    message: str
    times: int = 0
    objects: dict[ObjectKey, None] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True, eq=False)
class Sightings:
    """Collects the findings of detectors; one sighting for each incident.

    With `wants`, an occurrence counts only if it wants one of the objects of that occurrence.
    `lacking` are the resources of which changes may be missing in the log; others may add to it.
    """

    wants: Callable[[ObjectKey], bool] | None = None
    lacking: set[str] = field(default_factory=set)
    _by_incident: dict[str, _Collected] = field(default_factory=dict)

    def add(
        self,
        incident: str,
        revision: Revision,
        message: str,
        *objects: ObjectKey,
        certainty: Certainty = Certainty.CERTAIN,
        rests_on: Collection[str] = (),
    ) -> None:
        """Adds an occurrence at this revision. An incident that is certain once is certain.

        It `rests_on` objects of these resources, which may have changed or ended in a missing part
        of the log: then it is likely at most.
        """
        if rests_on and (ENDS in self.lacking or not self.lacking.isdisjoint(rests_on)):
            certainty = Certainty.LIKELY
        if self.wants is not None and not any(map(self.wants, objects)):
            return
        collected = self._by_incident.get(incident)
        if collected is None or revision < collected.revision:
            before = collected
            collected = _Collected(certainty=certainty, revision=revision, message=message)
            if before is not None:
                collected.times, collected.objects = before.times, before.objects
                if before.certainty is Certainty.CERTAIN:
                    collected.certainty = Certainty.CERTAIN
            self._by_incident[incident] = collected
        if certainty is Certainty.CERTAIN:
            collected.certainty = certainty
        collected.times += 1
        for key in objects:
            if len(collected.objects) < OBJECTS_MAX:
                collected.objects[key] = None

    def copy(self) -> "Sightings":
        """A copy, to which others may be added."""
        return Sightings(
            wants=self.wants,
            lacking=self.lacking,
            _by_incident={
                incident: replace(each, objects=dict(each.objects))
                for incident, each in self._by_incident.items()
            },
        )

    def sightings(self) -> list[IncidentSighting]:
        """All sightings, in the order of their first revisions."""
        made = [
            IncidentSighting(
                incident=incident,
                certainty=each.certainty,
                revision=each.revision,
                times=each.times,
                objects=tuple(each.objects),
                message=each.message,
            )
            for incident, each in self._by_incident.items()
        ]
        return sorted(made, key=lambda each: (each.revision, each.incident))
