"""Checks of applied configurations by schema: server-side apply allows no unknown fields.

Other writes drop unknown fields; an apply would then own fields that do not exist, so it is
refused. Lists with duplicate keys or with an item without keys are refused too. Parity: api.md 9;
the typed converter of the API server, whose messages these are; it answers 500, redra 400.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.errors import BadRequest
from app.domain.objects.registry import Kind
from app.domain.objects.schema.corrections import UNKNOWN
from app.domain.objects.schema.structural import SchemaNode, SchemaShape
from app.domain.objects.write import field_sets
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.texts import go_text

ERRORS_MAX = 50


def check(kind: Kind, group: str, version: str, config: JsonObject, node: SchemaNode) -> None:
    """Raises BadRequest naming the fields that are not declared or have a wrong value.

    Parity: api.md 9; the object is named as the configuration names it.
    """
    errors = []
    for text in _errors(config, node, ""):
        errors.append(text)
        if len(errors) >= ERRORS_MAX:
            break
    if not errors:
        return
    message = errors[0] if len(errors) == 1 else "errors:\n  " + "\n  ".join(errors)
    namespace, name = (json_tree.text(config, "metadata", field) for field in ("namespace", "name"))
    raise BadRequest(
        f"failed to create typed patch object ({namespace}/{name}; "
        f"{group}/{version}, Kind={kind.kind}): {message}"
    )


def _errors(value: Any, node: SchemaNode, path: str) -> Iterator[str]:
    if isinstance(value, dict) and node.shape is SchemaShape.OBJECT:
        fields = node.fields
        for name, item in value.items():
            child = fields.get(name)
            if child is not None:
                yield from _errors(item, child, f"{path}.{name}")
            elif not node.is_open:
                yield f"{path}.{name}: field not declared in schema"
    elif isinstance(value, dict) and node.shape is SchemaShape.MAP:
        for name, item in value.items():
            yield from _errors(item, node.items, f"{path}.{name}")
    elif isinstance(value, list) and node.shape is SchemaShape.LIST:
        yield from _list_errors(value, node, path)
    elif value is not None and node.shape in _EXPECTED and node.definition != UNKNOWN:
        types, name = _EXPECTED[node.shape]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            shown = f"&value.valueUnstructured{{Value:{go_text.syntax(value)}}}"
            yield f"{path}: expected {name}, got {shown}"


_EXPECTED: Mapping[SchemaShape, tuple[tuple[type, ...], str]] = {
    SchemaShape.BOOLEAN: ((bool,), "boolean"),
    SchemaShape.BYTES: ((str,), "string"),
    SchemaShape.INTEGER: ((int, float), "numeric (int or float)"),
    SchemaShape.LIST: ((list,), "list"),
    SchemaShape.MAP: ((dict,), "map"),
    SchemaShape.NUMBER: ((int, float), "numeric (int or float)"),
    SchemaShape.OBJECT: ((dict,), "map"),
    SchemaShape.STRING: ((str,), "string"),
}


def _list_errors(value: list[Any], node: SchemaNode, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if node.list_type == "map" and isinstance(item, dict) and not _has_key(item, node):
            keys = " ".join(f'"{key}"' for key in node.list_keys)
            yield (
                f"{path}: element {index}: associative list with keys has an element that omits "
                f"all key fields [{keys}] (and doesn't have default values for any key fields)"
            )
            continue
        if node.is_granular:
            place = f"{path}{field_sets.item_text(item, node)}"
            if place in seen:
                yield f"{path}: duplicate entries for key {place[len(path) :]}"
            seen.add(place)
        yield from _errors(item, node.items, place)


def _has_key(item: JsonObject, node: SchemaNode) -> bool:
    """Whether an item of a keyed list has at least one key, or a key with a default."""
    return any(
        item.get(key) is not None
        or ((field := node.items.fields.get(key)) is not None and field.default is not None)
        for key in node.list_keys
    )
