"""Nodes that are cordoned, come and go, and pods that are deleted, where the verdict is planted."""

from app.analysis.blast.compare import ProposedCordon, ProposedDeletion, Put
from app.analysis.blast.radius import Fate, Prospect
from app.domain.values import json_tree
from tests.cluster import DRIVER, Cluster
from tests.unit.analysis.blast.worlds import ask


def full(*, waits: bool = True) -> Cluster:
    """A node with one device, which a pod holds, and a pod that waits for another."""
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    cluster.node("n1")
    cluster.slice("n1", devices=1)
    cluster.pod("holds", template="gpu")
    cluster.settle()
    if waits:
        cluster.pod("waits", template="gpu")
        cluster.settle()
    return cluster


def prospects(answer) -> dict[str, tuple[Prospect, str]]:
    return {pod.name: (pod.prospect, pod.node) for pod in answer.waiting}


def test_cordon_spares_what_runs_and_keeps_out_what_waits():
    cluster = full(waits=False)
    cluster.node("n2")
    cluster.slice("n2", devices=1)
    cluster.settle()
    cluster.pod("comes", template="gpu")
    # Its claim is there and nobody has tried it yet.
    claims = next(one for one in cluster.line.controllers if one.name == "claims")
    while (plan := claims.step(cluster.line.views, cluster.line.now)) is not None:
        cluster.line._execute(claims, plan)
    answer = ask(cluster, ProposedCordon(node="n2"))
    assert (answer.effects[0].action, answer.effects[0].kind) == ("cordoned", "Node")
    assert prospects(answer) == {"comes": (Prospect.KEPT, "n2")}
    assert not answer.pods
    assert not ask(cluster, ProposedCordon(node="n1")).waiting


def test_deleted_pod_ends_and_its_device_goes_to_one_that_waits():
    answer = ask(full(), ProposedDeletion(kind="pod", name="default/holds"))
    assert [(pod.name, pod.fate) for pod in answer.pods] == [("holds", Fate.DELETED)]
    assert (answer.totals["pods_deleted"], answer.totals["pods_evicted"]) == (1, 0)
    assert prospects(answer) == {"waits": (Prospect.FREED, "n1")}


def test_deleted_node_takes_its_pods_and_its_slices():
    cluster = full()
    uid = cluster.must("nodes", "n1")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
    body = {"metadata": {"ownerReferences": [owner]}}
    cluster.patch("resourceslices", "n1-slice", body)
    cluster.settle()
    answer = ask(cluster, ProposedDeletion(kind="node", name="n1"))
    assert [(pod.name, pod.fate) for pod in answer.pods] == [("holds", Fate.ORPHANED)]
    assert [(device.device, device.change) for device in answer.devices] == [
        (f"{DRIVER}/n1/gpu-0", "gone")
    ]
    assert not answer.waiting


def test_new_node_with_devices_lets_a_pod_in():
    cluster = full()
    other = Cluster()
    other.node("n2")
    other.slice("n2", devices=1)
    other.settle()
    changes = []
    for tree in (other.must("nodes", "n2"), other.must("resourceslices", "n2-slice")):
        plain = json_tree.copy(tree)
        plain["metadata"] = {"name": tree["metadata"]["name"]}
        changes.append(Put(tree=plain))
    answer = ask(cluster, *changes)
    assert prospects(answer) == {"waits": (Prospect.FITS, "n2")}
    tainted = json_tree.copy(changes[0].tree)
    tainted["spec"]["taints"] = [{"key": "example.com/new", "effect": "NoSchedule"}]
    assert not ask(cluster, Put(tree=tainted), changes[1]).waiting
