"""The page of search results: objects that match a text."""

from app.analysis.search import Hits
from app.web.frame import Frame, render
from app.web.pages.findings import EXPLAINED


def page(frame: Frame, answer: Hits) -> bytes:
    """The page."""
    return render("find.html", frame=frame, answer=answer, explained=EXPLAINED)
