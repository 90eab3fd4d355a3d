"""Events that the API refuses undo nothing: upstream forgets them and goes on with its work."""

import pytest

from app.domain.objects.write.commands import CreateObject
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.cluster import DRIVER, Cluster, check_decisions, claim_spec

PLACE = "ending"
FAILED = {"status": {"phase": "Failed"}}


def cluster_with(*pods: str, seconds: int | None = None, kubelet: bool = False) -> Cluster:
    """One device and namespace `ending` with pods that ask for it; the first one has it."""
    cluster = Cluster(namespaces=("default", PLACE), kubelet=kubelet)
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=1)
    more: JsonObject = {}
    if seconds is not None:
        toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        more["tolerations"] = [toleration]
    template = {
        "metadata": {"name": "gpu", "namespace": PLACE},
        "spec": {"spec": claim_spec(**more)},
    }
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    cluster.apply({**kind, **template})
    for name in pods:
        cluster.pod(name, template="gpu", namespace=PLACE)
        cluster.settle()
    return cluster


def end(cluster: Cluster) -> None:
    """Delete the namespace; for five seconds its contents are left alone."""
    cluster.delete("namespaces", PLACE)
    cluster.settle()


def allow_no_events(cluster: Cluster) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    quota["metadata"]["namespace"] = PLACE
    cluster.apply({**quota, "spec": {"hard": {"count/events": "0"}}})
    cluster.settle()


def refusals(cluster: Cluster) -> list[str]:
    return [text for plan, text in cluster.line.refusals if plan.controller != "claims"]


@pytest.mark.parametrize("close", [end, allow_no_events])
def test_pod_is_placed_though_nothing_can_be_said_about_it(close):
    cluster = cluster_with("first", "second")
    cluster.wait(2)
    close(cluster)
    cluster.patch("pods", "first", FAILED, subresource="status", namespace=PLACE)
    cluster.wait(2)
    assert cluster.must("pods", "second", PLACE)["spec"].get("nodeName") == "n1"
    assert refusals(cluster) == []


@pytest.mark.parametrize("close", [end, allow_no_events])
def test_failed_attempt_still_writes_its_condition(close):
    cluster = cluster_with()
    cluster.pod("pod", namespace=PLACE, nodeSelector={"no": "where"})
    close(cluster)
    conditions = json_tree.objects(cluster.must("pods", "pod", PLACE), "status", "conditions")
    assert [found["reason"] for found in conditions] == ["Unschedulable"]
    assert refusals(cluster) == []


@pytest.mark.parametrize("close", [end, allow_no_events])
def test_pod_is_evicted_though_nothing_can_be_said_about_it(close):
    cluster = cluster_with("pod")
    close(cluster)
    cluster.rule()
    cluster.settle()
    pod = cluster.must("pods", "pod", PLACE)
    reasons = [found.get("reason") for found in pod["status"]["conditions"]]
    assert "DeletionByDeviceTaintManager" in reasons
    assert "deletionTimestamp" in pod["metadata"]
    assert refusals(cluster) == []


@pytest.mark.parametrize("close", [end, allow_no_events])
def test_cancelled_eviction_is_decided_once(close):
    cluster = cluster_with("pod", seconds=600)
    cluster.rule()
    cluster.settle()
    close(cluster)
    cluster.delete("devicetaintrules", "rule")
    cluster.wait(3)
    assert cluster.decisions("eviction") == [("pod", "Cancelled")]
    assert refusals(cluster) == []


def test_decisions_without_their_events_can_be_made_again():
    cluster = cluster_with("first", "second", seconds=2, kubelet=True)
    cluster.wait(2)
    end(cluster)
    cluster.rule(selector={"driver": DRIVER})
    cluster.wait(60)
    assert cluster.get("namespaces", PLACE) is None
    assert all(not compared.differences for compared in check_decisions(cluster))


def test_placement_is_no_error_though_its_event_is_refused_when_it_is_stored():
    cluster = cluster_with("first", "second")
    cluster.wait(2)
    closed = []

    def end_before(commands):
        made = [each for each in commands if isinstance(each, CreateObject)]
        names = [each.key.name for each in made if each.key.resource == "events"]
        if not closed and any(name.startswith("second.") for name in names):
            closed.append(True)
            cluster.delete("namespaces", PLACE)
        return commands

    cluster.line.adapt = end_before
    cluster.patch("pods", "first", FAILED, subresource="status", namespace=PLACE)
    cluster.wait(2)
    assert closed
    pod = cluster.must("pods", "second", PLACE)
    assert pod["spec"].get("nodeName") == "n1"
    assert "Error" not in [outcome for _, outcome in cluster.decisions("scheduling")]
