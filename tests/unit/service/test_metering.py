"""Metrics counted from the events of a history, under the names of the real components."""

import pytest

from app.adapters.telemetry import Telemetry
from app.domain.controllers import registry
from app.domain.controllers.registry import ControllerOptions
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.service import metering
from app.service.metering import HistoryMeter
from tests.cluster import Cluster

CLAIMS = "resourceclaim_controller_resource_claims"
CREATES = "dynamic_resource_allocation_resourceclaim_creates_total"
CREATES_FROM_TEMPLATES = "resourceclaim_controller_creates_total"
CREATES_FOR_EXTENDED_RESOURCES = "scheduler_resourceclaim_creates_total"
ATTEMPTS = "scheduler_schedule_attempts_total"
WAITS = "scheduler_dra_bindingconditions_allocations_total"
WAIT_SECONDS = "scheduler_dra_bindingconditions_wait_duration_seconds"
EVICTIONS = "device_taint_eviction_controller_pod_deletions_total"
EVICTION_SECONDS = "device_taint_eviction_controller_pod_deletion_duration_seconds"


def measured(cluster: Cluster, *, after: int = 0) -> Telemetry:
    """What a meter says that has followed the cluster from a revision on."""
    meter = Telemetry()
    history = HistoryMeter(meter, "h", cluster.profile)
    for event in cluster.line.events:
        if event.revision > after:
            history.fold(event, cluster.line.views.objects)
    history.publish({})
    return meter


def claims(meter: Telemetry, allocated: bool, source: str = "resource_claim_template") -> float:
    found = str(allocated).lower()
    return meter.value(CLAIMS, history="h", allocated=found, admin_access="false", source=source)


def attempts(meter: Telemetry, result: str) -> float:
    return meter.value(ATTEMPTS, history="h", result=result, profile="default-scheduler")


def with_pods(count: int, devices: int) -> Cluster:
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=devices)
    cluster.template()
    for number in range(count):
        cluster.pod(f"pod-{number}", template="gpu")
    return cluster.settle()


def test_claims_are_counted_by_state_and_origin():
    cluster = with_pods(3, devices=2)
    cluster.claim("mine")
    cluster.settle()
    meter = measured(cluster)
    assert claims(meter, True) == 2
    assert claims(meter, False) == 1
    assert claims(meter, False, source="") == 1
    assert meter.value(CREATES, history="h", status="success", admin_access="false") == 3
    cluster.delete("resourceclaims", "mine")
    assert claims(measured(cluster), False, source="") == 0


def test_claims_that_were_there_before_are_in_the_gauge_and_not_in_the_counter():
    cluster = with_pods(2, devices=2)
    meter = Telemetry()
    history = HistoryMeter(meter, "h")
    for _ in range(2):
        list(history.prime(cluster.line.views.objects))
    history.publish({})
    assert claims(meter, True) == 2
    assert meter.value(CREATES, history="h", status="success", admin_access="false") == 0


@pytest.mark.parametrize("parts", [0, 1, 2, 4, 5])
def test_claims_that_change_while_a_start_reads_them_are_counted_as_they_are_in_the_end(
    monkeypatch, parts
):
    monkeypatch.setattr(metering, "PRIMED_AT_ONCE", 1)
    cluster = Cluster()
    for name in "abcd":
        cluster.claim(name)
    cluster.settle()
    views, meter = cluster.line.views, Telemetry()
    history, begun = HistoryMeter(meter, "h"), views.objects.revision
    reading = history.prime(views.objects)
    for _ in range(parts):
        next(reading, None)
    for name in "bd":
        cluster.delete("resourceclaims", name)
    cluster.claim("e")
    cluster.settle()
    list(reading)
    for event in cluster.line.events:
        if event.revision > begun:
            history.fold(event, views.objects)
    history.publish({})
    assert claims(meter, False, source="") == 3


