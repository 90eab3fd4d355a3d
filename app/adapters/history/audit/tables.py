"""CSV tables of audit events and of other documents, as consoles of cloud providers export them.

A row is an envelope: its cells are the fields, decoded where they hold JSON. Azure's portal puts
the time zone into the title of a column and writes times in the format of the United States; the
titles of Google's console are paths of fields.

    TimeGenerated [UTC],log_s                 → {"TimeGenerated": …, "log_s": {…}}
    AuditId,Verb,TimeGenerated [UTC]          → {"AuditId": …, "StageReceivedTime": …}
    protoPayload.methodName,timestamp         → {"protoPayload": {"methodName": …}, "timestamp": …}
"""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from app.adapters.history import json_text
from app.adapters.history.audit import envelopes
from app.adapters.history.limits import BoundReached
from app.adapters.history.reading import Notes
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.values import api_groups
from app.domain.values.json_tree import JsonObject

_NAME = r"[\w@$.\[\] /-]"
_TITLE = re.compile(rf'(?:"{_NAME}+"|{_NAME}+)(?:,(?:"{_NAME}*"|{_NAME}*))+')
_UTC = " [UTC]"
_LOCAL = " [Local Time]"
_PORTAL_TIME = "%m/%d/%Y, %I:%M:%S.%f %p"
_WORDS = ("apiVersion", "auditID", api_groups.AUDIT)
"""The first row of a table of audit events in a text has one of these words, or goes on below."""

_TIMES = ("RequestReceivedTime", "StageReceivedTime")
_TAKEN, _ANSWERED = "TimeGenerated", "StageReceivedTime"
"""The columns of the instants at which the service got an event, and the server had answered."""

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


def rows_in_text(lines: Sequence[str], at: int, limit: int) -> list[tuple[int, JsonObject]]:
    """The rows of a table of audit events whose titles are at a line, each with its last line.

    The table ends at an empty line, and at a row with another number of cells. Empty where none
    begins, and where the first row is not a wanted one.
    """
    titles, below = lines[at].strip(), "".join(lines[at + 1 : at + 2])
    may_hold = any(word in below for word in _WORDS) or below.rstrip().endswith('"{')
    if "," not in titles or not may_hold or not _TITLE.fullmatch(titles):
        return []
    read: list[tuple[int, JsonObject]] = []
    reader = csv.reader(_until_empty(lines, at, limit), strict=True)
    try:
        names = _named(next(reader), None)
        for row in reader:
            if len(row) != len(names):
                break
            tree = _tree(names, row, None, "")
            if not read and not any(envelopes.events(tree)):
                break
            read.append((at + reader.line_num - 1, tree))
    except (csv.Error, StopIteration):
        return read
    return read


def _until_empty(lines: Sequence[str], at: int, limit: int) -> Iterator[str]:
    """The lines up to an empty one, within a number of characters."""
    for line in lines[at:]:
        limit -= len(line)
        if not line.strip() or limit < 0:
            return
        yield line + "\n"


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
    titles = _named(next(filter(None, reader), []), notes)
    for row in filter(None, reader):
        tree = _tree(titles, row, notes, f"{source.name}:{reader.line_num}")
        if tree:
            yield reader.line_num, tree


def _named(row: Sequence[str], notes: Notes | None) -> list[str]:
    """The titles of a table. Where events have no times, those of their rows stand for them."""
    titles = [title.strip() for title in row]
    names = {title.removesuffix(_UTC).removesuffix(_LOCAL) for title in titles}
    if "AuditId" not in names or _TAKEN not in names or names & {*_TIMES}:
        return titles
    if notes is not None:
        notes.add(f"times are those of {_TAKEN}: the columns {' and '.join(_TIMES)} are missing")
    return [title.replace(_TAKEN, _ANSWERED) for title in titles]


def _tree(titles: Sequence[str], row: Sequence[str], notes: Notes | None, place: str) -> JsonObject:
    """The cells of a row by their titles."""
    tree: JsonObject = {}
    for title, cell in zip(titles, row, strict=False):
        if title and cell:
            value = _decoded(cell)
            if notes is not None and value is not cell:
                notes.lose_repeated(json_text.repeated_keys(cell.encode(), value), place)
            _put(tree, title, value, notes)
    return tree


def _lines(source: ByteSource) -> Iterator[str]:
    # A row may span several lines; the bound on a line applies to the whole row.
    size, following = 0, 1
    for number, line in source.lines():
        # The source leaves out empty lines, which belong to a cell over several lines.
        yield from ("\n" for _ in range(following, number))
        following = number + 1
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


def _put(tree: JsonObject, title: str, value: Any, notes: Notes | None) -> None:
    if title.endswith(_LOCAL):
        if notes is not None and title.removesuffix(_LOCAL) in _TIMES:
            notes.add("times of a portal in local time, whose zone nothing tells, are left out")
        return
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
