"""What a scan finds while it lasts, it also finds when it has ended."""

from app.analysis.scan import lasting_states, traces
from app.analysis.scan.scanning import Scan
from tests.cluster import Cluster


def seen(cluster: Cluster) -> dict[str, int]:
    scan = Scan()
    scan.follow(cluster.line.events)
    return {one.incident: one.times for one in scan.found()}


def test_pod_that_named_its_node_is_found_after_its_end():
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.claim()
    cluster.pod(claim="claim", nodeName="n1")
    cluster.settle()
    assert seen(cluster) == {traces.BYPASSED: 1}
    cluster.delete("pods", "pod", grace_seconds=0)
    cluster.settle()
    assert seen(cluster) == {traces.BYPASSED: 1}


def test_pod_that_named_a_claim_twice_is_found_after_its_end():
    cluster = Cluster()
    cluster.claim()
    names = [{"name": name, "resourceClaimName": "claim"} for name in ("a", "b")]
    cluster.pod(resourceClaims=names)
    cluster.settle()
    assert seen(cluster) == {traces.NAMED_TWICE: 1}
    cluster.delete("pods", "pod")
    cluster.settle()
    assert seen(cluster) == {traces.NAMED_TWICE: 1}


def test_claim_without_a_pod_is_found_after_its_deletion_unless_one_came():
    for name, is_named in (("late", True), ("never", False)):
        cluster = Cluster()
        cluster.claim(name)
        cluster.wait(90)
        cluster.node()
        assert seen(cluster) == {lasting_states.WAITING: 1}
        if is_named:
            cluster.pod(claim=name)
            cluster.wait(1)
        cluster.delete("resourceclaims", name)
        cluster.settle()
        assert seen(cluster) == ({} if is_named else {lasting_states.WAITING: 1}), name
