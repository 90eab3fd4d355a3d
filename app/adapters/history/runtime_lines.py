"""Lines that a container runtime split: parts with the tag P, and a last one with the tag F.

    2026-01-02T03:04:05.1Z stdout P {"kind":"Event",
    2026-01-02T03:04:05.1Z stdout F "apiVersion":"audit.k8s.io/v1"}

The two streams split their lines each for itself. Docker's files of JSON have no tag: a part has no
line break, and as many bytes as its buffer.

    {"log":"{\\"kind\\":\\"Event\\",…","stream":"stdout","time":"2026-01-02T03:04:05.1Z"}
    {"log":"\\"apiVersion\\":…}\\n","stream":"stdout","time":"2026-01-02T03:04:05.1Z"}

Logstash shows a record over many lines (rubydebug), each value in the way of Ruby.

    {
        "message" => "{\\"kind\\":\\"Event\\",…}",
           "tags" => [
            [0] "audit"
        ]
    }

A journal keeps a message with colours or with other bytes than those of text as an array of bytes.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from app.adapters.history import line_marks

HEAD_MAX = 64
"""Bytes of a line in which the tag of a runtime stands."""

_PART = re.compile(
    rb"(?P<head>\S{20,40} (?P<stream>stdout|stderr) )(?P<tag>[PF]) (?P<rest>[^\r\n]*)"
)


_DOCKER = b'{"log":"'
_DOCKER_TEXT = re.compile(
    rb'\{"log":\s?"(?P<text>(?:[^"\\]|\\.)*+)(?P<rest>"[^\r\n]*)?\r?', re.DOTALL
)
_DOCKER_TIME = re.compile(rb'"time":\s?"(?P<time>[\d:.TZ+-]{19,40})"\}')
_DOCKER_STREAM = re.compile(rb'"stream":\s?"(?P<stream>stdout|stderr)"')
_STAMPED = re.compile(
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.:Z+-]{0,20}(?: (?:stdout|stderr) F)?(?: |$)"
)
_DOCKER_BYTES = 16 * 1024
"""The bytes of a part of a line in a file of Docker."""

_DOCKER_LOST_MAX = 8
"""Bytes by which a part may be shorter, whose first or last character was cut."""

_FIELD = re.compile(rb'[ \t]+"(?:[^"\\]|\\.)*" => ')
_TOKEN = re.compile(
    rb'"(?P<text>(?:[^"\\]|\\.)*+)"|(?P<pair> => )|(?P<nil>\bnil\b)|(?P<index>\[\d{1,6}\] )'
    rb"|(?P<time>\d{4}-\d\d-\d\dT[\d:.]{1,30}Z)"
)
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_OF_RUBY = {b"#": b"#", b"e": b"\\u001b", b"a": b"\\u0007", b"v": b"\\u000b"}
"""Escapes that JSON does not have. A backslash has one, too: what follows it is none."""

_BYTES = re.compile(rb'("MESSAGE"\s*:\s*)\[(\s*\d{1,3}\s*(?:,\s*\d{1,3}\s*)*)\]')


def joined(lines: Iterator[tuple[int, bytes]], bytes_max: int) -> Iterator[tuple[int, bytes]]:
    """The lines, with the parts of one joined; it has the number of its first part.

    Beyond `bytes_max`, and at the end of the text, the parts that are there are one line.
    """
    parts: dict[bytes, tuple[int, bytearray]] = {}
    for number, line in _of_docker(lines, bytes_max):
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
    content = _BYTES.sub(_message, content)
    if b'" => ' in content:
        content = _of_logstash(content)
    marks = (b" stdout P ", b" stderr P ", _DOCKER)
    if any(mark in content for mark in marks):
        lines = content.split(b"\n")
        whole = [b""] * len(lines)
        for number, line in joined(iter(enumerate(lines)), bytes_max):
            whole[number] = line
        content = b"\n".join(whole)
    return _with_documents(content) if b'{"log":' in content else content


def written(content: bytes) -> bytes | None:
    """The output of a container, if its runtime has put something around each line; else None.

    That are a time, with the stream or without it, or the JSON of Docker. Of a last line of JSON
    that is cut, the text before the cut is given.
    """
    lines = content.split(b"\n")
    texts = [_text_of(line) for line in lines]
    if not any(texts) or any(text is None for text in texts):
        return None
    return b"\n".join(text or b"" for text in texts)


def _text_of(line: bytes) -> bytes | None:
    """The text in one line; None for a line that no runtime has written, or with several lines."""
    if not line.strip():
        return line
    if (stamp := _STAMPED.match(line)) is not None:
        return line[stamp.end() :]
    match = _DOCKER_TEXT.fullmatch(line) or _DOCKER_TEXT.match(line)
    if match is None or (match["rest"] is not None and b'"stream":' not in match["rest"]):
        return None
    try:
        text = json.loads(b'"' + match["text"] + b'"')
    except ValueError:
        return b"" if match["rest"] is None else None
    text = str(text).removesuffix("\n").removesuffix("\r")
    return None if "\n" in text else text.encode("utf-8", "replace")


def _with_documents(content: bytes) -> bytes:
    """The text, with Docker's lines as containerd writes them if they show a document.

    A document over many lines is read where only times stand before them. Lines of other programs
    keep the forms in which their readers know them.
    """
    lines = content.split(b"\n")
    texts = [_text_of(line) if line.startswith(b'{"log":') else None for line in lines]
    if not any(text and line_marks.begins_shown(text.decode()) for text in texts):
        return content
    pairs = zip(lines, texts, strict=True)
    return b"\n".join(line if text is None else _head(line) + text for line, text in pairs)


def _head(line: bytes) -> bytes:
    """The time and stream of a line of Docker, as containerd writes them; empty without a time."""
    time, stream = _DOCKER_TIME.search(line), _DOCKER_STREAM.search(line)
    if time is None or stream is None:
        return b""
    return b"%b %b F " % (time["time"], stream["stream"])


def _of_logstash(content: bytes) -> bytes:
    """The text with each record of Logstash as JSON on its first line."""
    lines = content.split(b"\n")
    at = 0
    while at < len(lines) - 1:
        if lines[at].rstrip() != b"{" or _FIELD.match(lines[at + 1]) is None:
            at += 1
            continue
        behind = range(at + 1, len(lines))
        end = next((n for n in behind if lines[n].rstrip() in (b"{", b"}")), at)
        if lines[end].rstrip() != b"}":
            at = max(end, at + 1)
            continue
        try:
            value = msgspec.json.decode(_TOKEN.sub(_as_json, b"".join(lines[at : end + 1])))
        except (msgspec.DecodeError, RecursionError):
            at = end + 1
            continue
        lines[at : end + 1] = [msgspec.json.encode(value), *[b""] * (end - at)]
        at = end + 1
    return b"\n".join(lines)


def _as_json(match: re.Match[bytes]) -> bytes:
    if match["text"] is not None:
        return _ESCAPE.sub(lambda each: _OF_RUBY.get(each[1], each[0]), match[0])
    if match["time"] is not None:
        return b'"' + match["time"] + b'"'
    return b"" if match["index"] is not None else b":" if match["pair"] is not None else b"null"


def _of_docker(lines: Iterator[tuple[int, bytes]], bytes_max: int) -> Iterator[tuple[int, bytes]]:
    """The lines, with the parts of each line of Docker's JSON joined."""
    parts: dict[str, tuple[int, dict[str, Any], int]] = {}
    for number, line in lines:
        entry = _entry(line) if line.startswith(_DOCKER) else None
        if entry is None:
            yield number, line
            continue
        text, stream = entry["log"], entry["stream"]
        is_part = not text.endswith("\n") and _fills_buffer(text)
        begin, whole, size = parts.pop(stream, (number, entry, 0))
        if whole is entry and not is_part:
            yield number, line
            continue
        if whole is not entry:
            whole["parts"].append(text)
        else:
            entry["parts"] = [text]
        size += len(line)
        if is_part and size < bytes_max:
            parts[stream] = begin, whole, size
        else:
            yield begin, _docker_line(whole)
    for begin, whole, _ in parts.values():
        yield begin, _docker_line(whole)


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    is_entry = isinstance(entry.get("log"), str) and isinstance(entry.get("stream"), str)
    return entry if is_entry else None


def _fills_buffer(text: str) -> bool:
    size = len(text.encode("utf-8", "replace"))
    return _DOCKER_BYTES - _DOCKER_LOST_MAX <= size <= _DOCKER_BYTES + _DOCKER_LOST_MAX


def _docker_line(whole: dict[str, Any]) -> bytes:
    text = "".join(whole["parts"])
    fields = {name: value for name, value in whole.items() if name != "parts"}
    return msgspec.json.encode({**fields, "log": text})


def _message(match: re.Match[bytes]) -> bytes:
    """The field of a message as text; unchanged when a number is no byte."""
    numbers = [int(number) for number in match[2].split(b",")]
    if max(numbers) > 255:
        return match[0]
    return match[1] + msgspec.json.encode(bytes(numbers).decode("utf-8", "replace"))
