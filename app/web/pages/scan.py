"""The page of known defects and traps in a history: where they show, and how certainly."""

from app.analysis.findings.report import OBJECTS_SHOWN_MAX
from app.analysis.scan.sightings import ScanReport
from app.web.frame import Frame, render
from app.web.pages.findings import EXPLAINED


def page(frame: Frame, report: ScanReport) -> bytes:
    """The page."""
    return render(
        "scan.html",
        frame=frame,
        sightings=report.sightings,
        left_out=report.attempts_left_out,
        explained=EXPLAINED,
        shown_max=OBJECTS_SHOWN_MAX,
    )
