"""Known defects that appear or disappear with a release, and those that the two worlds show."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.analysis.incidents.incident import Exhibit
from app.analysis.scan.sightings import IncidentSighting


class Shows(StrEnum):
    """The worlds in which an incident shows: only the first, only the second, or both."""

    GONE = "gone"
    NEW = "new"
    STAYS = "stays"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidence:
    """An incident that at least one of the worlds shows.

    `number` is that on the page of behaviours, empty for a pitfall. `before` and `after` are its
    sightings in the first and the second world.
    """

    incident: str
    number: str
    title: str
    shows: Shows
    before: IncidentSighting | None
    after: IncidentSighting | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Defects:
    """Numbers of defects that the other release repairs and introduces, and incidents seen."""

    repaired: tuple[str, ...]
    introduced: tuple[str, ...]
    incidents: tuple[Incidence, ...]

    @property
    def changing(self) -> tuple[Incidence, ...]:
        """The incidents that show in only one of the worlds."""
        return tuple(each for each in self.incidents if each.shows is not Shows.STAYS)


def titles(exhibits: Iterable[Exhibit]) -> dict[str, tuple[str, str]]:
    """Number and title of each incident, by its name."""
    return {each.name: (each.incident.number, each.incident.title) for each in exhibits}


def compared(
    before: Mapping[str, str],
    after: Mapping[str, str],
    sightings: tuple[Sequence[IncidentSighting], Sequence[IncidentSighting]],
    exhibits: Mapping[str, tuple[str, str]],
) -> Defects:
    """Compares both worlds: their switches, named as in comparisons, and their sightings.

    `exhibits` has number and title of each incident.
    """
    old, new = ({each.incident: each for each in listed} for listed in sightings)
    incidents = []
    for name in dict.fromkeys((*old, *new)):
        number, title = exhibits.get(name, ("", name))
        shows = Shows.STAYS if name in old and name in new else Shows.GONE
        if name not in old:
            shows = Shows.NEW
        incidents.append(
            Incidence(
                incident=name,
                number=number,
                title=title,
                shows=shows,
                before=old.get(name),
                after=new.get(name),
            )
        )
    return Defects(
        repaired=tuple(_turned(before, after, "on")),
        introduced=tuple(_turned(before, after, "off")),
        incidents=tuple(incidents),
    )


def _turned(before: Mapping[str, str], after: Mapping[str, str], was: str) -> Iterable[str]:
    for name, value in before.items():
        if name.startswith("quirk ") and value == was and after.get(name) != was:
            yield name.removeprefix("quirk ")
