"""JSON decoding with a bound on nesting, and integers that fit the log.

Integers beyond 64 bits become text (history-formats.md 3.7): the encoder of the log does not
support them.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from app.adapters.history.limits import BoundReached, ImportLimits
from app.domain.errors import InputError
from app.domain.objects.schema import decode as bodies

_decoder = msgspec.json.Decoder()
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b'[]{}"\\')
INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**64 - 1

_COMMENTED = re.compile(
    r'"(?:[^"\\\n]++|\\.)*+"|(?P<comment>//[^\n]*+|\#[^\n]*+|/\*(?s:.*?)\*/)'
    r"|(?P<dots>\.\.\.|\u2026)|[\[\]{},:]|[^\s\"\[\]{},:/#.\u2026]++|\S"
)
_DEPTHS = {"{": 1, "[": 1, "}": -1, "]": -1}
_OMITS = re.compile(
    r"\.\.\.|\u2026|\b(?:omitted|truncated|snip(?:ped)?|elided|redacted|removed|more|etc)\b",
    re.IGNORECASE,
)
_NOT_SPACE = re.compile(r"\S")


_REASONS = {
    "Invalid control character at": "a text breaks off at the end of the line",
    "Unterminated string starting at": "it ends within a text",
}
"""The meaning of the library's problems for a file; its other messages are shown as they are."""


@dataclass(frozen=True, slots=True)
class RepairedDocument:
    """A document within a text, as it was before people or programs altered it.

    `end` is where it ends in the text, `breaks` the number of line breaks taken out; it is not
    certain if one may have been a break between two lines. `left_out` are the positions in the text
    where somebody left something out.
    """

    text: str
    end: int
    breaks: int = 0
    is_certain: bool = True
    left_out: tuple[int, ...] = ()


def decode(content: bytes, place: str, limits: ImportLimits) -> Any:
    """The value of one JSON text.

    Raises InputError for invalid JSON and for nesting that is too deep.
    """
    try:
        value = _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"it is not JSON: {problem}", place=place) from problem
    except RecursionError as problem:
        raise _too_deep(place, limits) from problem
    if _may_be_deep(content, limits.depth_max) and _depth(value) > limits.depth_max:
        raise _too_deep(place, limits)
    return value


DOUBLED = "its backslashes are doubled, as databases write them into TSV"
"""The reason why a text of a database is not JSON. What has no quotes in its texts can be read."""


def reason(problem: Exception, first_line: int = 0) -> str:
    """The reason why a text is not JSON; with the number of its first line, the line of it too."""
    if not isinstance(problem, json.JSONDecodeError):
        return str(problem)
    line = f", in line {first_line + problem.lineno - 1}" if first_line else ""
    end = problem.doc.find("\n", problem.pos)
    if is_doubled(problem.doc[problem.pos - problem.colno + 1 : end if end >= 0 else None]):
        return f"{DOUBLED}{line}"
    return _REASONS.get(problem.msg, problem.msg) + line


def is_doubled(text: str | bytes) -> bool:
    """True for a line that is JSON when each two backslashes become one."""
    line = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if r"\\" not in line:
        return False
    try:
        return isinstance(json.loads(line[line.find("{") :].replace(r"\\", "\\")), dict)
    except (ValueError, RecursionError):
        return False


def check_text_depth(content: bytes, place: str, limits: ImportLimits) -> None:
    """Raise InputError when a JSON text is nested too deep; cheap for ordinary texts."""
    if _may_be_deep(content, limits.depth_max):
        decode(content, place, limits)


def uncommented(text: str, start: int) -> RepairedDocument | None:
    """The JSON document that begins at a position, without comments, dots and needless commas.

    None for a text without any of them, and for one that does not end. Dots, and comments that say
    that something is missing, are left out parts; dots in place of a value become null.

        "count": 1, // one is enough       a comment, also after # and between /* and */
        ...                                what somebody left out
        }                                  the comma before it separates nothing
    """
    pieces: list[str] = []
    left_out: list[int] = []
    depth, at, comma = 0, start, -1
    is_plain, last = True, ""
    for token in _COMMENTED.finditer(text, start):
        word = token.group()
        if token["comment"] or token["dots"]:
            is_value = token["dots"] is not None and last == ":"
            pieces += [text[at : token.start()], "null" if is_value else " "]
            at, is_plain = token.end(), False
            if token["dots"] or _OMITS.search(word):
                left_out.append(token.start())
            continue
        if word == ",":
            # The comma is a piece of its own, so that a bracket behind it can replace it.
            pieces += [text[at : token.start()], word]
            at, comma = token.end(), len(pieces) - 1
        elif word in ("}", "]") and comma >= 0:
            pieces[comma], is_plain = " ", False
        comma, last = comma if word == "," else -1, word
        depth += _DEPTHS.get(word, 0)
        if not depth:
            if is_plain:
                return None
            pieces.append(text[at : token.end()])
            return RepairedDocument("".join(pieces), token.end(), left_out=tuple(left_out))
    return None


