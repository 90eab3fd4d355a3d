"""The documents of a text source in JSON or YAML.

JSON lines are streamed. One JSON document, several in a row (as `kubectl --watch -o json` prints
them) and YAML are read as a whole, within `document_bytes_max`. YAML in the style of JSON (KYAML:
unquoted keys, trailing commas) is read as YAML.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from app.adapters.history import json_text, python_values, yaml_documents
from app.adapters.history.limits import BoundReached, ImportLimits
from app.adapters.history.reading import Notes
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant, TimestampError

_STAMPED = re.compile(rb"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d\S*)[ \t]+(?=\S)")


def read_documents(
    source: ByteSource, notes: Notes | None = None, *, with_texts: bool = False
) -> Iterator[tuple[str, Any]]:
    """Position (`line`) and value of each document. Raises InputError.

    Repeated keys of JSON are noted. Documents of YAML that are one text come only `with_texts`.
    """
    if is_json_lines(source):
        for number, line in source.lines():
            content, _ = split_stamp(line)
            place = f"{source.name}:{number}"
            value = json_text.decode(content, place, source.limits)
            if notes is not None:
                notes.lose_repeated(json_text.repeated_keys(content, value), place)
            yield str(number), value
        return
    content = source.whole()
    yield from parse(content, source.name, source.limits, notes, with_texts=with_texts)


def parse(
    content: bytes,
    place: str,
    limits: ImportLimits,
    notes: Notes | None = None,
    *,
    with_texts: bool = False,
    scalar: yaml_documents.Scalar | None = None,
) -> Iterator[tuple[str, Any]]:
    """Position and value of each document in `content`. Repeated keys of JSON are noted.

    `scalar` gives scalars of YAML without quotes their values instead of `yaml_documents.plain`.
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    if content.lstrip()[:1] in (b"{", b"["):
        texts = _parse_json(content, place, limits)
        if texts is not None:
            for text in texts:
                if notes is not None:
                    notes.lose_repeated(text.repeated_keys(), f"{place}:{text.line}")
                yield str(text.line), text.value
            return
        if json_text.is_commented(content.decode("utf-8", "replace")):
            raise InputError("it is not JSON: it has comments", place=place)
        if values := python_values.documents(content, place, limits):
            yield from ((str(line), value) for line, value in values)
            return
    for line, value in yaml_documents.parse_documents(
        content, place, limits, with_texts=with_texts, scalar=scalar
    ):
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

    A truncated last line is left out and noted. Raises InputError behind the last line that a
    damaged stream gives.
    """
    waiting: tuple[int, bytes] | None = None
    try:
        for line in source.lines():
            if waiting is not None:
                yield waiting
            waiting = line
    except InputError:
        if waiting is not None:
            yield waiting
        raise
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


def _parse_json(content: bytes, place: str, limits: ImportLimits) -> list[json_text.Text] | None:
    """All JSON documents, or None when the content is not JSON throughout (it may be YAML)."""
    try:
        return [json_text.Text(1, json_text.decode(content, place, limits), content)]
    except BoundReached:
        raise
    except InputError:
        # Not one document; perhaps several.
        pass
    try:
        return list(json_text.decode_sequence(content, place, limits))
    except BoundReached:
        raise
    except InputError:
        return None
