"""The topics of the changes of states over time, by which few of very many changes are read again.

The topics of a pod's change are the pod and its uid, those of a claim's change the claim, its pods
and their uids. Of each stretch of the log there is an index of its topics, and a list
of what began in it: lanes, and the relations between claims and pods. What claims hold is listed
apart, because a device may be held by all claims that there ever were. So a question about a few
objects neither applies nor decodes the changes of all others.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from app.analysis.keeping.span_changes import DEVICES, ChangeSort, Moment, SpanChange
from app.analysis.keeping.subjects import (
    KeptSubjects,
    SubjectIndex,
    place_of,
    place_of_text,
    sorted_places,
)
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources
from projections.packed import Block, PackedList

PLACES = (api_resources.PODS, api_resources.RESOURCE_CLAIMS, api_resources.NODES, DEVICES)
"""The groups and resources of lanes."""

GAPS = place_of_text("gaps")
"""The topic of all gaps."""

NAMES_PLAIN_MAX = 1_000
"""The latest names of lanes of a resource, which are not compressed."""

NAMES_IN_TEXT = 4_096
"""The names in a text that is searched for parts of them."""

HOLDS_PLAIN_MAX = 1_000
"""The latest changes of devices that claims hold, which are not compressed."""

_POD_LANE = PLACES.index(api_resources.PODS)
_LANES = range(len(PLACES))
_UID, _OWNED, _USED = (len(PLACES) + number for number in range(3))
"""The sorts of what begins beside lanes: the pod of a uid, an owner of a claim, a user of one."""


class KeptTopics(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """The index of a stretch of `count` changes, and what began in it, in order.

    `sorts`, `subjects`, `others` and `revisions` are bytes of arrays: what began, the hash of the
    lane, uid or claim that it is about, that of the pod or uid it relates to, and when. `names` are
    namespaces and names of lanes, whose `others` are numbers of these. `holds` are the changes of
    the devices that claims hold.
    """

    count: int
    index: KeptSubjects
    sorts: bytes
    subjects: bytes
    others: bytes
    revisions: bytes
    names: list[tuple[str, str]]
    holds: list[Block]


class DeviceHold(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The devices that a claim holds from a moment on."""

    namespace: str
    name: str
    devices: tuple[str, ...]
    now: Moment


@dataclass(slots=True)
class _Begun:
    """The beginnings in a stretch, as arrays."""

    sorts: "array[int]" = field(default_factory=lambda: array("B"))
    subjects: "array[int]" = field(default_factory=lambda: array("Q"))
    others: "array[int]" = field(default_factory=lambda: array("Q"))
    revisions: "array[int]" = field(default_factory=lambda: array("q"))
    names: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, kept: KeptTopics) -> "_Begun":
        """The beginnings that were kept."""
        begun = cls(names=kept.names)
        begun.sorts.frombytes(kept.sorts)
        begun.subjects.frombytes(kept.subjects)
        begun.others.frombytes(kept.others)
        begun.revisions.frombytes(kept.revisions)
        return begun

    def add(self, sort: int, subject: int, other: int, revision: int) -> None:
        """Add what began."""
        self.sorts.append(sort)
        self.subjects.append(subject)
        self.others.append(other)
        self.revisions.append(revision)


