"""Masked trees: objects without values that are random, counted or taken from a clock.

Two writes are the same when they differ in masked values alone.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from app.domain.values.json_tree import JsonObject

_CLOCK_FIELDS = frozenset(
    (
        "lastHeartbeatTime",
        "lastProbeTime",
        "allocationTimestamp",
        "creationTimestamp",
        "deletionTimestamp",
        "timeAdded",
        "resourceVersion",
        "managedFields",
    )
)

_TIME = "(time)"
"""Stands for the value of a lastTransitionTime: that there is one counts, not which one it is."""

_RANDOM = "(random)"
"""Stands for the value of a shareID: that there is one counts, which one is random."""

_STANDING_FOR = {"shareID": _RANDOM, "lastTransitionTime": _TIME}

_EMPTY: tuple[Any, ...] = (None, {}, [], "")
_NESTED = (dict, list)


def masked(tree: Any) -> Any:
    """The tree without values that are random, counted or taken from a clock."""
    if isinstance(tree, list):
        return [masked(item) if isinstance(item, _NESTED) else item for item in tree]
    if not isinstance(tree, dict):
        return tree
    kept: JsonObject = {}
    for name, value in tree.items():
        # Zero and false count; nothing else that is empty does.
        if name in _CLOCK_FIELDS or (not value and value in _EMPTY):
            continue
        if name in _STANDING_FOR:
            kept[name] = _STANDING_FOR[name]
        elif isinstance(value, _NESTED):
            kept[name] = masked(_without_count(value) if name == "metadata" else value)
        else:
            kept[name] = value
    return kept


def masked_where_different(old: Any, new: Any) -> tuple[Any, Any]:
    """Both trees, masked where they differ; parts that are equal are left as they are in both.

    `changes` gives the same of them as of the masked trees. Most writes change little of an
    object, and comparing two trees takes a fraction of the work of masking them.
    """
    if old == new:
        return old, old
    if not isinstance(old, dict) or not isinstance(new, dict):
        return masked(old), masked(new)
    left: JsonObject = {}
    right: JsonObject = {}
    for name in old.keys() | new.keys():
        was, now = old.get(name), new.get(name)
        if was == now:
            left[name] = right[name] = was
        elif was and now and isinstance(was, dict) and isinstance(now, dict) and _is_read(name):
            if name == "metadata":
                was, now = _without_count(was), _without_count(now)
            left[name], right[name] = masked_where_different(was, now)
        else:
            left |= masked({name: was})
            right |= masked({name: now})
    return left, right


def _is_read(name: str) -> bool:
    """Whether the value of a field counts, and not only that there is one."""
    return name not in _CLOCK_FIELDS and name not in _STANDING_FOR


def _without_count(metadata: Any) -> Any:
    """The metadata of an object without its generation, which counts writes."""
    if not isinstance(metadata, dict):
        return metadata
    return {name: value for name, value in metadata.items() if name != "generation"}


def changes(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place where two masked trees differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            was, now = old.get(name), new.get(name)
            if was != now:
                yield from changes(was, now, f"{path}.{name}".lstrip("."))
    elif old != new:
        yield path, old, new


def without(tree: JsonObject, paths: Sequence[tuple[str, ...]]) -> JsonObject:
    """A copy of the tree without the values at these paths."""
    copied: JsonObject = dict(tree)
    for path in paths:
        place = copied
        for name in path[:-1]:
            inner = place.get(name)
            if not isinstance(inner, dict):
                break
            place[name] = place = dict(inner)
        else:
            place.pop(path[-1], None)
    return copied
