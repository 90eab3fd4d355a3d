"""Bindings that take their time: claims in flight, restarts between writes, pods that go."""

from dataclasses import replace

import pytest

from app.analysis.verify.compare import ComparisonResult
from app.bootstrap import history_settings, process_settings
from app.domain.controllers import registry
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.binding_cycle.delayed_binding import (
    FixedBindDelay,
)
from app.domain.errors import InputError
from app.domain.values import json_tree
from tests.cluster import DRIVER, Cluster, check_decisions

DELAY = 0.04
IN_FLIGHT = "resource claim default/claim is in the process of being allocated"


def delayed(devices=1, nodes=1):
    cluster = Cluster(options=ControllerOptions(bind_delay=FixedBindDelay(int(DELAY * 1_000_000))))
    cluster.device_class()
    for number in range(nodes):
        cluster.node(f"node-{number}")
        names = [{"name": f"d{each}"} for each in range(devices)]
        cluster.slice(f"node-{number}", devices=names)
    return cluster


def is_bound(cluster, name):
    return bool(cluster.must("pods", name)["spec"].get("nodeName"))


def test_claims_are_written_at_half_time_and_the_pod_is_bound_at_the_end():
    cluster = delayed()
    cluster.claim()
    cluster.pod("first", claim="claim")
    cluster.settle()
    assert cluster.must("pods", "first")["status"]["nominatedNodeName"] == "node-0"
    assert not cluster.must("resourceclaims", "claim").get("status")
    cluster.wait(DELAY / 2)
    assert cluster.devices_of("claim") == ["node-0/d0"]
    assert not is_bound(cluster, "first")
    cluster.wait(DELAY / 2)
    assert is_bound(cluster, "first")
    outcomes = [outcome for _, outcome in cluster.decisions("scheduling")]
    assert outcomes == ["Assumed", "Reserved", "Scheduled"]


def test_second_pod_of_a_fresh_claim_is_told_and_bound_when_the_claim_is_written():
    cluster = delayed()
    cluster.claim()
    cluster.pod("first", claim="claim")
    cluster.pod("second", claim="claim")
    cluster.settle()
    assert IN_FLIGHT in cluster.pod_condition("second")["message"]
    cluster.wait(2 * DELAY)
    assert is_bound(cluster, "first")
    assert is_bound(cluster, "second")
    reserved = cluster.must("resourceclaims", "claim")["status"]["reservedFor"]
    assert [each["name"] for each in reserved] == ["first", "second"]


def test_device_in_flight_is_not_given_to_another_claim():
    cluster = delayed()
    cluster.claim()
    cluster.pod("first", claim="claim")
    cluster.settle()
    cluster.claim("other")
    cluster.pod("second", claim="other")
    cluster.settle()
    assert "cannot allocate all claims" in cluster.pod_condition("second")["message"]
    cluster.wait(1)
    assert not is_bound(cluster, "second")


def test_claims_in_flight_are_put_into_the_views_only_when_a_pod_is_tried():
    cluster = delayed(devices=2)
    cluster.claim()
    cluster.pod("first", claim="claim")
    cluster.settle()
    allocated = cluster.line.views.allocated
    pool = (DRIVER, "node-0")
    before = allocated.stamp_of(pool)
    cluster.claim("other")
    cluster.settle()
    assert allocated.stamp_of(pool) == before, "no pod was tried"
    cluster.pod("second", claim="other")
    cluster.settle()
    assert allocated.stamp_of(pool) > before
    cluster.wait(1)
    assert cluster.devices_of("claim") + cluster.devices_of("other") == ["node-0/d0", "node-0/d1"]


