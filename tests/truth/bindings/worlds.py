"""Small clusters whose devices have binding conditions, and drivers that take their time.

People and drivers act at drawn thousandths of a second, so not when the scheduler looks.
"""

import copy
import random
from collections.abc import Iterator

from app.domain.controllers.registry import ControllerOptions
from app.domain.values.timestamps import SECOND
from tests.cluster import Cluster
from tests.truth.facts import device_of, results

DRIVERS = ("gpu.example.com", "net.example.com")
KINDS = ("example.com/attached", "example.com/ready")
FAILED = ("example.com/failed", "example.com/lost")
TIMEOUTS = (12, 30, 600)
STEPS = 14
PODS = ("p0", "p1", "p2")


class BindingWorld:
    """A drawn cluster whose pods wait for devices that drivers make ready, or do not."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"binding world {seed}")
        self.timeout = self.random.choice(TIMEOUTS)
        self.cluster = Cluster(options=ControllerOptions(binding_timeout=self.timeout * SECOND))
        for driver in DRIVERS:
            self.cluster.device_class(driver.partition(".")[0], f'device.driver == "{driver}"')
        for number in range(self.random.randint(1, 2)):
            self.cluster.node(name := f"n{number}")
            for driver in DRIVERS:
                self._slice(name, driver)
        self.made = 0
        for _ in range(STEPS):
            self._step()
            self.cluster.settle()
            seconds = self.random.choice((0, 1, 2, 4, 7, 13))
            self.cluster.wait(seconds + self.random.randrange(1, 1000) / 1000)

    def _slice(self, node: str, driver: str) -> None:
        names = [f"d{number}" for number in range(self.random.randint(1, 3))]
        spec = {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [self._device(name) for name in names],
        }
        name = f"{node}-{driver}"
        self.cluster.create("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)

    def _device(self, name: str) -> dict:
        if self.random.randrange(4) == 0:
            return {"name": name}
        device = {
            "name": name,
            "bindingConditions": self.random.sample(KINDS, self.random.randint(1, 2)),
            "bindingFailureConditions": self.random.sample(FAILED, self.random.randint(1, 2)),
        }
        return {**device, "bindsToNode": True} if self.random.randrange(2) else device

    def _step(self) -> None:
        act = self.random.choices((self._arrive, self._report, self._go, self._lose), (5, 9, 2, 1))
        act[0]()

    def _arrive(self) -> None:
        free = [name for name in PODS if self.cluster.get("pods", name) is None]
        if not free:
            self._report()
            return
        name = self.random.choice(free)
        self.made += 1
        entries = []
        for number in range(self.random.choice((1, 1, 2))):
            claim = f"c{self.made}-{number}"
            drivers = self.random.choices(DRIVERS, k=self.random.choice((1, 2)))
            requests = [
                {"name": f"r{place}", "exactly": {"deviceClassName": one.partition(".")[0]}}
                for place, one in enumerate(drivers)
            ]
            spec = {"devices": {"requests": requests}}
            self.cluster.create("resource.k8s.io/v1", "ResourceClaim", claim, spec=spec)
            entries.append({"name": f"e{number}", "resourceClaimName": claim})
        self.cluster.pod(name, resourceClaims=entries)

    def _report(self) -> None:
        """A driver reports on the devices of a claim, some of them or all."""
        waiting = [tree for tree in self._claims() if results(tree)]
        if not waiting:
            return
        claim = copy.deepcopy(self.random.choice(waiting))
        reported = {device_of(one): one for one in claim["status"].get("devices") or ()}
        for one in results(claim):
            if self.random.randrange(5):
                own = {name: one[name] for name in ("driver", "pool", "device")}
                if "shareID" in one:
                    own["shareID"] = one["shareID"]
                reported[device_of(one)] = {**own, "conditions": [*self._conditions()]}
        claim["status"]["devices"] = list(reported.values())
        self.cluster.update("resourceclaims", claim, "status")

    def _conditions(self) -> Iterator[dict]:
        for kind in KINDS:
            if self.random.randrange(6):
                yield _condition(kind, self.random.choice(("True", "True", "True", "False")))
        for kind in FAILED:
            if self.random.randrange(6) == 0:
                yield _condition(kind, self.random.choice(("True", "False")))

    def _go(self) -> None:
        """A pod is deleted, and is gone at once."""
        pods = [name for name in PODS if self.cluster.get("pods", name) is not None]
        if pods:
            self.cluster.kill(self.random.choice(pods))

    def _lose(self) -> None:
        """Somebody takes the devices from a claim."""
        waiting = [tree for tree in self._claims() if results(tree)]
        if waiting:
            claim = copy.deepcopy(self.random.choice(waiting))
            claim["status"] = {}
            self.cluster.update("resourceclaims", claim, "status")

    def _claims(self) -> Iterator[dict]:
        """The claims of pods that have no node yet."""
        for name in PODS:
            pod = self.cluster.get("pods", name)
            if pod is not None and not pod["spec"].get("nodeName"):
                for entry in pod["spec"]["resourceClaims"]:
                    claim = self.cluster.get("resourceclaims", entry["resourceClaimName"])
                    if claim is not None:
                        yield claim


def _condition(kind: str, status: str) -> dict:
    return {
        "type": kind,
        "status": status,
        "reason": "Reported",
        "message": f"it is {status}",
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }
