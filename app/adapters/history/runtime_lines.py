"""Lines that a container runtime split: parts with the tag P, and a last one with the tag F.

    2026-01-02T03:04:05.1Z stdout P {"kind":"Event",
    2026-01-02T03:04:05.1Z stdout F "apiVersion":"audit.k8s.io/v1"}

The two streams split their lines each for itself.
"""

import re
from collections.abc import Iterator

HEAD_MAX = 64
"""Bytes of a line in which the tag of a runtime stands."""

_PART = re.compile(
    rb"(?P<head>\S{20,40} (?P<stream>stdout|stderr) )(?P<tag>[PF]) (?P<rest>[^\r\n]*)"
)


def joined(lines: Iterator[tuple[int, bytes]], bytes_max: int) -> Iterator[tuple[int, bytes]]:
    """The lines, with the parts of one joined; it has the number of its first part.

    Beyond `bytes_max`, and at the end of the text, the parts that are there are one line.
    """
    parts: dict[bytes, tuple[int, bytearray]] = {}
    for number, line in lines:
        if not parts and b" P " not in line[:HEAD_MAX]:
            yield number, line
            continue
        match = _PART.match(line)
        if match is None or (match["tag"] == b"F" and match["stream"] not in parts):
            yield number, line
            continue
        whole = parts.pop(match["stream"], None)
        begin, text = whole or (number, bytearray(match["head"] + b"F "))
        text += match["rest"]
        if match["tag"] == b"P" and len(text) < bytes_max:
            parts[match["stream"]] = begin, text
        else:
            yield begin, bytes(text)
    for begin, text in parts.values():
        yield begin, bytes(text)


def joined_content(content: bytes, bytes_max: int) -> bytes:
    """A text with the parts of each line joined; empty lines keep the numbers of the others."""
    if b" stdout P " not in content and b" stderr P " not in content:
        return content
    lines = content.split(b"\n")
    whole = [b""] * len(lines)
    for number, line in joined(iter(enumerate(lines)), bytes_max):
        whole[number] = line
    return b"\n".join(whole)
