"""The page of a history and the same inputs decided again: first differences and consequences."""

from app.analysis import profiles
from app.analysis.diff.answers import ComparedPage
from app.analysis.explain.reasons import Reason
from app.web.frame import Frame, render
from app.web.pages import why
from app.web.pages.compare import OPEN_DEPTH, WAYS


def page(frame: Frame, parameters: dict[str, str], compared: ComparedPage | None) -> bytes:
    """The page. `compared` is None before a choice; its B is the history decided again.

    Only the recorded side has moments, so the first difference is linked there alone.
    """
    reasons: object = ()
    if compared is not None:
        branches = [Reason.from_json(each) for each in compared.reasons]
        reasons, _ = why.bounded(branches, why.REASONS_MAX)
    recorded = [one for one in compared.first if one.name and not one.is_b] if compared else []
    return render(
        "again.html",
        frame=frame,
        ways=WAYS,
        releases=profiles.names(),
        parameters=parameters,
        report=compared,
        pods=recorded,
        reasons=reasons,
        open_depth=OPEN_DEPTH,
        open_size=why.OPEN_SIZE,
    )