@pytest.mark.parametrize(
    ("parts", "labels"),
    [
        ({}, ("false", "false", "")),
        ({"status": {}}, ("false", "false", "")),
        ({"status": {"allocation": {}}}, ("false", "false", "")),
        ({"status": {"allocation": {"devices": {}}}}, ("true", "false", "")),
        ({"admin": [False, True]}, ("false", "true", "")),
        ({"admin": [False]}, ("false", "false", "")),
        (
            {"annotation": "resource.kubernetes.io/pod-claim-name"},
            ("false", "false", "resource_claim_template"),
        ),
        (
            {"annotation": "resource.kubernetes.io/extended-resource-claim"},
            ("false", "false", "extended_resource"),
        ),
        ({"annotation": "example.com/other"}, ("false", "false", "")),
    ],
)
def test_labels_of_a_claim_follow_from_the_claim(parts, labels):
    requests = [{"exactly": {"adminAccess": each}} for each in parts.get("admin", ())]
    claim = {
        "metadata": {"annotations": {parts.get("annotation", "x"): "gpu"}},
        "spec": {"devices": {"requests": [{"firstAvailable": []}, *requests]}},
    }
    if "status" in parts:
        claim["status"] = parts["status"]
    assert metering.labels_of(claim) == labels


def test_start_decodes_no_claim_for_good():
    cluster = with_pods(3, devices=2)
    objects = cluster.line.views.objects
    held = list(objects.events("resource.k8s.io", "resourceclaims"))
    for event in held:
        event.forget_tree()
    list(HistoryMeter(Telemetry(), "h").prime(objects))
    assert [event.tree for event in held] == [None] * 3


def test_attempts_are_counted_by_result():
    meter = measured(with_pods(3, devices=2))
    assert attempts(meter, "scheduled") == 2
    assert attempts(meter, "unschedulable") >= 1
    assert attempts(meter, "error") == 0


def test_failed_creation_of_a_claim_is_counted():
    cluster = Cluster()
    cluster.node()
    cluster.pod("pod", template="missing")
    cluster.settle()
    meter = measured(cluster)
    assert meter.value(CREATES, history="h", status="failure", admin_access="false") >= 1
    assert meter.value(CREATES, history="h", status="success", admin_access="false") == 0


def with_both_origins(version: str) -> Telemetry:
    """One claim from a template and one for an extended resource."""
    cluster = Cluster(profile=Profile(version=version, gates={"DRAExtendedResource": True}))
    cluster.node()
    spec = {"extendedResourceName": "example.com/gpu"}
    cluster.create("resource.k8s.io/v1", "DeviceClass", "gpu", spec=spec)
    cluster.slice(devices=2)
    cluster.template()
    cluster.pod("from-template", template="gpu")
    resources = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    cluster.pod("extended", containers=[{"name": "c", "image": "i", "resources": resources}])
    return measured(cluster.settle())


def test_each_component_has_its_own_metric_of_creations_up_to_1_36():
    meter = with_both_origins("1.36")
    labels = {"history": "h", "status": "success"}
    assert meter.value(CREATES_FROM_TEMPLATES, **labels, admin_access="false") == 1
    assert meter.value(CREATES_FOR_EXTENDED_RESOURCES, **labels) == 1
    assert meter.value(CREATES, **labels, admin_access="false") == 0


def test_all_components_have_one_metric_of_creations_since_1_37():
    meter = with_both_origins("1.37")
    labels = {"history": "h", "status": "success"}
    assert meter.value(CREATES, **labels, admin_access="false") == 2
    assert meter.value(CREATES_FROM_TEMPLATES, **labels, admin_access="false") == 0
    assert meter.value(CREATES_FOR_EXTENDED_RESOURCES, **labels) == 0


def test_evictions_are_counted_with_how_late_they_were():
    cluster = with_pods(2, devices=2)
    before = cluster.line.head.revision
    cluster.rule()
    cluster.settle()
    meter = measured(cluster, after=before)
    assert meter.value(EVICTIONS, history="h") == 2
    assert meter.value(EVICTION_SECONDS, history="h") == 2
    assert 'duration_seconds_bucket{history="h",le="0.005"} 2.0' in meter.render()


