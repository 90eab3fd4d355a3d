"""What a scan finds while it lasts, it also finds when it has ended."""

from collections.abc import Set

import pytest
from msgspec import structs

from app.analysis.scan import lasting_states, traces
from app.analysis.scan.scanning import Scan
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values.timestamps import SECOND
from tests.cluster import Cluster


def seen(cluster: Cluster) -> dict[str, int]:
    scan = Scan()
    scan.follow(cluster.line.events)
    return {one.incident: one.times for one in scan.sightings()}


def test_pod_that_named_its_node_is_found_after_its_end():
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.claim()
    cluster.pod(claim="claim", nodeName="n1")
    cluster.settle()
    assert seen(cluster) == {traces.BYPASSED: 1}
    cluster.delete("pods", "pod", grace_seconds=0)
    cluster.settle()
    assert seen(cluster) == {traces.BYPASSED: 1}


def test_pod_that_names_its_node_gets_no_claim_of_a_template_either():
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.template()
    cluster.pod(template="gpu", nodeName="n1")
    assert seen(cluster.settle()) == {traces.BYPASSED: 1}
    cluster.slice()
    cluster.pod("scheduled", template="gpu")
    assert seen(cluster.settle()) == {traces.BYPASSED: 1}


@pytest.mark.parametrize(
    ("seconds", "pod", "shown"),
    [(59, "", {}), (61, "", {traces.UNRESERVED: 1}), (61, "before", {}), (30, "after", {}),
     (61, "after", {traces.UNRESERVED: 1})],
)  # fmt: skip
def test_allocation_that_nobody_ever_reserved_holds_its_device(seconds, pod, shown):
    """A pod that names the claim holds it with the allocation, or waits for another reason."""
    cluster = Cluster(options=ControllerOptions(off=frozenset(("scheduling",))))
    cluster.claim()
    if pod == "before":
        cluster.pod(claim="claim")
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    allocated = {"status": {"allocation": {"devices": {"results": [result]}}}}
    cluster.update(
        "resourceclaims", {**cluster.must("resourceclaims", "claim"), **allocated}, "status"
    )
    cluster.wait(seconds)
    cluster.node()
    if pod == "after":
        cluster.pod(claim="claim")
        cluster.wait(61)
        cluster.node("n2")
    assert seen(cluster) == shown
    cluster.delete("resourceclaims", "claim")
    cluster.settle()
    assert seen(cluster) == shown


def test_pod_that_named_a_claim_twice_is_found_after_its_end():
    cluster = Cluster()
    cluster.claim()
    names = [{"name": name, "resourceClaimName": "claim"} for name in ("a", "b")]
    cluster.pod(resourceClaims=names)
    cluster.settle()
    assert seen(cluster) == {traces.NAMED_TWICE: 1}
    cluster.delete("pods", "pod")
    cluster.settle()
    assert seen(cluster) == {traces.NAMED_TWICE: 1}


def test_claim_without_a_pod_is_found_after_its_deletion_unless_one_came():
    for name, is_named in (("late", True), ("never", False)):
        cluster = Cluster()
        cluster.claim(name)
        cluster.wait(90)
        cluster.node()
        assert seen(cluster) == {lasting_states.WAITING: 1}
        if is_named:
            cluster.pod(claim=name)
            cluster.wait(1)
        cluster.delete("resourceclaims", name)
        cluster.settle()
        assert seen(cluster) == ({} if is_named else {lasting_states.WAITING: 1}), name


LATE = [
    {
        "key": "example.com/bad",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": one,
    }
    for one in (30, 300)
]


def with_rule_and_pod(*, wait: float, pod_first: bool) -> Cluster:
    """A pod that tolerates a taint for 30 s, before or after the taint was set."""
    cluster = Cluster(options=ControllerOptions(off=frozenset(("eviction",))))
    cluster.node()
    cluster.slice()
    cluster.device_class()
    for step in ("pod", "rule") if pod_first else ("rule", "pod"):
        if step == "rule":
            cluster.rule("bad", effect="NoExecute")
        else:
            cluster.claim(tolerations=LATE)
            cluster.pod(claim="claim")
        cluster.settle()
        cluster.wait(wait)
    return cluster


