"""A report is one file: it holds what the pages hold, needs nothing, and stays within its bound."""

import re

import msgspec
import pytest

from app.analysis.findings.report import Subject
from app.analysis.scan.sightings import Certainty, IncidentSighting, ScanReport
from app.api.redra.answers import Answers
from app.api.server.limits import ApiLimits, WaitBounds
from app.bootstrap.gallery import incident_files
from app.domain.errors import Forbidden, TooLarge
from app.domain.log import ObjectKey, Revision
from app.web.pages.report import ReportBounds
from tests import draws
from tests.api.serving import pod, serving
from tests.api.test_readers import filled, found_in, headers
from tests.web.browsing import BROWSER, FLAGS, needs_browser
from tests.web.planted import PODS, plant
from tests.web.reading import read
from tests.web.test_incident_stories import stored

JSON = "/redra/v1/histories/default"
UI = "/ui/h/default"
DEFECTS = "Known defects and traps"
SIGHTING = IncidentSighting(
    incident="device-in-two-claims", certainty=Certainty.LIKELY, revision=Revision(1), times=1,
    objects=(), message="as is likely",
)  # fmt: skip

PDF_PAGE = b"/Type /Page\n"
"""What stands in a PDF for each sheet."""


async def report(server, at="", code=200, **given):
    answer = await server.raw("GET", f"{UI}{at}/report", **given)
    assert answer.status_code == code, answer.text
    if code == 200:
        assert answer.headers["content-disposition"].startswith("attachment; filename=")
    return answer.text


def check_alone(root):
    """Nothing in the file needs anything that is not in it."""
    for node in root:
        for name in ("src", "srcset", "action", "data", "formaction", "poster"):
            assert name not in node.attributes or node.tag == "svg", (node.tag, name)
        assert not any(name.startswith("on") for name in node.attributes), node.attributes
    assert not root.all("script")
    assert not root.all("link")
    assert not root.all("form")
    names = [node.attributes["id"] for node in root if "id" in node.attributes]
    assert len(names) == len(set(names)), "a name stands twice"
    places = {f"#{name}" for name in names}
    assert set(root.links) <= places, set(root.links) - places
    return places


@draws.in_turn("ways")
@pytest.mark.parametrize("seed", range(3))
async def test_report_holds_findings_and_the_reasons_of_each_object(seed):
    async with serving() as server:
        await plant(server, seed)
        root = read(await report(server))
        check_alone(root)
        answer = await server.get(f"{JSON}/findings")
        shown = [node.one("h3").text for node in root.one("ol", "findings").all("li", "finding")]
        assert shown == [item["text"] for item in answer["items"]]
        titles = {section.attributes["aria-label"] for section in root.all("section")
                  if "aria-label" in section.attributes}  # fmt: skip
        assert {"Findings", "Lanes", "Device map", "Timeline"} <= titles
        for item in answer["items"]:
            for one in item["objects"]:
                place = f"{one['namespace']}/{one['name']}" if one["namespace"] else one["name"]
                query = f"kind={one['resource']}&namespace={one['namespace']}&name={one['name']}"
                there = await server.raw("GET", f"{JSON}/object?{query}")
                has_sheet = any(title.endswith(f" {place}") for title in titles)
                assert has_sheet == (there.status_code == 200), place
        for link in root.one("ol", "findings").all("a", "why"):
            (target,) = root.all("section", id=link.attributes["href"][1:])
            assert target.one("p", "verdict").text


async def test_report_begins_with_defects_that_are_certain_and_names_each_landmark_once():
    incident = incident_files.read("device-in-two-claims").incident
    async with serving(store=await stored(incident)) as server:
        root = read(await report(server))
    check_alone(root)
    sections = root.one("main").all("section")
    titles = [each.attributes["aria-label"] for each in sections if "id" in each.attributes]
    assert titles[:2] == [DEFECTS, "Findings"]
    assert titles[2].startswith("Why ")
    assert "redra incidents show device-in-two-claims" in sections[0].text
    landmarks = [
        each.attributes["aria-label"] for each in root
        if (each.tag == "section" or each.attributes.get("role") == "region")
        and "aria-label" in each.attributes
    ]  # fmt: skip
    assert len(landmarks) == len(set(landmarks))


