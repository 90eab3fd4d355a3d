"""Tables of kubectl between bars, commas or semicolons of a tool or a person: Markdown, psql, CSV.

Jira has two bars beside each title. A page in a browser has words for titles, and gives tabs
between its cells when it is copied; k9s writes its screen with commas (`n/a` for no value).

    | NAME  | READY | STATUS  |            NAME    READY   STATUS
    |-------|:-----:|---------|    →       ----
    | web-1 | 0/1   | Pending |            web-1   0/1     Pending

Only tables with titles of kubectl, and of pages about pods, are taken; the number of lines stays.
"""

import csv
import re
from collections.abc import Iterator, Sequence

_BOX = str.maketrans(dict.fromkeys("│┃║", "|") | dict.fromkeys("─━═", "-"))
_BOX |= str.maketrans(dict.fromkeys("┌┬┐├┼┤└┴┘┏┳┓┣╋┫┗┻┛╔╦╗╠╬╣╚╩╝╭╮╰╯╞╪╡╒╤╕╘╧╛┡╇┩┢┪", "+"))
"""Lines of boxes, and the signs of ASCII for them."""

_ROW = re.compile(r"\s*\|(?P<cells>.*)\|\s*")
_TITLES = re.compile(r"\s*(?:\|\|[^|]+)+\|\|\s*")
_BORDER = re.compile(r"\s*[|+](?=[^-]*-)[-=:+| \t]*[|+]\s*")
_TITLE = re.compile(r"[A-Z][A-Z0-9()._ -]*")
_FIRST = ("NAME", "NAMESPACE", "EVENT", "LAST SEEN")
_WITH_MARKS = re.compile(rf'"?(?:{"|".join(_FIRST)})"?(?P<mark>[,;])')
"""The first title of a table that a program separates by commas, or by semicolons as Excel does."""

_OF_PAGE = re.compile(r'"?Name"?[\t,].*"?Namespace"?[\t,]')
_NO_VALUE = ("n/a", "-")
_BAR = re.compile(r"(?<!\\)\|")
_ESCAPED = re.compile(r"\\([|<>_*`\\])")
_GAP = "   "
_RULE = "----"
"""The line below titles; three dashes would be the border of a YAML document."""


def plain(lines: Sequence[str]) -> list[str]:
    """The lines, with such tables as kubectl prints them."""
    out = list(lines)
    drawn = [line if line.isascii() else line.translate(_BOX) for line in lines]
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and (_ROW.fullmatch(drawn[end]) or _BORDER.fullmatch(drawn[end])):
            end += 1
        if end > at and _TITLES.fullmatch(drawn[at]):
            drawn[at] = drawn[at].replace("||", "|")
        rows: list[list[str] | None] = [_cells_of(line) for line in drawn[at:end]]
        if end == at and (separated := _WITH_MARKS.match(lines[at])) is not None:
            rows += _separated(lines, at, separated["mark"])
            end += len(rows)
        elif end == at and _OF_PAGE.match(lines[at]):
            rows += _of_page(lines, at)
            end += len(rows)
        if rows and (table := _table(rows, lines[at:end])) is not None:
            out[at:end] = table
        at = max(end, at + 1)
    return out


def _separated(lines: Sequence[str], at: int, mark: str = ",") -> Iterator[list[str]]:
    """The rows of a table with commas whose titles are at a line. kubectl prints no line breaks."""
    width = 0
    for line in lines[at:]:
        try:
            (cells,) = csv.reader([line], delimiter=mark, strict=True)
        except (ValueError, csv.Error):
            return
        if len(cells) != (width or len(cells)):
            return
        shown = [re.sub(r"\s{2,}", " ", cell.strip()) for cell in cells]
        # k9s has titles such as %CPU/R.
        yield (
            ["<none>" if cell in _NO_VALUE else cell for cell in shown]
            if width
            else [re.sub(r"[%/]+", "-", title).strip("-") for title in shown]
        )
        width = len(cells)


def _of_page(lines: Sequence[str], at: int) -> list[list[str]]:
    """The rows of a table of pods that a page in a browser shows, with the namespace first."""
    titles, *rows = _separated(lines, at, "\t" if "\t" in lines[at] else ",")
    upper = [title.upper() for title in titles]
    if len({*upper}) < len(upper) or not {"NAMESPACE", "READY", "STATUS", "RESTARTS"} <= {*upper}:
        return []
    order = sorted(range(len(upper)), key=lambda index: upper[index] != "NAMESPACE")
    return [[row[index] for index in order] for row in (upper, *rows)]


def _table(rows: Sequence[list[str] | None], lines: Sequence[str]) -> list[str] | None:
    """The lines of a table as kubectl prints them; None for a table that is not one of kubectl.

    A row without cells is a border.
    """
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


def _cells_of(line: str) -> list[str] | None:
    return None if _BORDER.fullmatch(line) else list(_cells(line))


def _cells(line: str) -> Iterator[str]:
    row = _ROW.fullmatch(line)
    for cell in _BAR.split("" if row is None else row["cells"]):
        bare = cell.strip()
        if bare.startswith("**") and bare.endswith("**"):
            bare = bare[2:-2]
        text = _ESCAPED.sub(r"\1", bare.strip("`"))
        # Two spaces would end a cell.
        yield re.sub(r"\s{2,}", " ", text.replace("&lt;", "<").replace("&gt;", ">"))
