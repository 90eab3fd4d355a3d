"""Sets of fields of an object, as in server-side apply.

A set is a tree of path elements: `f:<field>`, `k:{"key":"value"}` for items of keyed lists,
`v:<json>` for items of sets. A node that is itself a member has the key `.`. This is the form of
`fieldsV1`, except that there a member without children is an empty object.

Parity: api.md 9. Structure comes from the schema: objects and maps are granular unless
they are atomic, lists are atomic unless they are keyed or sets.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

import msgspec

from app.domain.objects.schema import structural
from app.domain.objects.schema.equality import semantic_equal
from app.domain.objects.schema.structural import SchemaNode, SchemaShape
from app.domain.values.json_tree import JsonObject

FieldSet: TypeAlias = dict[str, Any]
"""A set as a map from path elements to the sets below them; `.` marks a member."""

MEMBER = "."
_LEAF: FieldSet = {MEMBER: True}
_NOTHING: FieldSet = {}

LONG_BEGINNING = 8
"""Equal items at the beginning of two lists from which on they are left out of a comparison."""

_encoder = msgspec.json.Encoder(order="sorted")


def load(fields: JsonObject) -> FieldSet:
    """The set of a `fieldsV1`."""
    loaded: FieldSet = {}
    for element, below in fields.items():
        if element == MEMBER:
            loaded[MEMBER] = True
        elif isinstance(below, dict):
            loaded[element] = load(below) if below else dict(_LEAF)
    return loaded


def is_written(fields: object) -> bool:
    """Whether a value is a `fieldsV1`: nested objects whose keys are path elements."""
    if not isinstance(fields, dict):
        return False
    for element, below in fields.items():
        if element[:2] != "f:" and element != MEMBER and not _is_element(element):
            return False
        # Most elements are leaves, which are empty objects.
        if (below or below.__class__ is not dict) and not is_written(below):
            return False
    return True


def _is_element(element: str) -> bool:
    kind, text = element[:2], element[2:]
    if kind not in ("k:", "v:"):
        return kind == "f:"
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return kind == "v:" or isinstance(value, dict)


def dump(
    fields: FieldSet, known: FieldSet = _NOTHING, written: JsonObject = _NOTHING
) -> JsonObject:
    """The `fieldsV1` of a set. Parts that `known` has as well are taken from `written`, its form.

    Such parts are shared: never change them.
    """
    dumped: JsonObject = {}
    for element, below in fields.items():
        if element == MEMBER:
            dumped[MEMBER] = {}
            continue
        before = known.get(element)
        if before is below:
            dumped[element] = written[element]
        elif below is _LEAF or below == _LEAF:
            dumped[element] = {}
        elif before is None:
            dumped[element] = dump(below)
        else:
            dumped[element] = dump(below, before, written[element])
    return dumped


def applied(value: JsonObject, node: SchemaNode) -> FieldSet:
    """The fields that an applied configuration owns: leaves, atomic nodes, items, map keys."""
    return _applied_below(value, node)


def everything(value: Any, node: SchemaNode | None) -> FieldSet:
    """The set of a new value: itself and all fields below it. It is shared: never change it."""
    if node is None or not node.is_granular:
        return _LEAF
    owned: FieldSet = {MEMBER: True}
    if node.shape is SchemaShape.LIST:
        items = node.items
        for item in value if value.__class__ is list else ():
            element = _element(item, node)
            owned[element] = everything(item, items) if element not in owned else _LEAF
    elif value.__class__ is dict:
        is_map = node.shape is SchemaShape.MAP
        fields = node.fields
        for key, item in value.items():
            child = node.items if is_map else fields.get(key)
            is_leaf = child is None or not child.is_granular
            owned[f"f:{key}"] = _LEAF if is_leaf else everything(item, child)
    return owned


def written_whole(value: Any, node: SchemaNode | None) -> JsonObject:
    """The same as `dump(everything(value, node))`, without making the set."""
    if node is None or not node.is_granular:
        return {}
    written: JsonObject = {MEMBER: {}}
    if node.shape is SchemaShape.LIST:
        items = node.items
        for item in value if value.__class__ is list else ():
            element = _element(item, node)
            written[element] = written_whole(item, items) if element not in written else {}
    elif value.__class__ is dict:
        is_map = node.shape is SchemaShape.MAP
        child: SchemaNode | None = node.items if is_map else None
        fields = node.fields
        for key, item in value.items():
            if not is_map:
                child = fields.get(key)
            is_leaf = child is None or not child.is_granular
            written[f"f:{key}"] = {} if is_leaf else written_whole(item, child)
    return written if len(written) > 1 else {}


def written_beyond(zero: Any, value: Any, node: SchemaNode | None) -> JsonObject | None:
    """The `fieldsV1` of the changed fields of `changes(zero, value, node)`; None if empty."""
    if zero is value or zero == value:
        return None
    if zero is None and value == []:
        return {}  # Parity: api.md 9; as in `_compare`.
    if node is None or not node.is_granular or not (zero or value):
        return None if semantic_equal(zero, value, node) else {}
    if (zero and not _fits(zero, node)) or (value and not _fits(value, node)):
        return {}
    fields: JsonObject = {}
    if node.shape is SchemaShape.LIST:
        before = {_element(item, node): item for item in zero or ()}
        after: JsonObject = {_element(item, node): item for item in value or ()}
        prefix = ""
    else:
        before, after, prefix = zero or {}, value or {}, "f:"
    is_object = node.shape is SchemaShape.OBJECT
    for key, item in after.items():
        child = node.fields.get(key) if is_object else node.items
        if key not in before:
            fields[prefix + key] = written_whole(item, child)
            continue
        below = written_beyond(before[key], item, child)
        if below is not None:
            fields[prefix + key] = below
    return fields or None


def changes(old: Any, new: Any, node: SchemaNode | None) -> tuple[FieldSet, FieldSet]:
    """The sets of fields that were added or changed from `old` to `new`, and that were removed."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    _compare(old, new, node, changed, removed)
    return changed, removed


