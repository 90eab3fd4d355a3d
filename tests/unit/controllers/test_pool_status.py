"""ResourcePoolStatusRequest and warnings about pools (objects.md 15)."""

import pytest

from app.domain.log import ObjectKey
from app.domain.objects.commands import CreateObject
from app.domain.objects.profile import Profile
from tests.cluster import DRIVER, USER, Cluster

GATES = {"DRAResourcePoolStatus": True, "DRADeviceTaintRules": True}


def cluster_of(version: str = "1.37") -> Cluster:
    cluster = Cluster(profile=Profile(version=version, gates=GATES))
    cluster.node()
    cluster.device_class()
    return cluster.settle()


def answer(cluster: Cluster, **spec) -> dict | None:
    cluster.create(
        "resource.k8s.io/v1alpha3",
        "ResourcePoolStatusRequest",
        "ask",
        spec={"driver": DRIVER, **spec},
    )
    cluster.settle()
    return cluster.must("resourcepoolstatusrequests", "ask").get("status")


def pool_spec(pool: str, count: int, devices: list, **spec) -> dict:
    return {
        "driver": DRIVER,
        "nodeName": "n1",
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": count},
        "devices": devices,
        **spec,
    }


def warnings_of(cluster: Cluster, name: str, spec: dict) -> tuple[str, ...]:
    key = ObjectKey("resource.k8s.io", "resourceslices", "", name)
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": spec,
    }
    return cluster.line.submit(CreateObject(key=key, version="v1", tree=tree), actor=USER).warnings


def test_pool_is_counted_at_once():
    cluster = cluster_of()
    taint = [{"key": "bad", "effect": "NoSchedule"}]
    cluster.slice(devices=[{"name": "a"}, {"name": "b"}, {"name": "c", "taints": taint}])
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle()
    found = answer(cluster)
    assert found is not None
    assert found["poolCount"] == 1
    assert found["pools"] == [
        {
            "driver": DRIVER,
            "poolName": "n1",
            "generation": 1,
            "nodeName": "n1",
            "resourceSliceCount": 1,
            "totalDevices": 3,
            "allocatedDevices": 1,
            "availableDevices": 1,
            "unavailableDevices": 1,
        }
    ]
    condition = found["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"], condition["message"]) == (
        "Complete", "True", "CalculationComplete", "Calculated status for 1 pools",
    )  # fmt: skip


def test_limit_cuts_the_list_and_not_the_count():
    cluster = cluster_of()
    for pool in ("a", "b", "c"):
        cluster.slice(name=pool, pool=pool)
    found = answer(cluster, limit=2)
    assert found is not None
    assert (found["poolCount"], [p["poolName"] for p in found["pools"]]) == (3, ["a", "b"])


def test_pool_name_selects():
    cluster = cluster_of()
    for pool in ("a", "b"):
        cluster.slice(name=pool, pool=pool)
    found = answer(cluster, poolName="b")
    assert found is not None
    assert [pool["poolName"] for pool in found["pools"]] == ["b"]


@pytest.mark.parametrize(("version", "answered"), [("1.36", False), ("1.37", True)])
def test_incomplete_pool(version, answered):
    cluster = cluster_of(version)
    warnings_of(cluster, "half", pool_spec("p", 2, [{"name": "a"}]))
    found = answer(cluster)
    assert (found is not None) is answered
    if found is not None:
        assert found["pools"][0]["validationError"].startswith("pool is incomplete")
        assert "totalDevices" not in found["pools"][0]


def test_device_name_in_two_slices_of_a_pool_is_warned_of():
    cluster = cluster_of()
    assert warnings_of(cluster, "first", pool_spec("p", 2, [{"name": "a"}])) == ()
    found = warnings_of(cluster, "second", pool_spec("p", 2, [{"name": "a"}]))
    assert len(found) == 1
    assert "spec.devices[0].name: a is also a device of ResourceSlice first" in found[0]


def test_missing_counter_set_is_warned_of_once_the_pool_is_complete():
    cluster = cluster_of()
    used = [{"counterSet": "gone", "counters": {"memory": {"value": "1Gi"}}}]
    counters = pool_spec("p", 2, [], sharedCounters=[
        {"name": "there", "counters": {"memory": {"value": "1Gi"}}}
    ])  # fmt: skip
    del counters["devices"]
    devices = pool_spec("p", 2, [{"name": "a", "consumesCounters": used}])
    assert warnings_of(cluster, "devices", devices) == ()
    found = warnings_of(cluster, "counters", counters)
    assert len(found) == 1
    assert "device a consumes counter set gone" in found[0]
