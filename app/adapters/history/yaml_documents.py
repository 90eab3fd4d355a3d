"""YAML documents as JSON values: no tags, bounded depth and aliases, scalars as in YAML 1.2.

The tree is built from the parser's events with an explicit stack, so that the depth and the size
after expanding aliases are checked before memory is used. Tags are never evaluated. Scalars that
YAML 1.1 reads as booleans, dates or base-60 numbers (`on`, `no`, `2026-01-02`, `1:30`) stay text,
as does a number with an exponent and no decimal point (`1e3`), which in these files is a quantity.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml.reader import ReaderError

from app.adapters.history.limits import BoundReached, ImportLimits
from app.domain.errors import InputError

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_OCTAL_OR_HEX = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_INTEGER_DIGITS_MAX = 19
_STANDARD = "tag:yaml.org,2002:"

DOUBLED_MIN = 4
"""The least number of lines with an empty one between each that are attributed to a program."""

_FIRST_OF_DOUBLED = re.compile(rb"(?:---|#|- \S|[\w./\"'-]+:(?:\s|$))[^\n]*\n[ \t\r]*\n")

Scalar = Callable[[str], Any]
"""The value of a scalar without quotes."""


@dataclass(slots=True)
class _UnfinishedNode:
    """A collection under construction; `size` counts its nodes with aliases expanded."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    size: int = 1
    key: str | None = None
    has_key: bool = False
    is_merged: bool = False


class IsTemplate(InputError):
    """A file is a template, such as one of a chart of Helm; rendered, it may be YAML."""


class _RepeatedKey(Exception):
    """A key that stands twice in one mapping: a server refuses it, and one value would be lost."""


class _KeyIsNoScalar(Exception):
    """A key that is a mapping or a list: JSON has none, but a template looks like that."""


@dataclass(slots=True)
class _TreeBuilder:
    place: str
    limits: ImportLimits
    stack: list[_UnfinishedNode] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    root: Any = None
    size: int = 0

    def reset(self) -> None:
        self.stack.clear()
        self.anchors.clear()
        self.root = None
        self.size = 0

    def open(self, value: dict[str, Any] | list[Any], anchor: str | None) -> None:
        if len(self.stack) >= self.limits.depth_max:
            raise BoundReached(
                f"nested deeper than {self.limits.depth_max}", place=self.place, cure="flatten it"
            )
        self.stack.append(_UnfinishedNode(value, anchor))

    def close(self) -> None:
        done = self.stack.pop()
        self.add(done.value, done.size, done.anchor)

    def add(self, value: Any, size: int, anchor: str | None) -> None:
        if anchor:
            self.anchors[anchor] = (value, size)
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        top.size += size
        # The size of a parent includes its closed collections, so checking the top is enough.
        if top.size > self.limits.yaml_expanded_nodes_max:
            raise BoundReached(
                f"aliases expand to more than {self.limits.yaml_expanded_nodes_max} nodes",
                place=self.place,
                cure="write the values out, or raise yaml_expanded_nodes_max",
            )
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.has_key:
            if top.key == "<<" and isinstance(value, dict):
                top.value.update(
                    {name: part for name, part in value.items() if name not in top.value}
                )
                top.is_merged = True
            elif top.key in top.value and not top.is_merged:
                raise _RepeatedKey(top.key)
            else:
                top.value[top.key or ""] = value
            top.has_key = False
        else:
            if isinstance(value, dict | list):
                raise _KeyIsNoScalar
            top.key, top.has_key = _key_text(value), True

    def alias(self, name: str) -> None:
        if name not in self.anchors:
            raise InputError(f"alias *{name} stands inside or before its anchor", place=self.place)
        value, size = self.anchors[name]
        self.add(value, size, None)


