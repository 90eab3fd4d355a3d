"""The resource and scope of any kind, and the identities of recorded objects.

The tables hold the exceptions to the rule for plurals and the cluster-scoped kinds. An object of a
kind that is in no table is namespaced exactly when it has a namespace.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.values import api_groups
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

DEFAULT_NAMESPACE = "default"

_IRREGULAR = {
    "Endpoints": "endpoints",
    "NetworkAttachmentDefinition": "network-attachment-definitions",
}

_CLUSTER_SCOPED = frozenset(
    {
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        (api_groups.API_EXTENSIONS, "CustomResourceDefinition"),
        (api_groups.API_REGISTRATION, "APIService"),
        (api_groups.ADMISSION_REGISTRATION, "MutatingAdmissionPolicy"),
        (api_groups.ADMISSION_REGISTRATION, "MutatingAdmissionPolicyBinding"),
        (api_groups.ADMISSION_REGISTRATION, "MutatingWebhookConfiguration"),
        (api_groups.ADMISSION_REGISTRATION, "ValidatingWebhookConfiguration"),
        (api_groups.ADMISSION_REGISTRATION, "ValidatingAdmissionPolicy"),
        (api_groups.ADMISSION_REGISTRATION, "ValidatingAdmissionPolicyBinding"),
        (api_groups.NODE, "RuntimeClass"),
        (api_groups.RBAC, "ClusterRole"),
        (api_groups.RBAC, "ClusterRoleBinding"),
        (api_groups.RESOURCE, "DeviceClass"),
        (api_groups.RESOURCE, "DeviceTaintRule"),
        (api_groups.RESOURCE, "ResourcePoolStatusRequest"),
        (api_groups.RESOURCE, "ResourceSlice"),
        (api_groups.RESOURCE, "ResourceSlicePatch"),
        (api_groups.SCHEDULING, "PriorityClass"),
        (api_groups.STORAGE, "CSIDriver"),
        (api_groups.STORAGE, "CSINode"),
        (api_groups.STORAGE, "StorageClass"),
        (api_groups.STORAGE, "VolumeAttachment"),
    }
)

_NAMESPACED = frozenset(
    {
        ("", kind)
        for kind in (
            "Pod",
            "Service",
            "ServiceAccount",
            "ConfigMap",
            "Secret",
            "Event",
            "Endpoints",
            "PersistentVolumeClaim",
            "ReplicationController",
        )
    }
    | {
        (api_groups.APPS, kind)
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision")
    }
    | {(api_groups.BATCH, "Job"), (api_groups.BATCH, "CronJob")}
    | {(api_groups.RESOURCE, "ResourceClaim"), (api_groups.RESOURCE, "ResourceClaimTemplate")}
    | {(api_groups.EVENTS, "Event"), (api_groups.COORDINATION, "Lease")}
)

METADATA_ALONE = "PartialObjectMetadata"
"""The kind of answers with the metadata of objects, which do not say of which kind."""

NOT_OBJECTS = frozenset(
    {
        "APIGroup",
        "APIGroupList",
        "APIResourceList",
        "APIVersions",
        "APIGroupDiscoveryList",
        "Status",
        "Table",
    }
)
"""Kinds in responses of an API server that are not objects of a cluster."""

_NOT_STORED = frozenset(
    {
        ("", "Binding"),
        ("", "ComponentStatus"),
        ("", "PodStatusResult"),
        ("", "RangeAllocation"),
        (api_groups.AUTHENTICATION, "SelfSubjectReview"),
        (api_groups.AUTHENTICATION, "TokenRequest"),
        (api_groups.AUTHENTICATION, "TokenReview"),
        (api_groups.AUTHORIZATION, "LocalSubjectAccessReview"),
        (api_groups.AUTHORIZATION, "SelfSubjectAccessReview"),
        (api_groups.AUTHORIZATION, "SelfSubjectRulesReview"),
        (api_groups.AUTHORIZATION, "SubjectAccessReview"),
        (api_groups.APPS, "Scale"),
        (api_groups.AUTOSCALING, "Scale"),
        ("extensions", "Scale"),
        ("metrics.k8s.io", "NodeMetrics"),
        ("metrics.k8s.io", "PodMetrics"),
        (api_groups.POLICY, "Eviction"),
    }
)
"""Group and kind of requests, and of their answers, that no server stores as objects."""

_CLUSTER_RESOURCES = frozenset(
    {
        "namespaces",
        "nodes",
        "persistentvolumes",
        "deviceclasses",
        "devicetaintrules",
        "resourceslices",
        "resourceslicepatches",
        "resourcepoolstatusrequests",
    }
)


def is_answer(tree: JsonView) -> bool:
    """True for a document of a kind of which a cluster has no objects."""
    group, _ = split_version(meta.api_version(tree))
    return tree.get("kind") in NOT_OBJECTS or (group, meta.kind(tree)) in _NOT_STORED


def resource_of(kind: str) -> str:
    """The plural resource name of a kind. Example: `ResourceSlicePatch` → `…patches`."""
    if kind in _IRREGULAR:
        return _IRREGULAR[kind]
    name = kind.lower()
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in tuple("aeiou"):
        return f"{name[:-1]}ies"
    return f"{name}s"


def is_cluster_scoped(group: str, kind: str) -> bool:
    """True for kinds that are known to have no namespace."""
    return (group, kind) in _CLUSTER_SCOPED


def is_namespaced(group: str, kind: str) -> bool:
    """True for kinds that are known to have a namespace."""
    return (group, kind) in _NAMESPACED


def is_cluster_resource(resource: str) -> bool:
    """True for resources whose audit records may repeat the name as a namespace."""
    return resource in _CLUSTER_RESOURCES


def split_version(api_version: str) -> tuple[str, str]:
    """Group and version. Example: `v1` → (``, `v1`), `apps/v1` → (`apps`, `v1`)."""
    group, _, version = api_version.rpartition("/")
    return group, version


def key_of(tree: JsonView, place: str) -> ObjectKey:
    """The key of an object, from its own fields.

    Raises InputError without kind, version or name.
    """
    api_version = meta.api_version(tree)
    kind = meta.kind(tree)
    if not api_version or not kind:
        missing = "apiVersion" if not api_version else "kind"
        named = f"the {kind or 'object'} {meta.name(tree)!r}"
        raise InputError(f"{named} has no {missing}", place=place, cure=f"add the {missing}")
    name = meta.name(tree)
    if not name:
        raise InputError(
            f"a {kind} without metadata.name", place=place, cure="give the object a name"
        )
    group, _ = split_version(api_version)
    namespace = meta.namespace(tree)
    if is_cluster_scoped(group, kind):
        namespace = ""
    elif not namespace and is_namespaced(group, kind):
        namespace = DEFAULT_NAMESPACE
    return ObjectKey(group, resource_of(kind), namespace, name)


def is_list(tree: JsonView) -> bool:
    """True for a list of objects, including an empty list, whose `items` servers write as null."""
    kind, items = tree.get("kind"), tree.get("items")
    if kind is None:
        return isinstance(items, list) and (not items or any(map(_may_be_object, items)))
    if not isinstance(kind, str) or not kind.endswith("List") or kind in NOT_OBJECTS:
        return False
    return isinstance(items, list) or (items is None and not meta.name(tree))


def _may_be_object(item: Any) -> bool:
    """False for an item of another answer, such as an issue that a search for issues gives."""
    return isinstance(item, dict) and not item.keys().isdisjoint(("metadata", "kind", "apiVersion"))


WITHIN_MAX = 12
"""Levels of a document that are searched for objects."""


def table_items(tree: JsonObject) -> list[JsonObject] | None:
    """The objects of a table that was requested with `includeObject=Object`; None otherwise.

    Without that parameter the rows hold only metadata, which is not a whole object.
    """
    if tree.get("kind") != "Table" or not isinstance(rows := tree.get("rows"), list):
        return None
    objects = [row.get("object") for row in rows if isinstance(row, dict)]
    whole = [
        each
        for each in objects
        if isinstance(each, dict) and each.get("kind") not in (None, METADATA_ALONE)
    ]
    return whole if whole and len(whole) == len(rows) else None


_WATCHED = ("ADDED", "MODIFIED", "DELETED")


def objects_within(value: Any, depth: int = WITHIN_MAX) -> Iterator[JsonObject]:
    """The objects of a cluster below the fields of another document, such as a line of a log.

    Objects without a uid are left out: only an object that a server stored has one. An object that
    was logged with the type of its change is yielded as the event of a watch.
    """
    if depth == 0:
        return
    if isinstance(value, str) and value.startswith(_BEGINNING):
        # A client in Go logs an object as a text, without its kind.
        yield from objects_within(_decoded(value), depth - 1)
    elif isinstance(value, list):
        for item in value:
            yield from objects_within(item, depth - 1)
    elif isinstance(value, dict):
        if value.get("type") in _WATCHED and isinstance(value.get("object"), dict):
            for tree in objects_within(value["object"], depth - 1):
                yield {"type": value["type"], "object": tree}
            return
        if is_admission(value):
            # The other object is asked for, and need not have been stored.
            if value.get("subResource", "") in ("", "status"):
                yield from objects_within(value.get("oldObject"), depth - 1)
            return
        metadata = value.get("metadata")
        if "apiVersion" in value and "kind" in value and isinstance(metadata, dict):
            if metadata.get("uid") and metadata.get("name"):
                yield value
            return
        if is_reported(value) and value["metadata"].get("uid"):
            yield {"apiVersion": "v1", "kind": "Event", **value}
            return
        if (named := of_fields(value)) is not None:
            yield {**value, "apiVersion": named[0], "kind": named[1]}
            return
        for item in value.values():
            yield from objects_within(item, depth - 1)


_BEGINNING = '{"metadata":{'


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


KINDLESS = "an object without its kind, which neither its fields nor its file tell"
_PHASES = frozenset({"Pending", "Running", "Succeeded", "Failed", "Unknown"})


def of_fields(tree: JsonView) -> tuple[str, str] | None:
    """Version and kind of a stored object without them, from its fields; None where they fit none.

    Programs in Go log objects so: a typed client leaves the kind out. Each rule is a set of fields
    that only one kind has; of a version with other names for them, the object has that version.
    Parity: history-formats.md 3.8.
    """
    metadata, spec, status = (tree.get(part) for part in ("metadata", "spec", "status"))
    if tree.get("kind") or not isinstance(metadata, dict) or not is_stored(metadata):
        return None
    spec = spec if isinstance(spec, dict) else {}
    status = status if isinstance(status, dict) else {}
    if isinstance(spec.get("containers"), list) and status.get("phase") in _PHASES:
        return "v1", "Pod"
    info = status.get("nodeInfo")
    if isinstance(info, dict) and info.get("kubeletVersion"):
        return "v1", "Node"
    if isinstance(spec.get("pool"), dict) and isinstance(spec.get("driver"), str):
        is_old = any("basic" in device for device in _dicts(spec.get("devices")))
        return _devices_version(is_old=is_old), "ResourceSlice"
    template = spec.get("spec")
    inner = template if isinstance(template, dict) else spec
    devices = inner.get("devices")
    requests = _dicts(devices.get("requests")) if isinstance(devices, dict) else []
    if any({"exactly", "firstAvailable", "deviceClassName"} & each.keys() for each in requests):
        is_old = any("deviceClassName" in each for each in requests)
        kind = "ResourceClaim" if inner is spec else "ResourceClaimTemplate"
        return _devices_version(is_old=is_old), kind
    if isinstance(inner.get("resourceClassName"), str):
        # The reader of objects says that this form is no longer read.
        kind = "ResourceClaim" if inner is spec else "ResourceClaimTemplate"
        return f"{api_groups.RESOURCE}/v1alpha2", kind
    return None


def unnamed(tree: JsonView) -> Iterator[str]:
    """The loss of a stored object whose kind neither it nor its fields tell."""
    metadata = tree.get("metadata")
    if tree.get("kind") or not isinstance(metadata, dict) or not is_stored(metadata):
        return
    if ("spec" in tree or "status" in tree) and of_fields(tree) is None:
        yield KINDLESS


def is_stored(metadata: JsonView) -> bool:
    """True for metadata as only an object has that a server has stored."""
    served = (metadata.get(name) for name in ("name", "uid", "creationTimestamp"))
    return all(isinstance(value, str) and value for value in served)


def _devices_version(*, is_old: bool) -> str:
    return f"{api_groups.RESOURCE}/{'v1beta1' if is_old else 'v1'}"


def _dicts(items: Any) -> list[JsonObject]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def is_admission(tree: JsonView) -> bool:
    """True for a request that an admission webhook is asked to review, also with odd fields.

    What it holds as `object` is no object of the cluster, whatever its other fields are.
    """
    bodies = {"object", "oldObject"} & tree.keys()
    if "operation" not in tree or not bodies:
        return False
    return len(bodies) == 2 or {"userInfo", "resource"} <= tree.keys()


def is_reported(tree: JsonView) -> bool:
    """True for an Event without its kind, as exporters of Events write them."""
    return (
        not tree.get("kind")
        and isinstance(tree.get("metadata"), dict)
        and isinstance(tree.get("involvedObject"), dict)
        and isinstance(tree.get("reason"), str)
    )


def list_items(tree: JsonObject) -> list[JsonObject] | None:
    """The items of a list, with kind and apiVersion from the list; None for other documents.

    Parity: history-formats.md 3.8.
    """
    if not is_list(tree):
        return None
    items = tree.get("items") or []
    kind = tree.get("kind")
    item_kind = "" if kind in (None, "List") else str(kind).removesuffix("List")
    version = tree.get("apiVersion") if item_kind else None
    listed: list[JsonObject] = []
    for item in items:
        if isinstance(item, dict):
            if item_kind and "kind" not in item:
                item = {"apiVersion": version, "kind": item_kind, **item}
            listed.append(item)
    return listed


def has_typed_items(tree: JsonObject) -> bool:
    """True for a list of a kind whose items name no kind.

    A client with a type for each kind prints it so, and so does a server. The former leaves out
    the fields that its release does not know.
    """
    items = [item for item in tree.get("items") or () if isinstance(item, dict)]
    return bool(items) and not any("kind" in item for item in items)


def lacks_status(tree: JsonView) -> bool:
    """Whether an object is shown without a status although its kind has one, or may have one."""
    if tree.get("status"):
        return False
    group, version = registry.split_api_version(meta.api_version(tree))
    kind = registry.find_kind(group, version, meta.kind(tree))
    return kind is None or kind.has_status
