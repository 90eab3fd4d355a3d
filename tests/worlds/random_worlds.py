"""Seeded random clusters and claims, small enough that the literal search ends.

A world is a scenario `input` in conformance form. Themes stress one thing each; quirk-prone ones
have counters with taints, lists in constraints, shares, and capacities that grow.
"""

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
THEMES = ("plain", "groups", "tight", "counters", "shares", "lists", "pools", "all", "mixed")


def world(seed: int, *, theme: str | None = None) -> dict:
    """The world of a seed; the same seed gives the same world for ever."""
    rng = Random(f"world-{seed}")
    chosen = theme or rng.choice(THEMES)
    maker = _Maker(rng, chosen)
    return {"name": f"{chosen}-{seed}", "input": maker.make()}


class _Maker:
    def __init__(self, rng: Random, theme: str) -> None:
        self.rng = rng
        self.theme = theme
        self.mixed = theme == "mixed"

    def likely(self, chance: float) -> bool:
        return self.rng.random() < chance

    def make(self) -> dict:
        rng = self.rng
        nodes = [
            {"metadata": {"name": f"n{i}", "labels": {"zone": f"z{i % 2}", "rank": str(i)}}}
            for i in range(rng.choice((1, 1, 2)))
        ]
        gated = 1.0 if self.likely(0.9) else 0.6
        gates = {gate: True for gate in GATES if self.likely(gated)}
        if self.theme not in ("lists", "mixed"):
            gates.pop("DRAListTypeAttributes", None)
        slices = [found for node in nodes for found in self.slices(node["metadata"]["name"])]
        if self.theme in ("pools", "mixed") and self.likely(0.5):
            slices += self.network()
        rng.shuffle(slices)
        made = {
            "features": gates,
            "nodes": nodes,
            "classes": self.classes(),
            "slices": slices,
            "claims": [self.claim(i) for i in range(rng.choice((1, 1, 1, 2, 3)))],
        }
        held = self.allocated(slices)
        if held:
            made["allocatedClaims"] = [held]
        if self.likely(0.1):
            made["deviceTaintRules"] = [
                {
                    "metadata": {"name": "rule"},
                    "spec": {
                        **({"deviceSelector": {"device": "d1"}} if self.likely(0.8) else {}),
                        "taint": {"key": "k", "value": "v", "effect": "NoSchedule"},
                    },
                }
            ]
        return made

    def classes(self) -> list[dict]:
        def device_class(name: str, *expressions: str) -> dict:
            return {
                "metadata": {"name": name},
                "spec": {
                    "selectors": [{"cel": {"expression": found}} for found in expressions],
                    "config": [
                        {"opaque": {"driver": GPU, "parameters": {"class": name, "n": number}}}
                        for number in range(self.rng.choice((0, 0, 1, 2)))
                    ],
                },
            }

        return [
            device_class("gpu", f'device.driver == "{GPU}"'),
            device_class("nic", f'device.driver == "{NIC}"'),
            device_class("any"),
            device_class(
                "even", f'device.driver == "{GPU}"', f'device.attributes["{GPU}"].kind == 0'
            ),
        ]

    def slices(self, node: str) -> list[dict]:
        size = (
            self.rng.randint(4, 9) if self.theme in ("groups", "tight") else self.rng.randint(3, 8)
        )
        found = self.pool(GPU, node, {"nodeName": node}, size)
        if self.theme in ("pools", "mixed", "counters") and self.likely(0.5):
            found += self.pool(NIC, node, {"nodeName": node}, self.rng.randint(1, 3))
        return found

    def network(self) -> list[dict]:
        choice = self.rng.choice(
            (
                {"allNodes": True},
                {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["z0"]}]}]}},
                {"perDeviceNodeSelection": True},
            )
        )  # fmt: skip
        return self.pool(self.rng.choice((GPU, NIC)), "net", choice, self.rng.randint(1, 3))

    def pool(self, driver: str, name: str, choice: dict, size: int) -> list[dict]:
        rng = self.rng
        counting = self.theme in ("counters", "mixed") and self.likely(0.8)
        names = list(range(size))
        cut = rng.randint(0, size) if self.likely(0.3) else size
        parts = [part for part in (names[:cut], names[cut:]) if part]
        total = len(parts) + counting
        if self.theme == "pools" and self.likely(0.15):
            total += rng.choice((1, -1))
        generation = rng.choice((1, 1, 2))
        pool = {"name": name, "generation": generation, "resourceSliceCount": max(total, 1)}
        slices = []
        for number, part in enumerate(parts):
            devices = [self.device(driver, i, counting, choice) for i in part]
            if self.theme == "pools" and self.likely(0.05):
                devices.append(dict(devices[0]))
            slices.append(self.wrap(f"{driver}-{name}-{rng.randint(0, 9)}{number}", driver, pool,
                                    choice, devices=devices))  # fmt: skip
        if counting:
            sets = [
                {
                    "name": f"s{number}",
                    "counters": {
                        counter: {"value": str(rng.randint(1, 7))} for counter in ("a", "b")
                    },
                }
                for number in range(2)
            ]
            slices.append(
                self.wrap(f"{driver}-{name}-c", driver, pool, choice, sharedCounters=sets)
            )
        return slices

    def wrap(self, name: str, driver: str, pool: dict, choice: dict, **rest: object) -> dict:
        return {
            "metadata": {"name": name},
            "spec": {"driver": driver, "pool": pool, **choice, **rest},
        }

    def device(self, driver: str, number: int, counting: bool, choice: dict) -> dict:
        rng = self.rng
        made: dict = {"name": f"d{number}", "attributes": self.attributes(driver, number)}
        if counting and self.likely(0.8):
            made["consumesCounters"] = [
                {
                    "counterSet": found,
                    "counters": {
                        counter: {"value": str(rng.randint(0, 3))}
                        for counter in rng.choice((("a",), ("a", "b")))
                    },
                }
                for found in rng.choice((("s0",), ("s1",), ("s0", "s1")))
            ]
        if self.theme in ("shares", "mixed", "all") and self.likely(0.7):
            self.share(made)
        if self.theme != "tight" and self.likely(0.1):
            made["taints"] = [
                {"key": "k", "value": rng.choice(("v", "w")),
                 "effect": rng.choice(("NoSchedule", "NoExecute", "None"))}
            ]  # fmt: skip
        if self.likely(0.08):
            made["bindingConditions"] = ["ready"]
            made["bindingFailureConditions"] = ["broken"]
            made["bindsToNode"] = self.likely(0.5)
        if "perDeviceNodeSelection" in choice:
            made.update(rng.choice(({"nodeName": "n0"}, {"nodeName": "n1"}, {"allNodes": True})))
        return made

    def attributes(self, driver: str, number: int) -> dict:
        rng = self.rng
        made = {
            "kind": {"int": number % 2 if self.likely(0.9) else 5},
            "numa": {"int": rng.randint(0, 2)},
        }
        if self.theme == "groups":
            made["numa"] = {"int": number // 3}
        if self.theme in ("lists", "mixed") and self.likely(0.7):
            made["numa"] = {"ints": sorted({rng.randint(0, 3) for _ in range(rng.randint(1, 3))})}
        if self.likely(0.05):
            del made["numa"]
        if self.likely(0.01):
            del made["kind"]
        if self.likely(0.2):
            made[f"{driver}/uuid"] = {"string": f"u{rng.randint(0, 4)}"}
        return made

    def share(self, made: dict) -> None:
        rng = self.rng
        made["allowMultipleAllocations"] = True
        if self.likely(0.2):
            return
        policies = (
            None,
            {"default": "1Gi"},
            {"default": "2", "validRange": {"min": "2", "step": "2", "max": "6"}},
            {"default": "1", "validValues": ["1", "3", "4"]},
            {"default": "1", "validRange": {"min": "1"}},
            {"default": "0", "validRange": {"min": "0", "step": "1"}},
        )
        policy = rng.choice(policies)
        value = rng.choice(("4", "8", "6")) if policy != policies[1] else "10Gi"
        made["capacity"] = {"memory": {"value": value}}
        if policy:
            made["capacity"]["memory"]["requestPolicy"] = policy
        if self.likely(0.2):
            made["capacity"]["cores"] = {"value": rng.choice(("2", "10"))}

    def claim(self, number: int) -> dict:
        rng = self.rng
        most = 4 if self.theme == "tight" else 3
        requests = [self.request(i) for i in range(rng.choice((1, 1, 2, most)))]
        devices: dict = {"requests": requests}
        constraints = []
        while self.likely(0.35) and len(constraints) < 2:
            kind = rng.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
            names = [found["name"] for found in requests]
            constraints.append(
                {
                    kind: f"{GPU}/{rng.choice(('numa', 'numa', 'kind', 'uuid'))}",
                    "requests": rng.choice(([], names[:2], names[-1:])),
                }
            )
        if constraints:
            devices["constraints"] = constraints
        if self.likely(0.3):
            devices["config"] = [
                {"requests": rng.choice(([], ["r0"], ["r1", "r0"], ["r0/a0"])),
                 "opaque": {"driver": GPU, "parameters": {"claim": number}}}
            ]  # fmt: skip
        return {
            "metadata": {"name": f"c{number}", "namespace": "default", "uid": f"uid-{number}"},
            "spec": {"devices": devices},
        }

    def request(self, number: int) -> dict:
        rng = self.rng
        name = f"r{number}"
        if self.likely(0.25):
            return {
                "name": name,
                "firstAvailable": [
                    {"name": f"a{i}", **self.wish(alternative=True)}
                    for i in range(rng.choice((2, 2, 3)))
                ],
            }
        return {"name": name, "exactly": self.wish(alternative=False)}

    def wish(self, *, alternative: bool) -> dict:
        rng = self.rng
        made: dict = {"deviceClassName": rng.choice(("gpu",) * 7 + ("any", "nic", "even"))}
        takes_all = self.likely(0.3 if self.theme == "all" else 0.06)
        made["allocationMode"] = "All" if takes_all else "ExactCount"
        if not takes_all:
            made["count"] = rng.choice((1, 1, 2, 2, 3))
        if self.likely(0.3):
            made["selectors"] = [{"cel": {"expression": rng.choice((
                f'device.attributes["{GPU}"].kind == {rng.randint(0, 1)}',
                f'device.attributes["{GPU}"].kind != {rng.randint(0, 1)}',
                "true",
                f'device.driver == "{GPU}" && device.attributes["{GPU}"].kind >= 0',
            ))}}]  # fmt: skip
        if not alternative and self.likely(0.1):
            made["adminAccess"] = True
        if self.likely(0.3):
            made["tolerations"] = [rng.choice(({"operator": "Exists"}, {"key": "k", "value": "v"}))]
        if self.theme in ("shares", "mixed", "all") and self.likely(0.5):
            made["capacity"] = {"requests": {
                rng.choice(("memory", "memory", "memory", "cores")):
                    rng.choice(("1", "2", "3", "1Gi", "1.5Gi", "0", "2.5"))
            }}  # fmt: skip
        return made

    def allocated(self, slices: list[dict]) -> dict | None:
        results = []
        for found in slices:
            for device in found["spec"].get("devices", ()):
                if not self.likely(0.06):
                    continue
                result = {
                    "request": "r0",
                    "driver": found["spec"]["driver"],
                    "pool": found["spec"]["pool"]["name"],
                    "device": device["name"],
                }
                if device.get("allowMultipleAllocations") and self.likely(0.8):
                    result["shareID"] = f"s{len(results)}"
                    if "capacity" in device and self.likely(0.8):
                        result["consumedCapacity"] = {"memory": self.rng.choice(("1", "2"))}
                results.append(result)
        if not results:
            return None
        return {
            "metadata": {"name": "held", "namespace": "other", "uid": "held"},
            "status": {"allocation": {"devices": {"results": results}}},
        }
