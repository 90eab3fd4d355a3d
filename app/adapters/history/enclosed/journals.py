"""Journals as `journalctl -o export` writes them, with one entry on one line as `-o json` has it.

    __REALTIME_TIMESTAMP=1767323045000006
    MESSAGE=I0102 03:04:05.000006 …
                                            an empty line ends an entry

A value of several lines stands behind its name in another way: a line break, the number of its
bytes in eight bytes, the bytes and a line break.
"""

import re
from dataclasses import dataclass, field

from app.adapters.history import json_text

_BEGINNING = re.compile(
    rb"\n*(?:[A-Z_][A-Z0-9_]{0,63}=[^\n]*\n){0,64}?__REALTIME_TIMESTAMP=\d{1,20}\n"
)
_NAME = re.compile(rb"[A-Z_][A-Z0-9_]{0,63}")
_SIZE_BYTES = 8


@dataclass(slots=True)
class JournalLines:
    """The entries as lines of JSON, each on the line on which it begins in the journal.

    `broken` has the lines on which entries begin that are cut or damaged.
    """

    content: bytes
    broken: list[int] = field(default_factory=list)


def is_export(head: bytes) -> bool:
    """True for the beginning of an exported journal."""
    return _BEGINNING.match(head) is not None


def as_lines(content: bytes) -> JournalLines:
    """The entries of an exported journal. A broken one is left out up to the next empty line."""
    lines: list[bytes] = []
    made = JournalLines(b"")
    at, line = 0, 1
    while at < len(content):
        if content[at : at + 1] == b"\n":
            at, line = at + 1, line + 1
            continue
        entry, end = _entry(content, at)
        if entry is None:
            made.broken.append(line)
        else:
            lines += [b""] * (line - 1 - len(lines))
            lines.append(json_text.encode(entry))
        line += content.count(b"\n", at, end)
        at = end
    made.content = b"".join(each + b"\n" for each in lines)
    return made


def _entry(content: bytes, at: int) -> tuple[dict[str, str | list[str]] | None, int]:
    """The fields of the entry that begins at a position, or None, and where it ends."""
    fields: dict[str, list[str]] = {}
    while at < len(content) and content[at : at + 1] != b"\n":
        end = content.find(b"\n", at)
        if end < 0:
            return None, len(content)
        name, is_text, value = content[at:end].partition(b"=")
        if _NAME.fullmatch(name) is None:
            return None, _next_blank(content, at)
        if not is_text:
            begin = end + 1 + _SIZE_BYTES
            end = begin + int.from_bytes(content[end + 1 : begin], "little")
            if content[end : end + 1] != b"\n":
                return None, _next_blank(content, at)
            value = content[begin:end]
        fields.setdefault(name.decode(), []).append(value.decode("utf-8", "replace"))
        at = end + 1
    return {name: each[0] if len(each) == 1 else each for name, each in fields.items()}, at


def _next_blank(content: bytes, at: int) -> int:
    end = content.find(b"\n\n", at)
    return len(content) if end < 0 else end + 1
