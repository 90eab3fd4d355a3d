"""Each feature gate that can be switched changes something, in one release.

The table names the outcome with the gate on and with it off; all other gates are as the row says.
"""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.objects import registry
from app.domain.objects.profile import FIXED, GATES, Profile
from app.domain.objects.write.commands import BindPod
from tests import cluster as worlds
from tests.shared_data import REPOSITORY
from tests.unit.objects.builders import claim, cluster, key, pod

ZONE = "topology.kubernetes.io/zone"
POD = key("pods", "p", "default")

Outcome = Callable[..., Any]


def bound(**gates: bool) -> dict[str, Any]:
    """A pod with a nomination, after its binding to a node in a zone."""
    made = cluster("1.37", **gates)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {ZONE: "z"}}}
    made.create(node)
    made.create(pod())
    made.patch(POD, {"status": {"nominatedNodeName": "n"}}, subresource="status")
    return made.do(BindPod(key=POD, node="n"))


def stored(kind: str, spec: dict[str, Any], version: str = "v1") -> Outcome:
    """What is stored of the spec of an object."""

    def create(**gates: bool) -> Any:
        made = cluster("1.37", **gates)
        labels = {"resource.kubernetes.io/admin-access": "true"}
        made.patch(key("namespaces", "default"), {"metadata": {"labels": labels}})
        tree = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "spec": spec}
        namespace = {"namespace": "default"} if kind == "ResourceClaim" else {}
        return made.create({**tree, "metadata": {"name": "o", **namespace}})["spec"]

    return create


def published(part: str, device: dict[str, Any] | None = None, **spec: Any) -> Outcome:
    """Whether a part of a slice is stored: a field of its device or of its spec."""
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    devices = {"devices": [{"name": "d", **(device or {})}]} if "sharedCounters" not in spec else {}
    tree = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n", **devices, **spec}
    create = stored("ResourceSlice", tree)

    def look(**gates: bool) -> bool:
        kept = create(**gates)
        return part in (kept if part in spec else kept["devices"][0])

    return look


def requested(part: str, **request: Any) -> Outcome:
    """Whether a part of a claim's request is stored."""
    named = {"name": "r", **request}
    create = stored("ResourceClaim", {"devices": {"requests": [named]}})

    def look(**gates: bool) -> bool:
        (kept,) = create(**gates)["devices"]["requests"]
        return part in kept or part in kept.get("exactly", {})

    return look


def class_of_an_extended_resource(**gates: bool) -> bool:
    create = stored("DeviceClass", {"extendedResourceName": "example.com/gpu"})
    return "extendedResourceName" in create(**gates)


def attribute_with_a_list(**gates: bool) -> bool:
    device = {"name": "d", "attributes": {"a": {"strings": ["x"]}}}
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    tree = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n", "devices": [device]}
    return "strings" in stored("ResourceSlice", tree)(**gates)["devices"][0]["attributes"]["a"]


def patched_attributes(**gates: bool) -> bool:
    devices = {
        "filter": {"driver": "gpu.example.com"},
        "priority": 1,
        "attributes": {"gpu.example.com/model": {"string": "x"}},
    }
    create = stored("ResourceSlicePatch", {"devices": devices}, "v1alpha3")
    return "attributes" in create(**gates)["devices"]


def claim_with_devices_in_its_status(**gates: bool) -> bool:
    made = cluster("1.37", **gates)
    place = made.create(claim())
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n", "device": "d"}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "devices": [{name: result[name] for name in ("driver", "pool", "device")}],
    }
    return "devices" in made.update({**place, "status": status}, "status")["status"]


def served(group: str, plural: str) -> Outcome:
    """Whether a kind is served."""

    def look(**gates: bool) -> bool:
        kind = registry.find(group, plural)
        assert kind is not None
        return bool(registry.served_versions(kind, Profile(gates=gates)))

    return look


