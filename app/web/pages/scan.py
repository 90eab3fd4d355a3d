"""The page of known defects and traps in a history: where they show, and how certainly."""

from collections.abc import Callable

from app.analysis.findings.report import OBJECTS_SHOWN_MAX
from app.analysis.incidents.incident import Incident
from app.analysis.scan.sightings import ScanReport
from app.web.frame import Frame, render
from app.web.pages.findings import EXPLAINED


def page(
    frame: Frame, report: ScanReport, read: Callable[[str], Incident | None], labels: str = ""
) -> bytes:
    """The page. `read` returns the incident of a sighting, with its title and its repair.

    `labels` is the selector that restricted the scan.
    """
    return render(
        "scan.html",
        frame=frame,
        sightings=[(one, read(one.incident)) for one in report.sightings],
        labels=labels,
        report=report,
        explained=EXPLAINED,
        shown_max=OBJECTS_SHOWN_MAX,
    )
