"""Questions about bound pods: ending, evicted, spared, preempted, finished, not reserved."""

import random

from app.domain.values import timestamps
from tests.cluster import DRIVER, Cluster
from tests.worlds.planted.plant import Cause, Plant, Sow
from tests.worlds.planted.waiting import names, revision_of

RULE_TAINT = "example.com/bad:NoExecute"


def _one_pod(rng: random.Random, **request: object) -> tuple[Cluster, str]:
    """A pod that runs with one device of one node."""
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    cluster.slice(node, rng.randint(1, 3))
    cluster.device_class()
    cluster.claim("mine", **request)
    cluster.pod("pod", claim="mine")
    cluster.settle()
    return cluster, node


def bound_without_reservation(rng: random.Random) -> Plant:
    """The pod sets its own nodeName: its claim is not allocated, and the kubelet refuses it."""
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    cluster.slice(node, 2)
    cluster.device_class()
    claim = names(rng, 1, "claim")[0]
    cluster.claim(claim)
    cluster.pod("pod", claim=claim, nodeName=node)
    cluster.settle()
    made = next(e.revision for e in cluster.line.events if e.key.name == "pod")
    return Plant(
        cluster=cluster, kind="pod", name="pod",
        causes=(
            Cause(words=(claim, "not allocated")),
            Cause(words=("spec.nodeName", "alice"), revision=made),
        ),
        never=(f"runs on node {node}",),
    )  # fmt: skip


def terminating(rng: random.Random) -> Plant:
    cluster, _ = _one_pod(rng)
    finalizer = f"example.com/hold{rng.randrange(1000)}"
    cluster.patch("pods", "pod", {"metadata": {"finalizers": [finalizer]}})
    cluster.wait(rng.randint(5, 50))
    forced = rng.random() < 0.5
    asked_at = timestamps.seconds_text(cluster.line.now)
    if forced:
        cluster.delete("pods", "pod", grace_seconds=0)
    else:
        cluster.delete("pods", "pod")
    revision = revision_of(cluster, "pods", "pod")
    cluster.settle()
    words = ("alice", asked_at, "forced" if forced else "30 s")
    return Plant(
        cluster=cluster, kind="pod", name="pod",
        causes=(Cause(words=words, revision=revision), Cause(words=("finalizer", finalizer))),
    )  # fmt: skip


def waits_for_kubelet(rng: random.Random) -> Plant:
    cluster, node = _one_pod(rng)
    cluster.delete("pods", "pod")
    revision = revision_of(cluster, "pods", "pod")
    cluster.settle()
    return Plant(
        cluster=cluster, kind="pod", name="pod",
        causes=(
            Cause(words=("alice", "30 s"), revision=revision),
            Cause(words=("kubelet", node)),
        ),
    )  # fmt: skip


def evicted_by_rule(rng: random.Random) -> Plant:
    cluster, node = _one_pod(rng)
    rule = names(rng, 1, "rule")[0]
    cluster.rule(rule)
    revision = revision_of(cluster, "devicetaintrules", rule)
    cluster.wait(20)
    words = ("mine", f"{DRIVER}/{node}/gpu-0", RULE_TAINT, rule)
    return Plant(
        cluster=cluster, kind="pod", name="pod", causes=(Cause(words=words, revision=revision),)
    )  # fmt: skip


def tolerated_for_a_while(rng: random.Random) -> Plant:
    seconds = rng.randint(100, 900)
    tolerations = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]
    cluster, node = _one_pod(rng, tolerations=tolerations)
    rule = names(rng, 1, "rule")[0]
    cluster.wait(rng.randint(1, 50))
    due = timestamps.seconds_text(cluster.line.now + seconds * timestamps.SECOND)
    cluster.rule(rule)
    cluster.settle()
    return Plant(
        cluster=cluster, kind="pod", name="pod",
        causes=(Cause(words=(f"{DRIVER}/{node}/gpu-0", RULE_TAINT, rule, due, "Exists")),),
    )  # fmt: skip


def tolerated_for_ever(rng: random.Random) -> Plant:
    tolerations = [{"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}]
    cluster, node = _one_pod(rng, tolerations=tolerations)
    rule = names(rng, 1, "rule")[0]
    cluster.rule(rule)
    cluster.settle()
    return Plant(
        cluster=cluster, kind="pod", name="pod",
        causes=(
            Cause(words=(f"{DRIVER}/{node}/gpu-0", RULE_TAINT, rule, "tolerated", "request gpu")),
        ),
    )  # fmt: skip


def extended_resource_stays(rng: random.Random) -> Plant:
    """Known issue C3: the claim of an extended resource is not evicted."""
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    cluster.slice(node, 2)
    resource = f"example.com/gpu{rng.randrange(100)}"
    spec = {"extendedResourceName": resource}
    cluster.create("resource.k8s.io/v1", "DeviceClass", "gpu", spec=spec)
    cluster.pod("pod", requests={resource: "1"})
    cluster.settle()
    rule = names(rng, 1, "rule")[0]
    cluster.rule(rule)
    cluster.wait(20)
    return Plant(
        cluster=cluster, kind="pod", name="pod",
        causes=(Cause(words=(f"{DRIVER}/{node}/gpu-0", rule, "extended resource", "C3")),),
    )  # fmt: skip


def preempted(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node, cpu="4")
    low, high = rng.randint(1, 50), rng.randint(100, 900)
    for name, value in (("low", low), ("high", high)):
        cluster.create("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
    cluster.pod("victim", requests={"cpu": "3"}, priorityClassName="low")
    cluster.settle()
    big = names(rng, 1, "big")[0]
    cluster.pod(big, requests={"cpu": "3"}, priorityClassName="high")
    cluster.settle()
    words = (f"default/{big}", f"priority {high}", str(low))
    return Plant(cluster=cluster, kind="pod", name="victim", causes=(Cause(words=words),))


def finished(rng: random.Random) -> Plant:
    cluster, node = _one_pod(rng)
    phase = rng.choice(["Succeeded", "Failed"])
    cluster.finish("pod", phase)
    revision = revision_of(cluster, "pods", "pod")
    cluster.settle()
    return Plant(
        cluster=cluster, kind="pod", name="pod",
        causes=(Cause(words=(phase, node), revision=revision),),
        never=(f"runs on node {node}",),
    )  # fmt: skip


def emptiest_node_wins(rng: random.Random) -> Plant:
    """Three nodes, two of them busy: the pod goes to the idle one for its score."""
    cluster = Cluster()
    nodes = names(rng, 3, "node")
    idle = rng.choice(nodes)
    for node in nodes:
        cluster.node(node, cpu="10")
        if node != idle:
            cluster.pod(f"busy-{node}", requests={"cpu": "6"}, nodeName=node)
    cluster.settle()
    cluster.pod("pod", requests={"cpu": "1"})
    cluster.settle()
    others = [node for node in nodes if node != idle]
    return Plant(
        cluster=cluster, kind="pod", name="pod",
        causes=(Cause(words=(idle, "score")), *(Cause(words=(node, "score")) for node in others)),
    )  # fmt: skip


SOWN: tuple[Sow, ...] = (
    bound_without_reservation,
    terminating,
    waits_for_kubelet,
    evicted_by_rule,
    tolerated_for_a_while,
    tolerated_for_ever,
    extended_resource_stays,
    preempted,
    finished,
    emptiest_node_wins,
)
