"""Tables of kubectl that a tool or a person has set between bars: Markdown, psql, MySQL.

    | NAME  | READY | STATUS  |            NAME    READY   STATUS
    |-------|:-----:|---------|    →       ----
    | web-1 | 0/1   | Pending |            web-1   0/1     Pending

Only tables with titles of kubectl are taken; the number of lines stays.
"""

import re
from collections.abc import Iterator, Sequence

_ROW = re.compile(r"\s*\|(?P<cells>.*)\|\s*")
_BORDER = re.compile(r"\s*[|+][-=:+| \t]*-[-=:+| \t]*[|+]\s*")
_TITLE = re.compile(r"[A-Z][A-Z0-9()._ -]*")
_FIRST = ("NAME", "NAMESPACE", "EVENT", "LAST SEEN")
_BAR = re.compile(r"(?<!\\)\|")
_MARKS = re.compile(r"^(?:\*\*|`+)(?P<text>.*?)(?:\*\*|`+)$")
_ESCAPED = re.compile(r"\\([|<>_*`\\])")
_GAP = "   "
_RULE = "----"
"""The line below titles; three dashes would be the border of a YAML document."""


def plain(lines: Sequence[str]) -> list[str]:
    """The lines, with such tables as kubectl prints them."""
    out = list(lines)
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and (_ROW.fullmatch(lines[end]) or _BORDER.fullmatch(lines[end])):
            end += 1
        if end > at and (table := _table(lines[at:end])) is not None:
            out[at:end] = table
        at = max(end, at + 1)
    return out


def _table(lines: Sequence[str]) -> list[str] | None:
    """The lines of a table as kubectl prints them; None for a table that is not one of kubectl."""
    rows = [None if _BORDER.fullmatch(line) else list(_cells(line)) for line in lines]
    titles = next((row for row in rows if row is not None), [])
    if not titles or titles[0] not in _FIRST or not all(map(_TITLE.fullmatch, titles)):
        return None
    begin = rows.index(titles)
    whole = [row for row in rows[begin:] if row is not None and len(row) == len(titles)]
    widths = [max(len(row[at]) for row in whole) for at in range(len(titles))]
    shown: list[str] = list(lines[:begin])
    for number, row in enumerate(rows[begin:], start=begin):
        if row is None:
            # The lower border ends the table, as an empty line does.
            shown.append(_RULE if number == begin + 1 else "")
        elif len(row) == len(titles):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            shown.append(_GAP.join(cells).rstrip())
        else:
            shown.append(lines[number])
    return shown


def _cells(line: str) -> Iterator[str]:
    row = _ROW.fullmatch(line)
    for cell in _BAR.split("" if row is None else row["cells"]):
        bare = cell.strip()
        marked = _MARKS.match(bare)
        text = _ESCAPED.sub(r"\1", bare if marked is None else marked["text"])
        # Two spaces would end a cell.
        yield re.sub(r"\s{2,}", " ", text.replace("&lt;", "<").replace("&gt;", ">"))
