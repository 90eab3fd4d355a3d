"""Fields that a release drops because their feature gate is off.

They are dropped on create, and on update unless the old object already uses the feature: then all
its fields are kept. The tree is changed in place; the caller owns it. Parity: objects.md 12;
KEP-5027 for patches; Kubernetes' API reference for `derivedAttributes`, its list of feature gates
for `compatibilityGroups`, its page of Jobs for `scheduling`; and `schedulingGroup`, which a 1.36.2
server was seen to drop.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from app.domain.objects.profile import Profile
from app.domain.objects.registry import Kind
from app.domain.values import json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject, JsonView

_Row: TypeAlias = tuple[tuple[str, ...], str, tuple[str, ...]]
"""The gates that must all be on, the place of the fields, and their names.

A gate that `profile.GATES` lacks belongs to a feature that is not emulated, and is always off.
"""

_Places: TypeAlias = Callable[[JsonView, str], Iterable[Any]]
"""The parts of an object that may hold a row's fields."""

_BINDING = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")

# The place of a field: a request, its exact form or an alternative, a result, a device, and so on.
_SLICE_FIELDS: tuple[_Row, ...] = (
    (("DRADeviceTaints",), "device", ("taints",)),
    (
        ("DRAPartitionableDevices",),
        "device",
        ("consumesCounters", "nodeName", "nodeSelector", "allNodes"),
    ),
    (("DRAPartitionableDevices",), "spec", ("sharedCounters", "perDeviceNodeSelection")),
    (("DRADeviceCompatibilityGroups",), "consumption", ("compatibilityGroups",)),
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
    (("DRAAdminAccess",), "exactly", ("adminAccess",)),
    (("DRAAdminAccess",), "result", ("adminAccess",)),
    (("DRADeviceTaints",), "exactly", ("tolerations",)),
    (("DRADeviceTaints",), "alternative", ("tolerations",)),
    (("DRADeviceTaints",), "result", ("tolerations",)),
    (("DRAConsumableCapacity",), "exactly", ("capacity",)),
    (("DRAConsumableCapacity",), "alternative", ("capacity",)),
    (("DRADerivedAttributes",), "exactly", ("derivedAttributes",)),
    (("DRADerivedAttributes",), "alternative", ("derivedAttributes",)),
    (("DRAConsumableCapacity",), "constraint", ("distinctAttribute",)),
    (("DRAConsumableCapacity",), "result", ("shareID", "consumedCapacity")),
    (("DRAOptionalNodeOperations",), "result", ("skipNodeOperations",)),
    (_BINDING, "result", ("bindingConditions", "bindingFailureConditions")),
    (_BINDING, "allocation", ("allocationTimestamp",)),
    (("DRAResourceClaimDeviceStatus",), "status", ("devices",)),
)

POD_SPECS: Mapping[str, tuple[str, ...]] = {
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
        ("spec", "template", "spec"),
    ),
}
"""The path of the pod spec in each kind that has one."""

_JOB_SPECS: Mapping[str, tuple[str, ...]] = {
    "Job": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec"),
}
"""The path of the spec of a Job in each kind that has one."""

_CLASS_FIELDS: tuple[_Row, ...] = ((("DRAExtendedResource",), "", ("extendedResourceName",)),)
_PATCH_FIELDS: tuple[_Row, ...] = (
    (("DRAAdminControlledDeviceAttributes",), "", ("attributes", "capacity")),
)
_POD_FIELDS: tuple[_Row, ...] = ((("GenericWorkload",), "", ("schedulingGroup",)),)
_JOB_FIELDS: tuple[_Row, ...] = (*_POD_FIELDS, (("WorkloadWithJob",), "job", ("scheduling",)))


def drop_disabled(
    kind: Kind, tree: JsonObject, old: JsonView | None, profile: Profile
) -> tuple[str, ...]:
    """Removes the fields that the profile's gates do not allow, unless `old` already uses them.

    Returns one warning for each removed field. The API server removes them silently, so their
    author would wait in vain for their effect.
    """
    rows = _ROWS.get(kind.kind)
    if rows is None or kind.custom is not None:
        return ()
    warnings: list[str] = []
    places, path = _PLACES[kind.kind]
    for gates, place, names in _closed(kind.kind, profile.open_gates):
        # The common case, that there is nothing to remove, is checked first.
        holders = [holder for holder in places(tree, place) for name in names if name in holder]
        if not holders or (old is not None and _is_used(rows, gates, old, places)):
            continue
        gate = next(gate for gate in gates if gate not in profile.open_gates)
        for name in names:
            removed = [holder.pop(name) for holder in holders if name in holder]
            if removed:
                warnings.append(
                    f"{path(place)}.{name}: the field is dropped because the feature gate {gate} "
                    "is off"
                )
    return tuple(warnings)


def shown_by(kind: Kind, tree: JsonView, old: JsonView | None) -> frozenset[str]:
    """The gates that were on where `tree` was stored, on create or in place of `old`.

    It has fields that a server drops while one of their gates is off, and `old` has none of them.
    """
    rows = _ROWS.get(kind.kind)
    if rows is None or kind.custom is not None:
        return frozenset()
    places, _ = _PLACES[kind.kind]
    return frozenset(
        gate
        for gates in dict.fromkeys(gates for gates, _, _ in rows)
        if _is_used(rows, gates, tree, places)
        and (old is None or not _is_used(rows, gates, old, places))
        for gate in gates
    )


