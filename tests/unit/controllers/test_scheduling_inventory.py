"""Rows of the scheduler plug-in's table (controllers.md 8.3) that no other test shows by its name.

Elsewhere: allocated claims and deallocation, errors of selectors, shared claims and binding
conditions in `test_scheduling`; both kinds of extended resources in `test_extended_resources`.
"""

import pytest

from app.domain.controllers import pods
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.binding_cycle.delayed_binding import (
    FixedBindDelay,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources import pod_claims
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import ClaimsNotReady
from app.domain.objects.profile import Profile
from tests.cluster import DRIVER, Cluster, check_decisions, claim_spec

STILL = (
    "0/1 nodes are available: 1 cannot allocate all claims. "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)
TAINT = {"key": "bad", "effect": "NoSchedule"}


def cluster() -> Cluster:
    made = Cluster(options=ControllerOptions(off=frozenset({"claims", "garbage"})))
    made.node()
    made.device_class()
    return made


def refusal(made: Cluster, name: str = "pod") -> str:
    """Why the plug-in does not admit the pod."""
    with pytest.raises(ClaimsNotReady) as caught:
        pod_claims.resolve(made.line.views.objects, pods.facts(made.must("pods", name)))
    return str(caught.value)


def name_claim(made: Cluster, claim: str) -> None:
    body = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": claim}]}}
    made.patch("pods", "pod", body, subresource="status")


def test_template_claim_without_status():
    made = cluster()
    made.pod(template="gpu")
    assert refusal(made) == 'pod "default/pod": ResourceClaim not created yet'


def test_claim_that_is_missing():
    made = cluster()
    made.pod(claim="lost")
    assert refusal(made) == 'could not find ResourceClaim "default/lost"'


def test_template_claim_that_is_missing():
    made = cluster()
    made.pod(template="gpu")
    name_claim(made, "lost")
    assert refusal(made) == 'could not find ResourceClaim "default/lost"'


def test_template_claim_of_another_owner():
    made = cluster()
    made.claim("foreign")
    made.pod(template="gpu")
    name_claim(made, "foreign")
    assert refusal(made) == (
        "ResourceClaim default/foreign was not created for Pod default/pod (Pod is not owner)"
    )


def test_claim_that_terminates():
    made = cluster()
    spec = claim_spec()
    made.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "going", "finalizers": ["example.com/wait"]},
            "spec": spec,
        }
    )
    made.delete("resourceclaims", "going")
    made.pod(claim="going")
    assert refusal(made) == 'resourceclaim "going" is being deleted'


def alternatives(*classes: str) -> dict[str, object]:
    listed = [{"name": f"a{n}", "deviceClassName": found} for n, found in enumerate(classes)]
    return {"devices": {"requests": [{"name": "gpu", "firstAvailable": listed}]}}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (claim_spec(class_name="none"), "request gpu: device class none does not exist"),
        (alternatives("gpu", "none"), "request gpu/a1: device class none does not exist"),
    ],
    ids=["plain", "alternative"],
)
def test_missing_class(spec, text):
    made = cluster()
    made.slice()
    made.create("resource.k8s.io/v1", "ResourceClaim", "claim", spec=spec)
    made.pod(claim="claim")
    made.settle()
    condition = made.pod_condition("pod")
    assert condition["reason"] == "Unschedulable"
    assert condition["message"].startswith(f"0/1 nodes are available: {text}. preemption: ")


@pytest.mark.parametrize(
    "request_of_claim",
    [
        {"count": 3},
        {"selectors": [{"cel": {"expression": "device.driver == 'other.example.com'"}}]},
    ],
    ids=["not enough devices", "selectors not matching"],
)
def test_nothing_fits(request_of_claim):
    made = cluster()
    made.slice(devices=2)
    made.claim(**request_of_claim)
    made.pod(claim="claim")
    made.settle()
    assert made.pod_condition("pod")["message"] == STILL


@pytest.mark.parametrize(
    ("taint", "tolerations", "is_bound"),
    [
        (TAINT, [], False),
        (TAINT, [{"key": "bad", "operator": "Exists"}], True),
        ({**TAINT, "effect": "None"}, [], True),
    ],
    ids=["not tolerated", "tolerated", "None"],
)
def test_tainted_device(taint, tolerations, is_bound):
    made = cluster()
    made.slice(devices=[{"name": "d", "taints": [taint]}])
    made.claim(tolerations=tolerations)
    made.pod(claim="claim")
    made.settle()
    if is_bound:
        assert made.devices_of("claim") == ["n1/d"]
    else:
        assert made.pod_condition("pod")["message"] == STILL


def test_list_of_alternatives_takes_the_first_that_fits():
    made = cluster()
    made.device_class("big", selector="device.driver == 'none.example.com'")
    made.device_class("other")
    made.slice(devices=1)
    made.create(
        "resource.k8s.io/v1", "ResourceClaim", "claim", spec=alternatives("big", "gpu", "other")
    )
    made.pod(claim="claim")
    made.settle()
    results = made.must("resourceclaims", "claim")["status"]["allocation"]["devices"]["results"]
    assert [found["request"] for found in results] == ["gpu/a1"]


