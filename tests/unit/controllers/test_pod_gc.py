"""Pods of nodes that are gone (controllers.md 5.4)."""

from dataclasses import replace

import pytest

from app.analysis.verify.compare import ComparisonResult
from app.bootstrap import history_settings, process_settings
from app.domain.controllers import registry
from app.domain.controllers.registry import ControllerOptions
from app.domain.errors import InputError
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster, check_decisions


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


# Nodes out of service


TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "shutdown", "effect": "NoExecute"}


def condition(state: str) -> JsonObject:
    return {"status": {"conditions": [{"type": "Ready", "status": state}]}}


def taint(cluster: Cluster, name: str = "n1") -> None:
    tree = json_tree.copy(cluster.must("nodes", name))
    tree["spec"]["taints"] = [*json_tree.objects(tree, "spec", "taints"), TAINT]
    cluster.update("nodes", tree)


def test_terminating_pod_of_a_node_out_of_service_goes_with_the_next_round():
    cluster = running("leaves", "stays")
    cluster.wait(3)
    cluster.delete("pods", "leaves")
    cluster.patch("nodes", "n1", condition("False"), subresource="status")
    cluster.settle()
    before = cluster.line.head.revision
    taint(cluster)
    cluster.wait(16)
    assert cluster.names("pods") == ["leaves", "stays"]
    cluster.wait(1)
    assert cluster.names("pods") == ["stays"]
    failed, *_ = states(cluster, "leaves", before)
    assert failed["status"]["phase"] == "Failed"
    kinds = [found["type"] for found in json_tree.objects(failed, "status", "conditions")]
    assert kinds == ["PodScheduled"], "only pods without a node are told that they are disrupted"
    assert cluster.devices_of(cluster.claim_of("stays")) != []
    assert len(cluster.names("resourceclaims")) == 1


def test_pod_deleted_on_a_node_out_of_service_goes_with_the_next_round():
    cluster = running("pod")
    cluster.patch("nodes", "n1", condition("Unknown"), subresource="status")
    cluster.settle()
    taint(cluster)
    cluster.wait(100)
    assert cluster.names("pods") == ["pod"]
    cluster.delete("pods", "pod")
    cluster.wait(20)
    assert cluster.names("pods") == []


@pytest.mark.parametrize("missing", ["taint", "unready"])
def test_node_that_is_ready_or_untainted_is_in_service(missing):
    cluster = running("pod")
    if missing == "taint":
        cluster.patch("nodes", "n1", condition("False"), subresource="status")
        cluster.settle()
    else:
        taint(cluster)
    cluster.delete("pods", "pod")
    cluster.wait(100)
    assert cluster.names("pods") == ["pod"]


def test_node_that_is_back_in_service_in_time_keeps_its_pods():
    cluster = running("pod")
    cluster.wait(3)
    cluster.delete("pods", "pod")
    cluster.patch("nodes", "n1", condition("False"), subresource="status")
    cluster.settle()
    taint(cluster)
    cluster.wait(5)
    cluster.patch("nodes", "n1", condition("True"), subresource="status")
    cluster.wait(100)
    assert cluster.names("pods") == ["pod"]


# Terminating pods without a node


def test_terminating_pod_without_a_node_is_failed_once_and_kept_by_its_finalizer():
    cluster = Cluster()
    cluster.pod("pod", schedulingGates=[{"name": "example.com/wait"}])
    cluster.patch("pods", "pod", {"metadata": {"finalizers": ["example.com/keep"]}})
    cluster.wait(1)
    cluster.delete("pods", "pod")
    cluster.wait(18)
    assert cluster.must("pods", "pod")["status"]["phase"] == "Pending"
    cluster.wait(100)
    assert cluster.must("pods", "pod")["status"]["phase"] == "Failed"
    assert cluster.decisions("pod-gc") == [("pod", "Removed")]
    cluster.patch("pods", "pod", {"metadata": {"finalizers": None}})
    assert cluster.names("pods") == []


# Finished pods


def finished(most: int, *names: str, evicted: tuple[str, ...] = ()) -> Cluster:
    """Pods that finish one after the other, a second apart."""
    cluster = Cluster(options=ControllerOptions(terminated_pods_max=most))
    cluster.node()
    for name in names:
        cluster.pod(name)
        cluster.wait(1)
    for name in names:
        status = {"phase": "Failed", "reason": "Evicted"} if name in evicted else {}
        cluster.patch(
            "pods", name, {"status": {"phase": "Succeeded", **status}}, subresource="status"
        )
    return cluster


def test_oldest_finished_pods_go_when_there_are_too_many():
    cluster = finished(2, "d", "c", "b", "a")
    assert cluster.names("pods") == ["a", "b", "c", "d"]
    cluster.wait(20)
    assert cluster.names("pods") == ["a", "b"]
    cluster.wait(100)
    assert cluster.decisions("pod-gc") == [("d", "Removed"), ("c", "Removed")]


def test_evicted_pods_go_before_older_ones():
    cluster = finished(2, "a", "b", "c", evicted=("c",))
    cluster.wait(20)
    assert cluster.names("pods") == ["a", "b"]


def test_finished_pods_are_all_kept_without_a_threshold():
    cluster = finished(0, "a", "b", "c")
    cluster.wait(200)
    assert cluster.names("pods") == ["a", "b", "c"]


def test_finished_pod_that_its_finalizer_keeps_is_removed_once():
    cluster = finished(1, "a", "b")
    cluster.patch("pods", "a", {"metadata": {"finalizers": ["example.com/keep"]}})
    cluster.wait(100)
    cluster.pod("c")
    cluster.settle()
    cluster.finish("c")
    cluster.wait(100)
    assert cluster.names("pods") == ["a", "c"]
    assert sorted(cluster.decisions("pod-gc")) == [("a", "Removed"), ("b", "Removed")]


def test_every_reason_is_decided_again_alike():
    cluster = finished(1, "a", "b", "c")
    cluster.wait(40)
    cluster.pod("late")
    cluster.settle()
    cluster.delete("pods", "late")
    cluster.patch("nodes", "n1", condition("False"), subresource="status")
    cluster.settle()
    taint(cluster)
    cluster.wait(40)
    cluster.pod("stray", nodeName="nowhere")
    cluster.wait(100)
    assert len(cluster.decisions("pod-gc")) == 4
    decisions, effects = check_decisions(cluster)
    assert ComparisonResult.DIFFERENT not in decisions.counts.keys() | effects.counts.keys()


def test_threshold_is_a_setting_of_the_history():
    assert registry.options_from({}).terminated_pods_max == 12_500
    for number in (0, 7):
        settings = {"controllers": {"terminatedPodsMax": number}}
        assert registry.options_from(settings).terminated_pods_max == number
    chosen = replace(process_settings.settings(), terminated_pods_max=7)
    assert history_settings.history_settings(chosen)["controllers"]["terminatedPodsMax"] == 7
    with pytest.raises(InputError):
        registry.options_from({"controllers": {"terminatedPodsMax": -1}})
