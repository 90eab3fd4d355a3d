"""The causes of differences: root causes first, each followed by its consequences.

A cause is a change from outside, a different switch, the end of a pod that an outsider wrote, or an
earlier difference. Each difference is placed under its first cause that holds. The path up to the
root is its chain.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from itertools import groupby
from types import MappingProxyType

from app.analysis.diff import matching, orders
from app.analysis.diff.classes import Class, Parted, PodAspect
from app.analysis.diff.courses import Course
from app.analysis.diff.inputs import DELETED, InputDifference
from app.analysis.diff.matching import Pair
from app.analysis.diff.partings import ByObject, ByOrder, ByPod, BySettings, Cause, Parting
from app.analysis.diff.refusals import RefusedCreation
from app.analysis.replay.classes import UNPROVED, Judgement
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject

SWITCH = "switch --"
"""The prefix of a reason that is a switch of the question."""


class Precedence(Enum):
    """The order in which a cause must have shown: strictly before, or at the same instant.

    Two sides decide within some time of each other at one instant, so of two differences of one
    instant either may follow from the other. That is considered where nothing earlier is a cause.
    """

    BEFORE = 0
    SAME_INSTANT = 1


class RootKind(StrEnum):
    """The kind of a root."""

    SETTINGS = "settings"
    CHANGE = "change"
    END = "end"
    RUN = "run"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A root cause, and its position in the order of time."""

    kind: RootKind
    name: str
    text: str = ""
    since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The settings that runs have shown to be the cause of a difference, as text.

    With all of these as on the first side, the pod has the outcome of that side. `is_minimal`: not
    with one of them left out. `is_smallest`: where there are several, each setting was tried alone
    and was not sufficient. Without settings the cause is unknown: even with all of them as on the
    first side, the outcome differs.
    """

    settings: tuple[str, ...]
    is_minimal: bool = True
    is_smallest: bool = True

    def to_json(self) -> JsonObject:
        """The proof as JSON for programs."""
        return {
            "settings": list(self.settings),
            "minimal": self.is_minimal,
            "smallest": self.is_smallest,
        }

    @property
    def text(self) -> str:
        """The proof in a few words."""
        if not self.settings:
            return "something unknown: it occurs with all the old settings, too"
        listed = " and ".join(self.settings)
        if not self.is_minimal:
            return f"some of: {'; '.join(self.settings)}"
        if len(self.settings) > 1:
            return f"{listed}, together"
        return listed


@dataclass(slots=True, kw_only=True, eq=False)
class PodDifference:
    """One pod that differs: its classes, where the sides diverge, and why.

    `roots` are the root causes among its causes, `parents` the other differences among them, each
    in order of precedence. `proof` is the result of runs, if any were made.
    """

    pair: Pair
    classes: tuple[Class, ...]
    parted: Parted
    parting: Parting | None = None
    roots: list[Root] = field(default_factory=list)
    parents: list["PodDifference"] = field(default_factory=list, repr=False)
    below: list["PodDifference"] = field(default_factory=list, repr=False)
    proof: Proof | None = None

    @property
    def is_about_words(self) -> bool:
        """Whether the pod has the same outcome and only messages about it differ."""
        return self.classes == (Class.SAID,)

    @property
    def chain(self) -> list["PodDifference"]:
        """The differences from which this one follows, the nearest first."""
        links: list[PodDifference] = []
        here = self
        while not here.roots and here.parents:
            here = here.parents[0]
            links.append(here)
        return links

    @property
    def root(self) -> Root:
        """The root at the end of its chain."""
        last = (self, *self.chain)[-1]
        return last.roots[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The possible causes: changes from outside, and different switches.

    `refused` are objects that one side refuses because of one of the changes. `are_recordings` is
    whether both sides were decided elsewhere, so that no decision is in their logs.
    """

    changes: Mapping[ObjectKey, InputDifference]
    switches: tuple[str, ...]
    within: int
    refused: Mapping[ObjectKey, RefusedCreation] = field(default_factory=dict)
    are_recordings: bool = False

    def root(self, change: InputDifference) -> Root:
        """A change as a root; what is refused on a side is missing for what refuses it."""
        refusal = self.refused.get(change.key)
        return root_of(change if refusal is None else self.changes.get(refusal.by, change))

    def refusal(self, pair: Pair) -> RefusedCreation | None:
        """The refusal of a pod that one side lacks, or of a claim that is made for it."""
        courses = [each for each in (pair.a, pair.b) if each is not None]
        if len(courses) == 1:
            return self.refused.get(courses[0].key)
        owners = {course.uid for course in courses}
        return next((each for each in self.refused.values() if each.owner in owners), None)


