r"""The rows of the table kine as the shells of databases show them, from titles or by their place.

    id,name,created,deleted,prev_revision,value     CSV; also with tabs, as mysql writes it
    2|/registry/pods/a/b|1|0|0|0|0|{"kind": …}|     sqlite3, which writes no titles by itself
    | id | name | created | …                       mysql and sqlite3 with a frame
     id | name | created | …                        psql
            id = 2                                  sqlite3 -line, a cell a line
            id: 2                                   mysql with \G
    -[ RECORD 2 ]---+---                            psql -x, with bars

Parity: history-formats.md 13.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence

from app.domain.errors import InputError

COLUMNS = ("id", "name", "created", "deleted", "prev_revision", "value")
ALL_COLUMNS = (
    *("id", "name", "created", "deleted", "create_revision", "prev_revision"),
    *("lease", "value", "old_value"),
)
"""The columns of the table, in its order."""

Row = dict[str, str]

_CURE = f"export {', '.join(COLUMNS)} with a header line"
_SEPARATORS = (",", "\t", "|")
"""What stands between the cells of an export; psql and sqlite3 have bars, mysql has tabs."""

_TITLES = re.compile(r"[ \t|]*[\"']?id[\"']?[^\S\t]*+[,\t|].*\bdeleted\b")
_NAMES = (b"prev_revision", b"created", b"deleted")
_LINE_OF_TITLES = re.compile(rb"(?:\xef\xbb\xbf)?[\s\w,|\"'()\x80-\xff]+")
"""Names and what stands between them; JSON, and what a collector writes before them, is other."""

_NOTHING = ("NULL", r"\N")
_KEY = r"(?:compact_rev_key|gap-\d{1,20}|/[^\s,|]{1,700})"
_PADDING = r" {0,900}+"
_BETWEEN = rf"[\"']?{_PADDING}(?P<mark>[,\t|]|(?<=  )){_PADDING}[\"']?"
_ROW = re.compile(
    rf"[ \t|]{{0,900}}+[\"']?\d{{1,20}}+{_BETWEEN}{_KEY}[\"']?"
    rf"{_PADDING}(?P=mark){_PADDING}[\"']?[01tf]\b"
)
"""The beginning of a row; columns with spaces alone between them have an empty mark."""

_FIELD_MARK = r"(?: = | *\| |: )"
_UPRIGHT = (
    rf"^[ \t]*created{_FIELD_MARK}(?:[01]|[tf]|true|false)[ \t]*\r?\n"
    rf"[ \t]*deleted{_FIELD_MARK}(?:[01]|[tf]|true|false)[ \t]*\r?$"
)
ROWS = re.compile(rf"^(?:{_ROW.pattern})|{_UPRIGHT}".encode(), re.MULTILINE)
"""The beginning of rows, or two cells of one."""

_UPRIGHT_ROW = re.compile(_UPRIGHT, re.MULTILINE)
_FIELD = re.compile(rf"\s*(?P<name>[\w()]+){_FIELD_MARK}(?P<value>.*)")
_NEXT_ROW = re.compile(r"-\[ RECORD \d+ \]|\*{3,} *\d+\. row \*{3,}|\s*$")
_SHOWN_VALUE = re.compile(r"(?:hex|quote|to_base64)\(value\)", re.IGNORECASE)
_SPACES = re.compile(r"(?<![^|\t]) ++|(?<! ) ++(?=[|\t\r]|$)")
_FRAME = str.maketrans("\u2502\u2503\u2551", "|||")
_NO_ROW = re.compile(
    r"[-+|\u2500-\u257f :]*|\(\d+ rows?\)\s*|\d+ rows? in set.*|(?:sqlite|mysql|MariaDB.*)>.*"
    r"|\w+[=(-][#>].*| *->.*"
)
"""A rule between rows, a count behind them, or the line in which the next command is awaited."""

_decoder = json.JSONDecoder()


def begins(head: bytes) -> bool:
    """True for an export that begins with titles, in any order, those of its rows among them."""
    first = head.split(b"\n", 1)[0]
    return all(name in first for name in _NAMES) and _LINE_OF_TITLES.fullmatch(first) is not None


def is_shown(head: bytes) -> bool:
    """True for a text that shows rows of the table, with or without titles."""
    return ROWS.search(head.decode("utf-8", "replace").translate(_FRAME).encode()) is not None


def rows(text: str, place: str) -> Iterator[tuple[str, Row]]:
    """The rows with their lines. Raises InputError where they do not say what a cell is."""
    if _UPRIGHT_ROW.search(text) is not None:
        yield from _upright(text)
        return
    lines = text.split("\n")
    first = next((at for at, line in enumerate(lines) if _begins(line)), 0)
    if _TITLES.match(lines[first].translate(_FRAME)) is None:
        yield from _by_place(lines, first, place)
        return
    titles = lines[first].translate(_FRAME)
    mark = next((each for each in _SEPARATORS if each in titles), ",")
    table = _cut(lines[first:], mark)
    _, names = next(table, (0, []))
    names = [_SHOWN_VALUE.sub("value", name.strip()) for name in names]
    absent = [name for name in COLUMNS if name not in names]
    if absent:
        raise InputError(f"the export has no column {absent[0]!r}", place=place, cure=_CURE)
    for number, cells in table:
        yield str(first + number), _row(names, cells)


def _begins(line: str) -> bool:
    plain = line.translate(_FRAME)
    return (_TITLES.match(plain) or _ROW.match(plain)) is not None


def _by_place(lines: list[str], first: int, place: str) -> Iterator[tuple[str, Row]]:
    """The rows of a table without titles, which has all columns of the table in its order."""
    match = _ROW.match(lines[first].translate(_FRAME))
    mark = "," if match is None else match["mark"]
    if not mark:
        raise InputError(
            "rows of kine with spaces alone between their cells", place=place, cure=_CURE
        )
    for number, cells in _cut(lines[first:], mark):
        if len(cells) != len(ALL_COLUMNS):
            raise InputError(
                f"the rows have no titles, and {len(cells)} cells where the table has "
                f"{len(ALL_COLUMNS)} columns",
                place=f"{place}:{first + number}",
                cure=_CURE,
            )
        yield str(first + number), _row(ALL_COLUMNS, cells)


def _row(names: Sequence[str], cells: list[str]) -> Row:
    shown = ("" if cell in _NOTHING else cell for cell in cells)
    return dict(zip(names, shown, strict=False))


def _cut(lines: list[str], mark: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line, around which a table with bars has spaces, and perhaps a frame."""
    if mark == ",":
        # Where sqlite3 quotes as SQL does, each text has its marks, and bytes begin with X.
        quote = "'" if re.match(r"'id'|\d+,'", lines[0]) else '"'
        reader = csv.reader(io.StringIO("\n".join(lines)), quotechar=quote)
        for cells in reader:
            if not _is_other(",".join(cells), mark):
                yield reader.line_num, cells
        return
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r")
        bare = line.translate(_FRAME) if line[:1] in "\u2502\u2503\u2551" else line
        if _is_other(bare, mark):
            continue
        if mark == "|" and bare[:1] == "|" and bare.rstrip()[-1:] == "|":
            bare = bare.rstrip()[1:-1]
        yield number, list(_cells(bare, mark))


