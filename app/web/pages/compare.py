"""Two histories compared: root causes first, below each what follows from it."""

from collections.abc import Sequence

from app.analysis.diff import text
from app.analysis.diff.outcomes import EndReport
from app.analysis.diff.report import DiffReport
from app.web.frame import Frame, render
from app.web.pages import why

ENTRIES_MAX = 200
"""Differences at the end that a page lists; the JSON has all of them."""

WAYS = {
    "decisions": "decision by decision",
    "outcomes": "where pods are at the end",
    "objects": "all objects at the end",
}
OPEN_DEPTH = 1


def page(
    frame: Frame,
    names: Sequence[str],
    parameters: dict[str, str],
    report: DiffReport | EndReport | None,
) -> bytes:
    """The page; `names` are the histories that can be chosen, None: nothing is chosen yet."""
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
        entries=report.entries[:ENTRIES_MAX] if isinstance(report, EndReport) else (),
        open_depth=OPEN_DEPTH,
        open_size=why.OPEN_SIZE,
        entries_max=ENTRIES_MAX,
    )
