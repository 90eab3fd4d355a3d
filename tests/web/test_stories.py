"""What a person with a browser gets done: by mouse, by keyboard, without script, in the dark."""

from dataclasses import dataclass
from xml.etree import ElementTree

import pytest
from axe_playwright_python.sync_playwright import Axe

from app.analysis.capacity.answers import CapacityMoment, ClassCapacity
from app.web.pages import capacity
from tests import draws
from tests.api.serving import pod
from tests.web.browsing import browsing, needs_browser

pytestmark = [needs_browser, pytest.mark.slow]

SEED = 4
PARTS = (
    "", "lanes", "map", "timeline", "find?q=waits", "why?kind=pod&name=waits-0",
    "object?kind=pod&name=waits-0", "attempts?kind=pod&name=waits-0", "pace", "scan", "lint",
    "blast", "compare", "again?by=outcomes", "rehearsal?to=1.36", "capacity", "behaviours",
    "jobs",
)  # fmt: skip


PAGES = ("/ui/", "/ui/jobs", *(f"/ui/h/default/{part}" for part in PARTS))
ADDRESSES = draws.of_today(PAGES)
"""The pages that a run measures: their frame, style sheet and colours are those of all others."""
WIDTHS = (390, 800, 1280)
TELEPHONE = 400
PAPER = 718
"""The width of a sheet of A4 without its margins, in pixels of CSS."""
DRAWN = ("/ui/h/default/", "/ui/h/default/lanes", "/ui/h/default/map")
"""Pages with pictures, whose colours are checked in the dark, too."""


@dataclass
class Visit:
    """A page that was loaded once: what each width shows of it."""

    overflow: int
    """By how many pixels the page is wider than a telephone."""
    cut: dict[int, list[str]]
    """The labels of the tables that are cut, by width of the window."""
    unprinted: list[str]
    """The parts that a sheet of paper cuts off."""
    controls: dict[str, list[str]]
    """The controls that the keyboard does not reach, and those that do not show its focus."""
    measure: dict[str, int]
    """Its size in bytes, its shapes, its pictures, and its tables that repeat pictures in words."""


@pytest.fixture(scope="module")
def story():
    with browsing(SEED) as opened:
        yield opened


@pytest.fixture(scope="module")
def visits(story):
    """A visit of each page, and what axe-core complains about by colour scheme.

    Loading pages is most of the work, so all checks share the visits.
    """
    with story.page(color_scheme="light", viewport={"width": WIDTHS[0], "height": 900}) as page:
        return {
            address: (visit(page, story, address), judged(page, address)) for address in ADDRESSES
        }


def visit(page, story, address):
    sized(page, WIDTHS[0])
    page.goto(f"{story.url}{address}")
    cut = {}
    for width in WIDTHS:
        sized(page, width)
        cut[width] = page.eval_on_selector_all(
            ".scroll", "all => all.filter(one => one.scrollWidth > one.clientWidth)"
            ".map(one => one.getAttribute('aria-label'))",
        )  # fmt: skip
    sized(page, TELEPHONE)
    overflow = page.evaluate("document.documentElement.scrollWidth") - TELEPHONE
    return Visit(overflow, cut, unprinted_parts(page), controls(page), page.evaluate(MEASURE))


MEASURE = """() => ({
  bytes: new Blob([document.documentElement.outerHTML]).size,
  shapes: document.querySelectorAll("svg *").length,
  pictures: document.querySelectorAll(".picture, .strip-picture").length,
  tables: document.querySelectorAll("main table").length,
})"""


def controls(page):
    """What a reader without a mouse does not get to, or does not see to be there.

    A shape in a picture has no place in the order of the keyboard: its row in the table has.
    """
    sized(page, WIDTHS[-1])
    page.keyboard.press("Tab")
    return page.evaluate(
        """() => {
            const named = (one) => one.outerHTML.slice(0, 120)
            const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), "
                + "select, textarea, summary, [tabindex], [onclick], [role=button]")]
            const shown = all.filter((one) => one.checkVisibility() && !one.closest("svg"))
            const unseen = shown.filter((one) => {
                one.focus()
                const style = getComputedStyle(one)
                return document.activeElement === one && one.id !== "main"
                    && (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2)
            })
            const unreached = shown.filter((one) => one.tabIndex < 0 && one.id !== "main")
            document.activeElement?.blur()
            return { unreached: unreached.map(named), unseen: unseen.map(named) }
        }"""
    )


