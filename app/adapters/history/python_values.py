"""Objects as Python prints them: what a client of the API, a notebook or a log shows of a dict.

    {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'web', 'labels': None}}

Most of it is YAML too, which reads None as a text and no escapes between single quotes. Clients
that are generated for Python name fields in their own way, and show times as Python does:

    {'api_version': 'v1', 'kind': 'Pod', 'metadata': {'creation_timestamp': datetime.datetime(…)}}
    api_version='v1' kind='Pod' metadata={'creation_timestamp': datetime.datetime(…)}

Their `to_dict()` is also written as JSON or YAML, with times as texts:

    {"api_version": "v1", "metadata": {"creation_timestamp": "2026-01-02 03:04:05+00:00"}, …}
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from app.adapters.history import json_text
from app.adapters.history.limits import ImportLimits
from app.domain.errors import InputError
from app.domain.objects import registry
from app.domain.objects.protobuf import fields
from app.domain.values.json_tree import JsonObject
from app.domain.values.protobuf import Message, ProtobufField

TEXT_MAX = 1_000_000
"""Characters of a value that is read; Python needs some hundred bytes for each."""

BROKEN = "an object as Python prints it, which breaks off or holds more than plain values"

KINDLESS = "an object of a client for Python without its kind, as those in a list are"

_BEGIN = re.compile(r"(?:\[\s*)?\{'[A-Za-z]\w{0,62}': ")
_TOKEN = re.compile(r"'(?:[^'\\\n]|\\.)*+'?|\"(?:[^\"\\\n]|\\.)*+\"?|[\[\]{}()]")
_FIELD = re.compile(r"(?<!\S)(?P<name>[a-z]\w{0,62})=(?=['\"\[{\d-]|None|True|False|datetime)")
_VALUE = re.compile(
    r"(?:'[^'\\\n]*(?:\\.[^'\\\n]*)*'|\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|[^\s'\"\[{(]+)"
)
_OF_CLIENT = "'api_version': "
_MEMBERS = (("'apiVersion': '", "'kind': '"), (_OF_CLIENT, "'kind': "))
_ZONES = (
    *("tzutc()", "tzlocal()", "datetime.timezone.utc", "timezone.utc"),
    *("TzInfo(UTC)", "TzInfo(0)"),
)
"""How a time in UTC shows its zone: those of dateutil, of Python, and of pydantic.

