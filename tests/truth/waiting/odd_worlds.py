"""Small clusters with amounts in many notations, lost nodes, and devices that two claims hold."""

from tests.cluster import DRIVER
from tests.truth.waiting.worlds import SmallWorld

LOST = ("gone-a", "gone-b")
"""Nodes that slices are for, and that do not exist."""

AMOUNTS = ("5Gi", "5G", "5000Mi", "15Gi", "16G", "15500M", "31457280Ki", "30Gi", "50Gi", "100G")

RANGES = (
    ("10G", "10G", "30G"),
    ("10Gi", "5Gi", "30Gi"),
    ("10Gi", "10240Mi", "30720Mi"),
    ("10G", "2500M", "32500M"),
    ("10Gi", "1G", "30737418240"),
)
"""Minimum, step and maximum of request policies."""


class OddWorld(SmallWorld):
    """A drawn cluster whose drivers, claims and nodes do not agree on notations and presence."""

    def _hardware(self) -> None:
        super()._hardware()
        for name in LOST if self.chance(40) else ():
            devices = [self._device(f"lost-{n}") for n in range(self.random.randint(1, 3))]
            self.cluster.slice(name, devices)
        if self.chance(20):
            devices = [self._device("far-0"), self._device("far-1")]
            for device in devices:
                device["nodeName"] = self.random.choice((*LOST, *self.nodes))
            pool = {"name": "far", "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "pool": pool, "devices": devices}
            self.cluster.create(
                "resource.k8s.io/v1",
                "ResourceSlice",
                "far",
                spec={**spec, "perDeviceNodeSelection": True},
            )

    def _device(self, name: str) -> dict:
        device = super()._device(name)
        if "capacity" in device:
            device["capacity"]["memory"]["value"] = self.random.choice(("40Gi", "80G", "64000M"))
        return device

    def _shared(self, name: str) -> dict:
        device = super()._shared(name)
        memory: dict = {"value": self.random.choice(("40Gi", "40G", "80000M", "81920Mi"))}
        policy = self.random.choice(("none", "range", "values"))
        if policy == "range":
            least, step, most = self.random.choice(RANGES)
            limits = {"min": least, "step": step, "max": most}
            memory["requestPolicy"] = {"default": least, "validRange": limits}
        elif policy == "values":
            memory["requestPolicy"] = {"default": "20Gi", "validValues": ["20Gi", "40000M"]}
        device["capacity"] = {"memory": memory}
        if self.chance(40):
            device["capacity"]["cores"] = {"value": "4", "requestPolicy": {"default": "1500m"}}
        return device

    def _pool(self, node: str, kind: str) -> None:
        if self.chance(35):
            kind = "shared"
        self._whole, self._half = self.random.choice(
            (("4", "2"), ("4Gi", "2Gi"), ("4G", "2G"), ("4Gi", "2000Mi"), ("3", "1500m"))
        )
        super()._pool(node, kind)
        if kind == "partitions" and self.cluster.get("resourceslices", f"{node}-sets"):
            counters = {"memory": {"value": self._whole}, "slots": {"value": "4"}}
            sets = [{"name": "chip", "counters": counters}]
            self.cluster.patch("resourceslices", f"{node}-sets", {"spec": {"sharedCounters": sets}})

    def _partition(self, name: str, size: int) -> dict:
        device = super()._partition(name, size)
        amount = self._whole if size == 4 else self._half
        device["consumesCounters"][0]["counters"]["memory"] = {"value": amount}
        return device

    def _holders(self) -> None:
        for number in range(self.random.randint(0, 4)):
            amount = self.random.choice(("10Gi", "10G", "12500M", "16000Mi"))
            capacity = {"requests": {"memory": amount}}
            self.cluster.claim(f"part-{number}", capacity=capacity)
            self.cluster.pod(f"part-{number}", claim=f"part-{number}")
        self.cluster.settle()
        super()._holders()

    def _alterations(self) -> None:
        super()._alterations()
        for number in range(2 if self.chance(25) else 0):
            self._hold_again(f"again-{number}")
        self.cluster.settle()

    def _hold_again(self, name: str) -> None:
        """A claim with the devices of another one, as known issues leave them."""
        held = [
            tree
            for one in self.cluster.names("resourceclaims")
            for tree in [self.cluster.must("resourceclaims", one)]
            if (tree.get("status") or {}).get("allocation")
        ]
        if not held:
            return
        other = self.random.choice(held)
        spec = {"devices": other["spec"]["devices"]}
        made = self.cluster.create("resource.k8s.io/v1", "ResourceClaim", name, spec=spec)
        made = {**made, "status": {"allocation": other["status"]["allocation"]}}
        self.cluster.update("resourceclaims", made, "status")

    def _wish(self, *, alone: bool = False) -> dict:
        wish = super()._wish(alone=alone)
        if self.chance(40):
            wish["capacity"] = {"requests": {"memory": self.random.choice(AMOUNTS)}}
        return wish