def test_shortest_toleration_decides_whether_a_pod_is_placed_to_be_evicted():
    assert seen(with_rule_and_pod(wait=60, pod_first=False)) == {lasting_states.TOO_LATE: 1}
    assert seen(with_rule_and_pod(wait=20, pod_first=False)) == {}


def test_claim_that_had_its_device_when_the_recording_began_was_not_placed_late():
    cluster = with_rule_and_pod(wait=60, pod_first=True)
    events = [each for each in cluster.line.events if each.key.resource != "resourceclaims"]
    last = [each for each in cluster.line.events if each.key.resource == "resourceclaims"][-1]
    now = structs.replace(last.stamp, time=events[-1].stamp.time + 60 * SECOND)
    scan = Scan()
    scan.follow([*events, structs.replace(last, stamp=now)])
    assert seen(cluster) == {one.incident: one.times for one in scan.sightings()} == {}


@pytest.mark.parametrize("name", ["gpu.deviceclass.resource.k8s.io/devices",
                                  "count/resourceclaims.resource.k8s.io"])  # fmt: skip
def test_claim_that_any_quota_refuses_is_found(name):
    cluster = Cluster()
    cluster.create("v1", "ResourceQuota", "few", spec={"hard": {name: "0"}})
    cluster.device_class()
    cluster.template()
    cluster.wait(5)
    cluster.pod(template="gpu")
    assert seen(cluster.settle()) == {"quota-leaves-no-claim": 1}


def test_taint_in_a_slice_of_an_older_generation_ends_nothing():
    cluster = Cluster(options=ControllerOptions(off=frozenset(("eviction",))))
    cluster.node()
    cluster.device_class()
    taint = {"key": "example.com/bad", "effect": "NoExecute"}
    cluster.slice(name="old", pool="p", devices=[{"name": "x", "taints": [taint]}])
    cluster.wait(60)
    cluster.slice(name="new", pool="p", devices=[{"name": "x"}], generation=2)
    cluster.claim(tolerations=LATE)
    cluster.pod(claim="claim")
    assert cluster.settle().devices_of("claim")
    assert seen(cluster) == {}


def test_message_of_a_sighting_is_quoted_to_the_words_that_decide():
    label = "resource.kubernetes.io/admin-access"
    cluster = Cluster()
    cluster.device_class()
    cluster.patch("namespaces", "default", {"metadata": {"labels": {label: "true"}}}, namespace="")
    cluster.template(adminAccess=True)
    cluster.patch("namespaces", "default", {"metadata": {"labels": {label: None}}}, namespace="")
    cluster.pod(template="gpu")
    scan = Scan()
    scan.follow(cluster.settle().line.events)
    (one,) = scan.sightings()
    assert one.message.endswith(f"requires the `{label}: true` label on the containing namespace")


def gap_of(event: Event, resource: str) -> Event:
    """A gap of a resource (empty: of all) right before an event."""
    place = ObjectKey("redra", resource, "", "")
    return structs.replace(event, type=EventType.GAP_OBSERVED, key=place, body=b"{}", tree={})


def certainties(cluster: Cluster, *, lacking: Set[str] = frozenset(), gap: str | None = None):
    events = cluster.line.events
    allocated = next(each for each in events if "allocation" in str(each.object.get("status")))
    number = events.index(allocated)
    scan = Scan(lacking=frozenset(lacking))
    scan.follow(events[:number])
    scan.follow([] if gap is None else [gap_of(allocated, gap)])
    scan.follow(events[number:])
    return {one.incident: str(one.certainty) for one in scan.sightings()}


@pytest.mark.parametrize(
    ("lacking", "gap", "certainty"),
    [
        ((), None, "certain"),
        (("devicetaintrules",), None, "likely"),
        (("ends",), None, "likely"),
        (("resourceslices",), None, "certain"),
        ((), "devicetaintrules", "likely"),
        ((), "", "likely"),
        ((), "resourceslices", "certain"),
    ],
)
def test_rule_that_may_have_ended_unseen_makes_a_late_placement_likely(lacking, gap, certainty):
    cluster = with_rule_and_pod(wait=60, pod_first=False)
    found = certainties(cluster, lacking=set(lacking), gap=gap)
    assert found == {lasting_states.TOO_LATE: certainty}