def _is_other(line: str, mark: str) -> bool:
    """True for a line between or around rows. One that was cut still begins with its id."""
    is_word = mark not in line and not line.lstrip()[:1].isdigit()
    return is_word or _NO_ROW.fullmatch(line) is not None


def _cells(line: str, mark: str) -> Iterator[str]:
    """The cells of a line; one in JSON may hold what stands between cells."""
    if "{" not in line:
        yield from next(csv.reader([_SPACES.sub("", line)], delimiter=mark), [])
        return
    at = 0
    while True:
        begin = at
        while line[begin : begin + 1] == " ":
            begin += 1
        end = -1
        if line[begin : begin + 1] == "{":
            if mark == "\t" and line.find("\\\\", begin) >= 0:
                # mysql doubles each backslash.
                line = line[:begin] + line[begin:].replace("\\\\", "\\")
            try:
                _, end = _decoder.raw_decode(line, begin)
            except (ValueError, RecursionError):
                end = -1
        behind = line.find(mark, max(at, end))
        if behind < 0:
            yield line[at:].strip(" ")
            return
        yield line[at:behind].strip(" ")
        at = behind + 1


def _upright(text: str) -> Iterator[tuple[str, Row]]:
    """The rows of a table with a cell a line; an empty line or a rule stands between them."""
    row, begin = Row(), 1
    for number, line in enumerate((*text.split("\n"), ""), start=1):
        field = _FIELD.match(line.rstrip("\r"))
        if _NEXT_ROW.match(line) is not None or field is None:
            if "deleted" in row:
                yield str(begin), row
            row = Row()
            continue
        begin = begin if row else number
        value = field["value"].strip()
        row[_SHOWN_VALUE.sub("value", field["name"])] = "" if value in _NOTHING else value