async def test_report_looks_for_defects_longer_than_a_page_waits(monkeypatch):
    """A page shows what is known by then; a file is read later, and two of one moment are equal.

    Its page of findings, which names the defects, too, is made after that, and waits as others do.
    """
    waited = []

    async def scanned(_, inquiry, seconds=None):
        waited.append(seconds)
        return ScanReport(sightings=[])

    monkeypatch.setattr(Answers, "scan", scanned)
    limits = ApiLimits(report=ReportBounds(scan_seconds=7.5), waits=WaitBounds(seconds=2.0))
    async with serving(limits=limits) as server:
        await server.post(PODS, pod("web"))
        await report(server)
    assert waited == [7.5, 1.0]


@pytest.mark.parametrize(
    ("scan", "titles", "note"),
    [
        (ScanReport(sightings=[SIGHTING]), ["Findings", DEFECTS], ""),
        (ScanReport(sightings=[SIGHTING], is_complete=False), ["Findings", DEFECTS], ""),
        (ScanReport(sightings=[]), ["Findings"], "this history shows none of them"),
        (
            ScanReport(sightings=[], examined=Revision(2), is_complete=False),
            ["Findings"],
            "the scan had come to revision 2 of 3 and seen none",
        ),
        (Forbidden("no"), ["Findings"], "may not read all that tells of them"),
        (TooLarge("3 events are more than 2: use redra scan"), ["Findings"], "use redra scan"),
    ],
)
async def test_report_says_why_no_page_shows_defects(monkeypatch, scan, titles, note):
    async def scanned(*_):
        if isinstance(scan, Exception):
            raise scan
        return scan

    monkeypatch.setattr(Answers, "scan", scanned)
    async with serving() as server:
        await server.post(PODS, pod("web"))
        head = (await server.get(JSON))["revision"]
        root = read(await report(server))
    shown = [each.attributes["aria-label"] for each in root.one("main").all("section")
             if "id" in each.attributes]  # fmt: skip
    assert [title for title in shown if title in ("Findings", DEFECTS)] == titles
    cover = root.one("header", "cover").text
    assert note.replace("of 3", f"of {head}") in cover
    assert (f"{DEFECTS}:" in cover) == bool(note)


@draws.in_turn("ways")
async def test_contents_of_a_sheet_are_those_of_its_page():
    async with serving() as server:
        await plant(server, 1)
        head = (await server.get("/redra/v1/histories/default"))["revision"]
        root = read(await report(server))
        for part in ("lanes", "map", "timeline"):
            page = read((await server.raw("GET", f"{UI}@{head}/{part}")).text).one("main")
            title = page.one("h1").text
            (sheet,) = root.all("section", aria_label=title)
            cells = [cell.text for cell in page.all("td")]
            assert [cell.text for cell in sheet.all("td")] == cells
            assert len(sheet.all("svg")) == len(page.all("svg"))


async def test_report_as_of_a_moment_knows_nothing_later():
    async with serving() as server:
        await plant(server, 1)
        early = read(await report(server, "@4"))
        assert "as of revision 4" in early.one("header", "cover").text
        rows = [int(row.attributes["id"][1:]) for row in early.all("tr") if "id" in row.attributes]
        assert rows
        assert max(rows) <= 4
        assert "no revision 99999" in await report(server, "@99999", code=404)


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("bounds", "note"),
    [
        (ReportBounds(objects_max=1), "more objects"),
        (ReportBounds(bytes_max=500_000, objects_max=10_000), "more objects"),
        (ReportBounds(rows_max=5), "The timeline begins before"),
    ],
)
async def test_what_does_not_fit_is_said(bounds, note):
    limits = ApiLimits(report=bounds, findings_max=200)
    async with serving(limits=limits) as server:
        await plant(server, 4)
        if bounds.bytes_max < 1_000_000:
            for number in range(30):
                await wait(server, f"long-{number}", f"cause {number} " + "x" * 900)
        text = await report(server)
        assert note in read(text).one("header", "cover").text
        assert len(text.encode()) <= bounds.bytes_max


