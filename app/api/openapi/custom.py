"""OpenAPI components of custom kinds: their schemas as written, with what every object has.

Parity: api.md 4; names are the group reversed, as the real server makes them.
"""

from app.domain.objects.registry import Kind
from app.domain.values.json_tree import JsonObject

META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

_REF = "#/components/schemas/"


def name_of(kind: Kind, version: str) -> str:
    """The name of a custom kind's component, such as `com.example.stable.v1.CronTab`."""
    return ".".join((*reversed(kind.group.split(".")), version, kind.kind))


def components(kind: Kind, version: str, meta_fields: JsonObject) -> JsonObject:
    """The component of a kind in one version; its lists are not described by one of their own."""
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
    return {name: shown}
