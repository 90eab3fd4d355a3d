"""The known defects and traps that a history shows, ranked beside its findings."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.analysis.findings.report import Severity, severity_of_defect
from app.analysis.incidents.incident import Incident
from app.analysis.scan.sightings import Certainty, IncidentSighting, ScanReport
from app.domain.log import Revision
from app.domain.values.json_tree import JsonObject

_SEVERITIES = tuple(Severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDefect:
    """A sighting with its incident of the gallery, if there is one, and its severity."""

    sighting: IncidentSighting
    incident: Incident | None
    severity: Severity

    @property
    def title(self) -> str:
        """The title of the incident, or its name in the gallery."""
        return self.sighting.incident if self.incident is None else self.incident.title

    def to_json(self) -> JsonObject:
        """The sighting and what its incident is about, as JSON for programs."""
        about = {} if self.incident is None else self.incident.about()
        return {**self.sighting.to_json(), **about, "severity": self.severity.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDefects:
    """The known defects that show, the most severe first.

    `note` says why there may be more. The scan of a log that `is_going_on` has more of them later.
    """

    items: tuple[KnownDefect, ...] = ()
    note: str = ""
    is_going_on: bool = False

    def to_json(self) -> JsonObject:
        """The fields that an answer with findings has besides."""
        return {
            "knownDefects": [one.to_json() for one in self.items],
            "knownDefectsNote": self.note,
        }


def of_report(
    report: ScanReport,
    until: Revision,
    read: Callable[[str], Incident | None],
    namespace: str = "",
) -> KnownDefects:
    """The known defects of a scan; with a namespace, those of which an object is in it."""
    note = ""
    if not report.is_complete:
        note = (
            f"not complete: known defects were searched for up to revision {report.examined} of "
            f"{until}; ask again for the rest"
        )
    sightings = (
        one
        for one in report.sightings
        if not namespace or any(key.namespace == namespace for key in one.objects)
    )
    return KnownDefects(
        items=tuple(_ranked(sightings, read)), note=note, is_going_on=not report.is_complete
    )


def _ranked(
    sightings: Iterable[IncidentSighting], read: Callable[[str], Incident | None]
) -> list[KnownDefect]:
    defects = []
    for one in sightings:
        incident = read(one.incident)
        severity = severity_of_defect(
            "defect" if incident is None else incident.kind,
            is_certain=one.certainty is Certainty.CERTAIN,
        )
        defects.append(KnownDefect(sighting=one, incident=incident, severity=severity))
    return sorted(defects, key=lambda one: _SEVERITIES.index(one.severity))
