"""JSONPath as printer columns use it: fields, indices, wildcards, and filters on equality.

Example: `.status.conditions[?(@.type=="Ready")].status` is the status of the condition Ready.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias

Step: TypeAlias = Callable[[Any], Iterable[Any]]

STEPS_MAX = 64
"""The most steps that a path may have."""

_FIELD = re.compile(r"\.((?:\\.|[^.\[\]\\])+)")
_QUOTED = re.compile(r"""\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]""")
_INDEX = re.compile(r"\[(-?\d+)\]")
_WILD = re.compile(r"\[\*\]|\.\*")
_SLICE = re.compile(r"\[(-?\d*):(-?\d*)\]")
_FILTER = re.compile(
    r"""\[\?\(\s*@((?:\.(?:\\.|[\w/-])+)+)\s*(==|!=)\s*(?:'([^']*)'|"([^"]*)"|([\w.+-]+))\s*\)\]"""
)


class JsonPathError(ValueError):
    """A path that cannot be read."""


@lru_cache(maxsize=4_096)
def parse(text: str) -> tuple[Step, ...]:
    """The steps of a path, which may be enclosed in braces. Raises JsonPathError."""
    rest = text.strip()
    if rest.startswith("{") and rest.endswith("}"):
        rest = rest[1:-1].strip()
    rest = rest.removeprefix("$")
    if rest and rest[0] not in ".[":
        rest = f".{rest}"
    steps: list[Step] = []
    while rest and rest != ".":
        step, length = _step(rest, text)
        steps.append(step)
        rest = rest[length:]
        if len(steps) > STEPS_MAX:
            raise JsonPathError(f"{text!r} has more than {STEPS_MAX} steps")
    return tuple(steps)


def select(tree: Any, text: str) -> list[Any]:
    """The values that a path selects, in order. Raises JsonPathError."""
    values = [tree]
    for step in parse(text):
        values = [value for item in values for value in step(item)]
    return values


def fields(text: str) -> tuple[str, ...]:
    """The field names of a path of fields only, such as `.spec.replicas`; else an empty tuple."""
    names = []
    rest = text if text.startswith(".") else f".{text}"
    while rest:
        match = _FIELD.match(rest)
        if match is None:
            return ()
        names.append(_plain(match.group(1)))
        rest = rest[match.end() :]
    return tuple(names)


def _step(rest: str, text: str) -> tuple[Step, int]:
    if match := _WILD.match(rest):
        return _every, match.end()
    if match := _FIELD.match(rest):
        return _field(_plain(match.group(1))), match.end()
    if match := _QUOTED.match(rest):
        return _field(_plain(match.group(1) or match.group(2) or "")), match.end()
    if match := _INDEX.match(rest):
        return _item(int(match.group(1))), match.end()
    if match := _SLICE.match(rest):
        first, last = (int(part) if part else None for part in match.groups())
        return _items(slice(first, last)), match.end()
    if match := _FILTER.match(rest):
        wanted = next(part for part in match.groups()[2:] if part is not None)
        return _filter(fields(match.group(1)), wanted, match.group(2) == "=="), match.end()
    raise JsonPathError(f"{text!r} cannot be read at {rest!r}")


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _field(name: str) -> Step:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _item(index: int) -> Step:
    def find(value: Any) -> Iterable[Any]:
        is_there = isinstance(value, list) and -len(value) <= index < len(value)
        return [value[index]] if is_there else []

    return find


def _items(part: slice) -> Step:
    return lambda value: value[part] if isinstance(value, list) else []


def _every(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _filter(path: tuple[str, ...], wanted: str, equal: bool) -> Step:
    def find(value: Any) -> Iterable[Any]:
        items = value if isinstance(value, list) else [value]
        return [item for item in items if (_text(_follow(item, path)) == wanted) is equal]

    return find


def _follow(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
