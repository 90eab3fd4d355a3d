"""Makes the pictures of pages in the documents: `python -m docs.pictures [NAME…]`.

It imports the recordings into a new folder, serves them with `redra up`, and takes each picture
with Chromium. Look at each picture before you commit it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.shared_data import shared_root
from tests.web.browsing import BROWSER, FLAGS

FOLDER = Path(__file__).resolve().parent / "images"

WIDTH = 1280

READY_MILLIS = 120_000
"""The time until a page is complete; it asks for itself again while a part is worked out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A page of a history that was recorded, and the height of what is shown of it, in pixels."""

    name: str
    recording: str
    page: str
    moment: int = 0
    height: int = 760
    scheme: str = "light"

    def address(self, server: str) -> str:
        """The address of the page on a server."""
        moment = f"@{self.moment}" if self.moment else ""
        return f"{server}h/{self.recording}{moment}/{self.page}"


PARTITIONS, TAINTS = "b-mig-partitions", "e-taints"

PICTURES = (
    Picture(name="page-findings", recording=TAINTS, page="", height=800),
    Picture(
        name="page-why",
        recording=PARTITIONS,
        moment=515,
        page="why?kind=pod&namespace=mig&name=ov-15",
        height=775,
    ),
    Picture(
        name="page-object",
        recording=TAINTS,
        moment=512,
        page="object?kind=claim&namespace=taints&name=n-3-dev-xbtmz",
    ),
    Picture(name="page-lanes", recording=TAINTS, page="lanes?since=470"),
    Picture(name="page-device-map", recording=PARTITIONS, moment=515, page="map", height=800),
    Picture(
        name="page-timeline",
        recording=TAINTS,
        page="timeline?kind=PodEvicted",
        height=730,
        scheme="dark",
    ),
    Picture(name="page-capacity", recording=PARTITIONS, page="capacity", height=1400),
)


def main(arguments: Sequence[str] = ()) -> None:
    """Take all pictures, or those that are named."""
    parser = argparse.ArgumentParser(prog="docs.pictures", description=__doc__)
    parser.add_argument("names", nargs="*", help="pictures; default: all")
    parser.add_argument(
        "--recordings", type=Path, default=shared_root() / "histories", help="their folder"
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the pictures are written")
    options = parser.parse_args(arguments)
    if not BROWSER:
        sys.exit("no browser: apt-get install chromium")
    wanted = [each for each in PICTURES if not options.names or each.name in options.names]
    with _served(options.recordings, {each.recording for each in wanted}) as server:
        _take(server, wanted, options.out)


def _take(server: str, pictures: Sequence[Picture], folder: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        for picture in pictures:
            page = browser.new_page(
                viewport={"width": WIDTH, "height": picture.height},
                color_scheme="dark" if picture.scheme == "dark" else "light",
            )
            _open(page, picture.address(server))
            page.screenshot(path=folder / f"{picture.name}.png")
            page.close()
            print(folder / f"{picture.name}.png")
        browser.close()


def _open(page: Page, address: str) -> None:
    """Load a page and wait until it is complete."""
    page.goto(address)
    page.locator("a[data-again]").wait_for(state="detached", timeout=READY_MILLIS)
    page.evaluate("document.fonts.ready")


@contextmanager
def _served(recordings: Path, names: set[str]) -> Iterator[str]:
    """The address of the pages of a server that has these recordings."""
    redra = [sys.executable, "-m", "app.cli"]
    with tempfile.TemporaryDirectory() as data:
        # Settings of the surroundings would be seen in the pictures.
        plain = {key: value for key, value in os.environ.items() if not key.startswith("REDRA_")}
        for name in sorted(names):
            words = ["import", str(recordings / name), "--history", name, "--data", data]
            subprocess.run([*redra, *words], check=True, env=plain, stdout=subprocess.DEVNULL)
        up = [*redra, "up", "--data", data, "--listen", "127.0.0.1:0"]
        with subprocess.Popen(up, env=plain, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield _pages_of(process)
            finally:
                process.terminate()
                process.communicate()


def _pages_of(process: "subprocess.Popen[str]") -> str:
    """The address of the pages that the server prints when it is ready."""
    assert process.stdout is not None, "it is a pipe"
    for line in process.stdout:
        for word in line.split():
            if word.startswith("http") and word.endswith("/ui/"):
                return word
    sys.exit("redra up ended before it was ready")


if __name__ == "__main__":
    main(sys.argv[1:])
