"""CSV tables of audit events and of other documents, as consoles of cloud providers export them.

A row is an envelope: its cells are the fields, decoded where they hold JSON. Azure's portal puts
the time zone into the title of a column and writes times in the format of the United States; the
titles of Google's console are paths of fields.

    TimeGenerated [UTC],log_s                 → {"TimeGenerated": …, "log_s": {…}}
    protoPayload.methodName,timestamp         → {"protoPayload": {"methodName": …}, "timestamp": …}
"""

import csv
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from app.adapters.history import json_text
from app.adapters.history.audit import envelopes
from app.adapters.history.limits import BoundReached
from app.adapters.history.reading import Notes
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.values.json_tree import JsonObject

_NAME = r"[\w@$.\[\] /-]"
_TITLE = re.compile(rf'(?:"{_NAME}+"|{_NAME}+)(?:,(?:"{_NAME}*"|{_NAME}*))+')
_UTC = " [UTC]"
_PORTAL_TIME = "%m/%d/%Y, %I:%M:%S.%f %p"
_PATHS = ("protoPayload.", "resource.")


def is_table(source: ByteSource) -> bool:
    """True for a table with an audit event in its first rows."""
    return has_row(source, lambda tree: any(envelopes.events(tree)))


def has_row(source: ByteSource, is_wanted: Callable[[JsonObject], bool]) -> bool:
    """True for a table with a wanted row among its first rows."""
    first = next(source.lines(), None)
    if first is None or not _TITLE.fullmatch(_text(first[1]).strip()):
        return False
    try:
        rows = _rows(source)
        return any(is_wanted(tree) for _, (_, tree) in zip(range(10), rows, strict=False))
    except (InputError, csv.Error):
        return False


def rows(source: ByteSource, notes: Notes | None = None) -> Iterator[tuple[str, bytes]]:
    """The last line number of each row, and the row as JSON. Raises InputError for a bad table.

    Repeated keys in cells with JSON are noted.
    """
    try:
        for number, tree in _rows(source, notes):
            yield str(number), msgspec.json.encode(tree)
    except csv.Error as problem:
        raise InputError(f"it is not a table: {problem}", place=source.name) from problem


def as_lines(source: ByteSource) -> bytes:
    """The rows as lines of JSON; each stands at the number of its last line.

    Raises InputError for a bad table.
    """
    lines: list[bytes] = []
    for position, row in rows(source):
        lines += [b""] * (int(position) - len(lines) - 1)
        lines.append(row)
    return b"\n".join(lines)


def _rows(source: ByteSource, notes: Notes | None = None) -> Iterator[tuple[int, JsonObject]]:
    csv.field_size_limit(source.limits.line_bytes_max)
    reader = csv.reader(_lines(source), strict=True)
    titles = [title.strip() for title in next(reader, [])]
    for row in reader:
        tree: JsonObject = {}
        for title, cell in zip(titles, row, strict=False):
            if title and cell:
                value = _decoded(cell)
                if notes is not None and value is not cell:
                    keys = json_text.repeated_keys(cell.encode(), value)
                    notes.lose_repeated(keys, f"{source.name}:{reader.line_num}")
                _put(tree, title, value)
        if tree:
            yield reader.line_num, tree


def _lines(source: ByteSource) -> Iterator[str]:
    # A row may span several lines; the bound on a line applies to the whole row.
    size = 0
    for _, line in source.lines():
        text = _text(line)
        size = 0 if text.endswith('"') else size + len(text)
        if size > source.limits.line_bytes_max:
            raise BoundReached(
                f"a row of more than {source.limits.line_bytes_max} bytes", place=source.name
            )
        yield text + "\n"


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r\n")


def _decoded(cell: str) -> Any:
    """The value of a cell; text that holds JSON is decoded."""
    if cell[0] not in "{[":
        return cell
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, RecursionError):
        return cell


def _put(tree: JsonObject, title: str, value: Any) -> None:
    if title.endswith(_UTC):
        title, value = (
            title.removesuffix(_UTC),
            _instant(value) if isinstance(value, str) else value,
        )
    path = title.split(".") if title.startswith(_PATHS) else [title]
    for step in path[:-1]:
        below = tree.setdefault(step, {})
        if not isinstance(below, dict):
            return
        tree = below
    tree[path[-1]] = value


def _instant(cell: str) -> str:
    """A time in the format of Azure's portal, converted to that of the API.

    Other text is unchanged.
    """
    try:
        return datetime.strptime(cell, _PORTAL_TIME).isoformat() + "Z"  # noqa: DTZ007 - it is UTC
    except ValueError:
        return cell
