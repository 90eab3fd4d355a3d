"""Schemas of custom kinds: pruning of unknown fields, defaults, and definitions for schema nodes.

Unlike built-in kinds, custom objects are stored as they were sent: null and empty values are kept,
and wrong types are found by validation, not by decoding. Parity: objects.md 15.5;
structural schemas of apiextensions.k8s.io/v1.
"""

from collections.abc import Iterator
from typing import Any

from app.domain.objects.schema.corrections import INT_OR_STRING_REF, META_REF, UNKNOWN_REF
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
RULES = "x-kubernetes-validations"
INT_OR_STRING = "x-kubernetes-int-or-string"

_IDENTITY = ("apiVersion", "kind", "metadata")
_KEPT_KEYS = (
    "default",
    "description",
    "enum",
    "format",
    "type",
    PRESERVE,
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
)


def pruned(schema: JsonView, tree: JsonView) -> tuple[JsonObject, list[str]]:
    """Returns a copy of the object without unknown fields, and the paths of these fields.

    `apiVersion`, `kind` and `metadata` are kept unchanged: they are the same for every kind.
    """
    unknown: list[str] = []
    kept_tree = _prune(schema, {k: v for k, v in tree.items() if k not in _IDENTITY}, "", unknown)
    kept: JsonObject = {key: tree[key] for key in _IDENTITY if key in tree}
    return kept | kept_tree, [path.lstrip(".") for path in unknown]


def fill(schema: JsonView, value: Any) -> None:
    """Sets the defaults of the schema in place.

    A null that is not allowed counts as absent if the schema has a default.
    """
    if isinstance(value, dict):
        properties = json_tree.mapping(schema, "properties")
        for name, child in properties.items():
            if not isinstance(child, dict):
                continue
            is_null = name in value and value[name] is None and not child.get("nullable")
            if "default" in child and (name not in value or is_null):
                value[name] = json_tree.copy(child["default"])
            if name in value:
                fill(child, value[name])
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            for name in value:
                if name not in properties:
                    if value[name] is None and "default" in more and not more.get("nullable"):
                        value[name] = json_tree.copy(more["default"])
                    fill(more, value[name])
    elif isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                if item is None and "default" in items and not items.get("nullable"):
                    value[index] = json_tree.copy(items["default"])
                fill(items, value[index])


def shown(schema: JsonView, tree: JsonView, api_version: str) -> JsonObject:
    """Returns a stored object in the form for readers: pruned, with defaults, in `api_version`.

    The schema is that of the stored version: versions differ only in their names.
    """
    kept, _ = pruned(schema, tree)
    fill(schema, kept)
    return kept | {"apiVersion": api_version}


def definition(schema: JsonView) -> JsonObject:
    """Returns the schema of an object in the form of published definitions, for schema nodes."""
    described = _described(schema)
    if "$ref" in described:
        described = {"type": "object"}
    properties = dict(described.get("properties", {}))
    text = {"type": "string"}
    properties |= {"apiVersion": text, "kind": text, "metadata": META_REF}
    if schema.get(PRESERVE) is True:
        # In an object that keeps all fields, spec and status are still merged by field.
        properties = {"spec": UNKNOWN_REF, "status": UNKNOWN_REF} | properties
    return described | {"type": "object", "properties": properties}


def schemas_in(schema: JsonView) -> Iterator[JsonView]:
    """Yields the schema and all schemas of values below it, parents first."""
    yield schema
    for child in json_tree.mapping(schema, "properties").values():
        if isinstance(child, dict):
            yield from schemas_in(child)
    for key in ("items", "additionalProperties"):
        child = schema.get(key)
        if isinstance(child, dict):
            yield from schemas_in(child)


def _prune(schema: JsonView, value: Any, path: str, unknown: list[str]) -> Any:
    if isinstance(value, dict):
        return _prune_object(schema, value, path, unknown)
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, dict):
            return json_tree.copy(value)
        return [_prune(items, item, f"{path}[{n}]", unknown) for n, item in enumerate(value)]
    return value


def _prune_object(schema: JsonView, value: JsonObject, path: str, unknown: list[str]) -> JsonObject:
    properties = json_tree.mapping(schema, "properties")
    more = schema.get("additionalProperties")
    keeps = schema.get(PRESERVE) is True or more is True
    is_embedded = schema.get(EMBEDDED) is True
    kept: JsonObject = {}
    for key, item in value.items():
        child = properties.get(key)
        if isinstance(child, dict):
            kept[key] = _prune(child, item, f"{path}.{key}", unknown)
        elif isinstance(more, dict):
            kept[key] = _prune(more, item, f"{path}.{key}", unknown)
        elif keeps or (is_embedded and key in _IDENTITY):
            kept[key] = json_tree.copy(item)
        else:
            unknown.append(f"{path}.{key}")
    return kept


def _described(schema: JsonView) -> JsonObject:
    """The schema of one value in the form of published definitions."""
    if schema.get(INT_OR_STRING) is True:
        return dict(INT_OR_STRING_REF)
    properties = json_tree.mapping(schema, "properties")
    if schema.get(PRESERVE) is True and not properties:
        return dict(UNKNOWN_REF)
    described: JsonObject = {key: schema[key] for key in _KEPT_KEYS if key in schema}
    if properties or schema.get(EMBEDDED) is True:
        described["properties"] = {
            name: _described(child) for name, child in properties.items() if isinstance(child, dict)
        }
        if schema.get(EMBEDDED) is True:
            text = {"type": "string"}
            described["properties"] |= {"apiVersion": text, "kind": text, "metadata": META_REF}
    for key in ("items", "additionalProperties"):
        child = schema.get(key)
        if isinstance(child, dict):
            described[key] = _described(child)
    return described
