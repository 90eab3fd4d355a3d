"""The device map on a screen: small pools stand side by side, large ones have the whole width."""

import anyio
import pytest

from tests.web.browsing import browsing, needs_browser
from tests.web.invented import Invented, node, slice_of
from tests.web.test_incident_stories import stored

pytestmark = needs_browser

DRIVER = "gpu.test"
SMALL = {"eight": 8, "four": 4, "one": 1, "sixteen": 16}
LARGE = {"very-large": 17}


def published(name, count, **place):
    return slice_of(name, DRIVER, name, [{"name": f"gpu-{one}"} for one in range(count)], **place)


@pytest.fixture(scope="module")
def story():
    nodes = {**SMALL, **LARGE}
    world = Invented(
        told=(),
        steps=(
            {"apply": [node(name) for name in nodes]},
            {"apply": [published(name, count, nodeName=name) for name, count in nodes.items()]},
            {"apply": [published("everywhere", 2, allNodes=True)]},
        ),
    )
    with browsing(store=anyio.run(stored, world.incident())) as opened:
        yield opened


def places(page):
    """The left and upper edge and the width of each section, by the name of its first pool."""
    sections = page.eval_on_selector_all(
        ".map-node",
        "all => all.map(one => { const box = one.getBoundingClientRect();"
        " return [one.querySelector('h3 .name').textContent, box.left, box.top, box.width] })",
    )
    return {name.split("/")[-1]: tuple(place) for name, *place in sections}


def test_small_pools_stand_side_by_side(story):
    with story.page(viewport={"width": 1400, "height": 900}) as page:
        page.goto(f"{story.url}/ui/h/default/map")
        shown = places(page)
        whole = page.locator(".map-nodes").evaluate("one => one.getBoundingClientRect().width")
    assert len({shown[name][0] for name in SMALL}) == 4
    assert len({shown[name][1] for name in SMALL} | {shown["very-large"][1]}) == 2
    assert {name for name, place in shown.items() if place[2] == whole} == {
        "everywhere",
        "very-large",
    }


def test_pools_stand_below_each_other_on_a_phone(story):
    with story.page(viewport={"width": 390, "height": 900}) as page:
        page.goto(f"{story.url}/ui/h/default/map")
        shown = places(page)
        overflow = page.evaluate("document.documentElement.scrollWidth")
    assert len({left for left, _, _ in shown.values()}) == 1
    assert overflow == 390


def test_small_pool_has_four_devices_in_a_row(story):
    with story.page(viewport={"width": 1400, "height": 900}) as page:
        page.goto(f"{story.url}/ui/h/default/map")
        rows = page.eval_on_selector_all(
            ".map-node:not(.wide)",
            "all => all.map(one => [one.querySelector('h3 .name').textContent,"
            " new Set([...one.querySelectorAll('svg > g rect')].map(each =>"
            " each.getAttribute('y'))).size])",
        )
    assert {name.split("/")[-1]: count for name, count in rows} == {
        "eight": 2,
        "four": 1,
        "one": 1,
        "sixteen": 4,
    }


def test_pool_with_an_open_table_has_the_whole_width(story):
    with story.page(viewport={"width": 1400, "height": 900}) as page:
        page.goto(f"{story.url}/ui/h/default/map")
        before = places(page)
        page.locator(".map-node:not(.wide) summary").first.click()
        after = places(page)
    grown = {name for name in before if after[name][2] > before[name][2]}
    assert grown == {"eight"}
    assert after["eight"][2] == after["very-large"][2]


@pytest.mark.parametrize(("width", "fades"), [(390, True), (1440, False)])
def test_strip_of_devices_that_goes_on_fades_out(story, width, fades):
    """A device that is cut at the edge looks like the last one."""
    with story.page(viewport={"width": width, "height": 900}) as page:
        page.goto(f"{story.url}/ui/h/default/map?pool=very-large")
        hidden, mask, clear = page.locator(".strip-picture").first.evaluate(
            "one => { one.scrollLeft = one.scrollWidth; return [one.scrollWidth > one.clientWidth,"
            " getComputedStyle(one).maskImage, one.getBoundingClientRect().right"
            " - one.querySelector('svg').getBoundingClientRect().right]; }"
        )
    assert hidden is fades
    assert (mask != "none") is fades
    assert clear >= (48 if fades else 0)
