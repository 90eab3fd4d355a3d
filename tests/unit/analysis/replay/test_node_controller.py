"""The node controller registers nodes, copies labels and taints cordoned nodes."""

import pytest

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


@pytest.mark.parametrize(
    ("condition", "taint"),
    [
        ("MemoryPressure", "memory-pressure"),
        ("DiskPressure", "disk-pressure"),
        ("PIDPressure", "pid-pressure"),
        ("NetworkUnavailable", "network-unavailable"),
    ],
)
def test_node_in_trouble_is_tainted_until_its_condition_says_otherwise(condition, taint):
    cluster = ready_node(taints=[{"key": "own", "effect": "NoSchedule"}])

    def report(*statuses):
        conditions = [{"type": "Ready", "status": "True"}]
        conditions += [{"type": condition, "status": status} for status in statuses]
        cluster.patch("nodes", "n", {"status": {"conditions": conditions}}, subresource="status")
        cluster.settle()
        return [
            (each["key"], each["effect"])
            for each in json_tree.objects(cluster.must("nodes", "n"), "spec", "taints")
        ]

    own, made = ("own", "NoSchedule"), (f"node.kubernetes.io/{taint}", "NoSchedule")
    assert report("False") == [own]
    assert report("True") == [own, made]
    assert report() == [own, made], "nothing is known of the condition"
    assert report("Unknown") == [own]
    check_decisions(cluster)


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