def world(**gates: bool) -> worlds.Cluster:
    """A placed pod with a device."""
    made = worlds.Cluster(Profile(gates=gates))
    made.node()
    made.device_class()
    made.slice(devices=1)
    made.claim()
    made.pod(claim="claim")
    return made.settle()


def nominated_before_it_was_bound(**gates: bool) -> bool:
    trees = [each.object for each in world(**gates).line.events if each.key.resource == "pods"]
    return any(tree.get("status", {}).get("nominatedNodeName") for tree in trees)


def evicted_by_a_rule(**gates: bool) -> bool:
    made = world(**gates)
    made.rule()
    made.wait(60)
    return "deletionTimestamp" in made.must("pods", "pod")["metadata"]


def placed_within_its_back_off(**gates: bool) -> bool:
    made = worlds.Cluster(Profile(gates=gates))
    made.node()
    made.device_class()
    made.claim()
    made.pod(claim="claim")
    made.settle()
    made.slice(devices=1)
    made.settle()
    return "nodeName" in made.must("pods", "pod")["spec"]


ROWS: dict[str, Outcome] = {
    "ClearingNominatedNodeNameAfterBinding": lambda **gates: (
        "nominatedNodeName" not in bound(**gates)["status"]
    ),
    "DRAAdminAccess": requested(
        "adminAccess", exactly={"deviceClassName": "c", "adminAccess": True}
    ),
    "DRAAdminControlledDeviceAttributes": patched_attributes,
    "DRAConsumableCapacity": published(
        "allowMultipleAllocations", {"allowMultipleAllocations": True}
    ),
    "DRADeviceBindingConditions": published("bindsToNode", {"bindsToNode": True}),
    "DRADeviceTaintRules": evicted_by_a_rule,
    "DRADeviceTaints": published("taints", {"taints": [{"key": "k", "effect": "NoSchedule"}]}),
    "DRAExtendedResource": class_of_an_extended_resource,
    "DRAListTypeAttributes": attribute_with_a_list,
    "DRANodeAllocatableResources": published(
        "nodeAllocatableResources",
        {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}},
    ),
    "DRAOptionalNodeOperations": published("skipNodeOperations", skipNodeOperations=["Prepare"]),
    "DRAPartitionableDevices": published(
        "sharedCounters", sharedCounters=[{"name": "s", "counters": {"c": {"value": "1"}}}]
    ),
    "DRAPartitionableDevicesType": published("partitionTypeAttribute", partitionTypeAttribute="a"),
    "DRAPrioritizedList": requested(
        "firstAvailable", firstAvailable=[{"name": "a", "deviceClassName": "c"}]
    ),
    "DRAResourceClaimDeviceStatus": claim_with_devices_in_its_status,
    "DRAResourcePoolStatus": served("resource.k8s.io", "resourcepoolstatusrequests"),
    "GenericWorkload": served("scheduling.k8s.io", "workloads"),
    "NominatedNodeNameForExpectation": nominated_before_it_was_bound,
    "PodTopologyLabelsAdmission": lambda **gates: (
        ZONE in bound(**gates)["metadata"].get("labels", {})
    ),
    "SchedulerPopFromBackoffQ": placed_within_its_back_off,
}
"""Whether the feature of each gate is there."""

ELSEWHERE = {
    "DRAResourceClaimGranularStatusAuthorization": (
        "tests/api/test_authorization.py::test_parts_of_a_status_are_judged_only_with_their_gate"
    ),
}
"""Gates whose effect needs a server."""


def test_every_gate_that_can_be_switched_has_a_row() -> None:
    assert {*ROWS, *ELSEWHERE} == GATES.keys() - FIXED.keys()
    for test in ELSEWHERE.values():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (REPOSITORY / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("gate", sorted(ROWS))
def test_gate_switches_its_feature(gate: str) -> None:
    assert [ROWS[gate](**{gate: is_on}) for is_on in (True, False)] == [True, False]
