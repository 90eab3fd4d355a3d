"""Pages of a cluster whose names are as long as the API lets them be: nothing is cut or pushed out.

Names without a hyphen have no place to break a line, so they make columns and boxes too wide first.
"""

import anyio
import pytest

from tests import draws
from tests.web.browsing import browsing, needs_browser
from tests.web.invented import (
    Invented,
    ask,
    cel,
    claim,
    class_of,
    node,
    pod,
    rule,
    slice_of,
    space,
)
from tests.web.test_incident_stories import stored
from tests.web.test_stories import sized, visit

pytestmark = [needs_browser, pytest.mark.slow]


def long(stem):
    """A name of 63 characters, the longest label."""
    return stem + "x" * (63 - len(stem))


NAMESPACE, HERE, DRIVER = long("namespace"), long("node"), long("d")[:50] + ".test"
HOOKS = "ValidatingWebhookConfiguration"
"""A kind with a long name."""
GEN = f"device.attributes['{DRIVER}'].gen"
HOLDER = f"namespace={NAMESPACE}&name={long('holding')}"
WAITING = f"namespace={NAMESPACE}&name={long('pod')}"
PARTS = (
    "", "lanes", "map", "timeline", f"find?q={long('pod')}", f"why?kind=pod&{WAITING}",
    f"why?kind=pod&{HOLDER}", f"why?kind=claim&namespace={NAMESPACE}&name={long('holder')}",
    f"object?kind=pod&{HOLDER}", f"attempts?kind=pod&{WAITING}", "pace", "scan", "lint",
    f"object?kind={HOOKS.lower()}s.admissionregistration.k8s.io&name=hooks",
    "capacity", f"blast?kind=devicetaintrule&name={long('rule')}",
)  # fmt: skip
ADDRESSES = draws.of_today([f"/ui/h/default/{part}" for part in PARTS])
"""The pages of a run: one style sheet lays all of them out."""
WIDE = (900, 1440)


def crowded():
    """A pod that holds a device, is evicted by a rule, and one that waits; all names are long."""
    devices = [
        {"name": long(f"device{number}"), "attributes": {"gen": {"int": 3}}} for number in range(4)
    ]
    devices[1]["taints"] = [{"key": long("taint"), "value": long("v"), "effect": "NoSchedule"}]
    request, gpus = long("request"), long("class")
    wanted = ask(gpus, request, selectors=cel(f"{GEN} >= 4 && {GEN} < 12"))
    return Invented(
        told=(),
        steps=(
            {"apply": [{"apiVersion": "admissionregistration.k8s.io/v1", "kind": HOOKS,
                        "metadata": {"name": "hooks"}, "webhooks": []}]},
            {"apply": [space(NAMESPACE), class_of(gpus, DRIVER), node(HERE), node(long("other")),
                       slice_of(long("slice"), DRIVER, long("pool"), devices, nodeName=HERE)]},
            {"apply": [claim(long("holder"), NAMESPACE, ask(gpus, request)),
                       pod(long("holding"), NAMESPACE, claim=long("holder"))]},
            {"apply": [claim(long("claim"), NAMESPACE, wanted),
                       pod(long("pod"), NAMESPACE, claim=long("claim"))]},
            {"wait": 20},
            {"apply": [rule(long("rule"), DRIVER, key=long("key"), value=long("value"),
                            effect="NoExecute")]},
            {"wait": 20},
        ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def story():
    with browsing(store=anyio.run(stored, crowded().incident())) as opened:
        yield opened


@pytest.fixture(scope="module")
def visits(story):
    """A visit of each page, by how many pixels it is too wide on desks, and broken words."""
    with story.page(color_scheme="light", viewport={"width": 390, "height": 900}) as page:
        return {
            address: (visit(page, story, address), beyond(page), broken(page))
            for address in ADDRESSES
        }


def beyond(page):
    pixels = {}
    for width in WIDE:
        sized(page, width)
        pixels[width] = page.evaluate("document.documentElement.scrollWidth") - width
    return pixels


def broken(page):
    """The words in headings and cells of numbers that paper breaks in two."""
    sized(page, PAPER)
    page.emulate_media(media="print")
    words = page.evaluate(BROKEN)
    page.emulate_media(media="screen")
    return words


def test_pages_with_long_names_are_as_wide_as_the_window(visits):
    too_wide = {
        address: (one.overflow, pixels)
        for address, (one, pixels, _) in visits.items()
        if max(one.overflow, *pixels.values()) > 0
    }
    assert too_wide == {}


def test_tables_with_long_names_are_not_cut(visits):
    cut = {address: one.cut for address, (one, *_) in visits.items() if any(one.cut.values())}
    assert cut == {}


def test_long_names_fit_on_paper(visits):
    unprinted = {address: one.unprinted for address, (one, *_) in visits.items()}
    assert {address: parts for address, parts in unprinted.items() if parts} == {}


def test_numbers_and_headings_are_not_broken_on_paper(visits):
    """A column of revisions that gives way to long names would read as two numbers each."""
    assert {address: words for address, (*_, words) in visits.items() if words} == {}


PAPER = 718
"""The width of a page of A4 within the margins that browsers set, in pixels of CSS."""

BROKEN = """() => [
  ...document.querySelectorAll("main thead th:not(.name), main td.number")
].flatMap(cell => {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
  while (texts.nextNode()) for (const word of texts.currentNode.data.matchAll(/\\S+/g)) {
    const range = document.createRange();
    range.setStart(texts.currentNode, word.index);
    range.setEnd(texts.currentNode, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map(one => one.top)).size > 1) broken.push(word[0]);
  }
  return broken;
})"""
"""The words in headings and cells of numbers that begin on one line and end on another.

A heading that is the name of a class may be longer than a sheet is wide.
"""


@draws.in_turn("ways")
def test_paper_is_light_where_the_screen_is_dark(story):
    """Whoever looks at dark pages prints with ink on white: pale letters are not read there."""
    with story.page(color_scheme="light") as page:
        page.goto(f"{story.url}/ui/h/default/")
        colours = []
        for scheme in ("light", "dark"):
            page.emulate_media(media="print", color_scheme=scheme)
            colours.append(page.eval_on_selector_all("main *, svg *", COLOURS))
        assert colours[0] == colours[1]
        page.emulate_media(media="screen", color_scheme="dark")
        assert page.eval_on_selector_all("main *, svg *", COLOURS) != colours[0]


COLOURS = "all => all.map(one => getComputedStyle(one)).map(one => [one.color, one.fill])"


@draws.in_turn("ways")
def test_reasons_that_are_folded_on_the_screen_are_printed(story):
    with story.page() as page:
        page.goto(f"{story.url}/ui/h/default/why?kind=pod&{WAITING}")
        page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = false })")
        assert hidden_reasons(page)
        page.emulate_media(media="print")
        assert not hidden_reasons(page)


