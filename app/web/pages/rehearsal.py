"""The page of an upgrade rehearsal: the results of another release for the inputs of a history."""

from collections.abc import Sequence

from app.analysis.rehearse import text
from app.analysis.rehearse.report import Rehearsal
from app.web.frame import Frame, render
from app.web.pages import why

OPEN_DEPTH = 1


def page(
    frame: Frame,
    releases: Sequence[str],
    parameters: dict[str, str],
    report: Rehearsal | None,
) -> bytes:
    """The page. `releases` are those that can be chosen; `report` is None before a choice."""
    reasons: object = ()
    if report is not None:
        reasons, _ = why.bounded(text.reasons_of(report), why.REASONS_MAX)
    return render(
        "rehearsal.html",
        frame=frame,
        releases=releases,
        parameters=parameters,
        report=report,
        head=text.subject_of(report) if report is not None else "",
        notes=_grouped(text.notes_of(report)) if report is not None else (),
        reasons=reasons,
        open_depth=OPEN_DEPTH,
        open_size=why.OPEN_SIZE,
    )


def _grouped(lines: Sequence[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each note with the defects that its indented lines list, as number and text."""
    groups: list[tuple[str, list[tuple[str, str]]]] = []
    for line in lines:
        if line.startswith(" ") and groups:
            number, _, words = line.strip().partition(": ")
            groups[-1][1].append((number, words))
        else:
            groups.append((line, []))
    return groups
