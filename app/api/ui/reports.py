"""The report of an incident: selects its pages, and limits them to the size of one file."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from urllib.parse import urlsplit

from app.analysis.findings.report import Findings
from app.analysis.scan.sightings import Certainty, ScanReport
from app.api.redra.answers import Answers
from app.api.redra.inquiries import Inquiry
from app.api.server.messages import HttpRequest
from app.api.ui import framing
from app.domain.errors import Forbidden, NotFound, TooLarge
from app.domain.log import ObjectKey, Revision
from app.web.binding import Sheet
from app.web.frame import noun
from app.web.links import FINDINGS, Links
from app.web.pages import report
from app.web.pages.findings import EXPLAINED
from app.web.pages.report import Omitted, ReportBounds

MakePage = Callable[[str, Inquiry], Awaitable[bytes]]
"""Makes the page of a part for a request."""

LANES, MAP = ("Lanes", "lanes"), ("Device map", "map")
DEFECTS = ("Known defects and traps", "scan")

_ROOM = 64 * 1024
"""Bytes for the cover, the style and the table of contents."""


async def compose(
    answers: Answers, inquiry: Inquiry, make: MakePage, bounds: ReportBounds
) -> bytes:
    """The report of a history at a moment. Raises the errors of its pages.

    Known defects have a page if there are any, as far as the scan comes in its time; the page is
    the first one if one of them is certain. Otherwise the cover says why there is no page.
    """
    views = await answers.views(inquiry)
    answers.check_length(views.revision)
    await answers.whole_chronicle(inquiry.runtime, views.revision)
    links = Links(history=inquiry.runtime.info.name, moment=str(views.revision))
    pinned = replace(inquiry, moment=links.moment)
    builder = _ReportBuilder(pinned, make, links, (bounds.bytes_max - _ROOM) // 2)
    # The page of findings names the known defects as far as they are known when it is made.
    scanned, unscanned = await _scanned(answers, builder, bounds.scan_seconds)
    await builder.add("Findings", FINDINGS)
    sightings = () if scanned is None else scanned.sightings
    causes, parts = 1, [part for part in (DEFECTS, LANES, MAP) if sightings or part is not DEFECTS]
    left = [part for part in parts if not await builder.add(*part)]
    if sightings and DEFECTS not in left:
        causes = 2
        if any(one.certainty is Certainty.CERTAIN for one in sightings):
            builder.sheets[:2] = reversed(builder.sheets[:2])
    has_more = await _add_timeline(answers, builder, bounds)
    general, builder.sheets = builder.sheets, []
    builder.bytes_max = bounds.bytes_max - _ROOM
    left_out = 0
    findings = await answers.findings(builder.request(links.to(FINDINGS), links))
    for number, (key, revision) in enumerate(_objects(findings)):
        if number >= bounds.objects_max or not await builder.add_object(key, revision):
            left_out += 1
    # Findings and known defects come first, then the reasons, then the pages for reference.
    sheets = [*general[:causes], *builder.sheets, *general[causes:]]
    frame = await framing.frame(answers, pinned, "report")
    omitted = Omitted(
        objects=left_out,
        hidden=builder.hidden,
        entries=has_more,
        parts=tuple(title for title, _ in left),
        unscanned=unscanned,
    )
    return report.page(frame, sheets, omitted, version("redra"))


class _ReportBuilder:
    """Makes pages one after the other, while they fit into `bytes_max` together.

    `hidden` counts the objects that the user may not read.
    """

    def __init__(self, inquiry: Inquiry, make: MakePage, links: Links, bytes_max: int) -> None:
        self._inquiry = inquiry
        self._make = make
        self.links = links
        self.bytes_max = bytes_max
        self.sheets: list[Sheet] = []
        self.hidden = 0
        self._size = 0

    async def add(self, title: str, part: str, **parameters: object) -> bool:
        """Add a page at the moment; False when it does not fit. The first page always fits."""
        url = self.links.to(part, **parameters)
        return self._append([await self._sheet(title, part, url, self.links)])

    async def add_object(self, key: ObjectKey, revision: Revision) -> bool:
        """Add an object and, if it has any, its reasons; False when they do not fit."""
        links = self.links.at(revision)
        name = f"{noun(key.resource)} {key.namespaced_name}"
        pages = [(f"History of {name}", "object", links.to_object(key))]
        if key.resource in EXPLAINED:
            pages.insert(0, (f"Why {name}", "why", links.to_why(key)))
        try:
            return self._append([await self._sheet(*page, links) for page in pages])
        except NotFound:
            # An object that was never recorded itself; only its name is known.
            return True
        except Forbidden:
            self.hidden += 1
            return True

    def request(self, url: str, links: Links) -> Inquiry:
        """A request for a page, on behalf of the user who asks for the report."""
        whole, parts = self._inquiry.request, urlsplit(url)
        scope = {**whole.scope, "method": "GET", "path": parts.path}
        scope["query_string"] = parts.query.encode()
        return replace(
            self._inquiry, request=HttpRequest(scope, whole.receive), moment=links.moment
        )

    async def _sheet(self, title: str, part: str, url: str, links: Links) -> Sheet:
        html = await self._make(part, self.request(url, links))
        return Sheet(url=url, title=title, html=html.decode())

    def _append(self, sheets: list[Sheet]) -> bool:
        size = sum(len(sheet.html.encode()) for sheet in sheets)
        if self._size and self._size + size > self.bytes_max:
            return False
        self.sheets += sheets
        self._size += size
        return True


async def _scanned(
    answers: Answers, builder: "_ReportBuilder", seconds: float
) -> tuple[ScanReport | None, str]:
    """The scan as far as it comes in this time, and why no page shows defects: empty if one does.

    There is no scan if it would be too long, or if the user may not read everything that shows
    defects.
    """
    links = builder.links
    try:
        scan = await answers.scan(builder.request(links.to(DEFECTS[1]), links), seconds)
    except Forbidden:
        return None, "whoever asked for this file may not read all that tells of them"
    except TooLarge as refusal:
        return None, str(refusal)
    if scan.sightings:
        return scan, ""
    if scan.is_complete:
        return scan, "this history shows none of them"
    examined = f"the scan had come to revision {scan.examined} of {links.moment} and seen none"
    return scan, f"{examined}; what only later events show may be missing"


async def _add_timeline(answers: Answers, builder: _ReportBuilder, bounds: ReportBounds) -> bool:
    """Add the pages of the timeline that fit, newest first; returns whether older ones remain."""
    before, rows = Revision(0), 0
    while rows < bounds.rows_max:
        parameters = {"before": before or "", "limit": bounds.rows_max - rows}
        url = builder.links.to("timeline", **parameters)
        page = await answers.timeline(builder.request(url, builder.links))
        if page.items or not before:
            title = f"Timeline before revision {before}" if before else "Timeline"
            if not await builder.add(title, "timeline", **parameters):
                return True
        rows += len(page.items)
        before = page.next
        if not before:
            return False
    return True


def _objects(findings: Findings) -> Iterator[tuple[ObjectKey, Revision]]:
    """The objects in findings, in the order of the findings, each object once."""
    shown: set[ObjectKey] = set()
    for item in findings.items:
        for one in item.objects:
            if one.key not in shown:
                shown.add(one.key)
                yield one.key, one.revision
