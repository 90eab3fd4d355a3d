"""Seeded worlds combined from parts of two recorded scenarios of the reference.

The cluster of one scenario is combined with the claims of another, and single values are changed:
gates, counts, modes, generations, attributes, policies, taints, allocations. So these worlds use
the features of the recorded scenarios, and cover combinations that no single scenario has.
"""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from random import Random

RECORDED = Path(__file__).parents[1] / "conformance" / "data" / "allocator-scenarios.jsonl.gz"
GATES = (
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRAListTypeAttributes",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
)
AMOUNTS = ("1", "2", "3", "1Gi", "2Gi", "1.5Gi", "0.5Gi", "1500M", "0", "2.5", "100Ti", "4Gi")
POLICIES = (
    {"default": "1Gi"},
    {"default": "1Gi", "validRange": {"min": "1Gi"}},
    {"default": "1Gi", "validRange": {"min": "1Gi", "max": "4Gi", "step": "512Mi"}},
    {"default": "1.5Gi", "validRange": {"min": "0.5Gi", "step": "0.5Gi", "max": "1.5Gi"}},
    {"default": "2", "validRange": {"min": "2", "max": "8", "step": "3"}},
    {"default": "1Gi", "validValues": ["1Gi", "1.5Gi", "4Gi"]},
    {"default": "1Gi", "validValues": []},
    {"validValues": ["1", "2"]},
    {"validRange": {"max": "4Gi"}},
    {},
)
ATTRIBUTES = (
    {"int": 0},
    {"int": 1},
    {"bool": True},
    {"string": "h100"},
    {"string": "1.2.3"},
    {"version": "1.2.3"},
    {"strings": ["l0", "l1"]},
    {"strings": ["l1"]},
    {"ints": [0, 1]},
    {"versions": ["1.0.0"]},
    {"bools": [True]},
)
NAMES = ("numa", "model", "links", "slot", "gpu.example.com/slot", "gpu.example.com/numa")
EFFECTS = ("NoSchedule", "NoExecute", "None", "FutureEffect")
KEYS = ("example.com/maint", "dra.example.com/xid")


@lru_cache
def recorded() -> tuple[dict, ...]:
    """The recorded scenarios of the bundled subset."""
    with gzip.open(RECORDED, "rt") as stream:
        return tuple(json.loads(line) for line in stream)


def world(seed: int) -> dict:
    """The world of a seed; the same seed gives the same world as long as the records stay."""
    rng = Random(f"recombined-{seed}")
    first = rng.choice(recorded())
    alike = [found for found in recorded() if found["theme"] == first["theme"]]
    second = rng.choice(alike if rng.random() < 0.5 else recorded())
    maker = _Maker(rng, deepcopy(first["input"]), deepcopy(second["input"]))
    return {
        "name": f"recombined-{seed}",
        "theme": f"{first['theme']}+{second['theme']}",
        "input": maker.make(),
    }


def claims_of(given: dict) -> list[dict]:
    """The claims of a scenario, those of its pods one after the other."""
    found = given.get("claims") or [
        claim for pod in given.get("pods", ()) for claim in pod["claims"]
    ]
    return list(found)


def needed(claims: list[dict]) -> set[str]:
    """The gates that must be on, because otherwise the claims end the attempt."""
    found = set()
    for claim in claims:
        for request in claim["spec"]["devices"]["requests"]:
            if "firstAvailable" in request:
                found.add("DRAPrioritizedList")
            for wish in request.get("firstAvailable") or [request["exactly"]]:
                if "capacity" in wish:
                    found.add("DRAConsumableCapacity")
                if "adminAccess" in wish:
                    found.add("DRAAdminAccess")
    return found


