"""The hardware of the simulated fleets: the slices that drivers publish per kind of node.

`whole` devices with an interconnect beside them, `cut` devices that share counters, `shared`
devices with consumable capacity, `fabric` devices with binding conditions; and one pool that all
nodes reach.
"""

from app.domain.values.json_tree import JsonObject

KINDS = ("whole", "cut", "shared", "fabric")
GPU, NIC, CUT = "gpu.example.com", "nic.example.com", "cut.example.com"
SHARE, FABRIC, NET = "share.example.com", "fabric.example.com", "net.example.com"
DRIVERS_OF = {"whole": (GPU, NIC), "cut": (CUT,), "shared": (SHARE,), "fabric": (FABRIC,)}
ROOT = "resource.kubernetes.io/pcieRoot"
EXTENDED = "example.com/gpu"
UNITS = 2
"""Devices that are cut, on each node of that kind."""


def classes() -> dict[str, JsonObject]:
    """The specs of all device classes by name."""
    found: dict[str, JsonObject] = {
        name: _class(f"device.driver == '{driver}'")
        for name, driver in (("gpu", GPU), ("nic", NIC), ("share", SHARE), ("net", NET))
    }
    found["gpu"]["extendedResourceName"] = EXTENDED
    found["fabric"] = _class(f"device.driver == '{FABRIC}'")
    for part in ("full", "half", "quarter"):
        expression = f"device.driver == '{CUT}' && device.attributes['{CUT}'].part == '{part}'"
        found[part] = _class(expression)
    return found


def templates() -> dict[str, JsonObject]:
    """The specs of claims that pods ask for, by the name of their template."""
    patient = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    # A toleration without an effect is none for eviction (C2): such a pod would be placed and
    # evicted for ever, in no time at all.
    stoic = [{"operator": "Exists", "effect": effect} for effect in ("NoExecute", "NoSchedule")]
    new = f"device.attributes['{GPU}'].model == 'new'"
    return {
        "one": _claim(_exactly("gpu")),
        "two": _claim(_exactly("gpu", count=2)),
        "patient": _claim(_exactly("gpu", tolerations=[patient])),
        "stoic": _claim(_exactly("gpu", tolerations=stoic)),
        "new": _claim(_exactly("gpu", selectors=[{"cel": {"expression": new}}])),
        "every": _claim(_exactly("gpu", count=0, allocationMode="All")),
        "aligned": _claim(
            _exactly("gpu"),
            {"name": "r1", "exactly": {"deviceClassName": "nic", "count": 1}},
            constraints=[{"requests": ["r0", "r1"], "matchAttribute": ROOT}],
        ),
        "full": _claim(_exactly("full")),
        "half": _claim(_exactly("half")),
        "quarter": _claim(_exactly("quarter")),
        "list": _claim(_first(("full", 1), ("gpu", 2), ("half", 1), ("gpu", 1))),
        "room": _claim(_exactly("share", capacity={"requests": {"memory": "6Gi"}})),
        "rest": _claim(_exactly("share")),
        "net": _claim(_exactly("net")),
        "fabric": _claim(_exactly("fabric")),
        "watch": _claim(_exactly("gpu", count=0, allocationMode="All", adminAccess=True)),
    }


def slices_of(kind: str, node: str) -> list[tuple[str, JsonObject]]:
    """Driver and spec (without the pool) of every slice that a node publishes."""
    place: JsonObject = {"nodeName": node}
    if kind == "whole":
        return [
            (GPU, {**place, "devices": [_whole(number) for number in range(4)]}),
            (NIC, {**place, "devices": [_nic(number) for number in range(2)]}),
        ]
    if kind == "cut":
        sets = [
            {"name": f"unit-{unit}", "counters": {"memory": {"value": "40Gi"}}}
            for unit in range(UNITS)
        ]
        return [
            (CUT, {**place, "sharedCounters": sets}),
            (CUT, {**place, "devices": [part for unit in range(UNITS) for part in _parts(unit)]}),
        ]
    if kind == "shared":
        return [(SHARE, {**place, "devices": [_shared(number) for number in range(2)]})]
    return [(FABRIC, {**place, "devices": [_fabric(number) for number in range(2)]})]


def network() -> JsonObject:
    """The slice that belongs to no node."""
    return {"allNodes": True, "devices": [{"name": f"line-{number}"} for number in range(3)]}


def _class(expression: str) -> JsonObject:
    return {"selectors": [{"cel": {"expression": expression}}]}


def _claim(*requests: JsonObject, **more: object) -> JsonObject:
    return {"devices": {"requests": list(requests), **more}}


def _exactly(name: str, *, count: int = 1, **more: object) -> JsonObject:
    asked: JsonObject = {"deviceClassName": name, **more}
    if count:
        asked["count"] = count
    return {"name": "r0", "exactly": asked}


def _first(*asked: tuple[str, int]) -> JsonObject:
    listed = [
        {"name": f"a{place}", "deviceClassName": name, "count": count}
        for place, (name, count) in enumerate(asked)
    ]
    return {"name": "r0", "firstAvailable": listed}


def _whole(number: int) -> JsonObject:
    attributes = {
        "model": {"string": "new" if number % 2 else "old"},
        ROOT: {"string": f"pci000{number // 2}:00"},
    }
    return {"name": f"gpu-{number}", "attributes": attributes}


def _nic(number: int) -> JsonObject:
    return {"name": f"nic-{number}", "attributes": {ROOT: {"string": f"pci000{number}:00"}}}


def _parts(unit: int) -> list[JsonObject]:
    sizes = [("full", "40Gi", 1), ("half", "20Gi", 2), ("quarter", "10Gi", 4)]
    return [
        {
            "name": f"unit-{unit}-{part}-{number}",
            "attributes": {"part": {"string": part}},
            "consumesCounters": [
                {"counterSet": f"unit-{unit}", "counters": {"memory": {"value": size}}}
            ],
        }
        for part, size, count in sizes
        for number in range(count)
    ]


def _shared(number: int) -> JsonObject:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    return {
        "name": f"share-{number}",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "16Gi", "requestPolicy": policy}},
    }


def _fabric(number: int) -> JsonObject:
    return {
        "name": f"fabric-{number}",
        "bindsToNode": True,
        "bindingConditions": ["attached"],
        "bindingFailureConditions": ["broken"],
    }
