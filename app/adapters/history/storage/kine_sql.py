r"""The rows of the table kine in a dump of SQL, as sqlite3, mysqldump and pg_dump write it.

    INSERT INTO kine VALUES(7,'/registry/pods/a/b',1,0,0,0,0,X'6b38…',NULL);           sqlite3
    INSERT INTO `kine` VALUES (7,'/registry/pods/a/b',1,0,0,0,0,_binary 'k8s\0…',NULL);  mysqldump
    COPY public.kine (id, name, …) FROM stdin;                                         pg_dump
    7	/registry/pods/a/b	1	0	0	0	0	\\x6b38…	\N

Such lines also stand alone, in the archives of pg_dump and where `COPY … TO` or mysqldump with
`--tab` wrote them.

Parity: history-formats.md 13.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from app.adapters.history.storage.shown_rows import ALL_COLUMNS

_DUMP = re.compile(
    rb"^[ \t]*(?:CREATE TABLE(?: IF NOT EXISTS)?|INSERT\s+(?:IGNORE\s+)?INTO|REPLACE INTO|COPY)\s+"
    rb"(?:[`\"]?\w{1,63}[`\"]?\.)?[`\"]?kine[`\"]?(?=[\s(])"
    rb"|^INSERT INTO \"?table\"? VALUES\(\d{1,20},'(?:/|compact_rev_key'|gap-\d)",
    re.MULTILINE,
)
_NAME = rb"(?:[`\"]?\w{1,63}[`\"]?\.)?[`\"]?(?:kine|table)[`\"]?"
"""The name of the table; sqlite3 writes `table` for what a query gives (`.mode insert`)."""
_BEGIN = re.compile(
    rb"^[ \t]*(?:(?:INSERT\s+(?:IGNORE\s+)?|REPLACE )INTO\s+"
    + _NAME
    + rb"\s*(?:\((?P<columns>[^()]*)\)\s*)?VALUES\s*"
    rb"|COPY\s+" + _NAME + rb"\s*\((?P<copied>[^()]*)\)\s*FROM stdin;[ \t]*\r?\n)",
    re.MULTILINE,
)
_ESCAPING = re.compile(rb"`kine`|_binary '")
"""What only MySQL writes, whose texts have escapes with a backslash."""

_BARE = re.compile(
    rb"\d{1,20}\t(?:compact_rev_key|gap-\d{1,20}|/[^\t\n]{1,700})\t[01]\t[01]\t\d{1,20}\t\d{1,20}\t"
)
"""The beginning of a line of `COPY` without the statement above it."""

_WITHOUT_CONFLICT = re.compile(rb"\s*ON CONFLICT DO NOTHING")
"""What pg_dump writes behind the rows with `--on-conflict-do-nothing`."""

_WORD = rb"NULL|0x[0-9a-fA-F]*|-?\d{1,20}|[xX]'[0-9a-fA-F]*'"
_PLAIN = re.compile(rb"\s*(?:(" + _WORD + rb")|'((?:[^']|'')*)')\s*")
_ESCAPED = re.compile(
    rb"\s*(?:(" + _WORD + rb")|(?:_binary\s+)?'((?:[^'\\]|\\.|'')*)')\s*", re.DOTALL
)
_LETTERS = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}
_LETTER = re.compile(rb"\\(.)|''", re.DOTALL)


class KineRow(NamedTuple):
    """The columns of a row that a reader needs."""

    id: int
    name: str
    created: bool
    deleted: bool
    previous: int
    value: bytes


class BrokenDump(Exception):
    """The dump breaks off, or goes on with something else, in a row; `line` is its line."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def is_dump(head: bytes) -> bool:
    """True for the beginning of a dump that makes the table kine or fills it."""
    return _DUMP.search(head) is not None or _BARE.match(head) is not None


def rows(content: bytes) -> Iterator[KineRow]:
    """The rows of a dump, in its order. Raises BrokenDump behind the last whole row."""
    value = _ESCAPED if _ESCAPING.search(content) else _PLAIN
    at = 0
    if _BARE.match(content):
        for cells, end in _copied(content, at):
            yield _row(ALL_COLUMNS, cells, content, end)
        return
    while (begin := _BEGIN.search(content, at)) is not None:
        at = begin.end()
        if begin["copied"] is not None:
            names = _names(begin["copied"])
            for cells, end in _copied(content, at):
                at = end
                yield _row(names, cells, content, at)
        else:
            names = _names(begin["columns"]) if begin["columns"] else ALL_COLUMNS
            for cells, end in _inserted(content, at, value):
                at = end
                yield _row(names, cells, content, at)


