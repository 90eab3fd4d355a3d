"""ResourcePoolStatusRequest and warnings about pools (objects.md 15)."""

import pytest

from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import CreateObject
from tests.cluster import DRIVER, USER, Cluster

GATES = {"DRAResourcePoolStatus": True, "DRADeviceTaintRules": True}
TYPED = {"DRAPartitionableDevicesType": True}
"""The gate of `partitionTypeAttribute`, which came with 1.37."""


def cluster_of(version: str = "1.37", **gates: bool) -> Cluster:
    cluster = Cluster(profile=Profile(version=version, gates=GATES | gates))
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


def counter_slice(pool: str, count: int, *counters: str, name: str = "chip") -> dict:
    sets = [{"name": name, "counters": {counter: {"value": "7"} for counter in counters}}]
    spec = pool_spec(pool, count, [], sharedCounters=sets)
    del spec["devices"]
    return spec


def test_counter_that_its_set_lacks_is_warned_of():
    cluster = cluster_of()
    used = [{"counterSet": "chip", "counters": {"slices": {"value": "1"}}}]
    warnings_of(cluster, "devices", pool_spec("p", 2, [{"name": "a", "consumesCounters": used}]))
    found = warnings_of(cluster, "counters", counter_slice("p", 2, "memory"))
    assert len(found) == 1
    assert "device a consumes counter slices of set chip, which no slice" in found[0]


def test_counter_set_in_two_slices_is_warned_of():
    cluster = cluster_of()
    assert warnings_of(cluster, "one", counter_slice("p", 3, "slices")) == ()
    found = warnings_of(cluster, "two", counter_slice("p", 3, "slices"))
    assert len(found) == 1
    assert (
        "spec.sharedCounters[0].name: chip is also a counter set of ResourceSlice one" in found[0]
    )


def test_more_slices_than_announced_are_warned_of():
    cluster = cluster_of()
    for name in ("a", "b"):
        assert warnings_of(cluster, name, pool_spec("p", 2, [{"name": name}])) == ()
    found = warnings_of(cluster, "c", pool_spec("p", 2, [{"name": "c"}]))
    assert len(found) == 1
    assert "3 slices of generation 1 are there and 2 are announced" in found[0]


def test_generation_that_is_out_of_date_is_warned_of():
    cluster = cluster_of()
    new = pool_spec("p", 2, [{"name": "a"}])
    new["pool"]["generation"] = 2
    assert warnings_of(cluster, "new", new) == ()
    found = warnings_of(cluster, "old", pool_spec("p", 2, [{"name": "b"}]))
    assert len(found) == 1
    assert "spec.pool.generation: 1 is out of date, the pool has generation 2" in found[0]


def mig_pool(cluster: Cluster, *profiles: str, **spec) -> None:
    """One chip of seven slices, with a device for each profile; big ones take four slices."""
    counters = counter_slice("mig", 2, "slices")
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "chip", spec=counters)
    devices = [
        {
            "name": f"{profile}-{number}",
            "attributes": {"profile": {"string": profile}},
            "consumesCounters": [
                {
                    "counterSet": "chip",
                    "counters": {"slices": {"value": "4" if profile == "big" else "1"}},
                }
            ],
        }
        for number, profile in enumerate(profiles)
    ]
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "partitions",
        spec=pool_spec("mig", 2, devices, **spec),
    )


def partitions(found: dict | None) -> list[tuple[str, int, int]]:
    assert found is not None
    summary = found["pools"][0].get("partitionSummary", [])
    return [(item["type"], item["total"], item["allocatable"]) for item in summary]


BIG_AND_SMALL = ("big", "big", *["small"] * 8)


def test_partitions_are_counted_by_what_still_fits():
    cluster = cluster_of(**TYPED)
    mig_pool(cluster, *BIG_AND_SMALL, partitionTypeAttribute=f"{DRIVER}/profile")
    assert partitions(answer(cluster)) == [("big", 2, 1), ("small", 8, 7)]
    cluster.delete("resourcepoolstatusrequests", "ask", version="v1alpha3")
    cluster.claim(count=3, selectors=[
        {"cel": {"expression": f"device.attributes['{DRIVER}'].profile == 'small'"}}
    ])  # fmt: skip
    cluster.pod(claim="claim")
    cluster.settle()
    assert partitions(answer(cluster)) == [("big", 2, 1), ("small", 8, 4)]


def test_request_may_name_the_attribute_that_slices_do_not_name():
    cluster = cluster_of()
    mig_pool(cluster, *BIG_AND_SMALL)
    assert partitions(answer(cluster)) == []
    cluster.delete("resourcepoolstatusrequests", "ask", version="v1alpha3")
    found = answer(cluster, defaultPartitionTypeAttribute=f"{DRIVER}/profile")
    assert partitions(found) == [("big", 2, 1), ("small", 8, 7)]
    assert found is not None
    assert found["pools"][0]["partitionSummary"][0]["attribute"] == f"{DRIVER}/profile"


def test_tainted_partitions_are_not_allocatable():
    cluster = cluster_of(**TYPED)
    mig_pool(cluster, *BIG_AND_SMALL, partitionTypeAttribute=f"{DRIVER}/profile")
    cluster.rule(effect="NoSchedule", selector={"driver": DRIVER, "device": "small-2"})
    cluster.rule("all", effect="NoSchedule", selector={"driver": DRIVER, "device": "big-0"})
    assert partitions(answer(cluster)) == [("big", 2, 1), ("small", 8, 7)]
    cluster.rule("both", effect="NoSchedule", selector={"driver": DRIVER, "device": "big-1"})
    cluster.delete("resourcepoolstatusrequests", "ask", version="v1alpha3")
    assert partitions(answer(cluster)) == [("big", 2, 0), ("small", 8, 7)]


def test_shared_devices_are_summed_up():
    cluster = cluster_of()
    memory = {"memory": {"value": "40Gi", "requestPolicy": {"default": "10Gi"}}}
    devices = [
        {"name": name, "allowMultipleAllocations": True, "capacity": memory} for name in ("a", "b")
    ]
    cluster.slice(devices=devices)
    cluster.claim(capacity={"requests": {"memory": "15Gi"}})
    cluster.pod(claim="claim")
    cluster.settle()
    found = answer(cluster)
    assert found is not None
    assert found["pools"][0]["shareableSummary"] == {
        "fullyAvailableDevices": 1,
        "partiallyAvailableDevices": 1,
        "capacity": [
            {"name": "memory", "total": "80Gi", "consumed": "15Gi", "available": "65Gi"},
        ],
    }


def test_releases_before_1_37_have_no_summaries():
    cluster = cluster_of("1.36")
    mig_pool(cluster, *BIG_AND_SMALL)
    found = answer(cluster)
    assert found is not None
    assert "partitionSummary" not in found["pools"][0]
