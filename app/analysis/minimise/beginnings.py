"""Recordings with a later beginning: the objects at a moment, followed by the later steps.

Earlier placements decide later ones, so early steps often cannot be left out. But they can be
shortened: to the fact that a claim has its devices, without the steps that led there. A recording
that was started in the middle of a cluster's life looks the same.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import msgspec

from app.analysis.minimise.material import Candidate, Material
from app.analysis.minimise.predicates import Sighting
from app.analysis.replay.inputs import Input
from app.domain.log import Actor, EventType, ObjectKey
from app.domain.log.records import BASELINE_VERB, IMPORTER_USER
from app.domain.values.timestamps import Instant

BEFORE_SIGHTING = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""The numbers of steps before a sighting at which a history may begin."""

BEFORE_SUBJECT = (0, 64, 512)
"""The same before the first step of its subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterBeginning:
    """A later beginning of a candidate: only its steps from a position on are kept as steps."""

    candidate: Candidate
    number: int

    @property
    def kept(self) -> frozenset[int]:
        """The steps from which the history is made."""
        return self.candidate.kept


def begun(material: Material, beginning: LaterBeginning) -> tuple[Material, Candidate]:
    """The material with this beginning, and the candidate that is all of it."""
    steps = material.inputs(beginning.candidate)
    later = beginning_at(steps, beginning.number)
    return later, whole(later, material.end(beginning.candidate))


def beginning_at(steps: Sequence[Input], number: int) -> Material:
    """The recorded steps from a number on, preceded by the objects as they were then.

    These are in the order of their last writes, all at the instant of the last one.
    """
    there: dict[ObjectKey, Input] = {}
    for step in steps[:number]:
        there.pop(step.event.key, None)
        if step.event.type is not EventType.OBJECT_DELETED:
            there[step.event.key] = step
    at = steps[max(0, number - 1)].time
    begun = [_as_seen_first(step, at) for step in there.values()]
    return Material(
        steps=[replace(step, number=n) for n, step in enumerate((*begun, *steps[number:]))],
        is_recorded=True,
    )


def whole(material: Material, until: Instant) -> Candidate:
    """The candidate with every step."""
    return Candidate(kept=frozenset(range(len(material.steps))), until=until)


def before(material: Material, sightings: Sequence[Sighting]) -> Iterator[LaterBeginning]:
    """Beginnings before a sighting, up to the instant at which it is seen, the latest first.

    Those of all sightings take turns.
    """
    tried: set[tuple[int, Instant]] = set()
    tries = [list(_beginnings(material, each)) for each in sightings]
    for turn in zip_longest(*tries):
        for place in turn:
            if place is not None and place not in tried:
                tried.add(place)
                number, until = place
                kept = frozenset(n for n, step in enumerate(material.steps) if step.time <= until)
                yield LaterBeginning(candidate=Candidate(kept=kept, until=until), number=number)


def _beginnings(material: Material, sighting: Sighting) -> Iterator[tuple[int, Instant]]:
    """The numbers of steps at which a history of a sighting may begin, and its end.

    The material has steps: it shows the sighting.
    """
    until = material.steps[-1].time if sighting.at is None else sighting.at
    times = [step.time for step in material.steps]
    end = bisect_right(times, until)
    first = min((material.by_key[key][0] for key in sighting.objects[:1]), default=end - 1)
    if first >= end:
        return
    seen = end - 1 if sighting.since is None else bisect_left(times, sighting.since)
    numbers = [number for back in BEFORE_SIGHTING if (number := seen - back) > first]
    numbers += [first - back for back in BEFORE_SUBJECT]
    for number in dict.fromkeys(max(0, each) for each in numbers):
        if 0 < number < end:
            yield number, until


def later(material: Material, candidate: Candidate) -> Iterator[LaterBeginning]:
    """Beginnings within the remaining steps of a candidate, the latest first."""
    steps = material.inputs(candidate)
    first = next((n for n, step in enumerate(steps) if not is_beginning(step)), len(steps))
    for number in range(len(steps) - 1, first, -1):
        yield LaterBeginning(candidate=candidate, number=number)


def is_beginning(step: Input) -> bool:
    """Whether a step is an object that existed from the beginning."""
    return step.event.stamp.verb == BASELINE_VERB


def _as_seen_first(step: Input, at: Instant) -> Input:
    """The state that a write left, as it is seen at an instant: no request tells when it came."""
    event = step.event
    origin = event.stamp.origin
    if origin is not None:
        origin = msgspec.structs.replace(origin, asked=0, answered=0)
    stamp = msgspec.structs.replace(
        event.stamp, time=at, actor=Actor(user=IMPORTER_USER), verb=BASELINE_VERB, origin=origin
    )
    event = msgspec.structs.replace(event, type=EventType.OBJECT_CREATED, stamp=stamp)
    return replace(step, event=event, before=None, time=at, author=IMPORTER_USER)
