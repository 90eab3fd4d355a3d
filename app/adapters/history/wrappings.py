"""What programs wrap around the lines of a text, taken off again.

Terminals colour words, pages of HTML hold what was pasted in `<pre>`, a comparison begins each line
of a new file with a plus sign.
"""

import re
from html.parser import HTMLParser

_COLOURS = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[()][A-Z0-9])")
_HTML = re.compile(r"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_NEW_OBJECT = re.compile(r"""\+(?:- )?(?:(?:apiVersion|kind|metadata|items):|\{\s*$|\{\s*")""")
_FENCE = re.compile(r"[ \t>]*(?:```|~~~)")
_HEADINGS = ("@@", "+++", "---", "diff ", "index ", "new file ", "\\\\ ")


def uncoloured(line: str) -> str:
    """The line without what tells a terminal how to show it."""
    return _COLOURS.sub("", line) if "\x1b" in line else line


def without_additions(lines: list[str]) -> list[str]:
    """The lines, where a comparison shows whole new documents without its plus signs.

    Only a run of added lines that nothing else of the file surrounds is a document: between lines
    of context it would be a part of one.
    """
    out = list(lines)
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end].startswith("+") and lines[end][:4] != "+++ ":
            end += 1
        if end > at and _is_new_file(lines, at, end):
            out[at:end] = [line[1:] for line in lines[at:end]]
        at = max(end, at + 1)
    return out


def _is_new_file(lines: list[str], at: int, end: int) -> bool:
    if not any(_NEW_OBJECT.match(line) for line in lines[at:end]):
        return False
    before = lines[at - 1] if at else ""
    after = lines[end] if end < len(lines) else ""
    return all(
        not line.strip() or _FENCE.match(line) is not None or line.startswith(_HEADINGS)
        for line in (before, after)
    )


def is_html(text: str) -> bool:
    """True for a page of HTML."""
    return _HTML.match(text) is not None


def pasted(text: str) -> tuple[list[tuple[int, list[str]]], int]:
    """What stands in the `<pre>` of a page, each with its first line, and how many other texts."""
    page = _Page()
    page.feed(text)
    page.close()
    return page.blocks, page.others


class _Page(HTMLParser):
    """A page while it is read; marks within a `<pre>`, such as those of colours, are passed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[tuple[int, list[str]]] = []
        self.others = 0
        self._text: list[str] = []
        self._line = 1
        self._depth = 0
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a stretch at `<pre>`; a `<br>` in it ends a line."""
        if tag == "pre":
            self._depth += 1
            self._line = self.getpos()[0]
        elif tag == "br" and self._depth:
            self._text.append("\n")
        elif tag in ("script", "style"):
            self._unseen += 1

    def handle_endtag(self, tag: str) -> None:
        """End the stretch at the last `</pre>`."""
        if tag in ("script", "style"):
            self._unseen = max(0, self._unseen - 1)
        if tag == "pre" and self._depth:
            self._depth -= 1
            if not self._depth:
                self._end()

    def handle_data(self, data: str) -> None:
        """Keep what is pasted, count what else a reader of the page sees."""
        if self._depth:
            self._text.append(data)
        elif data.strip() and not self._unseen:
            self.others += 1

    def close(self) -> None:
        """End a stretch that the page leaves open."""
        super().close()
        if self._text:
            self._end()

    def _end(self) -> None:
        self.blocks.append((self._line, "".join(self._text).split("\n")))
        self._text = []
