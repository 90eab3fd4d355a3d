"""Seeded tiny worlds in which searches fail late, so that the traces of failed attempts matter.

A few devices, a few requests that nearly fit, and one to four ingredients that leave traces or tie
nodes and pods together: counters with taints, shares with and without capacity, list attributes,
distinct values, alternatives, mode All, admin access, pools of one name, nodes that are twins, pods
that ask the same, amounts that grow.
"""

from __future__ import annotations

from copy import deepcopy
from random import Random

GPU, NIC = "gpu.example.com", "nic.example.com"
GATES = (
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRAListTypeAttributes",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
)
INGREDIENTS = (
    *("counters", "counters", "shares", "shares", "lists", "distinct", "alternatives"),
    *("alternatives", "everything", "admin", "clash", "twins", "pods", "growing", "taints"),
)
RECIPES = (
    ("counters", "shares", "alternatives"),
    ("counters", "shares", "alternatives", "everything"),
    ("counters", "taints", "alternatives"),
    ("lists", "alternatives"),
    ("distinct", "alternatives"),
    ("shares", "everything", "alternatives"),
    ("growing", "alternatives"),
    ("growing", "twins"),
    ("admin", "alternatives", "everything"),
    ("clash", "twins", "alternatives"),
    ("clash", "pods"),
    ("clash", "pods", "twins"),
    ("counters", "twins"),
    ("counters", "shares", "twins", "pods"),
)
"""Ingredients that have to do with each other."""

POLICIES = (
    {"default": "1Gi"},
    {"default": "1Gi"},
    {"default": "1Gi", "validRange": {"min": "1Gi"}},
    {"default": "0.5Gi", "validRange": {"min": "0.5Gi", "max": "2.5Gi"}},
    {"default": "1Gi", "validValues": []},
)


def world(seed: int) -> dict:
    """The world of a seed; the same seed gives the same world for ever."""
    rng = Random(f"trap-{seed}")
    if rng.random() < 0.75:
        chosen = {*rng.choice(RECIPES), *rng.choices(INGREDIENTS, k=rng.choice((0, 0, 1)))}
    else:
        chosen = {rng.choice(INGREDIENTS) for _ in range(rng.choice((1, 2, 3, 3, 4)))}
    return {"name": "+".join(sorted(chosen)) + f"-{seed}", "input": _Maker(rng, chosen).make()}


