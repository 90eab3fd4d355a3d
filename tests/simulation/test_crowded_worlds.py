"""Preemption keeps the rules in worlds with full nodes and pods of different priorities."""

import pytest

from app.domain.log import ObjectKey
from app.domain.values import json_tree
from tests import draws
from tests.simulation.__main__ import CRASH
from tests.simulation.fleet_acts import ACTS, SECONDS, TEMPLATES
from tests.simulation.fleet_world import NAMESPACES, FleetWorld

pytestmark = draws.modules_in_turn("worlds")


STEPS = 150
PRIORITIES = ("urgent", "later", "")


def crowd(world: FleetWorld) -> None:
    """Creates a pod that requests much of a node, with or without devices."""
    draw = world.random
    spec = {
        "containers": [
            {
                "name": "main",
                "image": "busybox:1",
                "resources": {"requests": {"cpu": draw.choice(["8", "16", "30"])}},
            }
        ],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": draw.choice([1, 30, 300]),
    }
    if chosen := draw.choice(PRIORITIES):
        spec["priorityClassName"] = chosen
    if draw.random() < 0.5:
        name = draw.choice(TEMPLATES)
        spec["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": name}]
    annotations = {"redra.dev/stop-seconds": draw.choice(SECONDS[:3])}
    if draw.random() < 0.8:
        annotations["redra.dev/run-seconds"] = draw.choice(SECONDS)
    metadata = {
        "name": world.name("crowd"),
        "namespace": draw.choice(NAMESPACES),
        "annotations": annotations,
    }
    world.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def crowded_world(seed: int) -> FleetWorld:
    world = FleetWorld(seed)
    world.cluster.create("scheduling.k8s.io/v1", "PriorityClass", "later", value=-10)
    acts = {**ACTS, crowd: 3 * ACTS[next(iter(ACTS))]}
    for _ in range(STEPS):
        world.step(acts, crash=CRASH)
    world.end()
    return world


@pytest.mark.parametrize("seed", draws.by_turns([[1, 2]]))
def test_crowded_world_stays_sound_and_evicts_for_more_important_pods_only(seed):
    world = crowded_world(seed)
    priorities = {
        event.uid: json_tree.integer(event.object, "spec", "priority") or 0
        for event in world.cluster.line.events
        if event.key[:2] == ObjectKey("", "pods", "", "")[:2]
    }
    told = [
        event.object
        for event in world.cluster.line.events
        if event.key.resource == "events" and event.object.get("reason") == "Preempted"
    ]
    assert told, f"seed {seed} evicts nobody"
    for tree in told:
        victim, other = tree["involvedObject"]["uid"], tree["related"]["uid"]
        assert priorities[victim] < priorities[other], f"seed {seed}: {tree['message']}"
