"""Builders of API objects with defaults: a test shows only what matters to it."""

from __future__ import annotations

from app.domain.allocation import (
    AllocatedState,
    Allocation,
    Allocator,
    AllocatorVariant,
    Features,
    Quirks,
)
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.devices.inventory import Inventory

DRIVER = "gpu.example.com"
COMPILER = CelCompiler(detailed_errors=True)
GATES = dict.fromkeys(
    (
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaints",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
    ),
    True,
)
ALL_ON = Features.of_gates(GATES)


def device(name: str, **fields: object) -> dict:
    """A device; `numa=0` and the like become attributes, API fields stay."""
    known = {
        "attributes", "capacity", "consumesCounters", "taints", "nodeName", "nodeSelector",
        "allNodes", "allowMultipleAllocations", "bindingConditions", "bindingFailureConditions",
        "bindsToNode",
    }  # fmt: skip
    made: dict = {"name": name}
    attributes = {}
    for field, value in fields.items():
        if field in known:
            made[field] = value
        else:
            kind = {bool: "bool", int: "int", str: "string", list: "strings"}[type(value)]
            attributes[field] = {kind: value}
    if attributes:
        made["attributes"] = {**made.get("attributes", {}), **attributes}
    return made


def uses(counter_set: str = "set", **amounts: int) -> list:
    """The counters of one counter set that a device consumes."""
    counters = {name: {"value": str(value)} for name, value in amounts.items()}
    return [{"counterSet": counter_set, "counters": counters}]


def counter_set(name: str = "set", **amounts: int) -> dict:
    """A counter set."""
    return {"name": name, "counters": {n: {"value": str(v)} for n, v in amounts.items()}}


def taint(key: str = "k", value: str = "v", effect: str = "NoSchedule") -> dict:
    """A taint."""
    return {"key": key, "value": value, "effect": effect}


def resource_slice(
    name: str = "slice",
    *devices: dict,
    driver: str = DRIVER,
    pool: str = "pool",
    generation: int = 1,
    count: int = 1,
    node: str | None = "node",
    **spec: object,
) -> dict:
    """A ResourceSlice, local to `node` unless that is None."""
    made: dict = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        **spec,
    }
    if node is not None:
        made["nodeName"] = node
    if devices:
        made["devices"] = list(devices)
    return {"metadata": {"name": name}, "spec": made}


def device_class(name: str = "gpu", *expressions: str, config: list | None = None) -> dict:
    """A DeviceClass."""
    spec: dict = {"selectors": [{"cel": {"expression": found}} for found in expressions]}
    if config:
        spec["config"] = config
    return {"metadata": {"name": name}, "spec": spec}


def request(name: str = "r0", count: int = 1, *expressions: str, **fields: object) -> dict:
    """An exact request; count 0 means mode All."""
    return {"name": name, "exactly": wish(count, *expressions, **fields)}


def wish(count: int = 1, *expressions: str, **fields: object) -> dict:
    """The fields of an exact request or an alternative."""
    made: dict = {"deviceClassName": "gpu", **fields}
    if count:
        made.setdefault("allocationMode", "ExactCount")
        made["count"] = count
    else:
        made.setdefault("allocationMode", "All")
    if expressions:
        made["selectors"] = [{"cel": {"expression": found}} for found in expressions]
    return made


def first_available(name: str, **alternatives: dict) -> dict:
    """A prioritized list."""
    return {
        "name": name,
        "firstAvailable": [{"name": inner, **found} for inner, found in alternatives.items()],
    }


def claim(*requests: dict, name: str = "claim", **devices: object) -> dict:
    """A ResourceClaim in namespace `ns`."""
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }


def match(attribute: str = "numa", *requests: str) -> dict:
    """A matchAttribute constraint."""
    return {"matchAttribute": f"{DRIVER}/{attribute}", "requests": list(requests)}


def distinct(attribute: str = "numa", *requests: str) -> dict:
    """A distinctAttribute constraint."""
    return {"distinctAttribute": f"{DRIVER}/{attribute}", "requests": list(requests)}


def result(name: str, *, pool: str = "pool", driver: str = DRIVER, **fields: object) -> dict:
    """A device result of an allocation."""
    return {"request": "r0", "driver": driver, "pool": pool, "device": name, **fields}


def holding(*results: dict, name: str = "held") -> dict:
    """An allocated claim."""
    return {
        "metadata": {"name": name, "namespace": "other", "uid": f"uid-{name}"},
        "status": {"allocation": {"devices": {"results": list(results)}}},
    }


def node(name: str = "node", **labels: str) -> dict:
    """A Node."""
    return {"metadata": {"name": name, "labels": labels}}


def allocator(
    *slices: dict,
    held: list | None = None,
    classes: list | None = None,
    features: Features = ALL_ON,
    quirks: Quirks | None = None,
    variant: AllocatorVariant = AllocatorVariant.EXPERIMENTAL,
    prune: bool = True,
    compiler: CelCompiler = COMPILER,
    **rest: object,
) -> Allocator:
    """An allocator over the slices, with every gate on except list attributes."""
    return Allocator(
        Inventory.of_slices(list(slices)),
        {found["metadata"]["name"]: found for found in classes or [device_class()]},
        AllocatedState.of_claims(held or [], consumable_capacity=features.consumable_capacity),
        features,
        compiler=compiler,
        quirks=quirks or Quirks(),
        variant=variant,
        prune=prune,
        **rest,
    )


def taken(answer: object) -> list | None:
    """The map `request: device` per claim; None when nothing was allocated."""
    if not isinstance(answer, Allocation):
        return None
    return [
        [f"{found['request']}: {found['device']}" for found in one["devices"].get("results", [])]
        for one in answer.allocation_results(lambda: "share")
    ]
