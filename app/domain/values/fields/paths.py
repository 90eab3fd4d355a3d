"""Readers of one path, made once and called with the object.

Each does what the function of the same name in `json_tree` does; the path is fixed, which saves the
loop over its steps.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView


def get(*path: str) -> Callable[[JsonView], Any]:
    """The value at the path, or None."""
    if len(path) != 2:
        return lambda tree: json_tree.get(tree, *path)
    outer, inner = path

    def read(tree: Any) -> Any:
        if tree.__class__ is not dict and not isinstance(tree, Mapping):
            return None
        part = tree.get(outer)
        if part.__class__ is dict or isinstance(part, Mapping):
            return part.get(inner)
        return None

    return read


def text(*path: str) -> Callable[[JsonView], str]:
    """The text at the path; empty when it is absent or not text."""
    value_of = get(*path)

    def read(tree: JsonView) -> str:
        value = value_of(tree)
        return value if isinstance(value, str) else ""

    return read


def integer(*path: str) -> Callable[[JsonView], int | None]:
    """The integer at the path, or None; booleans are not integers here."""
    value_of = get(*path)

    def read(tree: JsonView) -> int | None:
        value = value_of(tree)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return read


def flag(*path: str) -> Callable[[JsonView], bool]:
    """True when the path holds true."""
    value_of = get(*path)
    return lambda tree: value_of(tree) is True


def mapping(*path: str) -> Callable[[JsonView], JsonView]:
    """The object at the path; empty when it is absent or of another type."""
    value_of = get(*path)

    def read(tree: JsonView) -> JsonView:
        value = value_of(tree)
        is_object = value.__class__ is dict or isinstance(value, Mapping)
        return cast(JsonView, value) if is_object else json_tree.EMPTY

    return read


def objects(*path: str) -> Callable[[JsonView], list[JsonObject]]:
    """The objects in the list at the path, in order; items of another type are passed over."""
    value_of = get(*path)

    def read(tree: JsonView) -> list[JsonObject]:
        value = value_of(tree)
        return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []

    return read


def texts(*path: str) -> Callable[[JsonView], list[str]]:
    """The texts in the list at the path, in order."""
    value_of = get(*path)

    def read(tree: JsonView) -> list[str]:
        value = value_of(tree)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    return read


def labels(*path: str) -> Callable[[JsonView], dict[str, str]]:
    """The object at the path as text to text; entries of another type are passed over."""
    value_of = mapping(*path)
    return lambda tree: {
        key: value for key, value in value_of(tree).items() if isinstance(value, str)
    }