def may_follow(difference: PodDifference, change: InputDifference) -> bool:
    """Whether the change of a pod itself may follow from the difference.

    Nobody deletes a pod that was evicted: a deletion that only the other side has is the cause only
    if nothing else is.
    """
    is_eviction = difference.parted.aspect is PodAspect.EVICTION
    return is_eviction and _deleted_on(change) not in ("", difference.parted.side)


def own_change(known: Known, pair: Pair, time: int | None = None) -> InputDifference | None:
    """The change of the pod itself, if it came before its course diverged."""
    for course in (pair.a, pair.b):
        if course is None:
            continue
        change = known.changes.get(course.key)
        if change is not None and (time is None or change.since <= time + known.within):
            return change
    return None


class Linking:
    """The differences, which are in the order of time, and lookups from causes to them."""

    def __init__(self, differences: Sequence[PodDifference], known: Known) -> None:
        pairs = [difference.pair for difference in differences]
        common = {pair.common_name: pair for pair in pairs}
        self._places = {side: matching.by_uid(pairs, side) | common for side in ("a", "b")}
        self._by_pair = {difference.pair: difference for difference in differences}
        self._differences = differences
        self._known = known
        self._linked: set[PodDifference] = set()

    def holds(
        self,
        difference: PodDifference,
        cause: Cause,
        *,
        precedence: Precedence = Precedence.BEFORE,
    ) -> bool:
        """Whether a cause differs between the sides, and did so when the courses diverged."""
        return next(self._resolved(difference, (cause,), precedence), None) is not None

    def link(self) -> None:
        """Fills in the roots and parents of all differences.

        Differences that diverge at one time are linked after those from which they follow. Those
        that wait for each other in a circle are taken in their order. Those without a cause by then
        are linked last, to differences of the same instant.
        """
        for _, together in groupby(self._differences, key=lambda each: each.parted.time):
            waiting = list(together)
            while waiting:
                ready = [each for each in waiting if self._is_ready(each)] or waiting[:1]
                for difference in ready:
                    self._link(difference)
                waiting = [each for each in waiting if each not in ready]
        for difference in self._differences:
            if not difference.roots and not difference.parents:
                self._link_late(difference)
        for difference in self._differences:
            if not difference.roots:
                difference.parents[0].below.append(difference)

    def _is_ready(self, difference: PodDifference) -> bool:
        """Whether the first cause of the difference is linked."""
        first = next(iter(self._causes(difference)), None)
        return not isinstance(first, PodDifference) or first in self._linked

    def _link(self, difference: PodDifference) -> None:
        """Sets the roots of a difference, or the differences from which it follows."""
        self._follow(difference, self._causes(difference))
        self._linked.add(difference)

    def _link_late(self, difference: PodDifference) -> None:
        """Links a difference without an earlier cause: to one of the same instant, if any."""
        causes = () if difference.parting is None else difference.parting.causes
        for precedence in Precedence:
            self._follow(difference, self._resolved(difference, causes, precedence))
            if difference.roots or difference.parents:
                return
        if difference.pair.is_made_apart(self._known.within):
            self._follow(difference, self._of_existence(difference))
        if not difference.roots and not difference.parents:
            difference.roots.append(self._of_order(difference) or _fallback(self._known))

    def _of_order(self, difference: PodDifference) -> Root | None:
        """The order of two attempts, if it is another one in each of two recordings."""
        if not self._known.are_recordings or difference.parted.aspect is not PodAspect.PLACEMENT:
            return None
        pairs = (each.pair for each in self._differences)
        text = orders.turned(difference.pair, pairs, difference.parted.time, self._known.within)
        return Root(kind=RootKind.RUN, name=orders.NAME, text=text) if text else None

    def _follow(self, difference: PodDifference, causes: Iterable[Root | PodDifference]) -> None:
        """Sets the first root among causes, or the differences among them."""
        for cause in causes:
            match cause:
                case Root():
                    if not difference.parents:
                        difference.roots.append(cause)
                        break
                case PodDifference(is_about_words=True) if not difference.is_about_words:
                    # A message moves no pod, but the root of the message may.
                    has_root = bool((cause, *cause.chain)[-1].roots)
                    if cause in self._linked and has_root and not difference.parents:
                        difference.roots.append(cause.root)
                        break
                case PodDifference():
                    is_new = cause in self._linked and cause not in difference.parents
                    if is_new and difference not in cause.chain:
                        difference.parents.append(cause)

    def _causes(self, difference: PodDifference) -> Iterator[Root | PodDifference]:
        """The causes of the difference that existed by then, in order of precedence."""
        time = difference.parted.time
        if difference.parted.aspect in (PodAspect.END, PodAspect.EXISTENCE):
            removals = list(_removals(difference, self._known))
            yield from removals
            if removals:
                return
        refusal = self._known.refusal(difference.pair)
        if refusal is not None:
            yield from self._of_refusal(difference, refusal)
            return
        change = own_change(self._known, difference.pair, time)
        if change is not None and not may_follow(difference, change):
            yield self._known.root(change)
            return
        if difference.parted.aspect is PodAspect.END:
            ended = difference.pair.side(difference.parted.side)
            if ended is not None and ended.is_ended_by_owner:
                # The state of its other pods says which of them a controller deletes.
                yield from self._of_existence(difference)
            yield from _of_end(difference, self._known)
            return
        if difference.parted.aspect is PodAspect.EXISTENCE:
            yield from self._of_existence(difference)
        parting = difference.parting
        yield from self._resolved(difference, () if parting is None else parting.causes)
        if change is not None:
            yield self._known.root(change)

    def _of_refusal(
        self, difference: PodDifference, refusal: RefusedCreation
    ) -> Iterator[Root | PodDifference]:
        """The change by which one side refuses the pod, or the pod that uses its quota up there."""
        change = self._known.changes.get(refusal.by)
        if change is not None:
            yield root_of(change)
        for other in self._differences:
            course = other.pair.side(refusal.side)
            is_user = course is not None and course.key == refusal.by and other is not difference
            if is_user and change is None:
                yield other

    def _resolved(
        self,
        difference: PodDifference,
        causes: Iterable[Cause],
        precedence: Precedence = Precedence.BEFORE,
    ) -> Iterator[Root | PodDifference]:
        """The roots and other differences that are meant by causes; without those that fail."""
        time = difference.parted.time
        latest = time + (self._known.within if precedence is Precedence.SAME_INSTANT else 0)
        for cause in causes:
            other: PodDifference | None = None
            match cause:
                case ByObject(key=key) if key in self._known.changes:
                    change = self._known.changes[key]
                    if change.since <= time + self._known.within:
                        yield self._known.root(change)
                case BySettings() if self._known.switches:
                    yield settings_root(self._known.switches)
                case ByOrder():
                    other = self._differences[0]
                case ByPod(side=side, uid=uid):
                    pair = self._places[side].get(uid)
                    other = None if pair is None else self._by_pair[pair]
                case _:
                    pass
            if other is not None and other is not difference and other.parted.time <= latest:
                yield other

    def _of_existence(self, difference: PodDifference) -> Iterator[Root | PodDifference]:
        """The cause of a pod's creation on one side only, or then: its owner, or another pod."""
        for cause in _of_existence(difference, self._differences, self._known):
            if isinstance(cause, Root) or cause.parted.time <= difference.parted.time:
                yield cause


