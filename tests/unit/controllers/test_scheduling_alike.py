"""Pods of one kind share what was found out about nodes, and nothing that is about one of them."""

import pytest

from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.binding_cycle.delayed_binding import (
    FixedBindDelay,
)
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from tests.cluster import Cluster, check_decisions

GPU = "example.com/gpu"
LACKING = 'device.attributes["gpu.example.com"].model == "a"'


def failing(**options) -> Cluster:
    """Pods whose selector fails at run time: the device lacks what it asks for."""
    cluster = Cluster(**options)
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=1)
    cluster.template(selectors=[{"cel": {"expression": LACKING}}])
    for name in ("first", "second"):
        cluster.pod(name, template="gpu")
    return cluster.settle()


def check_again(cluster: Cluster) -> None:
    for compared in check_decisions(cluster):
        assert compared.differences == (), compared.differences[:1]


def test_each_pod_is_told_of_its_own_claim():
    cluster = failing()
    for name in ("first", "second"):
        message = cluster.pod_condition(name)["message"]
        assert f"claim default/{cluster.claim_of(name)}" in message


def test_error_that_names_a_claim_is_decided_again_alike_after_a_restart():
    cluster = failing()
    cluster.wait(20)
    cluster.delete("pods", "first")
    cluster.wait(60)
    cluster.restart()
    cluster.wait(60)
    check_again(cluster)


def test_pod_is_told_of_its_own_claim_by_a_pool_that_cannot_be_used():
    cluster = Cluster(profile=Profile(version="1.37"))
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=1)
    tree = json_tree.copy(cluster.must("resourceslices", "n1-slice"))
    tree["spec"]["pool"]["resourceSliceCount"] = 2
    cluster.update("resourceslices", tree)
    cluster.template(allocationMode="All")
    for name in ("first", "second"):
        cluster.pod(name, template="gpu")
    cluster.wait(1)
    for name in ("first", "second"):
        message = cluster.pod_condition(name)["message"]
        assert f"claim default/{cluster.claim_of(name)}" in message
    cluster.restart()
    cluster.wait(900)
    check_again(cluster)


@pytest.mark.parametrize("delay", [None, FixedBindDelay(1_000_000)])
def test_extended_resources_of_pods_of_one_step_are_counted_for_each(delay):
    cluster = Cluster(options=ControllerOptions(bind_delay=delay))
    cluster.create("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"extendedResourceName": GPU})
    for node in ("n1", "n2", "n3"):
        cluster.node(node)
        cluster.slice(node, devices=1)
    for number in range(5):
        cluster.pod(f"p{number}", requests={GPU: "1"})
    cluster.wait(30)
    bound = [n for n in cluster.names("pods") if "nodeName" in cluster.must("pods", n)["spec"]]
    assert len(bound) == 3
    held = [
        device for claim in cluster.names("resourceclaims") for device in cluster.devices_of(claim)
    ]
    assert sorted(held) == ["n1/gpu-0", "n2/gpu-0", "n3/gpu-0"]
    check_again(cluster)
