"""Pods of nodes that are gone (controllers.md 5.4)."""

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster


def running(*names: str) -> Cluster:
    """Pods on the only node, each with a device; nobody plays the kubelet."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=4)
    cluster.template()
    for name in names:
        cluster.pod(name, template="gpu")
    return cluster.settle()


def states(cluster: Cluster, name: str, after: int) -> list[JsonObject]:
    """What the pod looked like after each write since revision `after`."""
    key = ("", "pods", "default", name)
    return [e.object for e in cluster.line.events if e.key == key and e.revision > after]


def test_pod_stays_for_the_quarantine_and_goes_with_the_next_round():
    cluster = running("pod")
    cluster.wait(3)
    cluster.delete("nodes", "n1")
    cluster.wait(56)
    assert cluster.get("pods", "pod") is not None, "the round at 40 s came before the quarantine"
    cluster.wait(1)
    assert cluster.get("pods", "pod") is None
    assert cluster.names("resourceclaims") == []


def test_pod_is_marked_failed_in_one_write_and_removed_in_two_without_a_word():
    cluster = running("pod")
    said = cluster.messages("pod")
    before = cluster.line.head.revision
    cluster.delete("nodes", "n1")
    cluster.wait(60)
    failed, terminating, gone = states(cluster, "pod", before)
    assert failed["status"]["phase"] == "Failed"
    assert failed["status"]["observedGeneration"] == 1
    scheduled, disrupted = json_tree.objects(failed, "status", "conditions")
    assert scheduled["type"] == "PodScheduled"
    assert disrupted == {
        "type": "DisruptionTarget",
        "status": "True",
        "observedGeneration": 1,
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-02T03:00:40Z",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
    }
    assert "deletionTimestamp" not in failed["metadata"]
    assert terminating["metadata"]["deletionGracePeriodSeconds"] == 0
    assert gone["metadata"]["generation"] == 2
    assert cluster.messages("pod") == said


def test_finished_pod_is_removed_as_it_is():
    cluster = running("pod")
    cluster.finish("pod")
    before = cluster.line.head.revision
    cluster.delete("nodes", "n1")
    cluster.wait(60)
    assert [found["status"]["phase"] for found in states(cluster, "pod", before)] == [
        "Succeeded",
        "Succeeded",
    ]
    assert cluster.get("pods", "pod") is None


def test_node_that_comes_back_keeps_its_pods():
    cluster = running("pod")
    cluster.delete("nodes", "n1")
    cluster.wait(30)
    cluster.node()
    cluster.wait(120)
    assert cluster.must("pods", "pod")["spec"]["nodeName"] == "n1"


def test_pod_that_was_evicted_keeps_the_time_of_its_disruption():
    cluster = running("pod")
    cluster.rule()
    cluster.settle()
    before = cluster.line.head.revision
    cluster.delete("nodes", "n1")
    cluster.wait(60)
    condition = json_tree.objects(states(cluster, "pod", before)[0], "status", "conditions")[-1]
    assert (condition["reason"], condition["lastTransitionTime"]) == (
        "DeletionByPodGC",
        "2026-01-02T03:00:00Z",
    )


def test_pod_that_names_a_node_that_never_was_goes_too():
    cluster = running()
    cluster.pod("stray", nodeName="nowhere")
    cluster.wait(60)
    assert cluster.get("pods", "stray") is None
