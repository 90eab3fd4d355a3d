"""Draws a change to a used world, as what `blast` is asked and as what is done to the cluster."""

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass

from app.analysis.blast import compare
from app.analysis.blast.compare import ProposedCordon, ProposedDeletion, ProposedDrain, Put
from app.domain.errors import TooManyRequests
from app.domain.log import ObjectKey
from app.domain.objects.write import eviction
from tests.cluster import DRIVER, USER, Cluster
from tests.truth.blasts.worlds import UsedWorld
from tests.truth.waiting.worlds import BAD, BROKEN, SELECT_LARGE

Act = Callable[[Cluster], None]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A change: its kind, what is proposed, and how it is carried out.

    `targets` are the pods that it deletes itself.
    """

    kind: str
    proposed: compare.Change
    act: Act
    name: str = ""


def draw(world: UsedWorld, seed: int) -> Drawn:
    """A change of any kind that the world has an object for."""
    pick = random.Random(f"change {seed}")
    kinds = sorted(_KINDS)
    while True:
        drawn = _KINDS[pick.choice(kinds)](world, pick)
        if drawn is not None:
            return drawn


def _rule(world: UsedWorld, pick: random.Random) -> Drawn:
    selector: dict = {"driver": DRIVER}
    if pick.random() < 0.6:
        selector["pool"] = pick.choice([*world.nodes, "net"])
        if pick.random() < 0.4:
            selector["device"] = pick.choice(("gpu-0", "gpu-1", "half-0", "card-0", "whole"))
    effect = pick.choices(("NoExecute", "NoSchedule"), (4, 1))[0]
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "proposed"},
        "spec": {
            "deviceSelector": selector,
            "taint": {"key": pick.choice((BAD, BROKEN)), "effect": effect},
        },
    }
    return _put(tree, f"rule {effect}")


def _deletion(resource: str, kind: str) -> Callable[[UsedWorld, random.Random], Drawn | None]:
    def drawn(world: UsedWorld, pick: random.Random) -> Drawn | None:
        names = world.cluster.names(resource)
        if not names:
            return None
        name = pick.choice(names)
        return Drawn(
            f"{kind} deleted",
            ProposedDeletion(kind=kind, name=name),
            lambda cluster: cluster.delete(resource, name),
            name,
        )

    return drawn


def _cordon(world: UsedWorld, pick: random.Random) -> Drawn:
    node = pick.choice(world.nodes)
    return Drawn("cordon", ProposedCordon(node=node), lambda cluster: _close(cluster, node), node)


def _close(cluster: Cluster, node: str) -> None:
    cluster.patch("nodes", node, {"spec": {"unschedulable": True}})


def _uncordon(world: UsedWorld, pick: random.Random) -> Drawn | None:
    closed = [
        name
        for name in world.nodes
        if world.cluster.must("nodes", name)["spec"].keys() & {"unschedulable", "taints"}
    ]
    if not closed:
        return None
    tree = _plain(world.cluster.must("nodes", pick.choice(closed)), "v1", "Node")
    tree["spec"] = {}
    return _put(tree, "node opened")


def _drain(world: UsedWorld, pick: random.Random) -> Drawn:
    node = pick.choice(world.nodes)
    return Drawn("drain", ProposedDrain(node=node), lambda cluster: _empty(cluster, node), node)


def _empty(cluster: Cluster, node: str) -> None:
    """Does the first round of `kubectl drain`."""
    _close(cluster, node)
    for name in sorted(cluster.names("pods")):
        pod = cluster.must("pods", name)
        if pod["spec"].get("nodeName") != node or "deletionTimestamp" in pod["metadata"]:
            continue
        line, key = cluster.line, ObjectKey("", "pods", "default", name)
        try:
            permission = eviction.judge(line.views.objects, key, line.now)
        except TooManyRequests:
            continue
        if permission.write is not None:
            line.submit(permission.write, actor=USER)
        cluster.delete("pods", name)


def _slice(world: UsedWorld, pick: random.Random) -> Drawn | None:
    """What a driver publishes anew: fewer, more, tainted, lesser or incomplete."""
    names = [name for name in world.cluster.names("resourceslices") if "sets" not in name]
    if not names:
        return None
    tree = _plain(
        world.cluster.must("resourceslices", pick.choice(names)),
        "resource.k8s.io/v1",
        "ResourceSlice",
    )
    spec = tree["spec"]
    devices = spec["devices"]
    what = pick.choice(
        ("fewer", "more", "NoExecute", "NoSchedule", "untainted", "halfway", "newer", "other")
    )
    match what:
        case "fewer":
            devices.pop(pick.randrange(len(devices)))
        case "more":
            spec["devices"] = [*devices, *({"name": f"new-{number}"} for number in range(2))]
            if spec.get("perDeviceNodeSelection"):
                for device in spec["devices"]:
                    device.setdefault("nodeName", world.nodes[0])
        case "NoExecute" | "NoSchedule":
            pick.choice(devices)["taints"] = [{"key": BROKEN, "effect": what, "value": "yes"}]
        case "untainted":
            for device in devices:
                device.pop("taints", None)
        case "halfway":
            spec["pool"]["resourceSliceCount"] += 1
        case "newer":
            spec["pool"]["generation"] += 1
        case "other":
            for device in devices:
                device.get("attributes", {}).pop("model", None)
    return _put(tree, f"slice {what}")


def _node(world: UsedWorld, pick: random.Random) -> Drawn:
    tree = _plain(world.cluster.must("nodes", world.nodes[0]), "v1", "Node")
    tree["metadata"] = {
        "name": "fresh",
        "labels": {"kubernetes.io/hostname": "fresh", "zone": pick.choice("ab")},
    }
    tree["spec"] = {}
    drawn = _put(tree, "node new")

    def act(cluster: Cluster) -> None:
        drawn.act(cluster)
        cluster.patch("nodes", "fresh", {"spec": {"taints": None}})

    return Drawn(drawn.kind, drawn.proposed, act, "fresh")


def _class(world: UsedWorld, pick: random.Random) -> Drawn:
    name = pick.choice(("gpu", "large"))
    tree = _plain(world.cluster.must("deviceclasses", name), "resource.k8s.io/v1", "DeviceClass")
    expression = pick.choice((SELECT_LARGE, f'device.driver == "{DRIVER}"'))
    tree["spec"]["selectors"] = [{"cel": {"expression": expression}}]
    return _put(tree, "class")


def _plain(tree: dict, version: str, kind: str) -> dict:
    kept = {key: value for key, value in tree.items() if key in ("spec", "status")}
    metadata = {key: tree["metadata"][key] for key in ("name", "labels") if key in tree["metadata"]}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": copy.deepcopy(metadata),
        **copy.deepcopy(kept),
    }


_RESOURCES = {
    "DeviceTaintRule": "devicetaintrules",
    "Node": "nodes",
    "ResourceSlice": "resourceslices",
    "DeviceClass": "deviceclasses",
}


def _put(tree: dict, kind: str) -> Drawn:
    def act(cluster: Cluster) -> None:
        resource, name = _RESOURCES[tree["kind"]], tree["metadata"]["name"]
        old = cluster.get(resource, name)
        if old is None:
            cluster.apply(copy.deepcopy(tree))
        else:
            cluster.update(resource, {**copy.deepcopy(old), "spec": copy.deepcopy(tree["spec"])})

    return Drawn(kind, Put(tree=copy.deepcopy(tree)), act, tree["metadata"]["name"])


_KINDS: dict[str, Callable[[UsedWorld, random.Random], Drawn | None]] = {
    "rule": _rule,
    "rule again": _rule,
    "rule deleted": _deletion("devicetaintrules", "devicetaintrule"),
    "cordon": _cordon,
    "uncordon": _uncordon,
    "drain": _drain,
    "node deleted": _deletion("nodes", "node"),
    "pod deleted": _deletion("pods", "pod"),
    "claim deleted": _deletion("resourceclaims", "resourceclaim"),
    "slice deleted": _deletion("resourceslices", "resourceslice"),
    "class deleted": _deletion("deviceclasses", "deviceclass"),
    "slice": _slice,
    "slice again": _slice,
    "node": _node,
    "class": _class,
}
