"""Drawn slices, nodes, classes, claims and taint rules with many faults at once.

Names, amounts and types come from small sets, so that they agree by chance as often as not. A
selector is drawn as words; its CEL text goes into the object, and `WORDS` keeps what it means.
"""

import random
from typing import Any

Tree = dict[str, Any]

DRIVERS = ("gpu.example.com", "nic.example.com")
NODES = ("n0", "n1", "n2")
NAMES = ("d0", "d1", "d2", "d3")
SETS = ("memory", "compute")
COUNTERS = ("size", "slots")
ATTRIBUTES = ("kind", "index", "numa", "uuid", "parentUUID", "resource.kubernetes.io/numaNode")
CAPACITIES = ("memory", "lanes")
KEYS = ("example.com/hot", "example.com/old")
EFFECTS = ("NoSchedule", "NoExecute")

Words = tuple[str, ...]
WORDS: dict[str, Words] = {}
"""What an expression means, by its text."""


def world(chance: random.Random) -> list[Tree]:
    """Objects that the API accepts."""
    trees: list[Tree] = []
    if chance.random() < 0.6:
        trees += [_node(name, chance) for name in chance.sample(NODES, chance.randint(1, 3))]
    for driver in DRIVERS:
        for pool in range(chance.choice((0, 1, 1, 2))):
            trees += _pool(chance, driver, f"{driver[:3]}-{pool}")
    classes = [f"class-{number}" for number in range(chance.randint(0, 3))]
    trees += [_class(name, chance) for name in classes]
    for number in range(chance.randint(0, 3)):
        trees.append(_claim(f"claim-{number}", chance, [*classes, "absent"]))
    for number in range(chance.choice((0, 0, 1, 2))):
        trees.append(_taint_rule(f"rule-{number}", chance))
    if trees and chance.random() < 0.1:
        trees.append(chance.choice(trees))
    chance.shuffle(trees)
    return trees


def _node(name: str, chance: random.Random) -> Tree:
    labels = {"kubernetes.io/hostname": name, "zone": chance.choice("ab")}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


def _pool(chance: random.Random, driver: str, pool: str) -> list[Tree]:
    count = chance.choice((1, 1, 2, 3))
    where = _where(chance)
    trees = []
    for number in range(count):
        announced = count + chance.choice((0, 0, 0, 0, 0, 1, -1))
        spec: Tree = {
            "driver": driver,
            "pool": {
                "name": pool,
                "generation": chance.choice((3, 3, 3, 3, 3, 2)),
                "resourceSliceCount": max(1, announced),
            },
            **(where if chance.random() < 0.85 else _where(chance)),
        }
        if chance.random() < 0.35:
            spec["sharedCounters"] = _sets(chance)
        else:
            spec["devices"] = _devices(chance, driver, per_device="perDeviceNodeSelection" in spec)
        name = f"{pool}-{number}" + "x" * chance.choice((0, 0, 0, 0, 0, 0, 220, 222, 223))
        trees.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": name},
                "spec": spec,
            }
        )
    return trees


def _where(chance: random.Random) -> Tree:
    match chance.randrange(5):
        case 0 | 1:
            return {"nodeName": chance.choice(NODES)}
        case 2:
            return {"allNodes": True}
        case 3:
            return {"perDeviceNodeSelection": True}
    return {"nodeSelector": _node_selector(chance)}


def _node_selector(chance: random.Random) -> Tree:
    requirement = {"key": "zone", "operator": "In", "values": [chance.choice("abc")]}
    return {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}


def _sets(chance: random.Random) -> list[Tree]:
    return [
        {
            "name": name,
            "counters": {
                counter: {"value": str(chance.randint(1, 6))}
                for counter in chance.sample(COUNTERS, chance.randint(1, 2))
            },
        }
        for name in chance.sample(SETS, chance.randint(1, 2))
    ]


def _devices(chance: random.Random, driver: str, *, per_device: bool) -> list[Tree]:
    devices = []
    for name in chance.sample(NAMES, chance.randint(1, 3)):
        name += "-" + "y" * chance.choice((1, 1, 1, 1, 1, 1, 53, 54, 60))
        device: Tree = {"name": name, "attributes": _attributes(chance, driver)}
        if per_device:
            device |= chance.choice(
                (
                    {"nodeName": chance.choice(NODES)},
                    {"allNodes": True},
                    {"nodeSelector": _node_selector(chance)},
                )
            )
        if chance.random() < 0.5:
            names = [*CAPACITIES, f"{driver}/memory"]
            amounts: Tree = {
                each: {"value": str(chance.choice((-1, 0, 2, 4, 8, 8)))}
                for each in chance.sample(names, chance.randint(1, 2))
            }
            device["capacity"] = _alike(amounts, driver)
        if chance.random() < 0.4:
            device["consumesCounters"] = [
                {
                    "counterSet": each,
                    "counters": {
                        counter: {"value": str(chance.randint(1, 4))}
                        for counter in chance.sample(COUNTERS, chance.randint(1, 2))
                    },
                }
                for each in chance.sample(SETS, chance.randint(1, 2))
            ]
        if chance.random() < 0.15:
            device["allowMultipleAllocations"] = True
        if chance.random() < 0.3:
            device["taints"] = [
                {"key": f"{chance.choice(KEYS)}{suffix}", "effect": chance.choice(EFFECTS)}
                for suffix in ("", *range(chance.choice((0, 0, 0, 3, 4, 13, 14, 15))))
            ]
        devices.append(device)
    return devices


