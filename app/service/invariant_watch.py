"""The invariants of a history over time: looked at now and then, and how long each was broken.

What was seen at one revision is a `Look`; what follows from all looks is made of them afterwards
(`found_in`), so that the parts of a history may be looked at apart, by different processes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.domain.log import Event, Revision
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.service import invariants
from app.service.invariants import Violation
from app.service.views import LiveViews

TRANSIENT_MAX = 60 * SECOND
"""How long, in cluster time, a violation may last that controllers repair by and by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundViolation:
    """An invariant that did not hold, and from which revision to which it was seen broken."""

    violation: Violation
    first: Revision
    last: Revision

    def to_json(self) -> JsonObject:
        """For reports."""
        return {
            "rule": self.violation.rule,
            "message": self.violation.message,
            "objects": [str(key) for key in self.violation.objects],
            "transient": self.violation.is_transient,
            "firstRevision": self.first,
            "lastRevision": self.last,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was broken at a revision, as places in the violations of its `Looks`."""

    revision: Revision
    time: Instant
    broken: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """All looks at one part of a history, in order; each violation is told once."""

    violations: tuple[Violation, ...]
    looks: tuple[Look, ...]


class InvariantWatch:
    """Looks at the invariants every `every` events, or after as many as there are objects.

    The more is taken of the two, because a look costs as much as there are objects.
    """

    def __init__(self, views: LiveViews, every: int) -> None:
        self._views = views
        self._every = every
        self._known: set[tuple[str, str, str]] = set()
        self._places: dict[Violation, int] = {}
        self._looks: list[Look] = []
        self._looked = Revision(0)
        self._time = Instant(0)
        self._events = 0
        self._next = every

    @property
    def time(self) -> Instant:
        """The time of the event last noted."""
        return self._time

    def note(self, event: Event, *, looks: bool) -> None:
        """Count the event, which the views show by now, and look when a look is due.

        The devices of a slice are remembered: an allocation may outlive its device. Who only
        follows the log up to the part that it verifies `looks` at nothing, and is then due where
        it would have been.
        """
        self._time = event.stamp.time
        if event.key.resource == "resourceslices" and event.is_about_object:
            spec = json_tree.mapping(event.object, "spec")
            driver, pool = json_tree.text(spec, "driver"), json_tree.text(spec, "pool", "name")
            for device in json_tree.objects(spec, "devices"):
                self._known.add((driver, pool, json_tree.text(device, "name")))
        self._events += 1
        if self._events >= self._next:
            if looks:
                self.look()
            self._next = self._events + max(self._every, self._views.objects.total)

    def look(self) -> None:
        """Look at the present state, once at a revision."""
        revision = self._views.revision
        if revision == self._looked:
            return
        broken = invariants.check_invariants(
            self._views.objects, self._views.inventory, known_devices=self._known
        )
        places = self._places
        numbers = tuple(places.setdefault(violation, len(places)) for violation in broken)
        self._looks.append(Look(revision=revision, time=self._time, broken=numbers))
        self._looked = revision

    def result(self) -> Looks:
        """All looks so far."""
        return Looks(violations=tuple(self._places), looks=tuple(self._looks))


def found_in(parts: Iterable[Looks], end: Instant) -> list[FoundViolation]:
    """What was broken in the parts of a history that follow each other, which ends at `end`.

    A transient violation counts if it lasted. Sorted by when it was over.
    """
    found: list[FoundViolation] = []
    still: dict[Violation, tuple[Revision, Instant]] = {}
    last = Revision(0)

    def close(over: Mapping[Violation, tuple[Revision, Instant]], time: Instant) -> None:
        for violation, (first, since) in over.items():
            if not violation.is_transient or time - since >= TRANSIENT_MAX:
                found.append(FoundViolation(violation=violation, first=first, last=last))

    for part in parts:
        for look in part.looks:
            seen = (look.revision, look.time)
            now = {
                violation: still.get(violation, seen)
                for violation in (part.violations[place] for place in look.broken)
            }
            close({each: since for each, since in still.items() if each not in now}, look.time)
            still, last = now, look.revision
    close(still, end)
    return found
