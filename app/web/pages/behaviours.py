"""The page of numbered behaviours: the target of every number that another page names."""

from collections.abc import Sequence

from app.analysis import profiles
from app.analysis.behaviours import Behaviour
from app.web.frame import Frame, render


def page(frame: Frame, rows: Sequence[Behaviour]) -> bytes:
    """The page."""
    return render("behaviours.html", frame=frame, rows=rows, releases=len(profiles.names()))
