"""A sighting: an incident that a history shows, and where."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from app.domain.log import ObjectKey, Revision
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND

LASTED = 60 * SECOND
"""How long something that is usual for a moment must be so that it is an incident."""

OBJECTS_MAX = 20
"""Objects that one sighting names; all are counted."""


class Certainty(StrEnum):
    """How sure a sighting is.

    `CERTAIN`: the history could not be so without it. `LIKELY`: something else may explain it.
    """

    CERTAIN = "certain"
    LIKELY = "likely"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An incident by its name in the gallery, the first revision that shows it, how often.

    `message` is that of the first time.
    """

    incident: str
    certainty: Certainty
    revision: Revision
    times: int
    objects: tuple[ObjectKey, ...]
    message: str

    def to_json(self) -> JsonObject:
        """For programs."""
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
    """What a history shows; `attempts_left_out` were too many to be made again."""

    sightings: Sequence[Sighting]
    attempts_left_out: int = 0


@dataclass(slots=True, kw_only=True)
class _Collected:
    certainty: Certainty
    revision: Revision
    message: str
    times: int = 0
    objects: dict[ObjectKey, None] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True, eq=False)
class Sightings:
    """Collects what detectors see; one sighting for each incident."""

    _by_incident: dict[str, _Collected] = field(default_factory=dict)

    def add(
        self,
        incident: str,
        revision: Revision,
        message: str,
        *objects: ObjectKey,
        certainty: Certainty = Certainty.CERTAIN,
    ) -> None:
        """The incident shows at this revision. One that is certain once is certain."""
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
        """The same sightings, to which others may be added."""
        return Sightings(
            _by_incident={
                incident: replace(each, objects=dict(each.objects))
                for incident, each in self._by_incident.items()
            }
        )

    def found(self) -> list[Sighting]:
        """All sightings, in the order of their first revisions."""
        made = [
            Sighting(
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