@draws.in_turn("ways")
def test_tables_are_printed_unfolded_and_keys_are_not(story):
    with story.page() as page:
        page.goto(f"{story.url}/ui/h/default/capacity")
        folded = page.locator("details table").first
        page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = false })")
        shows = "one => one.checkVisibility({contentVisibilityAuto: true})"
        assert not folded.evaluate(shows)
        assert page.locator(".keys").is_visible()
        page.emulate_media(media="print")
        assert folded.evaluate(shows)
        assert not page.locator(".keys").is_visible()


@draws.in_turn("ways")
def test_paper_shows_tables_and_signs_and_no_forms(story):
    """A4 is as narrow as a tablet, and a page of cards for each screen of rows wastes it."""
    with story.page(viewport={"width": PAPER, "height": 1123}) as page:
        page.emulate_media(media="print")
        page.goto(f"{story.url}/ui/h/default/timeline")
        assert page.locator("main tbody tr").first.evaluate(DISPLAY) == "table-row"
        page.goto(f"{story.url}/ui/h/default@30/why?kind=pod&{WAITING}")
        ways = page.locator(".ways, .to-now, a.why")
        assert ways.count() > 1
        assert not any(one.is_visible() for one in ways.all()), "nobody follows them on paper"
        page.goto(f"{story.url}/ui/h/default/blast")
        assert not page.locator("main form").first.is_visible()
        page.goto(f"{story.url}/ui/h/default/capacity")
        assert page.locator("main h2").first.is_visible()
        assert not page.locator("#fit").is_visible(), "a heading of a form that is not there"
        page.goto(f"{story.url}/ui/h/default/")
        sign = "one => getComputedStyle(one).printColorAdjust"
        assert page.locator("main .sign").first.evaluate(sign) == "exact"


DISPLAY = "one => getComputedStyle(one).display"


@draws.in_turn("ways")
@pytest.mark.parametrize("width", [390, 768])
def test_names_of_lanes_can_be_read_on_narrow_screens(story, width):
    with story.page(viewport={"width": width, "height": 900}) as page:
        page.goto(f"{story.url}/ui/h/default/lanes")
        scale = "one => one.getBoundingClientRect().width / one.viewBox.baseVal.width"
        assert page.locator(".picture svg").first.evaluate(scale) * 13 > 10


@draws.in_turn("ways")
def test_pages_of_a_narrow_screen_begin_with_the_present_one(story):
    with story.page(viewport={"width": 360, "height": 700}) as page:
        page.goto(f"{story.url}/ui/h/default/")
        assert is_in_its_row(page)
        page.goto(f"{story.url}/ui/h/default/rehearsal")
        assert is_in_its_row(page)
        page.locator(".history-name").click()
        page.wait_for_url(f"{story.url}/ui/h/default/")
        page.wait_for_function("document.querySelector('.bar nav').scrollLeft === 0")
        assert is_in_its_row(page)


