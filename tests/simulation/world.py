"""A seeded world: a fleet, arrivals, ends of pods, taints, lost nodes and drivers, over weeks.

The seed decides everything random, so it reproduces a run. After every step the world is at rest
and the rules must hold.
"""

import random
from collections.abc import Callable

from app.domain.controllers.registry import ControllerOptions
from app.domain.errors import AlreadyExists, Conflict, NotFound
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.cluster import DRIVER, Cluster, claim_spec
from tests.simulation.soundness import Soundness, Unsound

OFF = frozenset({"kubelet", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs"})


class World:
    """A seeded cluster in use."""

    def __init__(self, seed: int, *, nodes: int = 3, devices: int = 3) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.fate = random.Random(-seed)
        self.cluster = Cluster(options=ControllerOptions(off=OFF), seed=seed)
        self.names = 0
        self.crashes = 0
        self.refusals = 0
        self.devices = devices
        self.sound = Soundness()
        cluster = self.cluster
        for event in cluster.line.events:
            self.sound.fold(event)
        cluster.line.followers.append(self.sound.fold)
        cluster.device_class()
        for number in range(nodes):
            cluster.node(f"n{number}", pods=6)
            self.publish(f"n{number}")
        cluster.template()
        cluster.template(
            "patient",
            tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
        )
        cluster.create(
            "resource.k8s.io/v1",
            "ResourceClaimTemplate",
            "pair",
            spec={"spec": claim_spec(count=2)},
        )
        cluster.settle()

    # What people and programs do

    def publish(self, node: str) -> None:
        names = [f"gpu-{number}" for number in range(self.devices)]
        self.cluster.slice(node, devices=[{"name": name} for name in names])

    def arrive(self) -> None:
        self.names += 1
        template = self.random.choice(["gpu", "gpu", "patient", "pair"])
        self.cluster.pod(f"pod-{self.names}", template=template)

    def arrive_shared(self) -> None:
        self.names += 1
        claim = f"shared-{self.random.randrange(3)}"
        if self.cluster.get("resourceclaims", claim) is None:
            self.cluster.claim(claim)
        self.cluster.pod(f"pod-{self.names}", claim=claim)

    def finish(self) -> None:
        """Sets the final phase of a random running pod."""
        if pod := self._some_pod(is_running):
            self.cluster.finish(pod, self.random.choice(["Succeeded", "Failed"]))

    def remove(self) -> None:
        if pod := self._some_pod(lambda tree: True):
            self.cluster.delete("pods", pod)

    def reap(self) -> None:
        """Deletes terminating pods, as kubelets do."""
        for key in list(self.cluster.line.views.objects.keys("", "pods")):
            tree = self.cluster.get("pods", key.name)
            if tree is not None and "deletionTimestamp" in tree["metadata"]:
                self.cluster.kill(key.name)

    def drop_claim(self) -> None:
        claims = self.cluster.names("resourceclaims")
        if claims:
            self.cluster.delete("resourceclaims", self.random.choice(claims))

    def taint(self) -> None:
        self.names += 1
        selector = {"driver": DRIVER, "pool": f"n{self.random.randrange(3)}"}
        effect = self.random.choice(["NoExecute", "NoExecute", "NoSchedule", "None"])
        self.cluster.rule(f"rule-{self.names}", effect=effect, selector=selector)

    def untaint(self) -> None:
        rules = self.cluster.names("devicetaintrules")
        if rules:
            self.cluster.delete("devicetaintrules", self.random.choice(rules))

    def lose_driver(self) -> None:
        slices = self.cluster.names("resourceslices")
        if slices:
            self.cluster.delete("resourceslices", self.random.choice(slices))

    def find_driver(self) -> None:
        for number in range(3):
            if self.cluster.get("resourceslices", f"n{number}-slice") is None:
                self.publish(f"n{number}")
                return

    def cordon(self) -> None:
        name = f"n{self.random.randrange(3)}"
        flag = self.random.random() < 0.5
        if self.cluster.get("nodes", name) is not None:
            self.cluster.patch("nodes", name, {"spec": {"unschedulable": flag}})

    def lose_node(self) -> None:
        name = f"n{self.random.randrange(3)}"
        if self.cluster.get("nodes", name) is not None:
            self.cluster.delete("nodes", name)

    def find_node(self) -> None:
        for number in range(3):
            if self.cluster.get("nodes", f"n{number}") is None:
                self.cluster.node(f"n{number}", pods=6)
                return

    # How it runs

    def step(self, *, crash: float = 0.0) -> None:
        """Does one act and lets time pass; replaces the controllers before, at chance `crash`."""
        act = self.random.choices(ACTS, WEIGHTS)[0]
        wait = self.random.choice([0, 0.001, 0.5, 1, 7, 30, 600])
        if crash and self.fate.random() < crash:
            self.crash()
        try:
            act(self)
        except (AlreadyExists, Conflict, NotFound):
            self.refusals += 1  # some acts are refused; the world continues
        self.cluster.wait(wait)
        self.check()

    def crash(self) -> None:
        """Replaces the controllers by new ones that fold the log from its start.

        Each second time the views, too, are those of a new process.
        """
        self.crashes += 1
        if self.crashes % 2:
            self.cluster.begin_from_kept()
        self.cluster.restart()

    def check(self) -> None:
        """Checks the rules that hold at rest. Raises Unsound, which names the seed."""
        try:
            self.sound.check_whole()
        except Unsound as broken:
            raise Unsound(f"seed {self.seed}: {broken}") from broken

    def state(self) -> dict[str, object]:
        """The existing objects by key, without versions, managed fields and Event objects."""
        objects = self.cluster.line.views.objects
        found: dict[str, object] = {}
        for group, resource in objects.resources():
            if resource == "events":
                continue
            for key in objects.keys(group, resource):
                tree = json_tree.copy(objects.get(key))
                for volatile in ("resourceVersion", "managedFields"):
                    tree["metadata"].pop(volatile, None)
                found[str(key)] = tree
        return found

    def end(self) -> None:
        """Checks that no pod was evicted or placed twice."""
        evicted: list[str] = []
        placed: list[str] = []
        for event in self.cluster.line.events:
            if event.type != "DecisionRecorded":
                continue
            body = event.object
            uid = json_tree.text(body, "inputs", "uid")
            if body["outcome"] == "Evicted":
                evicted.append(uid)
            elif body["outcome"] == "Scheduled":
                placed.append(uid)
        assert len(evicted) == len(set(evicted)), f"seed {self.seed}: evicted twice"
        assert len(placed) == len(set(placed)), f"seed {self.seed}: placed twice"

    def _some_pod(self, wanted: Callable[[JsonObject], bool]) -> str:
        objects = self.cluster.line.views.objects
        names = [
            key.name
            for key in objects.keys("", "pods")
            if (tree := objects.get(key)) is not None and wanted(tree)
        ]
        return self.random.choice(names) if names else ""


ACTS = (
    World.arrive,
    World.arrive_shared,
    World.finish,
    World.remove,
    World.reap,
    World.drop_claim,
    World.taint,
    World.untaint,
    World.lose_driver,
    World.find_driver,
    World.cordon,
    World.lose_node,
    World.find_node,
)
WEIGHTS = (10, 5, 6, 3, 4, 1, 2, 2, 1, 2, 1, 1, 2)


def is_running(pod: JsonObject) -> bool:
    """True for a pod that is bound and has not ended."""
    phase = json_tree.text(pod, "status", "phase")
    return "nodeName" in pod["spec"] and phase not in ("Succeeded", "Failed")