class StretchTopics:
    """The topics of the changes since the last stretch that was kept."""

    def __init__(self) -> None:
        self.count = 0
        self.begun = _Begun()
        self._numbers: dict[int, list[int]] = {}
        # Hashes take longer to work out than to look up.
        self._of_keys: dict[ObjectKey, int] = {}
        self._of_uids: dict[str, int] = {}
        self._lanes: set[int] = set()
        self._pods: dict[int, int] = {}
        self._owned: dict[int, set[int]] = {}
        self._used: set[tuple[int, int]] = set()
        self.holds = PackedList(DeviceHold, HOLDS_PLAIN_MAX)
        self._holding: dict[ObjectKey, tuple[str, ...]] = {}

    def add(self, change: SpanChange) -> None:
        """Add the next change."""
        match change.sort:
            case ChangeSort.GAP:
                self._note(GAPS)
            case ChangeSort.GONE:
                self._note(self._of_key(change.key))
                if change.key[:2] == api_resources.RESOURCE_CLAIMS:
                    self._hold(change)
            case ChangeSort.NODE:
                self._note(self._of_key(change.key))
                self._begin_lane(change.key, change.now[0])
            case ChangeSort.POD:
                self._add_pod(change)
            case ChangeSort.CLAIM:
                self._add_claim(change)
        self.count += 1

    def numbers(self, topic: int) -> Sequence[int]:
        """The numbers of the changes of a topic."""
        return self._numbers.get(topic, ())

    def kept(self) -> KeptTopics:
        """The part to keep."""
        begun = self.begun
        self.holds.seal()
        return KeptTopics(
            count=self.count,
            index=sorted_places(self._numbers),
            sorts=begun.sorts.tobytes(),
            subjects=begun.subjects.tobytes(),
            others=begun.others.tobytes(),
            revisions=begun.revisions.tobytes(),
            names=begun.names,
            holds=self.holds.blocks(0),
        )

    def _of_key(self, key: ObjectKey) -> int:
        place = self._of_keys.get(key)
        if place is None:
            place = self._of_keys[key] = place_of(key)
        return place

    def _of_uid(self, uid: str) -> int:
        place = self._of_uids.get(uid)
        if place is None:
            place = self._of_uids[uid] = place_of_uid(uid)
        return place

    def _note(self, topic: int) -> None:
        numbers = self._numbers.setdefault(topic, [])
        if not numbers or numbers[-1] != self.count:
            numbers.append(self.count)

    def _begin_lane(self, key: ObjectKey, revision: Revision) -> int:
        lane = self._of_key(key)
        if lane not in self._lanes:
            self._lanes.add(lane)
            names = self.begun.names
            self.begun.add(PLACES.index(key[:2]), lane, len(names), revision)
            names.append((key.namespace, key.name))
        return lane

    def _add_pod(self, change: SpanChange) -> None:
        revision, uid = change.now[0], self._of_uid(change.uid)
        pod = self._of_key(change.key)
        self._note(pod)
        self._note(uid)
        if self._pods.get(uid) != pod:
            self._pods[uid] = pod
            self.begun.add(_UID, uid, pod, revision)
            # A claim with this owner belongs to another pod from its next change on.
            self._owned.pop(uid, None)
        self._begin_lane(change.key, revision)

    def _add_claim(self, change: SpanChange) -> None:
        revision, claim = change.now[0], self._of_key(change.key)
        self._note(claim)
        for uid in map(self._of_uid, change.owners):
            self._note(uid)
            owned = self._owned.setdefault(uid, set())
            if claim not in owned:
                owned.add(claim)
                self.begun.add(_OWNED, claim, uid, revision)
        for pod in map(self._of_key, users_of(change)):
            self._note(pod)
            if (claim, pod) not in self._used:
                self._used.add((claim, pod))
                self.begun.add(_USED, claim, pod, revision)
        self._begin_lane(change.key, revision)
        self._hold(change)

    def _hold(self, change: SpanChange) -> None:
        """Note the devices of a claim if they are others, or if nothing is known of the claim."""
        key = change.key
        if self._holding.get(key) != change.names:
            self._holding[key] = change.names
            self.holds.extend([DeviceHold(key.namespace, key.name, change.names, change.now)])
            for name in change.names:
                self._begin_lane(ObjectKey(*DEVICES, "", name), change.now[0])


def place_of_uid(uid: str) -> int:
    """The topic of a uid."""
    return place_of_text(f"uid {uid}")


def users_of(change: SpanChange) -> Iterator[ObjectKey]:
    """The pods that reserve a claim."""
    for name in change.users:
        yield ObjectKey(*api_resources.PODS, change.key.namespace, name)