def _attributes(chance: random.Random, driver: str) -> Tree:
    names = [*ATTRIBUTES, f"{driver}/kind", "other.example.com/kind"]
    attributes: Tree = {}
    for name in chance.sample(names, chance.randint(1, 4)):
        identifier = name.rpartition("/")[2]
        if identifier in ("index", "numa", "numaNode"):
            attributes[name] = {"int": chance.randint(0, 2)}
        elif identifier in ("uuid", "parentUUID"):
            attributes[name] = {"string": f"GPU-{chance.randint(0, 3)}"}
        else:
            attributes[name] = {"string": chance.choice(("big", "small"))}
        if chance.random() < 0.04:
            attributes[name] = chance.choice(({"bool": True}, {"version": "1.0.0"}))
        if chance.random() < 0.04:
            attributes[name] = {"string": "z" * chance.choice((57, 58, 64))}
    return _alike(attributes, driver)


def _alike(values: Tree, driver: str) -> Tree:
    """Equal values under both names of one thing: which of them a selector reads is not said."""
    own = {name.removeprefix(f"{driver}/"): value for name, value in values.items()}
    return {name: own[name.removeprefix(f"{driver}/")] for name in values}


def selector(chance: random.Random) -> Tree:
    """A selector whose meaning is kept."""
    driver = chance.choice(DRIVERS)
    match chance.randrange(8):
        case 0 | 1 | 2:
            words: Words = ("driver", driver)
            text = f'device.driver == "{driver}"'
        case 3:
            name = chance.choice(("kind", "index"))
            words, text = ("has", driver, name), f'"{name}" in device.attributes["{driver}"]'
        case 4:
            words = ("equal", driver, "kind", chance.choice(("big", "small", "none")))
            text = f'device.attributes["{driver}"].kind == "{words[3]}"'
        case 5:
            words = ("guarded", driver, "kind", chance.choice(("big", "none")))
            text = (
                f'device.driver == "{driver}" && "kind" in device.attributes["{driver}"] && '
                f'device.attributes["{driver}"].kind == "{words[3]}"'
            )
        case 6:
            words = ("more", driver, "index", "0")
            text = f'device.attributes["{driver}"].index > 0'
        case _:
            words = ("holds", driver, "memory", chance.choice(("1", "4", "9")))
            text = (
                f'"memory" in device.capacity["{driver}"] && '
                f'device.capacity["{driver}"].memory.compareTo(quantity("{words[3]}")) >= 0'
            )
    WORDS[text] = words
    return {"cel": {"expression": text}}


def _config(chance: random.Random) -> Tree:
    driver = chance.choice((*DRIVERS, "absent.example.com"))
    return {"opaque": {"driver": driver, "parameters": {"a": 1}}}


def _class(name: str, chance: random.Random) -> Tree:
    spec: Tree = {"selectors": [selector(chance) for _ in range(chance.choice((0, 1, 1, 2)))]}
    if chance.random() < 0.3:
        spec["config"] = [_config(chance)]
    metadata = {"name": name}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": metadata,
        "spec": spec,
    }


def _request(chance: random.Random, classes: list[str]) -> Tree:
    request: Tree = {"deviceClassName": chance.choice((*classes, *classes[:-1], *classes[:-1]))}
    if chance.random() < 0.2:
        request["allocationMode"] = "All"
    else:
        request |= {"allocationMode": "ExactCount", "count": chance.choice((1, 1, 1, 2, 3, 17, 33))}
    if chance.random() < 0.4:
        request["selectors"] = [selector(chance) for _ in range(chance.randint(1, 2))]
    if chance.random() < 0.3:
        request["tolerations"] = [_toleration(chance)]
    if chance.random() < 0.3:
        name = chance.choice((*CAPACITIES, "absent"))
        request["capacity"] = {"requests": {name: str(chance.choice((1, 4, 8, 9)))}}
    return request


def _toleration(chance: random.Random) -> Tree:
    toleration: Tree = {"operator": "Exists"}
    if chance.random() < 0.8:
        toleration["key"] = chance.choice(KEYS)
    if chance.random() < 0.7:
        toleration["effect"] = chance.choice(EFFECTS)
    return toleration


def _claim(name: str, chance: random.Random, classes: list[str]) -> Tree:
    requests: list[Tree] = []
    for number in range(chance.choice((1, 1, 2, 29) if chance.random() < 0.3 else (1, 2))):
        if chance.random() < 0.25:
            listed = [
                {"name": f"s{each}", **_request(chance, classes)}
                for each in range(chance.randint(1, 3))
            ]
            requests.append({"name": f"r{number}", "firstAvailable": listed})
        else:
            requests.append({"name": f"r{number}", "exactly": _request(chance, classes)})
    devices: Tree = {"requests": requests}
    if chance.random() < 0.5:
        word = chance.choice(("matchAttribute", "distinctAttribute"))
        attribute = f"{chance.choice(DRIVERS)}/{chance.choice(('kind', 'index', 'absent'))}"
        constraint: Tree = {word: attribute}
        if chance.random() < 0.5:
            constraint["requests"] = [chance.choice(requests)["name"]]
        devices["constraints"] = [constraint]
    if chance.random() < 0.2:
        devices["config"] = [_config(chance)]
    if chance.random() < 0.5:
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"spec": {"devices": devices}},
        }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": devices},
    }


def _taint_rule(name: str, chance: random.Random) -> Tree:
    spec: Tree = {
        "taint": {"key": chance.choice(KEYS), "effect": chance.choice((*EFFECTS, "None"))}
    }
    if chance.random() < 0.85:
        parts = {
            "driver": chance.choice(DRIVERS),
            "pool": chance.choice(("gpu-0", "nic-1")),
            "device": chance.choice(NAMES) + "-y",
        }
        names = chance.sample([*parts], chance.choice((0, 1, 1, 2)))
        spec["deviceSelector"] = {each: parts[each] for each in names}
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": spec,
    }