def test_device_that_somebody_else_gave_a_claim_in_flight_stays_given():
    """Another scheduler allocates the claim; pods that are tried meanwhile get neither device."""
    cluster = delayed(devices=4)
    cluster.claim()
    cluster.pod("first", claim="claim")
    cluster.settle()
    claim = json_tree.copy(cluster.must("resourceclaims", "claim"))
    given = {"request": "gpu", "driver": DRIVER, "pool": "node-0", "device": "d1"}
    claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    cluster.update("resourceclaims", claim)
    claim = json_tree.copy(cluster.must("resourceclaims", "claim"))
    claim["status"] = {"allocation": {"devices": {"results": [given]}}}
    cluster.update("resourceclaims", claim, "status")
    for name in ("second", "third"):
        cluster.claim(f"claim-{name}")
        cluster.pod(name, claim=f"claim-{name}")
        cluster.settle()
    cluster.wait(1)
    devices = [cluster.devices_of(name) for name in ("claim", "claim-second", "claim-third")]
    assert devices == [["node-0/d1"], ["node-0/d2"], ["node-0/d3"]]


@pytest.mark.parametrize("passed", [0, DELAY / 2, DELAY])
def test_restart_between_the_writes_ends_as_without_it(passed):
    cluster = delayed()
    cluster.claim()
    cluster.pod("first", claim="claim")
    cluster.pod("second", claim="claim")
    cluster.wait(passed)
    cluster.restart()
    cluster.wait(2)
    assert is_bound(cluster, "first")
    assert is_bound(cluster, "second")
    outcomes = [outcome for name, outcome in cluster.decisions("scheduling") if name == "first"]
    assert outcomes == ["Assumed", "Reserved", "Scheduled"]


def test_claims_of_a_pod_that_went_away_while_it_was_bound_are_written_and_let_go():
    cluster = delayed()
    cluster.claim()
    cluster.pod("first", claim="claim")
    cluster.settle()
    cluster.delete("pods", "first")
    cluster.wait(2)
    status = cluster.must("resourceclaims", "claim")["status"]
    assert "reservedFor" not in status
    # Parity: controllers.md C10, nobody frees an allocation that lost its reservation in this way.
    assert "allocation" in status


def test_claim_that_goes_away_while_its_pod_is_bound_ends_the_attempt():
    cluster = delayed()
    cluster.claim()
    cluster.pod("first", claim="claim")
    cluster.settle()
    cluster.delete("resourceclaims", "claim")
    cluster.wait(DELAY)
    message = cluster.pod_condition("first")["message"]
    missing = 'resourceclaims.resource.k8s.io "claim" not found'
    assert message.endswith(f'"DynamicResources": add finalizer to claim default/claim: {missing}')
    assert "nominatedNodeName" not in cluster.must("pods", "first")["status"]


def test_pod_gets_its_node_although_its_claim_is_to_be_deleted_once_it_was_written():
    """Parity: controllers.md 3.7, only claims that are still to be written are looked at."""
    cluster = delayed()
    cluster.claim()
    cluster.pod("first", claim="claim")
    cluster.settle()
    cluster.wait(DELAY / 2)
    cluster.delete("resourceclaims", "claim")
    assert not is_bound(cluster, "first")
    cluster.wait(DELAY / 2)
    assert is_bound(cluster, "first")
    assert "deletionTimestamp" in cluster.must("resourceclaims", "claim")["metadata"]


def test_pod_without_claims_is_bound_at_the_end():
    cluster = delayed()
    cluster.pod("plain")
    cluster.wait(DELAY / 2)
    assert not is_bound(cluster, "plain")
    cluster.wait(DELAY / 2)
    assert is_bound(cluster, "plain")


def test_binding_conditions_are_looked_at_from_the_write_on():
    cluster = Cluster(options=ControllerOptions(bind_delay=FixedBindDelay(40_000)))
    cluster.device_class()
    cluster.node()
    device = {
        "name": "d",
        "bindsToNode": True,
        "bindingConditions": ["ready"],
        "bindingFailureConditions": ["failed"],
    }
    cluster.slice(devices=[device])
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.wait(1)
    assert [each for _, each in cluster.decisions("scheduling")] == ["Assumed", "WaitingForBinding"]
    assert "waiting for binding conditions for device on node n1" in cluster.messages("pod")


