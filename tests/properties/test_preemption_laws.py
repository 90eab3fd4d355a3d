"""Preemption evicts no more pods than necessary, none of equal or higher priority, and pods without
a disruption budget first (controllers.md 4.3 and the documentation of pod priority and preemption).

Random nodes are full of pods, and a new pod fits nowhere. The choice of the scheduler is compared
with plain arithmetic on the cpu of every node.

Seeds come by day.
"""

import random

import pytest

from app.domain.values import json_tree
from tests import draws
from tests.cluster import Cluster, check_decisions

PRIORITIES = {"p0": -10, "p1": 0, "p2": 10, "p3": 20, "p4": 30}


class World:
    """A cluster, and its nodes and pods as plain numbers.

    A pod is (name, node, cpu, priority, is guarded); a budget allows no disruption of guarded pods.
    """

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.cluster = Cluster()
        self.room: dict[str, int] = {}
        self.pods: list[tuple[str, str, int, int, bool]] = []
        for name, value in PRIORITIES.items():
            self.cluster.create("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
        for number in range(chance.randint(1, 5)):
            node = f"n{number}"
            self.room[node] = chance.randint(4, 12)
            self.cluster.node(node, cpu=str(self.room[node]))
            self.fill(node)
        self.cluster.create(
            "policy/v1",
            "PodDisruptionBudget",
            "guarded",
            spec={"selector": {"matchLabels": {"guarded": "yes"}}, "minAvailable": 1},
        )
        self.cluster.settle()

    def fill(self, node: str) -> None:
        left = self.room[node]
        while left:
            cpu = self.chance.randint(1, min(left, 4))
            name = f"{node}-{len(self.pods)}"
            priority = self.chance.choice(list(PRIORITIES))
            is_guarded = self.chance.random() < 0.3
            self.pods.append((name, node, cpu, PRIORITIES[priority], is_guarded))
            labels = {"guarded": "yes"} if is_guarded else {}
            self.put(name, cpu, priority, node=node, labels=labels)
            left -= cpu

    def put(self, name, cpu, priority, *, node="", labels=None):
        container = {
            "name": "main",
            "image": "busybox:1",
            "resources": {"requests": {"cpu": str(cpu)}},
        }
        spec = {"containers": [container], "priorityClassName": priority}
        if node:
            spec["nodeName"] = node
        metadata = {"name": name, "labels": labels or {}}
        self.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def preempt(self, cpu: int, priority: str) -> tuple[str, set[str]]:
        """Creates a pod; returns its nominated node and the pods that are preempted for it."""
        self.put("incoming", cpu, priority)
        self.cluster.settle()
        gone = {
            name
            for name, *_ in self.pods
            if self.cluster.pod_condition(name, "DisruptionTarget") is not None
        }
        tree = self.cluster.must("pods", "incoming")
        return json_tree.text(tree, "status", "nominatedNodeName"), gone

    def used(self, node: str, without: set[str] = frozenset()) -> int:
        return sum(pod[2] for pod in self.pods if pod[1] == node and pod[0] not in without)

    def helps(self, node: str, cpu: int, priority: int, *, guarded: bool = True) -> bool:
        """True when the pod fits on the node without all (unguarded) pods of lower priority."""
        gone = {pod[0] for pod in self.pods if pod[3] < priority and (guarded or not pod[4])}
        return any(pod[1] == node and pod[0] in gone for pod in self.pods) and (
            self.used(node, gone) + cpu <= self.room[node]
        )


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(60))
def test_victims_are_enough_and_none_is_too_many(seed):
    world = World(seed)
    cpu = world.chance.randint(1, 6)
    priority = world.chance.choice(list(PRIORITIES))
    value = PRIORITIES[priority]
    node, gone = world.preempt(cpu, priority)
    could = [name for name in world.room if world.helps(name, cpu, value)]
    assert bool(node) == bool(gone) == bool(could), f"seed {seed}"
    if not node:
        return
    victims = [pod for pod in world.pods if pod[0] in gone]
    assert node in could, f"seed {seed}"
    assert all(pod[1] == node and pod[3] < value for pod in victims), f"seed {seed}"
    assert world.used(node, gone) + cpu <= world.room[node], f"seed {seed}"
    for pod in victims:
        spared = gone - {pod[0]}
        assert world.used(node, spared) + cpu > world.room[node], f"seed {seed}: {pod[0]}"
    harmless = [name for name in could if world.helps(name, cpu, value, guarded=False)]
    if harmless:
        assert not any(pod[4] for pod in victims), f"seed {seed}"
    for compared in check_decisions(world.cluster):
        assert not compared.differences, f"seed {seed}"
