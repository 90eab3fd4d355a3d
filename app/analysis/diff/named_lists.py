"""Lists whose entries have names, such as devices and requests: compared entry by entry."""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeVar

from app.analysis import masks
from app.analysis.diff import flow_style

_Entry = TypeVar("_Entry", bound=Hashable)


def by_name(value: Any) -> dict[str, Any] | None:
    """The entries of a list by their names; None if it is no list, or not all have their own."""
    if not isinstance(value, list):
        return None
    named = {
        entry["name"]: entry
        for entry in value
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    }
    return named if len(named) == len(value) and named else None


def differing(a: Any, b: Any) -> tuple[str, str]:
    """The fields that differ, with the value of each side, as two texts.

    devices.requests[gpu].exactly.count=2
    no devices.requests[gpu].exactly.count
    """
    parts = list(_differing(a, b, ""))
    left, right = (
        ", ".join(
            f"no {path}" if value is None else f"{path}={flow_style.shown(value)}"
            for path, value in values
        )
        for values in (
            [(path, left) for path, left, _ in parts],
            [(path, right) for path, _, right in parts],
        )
    )
    return left, right


def _differing(a: Any, b: Any, above: str) -> Iterator[tuple[str, Any, Any]]:
    for path, left, right in masks.changes(a, b):
        place = f"{above}.{path}".lstrip(".")
        old, new = by_name(left), by_name(right)
        if old is None or new is None or list(old) != list(new):
            yield place, left, right
            continue
        for name, entry in old.items():
            yield from _differing(entry, new[name], f"{place}[{name}]")


def merged(one: Iterable[_Entry], other: Iterable[_Entry]) -> list[_Entry]:
    """Both lists as one: what only the other list has follows what is before it there.

    `merged("ac", "abc")` is `["a", "b", "c"]`.
    """
    first = list(one)
    known, later = set(first), dict[_Entry | None, list[_Entry]]()
    anchor: _Entry | None = None
    for entry in other:
        if entry in known:
            anchor = entry
        else:
            later.setdefault(anchor, []).append(entry)
    every = list(later.get(None, ()))
    for entry in first:
        every += (entry, *later.get(entry, ()))
    return every