def test_decisions_of_delayed_bindings_are_made_again_alike():
    cluster = delayed(devices=2)
    cluster.claim()
    for name in ("first", "second"):
        cluster.pod(name, claim="claim")
    cluster.wait(1)
    decisions, effects = check_decisions(cluster)
    assert not {ComparisonResult.DIFFERENT} & (decisions.counts.keys() | effects.counts.keys())
    assert decisions.counts[ComparisonResult.SAME] >= 6


@pytest.mark.parametrize("millis", [-1, 0.5, "30", registry.BIND_DELAY_MAX_MILLIS + 1])
def test_delay_of_bindings_is_a_number_of_milliseconds(millis):
    with pytest.raises(InputError):
        registry.options_from({"controllers": {"bindDelayMillis": millis}})


def test_delay_of_bindings_is_a_setting_of_the_history():
    options = registry.options_from({"controllers": {"bindDelayMillis": 30}})
    assert options.bind_delay("uid", 1_000_000) == (1_015_000, 1_030_000)
    assert registry.options_from({}).bind_delay is None


@pytest.mark.parametrize("passed", [0, DELAY / 2])
@pytest.mark.parametrize("lost", ["claim", "allocation", "pod"])
def test_act_that_met_another_world_is_decided_again_alike(passed, lost):
    """Between the acts of a binding somebody takes away or changes what it is about."""
    cluster = delayed(devices=2)
    cluster.claim()
    cluster.pod("first", claim="claim")
    cluster.wait(passed)
    if lost == "claim":
        cluster.delete("resourceclaims", "claim")
    elif lost == "pod":
        cluster.delete("pods", "first", grace_seconds=0)
    else:
        tree = json_tree.copy(cluster.must("resourceclaims", "claim"))
        if passed:
            tree["status"] = {}
        else:
            result = {"driver": DRIVER, "pool": "node-0", "device": "d1", "request": "gpu"}
            tree["status"] = {"allocation": {"devices": {"results": [result]}}}
        cluster.update("resourceclaims", tree, "status")
    cluster.wait(30)
    for compared in check_decisions(cluster):
        assert compared.differences == (), compared.differences[:1]


def test_new_histories_take_the_delay_of_the_process():
    chosen = replace(process_settings.settings(), bind_delay_millis=30)
    assert history_settings.history_settings(chosen)["controllers"]["bindDelayMillis"] == 30
    assert (
        "bindDelayMillis"
        not in history_settings.history_settings(process_settings.settings())["controllers"]
    )


