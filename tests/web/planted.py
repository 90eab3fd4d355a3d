"""Histories made by machine, with what must be found in them."""

import random
from dataclasses import dataclass, field

from app.domain.log import Actor
from app.domain.objects.write.commands import RecordFact
from tests.api.serving import CLAIMS, claim, pod

PODS = "/api/v1/namespaces/default/pods"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
DRIVER = "gpu.example.com"
CAUSES = ("cannot allocate all claims", "Insufficient cpu", "node(s) had untolerated taint(s)")


@dataclass
class Planted:
    """What was put into a history: pods by the cause for which they wait, and so on."""

    waiting: dict = field(default_factory=dict)
    evicted: set = field(default_factory=set)
    orphaned: set = field(default_factory=set)
    incomplete: set = field(default_factory=set)


async def plant(server, seed):
    """Fill the default history; returns what is wrong in it."""
    chance = random.Random(seed)
    planted = Planted()
    for cause in chance.sample(CAUSES, chance.randint(1, len(CAUSES))):
        for _ in range(chance.randint(1, 7)):
            name = f"waits-{sum(map(len, planted.waiting.values()))}"
            planted.waiting.setdefault(cause, set()).add(name)
            await server.post(PODS, pod(name))
            count = chance.randint(1, 9)
            text = f"0/{count} nodes are available: {count} {cause}. preemption: not helpful."
            await _condition(server, name, "PodScheduled", "False", "Unschedulable", text)
    for number in range(chance.randint(0, 4)):
        name = f"evicted-{number}"
        planted.evicted.add(name)
        await server.post(PODS, pod(name, nodeName="node-1"))
        await _condition(server, name, "DisruptionTarget", "True", "Drained", "for repair")
    for number in range(chance.randint(0, 3)):
        planted.orphaned.add(f"orphan-{number}")
        await orphan(server, f"orphan-{number}")
    for number in range(chance.randint(0, 3)):
        planted.incomplete.add(f"pool-{number}")
        await server.post(SLICES, slice_of(f"pool-{number}", of=2))
    for number in range(chance.randint(1, 3)):
        await server.post(SLICES, slice_of(f"whole-{number}"))
    return planted


async def _condition(server, name, kind, status, reason, message):
    condition = {"type": kind, "status": status, "reason": reason, "message": message}
    await server.patch(f"{PODS}/{name}/status", {"status": {"conditions": [condition]}})


async def orphan(server, name):
    """A claim that is reserved for a pod which nobody has seen."""
    await server.post(CLAIMS, claim(name))
    result = {"request": "gpu", "driver": DRIVER, "pool": "whole-0", "device": f"d-{name}"}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": f"nobody-{name}", "uid": f"u-{name}"}],
    }
    await server.patch(f"{CLAIMS}/{name}/status", {"status": status})


def slice_of(pool, *, of=1, devices=2, **device):
    """One slice of a pool that has `of` slices."""
    return {
        "metadata": {"name": f"slice-{pool}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "node-1",
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": of},
            "devices": [{"name": f"gpu-{number}", **device} for number in range(devices)],
        },
    }


async def note_fact(server, **body):
    """A fact of the log that is about no object."""
    runtime = await server.histories.open("default")
    await runtime.submit(RecordFact(**body), actor=Actor(user="redra"))
