"""The texts in a page of HTML, or in a part of one: what is pasted, and what GitHub shows of files.

Pasted text stands in `<pre>`, `<textarea>` and `<codeblock>`. GitHub shows a file as a table with a
cell for each line, and puts its lines as JSON into a script; a change is a table with a marker for
each line, which is read as the patch that it shows:

    <td class="blob-code blob-code-addition">
      <span class="blob-code-inner" data-code-marker="+">kind: Pod</span>       +kind: Pod

A table whose titles are those of kubectl is a text with bars between its cells.

Exports in XML hold such parts of pages, or JSON, as texts that are escaped once more:

    <description>&lt;pre&gt;apiVersion: v1 …        <v>{&quot;kind&quot;:&quot;Event&quot;, …
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import msgspec

from app.domain.errors import InputError

_HTML = re.compile(
    r"(?:\s|\ufeff|<\?xml\b[^>]{0,200}>|<!--(?:(?!-->).){0,2000}-->)*"
    r"<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
"""A page, also behind comments and the declaration of XHTML."""

_PART = re.compile(
    r"\s*<(?:article|blockquote|codeblock|div|h[1-6]|li|ol|p|pre|section|span|table|tbody|td|tr|ul)"
    r"(?:\s[^<>]{0,2000})?>",
    re.IGNORECASE,
)
"""The beginning of a part of a page, such as a comment that was copied or that an API rendered."""

_ESCAPED = re.compile(r"&(?:quot|#34|#x22);")
_XML = re.compile(r"\s*<(?:\?xml|testsuites?)\b")
_OF_TESTS = re.compile(r"<testcase\b")
_BREAK = "&#xA;"
"""A line break within an element, as Go writes results of tests in JUnit's XML."""

_IN_XML = re.compile(r"&lt;pre\b|&quot;(?:apiVersion|kind)&quot;", re.IGNORECASE)
_CDATA = re.compile(r"(<!\[CDATA\[(?:(?!\]\]>)[\s\S])*+)")
_PASTED = re.compile(r"(<pre\b[^<>\n]{0,200}>)((?:(?!</?pre\b)[\s\S])*+)")
_ELEMENT = re.compile(r"</?[A-Za-z][^<>]{0,2000}+>")
_OTHER_TAG = re.compile(
    r"</?(?!(?:a|article|b|blockquote|br|clipboard-copy|code(?:block)?|d[dlt]|del|details|div|em|g-emoji"
    r"|h[1-6r]|i|img|input|ins|kbd|li|mark|ol|p|path|pre|s|samp|section|small|span|strong|su[bp]|summary|svg"
    r"|table|tbody|t[dhr]|thead|time|tt|u|ul|var)[\s/>])[A-Za-z]",
    re.IGNORECASE,
)
"""A word between angle brackets that is no element which such a part has, such as `<none>`."""

_PASTING = ("pre", "textarea", "codeblock")
"""The elements that hold pasted text; those with code in Teams are codeblocks."""

_FENCES = ("```", "~~~")

_LEFT_OUT = re.compile(r"not rendered by default|diff is too large|can.t show files that are this")
"""The text that GitHub writes in the place of a change or file that it does not show."""

_CELLS = frozenset({"blob-code-inner", "diff-text-inner", "js-file-line"})
_SIGNS = {
    "blob-code-addition": "+",
    "blob-code-deletion": "-",
    "blob-code-context": " ",
    "blob-code-hunk": "@",
    "addition": "+",
    "deletion": "-",
    "context": " ",
}
_TYPES = {"ADDITION": "+", "DELETION": "-", "CONTEXT": " ", "INJECTED_CONTEXT": " ", "HUNK": "@"}
_TITLES = frozenset({"NAME", "NAMESPACE", "LAST SEEN"})
"""The first titles of tables of kubectl."""

_SHOWN_IN = ("td", "code", "span", "div")

LEVELS_MAX = 32
"""Levels of the JSON in a script that are searched for lines."""

UNFINISHED_MAX = 8
"""Tags and comments without an end after which the rest of a page is not read.

The library looks for the end of each in the whole rest of the page.
"""


