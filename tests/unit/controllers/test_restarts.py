"""Controllers that begin anew from the log decide nothing a second time."""

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
