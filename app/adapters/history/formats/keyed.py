"""Documents whose fields are arrays of objects, named after their resource.

Examples are exports of the scheduler simulator, snapshots of schedulers (`rawObjects`) and
debugging snapshots of the cluster autoscaler (`NodeList`, each with its `Pods`). Their items have
no kind. Parity: history-formats.md 3.8, 10.2, 15.
"""

from collections.abc import Iterator

from app.domain.values import api_groups, json_tree
from app.domain.values.json_tree import JsonObject, JsonView

KIND_OF_FIELD = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "namespaces": ("v1", "Namespace"),
    "pvs": ("v1", "PersistentVolume"),
    "persistentVolumes": ("v1", "PersistentVolume"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "persistentVolumeClaims": ("v1", "PersistentVolumeClaim"),
    "configMaps": ("v1", "ConfigMap"),
    "storageClasses": (f"{api_groups.STORAGE}/v1", "StorageClass"),
    "priorityClasses": (f"{api_groups.SCHEDULING}/v1", "PriorityClass"),
    "resourceClaims": (f"{api_groups.RESOURCE}/v1", "ResourceClaim"),
    "resourceClaimTemplates": (f"{api_groups.RESOURCE}/v1", "ResourceClaimTemplate"),
    "resourceSlices": (f"{api_groups.RESOURCE}/v1", "ResourceSlice"),
    "deviceClasses": (f"{api_groups.RESOURCE}/v1", "DeviceClass"),
    "deviceTaintRules": (f"{api_groups.RESOURCE}/v1beta2", "DeviceTaintRule"),
}
"""The apiVersion and kind of the items of each array."""

RAW = "rawObjects"


def is_keyed(value: JsonView) -> bool:
    """True for a document with an object in such an array, or the fields of a simulator export."""
    if value.get("kind") or "metadata" in value:
        return False
    tree = value.get(RAW, value)
    if not isinstance(tree, dict):
        return False
    if "schedulerConfig" in tree and ("pods" in tree or "nodes" in tree):
        return True
    return next(items(value), None) is not None


def items(value: JsonView) -> Iterator[tuple[str, JsonObject]]:
    """The position and the object of each item, with its kind. Example position: `pods[0]`."""
    raw = value.get(RAW)
    tree = raw if isinstance(raw, dict) else value
    for field in KIND_OF_FIELD:
        yield from _of_field(tree, field, field)
    for index, entry in enumerate(json_tree.objects(tree, "NodeList")):
        node = entry.get("Node")
        if isinstance(node, dict):
            yield from _of_field({"nodes": [node]}, "nodes", f"NodeList[{index}].Node")
        yield from _of_field({"pods": entry.get("Pods")}, "pods", f"NodeList[{index}].Pods")


def _of_field(tree: JsonView, field: str, place: str) -> Iterator[tuple[str, JsonObject]]:
    api_version, kind = KIND_OF_FIELD[field]
    for index, item in enumerate(json_tree.objects(tree, field)):
        if isinstance(item.get("metadata"), dict):
            yield f"{place}[{index}]", {"apiVersion": api_version, "kind": kind, **item}
