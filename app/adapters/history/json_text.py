"""JSON decoding with a bound on nesting, and integers that fit the log.

Integers beyond 64 bits become text (history-formats.md 3.7): the encoder of the log does not
support them.
"""

import json
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

_REASONS = {
    "Invalid control character at": "a text breaks off at the end of the line",
    "Unterminated string starting at": "it ends within a text",
}
"""What problems of the library mean for a file; its other words speak for themselves."""


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


def reason(problem: Exception, first_line: int = 0) -> str:
    """The reason why a text is not JSON; with the number of its first line, the line of it too."""
    if not isinstance(problem, json.JSONDecodeError):
        return str(problem)
    line = f", in line {first_line + problem.lineno - 1}" if first_line else ""
    return _REASONS.get(problem.msg, problem.msg) + line


def check_text_depth(content: bytes, place: str, limits: ImportLimits) -> None:
    """Raise InputError when a JSON text is nested too deep; cheap for ordinary texts."""
    if _may_be_deep(content, limits.depth_max):
        decode(content, place, limits)


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
