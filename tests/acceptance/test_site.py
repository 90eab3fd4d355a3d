"""The site of the documents: strict, whole, with links, and asking no other host for anything."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests import draws

pytestmark = draws.modules_in_turn("deliveries")

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` builds it, but elsewhere."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Fetched(HTMLParser):
    """The files that a browser loads with a page, and the links that a reader may follow."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        loads = tag == "link" and given.get("rel") not in ("canonical", "prev", "next")
        for place in (given.get("src"), given.get("href") if loads else None):
            if place:
                self.loads.append(place)


def read(page: Path) -> Fetched:
    found = Fetched()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def test_each_page_of_the_documents_is_there(site: Path) -> None:
    docs = ROOT / "docs"
    for page in docs.rglob("*.md"):
        place = page.relative_to(docs).with_suffix("")
        folder = place.parent if place.name in ("index", "README") else place
        assert (site / folder / "index.html").exists(), place
    for name in ("contributing", "changelog", "measurements", "examples"):
        assert (site / name / "index.html").exists(), name


def test_pages_that_are_named_are_links_to_pages_that_are_there(site: Path) -> None:
    first = read(site / "index.html")
    assert "how-to/incident/" in first.links
    assert "examples/" in first.links
    pages = list(site.rglob("*.html"))
    for page in pages:
        for link in read(page).links:
            if re.match(r"[a-z]+:|#", link) or page.name == "404.html":
                continue
            place = (page.parent / link.partition("#")[0]).resolve()
            assert place.exists(), (page.relative_to(site), link)


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        foreign = [place for place in read(page).loads if re.match(r"([a-z]+:)?//", place)]
        assert foreign == [], page.relative_to(site)
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()[\"' ]*(https?:)?//", style.read_text()), style.name