class Beginnings:
    """The revisions at which lanes began, and since which claims belong to a pod with a lane."""

    def __init__(self) -> None:
        self._since: Mapping[int, array[int]] = {number: array("q") for number in _LANES}
        self._names: Mapping[int, PackedList[tuple[str, str]]] = {
            number: PackedList(tuple[str, str], NAMES_PLAIN_MAX) for number in _LANES
        }
        # Names in texts, in which a part is found fast; the latest are not in one yet.
        self._texts: Mapping[int, list[str]] = {number: [] for number in _LANES}
        self._claimed_since = array("q")
        self._lanes: set[int] = set()
        self._pods: dict[int, int] = {}
        self._claimed: set[int] = set()
        # Claims of pods without a lane.
        self._early: dict[int, list[int]] = {}

    def take(self, begun: _Begun, first: int = 0) -> int:
        """Take what began, from a number on; returns their number."""
        fresh: dict[int, list[tuple[str, str]]] = {number: [] for number in _LANES}
        for sort, subject, other, revision in zip(
            begun.sorts[first:],
            begun.subjects[first:],
            begun.others[first:],
            begun.revisions[first:],
            strict=True,
        ):
            if sort in _LANES:
                if subject not in self._lanes:
                    self._lanes.add(subject)
                    self._since[sort].append(revision)
                    fresh[sort].append(begun.names[other])
                    if sort == _POD_LANE:
                        for claim in self._early.pop(subject, ()):
                            self._claim(claim, revision)
            elif sort == _UID:
                self._pods[subject] = other
            elif sort == _USED:
                self._relate(subject, other, revision)
            else:
                owner = self._pods.get(other)
                if owner is not None:
                    self._relate(subject, owner, revision)
        for number, each in fresh.items():
            self._add_names(number, each)
        return len(begun.sorts)

    def _add_names(self, number: int, fresh: Sequence[tuple[str, str]]) -> None:
        names, texts = self._names[number], self._texts[number]
        names.extend(fresh)
        while len(names) - len(texts) * NAMES_IN_TEXT >= NAMES_IN_TEXT:
            texts.append(self._text_from(number, len(texts) * NAMES_IN_TEXT))

    def _text_from(self, number: int, first: int) -> str:
        """Names from a number on, at most as many as a text has, one a line."""
        names = self._names[number]
        numbers = range(first, min(first + NAMES_IN_TEXT, len(names)))
        return "\n".join(names[each][1].replace("\n", "\0") for each in numbers)

    def _relate(self, claim: int, pod: int, revision: int) -> None:
        if claim in self._claimed:
            return
        if pod in self._lanes:
            self._claim(claim, revision)
        else:
            self._early.setdefault(pod, []).append(claim)

    def _claim(self, claim: int, revision: int) -> None:
        if claim not in self._claimed:
            self._claimed.add(claim)
            self._claimed_since.append(revision)

    def count_begun(self, place: tuple[str, str], until: Revision) -> int:
        """The number of lanes of a group and resource that had begun up to a revision."""
        return bisect_right(self._since[PLACES.index(place)], until)

    def count_claimed(self, until: Revision) -> int:
        """The number of claims that belonged to a pod with a lane up to a revision."""
        return bisect_right(self._claimed_since, until)

    def key(self, place: tuple[str, str], number: int) -> ObjectKey:
        """The lane with a number, in the order in which they began."""
        return ObjectKey(*place, *self._names[PLACES.index(place)][number])

    def keys(self, place: tuple[str, str]) -> Iterator[ObjectKey]:
        """All lanes of a group and resource, in the order in which they began."""
        for names in self._names[PLACES.index(place)].pieces(0):
            for name in names:
                yield ObjectKey(*place, *name)

    def named(self, place: tuple[str, str], part: str) -> Iterator[ObjectKey]:
        """The lanes of a group and resource with this part in their names, in their order."""
        number = PLACES.index(place)
        count = len(self._names[number])
        texts = (
            *self._texts[number],
            self._text_from(number, count // NAMES_IN_TEXT * NAMES_IN_TEXT),
        )
        for first, text in enumerate(texts):
            line, begin = first * NAMES_IN_TEXT, 0
            at = text.find(part) if line < count else -1
            while at >= 0:
                line += text.count("\n", begin, at)
                key = self.key(place, line)
                # A part may reach from one name into the next.
                if part in key.name:
                    yield key
                begin = text.find("\n", at) + 1
                line += 1
                at = text.find(part, begin) if begin else -1


class TopicIndex:
    """The topics of all changes, of stretches that are kept and since."""

    def __init__(self) -> None:
        # The number of changes of each stretch, its index, and what began until it is worked out.
        self._parts: list[tuple[int, SubjectIndex, _Begun]] = []
        self._holds = PackedList(DeviceHold, HOLDS_PLAIN_MAX)
        self._latest = StretchTopics()
        self._beginnings: Beginnings | None = None
        self._taken = 0

    def add(self, changes: Iterable[SpanChange]) -> None:
        """Add the next changes."""
        for change in changes:
            self._latest.add(change)

    def kept(self) -> KeptTopics:
        """The part to keep of the latest stretch."""
        return self._latest.kept()

    def note_kept(self, kept: KeptTopics) -> None:
        """Let the next stretch begin here."""
        if self._beginnings is not None:
            self._take_latest(self._beginnings)
            self._parts.append((kept.count, SubjectIndex(kept.index), _Begun()))
        else:
            self._parts.append(_part_of(kept))
        self._holds.extend_packed(kept.holds)
        self._latest, self._taken = StretchTopics(), 0

    def put_before(self, kept: Sequence[KeptTopics]) -> None:
        """Take the topics of stretches that are earlier than all others."""
        self._parts = [*map(_part_of, kept), *self._parts]
        holds = PackedList(DeviceHold, HOLDS_PLAIN_MAX)
        for each in kept:
            holds.extend_packed(each.holds)
        holds.extend_packed(self._holds.blocks(0))
        self._holds = holds

    def holds(self, first: int) -> Iterator[list[DeviceHold]]:
        """The changes of the devices that claims hold, from a number on, some at a time."""
        count = len(self._holds)
        if first < count:
            yield from self._holds.pieces(first)
        yield from self._latest.holds.pieces(max(0, first - count))

    def numbers(self, topic: int) -> Iterator[int]:
        """The numbers of the changes of a topic, in order."""
        before = 0
        for count, index, _ in self._parts:
            for number in index.numbers(topic):
                yield before + number
            before += count
        for number in self._latest.numbers(topic):
            yield before + number

    def beginnings_in_steps(self) -> Iterator[None]:
        """Work out what `beginnings` needs; other tasks may run after each step."""
        if self._has_beginnings():
            return
        beginnings, parts = Beginnings(), [*self._parts]
        for _, _, begun in parts:
            beginnings.take(begun)
            yield
            if self._has_beginnings():
                return  # Another caller was faster.
        for _, _, begun in self._parts[len(parts) :]:
            beginnings.take(begun)
        self._beginnings = beginnings
        self._parts = [(count, index, _Begun()) for count, index, _ in self._parts]

    def _has_beginnings(self) -> bool:
        return self._beginnings is not None

    @property
    def beginnings(self) -> Beginnings:
        """The beginnings of lanes, up to the last change."""
        for _ in self.beginnings_in_steps():
            pass
        assert self._beginnings is not None, "it was worked out"
        self._take_latest(self._beginnings)
        return self._beginnings

    def _take_latest(self, beginnings: Beginnings) -> None:
        self._taken = beginnings.take(self._latest.begun, self._taken)


def _part_of(kept: KeptTopics) -> tuple[int, SubjectIndex, _Begun]:
    return kept.count, SubjectIndex(kept.index), _Begun.of(kept)
