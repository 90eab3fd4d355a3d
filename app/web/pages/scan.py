"""Which known defects and traps a history shows: where, how sure, where their story is."""

from collections.abc import Sequence

from app.analysis.findings.report import OBJECTS_SHOWN_MAX
from app.analysis.scan.sightings import Sighting
from app.web.frame import Frame, render
from app.web.pages.findings import EXPLAINED


def page(frame: Frame, sightings: Sequence[Sighting]) -> bytes:
    """The page."""
    return render(
        "scan.html",
        frame=frame,
        sightings=sightings,
        explained=EXPLAINED,
        shown_max=OBJECTS_SHOWN_MAX,
    )
