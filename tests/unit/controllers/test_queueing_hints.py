"""Which change wakes which waiting pod, and above all which does not (controllers.md 3.9)."""

import pytest

from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from tests.cluster import DRIVER, Cluster

TAINT = {"key": "example.com/off", "effect": "NoSchedule"}


def waiting(*, devices: int = 0, profile: Profile = Profile(), **request: object) -> Cluster:
    """A node without enough devices, and pod `pod` with claim `mine` that has waited a minute."""
    cluster = Cluster(profile=profile)
    cluster.device_class()
    cluster.node()
    if devices:
        cluster.slice(devices=devices)
    cluster.claim("mine", count=devices + 1, **request)
    cluster.pod(claim="mine")
    return cluster.wait(60)


def attempts(cluster: Cluster) -> int:
    return len(cluster.decisions("scheduling"))


def is_woken(cluster: Cluster, before: int) -> bool:
    """Whether another attempt follows within a second."""
    cluster.wait(1)
    return attempts(cluster) > before


def test_added_toleration_wakes_the_pod_that_the_taint_of_its_node_kept_away():
    cluster = Cluster()
    cluster.node()
    cluster.patch("nodes", "n1", {"spec": {"taints": [TAINT]}})
    cluster.settle()
    cluster.pod()
    cluster.wait(60)
    tolerations = cluster.must("pods", "pod")["spec"]["tolerations"]
    more = [*tolerations, {"key": "example.com/off", "operator": "Exists"}]
    cluster.patch("pods", "pod", {"spec": {"tolerations": more}})
    cluster.settle()
    assert cluster.must("pods", "pod")["spec"]["nodeName"] == "n1"


def test_added_toleration_wakes_no_pod_that_lacks_devices():
    cluster = waiting()
    before = attempts(cluster)
    tolerations = cluster.must("pods", "pod")["spec"]["tolerations"]
    more = [*tolerations, {"key": "example.com/off", "operator": "Exists"}]
    cluster.patch("pods", "pod", {"spec": {"tolerations": more}})
    assert not is_woken(cluster, before)


def test_labels_of_a_pod_wake_it_only_when_neighbours_kept_it_away():
    cluster = waiting()
    before = attempts(cluster)
    cluster.patch("pods", "pod", {"metadata": {"labels": {"app": "web"}}})
    assert not is_woken(cluster, before)


@pytest.mark.parametrize(
    "body",
    [{"metadata": {"labels": {"a": "b"}}}, {"metadata": {"finalizers": ["example.com/keep"]}}],
    ids=["label", "finalizer"],
)
def test_own_claim_with_the_same_status_wakes_nobody(body):
    cluster = waiting()
    before = attempts(cluster)
    cluster.patch("resourceclaims", "mine", body)
    assert not is_woken(cluster, before)


def test_own_claim_with_another_status_wakes_its_pod():
    cluster = waiting(devices=1)
    before = attempts(cluster)
    tree = json_tree.copy(cluster.must("resourceclaims", "mine"))
    result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    tree["status"] = {"allocation": {"devices": {"results": [result]}}}
    cluster.update("resourceclaims", tree, "status")
    assert is_woken(cluster, before)


def test_claim_of_another_pod_wakes_nobody_until_it_is_freed():
    cluster = waiting(devices=1)
    before = attempts(cluster)
    cluster.claim("other")
    cluster.pod("other", claim="other")
    cluster.settle()
    before += 1
    assert attempts(cluster) == before, "the other pod was placed and nobody else was tried"
    cluster.finish("other")
    assert is_woken(cluster, before)


def test_rule_that_taints_a_published_device_wakes():
    cluster = waiting(devices=1)
    before = attempts(cluster)
    cluster.rule(effect="None")
    assert is_woken(cluster, before)


def test_rule_about_a_device_that_is_not_published_wakes_nobody():
    cluster = waiting(devices=1)
    before = attempts(cluster)
    cluster.rule(selector={"driver": DRIVER, "pool": "n1", "device": "gpu-7"})
    cluster.settle()
    cluster.delete("devicetaintrules", "rule")
    assert not is_woken(cluster, before)


def test_rule_whose_new_selector_taints_the_same_devices_wakes_nobody():
    cluster = waiting(devices=1)
    cluster.rule(effect="NoSchedule")
    cluster.wait(60)
    before = attempts(cluster)
    selector = {"driver": DRIVER, "pool": "n1"}
    cluster.patch("devicetaintrules", "rule", {"spec": {"deviceSelector": selector}})
    assert not is_woken(cluster, before)


@pytest.mark.parametrize("release", ["1.36", "1.36.2"], ids=["gate off", "not seen (C24)"])
def test_rule_that_the_scheduler_does_not_see_wakes_nobody(release):
    gates = {"DRADeviceTaintRules": release != "1.36"}
    cluster = waiting(devices=1, profile=Profile(version=release, gates=gates))
    before = attempts(cluster)
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "a", "effect": "NoSchedule"}}
    cluster.create("resource.k8s.io/v1beta2", "DeviceTaintRule", "rule", spec=spec)
    assert not is_woken(cluster, before)