def prove(
    difference: PodDifference,
    proof: Proof,
    made_by: Mapping[str, frozenset[str]] = MappingProxyType({}),
) -> None:
    """Notes the result of runs; general settings as a root are replaced by the proved ones.

    `made_by` has the settings that make changes of objects, by object. A change that none of the
    proved settings makes is not the root: with these settings as they were the change is still
    made, and the pod has the outcome of the first side.
    """
    difference.proof = proof
    kind = RootKind.SETTINGS if proof.settings else RootKind.UNKNOWN
    name = "; ".join(proof.settings) or kind.value
    shown = Root(kind=kind, name=name, text=proof.text)
    wanted = frozenset(proof.settings if proof.is_minimal else ())
    roots = [
        shown
        if root.kind is RootKind.SETTINGS
        or (wanted and not wanted & made_by.get(root.name, wanted))
        else root
        for root in difference.roots
    ]
    difference.roots = list(dict.fromkeys(roots))


def judge(differences: Iterable[PodDifference], judged: Mapping[str, Judgement]) -> None:
    """Replaces otherwise unexplained roots by the result of runs, by the uid of the pod.

    This is for a history compared with itself decided again, which has races and may be of another
    control plane.
    """
    for difference in differences:
        course = difference.pair.a or difference.pair.b
        judgement = None if course is None else judged.get(course.uid)
        if judgement is None or judgement.reason in UNPROVED:
            continue
        difference.roots = [_shown(judgement, root) for root in difference.roots]