def judged(page, address):
    """What axe-core complains about on the page that is open, by colour scheme."""
    sized(page, WIDTHS[-1])
    inaccessible = {"light": inaccessible_parts(page)}
    if address in DRAWN:
        page.emulate_media(color_scheme="dark")
        page.reload()  # colours that fade over would be measured on their way
        inaccessible["dark"] = inaccessible_parts(page)
        page.emulate_media(color_scheme="light")
    return inaccessible


def unprinted_parts(page):
    """What lies beyond the edge of the paper, or in a box that a reader would have to scroll."""
    sized(page, PAPER)
    page.emulate_media(media="print")
    parts = page.eval_on_selector_all(
        "main *", "all => all.filter(one => one.getBoundingClientRect().right > innerWidth + 1"
        " || one.clientWidth > 20 && one.scrollWidth > one.clientWidth + 1"
        " && getComputedStyle(one).overflowX === 'auto')"
        ".map(one => `${one.tagName} ${one.getAttribute('class')}`)",
    )  # fmt: skip
    page.emulate_media(media="screen")
    return parts


def sized(page, width):
    page.set_viewport_size({"width": width, "height": 900})


def inaccessible_parts(page):
    report = Axe().run(page)
    return report.generate_report() if report.violations_count else ""


def heading(page):
    return " ".join(page.inner_text("h1").split())


@draws.in_turn("ways")
def test_cause_is_three_clicks_from_the_landing_page(story):
    with story.page() as page:
        page.goto(f"{story.url}/ui/")
        page.click("tbody th a")
        page.wait_for_selector(".findings")
        assert heading(page) == "Findings"
        # Pages change without a reload: what was noted in this one is still there.
        page.evaluate("window.noted = 1")
        waiting = page.locator(".finding", has_text="waiting pods").first
        assert "wait" in waiting.locator("h2").inner_text()
        waiting.locator("a.why").first.click()
        page.wait_for_selector(".verdict")
        assert heading(page).startswith("Why pod default/waits-")
        assert page.evaluate("window.noted") == 1
        page.go_back()
        page.wait_for_selector(".findings")
        page.locator(".finding", has_text="waiting pods").locator("a.object").first.click()
        page.wait_for_selector("table.fields")
        assert heading(page).startswith("pod default/waits-")


@draws.in_turn("ways")
def test_keyboard_alone_is_enough(story):
    with story.page() as page:
        page.goto(f"{story.url}/ui/h/default/")
        page.keyboard.press("Tab")
        page.wait_for_selector("a:focus >> text=Skip to the content")
        page.keyboard.press("Enter")
        page.wait_for_selector("#main:focus")
        page.keyboard.press("[")
        page.wait_for_url("**/default@*/")
        page.wait_for_selector("text=As of")
        for key in ("{", "]", "["):
            link = page.locator(f"a[data-key='{key}']")
            target = link.get_attribute("href")
            page.keyboard.press(key)
            page.wait_for_url(f"**{target}")
            page.wait_for_selector(f".shown strong >> text={target.rpartition('@')[2].strip('/')}")
        page.keyboard.press("/")
        page.keyboard.type("pod/waits-0")
        # What was found for the beginning of the name is replaced when the rest is typed.
        page.wait_for_selector("dialog li:only-child a[href$='waits-0']")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector("table.fields")
        assert heading(page) == "pod default/waits-0"
        page.keyboard.press("/")
        page.keyboard.type("nothing-has-this-name")
        page.wait_for_selector("text=Nothing has such a name.")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")


@draws.in_turn("ways")
def test_palette_says_which_objects_are_deleted():
    """A history of its own, because it writes."""
    pods = "/api/v1/namespaces/default/pods"
    with browsing() as own, own.page() as page:
        for name in ("web-gone", "web-there"):
            assert page.request.post(f"{own.url}{pods}", data=pod(name)).ok
        assert page.request.delete(f"{own.url}{pods}/web-gone?gracePeriodSeconds=0").ok
        page.goto(f"{own.url}/ui/h/default/")
        page.keyboard.press("/")
        page.keyboard.type("web-")
        page.wait_for_selector("dialog li a[href*='name=web-gone']")
        lines = [one.inner_text() for one in page.locator("dialog li").all()]
    assert [("web-gone" in one, "deleted at 20" in one) for one in lines] == [
        (False, False),
        (True, True),
    ]


