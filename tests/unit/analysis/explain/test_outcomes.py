"""The answers of `why` about placements that do not last, and devices of older generations."""

import pytest

from app.domain.controllers.registry import ControllerOptions
from tests.cluster import DRIVER, Cluster
from tests.unit.service.test_explaining import asking

TIME = "2026-01-01T00:00:00Z"

BAD = {"key": "example.com/bad", "effect": "NoExecute", "timeAdded": TIME}


def lines(reason):
    return [reason.line, *(line for child in reason.children for line in lines(child))]


async def why(cluster):
    async with asking(cluster) as ask:
        answer = await ask("pod", "pod")
    return answer.text, lines(answer.reason)


def idle_cluster(**options):
    """A cluster with a ready node, without controllers, so that the pod keeps waiting."""
    off = frozenset({"scheduling", "claims", "eviction"})
    cluster = Cluster(options=ControllerOptions(off=off), **options)
    cluster.device_class()
    cluster.node()
    cluster.patch("nodes", "n1", {"spec": {"taints": None}}, namespace="")
    return cluster


def shared_claim(consumers, *, is_timed=True):
    cluster = idle_cluster()
    cluster.slice()
    cluster.claim()
    cluster.pod(claim="claim")
    device = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    reserved = [
        {"resource": "pods", "name": f"other-{number}", "uid": f"uid-{number}"}
        for number in range(consumers)
    ]
    allocation = {"devices": {"results": [device]}}
    if is_timed:
        allocation["allocationTimestamp"] = TIME
    status = {"allocation": allocation, "reservedFor": reserved}
    cluster.patch("resourceclaims", "claim", {"status": status}, subresource="status")
    return cluster


@pytest.mark.parametrize(("consumers", "is_full"), [(255, False), (256, True)])
async def test_claim_without_room_for_a_consumer_keeps_a_pod_that_fits_from_being_bound(
    consumers, is_full
):
    text, said = await why(shared_claim(consumers))
    assert ("fails" in text) is is_full
    full = "claim claim is reserved for 256 consumers, and a claim cannot have more"
    assert any(line.startswith(full) and "C14" in line for line in said) is is_full


@pytest.mark.parametrize(
    ("consumers", "pods", "waiting"),
    [(255, 1, ""), (256, 0, ""), (256, 1, ": pod pod waits until"),
     (256, 2, ": pods pod, pod-1 wait until")],
)  # fmt: skip
async def test_claim_without_room_for_a_consumer_names_the_pods_that_wait(consumers, pods, waiting):
    cluster = shared_claim(consumers)
    if not pods:
        cluster.delete("pods", "pod")
    for number in range(1, pods):
        cluster.pod(f"pod-{number}", claim="claim")
    async with asking(cluster) as ask:
        said = lines((await ask("resourceclaim", "claim")).reason)
    full = [line for line in said if line.startswith("it cannot be reserved for more")]
    assert len(full) == (consumers == 256)
    for line in full:
        assert line.startswith(f"it cannot be reserved for more{waiting}")
        assert ("until" in line) is bool(waiting)


def tainted_device(tolerations, taint=BAD):
    cluster = idle_cluster()
    cluster.slice(devices=[{"name": "d", "taints": [taint]}])
    cluster.claim(tolerations=tolerations)
    cluster.pod(claim="claim")
    return cluster


@pytest.mark.parametrize(
    ("toleration", "issue", "fact"),
    [
        ({"operator": "Exists"}, "C2", "not tolerated, so its pods are evicted"),
        (
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
            "",
            "tolerated until 2026-01-01T00:01:00Z",
        ),
        ({"operator": "Exists", "effect": "NoExecute"}, "", None),
    ],
)
async def test_pod_that_would_be_evicted_from_its_device_is_told_so(toleration, issue, fact):
    text, said = await why(tainted_device([toleration]))
    about = [line for line in said if "would be taken, which is tainted" in line]
    assert ("it would be evicted" in text) is (fact is not None)
    assert len(about) == (fact is not None)
    assert all(fact in line and ("C2" in line) is bool(issue) for line in about)


async def test_taint_that_evicts_no_pod_is_not_announced():
    taint = BAD | {"effect": "NoSchedule"}
    text, said = await why(tainted_device([{"operator": "Exists"}], taint))
    assert "evicted" not in text
    assert not any("would be taken" in line for line in said)


async def test_pod_that_is_evicted_from_some_of_its_nodes_is_not_said_to_be_evicted_from_all():
    cluster = tainted_device([{"operator": "Exists"}])
    assert (await why(cluster))[0].endswith(", but it would be evicted")
    cluster.node("n2")
    cluster.patch("nodes", "n2", {"spec": {"taints": None}}, namespace="")
    cluster.slice("n2", devices=[{"name": "d"}])
    text, said = await why(cluster)
    assert text.endswith(", but it would be evicted from 1 of them")
    assert any(BAD["key"] in line and "would be taken" in line for line in said)


@pytest.mark.parametrize("devices", [0, 1])
async def test_slice_with_devices_of_an_older_generation_is_named_where_the_newer_has_none(devices):
    cluster = idle_cluster()
    cluster.slice(name="old", devices=2)
    cluster.slice(name="new", devices=devices, generation=2)
    cluster.claim()
    cluster.pod(claim="claim")
    _, said = await why(cluster)
    old = "slice old of generation 1 with 2 devices is passed over, because pool "
    old += f"{DRIVER}/n1 has generation 2 (slice new)"
    assert any(line.startswith(old) for line in said) is (devices == 0)


@pytest.mark.parametrize("finalizer", ["", "example.com/hold"])
async def test_finalizer_that_keeps_a_deleted_claim_is_named(finalizer):
    cluster = shared_claim(0)
    holds = [finalizer] if finalizer else []
    protection = "resource.kubernetes.io/delete-protection"
    cluster.patch("resourceclaims", "claim", {"metadata": {"finalizers": [protection, *holds]}})
    cluster.delete("resourceclaims", "claim")
    _, said = await why(cluster)
    line = next(line for line in said if line.startswith("claim claim was deleted"))
    assert ("finalizer example.com/hold keeps it until its owner removes it" in line) is bool(holds)
    assert protection not in line


@pytest.mark.parametrize("timed", [False, True])
async def test_claim_that_was_allocated_without_a_time_keeps_a_further_pod_from_being_bound(timed):
    text, said = await why(shared_claim(1, is_timed=timed))
    assert ("binding fails each time" in text) is not timed
    about = [line for line in said if "without an allocationTimestamp" in line]
    assert len(about) == (not timed)
    assert all("known issue C13" in line for line in about)
