"""Files that are one text in base64, in which terminals and tickets carry what is no text.

    H4sIAAAAAAAAA+3PMQrDMAwF0D2n8A3k4EDOk0LpkKVD7w8NHTp0KJQQ…

`base64`, `openssl`, `certutil -encode` and `uuencode -m` write it, the last three with lines around
it. Parity: history-formats.md 2.
"""

import base64
import re

from app.adapters.history import unpacking
from app.adapters.history.compression import BZIP2_MAGIC, GZIP_MAGIC, XZ_MAGIC, ZSTD_MAGIC
from app.adapters.history.unpacking import ZIP_MAGIC, ByteSource
from app.domain.errors import InputError

LETTERS_MIN = 64
"""The least number of letters of a text that is taken for base64."""

TRIED_MAX = 4096
"""Letters of a text that are decoded to see what it holds."""

_BORDER = re.compile(
    rb"^(?:-----(?:BEGIN|END) [A-Z0-9 ]{1,40}-----|begin-base64 [^\n]{1,400}|====)[ \t]*$",
    re.MULTILINE,
)
_LETTERS = re.compile(rb"[A-Za-z0-9+/]+={0,2}")
_PACKED = (GZIP_MAGIC, XZ_MAGIC, BZIP2_MAGIC, ZSTD_MAGIC, ZIP_MAGIC)
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a]")


def is_encoded(head: bytes) -> bool:
    """True for the beginning of a text in base64 that holds a text or a packed file."""
    letters = _bare(head)
    if len(letters) < LETTERS_MIN or _LETTERS.fullmatch(letters) is None:
        return False
    tried = letters.rstrip(b"=")[:TRIED_MAX]
    content = base64.b64decode(tried[: len(tried) // 4 * 4])
    if content.startswith(_PACKED):
        return True
    # The end of what is tried may be within a letter.
    return not _CONTROL.search(content) and _is_text(content)


def content_of(source: ByteSource) -> ByteSource:
    """What the text holds. Raises InputError for one that breaks off or is damaged."""
    try:
        content = base64.b64decode(_bare(source.whole()), validate=True)
    except ValueError as problem:
        raise InputError(
            "the text in base64 breaks off, or is damaged",
            place=source.name,
            cure="decode it (base64 -d), and import what it holds",
        ) from problem
    return unpacking.bytes_source(content, f"{source.name}/decoded", source.limits)


def _bare(content: bytes) -> bytes:
    return b"".join(_BORDER.sub(b"", content.replace(b"\r", b"")).split(b"\n"))


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError as problem:
        return problem.reason == "unexpected end of data"
    return True
