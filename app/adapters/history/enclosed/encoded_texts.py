"""Files that carry another file: texts in base64, recorded terminals, objects in protobuf, stores.

    H4sIAAAAAAAAA+3PMQrDMAwF0D2n8A3k4EDOk0LpkKVD7w8NHTp0KJQQ…

`base64`, `openssl`, `certutil -encode` and `uuencode -m` write the first, the last three with lines
around it. asciinema writes what a terminal showed, as lines of JSON:

    {"version": 2, "width": 80, "height": 24}
    [1.25, "o", "NAME    READY   STATUS\\r\\n"]

What a server stores or answers in protobuf begins with `k8s`; `etcdctl get --print-value-only`
prints it. Where a container printed a store, its runtime has put something around each line:

    2026-01-02T03:04:05.1Z stdout F id,name,created,deleted,create_revision,…

Parity: history-formats.md 2, 12.
"""

import base64
import re
from collections.abc import Callable, Iterator

import msgspec

from app.adapters.history import json_text, runtime_lines, unpacking
from app.adapters.history.compression import BZIP2_MAGIC, GZIP_MAGIC, XZ_MAGIC, ZSTD_MAGIC
from app.adapters.history.storage import etcdctl, kine_sql, shown_rows, stored_values
from app.adapters.history.unpacking import ZIP_MAGIC, ByteSource
from app.domain.errors import InputError
from app.domain.values.protobuf import MAGIC

LETTERS_MIN = 64
"""The least number of letters of a text that is taken for base64."""

TRIED_MAX = 4096
"""Letters of a text that are decoded to see what it holds."""

_BORDER = re.compile(
    rb"^(?:-----(?:BEGIN|END) [A-Z0-9 ]{1,40}-----|begin-base64 [^\n]{1,400}|====)[ \t]*$",
    re.MULTILINE,
)
_CAST = re.compile(
    rb'\s*\{(?=[^\n]*"version": ?[123][,}])(?=[^\n]*"(?:width|cols)": ?\d)[^\n]*\}\s*\n'
    rb"(?:#[^\n]*\n){0,9}\["
)
_CUT = "\n[truncated]\n"
_BETWEEN = re.compile(rb"\n(?=k8s\0)")
_LETTERS = re.compile(rb"[A-Za-z0-9+/]+={0,2}")
_PACKED = (GZIP_MAGIC, XZ_MAGIC, BZIP2_MAGIC, ZSTD_MAGIC, ZIP_MAGIC)
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a]")


def reader_of(head: bytes) -> Callable[[ByteSource], ByteSource] | None:
    """The function that gives what a file carries, by its beginning; None for other files."""
    if head.startswith(MAGIC):
        return _values
    if _CAST.match(head) is not None:
        return _shown
    lines, _, last = head.rpartition(b"\n")
    if _shows_store(runtime_lines.written(lines or last) or b""):
        return _written
    return _decoded if _is_base64(head) else None


def _shows_store(text: bytes) -> bool:
    """True for the output of a program that shows a store: rows of kine, or what etcdctl prints."""
    if etcdctl.begins_simple(text) or etcdctl.begins_printed(text):
        return True
    return shown_rows.begins(text) or kine_sql.is_dump(text) or shown_rows.is_shown(text)


def _written(source: ByteSource) -> ByteSource:
    """The output of a container. Raises InputError where the lines are of different forms."""
    lines: list[bytes] = []
    for number, line in source.lines():
        lines += [b""] * (number - 1 - len(lines))
        lines.append(line)
    text = runtime_lines.written(b"\n".join(lines) + b"\n")
    if text is None:
        raise InputError(
            "a store is shown behind the beginnings of lines of a runtime, which some lines lack",
            place=source.name,
            cure="give what the program printed, without what the runtime put around its lines",
        )
    return unpacking.bytes_source(text, f"{source.name}/written", source.limits)


def _is_base64(head: bytes) -> bool:
    letters = _bare(head)
    if len(letters) < LETTERS_MIN or _LETTERS.fullmatch(letters) is None:
        return False
    tried = letters.rstrip(b"=")[:TRIED_MAX]
    content = base64.b64decode(tried[: len(tried) // 4 * 4])
    if content.startswith((*_PACKED, MAGIC)):
        return True
    # The end of what is tried may be within a letter.
    return not _CONTROL.search(content) and _is_text(content)


def _decoded(source: ByteSource) -> ByteSource:
    """The content of a text in base64. Raises InputError for one that breaks off or is damaged."""
    try:
        content = base64.b64decode(_bare(source.whole()), validate=True)
    except ValueError as problem:
        raise InputError(
            "the text in base64 breaks off, or is damaged",
            place=source.name,
            cure="decode it (base64 -d), and import what it holds",
        ) from problem
    return unpacking.bytes_source(content, f"{source.name}/decoded", source.limits)


def _shown(source: ByteSource) -> ByteSource:
    """The output of a recorded terminal, without what somebody typed."""
    shown = "".join(_outputs(source)).replace("\r\n", "\n")
    content = shown.encode("utf-8", "replace")
    return unpacking.bytes_source(content, f"{source.name}/shown", source.limits)


def _outputs(source: ByteSource) -> Iterator[str]:
    """The outputs in order; a mark of a cut where an event between others is damaged.

    A recording that was ended by force has a last line that is cut.
    """
    is_damaged = False
    for _, line in source.lines():
        try:
            event = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            is_damaged = not line.startswith(b"#")
            continue
        if is_damaged:
            yield _CUT
            is_damaged = False
        if isinstance(event, list) and len(event) == 3 and event[1] == "o":
            yield str(event[2])


def _values(source: ByteSource) -> ByteSource:
    """The objects of stored values, each with a line break behind it, as lines of JSON."""
    lines: list[bytes] = []
    for number, value in enumerate(_BETWEEN.split(source.whole()), start=1):
        place = source.name if number == 1 else f"{source.name}:{number}"
        stored = _stored(value.removesuffix(b"\n"), place, source)
        lines.append(json_text.encode(stored))
    content = b"\n".join(lines) + b"\n"
    return unpacking.bytes_source(content, f"{source.name}/decoded", source.limits)


def _stored(value: bytes, place: str, source: ByteSource) -> object:
    stored = stored_values.decode(value, place, source.limits)
    if stored is None or stored.losses:
        kind = "" if stored is None else str(stored.tree.get("kind", ""))
        raise InputError(
            f"a value in protobuf of the kind {kind or 'nothing'}, which redra does not read",
            place=place,
            cure="give the object in JSON",
        )
    return stored.tree


def _bare(content: bytes) -> bytes:
    return b"".join(_BORDER.sub(b"", content.replace(b"\r", b"")).split(b"\n"))


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError as problem:
        return problem.reason == "unexpected end of data"
    return True