def test_pods_that_are_replaced_for_ever_are_no_faster_than_their_bindings():
    """Parity: controllers.md C2.

    Recorded with a replacement every 60 to 70 ms; nothing but writes slows it.
    """
    cluster = Cluster(kubelet=True, options=ControllerOptions(bind_delay=FixedBindDelay(60_000)))
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=1)
    cluster.rule()
    cluster.template(tolerations=[{"operator": "Exists"}])
    labels = {"app": "loop"}
    spec = {
        "containers": [{"name": "main", "image": "busybox:1"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "terminationGracePeriodSeconds": 0,
    }
    cluster.create(
        "apps/v1",
        "ReplicaSet",
        "loop",
        spec={
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    )
    cluster.wait(1.2)
    made = sum("Created pod" in text for text in cluster.messages("loop"))
    assert 2 <= made <= 1 + 1.2 / 0.06


def cluster_with_two_claims():
    cluster = delayed(devices=2)
    entries = []
    for name in ("one", "two"):
        cluster.claim(name)
        entries.append({"name": name, "resourceClaimName": name})
    cluster.pod("pod", resourceClaims=entries)
    cluster.settle()
    return cluster


def test_claims_before_one_that_cannot_be_written_stay_allocated():
    """Parity: controllers.md 3.7, pods with several claims are not atomic in the store."""
    cluster = cluster_with_two_claims()
    cluster.delete("resourceclaims", "two")
    cluster.wait(DELAY)
    status = cluster.must("resourceclaims", "one")["status"]
    assert "allocation" in status
    assert "reservedFor" not in status
    message = cluster.pod_condition("pod")["message"]
    missing = 'resourceclaims.resource.k8s.io "two" not found'
    assert message.endswith(f'"DynamicResources": add finalizer to claim default/two: {missing}')
    cluster.claim("two")
    cluster.wait(15)
    assert is_bound(cluster, "pod")
    assert cluster.devices_of("one") == ["node-0/d0"]
    for compared in check_decisions(cluster):
        assert compared.differences == (), compared.differences[:1]


def test_claims_after_one_that_cannot_be_written_stay_as_they_were():
    cluster = cluster_with_two_claims()
    cluster.delete("resourceclaims", "one")
    cluster.wait(DELAY)
    assert not cluster.must("resourceclaims", "two").get("status")


def test_claims_of_a_gone_pod_are_written_up_to_the_first_that_is_gone_too():
    cluster = cluster_with_two_claims()
    cluster.delete("pods", "pod")
    cluster.delete("resourceclaims", "two")
    cluster.wait(DELAY)
    status = cluster.must("resourceclaims", "one")["status"]
    assert "allocation" in status
    assert "reservedFor" not in status


def full(cluster, name, device):
    """The claim has a device and as many consumers as it can have (C14)."""
    tree = json_tree.copy(cluster.must("resourceclaims", name))
    result = {"driver": DRIVER, "pool": "node-0", "device": device, "request": "gpu"}
    users = [{"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(256)]
    tree["status"] = {"allocation": {"devices": {"results": [result]}}, "reservedFor": users}
    cluster.update("resourceclaims", tree, "status")


def cluster_with_a_full_claim(*names):
    cluster = Cluster(
        options=ControllerOptions(bind_delay=FixedBindDelay(40_000), off=frozenset({"claims"}))
    )
    cluster.device_class()
    cluster.node("node-0")
    cluster.slice("node-0", devices=[{"name": "d0"}, {"name": "d1"}])
    for name in ("one", "two"):
        cluster.claim(name)
    full(cluster, "two", "d1")
    entries = [{"name": name, "resourceClaimName": name} for name in names]
    cluster.pod("pod", resourceClaims=entries)
    return cluster


def test_claims_before_one_that_is_refused_stay_allocated():
    cluster = cluster_with_a_full_claim("one", "two")
    cluster.wait(DELAY)
    status = cluster.must("resourceclaims", "one")["status"]
    assert "allocation" in status
    assert "reservedFor" not in status
    message = cluster.pod_condition("pod")["message"]
    assert message.startswith('running PreBind plugin "DynamicResources": add reservation to claim')
    assert "claim default/two: " in message
    assert "must have at most 256 items" in message
    cluster.wait(20)
    for compared in check_decisions(cluster):
        assert compared.differences == (), compared.differences[:1]


def test_claims_after_one_that_is_refused_stay_as_they_were():
    cluster = cluster_with_a_full_claim("two", "one")
    cluster.wait(DELAY)
    assert not cluster.must("resourceclaims", "one").get("status")
    assert "claim default/two: " in cluster.pod_condition("pod")["message"]


def test_refused_claim_of_a_device_with_conditions_is_told_at_once():
    cluster = cluster_with_a_full_claim("one", "two")
    tree = json_tree.copy(cluster.must("resourceslices", "node-0-slice"))
    tree["spec"]["devices"][0]["bindingConditions"] = ["ready"]
    tree["spec"]["devices"][0]["bindingFailureConditions"] = ["failed"]
    cluster.update("resourceslices", tree)
    cluster.wait(DELAY)
    assert "must have at most 256 items" in cluster.pod_condition("pod")["message"]
