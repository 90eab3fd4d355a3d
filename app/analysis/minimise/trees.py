"""Parts of objects: their paths, and objects without them.

A path is a tuple of steps: the name of a field, or an identified item of a list, as in `("spec",
"devices", "[name=gpu-0]", "attributes")`. Items keep their path when others are cut.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant, TimestampError

Path: TypeAlias = tuple[str, ...]

_NAMED_BY = ("name", "type", "key", "uid", "request", "driver", "device")
"""The fields that identify items of a list, tried in this order."""

_KEPT = frozenset(
    (
        ("apiVersion",),
        ("kind",),
        ("metadata",),
        ("metadata", "name"),
        ("metadata", "namespace"),
        ("metadata", "uid"),
        ("metadata", "resourceVersion"),
        ("metadata", "creationTimestamp"),
        ("metadata", "ownerReferences"),
        ("status", "allocation", "allocationTimestamp"),
    )
)
"""The parts that every object keeps: its identity, and its creation time.

An allocation that stays keeps its time, too: without one it is that of a release without the gate
DRADeviceBindingConditions, which the recording is not of.
"""

Number: TypeAlias = int | str
"""A number, or a quantity as text."""

NO_VALUES: Mapping[Path, Number] = {}

_AMOUNT = re.compile(r"([1-9]\d{0,14})([A-Za-z]{0,2})")

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def paths(tree: Any, depth: int) -> Iterator[Path]:
    """The paths of `depth` steps that may be cut, in the order of the tree."""
    for path in _paths(tree, depth, ()):
        if path not in _KEPT and path[:2] != ("metadata", "ownerReferences"):
            yield path


def every_path(tree: Any, depth: int) -> Iterator[Path]:
    """The paths of `depth` steps, including parts that must stay."""
    return _paths(tree, depth, ())


def kind_of(step: str) -> str:
    """The step of a path, without what identifies an item: all items of a list are of one kind."""
    return "[]" if step.startswith("[") else step


def items(tree: Any, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The objects in the list at a path, with their own paths; none where it is no such list."""
    for name in path:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    if isinstance(tree, list) and all(isinstance(item, Mapping) for item in tree):
        for label, item in zip(_labels(tree), tree, strict=True):
            yield (*path, label), item


def numbers(tree: Any) -> Iterator[tuple[Path, Number]]:
    """The numbers and quantities above 1, with their paths, except those in the metadata."""
    for path, value in _leaves(tree, ()):
        if path[0] != "metadata" and smaller(value):
            yield path, value


def smaller(value: Any) -> list[Number]:
    """Smaller numbers of the same form, the smallest first: for `8Gi` these are 1Gi, 4Gi, 7Gi."""
    count = amount(value)
    if count <= 1:
        return []
    return [with_amount(value, less) for less in dict.fromkeys((1, count // 2, count - 1))]


def amount(value: Any) -> int:
    """The number in a number or quantity; 0 for anything else: 8 for `8Gi`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    parts = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    return 0 if parts is None else int(parts[1])


def with_amount(value: Number, number: int) -> Number:
    """Another number of the same form: `5Gi` for `8Gi` and 5."""
    if isinstance(value, int):
        return number
    parts = _AMOUNT.fullmatch(value)
    assert parts is not None, "a number or quantity"
    return f"{number}{parts[2]}"


def without(
    tree: JsonObject, cuts: Collection[Path], values: Mapping[Path, Number] = NO_VALUES
) -> JsonObject:
    """The tree without the parts at these paths, and with replaced numbers at others.

    Paths that do not exist are ignored.
    """
    if not cuts and not values:
        return tree
    cut: JsonObject = _without(tree, [path for path in cuts if path], values)
    return cut


def shifted(tree: Any, by: int) -> Any:
    """The tree with every instant in it moved earlier by `by` microseconds."""
    if not by:
        return tree
    if isinstance(tree, dict):
        return {name: shifted(value, by) for name, value in tree.items()}
    if isinstance(tree, list):
        return [shifted(item, by) for item in tree]
    if isinstance(tree, str) and _INSTANT.fullmatch(tree):
        return _earlier(tree, by)
    return tree


def _earlier(text: str, by: int) -> str:
    try:
        instant = Instant(timestamps.parse(text) - by)
    except TimestampError:
        return text
    return timestamps.micro_text(instant) if "." in text else timestamps.seconds_text(instant)


def _paths(tree: Any, depth: int, path: Path) -> Iterator[Path]:
    if depth == 0:
        yield path
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield from _paths(value, depth - 1, (*path, name))
    elif isinstance(tree, list):
        for label, item in zip(_labels(tree), tree, strict=True):
            yield from _paths(item, depth - 1, (*path, label))


def _leaves(tree: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _leaves(value, (*path, name))
    elif isinstance(tree, list):
        for label, item in zip(_labels(tree), tree, strict=True):
            yield from _leaves(item, (*path, label))
    else:
        yield path, tree


def _without(tree: Any, cuts: Collection[Path], values: Mapping[Path, Number]) -> Any:
    if () in values and not isinstance(tree, dict | list):
        return values[()]
    here = {path[0] for path in cuts if len(path) == 1}
    touched = {path[0] for path in (*cuts, *values) if path} - here

    def below(label: str, part: Any) -> Any:
        if label not in touched:
            return part
        return _without(
            part,
            [path[1:] for path in cuts if path[0] == label],
            {path[1:]: value for path, value in values.items() if path and path[0] == label},
        )

    if isinstance(tree, dict):
        return {name: below(name, value) for name, value in tree.items() if name not in here}
    if isinstance(tree, list):
        return [
            below(label, item)
            for label, item in zip(_labels(tree), tree, strict=True)
            if label not in here
        ]
    return tree


def _labels(items: list[Any]) -> list[str]:
    """The labels that identify the items: a field of each, or their full content."""
    for field in _NAMED_BY:
        values = [item.get(field) if isinstance(item, dict) else None for item in items]
        if all(isinstance(value, str) for value in values) and len(set(values)) == len(values):
            return [f"[{field}={value}]" for value in values]
    return [f"[{msgspec.json.encode(item, order='sorted').decode()}]" for item in items]
