"""Masked trees: objects without values that are random, counted or taken from a clock.

Two writes are the same when they differ in masked values alone.
"""

from collections.abc import Iterator
from typing import Any

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


def masked(tree: Any) -> Any:
    """The tree without values that are random, counted or taken from a clock."""
    if isinstance(tree, dict):
        return {
            name: _STANDING_FOR.get(name)
            or masked(_without_count(value) if name == "metadata" else value)
            for name, value in tree.items()
            if name not in _CLOCK_FIELDS and value not in (None, {}, [], "")
        }
    if isinstance(tree, list):
        return [masked(item) for item in tree]
    return tree


def _without_count(metadata: Any) -> Any:
    """The metadata of an object without its generation, which counts writes."""
    if not isinstance(metadata, dict):
        return metadata
    return {name: value for name, value in metadata.items() if name != "generation"}


def changes(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place where two masked trees differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from changes(old.get(name), new.get(name), f"{path}.{name}".lstrip("."))
    elif old != new:
        yield path, old, new
