"""The report of an incident: its pages in one file, which needs no server."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.web import assets, binding
from app.web.binding import Sheet
from app.web.frame import Frame, render

STYLE = "redra.css"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBounds:
    """The bounds of a report: at most `objects_max` objects and `rows_max` rows of the timeline.

    It has at most `bytes_max` bytes; objects of less severe findings are left out first. Known
    defects are looked for in `scan_seconds`.
    """

    scan_seconds: float = 60.0
    objects_max: int = 40
    rows_max: int = 500
    bytes_max: int = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """The omitted content: `objects` that a finding names, `entries` of the timeline, `parts`.

    `hidden` counts objects that the reader may not see. `unscanned` says why no page shows known
    defects; it is empty if there is such a page, or if it did not fit.
    """

    objects: int = 0
    hidden: int = 0
    entries: bool = False
    parts: tuple[str, ...] = ()
    unscanned: str = ""


def page(frame: Frame, sheets: Sequence[Sheet], omitted: Omitted, version: str) -> bytes:
    """The file: contents, then the sheets in their order."""
    style = assets.all_assets()[STYLE].content.decode()
    return render(
        "report.html",
        frame=frame,
        sheets=binding.bind(sheets),
        omitted=omitted,
        style=style,
        version=version,
    )
