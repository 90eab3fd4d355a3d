"""The node controller registers nodes, copies labels and taints cordoned nodes."""

from app.domain.values import json_tree
from tests.cluster import Cluster, check_decisions


def ready_node(**spec):
    cluster = Cluster()
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n", "labels": {"kubernetes.io/arch": "arm64"}},
            "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
    )
    cluster.settle()
    return cluster


def test_new_node_is_registered_untainted_and_labelled_in_this_order():
    cluster = ready_node()
    outcomes = [outcome for name, outcome in cluster.decisions("node-lifecycle") if name == "n"]
    assert outcomes == ["Registered", "Untainted", "Labelled"]
    assert cluster.messages("n") == ["Node n event: Registered Node n in Controller"]
    node = cluster.must("nodes", "n")
    assert node["metadata"]["labels"]["beta.kubernetes.io/arch"] == "arm64"
    assert not json_tree.objects(node, "spec", "taints")


def test_node_is_registered_once():
    cluster = ready_node()
    cluster.wait(600)
    assert len(cluster.messages("n")) == 1


def test_cordoned_node_is_tainted_until_it_is_uncordoned():
    cluster = ready_node(unschedulable=True)
    taints = json_tree.objects(cluster.must("nodes", "n"), "spec", "taints")
    assert [(taint["key"], taint["effect"]) for taint in taints] == [
        ("node.kubernetes.io/unschedulable", "NoSchedule")
    ]
    assert taints[0]["timeAdded"] == "2026-01-02T03:00:00Z"
    tree = json_tree.copy(cluster.must("nodes", "n"))
    del tree["spec"]["unschedulable"]
    cluster.update("nodes", tree)
    cluster.settle()
    assert not json_tree.objects(cluster.must("nodes", "n"), "spec", "taints")


def test_refused_event_keeps_no_node_tainted():
    """Events of nodes go to the namespace `default`; without it nothing can be said."""
    cluster = Cluster(namespaces=())
    cluster.node("n")
    cluster.settle()
    assert not json_tree.objects(cluster.must("nodes", "n"), "spec", "taints")
    assert cluster.messages("n") == []
    cluster.restart()
    cluster.wait(60)
    assert [found for _, found in cluster.decisions("node-lifecycle")] == ["Untainted"]
    cluster.create("v1", "Namespace", "default")
    cluster.wait(2000)
    assert cluster.messages("n") == ["Node n event: Registered Node n in Controller"]
    for compared in check_decisions(cluster):
        assert compared.differences == ()
