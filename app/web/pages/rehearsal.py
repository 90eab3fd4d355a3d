"""The page of an upgrade rehearsal: the results of another release for the inputs of a history."""

from collections.abc import Sequence

from app.analysis.explain.reasons import Reason
from app.domain.values.json_tree import JsonObject
from app.web.frame import Frame, render
from app.web.pages import why

OPEN_DEPTH = 1


def page(
    frame: Frame,
    releases: Sequence[str],
    parameters: dict[str, str],
    report: JsonObject | None,
) -> bytes:
    """The page. `releases` are those that can be chosen; `report` is None before a choice.

    It is as in `rehearse.text.page_json`.
    """
    reasons: object = ()
    if report is not None:
        branches = [Reason.from_json(each) for each in report["reasons"]]
        reasons, _ = why.bounded(branches, why.REASONS_MAX)
    return render(
        "rehearsal.html",
        frame=frame,
        releases=releases,
        parameters=parameters,
        report=report,
        head=report["subject"] if report is not None else "",
        notes=_grouped(report["notes"]) if report is not None else (),
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
