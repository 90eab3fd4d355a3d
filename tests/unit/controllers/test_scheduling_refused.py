"""Plans that the rules refuse, and what others have to do with it."""

from app.domain.values import json_tree
from app.service.replays.reconciling import ReconcileBounds
from tests.cluster import DRIVER, Cluster


def test_pod_that_is_refused_is_not_tried_for_ever_beside_a_quiet_one():
    """Of one pod the claim cannot be written (C13); another has nothing new to say."""
    cluster = Cluster(bounds=ReconcileBounds(steps_max=500))
    cluster.device_class("gpu")
    cluster.device_class("none", 'device.driver == "none.example.com"')
    cluster.node()
    cluster.template(class_name="none")
    cluster.claim("untimed")
    tree = json_tree.copy(cluster.must("resourceclaims", "untimed"))
    result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    tree["status"] = {"allocation": {"devices": {"results": [result]}}}
    cluster.update("resourceclaims", tree, "status")
    cluster.pod("quiet", template="gpu")
    cluster.pod("loud", claim="untimed")
    cluster.wait(600)
    before = len(cluster.line.refusals)
    cluster.slice(devices=1)
    cluster.wait(30)
    texts = {text for _, text in cluster.line.refusals[before:]}
    assert any("field is immutable" in text for text in texts), texts
    assert len(cluster.line.refusals) - before < 20
