"""Measures how lanes pan in a browser: `python -m bench.panning [--objects N] [--events N]`.

The history is the one of `bench.folding`: pods with a claim each, of which 2,000 pods are alive.
Its page of lanes is opened in headless Chromium, as it is made by default and as one picture of
all objects, and is panned by a script for some seconds: the page up and down, and the picture from
side to side where it is wider than its place. Printed are the time between frames
(requestAnimationFrame), how many frames came later than a screen of 60 Hz shows them, and the work
of the page's thread in each, which depends less on what else the machine does. Nothing is printed
without a browser: `apt-get install chromium`.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

import anyio
import httpx
from playwright.async_api import CDPSession, Page, Route, async_playwright

from app.settings import Settings
from bench import folding
from bench.recorded import recorded_history
from tests.web.browsing import BROWSER, FLAGS

NAME = "long"
FRAMES = 240
STEP = 16
"""The pixels of a pan in one frame."""
LATE_MS = 1.5 * 1_000 / 60
"""A frame that comes later than this after the one before has left one out."""
WIDTHS = (390, 1280)

_PAN = """async ([frames, step, sideways]) => {
  const place = sideways ? document.querySelector(".picture") : document.scrollingElement;
  const size = sideways ? place.scrollWidth - place.clientWidth
    : place.scrollHeight - innerHeight;
  if (size < step) return [];
  const next = () => new Promise(requestAnimationFrame);
  const move = (to) => { if (sideways) place.scrollLeft = to; else place.scrollTop = to; };
  const times = [await next()];
  for (let number = 1; number <= frames; number += 1) {
    const way = (number * step) % (2 * size);
    move(way < size ? way : 2 * size - way);
    times.push(await next());
  }
  return times.slice(1).map((time, place) => time - times[place]);
}"""


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.panning", description=__doc__)
    parser.add_argument("--objects", type=int, default=2_000, help="lanes in one picture")
    parser.add_argument("--events", type=int, default=60_000)
    options = parser.parse_args(arguments)
    if BROWSER:
        anyio.run(measure, options.events, options.objects)


async def measure(events: int, objects: int) -> None:
    """Fill a history, and pan its lanes by default and with that many objects in one picture."""
    ways = {
        "as by default": Settings(),
        "in one picture": Settings(lanes_max=objects, lanes_shapes_max=10 * objects),
    }
    for name, settings in ways.items():
        async with recorded_history(NAME, folding.pages(events), settings) as recorded:
            await _read(recorded.client, recorded.last)
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(
                    executable_path=BROWSER, args=list(FLAGS)
                )
                for width in WIDTHS:
                    page = await browser.new_page(viewport={"width": width, "height": 900})
                    await page.route("**/*", _Server(recorded.client).answer)
                    await _pan(page, f"{name}, {width} pixels")
                    await page.close()
                await browser.close()


async def _read(client: httpx.AsyncClient, revision: int) -> None:
    examined = 0
    while examined < revision:
        answer = await client.get(f"/redra/v1/histories/{NAME}/timeline?limit=1")
        examined = answer.json()["examined"]


class _Server:
    """The answers of the server to what a page asks for."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def answer(self, route: Route) -> None:
        """Answer one request of a page."""
        parts = urlsplit(route.request.url)
        if route.request.resource_type == "eventsource":
            await route.abort()
            return
        answer = await self._client.get(f"{parts.path}?{parts.query}")
        await route.fulfill(
            status=answer.status_code,
            body=answer.content,
            content_type=answer.headers.get("content-type", ""),
        )


async def _pan(page: Page, name: str) -> None:
    await page.goto(f"http://redra/ui/h/{NAME}/lanes")
    await page.wait_for_timeout(1_000)
    # The table below the picture has a row for each lane.
    lanes = await page.locator("table.lanes tbody tr").count()
    shapes = await page.locator(".picture svg *").count()
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable")
    for way, sideways in (("up and down", False), ("sideways", True)):
        began = await _work(session)
        deltas = await page.evaluate(_PAN, [FRAMES, STEP, sideways])
        work = await _work(session) - began
        if not deltas:
            print(f"{name}, {way}: nothing to pan")
            continue
        late = sum(delta > LATE_MS for delta in deltas)
        print(
            f"{name}, {way} ({lanes:,} lanes, {shapes:,} elements): "
            f"{1_000 / statistics.mean(deltas):.0f} frames/s, median "
            f"{statistics.median(deltas):.1f} ms, longest {max(deltas):.1f} ms, "
            f"{late} of {len(deltas)} late, {work / len(deltas) * 1_000:.1f} ms of work each"
        )


async def _work(session: CDPSession) -> float:
    """The seconds that the thread of the page has worked."""
    answer = await session.send("Performance.getMetrics")
    return next(float(one["value"]) for one in answer["metrics"] if one["name"] == "TaskDuration")


if __name__ == "__main__":
    main(sys.argv[1:])