def parse_documents(
    content: bytes,
    place: str,
    limits: ImportLimits,
    *,
    first_line: int = 1,
    with_texts: bool = False,
    scalar: Scalar | None = None,
) -> Iterator[tuple[int, Any]]:
    """The first line and the value of each document. Raises InputError with place and line.

    `first_line` is the number of the first line of `content` in its source. Documents that are one
    text, as words between lines of `---` are, come only `with_texts`. `scalar` gives scalars
    without quotes their values instead of `plain`.
    """
    content, step = undoubled(content)
    builder = _TreeBuilder(place, limits)
    line = first_line
    try:
        for event in yaml.parse(content, Loader=yaml.CSafeLoader):
            if isinstance(event, ScalarEvent):
                builder.add(_scalar(event, place, scalar or plain), 1, event.anchor)
                if with_texts and not builder.stack and isinstance(builder.root, str):
                    yield line, builder.root
            elif isinstance(event, MappingStartEvent):
                _check_tag(event, "map", place)
                builder.open({}, event.anchor)
            elif isinstance(event, SequenceStartEvent):
                _check_tag(event, "seq", place)
                builder.open([], event.anchor)
            elif isinstance(event, MappingEndEvent | SequenceEndEvent):
                builder.close()
                if not builder.stack:
                    yield line, builder.root
            elif isinstance(event, AliasEvent):
                builder.alias(event.anchor or "")
            elif isinstance(event, DocumentStartEvent):
                builder.reset()
                line = event.end_mark.line * step + first_line if event.end_mark else line
    except _RepeatedKey as problem:
        at = event.start_mark.line * step + first_line if event.start_mark else line
        raise InputError(
            f"the key {problem} stands twice in one object",
            place=f"{place}:{at}",
            cure="take one of the two out",
        ) from problem
    except _KeyIsNoScalar as problem:
        last = event.start_mark.line + 1 if event.start_mark else 1
        at = (last - 1) * step + first_line
        _check_is_no_template(content, last, last, f"{place}:{at}")
        raise InputError("a mapping key is not a scalar", place=f"{place}:{at}") from problem
    except yaml.YAMLError as problem:
        at_fault = _problem_place(problem, content, place, first_line, step)
        if isinstance(problem, yaml.MarkedYAMLError) and problem.problem_mark is not None:
            last = problem.problem_mark.line + 1
            first = last if problem.context_mark is None else problem.context_mark.line + 1
            _check_is_no_template(content, first, last, at_fault)
        raise InputError(_problem_text(problem), place=at_fault) from problem
    except (UnicodeDecodeError, ValueError) as problem:
        raise InputError(f"it is not YAML in UTF-8: {problem}", place=place) from problem


def undoubled(content: bytes) -> tuple[bytes, int]:
    """The content and 1; without the empty lines behind each of its lines, if it has them, and 2.

    A mail or a page may put them there, also within the texts of fields. Nobody separates the
    fields of an object so, and the lines that were empty before are kept.
    """
    if _FIRST_OF_DOUBLED.match(content) is None:
        return content, 1
    lines = content.split(b"\n")
    if len(lines) < 2 * DOUBLED_MIN or any(line.strip() for line in lines[1::2]):
        return content, 1
    return b"\n".join(lines[::2]), 2


def _check_is_no_template(content: bytes, first: int, last: int, place: str) -> None:
    """Raises IsTemplate if one of the lines that are no YAML has an action of a template."""
    lines = content.splitlines()[first - 1 : last]
    if any(b"}}" in line.partition(b"{{")[2] for line in lines):
        raise IsTemplate(
            "it is a template, which is no YAML before its {{ … }} are replaced",
            place=place,
            cure="render it, for example with helm template",
        )


def _scalar(event: Any, place: str, value_of: Scalar) -> Any:
    tag = event.tag
    if tag is not None and tag != "!":
        return _tagged(tag, event.value, place)
    if event.style or tag == "!":
        return event.value
    return value_of(event.value)


def plain(text: str) -> Any:
    """The value of an unquoted scalar. Example: `on` → text, `0x1f` → 31, `1.5` → 1.5."""
    if not text or text[0] not in "0123456789+-.~nNtTfF":
        return text if text else None
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= _INTEGER_DIGITS_MAX else text
    if _OCTAL_OR_HEX.fullmatch(text):
        return int(text, 0) if len(text) <= _INTEGER_DIGITS_MAX else text
    if _DECIMAL.fullmatch(text):
        return float(text)
    return text


def _tagged(tag: str, text: str, place: str) -> Any:
    if tag == f"{_STANDARD}str":
        return text
    if tag in {f"{_STANDARD}{name}" for name in ("int", "float", "bool", "null")}:
        return plain(text)
    raise InputError(f"the tag {tag!r} is not read", place=place, cure="remove the tag")


def _check_tag(event: Any, expected: str, place: str) -> None:
    if event.tag not in (None, "!", f"{_STANDARD}{expected}"):
        raise InputError(f"the tag {event.tag!r} is not read", place=place, cure="remove the tag")


def _key_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _problem_text(problem: yaml.YAMLError) -> str:
    if isinstance(problem, yaml.MarkedYAMLError):
        return f"it is not YAML: {problem.problem or problem.context or 'unreadable'}"
    if isinstance(problem, ReaderError) and "control" in problem.reason:
        return f"it is not YAML: it holds the control character 0x{problem.character:02x}"
    return f"it is not YAML: {' '.join(str(problem).split())}"


def _problem_place(
    problem: yaml.YAMLError, content: bytes, place: str, first_line: int, step: int
) -> str:
    if isinstance(problem, ReaderError):
        line = content.count(b"\n", 0, problem.position) * step + first_line
        return f"{place}:{line}"
    mark = problem.problem_mark if isinstance(problem, yaml.MarkedYAMLError) else None
    if mark is None:
        return place
    return f"{place}:{mark.line * step + first_line}:{mark.column + 1}"
