"""The merge of clients' changes with a recorded change: three states of an object become one.

`before` and `after` are the recorded object before and after a change, `present` is the object with
clients' changes. A value that only the recording changed is taken from it, a value that only
clients changed is kept, and if both changed a value, the clients' value is kept and its path is
reported.

    before   {labels: {a: 1}, phase: Pending}
    after    {labels: {a: 1}, phase: Running}
    present  {labels: {a: 1, mine: x}, phase: Pending}
    result   {labels: {a: 1, mine: x}, phase: Running}

Lists are merged by key or as sets if the schema says so, and are single values otherwise.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.domain.objects.schema.structural import SchemaNode, SchemaShape
from app.domain.values.json_tree import JsonObject, JsonView

_ABSENT: Final = object()

_States = tuple[Any, Any, Any]
"""The values of one path before and after the recorded change, and with clients' changes."""

_MANAGERS = ("manager", "operation", "apiVersion", "subresource")
_SERVERS_OWN = frozenset({"resourceVersion", "generation", "managedFields"})
"""The metadata fields that the server maintains, so clients cannot be in conflict about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """The merged object, and the paths at which the clients' value was kept in a conflict."""

    tree: JsonObject
    conflicts: tuple[str, ...] = ()


def is_same(one: JsonView, other: JsonView) -> bool:
    """Whether two states of an object are equal except for `metadata.resourceVersion`."""
    if one.keys() != other.keys():
        return False
    if any(one[name] != other[name] for name in one if name != "metadata"):
        return False
    first, second = _without_version(one.get("metadata")), _without_version(other.get("metadata"))
    return first == second


def rebase(node: SchemaNode, before: JsonView, after: JsonView, present: JsonView) -> Rebased:
    """Applies clients' changes between `before` and `present` to `after`."""
    joiner = _Joiner()
    tree = joiner.fields(node, (before, after, present), ())
    return Rebased(tree=tree, conflicts=tuple(joiner.conflicts))


def _without_version(metadata: object) -> object:
    if not isinstance(metadata, Mapping) or "resourceVersion" not in metadata:
        return metadata
    return {name: value for name, value in metadata.items() if name != "resourceVersion"}


@dataclass(slots=True)
class _Joiner:
    conflicts: list[str] = field(default_factory=list)

    def fields(self, node: SchemaNode | None, trees: _States, path: tuple[str, ...]) -> JsonObject:
        """Merges objects and maps by field, in the order of `after`, then of `present`."""
        joined: JsonObject = {}
        before, after, present = trees
        for name in dict.fromkeys((*after, *present)):
            states = (
                before.get(name, _ABSENT),
                after.get(name, _ABSENT),
                present.get(name, _ABSENT),
            )
            if path == ("metadata",) and name in _SERVERS_OWN:
                value = _own_of_server(name, states)
            else:
                value = self.value(_child(node, name), states, (*path, name))
            if value is not _ABSENT:
                joined[name] = value
        return joined

    def value(self, node: SchemaNode | None, states: _States, path: tuple[str, ...]) -> Any:
        """Merges one value of three states, each of which may be absent."""
        before, after, present = states
        if present in (before, after):
            return after
        if after == before:
            return present
        is_whole = node is not None and node.is_atomic and node.shape is not SchemaShape.ANY
        if not is_whole and isinstance(after, Mapping) and isinstance(present, Mapping):
            tree = before if isinstance(before, Mapping) else {}
            return self.fields(node, (tree, after, present), path)
        if isinstance(after, list) and isinstance(present, list):
            items = before if isinstance(before, list) else []
            key = _key_of(node)
            if key is not None and _are_distinct(key, items, after, present):
                return self.items(node, key, (items, after, present), path)
        self.conflicts.append(".".join(path))
        return present

    def items(
        self,
        node: SchemaNode | None,
        key: Callable[[Any], Hashable],
        lists: _States,
        path: tuple[str, ...],
    ) -> list[Any]:
        """Merges lists by the key of their items, in the order of `after`, then of `present`."""
        before, after, present = ({key(item): item for item in items} for items in lists)
        item_node = None if node is None or node.shape is not SchemaShape.LIST else node.items
        joined = []
        for name in dict.fromkeys((*after, *present)):
            states = (
                before.get(name, _ABSENT),
                after.get(name, _ABSENT),
                present.get(name, _ABSENT),
            )
            value = self.value(item_node, states, (*path[:-1], f"{path[-1]}[{_shown(name)}]"))
            if value is not _ABSENT:
                joined.append(value)
        return joined


def _own_of_server(name: str, states: _States) -> Any:
    """Merges a field that the server counts or collects, with the changes of both sides."""
    before, after, present = states
    if name == "generation" and all(isinstance(each, int) for each in states):
        return present + after - before
    if name == "managedFields":
        lists = [each if isinstance(each, list) else [] for each in (after, present)]
        entries = {_manager_of(entry): entry for entries in lists for entry in entries}
        return list(entries.values()) or _ABSENT
    return after if after is not _ABSENT else present


def _manager_of(entry: Any) -> Hashable:
    if not isinstance(entry, Mapping):
        return str(entry)
    return tuple(str(entry.get(name, "")) for name in _MANAGERS)


def _child(node: SchemaNode | None, name: str) -> SchemaNode | None:
    if node is None:
        return None
    if node.shape is SchemaShape.MAP:
        return node.items
    return node.fields.get(name)


def _key_of(node: SchemaNode | None) -> Callable[[Any], Hashable] | None:
    """The key function for items of a list; None for a list that is a single value."""
    if node is None or node.shape is not SchemaShape.LIST:
        return None
    keys = node.list_keys if node.list_type == "map" else ()
    if not keys and node.merge_key:
        keys = (node.merge_key,)
    if keys:
        return lambda item: (
            tuple(str(item.get(name, "")) for name in keys)
            if isinstance(item, Mapping)
            else repr(item)
        )
    if node.list_type == "set" or "merge" in node.strategies:
        return lambda item: item if isinstance(item, Hashable) else repr(item)
    return None


def _are_distinct(key: Callable[[Any], Hashable], *lists: Sequence[Any]) -> bool:
    return all(len({key(item) for item in items}) == len(items) for items in lists)


def _shown(name: Hashable) -> str:
    return "/".join(map(str, name)) if isinstance(name, tuple) else str(name)
