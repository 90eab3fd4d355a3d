"""OpenAPI components of custom kinds: their schemas as written, plus the fields of all objects.

Parity: api.md 4; names are the group reversed, as the real server makes them.
"""

from app.api.openapi.paths import LIST_META
from app.domain.objects.registry import Kind
from app.domain.values.json_tree import JsonObject

META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

_REF = "#/components/schemas/"


def name_of(kind: Kind, version: str) -> str:
    """The name of a custom kind's component, such as `com.example.stable.v1.CronTab`."""
    return ".".join((*reversed(kind.group.split(".")), version, kind.kind))


def list_name_of(kind: Kind, version: str) -> str:
    """The name of the component for lists of a custom kind."""
    return name_of(kind, version).removesuffix(kind.kind) + kind.list_kind


def components(kind: Kind, version: str, meta_fields: JsonObject) -> JsonObject:
    """The components of a kind and of its lists in one version."""
    assert kind.custom is not None, "asked for custom kinds only"
    schema = kind.custom.versions[version].schema
    name = name_of(kind, version)
    meta = {
        "allOf": [{"$ref": _REF + META}],
        "description": "Standard metadata of every object.",
    }
    properties = {**schema.get("properties", {}), **meta_fields, "metadata": meta}
    shown = {**schema, "type": "object", "properties": properties}
    shown["x-kubernetes-group-version-kind"] = [
        {"group": kind.group, "kind": kind.kind, "version": version}
    ]
    listed = {
        "type": "object",
        "required": ["items"],
        "properties": {
            **meta_fields,
            "items": {"type": "array", "items": {"$ref": _REF + name}},
            "metadata": {
                "allOf": [{"$ref": _REF + LIST_META}],
                "description": "Standard metadata of every list.",
            },
        },
        "x-kubernetes-group-version-kind": [
            {"group": kind.group, "kind": kind.list_kind, "version": version}
        ],
    }
    return {name: shown, list_name_of(kind, version): listed}
