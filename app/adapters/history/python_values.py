"""Objects as Python prints them: what a client of the API, a notebook or a log shows of a dict.

    {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'web', 'labels': None}}

Most of it is YAML too, which reads None as a text and no escapes between single quotes.
"""

import ast
import re
from collections.abc import Sequence
from typing import Any

from app.adapters.history import json_text
from app.adapters.history.limits import ImportLimits

TEXT_MAX = 1_000_000
"""Characters of a value that is read; Python needs some hundred bytes for each."""

BROKEN = "an object as Python prints it, which breaks off or holds more than plain values"

_BEGIN = re.compile(r"(?:\[\s*)?\{'[A-Za-z]\w{0,62}': ")
_TOKEN = re.compile(r"'(?:[^'\\\n]|\\.)*+'?|\"(?:[^\"\\\n]|\\.)*+\"?|[\[\]{}()]")
_MEMBERS = ("'apiVersion': '", "'kind': '")
_DEPTHS = {"{": 1, "[": 1, "(": 1, "}": -1, "]": -1, ")": -1}


def text_at(lines: Sequence[str], at: int) -> tuple[str, int]:
    """The text of the object that begins in a line, and the line behind it; empty without any.

    One that breaks off is the rest of its line. `''` is an escape of YAML, not of Python.
    """
    match = _BEGIN.search(lines[at]) if "{'" in lines[at] else None
    if match is None:
        return "", at
    last, end = _end(lines, at, match.start())
    text = "\n".join([*lines[at:last], lines[last][:end]])[match.start() :]
    is_object = all(member in text for member in _MEMBERS) and "''" not in text
    return (text, last + 1) if is_object else ("", at)


def _end(lines: Sequence[str], at: int, column: int) -> tuple[int, int]:
    depth, length = 0, 0
    for number in range(at, len(lines)):
        start = column if number == at else 0
        length += len(lines[number]) - start
        # Python sets in what follows the first line; a log has a value on one line.
        if length > TEXT_MAX or (number > at and (column or lines[number][:1] != " ")):
            break
        for token in _TOKEN.finditer(lines[number], start):
            depth += _DEPTHS.get(token[0], 0)
            if depth == 0 and token[0] in _DEPTHS:
                return number, token.end()
    return at, len(lines[at])


def value(text: str, place: str, line: int, limits: ImportLimits) -> Any:
    """The value. Raises ValueError for a text that is not one plain value, and BoundReached."""
    try:
        tree = _plain(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as problem:
        raise ValueError(BROKEN) from problem
    json_text.check_depth(tree, f"{place}:{line}", limits)
    return tree


def documents(content: bytes, place: str, limits: ImportLimits) -> list[tuple[int, Any]]:
    """The line and the value of each object of a text of nothing else; empty for other texts."""
    lines = content.decode("utf-8", "replace").splitlines()
    values, at = [], 0
    while at < len(lines):
        text, end = text_at(lines, at)
        if not text or "\n".join(lines[at:end]).strip() != text:
            return []
        try:
            values.append((at + 1, value(text, place, at + 1, limits)))
        except ValueError:
            return []
        at = end
        while at < len(lines) and not lines[at].strip():
            at += 1
    return values


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {str(name): _plain(part) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        return [_plain(part) for part in tree]
    if tree is None or isinstance(tree, str | bool | int | float):
        return tree
    raise ValueError(BROKEN)