def test_failed_write_leaves_devices_free_and_the_claim_as_it_was():
    """Upstream keeps the finalizer of the failed write; here an attempt is one append."""
    made = cluster()
    made.slice(devices=2)
    made.claim("fine")
    made.claim("taken")
    made.pod("first", claim="taken")
    made.settle()
    body = {"status": {"reservedFor": [dict(found) for found in crowd()]}}
    made.patch("resourceclaims", "taken", body, subresource="status")
    assert len(made.must("resourceclaims", "taken")["status"]["reservedFor"]) == 256
    made.pod(
        resourceClaims=[
            {"name": "a", "resourceClaimName": "fine"},
            {"name": "b", "resourceClaimName": "taken"},
        ]
    )
    made.settle()
    assert made.pod_condition("pod")["reason"] == "SchedulerError"
    fine = made.must("resourceclaims", "fine")
    assert "status" not in fine or fine["status"] == {}
    assert "finalizers" not in fine["metadata"]
    assert made.devices_of("taken") == ["n1/gpu-0"]
    made.claim("other")
    made.pod("next", claim="other")
    made.settle()
    assert made.devices_of("other") == ["n1/gpu-1"]


def crowd() -> list[dict[str, str]]:
    """As many consumers as a claim may have."""
    return [{"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(256)]


def test_quirk_c17_ties_go_to_the_first_node_or_are_drawn():
    def nodes_used(*, c17: bool) -> set[str]:
        made = Cluster(options=ControllerOptions(quirks=ControllerQuirks(c17=c17)))
        for number in range(4):
            made.node(f"n{number}")
        found = set()
        for number in range(12):
            made.pod(f"pod-{number}")
            made.settle()
            found.add(made.must("pods", f"pod-{number}")["spec"]["nodeName"])
            made.delete("pods", f"pod-{number}", grace_seconds=0)
        decisions, effects = check_decisions(made)
        assert (decisions.differences, effects.differences) == ((), ())
        return found

    assert nodes_used(c17=True) == {"n0"}
    assert len(nodes_used(c17=False)) > 1


def with_an_incomplete_pool(version: str) -> Cluster:
    """Mode All finds half a pool on n1 and a whole one on n2 (controllers.md 10)."""
    made = Cluster(profile=Profile(version=version))
    made.device_class()
    for name, slices in (("n1", 2), ("n2", 1)):
        made.node(name)
        pool = {"name": name, "generation": 1, "resourceSliceCount": slices}
        made.create(
            "resource.k8s.io/v1",
            "ResourceSlice",
            f"{name}-slice",
            spec={
                "driver": DRIVER,
                "nodeName": name,
                "pool": pool,
                "devices": [{"name": "d"}],
            },
        )
    made.claim(allocationMode="All")
    made.pod(claim="claim")
    return made.settle()


def test_mode_all_is_ended_by_an_incomplete_pool_up_to_1_36():
    condition = with_an_incomplete_pool("1.36").pod_condition("pod")
    assert condition["reason"] == "SchedulerError"
    assert condition["message"] == (
        'running "DynamicResources" filter plugin: claim default/claim, request gpu: '
        "asks for all devices, but resource pool gpu.example.com/n1 is currently being updated"
    )


def test_mode_all_passes_over_the_node_of_an_incomplete_pool_since_1_37():
    made = with_an_incomplete_pool("1.37")
    assert made.devices_of("claim") == ["n2/d"]
    assert made.must("pods", "pod")["spec"]["nodeName"] == "n2"


def test_write_refused_after_a_delay_is_told_and_tried_again():
    """The 257th consumer with bindings that take time (controllers.md 3.7, C14)."""
    options = ControllerOptions(off=frozenset({"claims"}), bind_delay=FixedBindDelay(100_000))
    made = Cluster(options=options)
    made.node()
    made.device_class()
    made.slice(devices=1)
    made.claim("taken")
    made.pod("first", claim="taken")
    made.wait(1)
    body = {"status": {"reservedFor": [dict(found) for found in crowd()]}}
    made.patch("resourceclaims", "taken", body, subresource="status")
    made.pod(claim="taken")
    made.wait(8)
    condition = made.pod_condition("pod")
    assert condition["reason"] == "SchedulerError"
    assert condition["message"].startswith(
        'running PreBind plugin "DynamicResources": add reservation to claim default/taken: '
    )
    assert "nominatedNodeName" not in made.must("pods", "pod")["status"]
    assert [outcome for name, outcome in made.decisions("scheduling") if name == "pod"][:4] == [
        "Assumed",
        "Error",
        "Assumed",
        "Error",
    ]
    decisions, effects = check_decisions(made)
    assert (decisions.differences, effects.differences) == ((), ())
