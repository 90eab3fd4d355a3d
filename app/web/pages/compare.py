"""The page of two compared histories: the first difference with reasons, then consequences.

Releases are compared by a rehearsal, which has its own page.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.analysis import profiles
from app.analysis.diff import text
from app.analysis.diff.courses import Course
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


def first_of(report: DiffReport) -> Sequence[tuple[Course | None, Side]]:
    """The first pod that differs, on both sides; a pod that both sides have is preferred.

    Empty when no pod differs.
    """
    pairs = [differences[0].pair for _, differences in report.roots()]
    if not pairs:
        return ()
    pair = next((each for each in pairs if each.a is not None and each.b is not None), pairs[0])
    return ((pair.a, report.a), (pair.b, report.b))


def moment_of(course: Course) -> Revision:
    """The revision observed by the decision that placed the pod, or else last refused it."""
    if course.placed is not None:
        return course.placed.decided
    return course.refusals[-1].decided if course.refusals else course.created.revision


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
