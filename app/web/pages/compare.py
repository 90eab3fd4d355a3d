"""The page of two compared histories: the first difference with reasons, then consequences.

Releases are compared by a rehearsal, which has its own page.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.analysis import profiles
from app.analysis.diff import text
from app.analysis.diff.classes import Parted, PodAspect
from app.analysis.diff.courses import Course, Moment
from app.analysis.diff.outcomes import EndReport
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import Side
from app.analysis.explain.questions import ObjectExplanation
from app.domain.log import Revision
from app.web.frame import Frame, render
from app.web.links import Links
from app.web.pages import why

ENTRIES_MAX = 200
"""Differences at the end that the page lists; the JSON has all."""

WAYS = {
    "decisions": "decision by decision",
    "outcomes": "where pods are at the end",
    "objects": "all objects at the end",
}
OPEN_DEPTH = 1

TREE_REASONS_MAX = 60
"""Reasons of one side that are shown; the page of the object has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The reasons of one side for the first pod that differs; `links` are those of its moment.

    `course` is None when the side has no such pod, `answer` is None without an explanation:
    `problem` says why.
    """

    links: Links
    course: Course | None
    answer: ObjectExplanation | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """One side of the first difference: the pod there, and the revision at which it is asked."""

    side: Side
    course: Course | None = None
    revision: Revision = Revision(0)


def first_of(report: DiffReport) -> Sequence[Witness]:
    """The first pod that differs, on both sides; a pod that both sides have is preferred.

    Empty when no pod differs.
    """
    firsts = [differences[0] for _, differences in report.roots()]
    if not firsts:
        return ()
    pairs = (each for each in firsts if each.pair.a is not None and each.pair.b is not None)
    first = next(pairs, firsts[0])
    sides = ((first.pair.a, report.a), (first.pair.b, report.b))
    return [
        Witness(side=side)
        if course is None
        else Witness(side=side, course=course, revision=_moment(course, side, first.parted))
        for course, side in sides
    ]


def _moment(course: Course, side: Side, parted: Parted) -> Revision:
    """The revision at which the reasons of a side show the difference.

    For a difference in placement, the one observed by the decision that placed the pod, or else
    last refused it. A placed pod that was evicted or ended on one side only is asked at that
    instant on both.
    """
    if course.placed is None:
        return course.refusals[-1].decided if course.refusals else course.created.revision
    own: Moment | None = None
    match parted.aspect:
        case PodAspect.EVICTION:
            own = None if course.evicted is None else course.evicted.at
        case PodAspect.END:
            # The pod may be gone with the event of its end.
            own = course.ended and Moment(Revision(course.ended.revision - 1), course.ended.time)
        case _:
            return course.placed.decided
    if own is not None:
        return own.revision
    until = [each.revision for each in side.events if side.instant(each.stamp.time) <= parted.time]
    return max(until[-1] if until else side.common, course.placed.at.revision)


def page(
    frame: Frame,
    names: Sequence[str],
    parameters: dict[str, str],
    report: DiffReport | EndReport | None,
    first: Sequence[Tree] = (),
) -> bytes:
    """The page. `names` are the histories that can be chosen; `report` is None before a choice.

    `first` holds the reasons of both sides for the first pod that differs.
    """
    reasons: object = ()
    notes: list[str] = []
    if isinstance(report, DiffReport):
        reasons, _ = why.bounded(text.reasons_of(report), why.REASONS_MAX)
        notes = text.notes_of(report)
    elif report is not None:
        notes = [f"{report.same} are the same, {len(report.entries)} differ"]
        notes += text.after_end_notes(report)
    return render(
        "compare.html",
        frame=frame,
        names=names,
        ways=WAYS,
        parameters=parameters,
        report=report,
        head=text.head_of(report) if report is not None else "",
        notes=notes,
        reasons=reasons,
        first=[(letter, each, _reasons(each)) for letter, each in zip("AB", first, strict=False)],
        releases=profiles.names(),
        entries=report.entries[:ENTRIES_MAX] if isinstance(report, EndReport) else (),
        open_depth=OPEN_DEPTH,
        open_size=why.OPEN_SIZE,
        entries_max=ENTRIES_MAX,
    )


def _reasons(tree: Tree) -> object:
    if tree.answer is None:
        return ()
    reasons, _ = why.bounded(tree.answer.reason.children, TREE_REASONS_MAX)
    return reasons
