"""The forms of a comparison's answer as JSON: for programs, for terminals, and for browsers."""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from app.analysis.diff import forks, text
from app.analysis.diff.classes import Parted, PodAspect
from app.analysis.diff.courses import Course, Moment
from app.analysis.diff.outcomes import EndEntry, EndReport
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import Side
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject

ENTRIES_MAX = 200
"""Differences at the end that a browser gets; the report has all."""


class DiffForm(StrEnum):
    """The whole report, the parts of a page of text, the content of the page Compare, or of a fork.

    The last is a `ComparedFork`, for decisions alone.
    """

    REPORT = "report"
    TEXT = "text"
    PAGE = "page"
    FORK = "fork"


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """One side of the first difference: its pod, and the revision at which it is asked.

    The name is empty when the side has no such pod.
    """

    is_b: bool
    namespace: str = ""
    name: str = ""
    outcome: str = ""
    node: str = ""
    revision: Revision = Revision(0)

    @property
    def key(self) -> ObjectKey:
        """The pod."""
        return ObjectKey(*api_resources.PODS, self.namespace, self.name)


class ComparedPage(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the page Compare; `reasons` are in the form of `Reason.to_json`.

    `first` are both sides of the first difference. `entries` are differences at the end, of which
    `omitted` are left out.
    """

    is_same: bool
    a: str
    b: str
    head: str
    notes: list[str]
    reasons: list[JsonObject] = []
    first: list[Witness] = []
    entries: list[EndEntry] = []
    omitted: int = 0


def of(report: DiffReport | EndReport, form: DiffForm) -> JsonObject:
    """The answer in one of its forms."""
    match form:
        case DiffForm.REPORT:
            return report.to_json()
        case DiffForm.TEXT:
            return text.page_json(report)
        case DiffForm.PAGE:
            shown: JsonObject = msgspec.to_builtins(page_of(report))
            return shown
        case DiffForm.FORK:
            assert isinstance(report, DiffReport), "decisions are compared"
            compared: JsonObject = msgspec.to_builtins(forks.compared_of(report))
            return compared


def page_of(report: DiffReport | EndReport) -> ComparedPage:
    """The content of the page Compare."""
    head, names = text.head_of(report), (report.a.name, report.b.name)
    if isinstance(report, EndReport):
        notes = [f"{report.same} are the same, {len(report.entries)} differ"]
        return ComparedPage(
            is_same=report.is_same,
            a=names[0],
            b=names[1],
            head=head,
            notes=[*notes, *text.after_end_notes(report)],
            entries=list(report.entries[:ENTRIES_MAX]),
            omitted=max(0, len(report.entries) - ENTRIES_MAX),
        )
    return ComparedPage(
        is_same=report.is_same,
        a=names[0],
        b=names[1],
        head=head,
        notes=text.notes_of(report),
        reasons=[reason.to_json() for reason in text.reasons_of(report)],
        first=list(_witnesses(report)),
    )


def _witnesses(report: DiffReport) -> Iterator[Witness]:
    """The first pod that differs, on both sides; a pod that both sides have is preferred.

    Empty when no pod differs.
    """
    firsts = [differences[0] for _, differences in report.roots()]
    if not firsts:
        return
    pairs = (each for each in firsts if each.pair.a is not None and each.pair.b is not None)
    first = next(pairs, firsts[0])
    for course, side in ((first.pair.a, report.a), (first.pair.b, report.b)):
        is_b = side is report.b
        if course is None:
            yield Witness(is_b=is_b)
            continue
        yield Witness(
            is_b=is_b,
            namespace=course.key.namespace,
            name=course.key.name,
            outcome=course.outcome,
            node="" if course.placed is None else course.placed.node,
            revision=_moment(course, side, first.parted),
        )


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