@dataclass(frozen=True, slots=True)
class Pasted:
    """A text of a page and the line of the page where it begins.

    `is_gathered` is true for a text whose lines do not stand below each other in the page. `way` is
    the element that holds it.
    """

    line: int
    lines: list[str]
    is_gathered: bool = False
    way: str = ""


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a page, the number of other visible ones, and the lines of omissions."""

    pasted: list[Pasted]
    others: int
    left_out: list[int]


def unescaped(text: str) -> str:
    """The text; of an export in XML with parts of pages or JSON in it, these as they were.

    Of results of tests whose line breaks are escaped it is what stands between the elements. A text
    in which every quote and angle is escaped was taken out of a page.
    """
    if _XML.match(text) is None:
        is_escaped = _ESCAPED.search(text) is not None and not any(each in text for each in '<>"')
        return html.unescape(text) if is_escaped else text
    parts = _CDATA.split(text)
    if _BREAK in text and _OF_TESTS.search(text) is not None:
        parts[::2] = [html.unescape(_ELEMENT.sub("\n", part)) for part in parts[::2]]
        return "".join(parts)
    if _IN_XML.search(text) is None:
        return text
    # What stands between CDATA and its end is as it was.
    parts[::2] = [_PASTED.sub(_plain, html.unescape(part)) for part in parts[::2]]
    return "".join(parts)


def _plain(match: re.Match[str]) -> str:
    """The text between `<pre>` and `</pre>` without elements, such as colours, and escapes."""
    return match[1] + html.unescape(_ELEMENT.sub("", match[2]))


def is_html(text: str) -> bool:
    """True for a page of HTML, and for a part of one with `<pre>`.

    Somebody who writes `<pre>` in Markdown or in a wiki pastes texts as they are, with `<none>` in
    tables; in a page such a word is escaped.
    """
    return _HTML.match(text) is not None or (
        _PART.match(text) is not None
        and ("</pre>" in text or "</codeblock>" in text)
        and not any(fence in text for fence in _FENCES)
        and _OTHER_TAG.search(text) is None
    )


def without_objects(name: str) -> InputError:
    """The problem of a page in which nothing that it shows is an object."""
    return InputError(
        "it is a page of HTML, and no text, file or change that it shows holds objects",
        place=name,
        cure="save the text itself, of a page with changes the patch (.patch or .diff)",
    )


def as_lines(text: str) -> str:
    """The pasted texts of a page or an export, each at its line of the page if that is free."""
    text = unescaped(text)
    if not is_html(text):
        return text
    lines = list[str]()
    for pasted in sorted(texts(text).pasted, key=lambda each: each.line):
        lines += [""] * (pasted.line - 1 - len(lines))
        lines += pasted.lines
    return "\n".join(lines)


def texts(text: str) -> Texts:
    """The texts of a page.

    One that it holds in two ways, as GitHub's do, counts once. One that it shows twice in the same
    way was printed twice, and may say that something is again as it was.
    """
    page = _PageParser()
    page.feed(text)
    page.close()
    pasted: list[Pasted] = []
    ways: dict[str, str] = {}
    for block in page.blocks:
        content = "\n".join(block.lines).rstrip("\n")
        if ways.setdefault(content, block.way) == block.way:
            pasted.append(block)
    return Texts(pasted, page.others, page.left_out)


@dataclass(slots=True)
class _LineText:
    """The text of an element that holds one line of a file or of a change."""

    tag: str
    marker: str
    depth: int = 1
    parts: list[str] = field(default_factory=list)


class _PageParser(HTMLParser):
    """A parser of an HTML page; elements within a text, such as colours, are ignored."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Pasted] = []
        self.others = 0
        self.left_out: list[int] = []
        self._text: list[str] = []
        self._line = 1
        self._way = ""
        self._depth = 0
        self._unseen = 0
        self._script: list[str] | None = None
        self._table: list[str] = []
        self._table_line = 1
        self._sign = ""
        self._is_left = False
        self._cell: _LineText | None = None
        self._unfinished = 0
        self._rows: list[list[str]] = []
        self._rows_line = 1

    def parse_starttag(self, i: int) -> int:
        """The end of the tag at an index; negative for a tag without an end."""
        return self._bounded(super().parse_starttag(i))

    def parse_comment(self, i: int, report: bool = True) -> int:
        """The end of the comment at an index; negative for a comment without an end."""
        return self._bounded(super().parse_comment(i, report))

    def _bounded(self, end: int) -> int:
        """The end of a part of the page, or that of the page at the bound of unfinished parts."""
        if end >= 0:
            return end
        self._unfinished += 1
        if self._unfinished <= UNFINISHED_MAX:
            return end
        self.left_out.append(self.getpos()[0])
        return len(self.rawdata)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a text, a table of lines, or a line of it; a `<br>` within a text ends a line."""
        if tag in _PASTING:
            if not self._depth:
                self._line, self._way = self.getpos()[0], tag
            self._depth += 1
        elif tag == "br" and self._depth:
            self._text.append("\n")
        elif tag in ("script", "style"):
            self._unseen += 1
            if tag == "script" and ("type", "application/json") in attrs:
                self._script, self._line = [], self.getpos()[0]
        elif tag == "table":
            self._end_table()
            self._rows, self._rows_line = [], self.getpos()[0]
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th") and self._rows:
            self._rows[-1].append("")
        if tag in _SHOWN_IN and not self._depth:
            self._begin_cell(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        """End what the tag began."""
        if tag in ("script", "style"):
            self._unseen = max(0, self._unseen - 1)
            if self._script is not None:
                self._take_script("".join(self._script))
                self._script = None
        elif tag in _PASTING and self._depth:
            self._depth -= 1
            if not self._depth:
                self._end()
        elif tag == "table":
            self._end_table()
        elif self._cell is not None and tag == self._cell.tag:
            self._cell.depth -= 1
            if not self._cell.depth:
                self._end_cell(self._cell)

    def handle_data(self, data: str) -> None:
        """Keep text within a text; count other visible texts."""
        if self._rows and self._rows[-1] and not self._unseen:
            self._rows[-1][-1] += data
        if self._script is not None:
            self._script.append(data)
        elif self._depth:
            self._text.append(data)
        elif self._cell is not None:
            self._cell.parts.append(data)
        elif data.strip() and not self._unseen:
            self.others += 1
            if _LEFT_OUT.search(data):
                self.left_out.append(self.getpos()[0])

    def close(self) -> None:
        """End a text that the page leaves open."""
        super().close()
        if self._script is not None:
            # The library keeps back what stands behind the tag of a script without an end.
            self._take_script("".join(self._script) + self.rawdata)
        if self._text:
            self._end()
        if self._cell is not None:
            self._end_cell(self._cell)
        self._end_table()

    def _end(self) -> None:
        self.blocks.append(Pasted(self._line, "".join(self._text).split("\n"), way=self._way))
        self._text = []

    def _begin_cell(self, tag: str, attrs: dict[str, str | None]) -> None:
        if self._cell is not None:
            self._cell.depth += tag == self._cell.tag
            return
        classes = (attrs.get("class") or "").split()
        if tag == "td" or "diff-text" in classes:
            self._sign = next((_SIGNS[name] for name in classes if name in _SIGNS), "")
            self._is_left = attrs.get("data-split-side") == "left"
        if _CELLS.intersection(classes):
            self._cell = _LineText(tag=tag, marker=attrs.get("data-code-marker") or "")

    def _end_cell(self, cell: _LineText) -> None:
        """Keep the line. A change in two columns shows a line without changes in both."""
        self._cell = None
        text = "".join(cell.parts).removesuffix("\n")
        if self._is_left and self._sign == " ":
            return
        if not self._table:
            self._table_line = self.getpos()[0]
        if self._sign in ("", "@") or (text.startswith(self._sign) and not cell.marker):
            self._table.append(text)
        else:
            self._table.append(self._sign + text)

    def _end_table(self) -> None:
        if self._table:
            self.blocks.append(Pasted(self._table_line, self._table, True, "table"))
        self._table = []
        titles = next(iter(self._rows), [])
        if titles and titles[0].strip() in _TITLES:
            bars = [f"| {' | '.join(_with_bar(cell) for cell in row)} |" for row in self._rows]
            self.blocks.append(Pasted(self._rows_line, bars, True, "table"))
        self._rows = []

    def _take_script(self, text: str) -> None:
        """Keep the lines of files and changes in the JSON of a script."""
        if '"rawLines"' not in text and '"diffLines"' not in text:
            return
        try:
            tree = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            self.left_out.append(self._line)
            return
        for lines in _lines_in(tree, 0):
            self.blocks.append(Pasted(self._line, lines, True, "script"))


def _with_bar(cell: str) -> str:
    """The text of a cell on one line, as a table between bars has it."""
    return " ".join(cell.split()).replace("|", "\\|")


def _lines_in(value: Any, depth: int) -> Iterator[list[str]]:
    """The lines of the files and changes in a decoded value."""
    if depth > LEVELS_MAX:
        return
    if isinstance(value, list):
        for item in value:
            yield from _lines_in(item, depth + 1)
        return
    if not isinstance(value, dict):
        return
    for name, part in value.items():
        if name == "rawLines" and isinstance(part, list):
            yield [line for line in part if isinstance(line, str)]
        elif name == "diffLines" and isinstance(part, list):
            yield _patch([line for line in part if isinstance(line, dict)])
        else:
            yield from _lines_in(part, depth + 1)


def _patch(lines: list[dict[str, Any]]) -> list[str]:
    """The lines of a change as those of a patch; the texts may have their signs already."""
    changes = [
        (_TYPES.get(str(line.get("type")), ""), line["text"])
        for line in lines
        if isinstance(line.get("text"), str)
    ]
    signed = all(text[:1] == sign for sign, text in changes if sign in ("+", "-"))
    return [text if signed or sign in ("", "@") else sign + text for sign, text in changes]
