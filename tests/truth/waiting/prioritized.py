"""Small clusters in which pods, waiting ones and holders, have lists of alternatives."""

import random
from dataclasses import replace

from app.domain.controllers import releases
from app.domain.controllers.registry import ControllerOptions
from app.domain.objects.profile import Profile
from tests.cluster import Cluster
from tests.truth.waiting.worlds import SmallWorld

ALTERNATIVES = ((2, 3, 4, 8), (5, 3, 2, 1))
"""How many alternatives a list has, and how often."""


class PrioritizedWorld(SmallWorld):
    """A drawn cluster most of whose requests are lists of alternatives, with its pod `p`.

    What it draws besides comes from a source of its own. In some the nodes are not compared by
    their alternatives, as in releases before 1.35.
    """

    def __init__(self, seed: int) -> None:
        self.more = random.Random(f"prioritized world {seed}")
        self.compares_nodes = self.more.randrange(100) < 70
        super().__init__(seed)

    def _empty(self) -> Cluster:
        quirks = replace(releases.quirks_of(Profile()), r1=not self.compares_nodes)
        return Cluster(options=ControllerOptions(quirks=quirks))

    def _holders(self) -> None:
        super()._holders()
        for number in range(self.more.randint(0, 2)):
            name = f"f{number}"
            either = [{"name": f"s{n}", **self._wish(alone=True)} for n in range(2)]
            requests = [{"name": "either", "firstAvailable": either}]
            spec = {"devices": {"requests": requests}}
            self.cluster.create("resource.k8s.io/v1", "ResourceClaim", name, spec=spec)
            self.cluster.pod(name, claim=name)
            self.cluster.settle()
            if "nodeName" not in self.cluster.must("pods", name)["spec"]:
                self.cluster.kill(name)
                self.cluster.settle()

    def _devices(self) -> dict:
        devices = super()._devices()
        for request in devices["requests"]:
            if self.more.randrange(100) < 75:
                request.pop("exactly", None)
                request["firstAvailable"] = [
                    {"name": f"s{number}", **self._wish(alone=True)}
                    for number in range(self.more.choices(*ALTERNATIVES)[0])
                ]
        names = [
            f"{one['name']}/s{number}"
            for one in devices["requests"]
            for number in range(len(one.get("firstAvailable") or ()))
        ]
        for constraint in devices.get("constraints") or ():
            if names and self.more.randrange(100) < 40:
                constraint["requests"] = self.more.sample(names, min(len(names), 2))
        return devices
