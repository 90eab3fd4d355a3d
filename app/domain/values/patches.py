"""Three ways to patch a JSON tree: operations (RFC 6902), merge (RFC 7386), strategic merge.

Each returns a new tree, which shares the unchanged parts with the old one. The old tree is never
changed. Parity: api.md 8. Strategic merge needs to know which lists merge by which key; a
`StrategySchema` knows it, and the schema tables of the objects provide one.
"""

import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol

from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.texts import go_text

OPERATIONS_MAX = 10_000
"""The most operations that one JSON patch may have."""

COPIED_BYTES_MAX = 3 * 1024 * 1024
"""The most bytes of JSON that all copies of one JSON patch may add up to. Each copy can double the
object, so a few dozen copies could fill any memory."""


DEPTH_MAX = 100
"""The greatest depth of an object after a JSON patch; request bodies have the same limit."""


class PatchError(ValueError):
    """A patch that is malformed or cannot be applied. The message names the part."""


class StrategySchema(Protocol):
    """The information that strategic merge needs about one position in an object."""

    @property
    def fields(self) -> Mapping[str, "StrategySchema"]:
        """The fields of an object; empty for other shapes."""
        ...

    @property
    def items(self) -> "StrategySchema":
        """The schema of the items of a list; used only for lists."""
        ...

    @property
    def merge_key(self) -> str:
        """The key by which items are matched; empty for lists of scalars."""
        ...

    @property
    def strategies(self) -> frozenset[str]:
        """`merge`, `replace`, `retainKeys`, or none."""
        ...


def apply_operations(tree: JsonView, operations: Sequence[JsonView]) -> JsonObject:
    """The tree after a JSON patch. Raises PatchError for the first operation that fails."""
    patched: Any = tree
    copied = 0
    for number, operation in enumerate(operations):
        if not isinstance(operation, Mapping):
            raise PatchError(f"operation {number} is not an object")
        if operation.get("op") == "copy":
            copied += _size(_get(patched, _source(operation, number)))
            if copied > COPIED_BYTES_MAX:
                raise PatchError(f"the patch copies more than {COPIED_BYTES_MAX} bytes")
        patched = _apply_operation(patched, operation, number)
    if not isinstance(patched, dict):
        raise PatchError("the patch leaves no object")
    _check_depth(patched)
    return patched


