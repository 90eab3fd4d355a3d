"""Looks: a cluster that is listed again, with all that happened in between unrecorded.

What happened between two looks has no order, and may have come and gone. So only what one look
shows as a whole can break a rule: a state at its end, of objects that it certainly showed. Looks
follow each other in a *run*; a recorded change ends it. Each list is known by its source. Lists
whose events lie between each other belong to one *moment*.

Example, with claims a and b that hold one device:

    revision  event                  source   moment
    10        a is listed            1.json   10 to 11
    11        a pod is listed        1.json
    12        b is listed            2.json   12 to 13: was a still there?
    13        a is gone              2.json             no
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import replace

from app.analysis.verify.invariants.violations import (
    BY_DEVICES,
    EVICTED,
    PROVEN,
    Violation,
    ViolationKind,
)
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.log.looks import LookWatch
from app.domain.log.records import BASELINE_VERB, Loss

UNORDERED = "what happened between two looks at the cluster is not recorded, nor in which order"

_DEVICES = frozenset(("resourceslices", "resourceslicepatches", "devicetaintrules"))
"""The kinds whose objects a fault of an allocation may rest on, as they were when it was made."""

_OF_ITS_OBJECTS = frozenset(
    (
        "allocation-has-finalizer",
        "device-in-one-claim",
        "reservation-has-allocation",
        "reservations-within-limit",
        "tolerations-copied",
    )
)
"""The rules that the objects of a violation break by themselves, whatever else is listed."""

"""The rule that rests on a taint, which may have come and gone between two looks."""


class Looks:
    """Follows the events of a recording; says what its looks show of violations."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._watch = LookWatch()
        self._is_in_run = False

    @property
    def is_again(self) -> bool:
        """Whether the last event is of a look at a cluster that was known before."""
        return self._watch.is_again

    def follow(self, event: Event) -> None:
        """Takes an event about an object."""
        if self._watch.follow(event):
            if not self._is_in_run:
                self._runs.append(_Run(event.revision))
                self._is_in_run = True
            self._runs[-1].take(event, self._watch)
        elif self._is_in_run:
            self._is_in_run = False
            if not self._runs[-1].is_again:
                self._runs.pop()

    def is_open(self, violation: Violation) -> bool:
        """Whether looks that follow may show that a violation is none."""
        return self.is_again and self._run(violation) is self._runs[-1]

    def has_shown(self, violation: Violation) -> bool:
        """False for a state that only the order of events within a moment makes."""
        run = self._run(violation)
        return run is None or bool(run.lasting(violation))

    def judged(self, violation: Violation) -> Violation:
        """The violation, made UNSURE if no moment shows that it is one."""
        run = self._run(violation) if violation.kind.is_failure else None
        if run is None or run.shows(violation):
            return violation
        return replace(violation, kind=ViolationKind.UNSURE, doubt=UNORDERED)

    def _run(self, violation: Violation) -> "_Run | None":
        """The looks at a known cluster among which a violation begins."""
        begin = violation.begin.revision
        if violation.rule in PROVEN:
            return None
        return next(
            (each for each in self._runs if each.begin <= begin <= each.end and each.is_again), None
        )


