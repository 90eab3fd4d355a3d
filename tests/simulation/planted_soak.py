"""A seeded soak of one cluster, and defects that can be planted in its engine.

Each defect breaks one rule in some situations only, as real defects do, and names that rule. The
defect is removed at the end of the block.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import anyio

from app.adapters.history.formats.bundle import BundleWriter
from app.bootstrap.stores import memory_store
from app.domain.allocation.state import AllocatedState
from app.domain.controllers.scheduling.binding_cycle import writes
from app.domain.values.fields import dra, meta
from app.service import exporting
from tests.cluster import Cluster, claim_spec

NODES = 4
COUNTERS = [{"name": "memory", "counters": {"size": {"value": "4"}}}]
DEVICES = [
    {"name": f"gpu-{n}", "attributes": {"index": {"int": n}, "kind": {"string": "gpu"}}}
    for n in range(4)
]
PARTITIONS = [
    {
        "name": f"part-{n}",
        "attributes": {"kind": {"string": "part"}},
        "consumesCounters": [{"counterSet": "memory", "counters": {"size": {"value": "2"}}}],
    }
    for n in range(4)
]


@dataclass(frozen=True)
class Defect:
    """A defect, and the rule that it breaks."""

    rule: str
    plant: Callable[[], AbstractContextManager[object]]


def _forget_pairs() -> AbstractContextManager[object]:
    """A claim with two devices leaves them free."""
    count = AllocatedState.add_claim

    def add_claim(self, claim) -> None:
        if len(dra.results(claim)) < 2:
            count(self, claim)

    return mock.patch.object(AllocatedState, "add_claim", add_claim)


def _overdraw() -> AbstractContextManager[object]:
    """A partition in use draws nothing from the counters of its pool."""
    counts = AllocatedState.is_allocated

    def is_allocated(self, device) -> bool:
        return counts(self, device) and not device[2].startswith("part-")

    return mock.patch.object(AllocatedState, "is_allocated", is_allocated)


def _leave_unprotected() -> AbstractContextManager[object]:
    """A claim without an owner gets no finalizer."""
    reserve = writes._reserve_claim

    def reserve_claim(claim, *arguments, **options):
        commands = list(reserve(claim, *arguments, **options))
        return commands if meta.owners(claim.tree) else commands[-1:]

    return mock.patch.object(writes, "_reserve_claim", reserve_claim)


DEFECTS: Mapping[str, Defect] = {
    "forgets": Defect("device-in-one-claim", _forget_pairs),
    "overdraws": Defect("counters-not-overdrawn", _overdraw),
    "unprotected": Defect("allocation-has-finalizer", _leave_unprotected),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plants a defect in the engine during the block."""
    with DEFECTS[name].plant():
        yield


def soak(seed: int, pods: int) -> Cluster:
    """Runs pods that come and go, with own claims, shared claims, pairs and partitions."""
    chance = random.Random(f"soak {seed}")
    cluster = Cluster(namespaces=("default", "other"))
    cluster.device_class("gpu", 'device.attributes["gpu.example.com"].kind == "gpu"')
    cluster.device_class("part", 'device.attributes["gpu.example.com"].kind == "part"')
    for number in range(NODES):
        node = f"node-{number}"
        cluster.node(node)
        cluster.slice(node, [*DEVICES])
        cluster.slice(node, [*PARTITIONS], name=f"{node}-parts", pool=f"{node}-parts")
        _with_counters(cluster, f"{node}-parts")
    cluster.template("one")
    cluster.template("two", count=2)
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        "part",
        spec={"spec": claim_spec("part")},
    )
    running: list[str] = []
    for number in range(pods):
        name = f"pod-{number}"
        kind = chance.choice(("one", "one", "part", "two", "shared"))
        if kind == "shared":
            cluster.claim(f"claim-{number}")
            cluster.pod(name, claim=f"claim-{number}")
        else:
            cluster.pod(name, template=kind)
        cluster.settle()
        running.append(name)
        cluster.wait(chance.random() * 5)
        if len(running) > 8:
            ended = running.pop(chance.randrange(len(running)))
            cluster.delete("pods", ended, grace_seconds=0)
            cluster.settle()
    return cluster


def _with_counters(cluster: Cluster, pool: str) -> None:
    """Adds a second slice with the counters of the pool."""
    tree = cluster.must("resourceslices", pool)
    spec = {**tree["spec"], "pool": {**tree["spec"]["pool"], "resourceSliceCount": 2}}
    cluster.update("resourceslices", {**tree, "spec": spec})
    spec = {name: value for name, value in spec.items() if name != "devices"}
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceSlice",
        f"{pool}-counters",
        spec={**spec, "sharedCounters": COUNTERS},
    )


def write(cluster: Cluster, path: Path) -> int:
    """Writes the soak as a bundle; returns the number of its events."""

    async def export() -> None:
        store = memory_store()
        info = await store.log.create_history(
            "soak",
            seed=1,
            settings=cluster.profile.settings(),
            created=cluster.line.events[0].stamp.time,
        )
        head = await store.log.head(info.id)
        await store.log.append(info.id, expected=head, events=cluster.line.events)
        info = await store.log.find_history("soak")
        await exporting.export_history(
            store.log, info, BundleWriter(path), program="tests", file=path.name
        )

    anyio.run(export)
    return len(cluster.line.events)