class _Maker:
    def __init__(self, rng: Random, first: dict, second: dict) -> None:
        self.rng, self.first, self.second = rng, first, second

    def likely(self, chance: float) -> bool:
        return self.rng.random() < chance

    def make(self) -> dict:
        rng, first, second = self.rng, self.first, self.second
        given = {
            "features": self.gates(),
            "nodes": first["nodes"],
            "classes": first["classes"],
            "slices": first["slices"],
        }
        if self.likely(0.9):
            known = {found["metadata"]["name"] for found in first["classes"]}
            given["classes"] = first["classes"] + [
                found for found in second["classes"] if found["metadata"]["name"] not in known
            ]
        if self.likely(0.25):
            given["slices"] = first["slices"] + second["slices"]
            rng.shuffle(given["slices"])
        for found in given["slices"]:
            self.change_slice(found)
        claims = claims_of(first)[:4] if self.likely(0.7) else claims_of(second)[:4]
        others = claims_of(second)
        for number, claim in enumerate(claims):
            self.change_claim(claim, others, number)
        if self.likely(0.9):
            given["features"] |= dict.fromkeys(needed(claims), True)
        held = [*first.get("allocatedClaims", ()), *self.held(given["slices"])]
        if held:
            given["allocatedClaims"] = held
        rules = first.get("deviceTaintRules") or second.get("deviceTaintRules") or []
        if self.likely(0.05):
            selector = {"deviceSelector": {"device": "dev-0"}} if self.likely(0.7) else {}
            rules = [
                *rules,
                {"metadata": {"name": "a"}, "spec": {**selector, "taint": self.taint()}},
            ]
        if rules:
            given["deviceTaintRules"] = rules
        return given | self.asked(claims)

    def asked(self, claims: list[dict]) -> dict:
        if not self.likely(0.25):
            return {"claims": claims}
        pods = []
        for number in range(self.rng.randint(2, 5)):
            mine = deepcopy(self.rng.sample(claims, min(len(claims), self.rng.choice((1, 1, 2)))))
            for claim in mine:
                claim["metadata"]["name"] = f"p{number}-{claim['metadata']['name']}"
                claim["metadata"]["uid"] = f"uid-{claim['metadata']['name']}"
            pods.append({"name": f"pod-{number}", "claims": mine})
        return {"pods": pods}

    def gates(self) -> dict:
        gates = {}
        chance = self.rng.choice((0.0, 0.05, 0.3))
        for gate in GATES:
            source = self.first if self.likely(0.5) else self.second
            value = gate in source["features"]
            if value != self.likely(chance):
                gates[gate] = True
        return gates

    def taint(self) -> dict:
        rng = self.rng
        return {
            "key": rng.choice(KEYS),
            "value": rng.choice(("v1", "v2")),
            "effect": rng.choice(EFFECTS),
        }

    def change_slice(self, found: dict) -> None:
        rng, spec = self.rng, found["spec"]
        if self.likely(0.03):
            spec["pool"]["resourceSliceCount"] += rng.choice((-1, 1))
        if self.likely(0.03):
            spec["pool"]["generation"] += rng.choice((-1, 1))
        if self.likely(0.02):
            for field in ("nodeName", "allNodes", "nodeSelector"):
                spec.pop(field, None)
            spec.update(rng.choice((
                {"allNodes": True},
                {"nodeName": "node-0"},
                {"perDeviceNodeSelection": True},
                {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "zone", "operator": rng.choice(("In", "NotIn")), "values": ["z0"]}]},
                    *([{"matchFields": [{"key": "metadata.name", "operator": "In",
                                         "values": ["node-1"]}]}] * rng.choice((0, 0, 1)))]}},
            )))  # fmt: skip
        for counters in spec.get("sharedCounters", ()):
            for amount in counters["counters"].values():
                if self.likely(0.05):
                    amount["value"] = rng.choice(("0", "1", "2", "40Gi"))
        for device in spec.get("devices", ()):
            if self.likely(0.15):
                self.change_device(device)
        if spec.get("devices") and self.likely(0.02):
            spec["devices"].append(deepcopy(rng.choice(spec["devices"])))

    def change_device(self, device: dict) -> None:
        rng = self.rng
        match rng.randrange(8):
            case 0:
                device.setdefault("taints", []).append(self.taint())
            case 1:
                attributes = device.setdefault("attributes", {})
                attributes[rng.choice(NAMES)] = dict(rng.choice(ATTRIBUTES))
            case 2:
                attributes = device.get("attributes") or {}
                if attributes:
                    del attributes[rng.choice(sorted(attributes))]
            case 3:
                device["allowMultipleAllocations"] = self.likely(0.8)
            case 4:
                device["allowMultipleAllocations"] = True
                for capacity in (device.get("capacity") or {}).values():
                    capacity["requestPolicy"] = deepcopy(rng.choice(POLICIES))
            case 5:
                device["allowMultipleAllocations"] = True
                device.pop("capacity", None)
            case 6:
                device["bindingConditions"] = ["example.com/ready"]
                device["bindsToNode"] = self.likely(0.5)
            case 7:
                device.update(rng.choice(({"nodeName": "node-0"}, {"allNodes": True})))

    def change_claim(self, claim: dict, others: list[dict], number: int) -> None:
        rng, devices = self.rng, claim["spec"]["devices"]
        claim["metadata"] = {**claim["metadata"], "name": f"claim-{number}", "uid": f"u{number}"}
        for index, request in enumerate(devices["requests"]):
            if self.likely(0.1) and others:
                taken = rng.choice(rng.choice(others)["spec"]["devices"]["requests"])
                devices["requests"][index] = {**deepcopy(taken), "name": request["name"]}
        if self.likely(0.05):
            extra = deepcopy(rng.choice(devices["requests"]))
            devices["requests"].append({**extra, "name": f"r{len(devices['requests'])}"})
        for request in devices["requests"]:
            for wish in request.get("firstAvailable") or [request["exactly"]]:
                if self.likely(0.25):
                    self.change_wish(wish, inner="firstAvailable" in request)
        if self.likely(0.15):
            kind = rng.choice(("matchAttribute", "distinctAttribute"))
            name = rng.choice(("numa", "model", "links", "slot", "parent"))
            names = [found["name"] for found in devices["requests"]]
            devices.setdefault("constraints", []).append(
                {
                    kind: f"gpu.example.com/{name}",
                    "requests": rng.choice(([], names[:1], names[-2:])),
                }
            )

    def change_wish(self, wish: dict, *, inner: bool) -> None:
        rng = self.rng
        match rng.randrange(8):
            case 0:
                wish["allocationMode"] = "All"
                wish.pop("count", None)
            case 1 | 2:
                wish["allocationMode"] = "ExactCount"
                wish["count"] = rng.choice((1, 1, 2, 2, 3, 4, 5, 8, 17, 33))
            case 3 if not inner:
                wish["adminAccess"] = self.likely(0.8)
            case 4:
                wish["tolerations"] = [rng.choice((
                    {"operator": "Exists"},
                    {"operator": "Exists", "key": KEYS[0]},
                    {"operator": "Equal", "key": KEYS[0], "value": "v1"},
                    {"operator": "Equal", "value": "v1", "effect": "NoSchedule"},
                    {"key": KEYS[1], "value": "v2", "effect": "NoExecute"},
                    {"operator": "Unknown"},
                ))]  # fmt: skip
            case 5 | 6:
                name = rng.choice(("memory", "memory", "memory", "cores"))
                wish["capacity"] = {"requests": {name: rng.choice(AMOUNTS)}}
            case 7:
                wish.pop("selectors", None)

    def held(self, slices: list[dict]):
        if not self.likely(0.3):
            return
        for found in slices:
            spec = found["spec"]
            for device in spec.get("devices", ()):
                if not self.likely(0.06):
                    continue
                name = f"{spec['driver']}-{spec['pool']['name']}-{device['name']}"
                result = {
                    "request": "r0",
                    "driver": spec["driver"],
                    "pool": spec["pool"]["name"],
                    "device": device["name"],
                }
                if self.likely(0.1):
                    result["adminAccess"] = True
                if device.get("allowMultipleAllocations") and self.likely(0.8):
                    result["shareID"] = f"share-{name}"
                    if self.likely(0.7):
                        amounts = {
                            key: self.rng.choice(AMOUNTS) for key in device.get("capacity", {})
                        }
                        result["consumedCapacity"] = amounts
                yield {
                    "metadata": {"name": name, "namespace": "held", "uid": name},
                    "status": {"allocation": {"devices": {"results": [result]}}},
                }