def is_commented(text: str) -> bool:
    """True for a text of JSON with comments or dots, which YAML could take for values.

    Example: `"count": 1 // one` is a text for YAML.
    """
    begin = _NOT_SPACE.search(text)
    whole = uncommented(text, begin.start()) if begin is not None else None
    return whole is not None and _loaded(whole.text) is not None


@dataclass(frozen=True, slots=True)
class Text:
    """A JSON text with its first line and its value."""

    line: int
    value: Any
    content: bytes

    def repeated_keys(self) -> tuple[str, ...]:
        """The paths of the keys that occur again in one object."""
        return repeated_keys(self.content, self.value)


def decode_sequence(content: bytes, place: str, limits: ImportLimits) -> Iterator[Text]:
    """Several JSON texts that follow each other, as kubectl prints them.

    Raises InputError at the first place that is not JSON.
    """
    decoder = json.JSONDecoder()
    try:
        text = content.decode()
    except UnicodeDecodeError as problem:
        raise InputError(f"it is not UTF-8: {problem}", place=place) from problem
    at, line = 0, 1
    while True:
        start = at
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        line += text.count("\n", start, at)
        if at >= len(text):
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as problem:
            raise InputError(
                f"it is not JSON: {reason(problem)}", place=f"{place}:{line}"
            ) from problem
        except ValueError as problem:
            # A number with more digits than Python accepts.
            raise InputError(f"it is not JSON: {problem}", place=f"{place}:{line}") from problem
        except RecursionError as problem:
            raise _too_deep(f"{place}:{line}", limits) from problem
        if _depth(value) > limits.depth_max:
            raise _too_deep(f"{place}:{line}", limits)
        yield Text(line, value, text[at:end].encode())
        line += text.count("\n", at, end)
        at = end


def repeated_keys(content: bytes, value: Any) -> tuple[str, ...]:
    """The paths of the keys that occur again in one object of a JSON text, which gave `value`.

    Decoders keep the last value of such a key, as a server does.
    """
    try:
        encoded = msgspec.json.encode(value)
    except (ValueError, TypeError, OverflowError):
        encoded = b""
    return bodies.repeated_keys(content, encoded)


def encode(value: Any) -> bytes:
    """A decoded value as JSON text on one line.

    Raises InputError for text that is not valid Unicode.
    """
    try:
        return msgspec.json.encode(fit_integers(value))
    except (UnicodeEncodeError, ValueError, TypeError) as problem:
        raise InputError(f"it cannot be kept as JSON: {problem}") from problem


def fit_integers(value: Any) -> Any:
    """The same tree with integers beyond 64 bits as text."""
    if isinstance(value, dict):
        return {key: fit_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [fit_integers(item) for item in value]
    if isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX:
        return str(value)
    return value


def check_depth(value: Any, place: str, limits: ImportLimits) -> None:
    """Raise InputError when a decoded value is nested too deep."""
    if _depth(value) > limits.depth_max:
        raise _too_deep(place, limits)


def items_of(value: Any) -> Iterator[Any]:
    """The items of an array, also of arrays in it; any other value is its own only item."""
    if not isinstance(value, list):
        yield value
        return
    for item in value:
        yield from items_of(item)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _too_deep(place: str, limits: ImportLimits) -> BoundReached:
    return BoundReached(f"nested deeper than {limits.depth_max}", place=place, cure="flatten it")


def _may_be_deep(content: bytes, depth_max: int) -> bool:
    """False when the text is certainly within the bound; far cheaper than walking the value.

    Only brackets and quotes are kept. Then each round removes the innermost pairs, at most one
    round per level. Remains of strings can only make the answer True, never False.
    """
    if content.count(b"{") + content.count(b"[") <= depth_max:
        return False
    left = content.translate(None, _NOT_BRACKETS).replace(b'\\"', b"").replace(b"\\", b"")
    for _ in range(depth_max):
        left = left.replace(b'""', b"").replace(b"{}", b"").replace(b"[]", b"")
        if not left:
            return False
    return True


def _depth(value: Any) -> int:
    deepest = 0
    pending: list[tuple[Any, int]] = [(value, 1)]
    while pending:
        container, depth = pending.pop()
        if isinstance(container, dict):
            deepest = max(deepest, depth)
            pending.extend(
                (item, depth + 1) for item in container.values() if item.__class__ in _TREES
            )
        elif isinstance(container, list):
            deepest = max(deepest, depth)
            pending.extend((item, depth + 1) for item in container if item.__class__ in _TREES)
    return deepest


_TREES = frozenset({dict, list})
