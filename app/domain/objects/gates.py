"""Fields that a release drops because their feature gate is off.

Dropped on create, and on update unless the old object already used the feature: then nothing of
it is dropped. Works in place on a tree the caller owns. Parity: objects.md 12.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from app.domain.objects.profile import Profile
from app.domain.objects.registry import Kind
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView

_Row: TypeAlias = tuple[tuple[str, ...], str, tuple[str, ...]]
"""Gates of which all have to be on, where the fields stand, and their names."""

_BINDING = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")

# Where a field stands: inside a request (exact or alternative), a result, a device, and so on.
_SLICE_FIELDS: tuple[_Row, ...] = (
    (("DRADeviceTaints",), "device", ("taints",)),
    (
        ("DRAPartitionableDevices",),
        "device",
        ("consumesCounters", "nodeName", "nodeSelector", "allNodes"),
    ),
    (("DRAPartitionableDevices",), "spec", ("sharedCounters", "perDeviceNodeSelection")),
    (_BINDING, "device", ("bindingConditions", "bindingFailureConditions", "bindsToNode")),
    (("DRAConsumableCapacity",), "device", ("allowMultipleAllocations",)),
    (("DRAConsumableCapacity",), "capacity", ("requestPolicy",)),
    (("DRAListTypeAttributes",), "attribute", ("bools", "ints", "strings", "versions")),
    (("DRANodeAllocatableResources",), "device", ("nodeAllocatableResources",)),
    (("DRAOptionalNodeOperations",), "spec", ("skipNodeOperations",)),
    (("DRAPartitionableDevicesType",), "spec", ("partitionTypeAttribute",)),
)
_CLAIM_FIELDS: tuple[_Row, ...] = (
    (("DRAPrioritizedList",), "main", ("firstAvailable",)),
    (("DRAAdminAccess",), "request", ("adminAccess",)),
    (("DRAAdminAccess",), "result", ("adminAccess",)),
    (("DRADeviceTaints",), "request", ("tolerations",)),
    (("DRADeviceTaints",), "result", ("tolerations",)),
    (("DRAConsumableCapacity",), "request", ("capacity",)),
    (("DRAConsumableCapacity",), "constraint", ("distinctAttribute",)),
    (("DRAConsumableCapacity",), "result", ("shareID", "consumedCapacity")),
    (("DRAOptionalNodeOperations",), "result", ("skipNodeOperations",)),
    (_BINDING, "result", ("bindingConditions", "bindingFailureConditions")),
    (_BINDING, "allocation", ("allocationTimestamp",)),
    (("DRAResourceClaimDeviceStatus",), "status", ("devices",)),
)


def drop_disabled(kind: Kind, tree: JsonObject, old: JsonView | None, profile: Profile) -> None:
    """Remove what the profile's gates do not allow, unless `old` already uses it."""
    if kind.kind == "ResourceSlice":
        rows = _SLICE_FIELDS
        places = _slice_places
    elif kind.kind in ("ResourceClaim", "ResourceClaimTemplate"):
        rows = _CLAIM_FIELDS
        places = _claim_places
    elif kind.kind == "DeviceClass":
        if not profile.enabled("DRAExtendedResource"):
            _drop_class_field(tree, old)
        return
    else:
        return
    for gates, place, names in _closed(rows is _CLAIM_FIELDS, profile.open_gates):
        if old is not None and any(
            name in holder
            for other, others in _gate_fields(rows, gates)
            for holder in places(old, other)
            for name in others
        ):
            continue
        for holder in places(tree, place):
            for name in names:
                holder.pop(name, None)


@lru_cache(maxsize=64)
def _closed(is_claim: bool, on: frozenset[str]) -> tuple[_Row, ...]:
    """The rows of claims or of slices that are not allowed with these gates on."""
    rows = _CLAIM_FIELDS if is_claim else _SLICE_FIELDS
    return tuple(row for row in rows if not on.issuperset(row[0]))


def _gate_fields(
    rows: tuple[_Row, ...], gates: tuple[str, ...]
) -> list[tuple[str, tuple[str, ...]]]:
    return [(place, names) for gate, place, names in rows if gate == gates]


def _drop_class_field(tree: JsonObject, old: JsonView | None) -> None:
    spec = tree.get("spec")
    if spec and not (old and json_tree.text(old, "spec", "extendedResourceName")):
        spec.pop("extendedResourceName", None)


def _slice_places(tree: JsonView, place: str) -> Iterator[Any]:
    spec = json_tree.mapping(tree, "spec")
    if place == "spec":
        yield spec
        return
    for device in json_tree.objects(spec, "devices"):
        if place == "device":
            yield device
        elif place == "capacity":
            yield from device.get("capacity", {}).values()
        else:
            yield from device.get("attributes", {}).values()


def _claim_places(tree: JsonView, place: str) -> Iterator[Any]:
    if place in ("status", "allocation", "result"):
        if "status" not in tree:
            return
        status = json_tree.mapping(tree, "status")
        if place == "status":
            yield status
        elif place == "allocation":
            yield json_tree.mapping(status, "allocation")
        else:
            yield from json_tree.objects(status, "allocation", "devices", "results")
        return
    spec = json_tree.mapping(tree, "spec")
    devices = json_tree.mapping(spec, "spec" if "spec" in spec else "devices")
    if "spec" in spec:
        devices = json_tree.mapping(devices, "devices")
    if place == "constraint":
        yield from json_tree.objects(devices, "constraints")
        return
    for request in json_tree.objects(devices, "requests"):
        if place == "main":
            yield request
            continue
        if isinstance(request.get("exactly"), dict):
            yield request["exactly"]
        yield from json_tree.objects(request, "firstAvailable")
