"""The `paths` part of OpenAPI documents: one operation per served verb.

Clients look for `fieldValidation` among the parameters of a patch, and for strategic merge patch
among its content types. Parity: api.md 4.
"""

from dataclasses import dataclass

from app.api.kubernetes import discovery
from app.api.kubernetes.discovery import ReviewKind
from app.domain.objects.registry import Kind
from app.domain.objects.write.commands import PatchType
from app.domain.values.json_tree import JsonObject

OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"

_REF = "#/components/schemas/"
_READ_TYPES = ("application/json", "application/yaml")
_WRITE_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")

_PARAMETERS: dict[str, tuple[str, str]] = {
    "allowWatchBookmarks": ("boolean", "Whether a watch may get bookmarks."),
    "continue": ("string", "The token of the previous page."),
    "dryRun": ("string", "`All`: do everything but store it."),
    "fieldManager": ("string", "The name under which changed fields are recorded."),
    "fieldSelector": ("string", "Restricts by fields."),
    "fieldValidation": ("string", "Validation of unknown fields: Ignore, Warn or Strict."),
    "force": ("boolean", "Take over fields of other managers; only for apply."),
    "gracePeriodSeconds": ("integer", "Time until the object is removed."),
    "labelSelector": ("string", "Restricts by labels."),
    "limit": ("integer", "Maximum number of items on a page."),
    "orphanDependents": ("boolean", "Superseded by propagationPolicy."),
    "pretty": ("string", "Ignored."),
    "propagationPolicy": ("string", "The deletion policy for dependents."),
    "resourceVersion": ("string", "The revision to read or to watch from."),
    "resourceVersionMatch": ("string", "The meaning of resourceVersion."),
    "sendInitialEvents": ("boolean", "Whether a watch begins with the existing objects."),
    "timeoutSeconds": ("integer", "Maximum time of a watch."),
    "watch": ("boolean", "Follow changes instead of listing."),
}

_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")

# verb: HTTP method, action, query parameters
_COLLECTION = {
    "list": ("get", "list", _LIST),
    "create": ("post", "post", _WRITE),
    "deletecollection": (
        "delete",
        "deletecollection",
        (*_DELETE, "fieldSelector", "labelSelector"),
    ),
}
_ITEM = {
    "get": ("get", "get", ()),
    "update": ("put", "put", _WRITE),
    "patch": ("patch", "patch", (*_WRITE, "force")),
    "delete": ("delete", "delete", _DELETE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """The components in the requests and responses of a kind."""

    item: str
    listed: str
    deleted: str

    def answer(self, verb: str) -> str:
        """The component in the response to a verb; deletecollection returns the deleted list."""
        if verb in ("list", "deletecollection"):
            return self.listed
        return self.deleted if verb == "delete" else self.item


def of_kind(kind: Kind, group: str, version: str, definitions: Definitions) -> JsonObject:
    """All paths of a kind in one version."""
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    gvk = {"group": group, "version": version, "kind": kind.kind}
    place = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
    inherited = ["namespace"] if kind.namespaced else []
    paths: JsonObject = {}
    collection = _path(kind, kind.verbs, _COLLECTION, gvk, definitions, inherited)
    item = _path(kind, kind.verbs, _ITEM, gvk, definitions, [*inherited, "name"])
    paths[f"{place}/{kind.plural}"] = collection
    paths[f"{place}/{kind.plural}/{{name}}"] = item
    if kind.namespaced and "list" in kind.verbs:
        paths[f"{root}/{kind.plural}"] = _path(kind, ("list",), _COLLECTION, gvk, definitions, [])
    for name in discovery.served_subresources(kind):
        if name in ("eviction", "binding", "log", "scale", "token"):
            continue
        verbs = discovery.SUBRESOURCE_VERBS[name]
        paths[f"{place}/{kind.plural}/{{name}}/{name}"] = _path(
            kind, verbs, _ITEM, gvk, definitions, [*inherited, "name"], suffix=name
        )
    return paths


def of_review(review: ReviewKind, definition: str) -> JsonObject:
    """The path of a review."""
    root = f"/apis/{review.group}/v1" if review.group else "/api/v1"
    place = f"{root}/namespaces/{{namespace}}" if review.namespaced else root
    gvk = {"group": review.group, "version": "v1", "kind": review.kind}
    operation = {
        "operationId": f"create{review.kind}",
        "x-kubernetes-action": "post",
        "x-kubernetes-group-version-kind": gvk,
        "parameters": _query(_WRITE),
        "requestBody": _body(_WRITE_TYPES, definition),
        "responses": _responses(definition, "201"),
    }
    path: JsonObject = {"post": operation}
    if review.namespaced:
        path["parameters"] = [_in_path("namespace")]
    return {f"{place}/{review.plural}": path}


def _path(
    kind: Kind,
    verbs: tuple[str, ...],
    table: dict[str, tuple[str, str, tuple[str, ...]]],
    gvk: JsonObject,
    definitions: Definitions,
    inherited: list[str],
    *,
    suffix: str = "",
) -> JsonObject:
    item: JsonObject = {}
    if inherited:
        item["parameters"] = [_in_path(name) for name in inherited]
    for verb, (method, action, parameters) in table.items():
        if verb not in verbs:
            continue
        scope = "Namespaced" if "namespace" in inherited else ""
        identity = f"{verb}{_title(gvk)}{scope}{kind.kind}{suffix.title()}"
        operation: JsonObject = {
            "operationId": identity,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk,
            "parameters": _query(parameters),
            "responses": _responses(definitions.answer(verb), "201" if verb == "create" else "200"),
        }
        if verb in ("create", "update"):
            types = _WRITE_TYPES if kind.custom is None else _READ_TYPES
            operation["requestBody"] = _body(types, definitions.item)
        elif verb in ("delete", "deletecollection"):
            operation["requestBody"] = _body(_WRITE_TYPES, OPTIONS) | {"required": False}
        elif verb == "patch":
            operation["requestBody"] = {
                "required": True,
                "content": {
                    patch.value: {"schema": {"type": "object"}}
                    for patch in PatchType
                    if kind.custom is None or patch is not PatchType.STRATEGIC
                },
            }
        item[method] = operation
    return item


def _title(gvk: JsonObject) -> str:
    group = str(gvk["group"]).partition(".")[0] or "core"
    return group.title() + str(gvk["version"]).title()


def _in_path(name: str) -> JsonObject:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": f"The {name} of the object.",
        "schema": {"type": "string"},
    }


def _query(names: tuple[str, ...]) -> list[JsonObject]:
    return [
        {
            "name": name,
            "in": "query",
            "description": _PARAMETERS[name][1],
            "schema": {"type": _PARAMETERS[name][0]},
        }
        for name in names
    ]


def _body(types: tuple[str, ...], definition: str) -> JsonObject:
    shape = {"schema": {"$ref": _REF + definition}}
    return {"required": True, "content": dict.fromkeys(types, shape)}


def _responses(definition: str, code: str) -> JsonObject:
    shape = {"schema": {"$ref": _REF + definition}}
    codes = ("200", "201") if code == "201" else ("200",)
    return {
        code: {"description": "OK", "content": dict.fromkeys(_READ_TYPES, shape)} for code in codes
    }
