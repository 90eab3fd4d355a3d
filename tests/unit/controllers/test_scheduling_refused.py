"""Plans that the rules refuse, and what others have to do with it."""

from app.service.reconciling import LoopBounds
from tests.cluster import Cluster, claim_spec


def test_pod_that_is_refused_is_not_tried_for_ever_beside_a_quiet_one():
    """Of a pod in a namespace that ends no Event may be made; another has nothing new to say."""
    cluster = Cluster(bounds=LoopBounds(steps_max=500))
    cluster.create("v1", "Namespace", "team")
    cluster.device_class("gpu")
    cluster.device_class("none", 'device.driver == "none.example.com"')
    cluster.node()
    for namespace, name in (("team", "gpu"), ("default", "none")):
        cluster.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": "template", "namespace": namespace},
                "spec": {"spec": claim_spec(name)},
            }
        )
    cluster.pod("quiet", template="template")
    cluster.pod("loud", template="template", namespace="team")
    cluster.wait(600)
    cluster.delete("namespaces", "team")
    cluster.wait(1)
    cluster.slice(devices=1)
    cluster.wait(3)
    texts = {text for _, text in cluster.line.refusals}
    assert any("because it is being terminated" in text for text in texts)
    assert len(cluster.line.refusals) < 20
