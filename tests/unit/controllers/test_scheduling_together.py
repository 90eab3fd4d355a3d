"""Pods that are placed in one step, each as if those before it had been written already."""

import pytest

from app.domain.controllers.batching import Batcher
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling import SchedulingReconciler
from app.domain.controllers.scheduling.binding_cycle.delayed_binding import (
    FixedBindDelay,
)
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests import draws
from tests.cluster import Cluster, check_decisions


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


def sharing(pods: int, *, apart: bool = False, **options) -> Cluster:
    """Pods of two named claims, every third of both and of one that is made for it."""
    cluster = Cluster(**options)
    if apart:
        schedulers(cluster)[0]._batcher = Batcher(size=1)
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=8)
    cluster.template()
    for name in ("left", "right"):
        cluster.claim(name)
    for number in range(pods):
        names = ("left", "right") if number % 3 == 2 else (("left", "right")[number % 3],)
        entries = [{"name": name, "resourceClaimName": name} for name in names]
        if len(names) == 2:
            entries.append({"name": "gpu", "resourceClaimTemplateName": "gpu"})
        cluster.pod(f"pod-{number}", resourceClaims=entries, requests={"cpu": "1"})
    return cluster.settle()


def schedulers(cluster: Cluster) -> list[SchedulingReconciler]:
    return [found for found in cluster.controllers if isinstance(found, SchedulingReconciler)]


def steps(cluster: Cluster) -> list[list[str]]:
    """The pods that were placed in each step."""
    found: dict[int, list[str]] = {}
    for event in cluster.line.events:
        if event.type == "DecisionRecorded" and event.object["controller"] == "scheduling":
            found.setdefault(event.stamp.observed, []).append(event.object["name"])
    return list(found.values())


def world(cluster: Cluster, resource: str) -> list[JsonObject]:
    """All objects of a resource, without the versions that they happen to have."""
    found = [json_tree.copy(cluster.must(resource, name)) for name in cluster.names(resource)]
    for tree in found:
        del tree["metadata"]["resourceVersion"]
    return found


def check_again(cluster: Cluster) -> None:
    for compared in check_decisions(cluster):
        assert compared.differences == (), compared.differences[:1]
        assert compared.total > 0


def test_pods_that_share_claims_are_placed_in_one_step():
    cluster = sharing(9)
    assert steps(cluster) == [[f"pod-{number}" for number in range(9)]]
    holders = [
        ref["name"] for ref in cluster.must("resourceclaims", "left")["status"]["reservedFor"]
    ]
    assert holders == ["pod-0", "pod-2", "pod-3", "pod-5", "pod-6", "pod-8"]
    check_again(cluster)


def test_pods_that_share_claims_come_out_as_if_each_had_a_step_of_its_own():
    together, apart = sharing(9), sharing(9, apart=True)
    assert len(steps(apart)) == 9
    for resource in ("resourceclaims", "pods"):
        assert world(together, resource) == world(apart, resource)
    assert together.messages() == apart.messages()
    for cluster in (together, apart):
        check_again(cluster)
    assert writes_of(together) == writes_of(apart)
    assert len(writes_of(together)) > 9


def writes_of(cluster: Cluster) -> list[tuple[str, str, str]]:
    """What the scheduler wrote, in order."""
    return [
        (event.type, str(event.key), event.stamp.verb)
        for event in cluster.line.events
        if event.stamp.actor.user == "system:kube-scheduler"
    ]


def test_pods_that_wait_beside_a_shared_claim_are_told_in_one_step():
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=1)
    cluster.claim("shared")
    for number in range(4):
        cluster.pod(f"pod-{number}", claim="shared", requests={"cpu": "16"})
    cluster.settle()
    assert steps(cluster) == [[f"pod-{number}" for number in range(4)]]
    for name in ("pod-2", "pod-3"):
        condition = cluster.pod_condition(name)
        assert condition is not None
        assert "Insufficient cpu" in condition["message"]
    check_again(cluster)


@draws.in_turn(
    "ways",
    each_day="unit/controllers/test_scheduling.py::test_the_257th_consumer_fails_at_the_write_c14",
)
def test_claim_that_is_full_holds_up_nobody_else():
    cluster = Cluster()
    cluster.device_class()
    cluster.node(pods=1000, cpu="1000")
    cluster.slice(devices=2)
    for name in ("full", "free"):
        cluster.claim(name)
    for number in range(262):
        cluster.pod(f"pod-{number:03}", claim="full")
    cluster.pod("other", claim="free")
    cluster.settle()
    bound = [n for n in cluster.names("pods") if "nodeName" in cluster.must("pods", n)["spec"]]
    assert bound == ["other", *(f"pod-{number:03}" for number in range(256))]
    for number in range(256, 262):
        condition = cluster.pod_condition(f"pod-{number:03}")
        assert condition is not None
        assert "status.reservedFor: Too many: 257" in condition["message"]
    assert len(steps(cluster)) < 30


@pytest.mark.parametrize("free", [1, 2, 3])
def test_last_reservations_of_a_claim_are_given_in_one_step(free):
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=1)
    cluster.claim("shared")
    cluster.pod("first", claim="shared")
    cluster.settle()
    tree = json_tree.copy(cluster.must("resourceclaims", "shared"))
    # Consumers of other kinds are never removed.
    tree["status"]["reservedFor"] += [
        {"apiGroup": "example.com", "resource": "jobs", "name": f"j{number}", "uid": f"u{number}"}
        for number in range(255 - free)
    ]
    cluster.update("resourceclaims", tree, "status")
    names = [f"pod-{number}" for number in range(free + 2)]
    for name in names:
        cluster.pod(name, claim="shared")
    cluster.settle()
    reserved = cluster.must("resourceclaims", "shared")["status"]["reservedFor"]
    assert len(reserved) == 256
    assert [found["name"] for found in reserved[-free:]] == names[:free]
    # Who finds no room is not decided in the step that gives the last of it.
    assert steps(cluster) == [["first"], names[:free], *([name] for name in names[free:])]
    check_again(cluster)


def test_binding_that_takes_time_leaves_the_claim_to_the_first_pod():
    cluster = Cluster(options=ControllerOptions(bind_delay=FixedBindDelay(1_000_000)))
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=1)
    cluster.claim("shared")
    for name in ("first", "second"):
        cluster.pod(name, claim="shared")
    cluster.settle()
    condition = cluster.pod_condition("second")
    assert condition is not None
    assert "is in the process of being allocated" in condition["message"]