@lru_cache(maxsize=256)
def zero(node: SchemaNode) -> JsonObject:
    """The empty object of a type: required fields and structs, without values.

    It is shared between callers: never change it.
    """
    zeroed: JsonObject = {}
    structs = node.required - structural.pointers(node.definition)
    for name, field in node.fields.items():
        if name in node.always or name in structs:
            zeroed[name] = (
                zero(field) if field.shape is SchemaShape.OBJECT else node.always.get(name)
            )
    return zeroed


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of either set."""
    joined = dict(left)
    for element, below in right.items():
        if element == MEMBER:
            joined[MEMBER] = True
        elif element in joined:
            joined[element] = union(joined[element], below)
        else:
            joined[element] = below
    return joined


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of the left set that are not members of the right set."""
    rest_of_left: FieldSet = {}
    for element, below in left.items():
        if element == MEMBER:
            if MEMBER not in right:
                rest_of_left[MEMBER] = True
        elif element not in right:
            rest_of_left[element] = below
        else:
            rest = difference(below, right[element])
            if rest:
                rest_of_left[element] = rest
    return rest_of_left


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of both sets."""
    common: FieldSet = {}
    for element, below in left.items():
        if element not in right:
            continue
        if element == MEMBER:
            common[MEMBER] = True
            continue
        both = intersection(below, right[element])
        if both:
            common[element] = both
    return common


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yields the members as messages write them: `.spec.taint.effect`, `.list[key="v"]`,
    `[="v"]`."""
    for element in sorted(fields):
        if element == MEMBER:
            yield prefix
        else:
            yield from paths(fields[element], prefix + _path_text(element))


def item_text(item: Any, node: SchemaNode) -> str:
    """The text for an item of a keyed list or of a set in messages, such as `[name="v"]`."""
    return _path_text(_element(item, node))


def merged(live: Any, config: Any, node: SchemaNode | None) -> Any:
    """Merges `config` into `live`: granular maps by field, keyed lists by key, sets as unions.

    Items keep the order of `live`; new items follow. The result shares parts with both.
    """
    if node is None or not node.is_granular or live is None:
        return config
    if isinstance(config, dict) and isinstance(live, dict):
        result = dict(live)
        for key, value in config.items():
            child = _child(node, key)
            result[key] = merged(live[key], value, child) if key in live else value
        return result
    if isinstance(config, list) and isinstance(live, list) and node.shape is SchemaShape.LIST:
        return _merged_list(live, config, node)
    return config


def without(value: Any, last: FieldSet, owned: FieldSet, node: SchemaNode | None) -> Any:
    """Removes the fields of `last` that are not in `owned` from `value`.

    A named field is removed with all fields below it if none of them is owned; an item of a list
    only if it was itself a member. The result shares parts with `value`.
    """
    if isinstance(value, dict):
        kept = dict(value)
        for element, below in last.items():
            name = element[2:]
            if element == MEMBER or name not in kept:
                continue
            if not owned.get(element):
                del kept[name]
            else:
                kept[name] = without(kept[name], below, owned[element], _child(node, name))
        return kept
    if isinstance(value, list) and node is not None and node.list_type in ("map", "set"):
        items = []
        for item in value:
            element = _element(item, node)
            below = last.get(element)
            theirs = owned.get(element, {})
            if below is None:
                items.append(item)
            elif theirs or MEMBER not in below:
                items.append(without(item, below, theirs, node.items))
        return items
    return value


def _applied_below(value: Any, node: SchemaNode | None) -> FieldSet:
    applied: FieldSet = {}
    is_free = node is not None and node.shape is SchemaShape.MAP
    is_list = isinstance(value, list)
    for element, item, child in _children(value, node):
        is_leaf = child is None or not child.is_granular or not _fits(item, child)
        if is_leaf:
            applied[element] = dict(_LEAF)
            continue
        below = _applied_below(item, child)
        if is_free or is_list or not item:
            below[MEMBER] = True
        if below:
            applied[element] = below
    return applied