def test_wakes_are_the_same_after_a_restart():
    cluster = waiting(devices=1)
    cluster.rule(effect="NoSchedule")
    cluster.wait(60)
    before = attempts(cluster)
    cluster.patch("resourceclaims", "mine", {"metadata": {"labels": {"a": "b"}}})
    selector = {"driver": DRIVER, "pool": "n1"}
    cluster.patch("devicetaintrules", "rule", {"spec": {"deviceSelector": selector}})
    cluster.settle()
    cluster.restart()
    assert not is_woken(cluster, before)


GPU = "example.com/gpu"


def lacks_resource() -> Cluster:
    """A pod that asks for a resource which no class serves."""
    cluster = Cluster()
    cluster.node()
    cluster.slice()
    amounts = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    cluster.pod(containers=[{"name": "main", "image": "i:1", "resources": amounts}])
    cluster.wait(60)
    assert "Insufficient example.com/gpu" in cluster.messages("pod")[0]
    return cluster


def test_class_that_serves_the_resource_wakes_its_pod():
    cluster = lacks_resource()
    spec = {"extendedResourceName": GPU}
    cluster.create("resource.k8s.io/v1", "DeviceClass", "gpu", spec=spec)
    cluster.settle()
    assert cluster.must("pods", "pod")["spec"]["nodeName"] == "n1"


def test_class_that_begins_to_serve_the_resource_wakes_its_pod():
    cluster = lacks_resource()
    cluster.device_class()
    before = attempts(cluster)
    cluster.patch("deviceclasses", "gpu", {"metadata": {"labels": {"a": "b"}}})
    assert not is_woken(cluster, before)
    cluster.patch("deviceclasses", "gpu", {"spec": {"extendedResourceName": GPU}})
    cluster.settle()
    assert cluster.must("pods", "pod")["spec"]["nodeName"] == "n1"


def test_class_of_another_resource_wakes_no_pod_that_lacks_room():
    cluster = lacks_resource()
    before = attempts(cluster)
    spec = {"extendedResourceName": "example.com/nic"}
    cluster.create("resource.k8s.io/v1", "DeviceClass", "nic", spec=spec)
    assert not is_woken(cluster, before)


def test_pod_that_names_one_claim_twice_waits_and_goes():
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    entries = [{"name": name, "resourceClaimName": "late"} for name in ("one", "two")]
    cluster.pod(resourceClaims=entries)
    cluster.settle()
    cluster.claim("late")
    cluster.settle()
    cluster.delete("pods", "pod", grace_seconds=0)
    cluster.settle()
    assert cluster.names("pods") == []


def unready() -> Cluster:
    """A pod whose claim a user deletes while it waits for its device, which fails."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    cluster.slice(devices=[{"name": "d", "bindsToNode": True, **conditions}])
    cluster.claim("mine")
    cluster.pod(claim="mine")
    cluster.wait(2)
    cluster.delete("resourceclaims", "mine")
    device_fails(cluster)
    return cluster


def device_fails(cluster: Cluster) -> None:
    """The driver reports that the device of the claim cannot be made ready."""
    found = cluster.must("resourceclaims", "mine")["status"]["allocation"]["devices"]["results"][0]
    condition = {"type": "failed", "status": "True", "reason": "Broken", "message": "no link"}
    condition["lastTransitionTime"] = "2026-01-02T03:00:00Z"
    device = {key: found[key] for key in ("driver", "pool", "device")}
    status = {"devices": [{**device, "conditions": [condition]}]}
    cluster.patch("resourceclaims", "mine", {"status": status}, subresource="status")


def test_pod_whose_claim_is_deleted_while_it_is_bound_is_not_tried_again():
    cluster = unready().wait(3)
    assert cluster.decisions("scheduling")[-1] == ("pod", "Error")
    cluster.wait(400)
    assert cluster.decisions("scheduling")[-1] == ("pod", "Error"), "neither after its back-off"
    condition = cluster.pod_condition("pod")
    assert condition is not None
    assert condition["message"].endswith('claim=mine, reason=Broken, message="no link"')


def test_pod_that_was_refused_in_back_off_is_tried_when_its_claim_comes_again():
    cluster = unready().wait(60)
    before = attempts(cluster)
    assert cluster.get("resourceclaims", "mine") is None
    cluster.claim("mine")
    assert is_woken(cluster, before)


@pytest.mark.parametrize("resource", ["resourceclaims", ""], ids=["deleted", "kept"])
def test_time_alone_brings_back_no_pod_whose_claim_is_being_deleted(resource):
    cluster = waiting()
    body = {"metadata": {"finalizers": ["example.com/keep"]}}
    cluster.patch("resourceclaims", "mine", body)
    if resource:
        cluster.delete(resource, "mine")
    before = attempts(cluster)
    cluster.wait(400)
    assert (attempts(cluster) > before) is not bool(resource)


@pytest.mark.parametrize("is_deleted", [True, False])
def test_no_event_brings_back_a_pod_whose_claim_is_being_deleted(is_deleted):
    cluster = Cluster()
    cluster.device_class()
    cluster.node(cpu="1")
    cluster.slice(devices=1)
    cluster.claim("mine", count=1)
    cluster.pod(claim="mine", requests={"cpu": "2"})
    cluster.wait(60)
    cluster.patch("resourceclaims", "mine", {"metadata": {"finalizers": ["example.com/keep"]}})
    if is_deleted:
        cluster.delete("resourceclaims", "mine")
    before = attempts(cluster)
    cluster.node("large", cpu="32")
    assert is_woken(cluster, before) is not is_deleted
