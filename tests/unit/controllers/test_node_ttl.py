"""How long kubelets may keep what they have read, by the size of the cluster."""

import pytest

from app.domain.controllers.nodes.ttl import ANNOTATION
from app.domain.controllers.registry import ControllerOptions
from app.domain.values import json_tree
from tests.cluster import Cluster

QUIET = ControllerOptions(off=frozenset({"node-lifecycle", "scheduling"}))


def told(cluster: Cluster, name: str) -> str:
    return json_tree.text(cluster.must("nodes", name), "metadata", "annotations", ANNOTATION)


def add(cluster: Cluster, first: int, count: int) -> None:
    for number in range(first, first + count):
        cluster.node(f"n{number}")
        cluster.settle()


def test_node_is_told_as_soon_as_it_is_there_by_an_account_of_its_own():
    cluster = Cluster(node_ttl=True)
    cluster.node("n1", zone="a")
    cluster.settle()
    assert told(cluster, "n1") == "0"
    (write,) = [
        event for event in cluster.line.events if event.stamp.actor.user.endswith(":ttl-controller")
    ]
    assert write.stamp.verb == "patch"
    managers = [entry["manager"] for entry in write.object["metadata"]["managedFields"]]
    assert "kube-controller-manager" in managers


def test_steps_overlap_and_nodes_are_told_when_they_change():
    cluster = Cluster(node_ttl=True, options=QUIET)
    add(cluster, 1, 100)
    assert told(cluster, "n100") == "0"
    add(cluster, 101, 1)
    assert (told(cluster, "n101"), told(cluster, "n1")) == ("15", "0")
    cluster.patch("nodes", "n1", {"metadata": {"labels": {"a": "b"}}})
    cluster.settle()
    assert told(cluster, "n1") == "15"
    for number in range(91, 102):
        cluster.delete("nodes", f"n{number}")
    cluster.patch("nodes", "n2", {"metadata": {"labels": {"a": "b"}}})
    cluster.settle()
    assert told(cluster, "n2") == "15", "90 nodes are still in the second step"
    cluster.delete("nodes", "n90")
    cluster.patch("nodes", "n1", {"metadata": {"labels": {"a": "c"}}})
    cluster.settle()
    assert told(cluster, "n1") == "0"


@pytest.mark.parametrize("text", ["soon", "9" * 5_000])
def test_wrong_annotation_is_put_right_once(text):
    cluster = Cluster(node_ttl=True, options=QUIET)
    cluster.node("n1")
    cluster.settle()
    cluster.patch("nodes", "n1", {"metadata": {"annotations": {ANNOTATION: text}}})
    before = cluster.line.head.revision
    cluster.settle()
    assert told(cluster, "n1") == "0"
    assert cluster.line.head.revision == before + 1