def _fits(value: Any, node: SchemaNode) -> bool:
    """Whether a value has the collection type of its schema; in custom objects it may be wrong."""
    return isinstance(value, list if node.shape is SchemaShape.LIST else dict)


def _compare(
    old: Any, new: Any, node: SchemaNode | None, changed: FieldSet, removed: FieldSet
) -> None:
    """Adds the fields that differ between two existing values to `changed` and `removed`.

    A leaf that differs is marked as a member of `changed`.
    """
    if old is new or old == new:
        return
    if old is None and new == []:
        changed[MEMBER] = True  # Parity: api.md 9; an empty list is not the null of an absent one.
        return
    if node is None or not node.is_granular or not (old or new):
        if not semantic_equal(old, new, node):
            changed[MEMBER] = True
        return
    if (old and not _fits(old, node)) or (new and not _fits(new, node)):
        changed[MEMBER] = True
        return
    if node.shape is SchemaShape.LIST:
        old, new = _beyond_equal(old or (), new or (), node)
        before = {_element(item, node): item for item in old}
        after = {_element(item, node): item for item in new}
        prefix = ""
    else:
        before = old or {}
        after = new or {}
        prefix = "f:"
    is_object = node.shape is SchemaShape.OBJECT
    for key, item in after.items():
        if key not in before:
            child = node.fields.get(key) if is_object else node.items
            changed[prefix + key] = everything(item, child)
            continue
        earlier = before[key]
        if earlier is item or earlier == item:
            continue
        below: FieldSet = {}
        gone: FieldSet = {}
        child = node.fields.get(key) if is_object else node.items
        _compare(earlier, item, child, below, gone)
        if below:
            changed[prefix + key] = below
        if gone:
            removed[prefix + key] = gone
    for key, item in before.items():
        if key not in after and item is not None:
            child = node.fields.get(key) if is_object else node.items
            removed[prefix + key] = everything(item, child)


def _beyond_equal(
    old: Sequence[Any], new: Sequence[Any], node: SchemaNode
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The items of two keyed lists after those at the beginning that are equal.

    The lists are returned whole where that could change what is compared: an item that follows may
    have the key of an earlier one.
    """
    if not node.list_keys or not old or not new:
        return old, new
    count = 0
    for one, other in zip(old, new, strict=False):
        if one is not other and one != other:
            break
        count += 1
    if count < LONG_BEGINNING:
        return old, new
    read_key = _key_reader(node.list_keys)
    rest_of_old, rest_of_new = old[count:], new[count:]
    try:
        known = set(map(read_key, new[:count]))
        if known.isdisjoint(map(read_key, rest_of_old)) and (
            known.isdisjoint(map(read_key, rest_of_new))
        ):
            return rest_of_old, rest_of_new
    except (KeyError, TypeError):
        pass  # a key has a default, or is no text
    return old, new


_key_reader = lru_cache(maxsize=256)(lambda names: itemgetter(*names))


def _children(value: Any, node: SchemaNode | None) -> Iterator[tuple[str, Any, SchemaNode | None]]:
    """Yields path element, value and schema of each part of a granular value."""
    if node is None or not node.is_granular:
        return
    if not _fits(value, node):
        return
    if node.shape is SchemaShape.LIST:
        for item in value:
            yield _element(item, node), item, node.items
    elif node.shape is SchemaShape.MAP:
        items = node.items
        for key, item in value.items():
            yield f"f:{key}", item, items
    else:
        fields = node.fields
        for key, item in value.items():
            yield f"f:{key}", item, fields.get(key)


def _child(node: SchemaNode | None, key: str) -> SchemaNode | None:
    if node is None:
        return None
    return node.items if node.shape is SchemaShape.MAP else node.fields.get(key)


def _element(item: Any, node: SchemaNode) -> str:
    if node.list_type == "set":
        return "v:" + _encoder.encode(item).decode()
    keys: JsonObject = {}
    for key in node.list_keys:
        value = item.get(key) if isinstance(item, dict) else None
        if value is None:
            field = node.items.fields.get(key)
            value = field.default if field is not None else None
        if value is not None:
            keys[key] = value
    return "k:" + _encoder.encode(keys).decode()


def _merged_list(live: list[Any], config: list[Any], node: SchemaNode) -> list[Any]:
    wanted = {_element(item, node): item for item in config}
    items = []
    for item in live:
        element = _element(item, node)
        if element in wanted:
            items.append(merged(item, wanted.pop(element), node.items))
        else:
            items.append(item)
    return items + list(wanted.values())


def _path_text(element: str) -> str:
    kind, text = element[:2], element[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "v:":
        return f"[={text}]"
    keys = msgspec.json.decode(text)
    listed = ",".join(f"{key}={_encoder.encode(keys[key]).decode()}" for key in sorted(keys))
    return f"[{listed}]"
