"""A second seeded soak, with tainted devices, constraints and claims of several pods, and defects.

What it has beside `planted_soak`: devices with taints of both effects and requests that tolerate
one of them, rings whose names differ in case alone, claims that two pods share, two drivers whose
pools have one name, and slices that are published again.
"""

import random
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from unittest import mock

from app.domain.allocation import constraints, counters
from app.domain.controllers.claims import claim_sync
from app.domain.devices import taints
from app.domain.values.tolerations import fits
from tests.cluster import DRIVER, Cluster, claim_spec
from tests.simulation.planted_soak import COUNTERS, PARTITIONS, Defect

NODES = 5
RINGS = ("Ring-A", "ring-a", "Ring-B")
OF_ONE_POOL = "node-0-parts"
TAINTS = (
    {"key": "example.com/hot", "effect": "NoSchedule", "value": "yes"},
    {"key": "example.com/hot", "effect": "NoExecute", "value": "yes"},
)


def _forget_one_pool() -> AbstractContextManager[object]:
    """The counters of one pool are full at the beginning of each attempt."""
    available = counters.available_of

    def available_of(pool, state):
        if pool.id[1] == OF_ONE_POOL:
            state = mock.Mock(is_allocated=lambda device: False)
        return available(pool, state)

    return mock.patch.object(counters, "available_of", available_of)


def _tolerate_any_effect() -> AbstractContextManager[object]:
    """A toleration with the operator Exists tolerates taints of its key with any effect."""
    tolerates = taints.tolerates

    def broken(toleration, taint) -> bool:
        if toleration.operator != "Exists":
            return tolerates(toleration, taint)
        return fits(toleration.key, "Exists", "", taint_key=taint.key, taint_value=taint.value)

    return mock.patch.object(taints, "tolerates", broken)


def _keep_a_reservation() -> AbstractContextManager[object]:
    """A claim of several consumers keeps the first of them after its pod is gone."""
    sort_out = claim_sync._sort_out

    def broken(objects, namespace, claim, running):
        remaining, removed = sort_out(objects, namespace, claim, running)
        reserved = claim.get("status", {}).get("reservedFor", ())
        if len(reserved) > 1 and removed and removed[0]["name"] == reserved[0]["name"]:
            return [reserved[0], *remaining], removed[1:]
        return remaining, removed

    return mock.patch.object(claim_sync, "_sort_out", broken)


def _fold_case() -> AbstractContextManager[object]:
    """matchAttribute takes texts that differ in case alone for equal."""
    facts = constraints._facts

    def folded(attribute):
        text = attribute.get("string")
        return facts({**attribute, "string": text.casefold()} if text else attribute)

    return mock.patch.object(constraints, "_facts", folded)


DEFECTS: Mapping[str, Defect] = {
    "any-effect": Defect("placement-respects-taints", _tolerate_any_effect),
    "folds-case": Defect("constraint-holds", _fold_case),
    "keeps-reservation": Defect("reservation-names-pod", _keep_a_reservation),
    "one-pool": Defect("counters-not-overdrawn", _forget_one_pool),
}


def soak(seed: int, pods: int) -> Cluster:
    """Runs pods that come and go, alone and in pairs, some of them with tolerations."""
    chance = random.Random(f"varied soak {seed}")
    cluster = Cluster(namespaces=("default", "other"))
    for kind in ("gpu", "part"):
        cluster.device_class(kind, f'device.attributes["{DRIVER}"].kind == "{kind}"')
    for number in range(NODES):
        _publish(cluster, chance, f"node-{number}")
    _templates(cluster)
    running: list[str] = []
    for number in range(pods):
        name = f"pod-{number}"
        kind = chance.choice(("one", "part", "part", "part", "ring", "ring", "hot", "shared"))
        names = [name]
        if kind == "shared":
            cluster.claim(f"claim-{number}")
            names.append(f"{name}-too")
        for each in names:
            made = {"claim": f"claim-{number}"} if kind == "shared" else {"template": kind}
            cluster.pod(each, **made)
            cluster.settle().wait(chance.random() * 12)
        running += names
        while len(running) > 18:
            cluster.kill(running.pop(chance.randrange(len(running))))
            cluster.settle()
        if chance.random() < 0.05:
            _publish_again(cluster, f"node-{chance.randrange(NODES)}")
    # What stays wrong for a minute shows at a later event.
    cluster.wait(90)
    cluster.node("late")
    return cluster.settle()


def _templates(cluster: Cluster) -> None:
    cluster.template("one")
    tolerations = [{"key": "example.com/hot", "operator": "Exists", "effect": "NoExecute"}]
    ring = claim_spec(count=2)
    ring["devices"]["constraints"] = [{"matchAttribute": f"{DRIVER}/ring"}]
    specs = {
        "part": claim_spec("part"),
        "hot": claim_spec(tolerations=tolerations),
        "ring": ring,
    }
    for name, spec in specs.items():
        cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", name, spec={"spec": spec})


def _publish(cluster: Cluster, chance: random.Random, node: str) -> None:
    """A node with devices in rings, some tainted, and a pool of partitions with its counters."""
    cluster.node(node)
    devices: Sequence[dict[str, object]] = [
        {
            "name": f"gpu-{number}",
            "attributes": {
                "kind": {"string": "gpu"},
                "ring": {"string": chance.choice(RINGS)},
            },
            **({"taints": [chance.choice(TAINTS)]} if chance.random() < 0.3 else {}),
        }
        for number in range(4)
    ]
    cluster.slice(node, [*devices])
    pool = {"name": f"{node}-parts", "generation": 1, "resourceSliceCount": 2}
    shared = {"pool": pool, "sharedCounters": COUNTERS, "devices": None}
    cluster.slice(node, [*PARTITIONS], name=f"{node}-parts", pool=pool["name"])
    tree = cluster.must("resourceslices", f"{node}-parts")
    cluster.update("resourceslices", {**tree, "spec": {**tree["spec"], "pool": pool}})
    spec = {name: value for name, value in (tree["spec"] | shared).items() if value is not None}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", f"{node}-counters", spec=spec)


def _publish_again(cluster: Cluster, node: str) -> None:
    """The same devices under the next generation."""
    tree = cluster.must("resourceslices", f"{node}-slice")
    pool = tree["spec"]["pool"]
    pool = {**pool, "generation": pool["generation"] + 1}
    cluster.update("resourceslices", {**tree, "spec": {**tree["spec"], "pool": pool}})
    cluster.settle()