@draws.in_turn("ways")
@pytest.mark.parametrize("width", [390, 1440])
def test_text_below_a_table_does_not_touch_it(story, width):
    with story.page(viewport={"width": width, "height": 900}) as page:
        page.goto(f"{story.url}/ui/h/default/capacity")
        gaps = page.eval_on_selector_all(
            "main .scroll + p", "all => all.map(one => one.getBoundingClientRect().top"
            " - one.previousElementSibling.getBoundingClientRect().bottom)",
        )  # fmt: skip
    assert gaps
    assert min(gaps) >= 8


def is_in_its_row(page):
    """Whether the link of the present page is seen whole in the row of the pages."""
    return page.locator(".bar nav a[aria-current]").evaluate(
        "one => { const [a, b] = [one, one.parentElement].map("
        "each => each.getBoundingClientRect());"
        " return a.left >= b.left - 1 && a.right <= b.right + 1 }"
    )


CONTROLS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]"


@draws.in_turn("ways")
@pytest.mark.parametrize("path", ["h/default/", "h/default/lanes", "h/default/capacity", "jobs"])
def test_each_control_is_reached_with_the_keyboard_and_shows_it(story, path):
    with story.page(viewport={"width": 1000, "height": 800}) as page:
        page.goto(f"{story.url}/ui/{path}")
        count = page.evaluate(
            """controls => [...document.querySelectorAll(controls)].filter(one => one.tabIndex >= 0
            && one.checkVisibility({contentVisibilityAuto: true})).map((one, number) => {
            one.dataset.number = number }).length""", CONTROLS,
        )  # fmt: skip
        reached, unseen = set(), []
        for _ in range(count + 20):
            page.keyboard.press("Tab")
            number, text, shows = page.evaluate(
                """() => { const one = document.activeElement, style = getComputedStyle(one);
                const inner = getComputedStyle(one.querySelector("rect") || one);
                return [one.dataset.number ?? "", one.outerHTML.slice(0, 120),
                style.outlineStyle !== "none" || style.boxShadow !== "none"
                || inner.strokeWidth !== "1px" || one.matches(".skip")] }"""
            )
            if number and number not in reached:
                reached.add(number)
                unseen += [] if shows else [text]
            if len(reached) == count:
                break
        assert len(reached) == count
        assert unseen == []


def hidden_reasons(page):
    return page.eval_on_selector_all(
        ".reasons .reason", "all => all.filter(one => !one.checkVisibility({"
        "contentVisibilityAuto: true})).map(one => one.textContent)"
    )  # fmt: skip


COVERED = """
() => [...document.querySelectorAll('.reasons details[open] > summary, .reasons details > summary')]
  .filter(one => one.nextElementSibling.matches('.sources')).flatMap(one => {
    const texts = document.createRange(); texts.selectNodeContents(one);
    const links = [...one.nextElementSibling.querySelectorAll('a')];
    return [...texts.getClientRects()].flatMap(a => links.flatMap(link => {
      const b = link.getBoundingClientRect();
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      return wide > 1 && high > 1 ? [one.textContent] : [];
    }));
  })
"""
"""The sentences of reasons that a link beside them lies over."""


@draws.in_turn("ways")
def test_links_beside_a_reason_do_not_lie_over_it():
    """The sentence about the unfinished pool is long, has reasons below it, and two links."""
    wanted = [claim("want", "lab", ask("gpu")), pod("job", "lab", claim="want")]
    unfinished = slice_of("part", "gpu.test", "n", [{"name": "x"}], of=3, nodeName="n")
    lab = [space("lab"), class_of("gpu", "gpu.test"), node("n"), unfinished]
    steps = ({"apply": lab}, {"apply": wanted}, {"wait": 5})
    made = Invented(told=(), steps=steps)
    with browsing(store=anyio.run(stored, made.incident())) as opened:
        for width in (390, 800, 900, 1440):
            with opened.page(viewport={"width": width, "height": 900}) as page:
                page.goto(f"{opened.url}/ui/h/default/why?kind=pod&namespace=lab&name=job")
                assert page.locator(".reasons details > .sources a").count()
                assert page.evaluate(COVERED) == [], width


@draws.in_turn("ways")
def test_labels_of_narrow_tables_stand_beside_their_values(story):
    """On a narrow screen each row is a list of labels and values; an empty value has no label."""
    gaps = """
    () => [...document.querySelectorAll('.stack tbody td')].map(one => {
      const text = document.createRange();
      text.selectNodeContents(one);
      return [one.dataset.label, text.toString().trim(), one.matches('.empty'),
              getComputedStyle(one.parentElement).alignItems];
    })
    """
    with story.page(viewport={"width": 390, "height": 900}) as page:
        page.goto(f"{story.url}/ui/h/default/capacity")
        cells = page.evaluate(gaps)
    assert cells
    assert [label for label, text, is_hidden, _ in cells if not text and not is_hidden] == []
    assert {aligned for *_, aligned in cells} == {"baseline"}
