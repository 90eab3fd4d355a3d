"""The documents of a text source in JSON or YAML.

JSON lines are streamed. One JSON document, several in a row (as `kubectl --watch -o json` prints
them) and YAML are read as a whole, within `document_bytes_max`. YAML in the style of JSON (KYAML:
unquoted keys, trailing commas) is read as YAML.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from app.adapters.history import json_text, yaml_documents
from app.adapters.history.limits import BoundReached, ImportLimits
from app.adapters.history.reading import Notes
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant, TimestampError

_STAMPED = re.compile(rb"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d\S*)[ \t]+(?=\S)")


def read_documents(source: ByteSource, *, with_texts: bool = False) -> Iterator[tuple[str, Any]]:
    """Position (`line`) and value of each document. Raises InputError.

    Documents of YAML that are one text come only `with_texts`.
    """
    if is_json_lines(source):
        for number, line in source.lines():
            content, _ = split_stamp(line)
            yield str(number), json_text.decode(content, f"{source.name}:{number}", source.limits)
        return
    content = source.whole()
    yield from parse(content, source.name, source.limits, with_texts=with_texts)


def parse(
    content: bytes, place: str, limits: ImportLimits, *, with_texts: bool = False
) -> Iterator[tuple[str, Any]]:
    """Position and value of each document in `content`."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if content.lstrip()[:1] in (b"{", b"["):
        documents = _parse_json(content, place, limits)
        if documents is not None:
            yield from documents
            return
    values = yaml_documents.parse_documents(content, place, limits, with_texts=with_texts)
    for line, value in values:
        yield str(line), value


def is_json_lines(source: ByteSource) -> bool:
    """True when the first line (after a time stamp, if any) is one complete JSON object.

    A first line longer than `line_bytes_max` gives False; it may be one large document.
    """
    try:
        first = next(source.lines(), None)
    except BoundReached:
        return False
    if first is None:
        return False
    content, _ = split_stamp(first[1])
    if not content.startswith(b"{"):
        return False
    try:
        json_text.decode(content, source.name, source.limits)
    except BoundReached:
        raise
    except InputError:
        return False
    return True


def log_lines(source: ByteSource, notes: Notes) -> Iterator[tuple[int, bytes]]:
    """The lines of a log that may still be written to.

    A truncated last line is left out and noted.
    """
    waiting: tuple[int, bytes] | None = None
    for line in source.lines():
        if waiting is not None:
            yield waiting
        waiting = line
    if waiting is None:
        return
    if _is_cut_off(waiting[1]):
        notes.add(f"{source.name}: line {waiting[0]}, the last one, is cut off and left out")
    else:
        yield waiting


def _is_cut_off(line: bytes) -> bool:
    content, _ = split_stamp(line)
    if not content.startswith(b"{"):
        return False
    try:
        msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        return "truncated" in str(problem)
    return False


def split_stamp(line: bytes) -> tuple[bytes, Instant | None]:
    """A line without its leading timestamp, and the instant of that timestamp or None."""
    if not line[:1].isdigit():
        return line.strip(), None
    match = _STAMPED.match(line)
    if match is None:
        return line.strip(), None
    try:
        return line[match.end() :].strip(), timestamps.parse(match.group(1).decode())
    except TimestampError:
        return line.strip(), None


def _parse_json(content: bytes, place: str, limits: ImportLimits) -> list[tuple[str, Any]] | None:
    """All JSON documents, or None when the content is not JSON throughout (it may be YAML)."""
    try:
        return [("1", json_text.decode(content, place, limits))]
    except BoundReached:
        raise
    except InputError:
        # Not one document; perhaps several.
        pass
    try:
        return [
            (str(line), value) for line, value in json_text.decode_sequence(content, place, limits)
        ]
    except BoundReached:
        raise
    except InputError:
        return None
