"""Pods that are placed in one step, each as if those before it had been written already."""

import pytest

from tests.cluster import Cluster


@pytest.mark.parametrize("pods", [2, 3])
def test_devices_of_the_network_are_given_once_to_pods_of_one_step(pods):
    cluster = Cluster()
    cluster.device_class()
    for name in ("n1", "n2", "n3"):
        cluster.node(name)
    devices = [{"name": f"line-{number}"} for number in range(pods)]
    pool = {"name": "lines", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "allNodes": True, "pool": pool, "devices": devices}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "lines", spec=spec)
    cluster.template()
    for number in range(pods):
        cluster.pod(f"pod-{number}", template="gpu", requests={"cpu": "8"})
    cluster.settle()
    given = [
        device for name in cluster.names("resourceclaims") for device in cluster.devices_of(name)
    ]
    assert sorted(given) == [f"lines/line-{number}" for number in range(pods)]