A server writes all times in UTC, for which dateutil has the local zone where that is called UTC.
"""
_WATCHED = {"type", "object", "raw_object"}
"""The fields of a change that a client watches: its own object, and the one that was sent."""
_TIMES = ("Time", "MicroTime")
"""The types of fields that hold an instant."""
_DEPTHS = {"{": 1, "[": 1, "(": 1, "}": -1, "]": -1, ")": -1}


def text_at(lines: Sequence[str], at: int) -> tuple[str, int]:
    """The text of the object that begins in a line, and the line behind it; empty without any.

    One that breaks off is the rest of its line. `''` is an escape of YAML, not of Python.
    """
    if "api_version=" in lines[at] and (shown := _model(lines, at)) is not None:
        return shown.text, shown.end
    match = _BEGIN.search(lines[at]) if "{'" in lines[at] else None
    if match is None:
        return "", at
    last, end = _end(lines, at, match.start())
    text = "\n".join([*lines[at:last], lines[last][:end]])[match.start() :]
    is_object = any(all(each in text for each in pair) for pair in _MEMBERS)
    return (text, last + 1) if is_object and not _is_yaml(text) else ("", at)


def _is_yaml(text: str) -> bool:
    """True where two texts touch: in YAML their quotes are one quote within a text."""
    ends = -1
    for token in _TOKEN.finditer(text):
        if token.start() == ends and token[0][0] == "'":
            return True
        ends = token.end() if token[0][0] == "'" else -1
    return False


@dataclass(frozen=True, slots=True)
class _Model:
    """A model of a client as Python prints it: its text, and the texts of its fields.

    `end` is the line behind it. One that breaks off has no fields.
    """

    text: str
    end: int
    fields: tuple[tuple[str, str], ...] = ()

    def as_dict(self) -> str:
        return "{" + ", ".join(f"{name!r}: {value}" for name, value in self.fields) + "}"


def _model(lines: Sequence[str], at: int) -> _Model | None:
    """The model that begins in a line; None without any. Its fields are in order of their names."""
    starts = (each for each in _FIELD.finditer(lines[at]) if each["name"] <= "api_version")
    begin = next(starts, None)
    if begin is None:
        return None
    number, column = at, begin.start()
    members: list[tuple[str, str]] = []
    match: re.Match[str] | None = begin
    while match is not None:
        last, end = _value_end(lines, number, match.end(), at)
        if end < 0:
            return _Model(lines[at][begin.start() :], at + 1)
        text = "\n".join([*lines[number:last], lines[last][:end]])[match.end() :]
        members.append((match["name"], text))
        number, column = last, end
        match = _FIELD.match(lines[number], column + 1) if lines[number][column:] else None
    if not {"api_version", "kind"} <= {name for name, _ in members}:
        return None
    text = "\n".join([*lines[at:number], lines[number][:column]])[begin.start() :]
    return _Model(text, number + 1, tuple(members))


def _value_end(lines: Sequence[str], at: int, column: int, first: int) -> tuple[int, int]:
    """The line and the column behind a value; no column for one that breaks off.

    Only an object whose first line is not set in goes on in lines that are: no line is read twice.
    """
    plain = _VALUE.match(lines[at], column)
    if plain is not None and lines[at][plain.end() : plain.end() + 1] not in ("(", "[", "{"):
        return at, plain.end()
    depth, length = 0, 0
    for number in range(at, len(lines)):
        start = column if number == at else 0
        length += len(lines[number]) - start
        is_inside = number == at or (lines[number][:1] == " " and lines[first][:1] != " ")
        if length > TEXT_MAX or not is_inside:
            break
        for token in _TOKEN.finditer(lines[number], start):
            depth += _DEPTHS.get(token[0], 0)
            if depth == 0 and token[0] in _DEPTHS:
                return number, token.end()
    return at, -1


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
    shown = None if text.startswith(("{", "[")) else _model(text.split("\n"), 0)
    if shown is not None and not shown.fields:
        raise ValueError(BROKEN)
    try:
        plain = text if shown is None else shown.as_dict()
        parsed = ast.literal_eval(_Calls().visit(ast.parse(plain, mode="eval")))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as problem:
        raise ValueError(BROKEN) from problem
    tree = _of_client(parsed)
    json_text.check_depth(tree, f"{place}:{line}", limits)
    return tree


def is_of_client(tree: Any) -> bool:
    """True for an object with the names of a client, or a list that begins with one."""
    if isinstance(tree, list):
        return bool(tree) and is_of_client(tree[0])
    return isinstance(tree, dict) and "api_version" in tree and "kind" in tree


def served(tree: JsonObject) -> JsonObject:
    """The object with the names of the API, if it has those of a client.

    Raises InputError for one that cannot be read.
    """
    if not is_of_client(tree) or "apiVersion" in tree:
        return tree
    try:
        return cast(JsonObject, _of_client(tree))
    except ValueError as problem:
        raise InputError(str(problem)) from problem


def documents(content: bytes, place: str, limits: ImportLimits) -> list[tuple[int, Any]]:
    """The line and the value of each object of a text of nothing else; empty for other texts.

    Raises InputError for an object of a client that cannot be read: as YAML it would have other
    fields, such as parts of its times.
    """
    lines = content.decode("utf-8", "replace").splitlines()
    values, at = [], 0
    while at < len(lines):
        text, end = text_at(lines, at)
        if not text or "\n".join(lines[at:end]).strip() != text:
            return []
        try:
            values.append((at + 1, value(text, place, at + 1, limits)))
        except ValueError as problem:
            if _OF_CLIENT in text or "api_version=" in text:
                raise InputError(str(problem), place=f"{place}:{at + 1}") from problem
            return []
        at = end
        while at < len(lines) and not lines[at].strip():
            at += 1
    return values


class _Calls(ast.NodeTransformer):
    """Puts times in UTC in place of the calls that make them."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        zones = [ast.unparse(each.value) for each in node.keywords if each.arg == "tzinfo"]
        if ast.unparse(node.func) not in ("datetime.datetime", "datetime"):
            return node
        if len(zones) != 1 or len(node.keywords) != 1 or zones[0] not in _ZONES:
            return node
        numbers = [int(ast.literal_eval(each)) for each in node.args]
        year, month, day, hour, minute, second, micros = [*numbers, *[0] * (7 - len(numbers))]
        time = datetime(year, month, day, hour, minute, second, micros, tzinfo=UTC)
        return ast.copy_location(ast.Constant(cast(Any, time)), node)