@draws.in_turn("ways")
def test_moment_is_chosen_on_the_strip_and_in_the_form(story):
    with story.page() as page:
        page.goto(f"{story.url}/ui/h/default/timeline")
        page.locator(".strip a").first.click()
        page.wait_for_url("**/default@*/timeline")
        page.fill("#moment", "3")
        page.press("#moment", "Enter")
        page.wait_for_url("**/default@3/timeline")
        page.click("text=Back to now")
        page.wait_for_url("**/default/timeline")
        page.select_option("select[name=kind]", "PodCreated")
        page.click(".filter button")
        page.wait_for_url("**/timeline?kind=PodCreated")
        page.wait_for_selector("text=Clear")
        shown = page.locator("tbody td[data-label=What]").all_inner_texts()
        assert set(shown) == {"PodCreated"}


@draws.in_turn("ways")
def test_pages_work_without_script(story):
    size = {"width": TELEPHONE, "height": 800}
    with story.page(java_script_enabled=False, viewport=size) as page:
        page.goto(f"{story.url}/ui/")
        page.click("tbody th a")
        for name in ("Lanes", "Device map", "Timeline", "Findings"):
            page.click(f"nav >> text={name}")
            assert heading(page) == name
        page.fill("#find", "waits-0")
        page.press("#find", "Enter")
        page.click("[data-hits] a")
        assert heading(page) == "pod default/waits-0"


def test_pages_fit_a_telephone(visits):
    too_wide = {address: one.overflow for address, (one, _) in visits.items() if one.overflow > 0}
    assert too_wide == {}
    assert len(visits) == len(ADDRESSES)


def test_each_control_is_reached_by_the_keyboard_and_shows_it(visits):
    unusual = {address: one.controls for address, (one, _) in visits.items()}
    assert unusual == {address: {"unreached": [], "unseen": []} for address in ADDRESSES}


def test_pages_are_small_and_each_picture_has_a_table(visits):
    sizes = {address: one.measure for address, (one, _) in visits.items()}
    assert [address for address, one in sizes.items() if one["bytes"] > 150_000] == []
    assert [address for address, one in sizes.items() if one["shapes"] > 2_000] == []
    assert [address for address, one in sizes.items() if one["pictures"] > one["tables"]] == []


def test_pages_fit_on_paper(visits):
    assert {address: one.unprinted for address, (one, _) in visits.items() if one.unprinted} == {}


@draws.in_turn("ways")
def test_no_text_of_a_course_is_cut(story):
    gpu = ClassCapacity(name="gpu", devices=4096, allocatable=4096, free=4096, largest=8)
    moments = [
        CapacityMoment(
            revision=number,
            time=f"2026-11-21T07:59:{number:02}.000000Z",
            classes=(gpu,),
            counters=(),
        )
        for number in range(1, 33)
    ]
    drawn = f'<div class="picture course">{capacity.course(moments, "gpu", str)}</div>'
    with story.page(viewport={"width": 1280, "height": 900}) as page:
        page.goto(f"{story.url}/ui/h/default/capacity")
        cut = page.evaluate(
            """markup => {
                document.querySelector("main").insertAdjacentHTML("beforeend", markup)
                return [...document.querySelectorAll(".course:last-child text")].filter(one => {
                    const text = one.getBoundingClientRect()
                    const picture = one.ownerSVGElement.getBoundingClientRect()
                    return text.left < picture.left || text.right > picture.right
                }).map(one => one.textContent)
            }""",
            drawn,
        )
        assert cut == []
        assert page.locator(".course:last-child text").count() > 2


@pytest.mark.parametrize("width", WIDTHS)
def test_no_table_is_cut(visits, width):
    cut = {address: one.cut[width] for address, (one, _) in visits.items()}
    assert cut == {address: [] for address in ADDRESSES}


