"""States of objects over time, folded from the log: which state lasted from which event to which.

The lane of a device is not that of an object: its states are the claims that hold the device.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

import msgspec

from app.analysis.keeping import span_changes
from app.analysis.keeping.span_changes import HELD, ChangeSort, Moment, SpanChange
from app.domain.log import Event, ObjectKey, Revision
from app.domain.values import api_resources

DEVICES = span_changes.DEVICES

NAMES_IN_TEXT = 4_096
"""The number of names in a text that is searched for parts of them."""


_Wanted: TypeAlias = tuple[Revision, tuple[ObjectKey, ...], int]
"""Since when a pod names these claims and wants so many generated ones."""


class Span(msgspec.Struct, gc=False):
    """A state from its first event until the next one; `end` is None for the last one."""

    state: str
    label: str
    begin: Moment
    end: Moment | None = None


class Gap(msgspec.Struct, frozen=True, gc=False):
    """A stretch in which unrecorded changes may have happened."""

    begin: Moment
    end: Moment


class _Names:
    """The names of a growing list of keys, in texts in which a part of a name is found fast.

    Looking at each key takes as long as the history is; a text of many names is searched at once.
    A text is written when the list has its last name, so that no question waits for all of them.
    """

    def __init__(self) -> None:
        self.keys: list[ObjectKey] = []
        self._texts: list[tuple[str, Sequence[int]]] = []

    def add(self, key: ObjectKey) -> None:
        """Adds a key to the end of the list."""
        self.keys.append(key)
        if len(self.keys) % NAMES_IN_TEXT == 0:
            self._texts.append(self._text_from(len(self.keys) - NAMES_IN_TEXT))

    def holding(self, part: str) -> Iterator[ObjectKey]:
        """The keys with this part in their names, in the order of the list."""
        texts = (*self._texts, self._text_from(len(self._texts) * NAMES_IN_TEXT))
        for place, (text, offsets) in enumerate(texts):
            at = text.find(part) if offsets else -1
            while at >= 0:
                number = bisect_right(offsets, at) - 1
                key = self.keys[place * NAMES_IN_TEXT + number]
                # A part that was found may reach from one name into the next.
                if part in key.name:
                    yield key
                if number + 1 == len(offsets):
                    break
                at = text.find(part, offsets[number + 1])

    def _text_from(self, first: int) -> tuple[str, Sequence[int]]:
        """The names from a number on, one a line, and where in the text each of them begins."""
        names = [key.name for key in self.keys[first:]]
        starts = accumulate((len(name) + 1 for name in names[:-1]), initial=0)
        return "\n".join(names), array("L", starts if names else ())


class Spans:
    """Folds every event; the state of a lane as of a revision is a prefix of the lane.

    `began` has the keys of lanes by group and resource in the order in which they began, `claimed`
    the claims that belong to pods, with these pods and since which revision they do.

    Example: claim `c` gets device d at 7 and gives it back at 12: lane `c` is waiting until 7, then
    allocated, then waiting; lane d is held by `c` from 7 to 12.
    """

    def __init__(self) -> None:
        self.lanes: dict[ObjectKey, list[Span]] = {}
        self.began: dict[tuple[str, str], list[ObjectKey]] = {}
        self.claimed: dict[ObjectKey, dict[ObjectKey, Revision]] = {}
        self.gaps: list[Gap] = []
        self._claimed_since: list[Revision] = []
        self._counted: set[ObjectKey] = set()
        self._pods: dict[str, ObjectKey] = {}
        self._claims: dict[ObjectKey, dict[ObjectKey, Revision]] = {}
        self._claimed_again: dict[tuple[ObjectKey, ObjectKey], list[Revision]] = {}
        self._devices: dict[ObjectKey, dict[ObjectKey, Revision]] = {}
        self._holders: dict[ObjectKey, dict[ObjectKey, Revision]] = {}
        self._names: dict[tuple[str, str], _Names] = {}
        self._wanted: dict[ObjectKey, tuple[_Wanted, ...]] = {}
        self._holding: dict[ObjectKey, tuple[ObjectKey, ...]] = {}
        self._last = span_changes.BEGINNING

    def lane(self, key: ObjectKey) -> Sequence[Span]:
        """The states of an object; none where there never was one of that name."""
        return self.lanes.get(key, ())

    def begun_key(self, place: tuple[str, str], number: int) -> ObjectKey:
        """The lane of a group and resource that began as the one with that number."""
        return self.began[place][number]

    def begun_keys(self, place: tuple[str, str]) -> Iterator[ObjectKey]:
        """All lanes of a group and resource, in the order in which they began."""
        return iter(self.began.get(place, ()))

    def claims_of(
        self, pod: ObjectKey, until: Revision | None = None, *, after: Revision = Revision(0)
    ) -> Sequence[ObjectKey]:
        """The claims that were ever made or reserved for a pod of that name, up to a revision.

        Those that belonged only to earlier pods of the name, up to `after`, are left out.
        """
        since, again = self._claims.get(pod, {}), self._claimed_again
        return [
            claim
            for claim in _up_to(since, until)
            if any(
                after < revision and (until is None or revision <= until)
                for revision in (since[claim], *again.get((pod, claim), ()))
            )
        ]

    def pods_of(self, claim: ObjectKey, until: Revision) -> Sequence[ObjectKey]:
        """The pods with a lane that a claim of that name ever belonged to, up to a revision."""
        return tuple(
            pod
            for pod in _up_to(self.claimed.get(claim, {}), until)
            if (lane := self.lanes.get(pod)) and lane[0].begin[0] <= until
        )

    def wanted_by(
        self, pod: ObjectKey, until: Revision | None = None
    ) -> tuple[Sequence[ObjectKey], int]:
        """The claims that a pod names, and the number of those to be made from its templates.

        A later pod of the name and later states count up to a revision only.
        """
        for since, named, generated in reversed(self._wanted.get(pod, ())):
            if until is None or since <= until:
                return named, generated
        return (), 0

    def devices_of(self, claim: ObjectKey, until: Revision) -> Sequence[ObjectKey]:
        """The devices that a claim of that name ever held, up to a revision."""
        return _up_to(self._devices.get(claim, {}), until)

    def holders_of(self, device: ObjectKey, until: Revision) -> Sequence[ObjectKey]:
        """The claims that ever held a device, by their names, up to a revision."""
        return _up_to(self._holders.get(device, {}), until)

    def named(self, place: tuple[str, str], part: str) -> Iterator[ObjectKey]:
        """The keys of lanes of a group and resource with this part in their names."""
        if place in self.began:
            yield from self._names[place].holding(part)

    def count_begun(self, place: tuple[str, str], until: Revision) -> int:
        """The number of lanes of a group and resource that had begun up to a revision."""
        return bisect_right(
            self.began.get(place, ()), until, key=lambda key: self.lanes[key][0].begin[0]
        )

    def count_claimed(self, until: Revision) -> int:
        """The number of claims that belonged to a pod with a lane up to a revision."""
        return bisect_right(self._claimed_since, until)

    def fold(self, event: Event) -> None:
        """Applies the next event of the log."""
        change = span_changes.change_of(event, self._last)
        self._last = event.revision, event.stamp.time
        if change is not None:
            self.apply(change)

    def apply(self, change: SpanChange) -> None:
        """Applies the next change of the log."""
        key, now = change.key, change.now
        match change.sort:
            case ChangeSort.GAP:
                self.gaps.append(Gap(change.before, now))
            case ChangeSort.POD:
                self._pods[change.uid] = key
                self._want(change)
                self._enter(key, change.state, change.label, now)
            case ChangeSort.CLAIM:
                self._apply_claim(change)
            case ChangeSort.NODE:
                self._enter(key, change.state, change.label, now)
            case ChangeSort.GONE:
                if key[:2] == api_resources.RESOURCE_CLAIMS:
                    self._hold(key, (), now)
                self._end(key, now)

    def _want(self, change: SpanChange) -> None:
        key = change.key
        before = self._wanted.get(key, ())
        if change.count < 0 and not before:
            return
        named = tuple(
            ObjectKey(*api_resources.RESOURCE_CLAIMS, key.namespace, name) for name in change.names
        )
        generated = max(0, change.count)
        if not before or before[-1][1:] != (named, generated):
            self._wanted[key] = (*before, (change.now[0], named, generated))

    def _apply_claim(self, change: SpanChange) -> None:
        key, now = change.key, change.now
        users = [ObjectKey(*api_resources.PODS, key.namespace, name) for name in change.users]
        owners = [self._pods[uid] for uid in change.owners if uid in self._pods]
        for pod in (*owners, *users):
            since = self._claims.setdefault(pod, {}).setdefault(key, now[0])
            again = self._claimed_again.get((pod, key))
            if self._is_another_since(pod, again[-1] if again else since):
                self._claimed_again.setdefault((pod, key), []).append(now[0])
            self.claimed.setdefault(key, {}).setdefault(pod, now[0])
            if pod in self.lanes:
                self._count_claim(key, now[0])
        self._enter(key, change.state, "", now)
        self._hold(key, tuple(ObjectKey(*DEVICES, "", name) for name in change.names), now)

    def _is_another_since(self, pod: ObjectKey, revision: Revision) -> bool:
        """Whether the present pod of a name began after a revision."""
        lane = self.lanes.get(pod)
        if not lane or lane[-1].end is not None or lane[-1].begin[0] <= revision:
            return False
        begin = begin_of_last(lane)
        return begin != lane[0].begin and begin[0] > revision

    def _hold(self, claim: ObjectKey, devices: Sequence[ObjectKey], now: Moment) -> None:
        """Records that the claim holds these devices from now on."""
        before = self._holding.get(claim, ())
        if before == devices:
            return
        label = f"{claim.namespace}/{claim.name}"
        for device in before:
            if device not in devices:
                self._release(device, label, now)
        for device in devices:
            self._devices.setdefault(claim, {}).setdefault(device, now[0])
            self._holders.setdefault(device, {}).setdefault(claim, now[0])
            if device not in before:
                self._lane(device, now[0]).append(Span(HELD, label, now))
        if devices:
            self._holding[claim] = tuple(devices)
        else:
            self._holding.pop(claim, None)

    def _release(self, device: ObjectKey, label: str, now: Moment) -> None:
        """Ends the span of this claim; shares of a device are held side by side."""
        for span in reversed(self.lanes.get(device, ())):
            if span.label == label and span.end is None:
                span.end = now
                return

    def _enter(self, key: ObjectKey, state: str, label: str, now: Moment) -> None:
        spans = self._lane(key, now[0])
        if spans and spans[-1].end is None:
            if (spans[-1].state, spans[-1].label) == (state, label):
                return
            spans[-1].end = now
        spans.append(Span(state, label, now))

    def _lane(self, key: ObjectKey, revision: Revision) -> list[Span]:
        spans = self.lanes.get(key)
        if spans is None:
            spans = self.lanes[key] = []
            place = key[:2]
            if place not in self._names:
                self._names[place] = _Names()
                self.began[place] = self._names[place].keys
            self._names[place].add(key)
            for claim in self._claims.get(key, ()):
                self._count_claim(claim, revision)
        return spans

    def _count_claim(self, claim: ObjectKey, revision: Revision) -> None:
        if claim not in self._counted:
            self._counted.add(claim)
            self._claimed_since.append(revision)

    def _end(self, key: ObjectKey, now: Moment) -> None:
        spans = self.lanes.get(key, ())
        if spans and spans[-1].end is None:
            spans[-1].end = now


def _up_to(since: Mapping[ObjectKey, Revision], until: Revision | None) -> Sequence[ObjectKey]:
    if until is None:
        return tuple(since)
    return tuple(key for key, revision in since.items() if revision <= until)


def begin_of_last(lane: Sequence[Span]) -> Moment:
    """The begin of the last object of a name: a deleted one leaves a gap, or an end."""
    begin = lane[-1].begin
    for span in reversed(lane[:-1]):
        if span.end != begin:
            break
        begin = span.begin
    return begin


def up_to(spans: Iterable[Span], until: Revision) -> list[Span]:
    """The spans as they were at a revision, without later spans and later ends."""
    return [
        span
        if span.end is None or span.end[0] <= until
        else Span(span.state, span.label, span.begin)
        for span in spans
        if span.begin[0] <= until
    ]