def _of_client(tree: Any) -> Any:
    """The value with the names of the API, where a client named the fields in its own way."""
    if isinstance(tree, list | tuple):
        return [_of_client(item) for item in tree]
    if isinstance(tree, dict) and tree.keys() == _WATCHED:
        return {"type": tree["type"], "object": _plain(tree["raw_object"])}
    if not isinstance(tree, dict) or "api_version" not in tree:
        return _plain(tree)
    version, kind = tree["api_version"], tree.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        raise ValueError(KINDLESS)
    group, number = registry.split_api_version(version)
    item = fields.message_name(group, number, kind.removesuffix("List"))
    if item is None:
        raise ValueError(f"an object of a client for Python of the unknown kind {kind}")
    named: JsonObject = {"apiVersion": version, "kind": kind}
    if not kind.endswith("List"):
        return named | _named(tree, item)
    return named | {"metadata": {}, "items": [_named(each, item) for each in tree["items"]]}


def _named(tree: Any, message: str) -> JsonObject:
    """The fields of a message under their names; those without a value are left out."""
    if not isinstance(tree, dict):
        raise ValueError(BROKEN)
    known = {_letters(each.name): each for each in _fields(fields.MESSAGES[message])}
    named: JsonObject = {}
    for name, part in tree.items():
        if part is None or (name in ("api_version", "kind") and _letters(name) not in known):
            continue
        described = known.get(_letters(str(name)))
        if described is None:
            raise ValueError(f"an object of a client for Python with the unknown field {name}")
        named[described.name] = _part(part, described)
    return named


def _fields(message: Message) -> Iterator[ProtobufField]:
    for described in message.values():
        if described.is_inline:
            yield from _fields(fields.MESSAGES[described.type])
        else:
            yield described


def _letters(name: str) -> str:
    """The letters that a name of the API and that of a client share: `podIPs`, `pod_i_ps`."""
    return name.replace("_", "").replace("-", "").lower()


def _part(part: Any, described: ProtobufField) -> Any:
    if described.is_map and isinstance(part, dict):
        return {name: _one(value, described.type) for name, value in part.items()}
    if described.is_list and isinstance(part, list | tuple):
        return [_one(value, described.type) for value in part]
    return _one(part, described.type)


def _one(value: Any, kind: str) -> Any:
    if kind in _TIMES and isinstance(value, str):
        value = _time(value)
    if kind == "MicroTime" and isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S.%f}Z"
    return _named(value, kind) if kind in fields.MESSAGES else _plain(value)


def _time(text: str) -> datetime | str:
    """The instant that a text shows as Python writes times; the text for one without a zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    return time.astimezone(UTC) if time.tzinfo is not None else text


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {str(name): _plain(part) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        return [_plain(part) for part in tree]
    if isinstance(tree, datetime):
        return f"{tree:%Y-%m-%dT%H:%M:%S}{f'.{tree:%f}' if tree.microsecond else ''}Z"
    if tree is None or isinstance(tree, str | bool | int | float):
        return tree
    raise ValueError(BROKEN)
