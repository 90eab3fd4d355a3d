"""Controllers that begin anew from the log decide nothing a second time."""

from types import SimpleNamespace

import pytest

from app.domain.log import ObjectKey
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import Cluster, check_decisions

CANCELLED = ("pod-0", "Cancelled")
EVICTED = ("pod-0", "Evicted")


def cluster_with_planned_eviction() -> Cluster:
    """A pod that stands a taint for 60 seconds, five seconds after the taint came."""
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=1)
    toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    cluster.template(tolerations=[toleration])
    cluster.pod("pod-0", template="gpu")
    cluster.settle()
    cluster.rule()
    return cluster.wait(5)


def cancelling(cluster: Cluster) -> int:
    return cluster.messages("pod-0").count("Cancelling deletion")


def test_cancelled_eviction_is_not_cancelled_again_by_a_restart():
    cluster = cluster_with_planned_eviction()
    cluster.delete("devicetaintrules", "rule")
    cluster.settle()
    assert cluster.decisions("eviction") == [CANCELLED]
    for _ in range(2):
        before = cluster.line.head.revision
        cluster.restart()
        cluster.wait(120)
        assert cluster.line.head.revision == before, "there is nothing to do"
    assert cancelling(cluster) == 1


def test_eviction_cancelled_before_a_restart_is_planned_and_cancelled_anew_after_it():
    cluster = cluster_with_planned_eviction()
    cluster.delete("devicetaintrules", "rule")
    cluster.settle()
    cluster.restart()
    cluster.rule()
    cluster.wait(5)
    cluster.restart()
    cluster.delete("devicetaintrules", "rule")
    cluster.settle()
    assert cluster.decisions("eviction") == [CANCELLED, CANCELLED]
    cluster.rule()
    cluster.wait(5)
    cluster.restart()
    cluster.wait(55)
    assert cluster.decisions("eviction") == [CANCELLED, CANCELLED, EVICTED]
    for compared in check_decisions(cluster):
        assert compared.differences == ()


class Guarded:
    """The objects of a cluster, of which pods and claims may not be read one by one."""

    def __init__(self, objects) -> None:
        self.objects = objects

    def __getattr__(self, name: str):
        return getattr(self.objects, name)

    def get(self, key: ObjectKey):
        assert key.resource not in ("pods", "resourceclaims"), f"{key} is read"
        return self.objects.get(key)

    event = get


@pytest.mark.parametrize("name", ["claims", "kubelet"])
def test_start_reads_no_pod_and_claim_of_which_nothing_is_due(name):
    cluster = Cluster(kubelet=True)
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=4)
    cluster.template()
    for number in range(4):
        cluster.pod(f"pod-{number}", template="gpu")
    cluster.wait(5)
    views = cluster.line.views
    fresh = next(each for each in cluster.fresh_controllers() if each.name == name)
    for event in views.objects.left_over(views.revision):
        fresh.fold(event, views)
    guarded = SimpleNamespace(objects=Guarded(views.objects))
    now = Instant(cluster.line.head.time + 3_600 * SECOND)
    looks = 0
    while (plan := fresh.step(guarded, now)) is not None:
        assert plan.is_empty
        looks += 1
    assert looks > 0
