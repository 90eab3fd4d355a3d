"""A scheduler that begins anew goes on where the one before it stopped."""

from tests.cluster import Cluster


def test_restart_does_not_shift_the_looks_at_binding_conditions():
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    device = {
        "name": "d",
        "bindsToNode": True,
        "bindingConditions": ["ready"],
        "bindingFailureConditions": ["failed"],
    }
    cluster.slice(devices=[device])
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.wait(596)
    assert cluster.decisions("scheduling") == [("pod", "WaitingForBinding")]
    cluster.restart()
    cluster.wait(3.9)
    assert cluster.decisions("scheduling") == [("pod", "WaitingForBinding")]
    cluster.wait(0.1)
    assert ("pod", "Error") in cluster.decisions("scheduling")
