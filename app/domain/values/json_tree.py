"""JSON as Python values, with typed access.

Objects of the API are kept as the tree that was received. Code reads the fields of such a tree with
these functions, so that wrong types are handled in one place and `Any` goes no further.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""An object whose values are JSON: None, bool, int, float, str, list or another object."""

JsonView: TypeAlias = Mapping[str, Any]
"""A JSON object that its readers do not change."""

EMPTY: JsonView = {}


def get(tree: JsonView, *path: str) -> Any:
    """The value at `path`, or None where a step is missing or is not an object."""
    value: Any = tree
    for step in path:
        # Nearly every step is a dict or absent, and a check against an abstract class costs more.
        if value.__class__ is not dict and (value is None or not isinstance(value, Mapping)):
            return None
        value = value.get(step)
    return value


def text(tree: JsonView, *path: str) -> str:
    """The text at `path`; empty when it is absent or not text."""
    # The loop of `get` is repeated here because this function is called most often.
    value: Any = tree
    for step in path:
        if value.__class__ is not dict and (value is None or not isinstance(value, Mapping)):
            return ""
        value = value.get(step)
    return value if isinstance(value, str) else ""


def integer(tree: JsonView, *path: str) -> int | None:
    """The integer at `path`, or None; booleans are not integers here."""
    value = get(tree, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(tree: JsonView, *path: str) -> bool:
    """True when `path` holds true."""
    return get(tree, *path) is True


def mapping(tree: JsonView, *path: str) -> JsonView:
    """The object at `path`; empty when it is absent or of another type."""
    value: JsonView | None = get(tree, *path)
    if value is None:
        return EMPTY
    is_object = value.__class__ is dict or isinstance(value, Mapping)
    return value if is_object else EMPTY


def objects(tree: JsonView, *path: str) -> list[JsonObject]:
    """The objects in the list at `path`, in order; items of another type are skipped."""
    return objects_of(get(tree, *path))


def objects_of(value: Any) -> list[JsonObject]:
    """The objects in a list, in order; items of another type are skipped. Empty for no list."""
    if not isinstance(value, list):
        return []
    if len(value) >= _LONG and set(map(type, value)) == _DICT:
        return value.copy()
    return [item for item in value if isinstance(item, dict)]


_DICT = {dict}
_LONG = 8
"""The length from which on the types of a list's items are looked at together."""


def texts(tree: JsonView, *path: str) -> list[str]:
    """The texts in the list at `path`, in order; items of another type are skipped."""
    value = get(tree, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def labels(tree: JsonView, *path: str) -> dict[str, str]:
    """The object at `path` as a map from text to text; entries of another type are skipped."""
    return {key: value for key, value in mapping(tree, *path).items() if isinstance(value, str)}


def walk(tree: Any) -> Iterator[Any]:
    """All values of the tree, parents before children."""
    pending = [tree]
    while pending:
        value = pending.pop()
        yield value
        if isinstance(value, Mapping):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def copy(tree: Any) -> Any:
    """A deep copy of a JSON tree; several times faster than `copy.deepcopy`."""
    if isinstance(tree, dict):
        return {key: copy(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [copy(item) for item in tree]
    return tree
