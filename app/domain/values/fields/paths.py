"""Readers of one fixed path, created once and called with the object.

Each reader does the same as the function of that name in `json_tree`, without the loop over the
steps of the path. Nearly every object is a `dict`, and nearly every path has one or two steps; in
these cases texts and objects are read without a further call.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView

_T = TypeVar("_T")


def get(*path: str) -> Callable[[JsonView], Any]:
    """Returns a reader of the value at the path, or None."""
    if len(path) == 1:
        return _get_of_one(path[0])
    if len(path) != 2:
        return lambda tree: json_tree.get(tree, *path)
    outer, inner = path

    def read(tree: Any) -> Any:
        if tree.__class__ is not dict and not isinstance(tree, Mapping):
            return None
        part = tree.get(outer)
        if part.__class__ is dict or (part is not None and isinstance(part, Mapping)):
            return part.get(inner)
        return None

    return read


def _get_of_one(step: str) -> Callable[[JsonView], Any]:
    def read(tree: Any) -> Any:
        if tree.__class__ is dict or isinstance(tree, Mapping):
            return tree.get(step)
        return None

    return read


def text(*path: str) -> Callable[[JsonView], str]:
    """Returns a reader of the text at the path; empty when it is absent or not text."""
    value_of = get(*path)
    if len(path) == 1:
        return _text_of_one(path[0])
    if len(path) != 2:

        def read(tree: JsonView) -> str:
            value = value_of(tree)
            return value if isinstance(value, str) else ""

        return read
    outer, inner = path

    def read_of_two(tree: Any) -> str:
        part = tree.get(outer) if tree.__class__ is dict else tree
        value = part.get(inner) if part.__class__ is dict else value_of(tree)
        return value if isinstance(value, str) else ""

    return read_of_two


def _text_of_one(step: str) -> Callable[[JsonView], str]:
    value_of = _get_of_one(step)

    def read(tree: Any) -> str:
        value = tree.get(step) if tree.__class__ is dict else value_of(tree)
        return value if isinstance(value, str) else ""

    return read


def typed(kind: Callable[[str], _T], read: Callable[[JsonView], str]) -> Callable[[JsonView], _T]:
    """The same reader of a text, with its type: an identifier is a text when the code runs."""
    return cast(Callable[[JsonView], _T], read)


def integer(*path: str) -> Callable[[JsonView], int | None]:
    """Returns a reader of the integer at the path, or None; booleans are not integers here."""
    value_of = get(*path)

    def read(tree: JsonView) -> int | None:
        value = value_of(tree)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return read


def flag(*path: str) -> Callable[[JsonView], bool]:
    """Returns a predicate that is true when the path holds true."""
    value_of = get(*path)
    return lambda tree: value_of(tree) is True


def mapping(*path: str) -> Callable[[JsonView], JsonView]:
    """Returns a reader of the object at the path; empty when absent or of another type."""
    value_of = get(*path)

    def read(tree: JsonView) -> JsonView:
        value: JsonView | None = value_of(tree)
        if value is None:
            return json_tree.EMPTY
        is_object = value.__class__ is dict or isinstance(value, Mapping)
        return value if is_object else json_tree.EMPTY

    if len(path) != 1:
        return read
    (step,) = path

    def read_of_one(tree: Any) -> JsonView:
        if tree.__class__ is not dict:
            return read(tree)
        value: JsonView | None = tree.get(step)
        if value is None:  # A check against an abstract class costs ten times as much.
            return json_tree.EMPTY
        return value if value.__class__ is dict else read(tree)

    return read_of_one


def objects(*path: str) -> Callable[[JsonView], list[JsonObject]]:
    """Returns a reader of the objects in the list at the path, in order; others are skipped."""
    value_of = get(*path)
    objects_of = json_tree.objects_of

    def read(tree: JsonView) -> list[JsonObject]:
        value = value_of(tree)
        return [] if value is None else objects_of(value)

    return read


def texts(*path: str) -> Callable[[JsonView], list[str]]:
    """Returns a reader of the texts in the list at the path, in order."""
    value_of = get(*path)

    def read(tree: JsonView) -> list[str]:
        value = value_of(tree)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    return read


def labels(*path: str) -> Callable[[JsonView], dict[str, str]]:
    """Returns a reader of the map from text to text at the path; other entries are skipped."""
    value_of = mapping(*path)
    return lambda tree: {
        key: value for key, value in value_of(tree).items() if isinstance(value, str)
    }
