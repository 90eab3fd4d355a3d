"""The text that is pasted in a page of HTML (`<pre>`)."""

import re
from html.parser import HTMLParser

_HTML = re.compile(r"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


def is_html(text: str) -> bool:
    """True for a page of HTML."""
    return _HTML.match(text) is not None


def pasted(text: str) -> tuple[list[tuple[int, list[str]]], int]:
    """The `<pre>` contents of a page, each with its first line, and the number of other texts."""
    page = _Page()
    page.feed(text)
    page.close()
    return page.blocks, page.others


class _Page(HTMLParser):
    """A parser of an HTML page; elements within a `<pre>`, such as colours, are ignored."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[tuple[int, list[str]]] = []
        self.others = 0
        self._text: list[str] = []
        self._line = 1
        self._depth = 0
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block at `<pre>`; a `<br>` within it ends a line."""
        if tag == "pre":
            self._depth += 1
            self._line = self.getpos()[0]
        elif tag == "br" and self._depth:
            self._text.append("\n")
        elif tag in ("script", "style"):
            self._unseen += 1

    def handle_endtag(self, tag: str) -> None:
        """End the block at the outermost `</pre>`."""
        if tag in ("script", "style"):
            self._unseen = max(0, self._unseen - 1)
        if tag == "pre" and self._depth:
            self._depth -= 1
            if not self._depth:
                self._end()

    def handle_data(self, data: str) -> None:
        """Keep text within `<pre>`; count other visible texts."""
        if self._depth:
            self._text.append(data)
        elif data.strip() and not self._unseen:
            self.others += 1

    def close(self) -> None:
        """End a block that the page leaves open."""
        super().close()
        if self._text:
            self._end()

    def _end(self) -> None:
        self.blocks.append((self._line, "".join(self._text).split("\n")))
        self._text = []
