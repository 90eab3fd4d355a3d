"""From kind to resource and scope, for any kind; identities of recorded objects.

The table names what the rule for plurals gets wrong and what is cluster-scoped. Kinds that are
not in it are namespaced exactly when the object names a namespace.
"""

from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView

RESOURCE_GROUP = "resource.k8s.io"
EVENTS_GROUP = "events.k8s.io"
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
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("node.k8s.io", "RuntimeClass"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourcePoolStatusRequest"),
        ("resource.k8s.io", "ResourceSlice"),
        ("resource.k8s.io", "ResourceSlicePatch"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttachment"),
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
        ("apps", kind)
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision")
    }
    | {("batch", "Job"), ("batch", "CronJob")}
    | {("resource.k8s.io", "ResourceClaim"), ("resource.k8s.io", "ResourceClaimTemplate")}
    | {(EVENTS_GROUP, "Event"), ("coordination.k8s.io", "Lease")}
)

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


def resource_of(kind: str) -> str:
    """The plural under which a kind is served. Example: `ResourceSlicePatch` → `…patches`."""
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
    """The key of an object by its own words. Raises InputError without kind, version or name."""
    api_version = json_tree.text(tree, "apiVersion")
    kind = json_tree.text(tree, "kind")
    if not api_version or not kind:
        missing = "apiVersion" if not api_version else "kind"
        named = f"the {kind or 'object'} {json_tree.text(tree, 'metadata', 'name')!r}"
        raise InputError(f"{named} has no {missing}", place=place, cure=f"add the {missing}")
    name = json_tree.text(tree, "metadata", "name")
    if not name:
        raise InputError(
            f"a {kind} without metadata.name", place=place, cure="give the object a name"
        )
    group, _ = split_version(api_version)
    namespace = json_tree.text(tree, "metadata", "namespace")
    if is_cluster_scoped(group, kind):
        namespace = ""
    elif not namespace and is_namespaced(group, kind):
        namespace = DEFAULT_NAMESPACE
    return ObjectKey(group, resource_of(kind), namespace, name)


def list_items(tree: JsonObject) -> list[JsonObject] | None:
    """The items of a list with kind and apiVersion filled in from the list; None if it is none.

    Parity: history-formats.md 3.8.
    """
    items = tree.get("items")
    kind = tree.get("kind")
    if not isinstance(items, list) or not (kind is None or str(kind).endswith("List")):
        return None
    item_kind = "" if kind in (None, "List") else str(kind).removesuffix("List")
    version = tree.get("apiVersion") if item_kind else None
    found: list[JsonObject] = []
    for item in items:
        if isinstance(item, dict):
            if item_kind and "kind" not in item:
                item = {"apiVersion": version, "kind": item_kind, **item}
            found.append(item)
    return found
