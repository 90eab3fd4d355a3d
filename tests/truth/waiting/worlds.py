"""Small clusters, drawn by a seed, in which the pod `p` waits for one of many causes or runs.

Holders come first; then what they stand on changes; then the pod comes. The seed decides
everything, so that a second world of the same seed is a twin of the first.
"""

import random

from tests.cluster import DRIVER, Cluster

ROOT = "example.com/root"
"""An attribute of another domain than the driver's; some devices leave it out."""

OWN = f'device.attributes["{DRIVER}"]'
SELECT_LARGE = f'{OWN}.?model.orValue("") == "large"'
SELECT_SMALL = f'{OWN}.?model.orValue("") == "small"'
SELECT_STRICTLY = f'{OWN}.model == "large"'
SELECT_FIRST = f"{OWN}.?numa.orValue(7) == 0"
SELECT_BIG = (
    f'device.capacity["{DRIVER}"].?memory.orValue(quantity("0")).compareTo(quantity("60Gi")) >= 0'
)
SELECT_DRIVER = f'device.driver == "{DRIVER}"'
OWN_SELECTORS = (SELECT_LARGE, SELECT_SMALL, SELECT_FIRST, SELECT_BIG)

BROKEN = "example.com/broken"
BAD = "example.com/bad"


class SmallWorld:
    """A drawn cluster with its pod `p`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"small world {seed}")
        self.cluster = self._empty()
        self.nodes = [f"n{number}" for number in range(self.random.choice((1, 1, 2, 2, 3, 4)))]
        self._hardware()
        self._holders()
        self._alterations()
        self._pod()
        self.cluster.settle()
        self._afterwards()

    def _empty(self) -> Cluster:
        return Cluster()

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred draws."""
        return self.random.randrange(100) < percent

    # What is published.

    def _hardware(self) -> None:
        for name in self.nodes:
            pods = self.random.choice((2, 3, 110, 110, 110))
            self.cluster.node(name, pods=pods, cpu="4", zone=self.random.choice("ab"))
            kind = self.random.choices(
                ("plain", "shared", "partitions", "mixed", "none"), (5, 2, 3, 2, 1)
            )[0]
            self._pool(name, kind)
        if self.chance(30):
            self._network()
        self.cluster.device_class("gpu", SELECT_DRIVER)
        self.cluster.device_class("large", SELECT_LARGE)
        self.cluster.device_class("strict", SELECT_STRICTLY)

    def _pool(self, node: str, kind: str) -> None:
        devices: list[dict] = []
        if kind in ("plain", "mixed"):
            devices += [self._device(f"gpu-{n}") for n in range(self.random.randint(1, 4))]
        if kind in ("shared", "mixed"):
            devices += [self._shared(f"card-{n}") for n in range(self.random.randint(1, 2))]
        counters = kind == "partitions"
        if counters:
            devices += [self._partition("whole", 4)]
            devices += [self._partition(f"half-{n}", 2) for n in range(2)]
            if self.chance(40):
                devices.append(self._device("gpu-0"))
            self.random.shuffle(devices)
        if not devices:
            return
        doubled, lacking = self.chance(4), self.chance(6)
        count = 1 + counters + doubled + lacking
        pool = {"name": node, "generation": 1, "resourceSliceCount": count}
        if doubled:
            again = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices[:1]}
            self.cluster.create("resource.k8s.io/v1", "ResourceSlice", f"{node}-twice", spec=again)
        self.cluster.slice(node, devices, pool=node)
        self._replace_pool(f"{node}-slice", pool)
        if counters:
            sets = [
                {"name": "chip", "counters": {"memory": {"value": "4"}, "slots": {"value": "4"}}}
            ]
            spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "sharedCounters": sets}
            self.cluster.create("resource.k8s.io/v1", "ResourceSlice", f"{node}-sets", spec=spec)

    def _replace_pool(self, name: str, pool: dict) -> None:
        self.cluster.patch("resourceslices", name, {"spec": {"pool": pool}})

    def _network(self) -> None:
        devices = [self._device(f"net-{n}") for n in range(self.random.randint(1, 3))]
        spec: dict = {
            "driver": DRIVER,
            "pool": {"name": "net", "generation": 1, "resourceSliceCount": 1},
        }
        way = self.random.choice(("all", "zone", "device"))
        if way == "all":
            spec["allNodes"] = True
        elif way == "zone":
            spec["nodeSelector"] = _in_zone("a")
        else:
            spec["perDeviceNodeSelection"] = True
            for device in devices:
                device["nodeName"] = self.random.choice(self.nodes)
        self.cluster.create(
            "resource.k8s.io/v1", "ResourceSlice", "net", spec={**spec, "devices": devices}
        )

    def _device(self, name: str) -> dict:
        attributes: dict = {}
        if not self.chance(12):
            attributes["model"] = {"string": self.random.choice(("large", "small"))}
        if not self.chance(10):
            attributes["numa"] = {"int": self.random.randrange(2)}
        if not self.chance(30):
            attributes[ROOT] = {"string": self.random.choice(("r0", "r1"))}
        device: dict = {"name": name, "attributes": attributes}
        if self.chance(40):
            memory = self.random.choice(("40Gi", "80Gi"))
            device["capacity"] = {"memory": {"value": memory}}
        if self.chance(15):
            effect = self.random.choice(("NoSchedule", "NoSchedule", "NoExecute", "None"))
            device["taints"] = [{"key": BROKEN, "effect": effect, "value": "yes"}]
        return device

    def _shared(self, name: str) -> dict:
        device = self._device(name)
        memory: dict = {"value": self.random.choice(("40Gi", "80Gi"))}
        policy = self.random.choice(("none", "range", "values"))
        if policy == "range":
            limits = {"min": "10Gi", "step": "10Gi", "max": "30Gi"}
            memory["requestPolicy"] = {"default": "10Gi", "validRange": limits}
        elif policy == "values":
            memory["requestPolicy"] = {"default": "20Gi", "validValues": ["20Gi", "40Gi"]}
        return {**device, "allowMultipleAllocations": True, "capacity": {"memory": memory}}

    def _partition(self, name: str, size: int) -> dict:
        device = self._device(name)
        counters = {"memory": {"value": str(size)}, "slots": {"value": str(size)}}
        return {**device, "consumesCounters": [{"counterSet": "chip", "counters": counters}]}

    # Who holds devices, and what changes afterwards.

    def _holders(self) -> None:
        self.cluster.template("one")
        self.cluster.template("two", count=2)
        self.cluster.template("share", capacity={"requests": {"memory": "10Gi"}})
        for number in range(self.random.randint(0, 5)):
            template = self.random.choice(("one", "one", "two", "share"))
            name = f"h{number}"
            labels = {"metadata": {"labels": {"app": "holder"}}}
            cpu = {"cpu": self.random.choice(("1", "2"))} if self.chance(30) else None
            self.cluster.pod(name, template=template, requests=cpu)
            self.cluster.patch("pods", name, labels)
            self.cluster.settle()
            if "nodeName" not in self.cluster.must("pods", name)["spec"]:
                self.cluster.delete("pods", name)
                self.cluster.settle()
            elif self.chance(10):
                self.cluster.finish(name)
            elif self.chance(10):
                self.cluster.delete("pods", name)
            self.cluster.settle()

    def _alterations(self) -> None:
        for name in self.nodes:
            if self.chance(12):
                self.cluster.patch("nodes", name, {"spec": {"unschedulable": True}})
            if self.chance(12):
                effect = self.random.choice(("NoSchedule", "NoSchedule", "PreferNoSchedule"))
                taint = {"key": "example.com/drain", "effect": effect}
                self.cluster.patch("nodes", name, {"spec": {"taints": [taint]}})
            if self.chance(8) and self.cluster.get("resourceslices", f"{name}-sets"):
                sets = [
                    {
                        "name": "chip",
                        "counters": {"memory": {"value": "2"}, "slots": {"value": "4"}},
                    }
                ]
                spec = {"spec": {"sharedCounters": sets}}
                self.cluster.patch("resourceslices", f"{name}-sets", spec)
        for number in range(self.random.choice((0, 0, 0, 1, 1, 2))):
            selector = {"driver": DRIVER}
            if self.chance(70):
                selector["pool"] = self.random.choice([*self.nodes, "net"])
                if self.chance(50):
                    selector["device"] = self.random.choice(("gpu-0", "gpu-1", "half-0", "card-0"))
            effect = "None" if self.chance(15) else "NoSchedule"
            self.cluster.rule(f"rule-{number}", effect, selector, key=f"{BAD}-{number}")
        self.cluster.settle()

    # The pod.

    def _pod(self) -> None:
        claims = self._claims()
        spec: dict = {"resourceClaims": claims}
        if self.chance(12):
            spec["nodeSelector"] = {"zone": self.random.choice("ab")}
        if self.chance(8):
            away = {
                "labelSelector": {"matchLabels": {"app": "holder"}},
                "topologyKey": "kubernetes.io/hostname",
            }
            kind = self.random.choice(("podAntiAffinity", "podAffinity"))
            spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [away]}}
        elif self.chance(8):
            zone = _in_zone(self.random.choice("ab"))
            spec["affinity"] = {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": zone}
            }
        tolerations = []
        if self.chance(20):
            tolerations.append({"key": "example.com/drain", "operator": "Exists"})
        if self.chance(10):
            tolerations.append({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"})
        if tolerations:
            spec["tolerations"] = tolerations
        if self.chance(4):
            spec["schedulingGates"] = [
                {"name": f"example.com/gate-{n}"} for n in range(self.random.randint(1, 2))
            ]
        if self.chance(3):
            spec["schedulerName"] = "other"
        cpu = {"cpu": self.random.choice(("1", "3", "5"))} if self.chance(20) else None
        self._create_pod(cpu, spec)

    def _create_pod(self, requests: dict | None, spec: dict) -> None:
        self.cluster.pod("p", requests=requests, **spec)

    def _claims(self) -> list[dict]:
        entries = []
        for number in range(self.random.choices((0, 1, 2), (1, 12, 3))[0]):
            name = f"want-{number}"
            entries.append({"name": f"entry-{number}", "resourceClaimName": name})
            if self.chance(3):
                continue
            spec = {"devices": self._devices()}
            self.cluster.create("resource.k8s.io/v1", "ResourceClaim", name, spec=spec)
            if self.chance(12):
                earlier = f"earlier-{number}"
                self.cluster.pod(earlier, resourceClaims=entries[-1:])
                self.cluster.settle()
                if "nodeName" not in self.cluster.must("pods", earlier)["spec"]:
                    self.cluster.kill(earlier)
                    self.cluster.settle()
            if self.chance(3):
                self.cluster.patch(
                    "resourceclaims", name, {"metadata": {"finalizers": ["example.com/keep"]}}
                )
                self.cluster.delete("resourceclaims", name)
        return entries

    def _devices(self) -> dict:
        names = ["a", "b", "c"][: self.random.choices((1, 2, 3), (6, 3, 1))[0]]
        requests = []
        for name in names:
            if self.chance(15):
                either = [{"name": f"s{n}", **self._wish(alone=True)} for n in range(2)]
                requests.append({"name": name, "firstAvailable": either})
            else:
                requests.append({"name": name, "exactly": self._wish()})
        devices: dict = {"requests": requests}
        if self.chance(25):
            kind = self.random.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
            attribute = self.random.choice((ROOT, f"{DRIVER}/numa", f"{DRIVER}/model"))
            constraint: dict = {kind: attribute}
            if self.chance(30):
                constraint["requests"] = [self.random.choice(names)]
            devices["constraints"] = [constraint]
        return devices

    def _wish(self, *, alone: bool = False) -> dict:
        names = ("gpu", "gpu", "gpu", "large", "strict" if self.chance(20) else "gpu")
        wish: dict = {"deviceClassName": self.random.choice(names)}
        if self.chance(2):
            wish["deviceClassName"] = "missing"
        if self.chance(12):
            wish["allocationMode"] = "All"
        else:
            wish["count"] = self.random.choices((1, 2, 3), (6, 3, 1))[0]
        if self.chance(40):
            number = self.random.choice((1, 1, 2))
            picked = self.random.sample(OWN_SELECTORS, number)
            if self.chance(6):
                picked.append(SELECT_STRICTLY)
            wish["selectors"] = [{"cel": {"expression": one}} for one in picked]
        if self.chance(20):
            key = self.random.choice((BROKEN, f"{BAD}-0"))
            toleration: dict = {"key": key, "operator": "Exists"}
            if self.chance(40):
                toleration["effect"] = self.random.choice(("NoSchedule", "NoExecute"))
            wish["tolerations"] = [toleration]
        if self.chance(20):
            memory = self.random.choice(("5Gi", "15Gi", "30Gi", "50Gi", "100Gi"))
            wish["capacity"] = {"requests": {"memory": memory}}
        return wish

    def _afterwards(self) -> None:
        if self.chance(2):
            self.cluster.patch("pods", "p", {"metadata": {"finalizers": ["example.com/keep"]}})
            self.cluster.delete("pods", "p")
        self.cluster.settle()


def _in_zone(zone: str) -> dict:
    expression = {"key": "zone", "operator": "In", "values": [zone]}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