@draws.in_turn("ways")
def test_page_follows_its_history_until_it_is_scrubbed_back(story):
    with story.page() as page:
        page.goto(f"{story.url}/ui/h/default/timeline?kind=PodCreated")
        page.wait_for_selector("[data-live] button")
        page.evaluate("window.noted = 1")
        for name in ("comes-later", "comes-last"):
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                    "spec": {"containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
            page.request.post(f"{story.url}/api/v1/namespaces/default/pods", data=body)
            page.wait_for_selector(f"tbody >> text=default/{name}")
        assert page.evaluate("window.noted") == 1
        page.keyboard.press("[")
        page.wait_for_url("**/default@*/**")
        page.wait_for_selector("text=As of")
        assert not page.locator("[data-live]").count()
        page.click("text=Back to now")
        page.click("[data-live] button >> text=Following")
        page.wait_for_selector("[data-live] button >> text=Follow")
        assert page.locator("[data-live] button").get_attribute("aria-pressed") == "false"


RULE = """\
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: all}
spec:
  taint: {key: example.com/repair, effect: NoExecute}
"""


@draws.in_turn("ways")
@pytest.mark.parametrize("has_script", [True, False])
def test_change_is_tried_before_it_is_applied(story, has_script):
    with story.page(java_script_enabled=has_script) as page:
        page.goto(f"{story.url}/ui/h/default/")
        page.click("nav >> text=What if")
        page.wait_for_selector("textarea")
        page.fill("textarea", RULE)
        page.click("text=What would happen?")
        page.wait_for_selector("#answer")
        assert page.locator(".effects").inner_text().startswith("DeviceTaintRule all: created")
        assert page.input_value("textarea") == RULE
        page.fill("textarea", "{")
        page.click("text=What would happen?")
        page.wait_for_selector("text=Refused:")


def test_pages_are_accessible(visits):
    schemes = {
        address: {"light", "dark"} if address in DRAWN else {"light"} for address in ADDRESSES
    }
    assert {address: set(complaints) for address, (_, complaints) in visits.items()} == schemes
    assert [
        (address, scheme, said)
        for address, (_, complaints) in visits.items()
        for scheme, said in complaints.items()
        if said
    ] == []


@draws.in_turn("ways")
@pytest.mark.parametrize("part", ["lanes", "map"])
def test_pictures_are_saved_as_png_with_the_colours_of_the_page(story, part):
    with story.page(accept_downloads=True) as page:
        page.goto(f"{story.url}/ui/h/default/{part}")
        drawn = page.locator(".picture svg, .strip-picture svg").first
        *_, wide, high = map(float, drawn.get_attribute("viewBox").split())
        with page.expect_download() as saving:
            page.locator("button.save", has_text="Save as PNG").first.click()
        assert saving.value.suggested_filename.endswith(".png")
        body = saving.value.path().read_bytes()
        width, height, colours = page.evaluate(COLOURS, list(body))
    assert body.startswith(b"\x89PNG\r\n")
    # The caption stands above the picture.
    assert width == round(2 * wide)
    assert round(2 * high) < height < round(2 * high) + 80
    # Paper, ink and more: a canvas on which nothing was drawn has one colour.
    assert colours > 10


COLOURS = """async (body) => {
  const image = await createImageBitmap(new Blob([new Uint8Array(body)], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
  return [image.width, image.height, new Set(pixels).size];
}"""
"""Reads a PNG as a browser does: its width, height and number of colours."""


@draws.in_turn("ways")
def test_pictures_are_saved_as_files_that_stand_alone(story, tmp_path):
    with story.page() as page:
        for part, label in (("lanes", "pod default/waits-0"), ("map", "gpu-0")):
            page.goto(f"{story.url}/ui/h/default/{part}")
            shown = page.locator(".moment .shown strong").text_content()
            with page.expect_download() as saving:
                page.locator("button.save").first.click()
            assert saving.value.suggested_filename.endswith(".svg")
            saving.value.save_as(tmp_path / "picture.svg")
            text = (tmp_path / "picture.svg").read_text("utf-8")
            root = ElementTree.fromstring(text)
            assert root.tag.endswith("}svg")
            assert label in "".join(root.itertext())
            caption = root.findtext("{http://www.w3.org/2000/svg}text")
            assert f"default · revision {shown}" in caption, "it says what it is a picture of"
            assert "class=" not in text
            assert "var(" not in text
            fills = {each.get("fill") for each in root.iter() if each.get("fill")}
            assert len(fills) > 2, "colours come with it"
            # It shows by itself what the page shows: a browser draws it without a style sheet.
            page.goto((tmp_path / "picture.svg").as_uri())
            assert page.locator("svg").bounding_box()["width"] > 300
            story.complaints.clear()  # the file is nothing that the server has sent