def _names(columns: bytes) -> tuple[str, ...]:
    return tuple(
        name.strip(b' \t\r\n`"').decode("ascii", "replace") for name in columns.split(b",")
    )


def _inserted(
    content: bytes, at: int, value: re.Pattern[bytes]
) -> Iterator[tuple[list[bytes | None], int]]:
    """The cells of each row of a statement, and the place behind it."""
    while content[at : at + 1] == b"(":
        cells: list[bytes | None] = []
        while content[at : at + 1] in (b"(", b","):
            match = value.match(content, at + 1)
            if match is None:
                raise BrokenDump(content.count(b"\n", 0, at) + 1)
            try:
                cells.append(_cell(match[1], match[2], is_escaped=value is _ESCAPED))
            except ValueError as problem:
                raise BrokenDump(content.count(b"\n", 0, at) + 1) from problem
            at = match.end()
        if content[at : at + 1] != b")":
            raise BrokenDump(content.count(b"\n", 0, at) + 1)
        at += 1
        yield cells, at
        while content[at : at + 1] in (b",", b"\n", b"\r", b" ", b"\t"):
            at += 1
    if (clause := _WITHOUT_CONFLICT.match(content, at)) is not None:
        at = clause.end()
    if content[at : at + 1] != b";":
        raise BrokenDump(content.count(b"\n", 0, at) + 1)


def _cell(word: bytes | None, text: bytes | None, *, is_escaped: bool) -> bytes | None:
    """The bytes of a value; None for NULL. A number is its digits.

    Raises ValueError for bytes in hexadecimal digits that are damaged.
    """
    if word is None:
        content = text or b""
        if not is_escaped:
            return _hexadecimal(content.replace(b"''", b"'"))
        return _LETTER.sub(
            lambda match: b"'" if match[1] is None else _LETTERS.get(match[1], match[1]), content
        )
    if word == b"NULL":
        return None
    if word[:1] in b"xX":
        return bytes.fromhex(word[2:-1].decode())
    return bytes.fromhex(word[2:].decode()) if word[:2] == b"0x" else word


def _copied(content: bytes, at: int) -> Iterator[tuple[list[bytes | None], int]]:
    """The cells of each line up to the one that ends the table, and the place behind it.

    Lines without a statement may also end with the text.
    """
    is_bare = at == 0
    while content[at : at + 2] != b"\\." and not (is_bare and at == len(content)):
        end = content.find(b"\n", at)
        if end < 0:
            raise BrokenDump(content.count(b"\n", 0, at) + 1)
        try:
            cells = [_copied_cell(cell) for cell in content[at:end].rstrip(b"\r").split(b"\t")]
        except ValueError as problem:
            raise BrokenDump(content.count(b"\n", 0, at) + 1) from problem
        at = end + 1
        yield cells, at


def _copied_cell(cell: bytes) -> bytes | None:
    if cell == b"\\N":
        return None
    return _hexadecimal(_LETTER.sub(lambda match: _LETTERS.get(match[1], match[1]), cell))


def _hexadecimal(text: bytes) -> bytes:
    r"""The bytes that PostgreSQL writes as `\x` and digits; other text as it is."""
    return bytes.fromhex(text[2:].decode()) if text[:2] == b"\\x" else text


def _row(names: tuple[str, ...], cells: list[bytes | None], content: bytes, at: int) -> KineRow:
    row = dict(zip(names, cells, strict=False))
    try:
        return KineRow(
            int(row["id"] or b""),
            (row["name"] or b"").decode("utf-8", "replace"),
            row["created"] in (b"1", b"t", b"true"),
            row["deleted"] in (b"1", b"t", b"true"),
            int(row["prev_revision"] or b"0"),
            row["value"] or b"",
        )
    except (KeyError, ValueError) as problem:
        raise BrokenDump(content.count(b"\n", 0, at) + 1) from problem