def _shown(judgement: Judgement, root: Root) -> Root:
    """The result of runs in place of a root that is general settings or unknown."""
    if root.kind not in (RootKind.UNKNOWN, RootKind.SETTINGS):
        return root
    if root.kind is RootKind.SETTINGS and judgement.reason.startswith(SWITCH):
        text = f"{judgement.reason}: {judgement.detail}"
        return replace(root, text=text)
    return Root(kind=RootKind.RUN, name=judgement.reason, text=judgement.detail)


def unexplained(differences: Iterable[PodDifference]) -> int:
    """The number of differences without a known cause."""
    return sum(each.root.kind is RootKind.UNKNOWN for each in differences)


def root_of(change: InputDifference) -> Root:
    """A change from outside as a root."""
    return Root(kind=RootKind.CHANGE, name=str(change.key), text=change.text, since=change.since)


def settings_root(switches: Iterable[str]) -> Root:
    """Different switches as a root."""
    return Root(kind=RootKind.SETTINGS, name="settings", text="; ".join(switches))


def _of_existence(
    difference: PodDifference, differences: Sequence[PodDifference], known: Known
) -> Iterator[Root | PodDifference]:
    """The cause of a pod created on one side only: its owner, or a pod that it replaces."""
    course = difference.pair.a or difference.pair.b
    assert course is not None, "a pair has at least one side"
    if course.owner is None:
        return
    yield from map(root_of, _above(course, known))
    for other in differences:
        mine = other.pair.a or other.pair.b
        if other is difference or mine is None or mine.owner is None:
            continue
        same = (mine.key.namespace, mine.owner.kind, mine.owner.name)
        if same == (course.key.namespace, course.owner.kind, course.owner.name):
            yield other


def _removals(difference: PodDifference, known: Known) -> Iterator[Root]:
    """The deletion of the namespace, or of an owner, with which a pod goes or cannot be made."""
    pair = difference.pair
    course = pair.a or pair.b
    assert course is not None, "a pair has at least one side"
    place = ObjectKey(*api_resources.NAMESPACES, "", course.key.namespace)
    above = [place]
    if difference.parted.aspect is PodAspect.END:
        above += (change.key for change in _above(course, known))
    for key in above:
        change = known.changes.get(key)
        if change is None or change.since > difference.parted.time + known.within:
            continue
        side = _deleted_on(change)
        is_missing = pair.a is None or pair.b is None
        if side and (not is_missing or pair.side(side) is None):
            yield root_of(change)


def _deleted_on(change: InputDifference) -> str:
    """The side that deleted an object first, or alone; empty if its writes differ otherwise."""
    there = {
        side: write
        for side, write in (("a", change.a), ("b", change.b))
        if write is not None and write.what == DELETED
    }
    return min(there, key=lambda side: there[side].at.time, default="")


def _above(course: Course, known: Known) -> Iterator[InputDifference]:
    """The changes of objects above a pod that a controller made, by their names."""
    for key, change in known.changes.items():
        is_above = course.key.name.startswith(f"{key.name}-") and key.resource != "pods"
        if course.owner and key.namespace == course.key.namespace and is_above and key.group:
            yield change


def _of_end(difference: PodDifference, known: Known) -> Iterator[Root]:
    """The changes above a pod, whose controllers may have ended it, or its end itself."""
    pair, latest = difference.pair, difference.parted.time + known.within
    course = pair.a or pair.b
    assert course is not None, "a pair has at least one side"
    above = [root_of(each) for each in _above(course, known) if each.since <= latest]
    yield from above
    if above:
        return
    yield Root(
        kind=RootKind.END,
        name=str(course.key),
        text="its end came at another time, or on one side only",
        since=difference.parted.time,
    )


def _fallback(known: Known) -> Root:
    """The root if nothing was found: different switches if any, else unknown."""
    if known.switches:
        return settings_root(known.switches)
    return Root(kind=RootKind.UNKNOWN, name="unknown", text="no cause was found")
