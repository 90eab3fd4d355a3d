"""Hooks of the site: the same files as in the repository, with links where they name each other.

In the repository a page names another one as it is found there, `docs/how-to/why.md`, which needs
no renderer. Here such a name becomes a link. README.md is the first page; the pages that lie beside
`docs` are taken in.
"""

import re
from pathlib import Path
from posixpath import dirname, relpath
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation

BESIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "bench/README.md": "measurements.md",
    "bench/diary.md": "measurements-diary.md",
    "examples/README.md": "examples.md",
}
"""Pages of the repository outside `docs`, and where the site has them."""

ORDER = ("Home", "Tutorial", "Examples", "How to", "Explanation", "Reference", "Parity")
"""What the navigation begins with; everything else follows in the order of the files."""

_ROOT = Path(__file__).resolve().parent.parent
_NAMED = re.compile(r"(?<![\[`])`([\w./-]+\.md)`(?!`)")
_FENCE = re.compile(r"^(```.*?^```[^\n]*$)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that lie beside `docs`."""
    for path, place in BESIDE.items():
        text = (_ROOT / path).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Make links of the names of pages, but not within code blocks."""
    here = page.file.src_uri

    def linked(match: re.Match[str]) -> str:
        place = place_of(match.group(1), here)
        if place is None or place == here or files.get_file_from_path(place) is None:
            return match.group()
        return f"[{match.group()}]({relpath(place, dirname(here) or '.')})"

    parts = _FENCE.split(markdown)
    return "".join(part if part.startswith("```") else _NAMED.sub(linked, part) for part in parts)


def place_of(name: str, here: str) -> str | None:
    """Where the site has the page of this name; None for one that it cannot have."""
    if name in BESIDE:
        return BESIDE[name]
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return f"{dirname(here)}/{name}".lstrip("/") if "/" not in name else None


def on_nav(nav: Navigation, *, config: Any, files: Files) -> Navigation:
    """Put what a newcomer needs first."""

    def rank(item: Any) -> int:
        title = item.title or ("Home" if getattr(item, "is_homepage", False) else "")
        return ORDER.index(title) if title in ORDER else len(ORDER)

    nav.items.sort(key=rank)
    return nav