def apply_merge(tree: Any, patch: Any) -> Any:
    """The tree after a merge patch: objects merge, null removes, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged: JsonObject = dict(tree) if isinstance(tree, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = apply_merge(merged.get(key), value)
        else:
            merged[key] = value
    return merged


def apply_strategic(tree: JsonView, patch: JsonView, schema: StrategySchema) -> JsonObject:
    """The tree after a strategic merge patch. Raises PatchError for a bad directive."""
    return _merge_object(tree, patch, schema)


# ---- JSON patch


def _size(value: Any) -> int:
    """The size of a value as JSON, in bytes. Raises PatchError for a value that nests too deep."""
    try:
        return len(json.dumps(value))
    except RecursionError as problem:
        raise PatchError("the patch nests values too deep") from problem


def _check_depth(tree: JsonObject) -> None:
    """Raises PatchError for a tree deeper than DEPTH_MAX; goes level by level, not recursively."""
    level: list[Any] = [tree]
    for _ in range(DEPTH_MAX):
        if not level:
            return
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
    if level:
        raise PatchError(f"the patch nests values more than {DEPTH_MAX} deep")


def _apply_operation(tree: Any, operation: JsonView, number: int) -> Any:
    name = operation.get("op")
    path = _pointer(operation.get("path"), number)
    match name:
        case "add":
            return _add(tree, path, _value(operation, number))
        case "replace":
            return _replace(tree, path, _value(operation, number))
        case "remove":
            return _remove(tree, path)
        case "test":
            _test(tree, path, operation.get("value"))
            return tree
        case "move":
            source = _source(operation, number)
            moved = _get(tree, source)
            return _add(_remove(tree, source), path, moved)
        case "copy":
            return _add(tree, path, _get(tree, _source(operation, number)))
        case _:
            raise PatchError(f"operation {number} has the unknown op {name!r}")


def _pointer(text: Any, number: int) -> list[str]:
    # Parity: api.md 8; the text before the first slash is ignored.
    if not isinstance(text, str) or (text and "/" not in text):
        raise PatchError(f"operation {number} has no JSON pointer: {text!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _source(operation: JsonView, number: int) -> list[str]:
    return _pointer(operation.get("from"), number)


def _value(operation: JsonView, number: int) -> Any:
    if "value" not in operation:
        raise PatchError(f"operation {number} has no value")
    return operation["value"]


def _shown(path: Sequence[str]) -> str:
    return "/" + "/".join(path)


def _get(tree: Any, path: list[str]) -> Any:
    value = tree
    for depth, part in enumerate(path):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list):
            value = value[_index(value, part, path, end=False)]
        else:
            raise PatchError(f"{_shown(path[: depth + 1])} does not exist")
    return value


def _index(items: list[Any], part: str, path: Sequence[str], *, end: bool) -> int:
    if part == "-" and end:
        return len(items)
    if not part.isdecimal() or (len(part) > 1 and part[0] == "0") or len(part) > 9:
        raise PatchError(f"{part!r} in {_shown(path)} is not an index")
    index = int(part)
    if index > len(items) or (index == len(items) and not end):
        raise PatchError(f"{_shown(path)} is beyond the end of the list")
    return index


def _changed(tree: Any, path: list[str], change: Any) -> Any:
    """A copy of the tree along `path`, in which `change` has altered the last container."""

    def copied(node: Any, depth: int) -> Any:
        if not isinstance(node, dict | list):
            raise PatchError(f"{_shown(path[:depth])} holds nothing that could be changed")
        fresh = dict(node) if isinstance(node, dict) else list(node)
        part = path[depth]
        if depth == len(path) - 1:
            change(fresh, part)
        elif isinstance(fresh, dict):
            if part not in fresh:
                raise PatchError(f"{_shown(path[: depth + 1])} does not exist")
            fresh[part] = copied(fresh[part], depth + 1)
        else:
            index = _index(fresh, part, path, end=False)
            fresh[index] = copied(fresh[index], depth + 1)
        return fresh

    return copied(tree, 0)


def _add(tree: Any, path: list[str], value: Any) -> Any:
    def change(container: Any, part: str) -> None:
        if isinstance(container, dict):
            container[part] = value
        else:
            container.insert(_index(container, part, path, end=True), value)

    return _changed(tree, path, change) if path else value


def _replace(tree: Any, path: list[str], value: Any) -> Any:
    def change(container: Any, part: str) -> None:
        if isinstance(container, dict):
            container[part] = value
        else:
            container[_index(container, part, path, end=False)] = value

    return _changed(tree, path, change) if path else value


def _remove(tree: Any, path: list[str]) -> Any:
    def change(container: Any, part: str) -> None:
        if isinstance(container, list):
            del container[_index(container, part, path, end=False)]
        elif part in container:
            del container[part]
        else:
            raise PatchError(f"{_shown(path)} does not exist")

    if not path:
        raise PatchError("the whole object cannot be removed")
    return _changed(tree, path, change)


def _test(tree: Any, path: list[str], expected: Any) -> None:
    try:
        value = _get(tree, path)
    except PatchError:
        # A test for null succeeds when the path does not exist.
        if expected is None:
            return
        raise
    if value != expected or isinstance(value, bool) is not isinstance(expected, bool):
        raise PatchError(f"the test of {_shown(path)} failed")


# ---- strategic merge patch

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def _merge_object(tree: JsonView, patch: JsonView, schema: StrategySchema | None) -> JsonObject:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchError(f"unknown directive $patch: {directive!r}")
    merged = _retained(tree, patch)
    fields = schema.fields if schema is not None else {}
    is_directed = False
    for key, value in patch.items():
        if key[:1] == "$":
            is_directed = True
            if key.startswith(_DELETE_FROM):
                name = key.removeprefix(_DELETE_FROM)
                gone = _list(value, key)
                merged[name] = [item for item in _list(merged.get(name), name) if item not in gone]
        elif value.__class__ is str or value.__class__ is bool or value.__class__ is int:
            merged[key] = value
        else:
            _merge_field(merged, key, value, fields.get(key))
    for key, order in patch.items() if is_directed else ():
        if key.startswith(_ORDER):
            name = key.removeprefix(_ORDER)
            before = _list(tree.get(name), name)
            merge_key = fields[name].merge_key if name in fields else ""
            if isinstance(merged.get(name), list):
                merged[name] = _ordered(merged[name], _list(order, key), before, merge_key)
    return merged


def _retained(tree: JsonView, patch: JsonView) -> JsonObject:
    if _RETAIN not in patch:
        return dict(tree)
    kept = _list(patch[_RETAIN], _RETAIN)
    for key, value in patch.items():
        if not key.startswith("$") and value is not None and key not in kept:
            raise PatchError(f"{_RETAIN} does not name {key!r}, which the patch sets")
    return {key: value for key, value in tree.items() if key in kept}


def _merge_field(target: JsonObject, key: str, value: Any, schema: StrategySchema | None) -> None:
    if value is None:
        target.pop(key, None)
        return
    old = target.get(key)
    strategies = schema.strategies if schema is not None else frozenset()
    if isinstance(value, dict):
        if not isinstance(old, dict):
            # Parity: api.md 8; an object with directives adds nothing when there was no old value.
            old, value = {}, _undirected(value)
        elif "replace" in strategies:
            old = {}
        target[key] = _merge_object(old, value, schema)
    elif isinstance(value, list) and "merge" in strategies and schema is not None:
        target[key] = _merge_list(old if isinstance(old, list) else [], value, schema)
    else:
        target[key] = _without_directives(value)


def _undirected(value: Mapping[str, Any]) -> JsonObject:
    """The value that an object of a patch adds when there was none: empty if it has a directive."""
    if _DIRECTIVE in value:
        return {}
    return {
        key: _undirected(part) if isinstance(part, Mapping) else part for key, part in value.items()
    }


def _merge_list(old: list[Any], patch: list[Any], schema: StrategySchema) -> list[Any]:
    merge_key = schema.merge_key
    if not merge_key:
        united = old + [item for item in _unique(patch) if item not in old]
        return _ordered(united, patch, old, "")
    kept = list(old)
    pending: list[JsonObject] = []
    for item in patch:
        if not isinstance(item, dict):
            raise PatchError(f"an item of a list that merges by {merge_key!r} is not an object")
        directive = item.get(_DIRECTIVE)
        if directive == "replace":
            kept = []
        elif merge_key not in item:
            raise PatchError(
                f"map: {go_text.plain(item)} does not contain declared merge key: {merge_key}"
            )
        elif directive == "delete":
            kept = [each for each in kept if not _matches(each, merge_key, item[merge_key])]
        elif directive in (None, "merge"):
            pending.append(item)
        else:
            raise PatchError(f"unknown directive $patch: {directive!r}")
    for item in pending:
        for place, each in enumerate(kept):
            if _matches(each, merge_key, item[merge_key]):
                kept[place] = _merge_object(each, item, schema.items)
                break
        else:
            kept.append(_merge_object({}, item, schema.items))
    if not old and len(kept) == len(pending):
        return kept  # one for each of the patch, in its order
    return _ordered(kept, pending, old, merge_key)


def _matches(item: Any, merge_key: str, value: Any) -> bool:
    return isinstance(item, dict) and bool(item.get(merge_key) == value)


def _ordered(items: list[Any], wanted: list[Any], before: list[Any], merge_key: str) -> list[Any]:
    """The items in the wanted order; items that it does not name stay before their old successors.

    New items come before the items that the order does not name. Parity: api.md 8; recorded, 1.36.
    """

    def identity(item: Any) -> Any:
        return item.get(merge_key) if merge_key and isinstance(item, dict) else item

    order = [identity(item) for item in wanted]
    places = [identity(item) for item in before]
    named: list[tuple[int, Any, Any]] = []
    others: list[tuple[int, Any, Any]] = []
    for item in items:
        own = identity(item)
        if own in order:
            named.append((order.index(own), own, item))
        else:
            others.append((_place(places, own), own, item))
    named.sort(key=itemgetter(0))
    others.sort(key=itemgetter(0))
    ordered = []
    while named and others:
        left, right = others[0][0], _place(places, named[0][1])
        both = left < len(places) and right < len(places)
        ordered.append((others if both and left < right else named).pop(0))
    return [item for _, _, item in (*ordered, *named, *others)]


def _place(places: list[Any], identity: Any) -> int:
    return places.index(identity) if identity in places else len(places)


def _list(value: Any, name: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise PatchError(f"{name} is not a list")
    return value


def _unique(items: list[Any]) -> list[Any]:
    unique: list[Any] = []
    for item in items:
        if item not in unique:
            unique.append(item)
    return unique


def _without_directives(value: Any) -> Any:
    """The value that a patch sets when there was none: without the directives and nulls."""
    if isinstance(value, dict):
        return {
            key: _without_directives(item)
            for key, item in value.items()
            if item is not None and not key.startswith("$")
        }
    if isinstance(value, list):
        return [
            _without_directives(item)
            for item in value
            if not (isinstance(item, dict) and item.get(_DIRECTIVE) in ("delete", "replace"))
        ]
    return value
