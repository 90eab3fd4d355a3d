"""The comparison of two histories: the differences, where each begins, which follows from which.

`compare` is pure and CPU-intensive. It is a generator that yields after each step, so that a server
can answer other requests.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from app.analysis.diff import (
    causes,
    classes,
    divergences,
    endings,
    inputs,
    matching,
    refusals,
    testimony,
)
from app.analysis.diff.causes import Known, Linking, PodDifference, Precedence
from app.analysis.diff.classes import Class, PodAspect
from app.analysis.diff.courses import BY_PREEMPTION, Course, Courses
from app.analysis.diff.divergences import DecidedPlacement, Holds
from app.analysis.diff.endings import Border
from app.analysis.diff.matching import Pair
from app.analysis.diff.partings import ByObject, ByPod, Cause, Parting
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import DiffBounds, Side, switches_of
from app.analysis.diff.testimony import Query, Testimony
from app.analysis.explain.pods import Steps
from app.domain.log import Revision
from app.domain.values import api_resources


def compare(a: Side, b: Side, bounds: DiffBounds = DiffBounds()) -> Steps[DiffReport]:
    """Finds the differences of two sides, decision by decision."""
    sides = {"a": a, "b": b}
    border = endings.border_of(a, b, bounds.within)
    if border is not None:
        sides[border.longer] = border.extended(sides[border.longer])
    courses = {}
    for name, side in sides.items():
        courses[name] = Courses(side)
        yield
    pairs = matching.pairs(courses["a"].all(), courses["b"].all())
    changes = inputs.changes(sides["a"], sides["b"], within=bounds.within)
    yield
    differences = _differences(pairs, bounds)
    after: Sequence[str] = ()
    if border is not None:
        changes = [change for change in changes if not border.is_change_after(change)]
        differences, after = _compared(differences, border)
    known = Known(
        changes={change.key: change for change in changes},
        switches=switched(a, b),
        within=bounds.within,
        refused=refusals.refused(sides, changes, bounds.within),
        are_recordings=_are_recordings(a, b, courses),
    )
    yield
    open_differences = [
        difference
        for difference in differences
        if difference.parted.aspect is not PodAspect.END
        and difference.pair.a is not None
        and difference.pair.b is not None
        and _is_open(difference, known)
    ][: bounds.explained_max]
    testimonies: dict[str, Mapping[int, Testimony]] = {}
    for name, side in sides.items():
        times = [side.instant(event.stamp.time) for event in side.events]
        line = _TimedSide(
            side=side, times=times, placed=_placements(differences, name), within=bounds.within
        )
        queries = [
            query for difference in open_differences for query in _queries(difference, name, line)
        ]
        testimonies[name] = yield from testimony.collect(side, queries, bounds)
    for name, own in testimonies.items():
        # The uids of two control planes have nothing to do with each other.
        common = matching.names(pairs, name)
        testimonies[name] = {number: one.renamed(common) for number, one in own.items()}
    linking = Linking(differences, known)
    for difference in open_differences:
        difference.parting = _explained(difference, testimonies, courses, linking, known)
    linking.link()
    for difference in differences:
        if difference.is_about_words:
            # Both sides did the same: they do not diverge, even if their states differ.
            difference.parting = None
    counts = Counter(each.value for difference in differences for each in difference.classes[:1])
    return DiffReport(
        a=a,
        b=b,
        same=len(pairs) - len(differences) - len(after),
        counts=counts,
        switches=known.switches,
        changes=tuple(changes),
        differences=tuple(differences),
        unexplained=causes.unexplained(differences),
        refused=known.refused,
        listed_max=bounds.listed_max,
        after_end=endings.after_end(a, b, border, after, is_about_pods=True),
    )


def differing(a: Side, b: Side, bounds: DiffBounds = DiffBounds()) -> Steps[list[Pair]]:
    """The pods whose outcomes differ in more than messages, without causes."""
    courses = []
    for side in (a, b):
        courses.append(Courses(side))
        yield
    pairs = matching.pairs(courses[0].all(), courses[1].all())
    fared = [(pair, classes.classes_of(pair, bounds.within)) for pair in pairs]
    return [pair for pair, fate in fared if fate and fate != (Class.SAID,)]


def switched(a: Side, b: Side) -> tuple[str, ...]:
    """The release, gates and quirks that differ, as text."""
    left, right = switches_of(a), switches_of(b)
    return tuple(
        f"{name}: {left.get(name, 'none')} → {right.get(name, 'none')}"
        for name in {**left, **right}
        if left.get(name) != right.get(name)
    )


def _are_recordings(a: Side, b: Side, courses: Mapping[str, Courses]) -> bool:
    """Whether both sides are recordings of their own, without any decision of redra."""
    are_decided_elsewhere = a.was_decided_elsewhere and b.was_decided_elsewhere
    shows_none = not any(each.shows_decisions for each in courses.values())
    return are_decided_elsewhere and shows_none and not a.common


def _is_open(difference: PodDifference, known: Known) -> bool:
    """Whether a change of the pod itself leaves open why its course diverged."""
    change = causes.own_change(known, difference.pair, difference.parted.time)
    return change is None or causes.may_follow(difference, change)


def _differences(pairs: Sequence[Pair], bounds: DiffBounds) -> list[PodDifference]:
    differences = []
    for pair in pairs:
        difference_classes = classes.classes_of(pair, bounds.within)
        if difference_classes:
            parted = classes.parted(pair, bounds.within)
            differences.append(PodDifference(pair=pair, classes=difference_classes, parted=parted))
    return sorted(differences, key=_order)


def _compared(
    differences: Sequence[PodDifference], border: Border
) -> tuple[list[PodDifference], list[str]]:
    """The differences up to the end of the shorter recording, and the pods of later ones."""
    kept, late = [], []
    for each in differences:
        if border.is_after(each.pair, each.classes, each.parted):
            late.append(f"pods/{each.pair.name}")
        else:
            kept.append(each)
    return kept, late


def _order(difference: PodDifference) -> tuple[int, int, int]:
    """The sort key: the time, and at one instant the order of the log."""
    parted = difference.parted
    course = difference.pair.side(parted.side)
    revision = 0
    if course is not None:
        match parted.aspect:
            case PodAspect.PLACEMENT if course.placed is not None:
                revision = course.placed.decided
            case PodAspect.EVICTION if course.evicted is not None:
                revision = course.evicted.at.revision
            case _:
                revision = course.created.revision
    return (parted.time, revision, difference.pair.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TimedSide:
    """One side by time: the instants of its events, and the placements that differ.

    `placed` are pairs of an instant and the revision as of which the placement was decided.
    """

    side: Side
    times: Sequence[int]
    placed: Sequence[tuple[int, Revision]]
    within: int

    def as_of(self, course: Course, aspect: PodAspect, time: int) -> tuple[Revision, Revision]:
        """The revisions of this side when the courses diverged, the earlier one first.

        Both are that of the pod's own eviction or placement, if it had one then, or of a choice
        whose binding failed later. If it was refused then, the first is that of its attempt, and
        the second is after everything that counts as the same instant: the scheduler counts devices
        that it has promised to other pods, and the log has those writes later. Otherwise, the first
        is before this side's placements at that instant that the other side made elsewhere or
        never; it also shows what those depend on. The second shows that those placements were in
        the way.
        """
        own: list[tuple[int, Revision, bool]] = []
        if aspect is PodAspect.EVICTION:
            if course.evicted is not None:
                at = course.evicted.at
                own.append((at.time, Revision(at.revision - 1), False))
        else:
            own += [(each.at.time, each.decided, True) for each in course.refusals]
            if course.placed is not None:
                own.append((course.placed.at.time, course.placed.decided, False))
            elif aspect is PodAspect.MESSAGES:
                # An attempt whose binding failed chose devices before its claim was written.
                chosen = [(each.time, Revision(each.revision - 1)) for each in course.reserved]
                own += [(at, decided, False) for at, decided in chosen]
        near = [each for each in own if abs(each[0] - time) <= self.within]
        if near:
            attempt, revision, is_refusal = min(near, key=lambda each: abs(each[0] - time))
            after = self._at(attempt + self.within) if is_refusal else revision
            return revision, max(revision, after)
        before = [decided for at, decided in self.placed if time - self.within <= at <= time]
        return min((self._at(time), *before)), self._at(time + self.within)

    def _at(self, time: int) -> Revision:
        """The last revision up to an instant."""
        place = bisect_right(self.times, time)
        return self.side.events[place - 1].revision if place else self.side.common


def _placements(differences: Sequence[PodDifference], name: str) -> list[tuple[int, Revision]]:
    courses = [difference.pair.side(name) for difference in differences]
    return [
        (course.placed.at.time, course.placed.decided)
        for course in courses
        if course is not None and course.placed is not None
    ]


def _numbers(difference: PodDifference) -> tuple[int, int]:
    """The numbers of the queries about a difference: the earlier moment, and the later one."""
    number = 2 * difference.pair.number
    return number, number + 1


def _queries(difference: PodDifference, name: str, line: _TimedSide) -> Iterator[Query]:
    """The queries to one side about a difference."""
    pair, parted = difference.pair, difference.parted
    course = pair.side(name)
    first = pair.side(parted.side)
    assert course is not None, "only pods of both sides are asked about"
    assert first is not None, "only pods of both sides are asked about"
    both = (first, pair.side("b" if parted.side == "a" else "a"))
    placed = [each.placed for each in both if each is not None and each.placed is not None]
    early, late = line.as_of(course, parted.aspect, parted.time)
    query = Query(
        number=_numbers(difference)[0],
        revision=early,
        pod=course.key,
        nodes=tuple(dict.fromkeys(each.node for each in placed)),
        devices=frozenset(one.device for each in placed for one in each.devices),
        asks_nodes=parted.aspect is not PodAspect.EVICTION,
    )
    yield query
    if late != early:
        yield replace(query, number=_numbers(difference)[1], revision=late)


def _explained(
    difference: PodDifference,
    testimonies: Mapping[str, Mapping[int, Testimony]],
    courses: Mapping[str, Courses],
    linking: Linking,
    known: Known,
) -> Parting:
    """The parting at the earlier moment, or at the later one if only that has a valid cause."""
    early, late = _numbers(difference)
    moments = [{name: answers[early] for name, answers in testimonies.items()}]
    if any(late in answers for answers in testimonies.values()):
        moments.append({n: each.get(late, each[early]) for n, each in testimonies.items()})
    candidates = []
    # If one side did nothing then, its possible placements are looked at at the later moment, too.
    is_alone = len(moments) > 1 and difference.parted.aspect is PodAspect.PLACEMENT
    for precedence in Precedence:
        holds = partial(linking.holds, difference, precedence=precedence)
        for instants in moments if is_alone else ():
            parting = _parting(difference, instants, courses, holds, known, is_alone=True)
            if parting.causes:
                return parting
        for instants in moments:
            candidates.append(_parting(difference, instants, courses, holds, known))
            if any(map(holds, candidates[-1].causes)):
                return candidates[-1]
        if difference.parted.aspect is PodAspect.MESSAGES:
            by_message = [divergences.of_message(each, holds) for each in moments]
            if shown := next((each for each in by_message if each.causes), None):
                return shown
        on_way = _on_their_way({name: each.revision for name, each in moments[0].items()}, courses)
        if any(map(holds, on_way.causes)):
            return on_way
    return next((parting for parting in candidates if parting.causes), candidates[-1])


def _parting(
    difference: PodDifference,
    testimonies: Mapping[str, Testimony],
    courses: Mapping[str, Courses],
    holds: Holds,
    known: Known,
    *,
    is_alone: bool = False,
) -> Parting:
    """The parting at a moment; `is_alone`: only the first side placed the pod then."""
    pair, parted = difference.pair, difference.parted
    first = pair.side(parted.side)
    other = pair.side("b" if parted.side == "a" else "a")
    assert first is not None, "only pods of both sides are asked about"
    assert other is not None, "only pods of both sides are asked about"
    placed = [each.placed for each in (first, other) if each.placed is not None]
    if parted.aspect is PodAspect.EVICTION:
        assert first.evicted is not None, "it was evicted on the side that was first"
        place = (first.key.namespace, first.key.name)
        preemptor = courses[parted.side].preemptors.get(place)
        if first.evicted.reason == BY_PREEMPTION and preemptor is not None:
            return _preempted(preemptor, first, parted.side, courses, known)
        devices = [one.device for each in placed for one in each.devices]
        node = placed[0].node if placed else ""
        return divergences.of_eviction(testimonies, list(dict.fromkeys(devices)), node)
    nodes = list(dict.fromkeys(each.node for each in placed))
    starts = (pair.a and pair.a.placed, pair.b and pair.b.placed)
    return divergences.of_placement(
        testimonies,
        nodes,
        (
            starts[0].start if starts[0] else None,
            starts[1].start if starts[1] else None,
        ),
        {
            side: course.placed.node
            for side, course in (("a", pair.a), ("b", pair.b))
            if course is not None and course.placed is not None
        },
        {
            side: _decided_placement(course, courses[side], testimonies[side].revision)
            for side, course in (("a", pair.a), ("b", pair.b))
            if course is not None
        },
        holds,
        only=parted.side if is_alone else "",
    )


def _decided_placement(course: Course, courses: Courses, revision: Revision) -> DecidedPlacement:
    """The placement of a pod that was decided as of a revision, and what was under way by then."""
    placed = course.placed
    if placed is not None and placed.decided != revision:
        placed = None
    return DecidedPlacement(
        node="" if placed is None else placed.node,
        devices=frozenset(() if placed is None else (each.device for each in placed.devices)),
        on_way={
            each.device: other.uid
            for other in courses.all()
            if other.placed is not None and other is not course
            if other.placed.decided <= revision < other.placed.at.revision
            for each in other.placed.devices
        },
    )


def _on_their_way(revisions: Mapping[str, Revision], courses: Mapping[str, Courses]) -> Parting:
    """The parting of a pod that meets pods whose bindings are under way on one side only.

    The scheduler counts their node and devices as in use, and the log has these writes later. By
    then both sides may have them, so that their states show no difference.
    """
    on_way = {
        name: {
            (course.placed.node, course.placed.devices): course.uid
            for course in courses[name].all()
            if course.placed is not None
            if course.placed.decided <= revision < course.placed.at.revision
        }
        for name, revision in revisions.items()
    }
    alone = [
        ByPod(name, uid)
        for name, other in (("b", "a"), ("a", "b"))
        for place, uid in on_way[name].items()
        if place not in on_way[other]
    ]
    return Parting(causes=tuple(alone))


def _preempted(
    place: tuple[str, str],
    victim: Course,
    side: str,
    courses: Mapping[str, Courses],
    known: Known,
) -> Parting:
    """The parting of a pod that was evicted for another pod.

    Which pods are evicted for it follows from when it came, from what else is on the node, and from
    the budgets of the pods there.
    """
    text = f"evicted for {'/'.join(place)}"
    assert victim.evicted is not None, "it was evicted for another pod"
    causes: list[Cause] = []
    for course in courses[side].all():
        if (course.key.namespace, course.key.name) == place:
            causes += (ByPod(side, course.uid), ByObject(course.key))
    node = "" if victim.placed is None else victim.placed.node
    namespaces = {victim.key.namespace}
    for name in ("a", "b"):
        for other in courses[name].all():
            if _is_on(other, node, victim.evicted.at.time) and other.uid != victim.uid:
                causes.append(ByPod(name, other.uid))
                namespaces.add(other.key.namespace)
    causes += (
        ByObject(key)
        for key in known.changes
        if key[:2] == api_resources.POD_DISRUPTION_BUDGETS and key.namespace in namespaces
    )
    return Parting(
        a=text if side == "a" else "", b=text if side == "b" else "", causes=tuple(causes)
    )


def _is_on(course: Course, node: str, time: int) -> bool:
    """Whether a pod is on a node shortly before an instant."""
    placed, ended = course.placed, course.ended
    is_placed = placed is not None and placed.node == node and placed.at.time <= time
    return is_placed and (ended is None or ended.time >= time)