async def wait(server, name, message):
    """A pod with a cause of its own and many versions."""
    await server.post(PODS, pod(name))
    for again in range(8):
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                     "message": f"{message} {again}"}  # fmt: skip
        await server.patch(f"{PODS}/{name}/status", {"status": {"conditions": [condition]}})


@draws.in_turn("ways")
@pytest.mark.parametrize("reader", ["ann", "bob", "cat", "dan", "root"])
async def test_report_tells_nobody_more_than_the_pages_in_it(reader):
    async with filled() as server:
        answer = await server.raw("GET", "/ui/h/one/report", **headers(reader))
        findings = await server.raw("GET", "/ui/h/one/", **headers(reader))
        assert answer.status_code == findings.status_code
        seen = set()
        for part in ("", "lanes", "map", "timeline"):
            page = await server.raw("GET", f"/ui/h/one/{part}", **headers(reader))
            seen |= found_in(page.text)
        assert not found_in(answer.text) - seen - found_in("node-one p-lab decided-summary")


async def test_history_that_is_too_long_is_refused_in_one_sentence():
    async with serving(limits=ApiLimits(report_events_max=3)) as server:
        await plant(server, 1)
        refusals = (
            await report(server, code=413),
            (await server.get(f"{JSON}/trace", 413))["message"],
        )
        for refusal in refusals:
            assert "events are more than 3: use redra report" in refusal
        await report(server, "@3")
        await server.get(f"{JSON}/trace?at=3")


async def test_object_that_the_reader_may_not_see_is_left_out_and_counted(monkeypatch):
    findings = Answers.findings

    async def with_a_secret(self, asked):
        answer = await findings(self, asked)
        secret = Subject.of(ObjectKey("", "secrets", "other", "s-other"), Revision(1))
        first = msgspec.structs.replace(answer.items[0], objects=(secret,))
        return msgspec.structs.replace(answer, items=(first, *answer.items[1:]))

    monkeypatch.setattr(Answers, "findings", with_a_secret)
    async with filled() as server:
        answer = await server.raw("GET", "/ui/h/one/report", **headers("cat"))
        assert answer.status_code == 200, answer.text
        root = read(answer.text)
        note = "1 object that findings name is left out"
        assert note in root.one("header", "cover").text
        labels = {part.attributes.get("aria-label", "") for part in root.all("section")}
        assert not any("s-other" in label for label in labels)


@draws.in_turn("ways")
@needs_browser
@pytest.mark.slow
async def test_report_opens_from_a_file_without_server_and_script(tmp_path):
    from playwright.async_api import async_playwright

    file = tmp_path / "incident.html"
    async with serving() as server:
        await plant(server, 4)
        file.write_text(await report(server), encoding="utf-8")
    complaints = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        context = await browser.new_context(
            java_script_enabled=False, offline=True, viewport={"width": 400, "height": 800}
        )
        page = await context.new_page()
        page.on("request", lambda request: complaints.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        await page.goto(file.as_uri())
        assert complaints == [file.as_uri()]
        await page.locator(".findings a.why").first.click()
        assert re.search(r"#s\d+$", page.url)
        target = page.locator(f"section{page.url[page.url.index('#') :]}")
        assert "Why" in await target.locator("h2").first.inner_text()
        assert await target.is_visible()
        assert complaints == [file.as_uri()]
        sections = await page.locator("main > section").count()
        apart = (await page.pdf(format="A4")).count(PDF_PAGE)
        assert apart > sections
        join = "all => all.forEach(one => one.style.breakBefore = 'auto')"
        await page.eval_on_selector_all("main > section", join)
        assert (await page.pdf(format="A4")).count(PDF_PAGE) < apart, "each begins a sheet"
        await browser.close()
