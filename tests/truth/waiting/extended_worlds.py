"""Small clusters in which pods ask for extended resources, served by nodes or by devices."""

import random

from tests.truth.waiting.extended import IMPLICIT
from tests.truth.waiting.worlds import SELECT_FIRST, SmallWorld

GPU = "example.com/gpu"
FOREIGN = "example.com/fan"
"""A resource for which no class stands."""


class ExtendedWorld(SmallWorld):
    """A drawn cluster whose classes stand for extended resources, with its pod `p`.

    What it draws besides comes from a source of its own, as the rest is that of a small world.
    """

    def __init__(self, seed: int) -> None:
        self.more = random.Random(f"extended world {seed}")
        super().__init__(seed)

    def _hardware(self) -> None:
        super()._hardware()
        first = self.more.choice(("gpu", "gpu", "large", "strict"))
        self._stand_for(first, GPU)
        if self._more_often(30):
            self._stand_for(self.more.choice(("gpu", "large")), GPU)
        if self._more_often(30):
            if self._more_often(60):
                self.cluster.wait(2)
            self.cluster.device_class(self.more.choice(("a-new", "z-new")), SELECT_FIRST)
            name = next(one for one in self.cluster.names("deviceclasses") if one.endswith("-new"))
            self._stand_for(name, GPU)
        for name in self.nodes:
            if self._more_often(25):
                self._offer(name)

    def _more_often(self, percent: int) -> bool:
        return self.more.randrange(100) < percent

    def _stand_for(self, name: str, resource: str) -> None:
        self.cluster.patch("deviceclasses", name, {"spec": {"extendedResourceName": resource}})

    def _offer(self, node: str) -> None:
        resource = self.more.choice((GPU, GPU, GPU, FOREIGN, f"{IMPLICIT}large"))
        amounts = {resource: str(self.more.randint(0, 3))}
        status = {"status": {"allocatable": amounts, "capacity": amounts}}
        self.cluster.patch("nodes", node, status, subresource="status")

    def _holders(self) -> None:
        super()._holders()
        for number in range(self.more.randint(0, 2)):
            name = f"e{number}"
            self.cluster.pod(name, requests={GPU: str(self.more.randint(1, 2))})
            self.cluster.settle()
            if "nodeName" not in self.cluster.must("pods", name)["spec"]:
                self.cluster.kill(name)
            self.cluster.settle()

    def _alterations(self) -> None:
        super()._alterations()
        if self._more_often(10):
            self._offer(self.more.choice(self.nodes))
        self.cluster.settle()

    def _claims(self) -> list[dict]:
        return [] if self._more_often(60) else super()._claims()

    def _create_pod(self, requests: dict | None, spec: dict) -> None:
        containers = [self._container(f"c{n}") for n in range(self.more.choice((1, 1, 1, 2)))]
        containers[0]["resources"]["requests"].update(requests or {})
        first = [self._container(f"i{n}") for n in range(self.more.choice((0, 0, 0, 1, 2)))]
        for one in first:
            if self._more_often(30):
                one["restartPolicy"] = "Always"
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p"},
                "spec": {**spec, "containers": containers, "initContainers": first},
            }
        )

    def _container(self, name: str) -> dict:
        amounts = {}
        if self._more_often(75):
            amounts[GPU] = str(self.more.choices((0, 1, 2, 3), (1, 6, 3, 1))[0])
        if self._more_often(15):
            of_class = self.more.choice(("gpu", "large", "missing"))
            amounts[f"{IMPLICIT}{of_class}"] = str(self.more.randint(1, 2))
        if self._more_often(5):
            amounts[FOREIGN] = "1"
        resources = {"requests": dict(amounts), "limits": amounts}
        return {"name": name, "image": "busybox:1", "resources": resources}
