"""Structural schemas: the fields of a kind, their types, and how lists and maps merge.

They come from the definitions that Kubernetes publishes for each release (passed as bytes; see
`app/adapters/schemas.py`). A definition is decoded on first use, so unused kinds cost nothing at
startup. Our own extension kind and additions to the published schemas are in `corrections`.

A `SchemaNode` describes one place of an object. Nodes form a graph, which may have cycles; they are
made once for each release and never change after their fields are set.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, cast
from weakref import WeakKeyDictionary

import msgspec

from app.domain.objects import registry
from app.domain.objects.protobuf.fields import MESSAGES
from app.domain.objects.registry import Kind
from app.domain.objects.schema import corrections, definition_schemas
from app.domain.values import api_groups
from app.domain.values.json_tree import JsonObject
from app.domain.values.protobuf import ProtobufField


class SchemaShape(Enum):
    """The JSON type of a value, and the format of its text."""

    OBJECT = "object"
    MAP = "map"
    LIST = "array"
    STRING = "string"
    BYTES = "bytes"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    QUANTITY = "quantity"
    TIME = "time"
    MICRO_TIME = "micro time"
    INT_OR_STRING = "int or string"
    ANY = "any"


_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_APIREGISTRATION = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1."

_SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": SchemaShape.QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": SchemaShape.INT_OR_STRING,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": SchemaShape.ANY,
    _META + "Time": SchemaShape.TIME,
    _META + "MicroTime": SchemaShape.MICRO_TIME,
    _META + "FieldsV1": SchemaShape.ANY,
    _META + "Patch": SchemaShape.ANY,
    _APIEXTENSIONS + "JSON": SchemaShape.ANY,
    _APIEXTENSIONS + "JSONSchemaProps": SchemaShape.ANY,
    _APIEXTENSIONS + "JSONSchemaPropsOrArray": SchemaShape.ANY,
    _APIEXTENSIONS + "JSONSchemaPropsOrBool": SchemaShape.ANY,
    _APIEXTENSIONS + "JSONSchemaPropsOrStringArray": SchemaShape.ANY,
}

_BY_TYPE = {
    "object": SchemaShape.OBJECT,
    "array": SchemaShape.LIST,
    "string": SchemaShape.STRING,
    "integer": SchemaShape.INTEGER,
    "number": SchemaShape.NUMBER,
    "boolean": SchemaShape.BOOLEAN,
}

_REF = "#/$defs/"
_NO_FIELDS: dict[str, "SchemaNode"] = {}


class SchemaNode:
    """One place of an object.

    `list_type` is atomic, set or map (for LIST), `list_keys` the keys of a map list; `merge_key`
    and `strategies` belong to strategic merge patches; `is_atomic` marks objects and maps that
    server-side apply treats as one value; `is_granular` says that it looks into the value;
    `is_open` objects may have fields that the schema does not declare. With `omits_zero` the API
    leaves the field out if it is false, 0 or empty; `always` are fields that it always shows, with
    their zero value. `fields` is filled for OBJECT, `items` for LIST and MAP. The cleaners are the
    functions that `prune` compiled from the node; only `prune` uses them.
    """

    __slots__ = (
        "_fields",
        "_items",
        "_raw",
        "_schemas",
        "always",
        "cleaner",
        "default",
        "definition",
        "description",
        "format",
        "is_atomic",
        "is_granular",
        "is_open",
        "list_keys",
        "list_type",
        "merge_key",
        "omits_zero",
        "partial_cleaner",
        "required",
        "shape",
        "strategies",
    )

    def __init__(self, schemas: "Schemas", raw: JsonObject, *, omits_zero: bool = False) -> None:
        definition, body = _resolve(schemas, raw)
        self._schemas = schemas
        self._raw = body
        self._fields: dict[str, SchemaNode] | None = None
        self._items: SchemaNode | None = None
        self.definition = definition
        self.shape = _shape(definition, body)
        self.description: str = raw.get("description") or body.get("description") or ""
        self.format: str = body.get("format") or ""
        self.list_type: str = raw.get("x-kubernetes-list-type") or (
            "atomic" if self.shape is SchemaShape.LIST else ""
        )
        self.list_keys: tuple[str, ...] = tuple(raw.get("x-kubernetes-list-map-keys") or ())
        self.merge_key: str = raw.get("x-kubernetes-patch-merge-key") or ""
        strategies = raw.get("x-kubernetes-patch-strategy") or ""
        self.strategies = frozenset(strategies.split(",")) - {""}
        atomic = raw.get("x-kubernetes-map-type") or body.get("x-kubernetes-map-type")
        self.is_atomic = atomic == "atomic" or self.shape is SchemaShape.ANY
        self.is_granular = (
            self.list_type != "atomic"
            if self.shape is SchemaShape.LIST
            else self.shape in (SchemaShape.OBJECT, SchemaShape.MAP) and not self.is_atomic
        )
        self.is_open = (
            raw.get(definition_schemas.PRESERVE) is True or definition == corrections.LOOSE
        )
        self.required = frozenset(cast(list[str], body.get("required") or ()))
        self.default: Any = corrections.DEFAULTS.get(definition) or raw.get("default")
        self.omits_zero = omits_zero
        self.cleaner: Callable[[Any, list[str]], Any] | None = None
        self.partial_cleaner: Callable[[Any, list[str]], Any] | None = None
        self.always: Mapping[str, Any] = corrections.ALWAYS.get(short_name(definition), {})

    @property
    def fields(self) -> dict[str, "SchemaNode"]:
        """The fields of an object by name; empty for other shapes."""
        fields = self._fields
        if fields is None:
            fields = self._fields = (
                self._expand() if self.shape is SchemaShape.OBJECT else _NO_FIELDS
            )
        return fields

    @property
    def items(self) -> "SchemaNode":
        """The schema of items of a list or of values of a map. Only for these shapes."""
        items = self._items
        if items is None:
            assert self.shape in (SchemaShape.LIST, SchemaShape.MAP), self.shape
            key = "items" if self.shape is SchemaShape.LIST else "additionalProperties"
            items = self._items = SchemaNode(self._schemas, self._raw.get(key) or {})
        return items

    @property
    def go_type(self) -> str:
        """The name of the type in decoding errors of the API: `v1.DeviceClaim`, `[]string`,
        `int64`."""
        match self.shape:
            case SchemaShape.LIST:
                return f"[]{self.items.go_type}"
            case SchemaShape.MAP:
                return f"map[string]{self.items.go_type}"
            case SchemaShape.INTEGER:
                return self.format or "int64"
            case SchemaShape.NUMBER:
                return "float64"
            case SchemaShape.BOOLEAN:
                return "bool"
            case SchemaShape.BYTES:
                return "[]uint8"
            case _ if self.definition:
                return ".".join(self.definition.split(".")[-2:])
            case _:
                return "string"

    def _expand(self) -> dict[str, "SchemaNode"]:
        properties = self._raw.get("properties") or {}
        omitting = _omitting(short_name(self.definition))
        keys = _keys_of_definition(self.definition)
        return {
            name: SchemaNode(
                self._schemas, _corrected(raw, keys.get(name)), omits_zero=name in omitting
            )
            for name, raw in properties.items()
        }


class Schemas:
    """The definitions of one release.

    `document` is the published file: JSON with `$defs`. Raises ValueError for other content.
    `stored` caches the results of `storage_node`.
    """

    def __init__(self, document: bytes) -> None:
        parts = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
        if "$defs" not in parts:
            raise ValueError("the schema document has no $defs")
        published = msgspec.json.decode(parts["$defs"], type=dict[str, msgspec.Raw])
        self._published: Mapping[str, msgspec.Raw] = published
        self._decoded: dict[str, JsonObject] = dict(corrections.DEFINITIONS)
        self._roots: dict[str, SchemaNode] = {}
        self._nodes: dict[tuple[str, str, str], SchemaNode | None] = {}
        self._custom: WeakKeyDictionary[Kind, dict[str, SchemaNode]] = WeakKeyDictionary()
        self.stored: dict[Kind, SchemaNode] = {}

    def node(self, kind: Kind, group: str, version: str) -> SchemaNode:
        """The root of a kind in one version; loosely typed if the release does not define it."""
        if kind.custom is not None:
            return self._custom_node(kind, version)
        node = self.find(group, version, kind.kind)
        return node if node is not None else self.root(corrections.LOOSE)

    def _custom_node(self, kind: Kind, version: str) -> SchemaNode:
        assert kind.custom is not None, "asked for custom kinds only"
        made = self._custom.setdefault(kind, {})
        node = made.get(version)
        if node is None:
            described = definition_schemas.definition(kind.custom.versions[version].schema)
            node = made[version] = SchemaNode(self, described)
        return node

    def find(self, group: str, version: str, kind: str) -> SchemaNode | None:
        """The root of a published kind, including kinds that are only requests; else None."""
        key = (group, version, kind)
        if key not in self._nodes:
            name = definition_name(*key)
            self._nodes[key] = self.root(name) if self.has(name) else None
        return self._nodes[key]

    def root(self, definition: str) -> SchemaNode:
        """The node of a definition. Raises KeyError if there is no definition of that name."""
        node = self._roots.get(definition)
        if node is None:
            self.definition(definition)
            node = self._roots[definition] = SchemaNode(self, {"$ref": _REF + definition})
        return node

    def has(self, definition: str) -> bool:
        """Whether the release or `corrections` has the definition."""
        return definition in self._published or definition in self._decoded

    def definition(self, name: str) -> JsonObject:
        """A definition as published (JSON schema with Kubernetes' extensions). Never change it."""
        schema = self._decoded.get(name)
        if schema is None:
            schema = self._decoded[name] = msgspec.json.decode(self._published[name])
        return schema

    def names(self) -> Iterable[str]:
        """The names of all definitions, sorted."""
        return sorted(set(self._published) | set(corrections.DEFINITIONS))

    def reachable(self, definition: str) -> list[str]:
        """The names of the definition and of all that it refers to, in order of first reference."""
        met: dict[str, None] = {}
        pending = [definition]
        while pending:
            name = pending.pop()
            if name in met or not self.has(name):
                continue
            met[name] = None
            pending.extend(reversed(list(_references(self.definition(name)))))
        return list(met)


def definition_name(group: str, version: str, kind: str) -> str:
    """The name of a kind's published definition."""
    if kind in ("DeleteOptions", "Status", "APIResourceList"):
        return _META + kind
    if group == api_groups.API_EXTENSIONS:
        return _APIEXTENSIONS + kind
    if group == api_groups.API_REGISTRATION:
        return _APIREGISTRATION + kind
    package = group.partition(".")[0] if group else "core"
    return f"io.k8s.api.{package}.{version}.{kind}"


def short_name(definition: str) -> str:
    """The last three parts of a definition's name, such as `core.v1.Pod` or
    `meta.v1.ObjectMeta`."""
    return ".".join(definition.split(".")[-3:])


def kind_name(definition: str) -> str:
    """The last part of a definition's name: the Go type without its package."""
    return definition.rpartition(".")[2]


def storage_node(schemas: Schemas, kind: Kind) -> SchemaNode:
    """The root of a kind in its storage version.

    For a release that serves only older versions, it is the root of the newest of these.
    """
    if kind.custom is not None:
        return schemas.node(kind, kind.group, kind.storage_version)
    known = schemas.stored.get(kind)
    if known is None:
        nodes = (schemas.find(*place, kind.kind) for place in kind.group_versions)
        known = next((node for node in nodes if node is not None), None)
        known = schemas.root(corrections.LOOSE) if known is None else known
        schemas.stored[kind] = known
    return known


def find_kind_of(tree: Mapping[str, Any]) -> Kind | None:
    """The kind of a tree by its apiVersion and kind; None for an unknown kind."""
    group, version = registry.split_api_version(str(tree.get("apiVersion", "")))
    return registry.find_kind(group, version, str(tree.get("kind", "")))


def _resolve(schemas: Schemas, raw: JsonObject) -> tuple[str, JsonObject]:
    ref = raw.get("$ref")
    if ref is None:
        return "", raw
    name = str(ref).removeprefix(_REF)
    return name, schemas.definition(name)


def _shape(definition: str, body: JsonObject) -> SchemaShape:
    special = _SPECIAL.get(definition)
    if special is not None:
        return special
    kinds = body.get("type")
    names = [kinds] if isinstance(kinds, str) else [name for name in kinds or () if name != "null"]
    shape = _BY_TYPE.get(names[0], SchemaShape.ANY) if names else SchemaShape.ANY
    if shape is SchemaShape.OBJECT and "properties" not in body:
        inner = body.get("additionalProperties")
        return SchemaShape.MAP if isinstance(inner, dict) else SchemaShape.ANY
    if shape is SchemaShape.STRING and body.get("format") == "byte":
        return SchemaShape.BYTES
    return shape


def _corrected(raw: JsonObject, more: Mapping[str, Any] | None) -> JsonObject:
    return raw if more is None else raw | dict(more)


def _keys_of_definition(definition: str) -> Mapping[str, Mapping[str, Any]]:
    return corrections.FIELDS.get(short_name(definition), {})


def _omitting(name: str) -> frozenset[str]:
    """The fields that are left out if they are zero, including those of inlined structs."""
    message = MESSAGES.get(name)
    if message is None:
        return frozenset()
    names: set[str] = set()
    for field in cast(Iterable[ProtobufField], message.values()):
        if field.omits_zero:
            names.add(field.name)
        if field.is_inline:
            names |= _omitting(field.type)
    return frozenset(names)


def pointers(definition: str) -> frozenset[str]:
    """The fields that are pointers in the Go type, so an empty object lacks them."""
    message = MESSAGES.get(short_name(definition), {})
    return frozenset(field.name for field in message.values() if field.is_pointer)


def _references(raw: Any) -> Iterable[str]:
    if isinstance(raw, dict):
        ref = raw.get("$ref")
        if isinstance(ref, str):
            yield ref.removeprefix(_REF)
        for value in raw.values():
            yield from _references(value)
    elif isinstance(raw, list):
        for value in raw:
            yield from _references(value)


def child_of(node: SchemaNode | None, name: str) -> SchemaNode | None:
    """The schema of a field of an object, or of a value of a map; None if it is not known."""
    if node is None:
        return None
    if node.shape is SchemaShape.OBJECT:
        return node.fields.get(name)
    return node.items if node.shape is SchemaShape.MAP else None