class _Maker:
    def __init__(self, rng: Random, chosen: set[str]) -> None:
        self.rng, self.chosen = rng, chosen
        self.kinds = rng.choice(((0,), (0, 0, 0, 1), (0, 1)))
        self.distincts = rng.choice(((0, 1), (0, 1, 2)))
        self.uniform = rng.random() < 0.5
        self.patterns: dict[int, dict] = {}
        self.whole = rng.random() < 0.5

    def has(self, *names: str) -> bool:
        return any(name in self.chosen for name in names)

    def likely(self, chance: float) -> bool:
        return self.rng.random() < chance

    def make(self) -> dict:
        rng = self.rng
        gates = dict.fromkeys(GATES, True)
        if not self.has("lists") or self.likely(0.2):
            del gates["DRAListTypeAttributes"]
        pattern = self.pools("n0")
        slices = pattern
        names = ["n0"]
        for index in range(1, rng.choice((2, 3)) if self.has("twins") else 1):
            names.append(f"n{index}")
            slices = slices + self.twin(pattern, f"n{index}")
        claims = [self.claim(number) for number in range(rng.choice((1, 1, 2)))]
        given = {
            "features": gates,
            "nodes": [{"metadata": {"name": name, "labels": {}}} for name in names],
            "classes": [
                {"metadata": {"name": "gpu"}, "spec": {"selectors": []}},
                {"metadata": {"name": "only"}, "spec": {"selectors": [
                    {"cel": {"expression": f'device.driver == "{GPU}"'}}]}},
            ],
            "slices": slices,
        }  # fmt: skip
        held = self.held(slices) if self.likely(0.4) else []
        if held:
            given["allocatedClaims"] = held
        if not self.has("pods"):
            return given | {"claims": claims}
        pods = []
        for number in range(rng.choice((2, 3, 4))):
            mine = deepcopy(claims if self.likely(0.7) else [self.claim(number + 5)])
            for claim in mine:
                name = f"p{number}-{claim['metadata']['name']}"
                claim["metadata"] = {"name": name, "namespace": "ns", "uid": name}
            pods.append({"name": f"p{number}", "claims": mine})
        return given | {"pods": pods}

    def pools(self, node: str) -> list[dict]:
        made = self.pool(GPU, node, self.rng.randint(3, 6))
        if self.has("clash"):
            made += self.pool(NIC, node, self.rng.randint(1, 3))
        return made

    def pool(self, driver: str, node: str, size: int) -> list[dict]:
        rng = self.rng
        counting = self.has("counters", "clash")
        spec = {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1 + counting},
        }
        if not self.has("clash"):
            spec["pool"]["name"] = node
        devices = [self.like(number, counting) for number in range(size)]
        name = f"{node}-{driver[0]}"
        slices = [{"metadata": {"name": name}, "spec": {**spec, "devices": devices}}]
        if counting:
            sets = [
                {
                    "name": one,
                    "counters": {"x": {"value": str(rng.randint(1, self.uniform * 4 + 4))}},
                }
                for one in ("a", "b")
            ]
            slices.append(
                {"metadata": {"name": f"{name}-c"}, "spec": {**spec, "sharedCounters": sets}}
            )
        return slices

    def twin(self, pattern: list[dict], node: str) -> list[dict]:
        made = deepcopy(pattern)
        for found in made:
            found["metadata"]["name"] = found["metadata"]["name"].replace("n0", node)
            spec = found["spec"]
            spec["nodeName"] = node
            spec["pool"]["name"] = spec["pool"]["name"].replace("n0", node)
            for each in spec.get("sharedCounters", ()):
                if self.likely(0.4):
                    each["counters"]["x"]["value"] = str(self.rng.randint(1, 4))
            for device in spec.get("devices", ()):
                if self.likely(0.1):
                    device["attributes"]["kind"] = {"int": self.rng.randint(0, 1)}
                if self.likely(0.1):
                    device.pop("taints", None)
        return made

    def like(self, number: int, counting: bool) -> dict:
        """A device; in uniform worlds, devices of one kind differ only in distinct attributes."""
        if not self.uniform:
            return self.device(number, counting)
        kind = self.rng.choice((0, 0, 1))
        if kind not in self.patterns:
            self.patterns[kind] = self.device(number, counting)
            self.patterns[kind]["attributes"]["kind"] = {"int": kind}
        made = deepcopy(self.patterns[kind])
        made["name"] = f"d{number}"
        made["attributes"]["d"] = {"int": self.rng.choice(self.distincts)}
        return made

    def device(self, number: int, counting: bool) -> dict:
        rng = self.rng
        made: dict = {"name": f"d{number}", "attributes": {"kind": {"int": rng.choice(self.kinds)}}}
        if self.has("lists"):
            made["attributes"]["m"] = {
                "ints": sorted({rng.randint(0, 2) for _ in range(rng.choice((1, 2, 2)))})
            }
        else:
            made["attributes"]["m"] = {"int": rng.randint(0, 1)}
        made["attributes"]["d"] = {"int": rng.choice(self.distincts)}
        if counting and self.likely(0.75):
            made["consumesCounters"] = [
                {"counterSet": one, "counters": {"x": {"value": str(rng.choice((1, 1, 2)))}}}
                for one in rng.choice((("a",), ("a",), ("b",), ("a", "b")))
            ]
        if self.has("shares", "growing") and self.likely(0.7):
            made["allowMultipleAllocations"] = True
            if self.has("growing") or self.likely(0.5):
                capacity: dict = {"value": rng.choice(("2Gi", "4Gi", "10Gi"))}
                if self.has("growing") or self.likely(0.4):
                    capacity["requestPolicy"] = deepcopy(rng.choice(POLICIES))
                made["capacity"] = {"memory": capacity}
        if self.has("taints", "counters") and self.likely(0.25):
            made["taints"] = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
        return made

    def claim(self, number: int) -> dict:
        rng = self.rng
        requests = [self.request(index) for index in range(rng.choice((1, 2, 2, 3)))]
        names = [found["name"] for found in requests]
        constraints = []
        if self.has("lists") or self.likely(0.3):
            constraints.append(
                {"matchAttribute": f"{GPU}/m", "requests": rng.choice(([], names[:2], names[1:]))}
            )
        if self.has("distinct"):
            constraints.append(
                {"distinctAttribute": f"{GPU}/d", "requests": rng.choice(([], [], names[:1]))}
            )
        devices: dict = {"requests": requests}
        if constraints:
            devices["constraints"] = constraints
        name = f"c{number}"
        return {
            "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": {"devices": devices},
        }

    def request(self, number: int) -> dict:
        name = f"r{number}"
        if self.has("alternatives") and self.likely(0.5):
            return {
                "name": name,
                "firstAvailable": [
                    {"name": f"a{index}", **self.wish()} for index in range(self.rng.choice((2, 3)))
                ],
            }
        wish = self.wish()
        if self.has("admin") and self.likely(0.4):
            wish["adminAccess"] = True
        return {"name": name, "exactly": wish}

    def wish(self) -> dict:
        rng = self.rng
        made: dict = {
            "deviceClassName": rng.choice(("gpu", "gpu", "only")),
            "allocationMode": "ExactCount",
        }
        if self.has("everything") and self.likely(0.35):
            made["allocationMode"] = "All"
        else:
            made["count"] = rng.choice((1, 1, 1, 2, 2, 3))
        if self.likely(0.8 if self.uniform else 0.4):
            kind = f"device.attributes[device.driver].kind == {rng.randint(0, 1)}"
            made["selectors"] = [{"cel": {"expression": kind}}]
        if self.has("taints", "counters") and self.likely(0.3):
            made["tolerations"] = [{"operator": "Exists"}]
        if self.has("shares") and self.whole:
            made["capacity"] = {"requests": {"memory": rng.choice(("2Gi", "4Gi", "1Gi"))}}
        if self.has("growing") and self.likely(0.7):
            amounts = ("0.5Gi", "1.5Gi", "1.5Gi", "2.5Gi", "1Gi")
            made["capacity"] = {"requests": {"memory": rng.choice(amounts)}}
        return made

    def held(self, slices: list[dict]) -> list[dict]:
        made = []
        for found in slices:
            spec = found["spec"]
            for device in spec.get("devices", ()):
                if not self.likely(0.12):
                    continue
                name = f"h-{found['metadata']['name']}-{device['name']}"
                result = {
                    "request": "r",
                    "driver": spec["driver"],
                    "pool": spec["pool"]["name"],
                    "device": device["name"],
                }
                if device.get("allowMultipleAllocations") and self.likely(0.85):
                    result["shareID"] = name
                    if device.get("capacity") and self.likely(0.7):
                        result["consumedCapacity"] = {"memory": self.rng.choice(("1Gi", "0"))}
                made.append(
                    {
                        "metadata": {"name": name, "namespace": "held", "uid": name},
                        "status": {"allocation": {"devices": {"results": [result]}}},
                    }
                )
        return made