def _is_used(
    rows: tuple[_Row, ...], gates: tuple[str, ...], old: JsonView, places: _Places
) -> bool:
    """Whether an object uses the feature in any of its fields."""
    return any(
        name in holder
        for other, place, names in rows
        if other == gates
        for holder in places(old, place)
        for name in names
    )


@lru_cache(maxsize=256)
def _closed(kind: str, on: frozenset[str]) -> tuple[_Row, ...]:
    """The rows of a kind whose fields are dropped with these gates on."""
    return tuple(row for row in _ROWS[kind] if not on.issuperset(row[0]))


def _slice_places(tree: JsonView, place: str) -> Iterator[Any]:
    spec = meta.spec(tree)
    if place == "spec":
        yield spec
        return
    for device in json_tree.objects(spec, "devices"):
        if place == "device":
            yield device
        elif place == "consumption":
            yield from dra.consumptions(device)
        elif place == "capacity":
            yield from device.get("capacity", {}).values()
        else:
            yield from device.get("attributes", {}).values()


def _claim_places(tree: JsonView, place: str) -> Iterator[Any]:
    if place in ("status", "allocation", "result"):
        if "status" not in tree:
            return
        status = meta.status(tree)
        if place == "status":
            yield status
        elif place == "allocation":
            yield json_tree.mapping(status, "allocation")
        else:
            yield from json_tree.objects(status, "allocation", "devices", "results")
        return
    spec = meta.spec(tree)
    devices = json_tree.mapping(spec, "spec" if "spec" in spec else "devices")
    if "spec" in spec:
        devices = json_tree.mapping(devices, "devices")
    if place == "constraint":
        yield from json_tree.objects(devices, "constraints")
        return
    for request in json_tree.objects(devices, "requests"):
        if place == "main":
            yield request
        elif place == "alternative":
            yield from dra.alternatives(request)
        elif isinstance(request.get("exactly"), dict):
            yield request["exactly"]


def _inside(*path: str) -> _Places:
    """A function that returns one part of the object for every place."""
    if len(path) == 1:
        (only,) = path
        return lambda tree, _: (tree.get(only) or json_tree.EMPTY,)
    return lambda tree, _: (json_tree.mapping(tree, *path),)


def _shown(*path: str) -> Callable[[str], str]:
    """A function that returns the name of that part in warnings."""
    return lambda _: ".".join(path)


def _job_places(kind: str) -> _Places:
    """A function that returns the spec of a Job for the place `job`, else that of its pods."""
    job, pod = _inside(*_JOB_SPECS[kind]), _inside(*POD_SPECS[kind])
    return lambda tree, place: (job if place == "job" else pod)(tree, place)


def _job_path(kind: str) -> Callable[[str], str]:
    return lambda place: ".".join(_JOB_SPECS[kind] if place == "job" else POD_SPECS[kind])


_SLICE_PATHS = {
    "spec": "spec",
    "device": "spec.devices[]",
    "consumption": "spec.devices[].consumesCounters[]",
    "capacity": "spec.devices[].capacity[]",
    "attribute": "spec.devices[].attributes[]",
}
_CLAIM_PATHS = {
    "main": "spec.devices.requests[]",
    "exactly": "spec.devices.requests[].exactly",
    "alternative": "spec.devices.requests[].firstAvailable[]",
    "constraint": "spec.devices.constraints[]",
    "status": "status",
    "allocation": "status.allocation",
    "result": "status.allocation.devices.results[]",
}

_ROWS: Mapping[str, tuple[_Row, ...]] = {
    "ResourceSlice": _SLICE_FIELDS,
    "ResourceClaim": _CLAIM_FIELDS,
    "ResourceClaimTemplate": _CLAIM_FIELDS,
    "DeviceClass": _CLASS_FIELDS,
    "ResourceSlicePatch": _PATCH_FIELDS,
    **dict.fromkeys(POD_SPECS, _POD_FIELDS),
    **dict.fromkeys(_JOB_SPECS, _JOB_FIELDS),
}
_PLACES: Mapping[str, tuple[_Places, Callable[[str], str]]] = {
    "ResourceSlice": (_slice_places, _SLICE_PATHS.__getitem__),
    "ResourceClaim": (_claim_places, _CLAIM_PATHS.__getitem__),
    "ResourceClaimTemplate": (_claim_places, lambda place: f"spec.{_CLAIM_PATHS[place]}"),
    "DeviceClass": (_inside("spec"), _shown("spec")),
    "ResourceSlicePatch": (_inside("spec", "devices"), _shown("spec", "devices")),
    **{kind: (_inside(*path), _shown(*path)) for kind, path in POD_SPECS.items()},
    **{kind: (_job_places(kind), _job_path(kind)) for kind in _JOB_SPECS},
}
"""The parts that can contain gated fields, and their names in warnings, by kind."""