class _Run:
    """Looks without a recorded change between them.

    `spans` are the first and last revision of each list. `written` are the revisions of each
    object, `made` those of the first looks at objects of a kind in a namespace. `listed` are those
    that show that a list has all of them: one is there in another state, or is there no more;
    `known_since` is when each of these was listed first. `batches` are the first revisions of what
    was listed without a pause, by the last one.
    """

    def __init__(self, begin: Revision) -> None:
        self.begin = self.end = begin
        self.is_again = False
        self.batches: dict[Revision, Revision] = {}
        self.spans: dict[str, tuple[Revision, Revision]] = {}
        self.written: dict[ObjectKey, list[Revision]] = defaultdict(list)
        self.listed: dict[tuple[str, str], list[Revision]] = defaultdict(list)
        self.known_since: dict[Revision, Revision] = {}
        self.made: dict[tuple[str, str], list[Revision]] = defaultdict(list)

    def take(self, event: Event, watch: LookWatch) -> None:
        """Adds a look, which the watch has followed."""
        key, revision, origin = event.key, event.revision, event.stamp.origin
        first, _ = self.spans.get(watch.name, (revision, revision))
        self.spans[watch.name] = first, revision
        self.written[key].append(revision)
        if event.type is EventType.OBJECT_CREATED:
            self.made[key[1:3]].append(revision)
        elif origin is not None and Loss.NO_DELETES not in origin.losses:
            self.listed[key[1:3]].append(revision)
            self.known_since[revision] = self.written[key][0]
        if event.stamp.verb == BASELINE_VERB:
            self.batches[revision] = self.batches.pop(Revision(revision - 1), revision)
        self.is_again = watch.is_again
        self.end = revision

    def moments(self) -> list[tuple[Revision, Revision]]:
        """The first and the last revision of each moment, in order."""
        moments: list[tuple[Revision, Revision]] = []
        for first, last in sorted(self.spans.values()):
            if moments and first < moments[-1][1]:
                moments[-1] = moments[-1][0], Revision(max(last, moments[-1][1]))
            else:
                moments.append((first, last))
        return moments

    def lasting(self, violation: Violation) -> list[tuple[Revision, Revision]]:
        """The moments at whose end a violation exists."""
        begin, end = self._begin(violation), violation.end
        return [
            (first, last)
            for first, last in self.moments()
            if last >= begin and (end is None or last < end.revision)
        ]

    def _begin(self, violation: Violation) -> Revision:
        """The revision from which the objects of a violation were as they are in it.

        What is listed for the first time is judged when it has all been taken, with the lists that
        follow if they show nothing but more objects.
        """
        begin = violation.begin.revision
        first = self.batches.get(begin)
        if first is None or violation.rule not in _OF_ITS_OBJECTS:
            return begin
        written = (self.written.get(key, []) for key in violation.objects)
        seen = [each[place - 1] for each in written if (place := bisect_right(each, begin))]
        return max(first, *seen) if len(seen) == len(violation.objects) else begin

    def shows(self, violation: Violation) -> bool:
        """Whether a moment shows that a violation is one."""
        if violation.kind is ViolationKind.LATE or violation.rule == EVICTED:
            return False
        return any(self._has_all(violation, *moment) for moment in self.lasting(violation))

    def _has_all(self, violation: Violation, first: Revision, last: Revision) -> bool:
        """Whether a moment shows all objects of a violation, and the devices as they were."""
        if violation.rule in BY_DEVICES and self._has_changed(_DEVICES, first, last):
            return False
        return all(
            self._is_shown(key, first, last) for key in violation.objects if key.resource != "nodes"
        )

    def _has_changed(self, kinds: frozenset[str], first: Revision, last: Revision) -> bool:
        return any(
            key.resource in kinds and _is_within(revisions, first, last)
            for key, revisions in self.written.items()
        )

    def _is_shown(self, key: ObjectKey, first: Revision, last: Revision) -> bool:
        """Whether an object is in a moment: with a change, or in a list that misses none."""
        revisions, place = self.written.get(key, []), key[1:3]
        if _is_within(revisions, first, last):
            return True
        if not revisions or revisions[0] > first:
            return False
        seen = revisions[bisect_left(revisions, first) - 1]
        # A list of others alone may be of a part of the cluster, and shows the end of none.
        made, listed = self.made.get(place, []), self.listed.get(place, [])
        shown = next((each for each in self.moments() if each[0] <= seen <= each[1]), None)
        if shown is not None and any(
            self.known_since[each] <= shown[1] for each in listed if first <= each <= last
        ):
            # The list is of the same part: what it shows changed or gone was there with the object.
            return True
        return _is_within(listed, first, last) and all(
            _is_within(listed, *moment)
            for moment in self.moments()
            if seen < moment[0] < first and _is_within(made, *moment)
        )


def _is_within(revisions: list[Revision], first: Revision, last: Revision) -> bool:
    place = bisect_left(revisions, first)
    return place < len(revisions) and revisions[place] <= last