def test_waits_for_binding_conditions_are_counted_by_their_end():
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    device = {"name": "d", "bindsToNode": True}
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    cluster.slice(devices=[device | conditions])
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.wait(610)
    labels = {"profile": "default-scheduler", "driver": "gpu.example.com", "status": "timeout"}
    meter = measured(cluster)
    assert meter.value(WAITS, history="h", **labels) == 1
    assert meter.value(WAIT_SECONDS, history="h", **labels) == 1
    assert attempts(meter, "error") == 1


def test_queues_of_the_controllers_led_here_are_shown():
    cluster = with_pods(3, devices=2)
    leading = {found.name: found for found in cluster.line.controllers}
    meter = Telemetry()
    history = HistoryMeter(meter, "h")
    history.publish(leading)
    assert meter.value("scheduler_pending_pods", history="h", queue="unschedulable") == 1
    assert meter.value("scheduler_pending_pods", history="h", queue="active") == 0
    assert meter.value("workqueue_depth", history="h", name="resource_claim") == 0
    adds = meter.value("workqueue_adds_total", history="h", name="resource_claim")
    assert adds >= 3
    history.publish(leading)
    assert meter.value("workqueue_adds_total", history="h", name="resource_claim") == adds
    assert meter.value("redra_leads", history="h", controller="claims") == 1
    history.publish({})
    assert meter.value("redra_leads", history="h", controller="claims") == 0


def test_every_controller_can_be_led_and_counted():
    gates = {"DRADeviceTaintRules": True, "DRAResourcePoolStatus": True}
    options = ControllerOptions(cluster_objects=True, event_ttl=1)
    cluster = Cluster(Profile(gates=gates), options, kubelet=True, node_ttl=True)
    cluster.settle()
    leading = {found.name: found for found in cluster.line.controllers}
    assert set(leading) == set(registry.NAMES)
    meter = Telemetry()
    HistoryMeter(meter, "h").publish(leading)
    assert meter.value("workqueue_depth", history="h", name="serviceaccount") == 0


def with_binding_conditions() -> Cluster:
    """A pod that waits for its only device to be ready."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    cluster.slice(devices=[{"name": "d", **conditions}])
    cluster.claim()
    cluster.pod(claim="claim")
    return cluster.settle()


def waits(cluster: Cluster, status: str) -> tuple[float, str]:
    """The number of ended waits, and their seconds as they are rendered."""
    meter = measured(cluster)
    labels = {"profile": "default-scheduler", "driver": "gpu.example.com", "status": status}
    sums = [line for line in meter.render().splitlines() if line.startswith(f"{WAIT_SECONDS}_sum")]
    return meter.value(WAITS, history="h", **labels), " ".join(line.split()[-1] for line in sums)


def test_wait_of_a_pod_that_went_is_none_of_the_next_pod_of_its_name():
    cluster = with_binding_conditions()
    cluster.wait(100)
    cluster.kill("pod")
    cluster.wait(100)
    cluster.pod(claim="claim")
    cluster.wait(3)
    claim = json_tree.copy(cluster.must("resourceclaims", "claim"))
    device = {"driver": "gpu.example.com", "pool": "n1", "device": "d"}
    ready = {"type": "ready", "status": "True", "reason": "Attached", "message": ""}
    ready["lastTransitionTime"] = "2026-01-02T03:00:00Z"
    claim["status"]["devices"] = [{**device, "conditions": [ready]}]
    cluster.update("resourceclaims", claim, "status")
    cluster.wait(10)
    assert waits(cluster, "success") == (1, "5.0")


def test_wait_that_ends_because_somebody_took_the_devices_is_counted_as_an_error():
    cluster = with_binding_conditions()
    claim = json_tree.copy(cluster.must("resourceclaims", "claim"))
    claim["status"] = {}
    cluster.update("resourceclaims", claim, "status")
    cluster.wait(5)
    assert waits(cluster, "error") == (1, "5.0")
