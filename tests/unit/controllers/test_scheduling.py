"""The scheduler over whole clusters in virtual time (controllers.md 3, 4 and 8.3)."""

import pytest

from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.framework import scoring
from app.domain.controllers.scheduling.reports import messages
from app.domain.controllers.scheduling.scheduling_cycle.attempt import nodes_to_find
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from tests import draws
from tests.cluster import DRIVER, Cluster, check_decisions, claim_spec, writes

NOT_HELPFUL = "Preemption is not helpful for scheduling."
NO_VICTIMS = "No preemption victims found for incoming pod."


def fleet(nodes: int = 1, devices: int = 2, **options) -> Cluster:
    cluster = Cluster(**options)
    cluster.device_class()
    for number in range(1, nodes + 1):
        cluster.node(f"n{number}")
        if devices:
            cluster.slice(f"n{number}", devices=devices)
    cluster.template()
    return cluster.settle()


def node_of(cluster: Cluster, pod: str = "pod") -> str:
    return cluster.must("pods", pod)["spec"].get("nodeName", "")


def message(cluster: Cluster, pod: str = "pod") -> str:
    condition = cluster.pod_condition(pod)
    assert condition is not None, "the pod has no condition PodScheduled"
    assert condition["status"] == "False"
    return condition["message"]


def test_writes_of_a_pod_with_a_fresh_claim_in_the_real_order():
    cluster = fleet()
    first = len(cluster.line.events)
    cluster.pod(template="gpu")
    cluster.settle()
    claim = cluster.claim_of("pod")
    assert writes(cluster.line.events[first:])[:-1] == [
        "create pods/pod",
        f"create resourceclaims/{claim}",
        "patch pods/pod",
        "patch pods/pod",
        f"update resourceclaims/{claim}",
        f"update resourceclaims/{claim}",
        "create pods/pod",
    ]
    assert cluster.messages("pod") == ["Successfully assigned default/pod to n1"]


def test_claims_of_a_pod_are_written_one_after_the_other():
    cluster = fleet()
    cluster.pod(
        resourceClaims=[
            {"name": "a", "resourceClaimTemplateName": "gpu"},
            {"name": "b", "resourceClaimTemplateName": "gpu"},
        ]
    )
    cluster.settle()
    a, b = cluster.claim_of("pod", "a"), cluster.claim_of("pod", "b")
    updates = [w for w in writes(cluster.line.events) if w.startswith("update resourceclaims")]
    assert updates == [f"update resourceclaims/{name}" for name in (a, a, b, b)]


def test_bound_pod_has_its_condition_replaced_and_no_nominated_node():
    cluster = fleet()
    cluster.pod(template="gpu")
    cluster.settle()
    status = cluster.must("pods", "pod")["status"]
    assert "nominatedNodeName" not in status
    assert cluster.pod_condition("pod") == {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }


def test_second_pod_of_a_shared_claim_needs_one_claim_write():
    cluster = fleet()
    cluster.claim()
    cluster.pod("a", claim="claim")
    cluster.settle()
    first = len(cluster.line.events)
    cluster.pod("b", claim="claim")
    cluster.settle()
    assert writes(cluster.line.events[first:])[:-1] == [
        "create pods/b",
        "patch pods/b",
        "update resourceclaims/claim",
        "create pods/b",
    ]
    assert node_of(cluster, "b") == node_of(cluster, "a")


# Messages


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (
            1,
            "0/1 nodes are available: 1 cannot allocate all claims. "
            f"preemption: 0/1 nodes are available: 1 {NOT_HELPFUL}",
        ),
        (
            12,
            "0/12 nodes are available: 12 cannot allocate all claims. "
            f"preemption: 0/12 nodes are available: 12 {NOT_HELPFUL}",
        ),
    ],
)
def test_no_device_free(nodes, text):
    cluster = fleet(nodes=nodes, devices=0)
    cluster.pod(template="gpu")
    cluster.settle()
    assert message(cluster) == text
    assert cluster.messages("pod") == [text]


def test_missing_class():
    cluster = fleet()
    cluster.template("bad", class_name="gpu9")
    cluster.pod(template="bad")
    cluster.settle()
    assert message(cluster) == (
        "0/1 nodes are available: request gpu: device class gpu9 does not exist. "
        "preemption: 0/1 nodes are available: "
        f"1 {NOT_HELPFUL}"
    )


def test_pod_without_claims_that_needs_too_much_cpu():
    cluster = fleet(nodes=8)
    for number in range(8):
        cluster.pod(f"big-{number}", requests={"cpu": "30"})
    cluster.settle()
    cluster.pod(requests={"cpu": "4"})
    cluster.settle()
    assert message(cluster) == (
        "0/8 nodes are available: 8 Insufficient cpu. "
        f"preemption: 0/8 nodes are available: 8 {NO_VICTIMS}"
    )


def test_no_nodes():
    cluster = fleet(nodes=0)
    cluster.pod(template="gpu")
    cluster.settle()
    assert message(cluster) == "no nodes available to schedule pods"


def test_items_are_sorted_as_strings():
    cluster = fleet(nodes=13, devices=0)
    for number in range(7):
        cluster.node(f"x{number}")
        cluster.patch("nodes", f"x{number}", {"spec": {"unschedulable": True}})
    cluster.settle()
    cluster.pod(template="gpu")
    cluster.settle()
    assert message(cluster).startswith(
        "0/20 nodes are available: 13 cannot allocate all claims, 7 node(s) were unschedulable. "
    )


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"nodeSelector": {"a": "b"}}, "node(s) didn't match Pod's node affinity/selector"),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
                            ]
                        }
                    }
                }
            },
            "node(s) didn't match Pod's node affinity/selector",
        ),
    ],
)
def test_node_affinity(spec, reason):
    cluster = fleet()
    cluster.pod(template="gpu", **spec)
    cluster.settle()
    assert message(cluster).startswith(f"0/1 nodes are available: 1 {reason}. preemption: ")


def test_node_taint_and_its_toleration():
    cluster = fleet()
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    cluster.patch("nodes", "n1", {"spec": {"taints": [taint]}})
    cluster.pod("plain", template="gpu")
    cluster.pod(
        "tolerant", template="gpu", tolerations=[{"key": "dedicated", "operator": "Exists"}]
    )
    cluster.settle()
    assert message(cluster, "plain") == (
        "0/1 nodes are available: 1 node(s) had untolerated taint(s). "
        f"preemption: 0/1 nodes are available: 1 {NOT_HELPFUL}"
    )
    assert node_of(cluster, "tolerant") == "n1"


def test_room_for_pods():
    cluster = Cluster()
    cluster.node(pods=1)
    cluster.pod("a")
    cluster.pod("b")
    cluster.settle()
    assert message(cluster, "b").startswith(
        "0/1 nodes are available: 1 Too many pods. preemption: "
    )
    cluster.finish("a")
    cluster.wait(2)
    assert node_of(cluster, "b") == "n1"


def test_anti_affinity_by_topology_key():
    cluster = Cluster()
    for number in range(1, 4):
        cluster.node(f"n{number}", rack="r1" if number < 3 else "r2")
    term = {
        "topologyKey": "rack",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for number in range(3):
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"web-{number}", "labels": {"app": "web"}},
                "spec": {"affinity": anti, "containers": [{"name": "c", "image": "i:1"}]},
            }
        )
    cluster.settle()
    racks = {node_of(cluster, f"web-{n}") in ("n1", "n2") for n in (0, 1)}
    assert racks == {True, False}
    assert message(cluster, "web-2") == (
        "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules. "
        "preemption: 0/3 nodes are available: "
        f"3 {NO_VICTIMS}"
    )


def test_node_out_of_reach_of_an_allocated_claim():
    cluster = fleet(nodes=2)
    cluster.claim()
    cluster.pod("a", claim="claim")
    cluster.settle()
    other = {"n1": "n2", "n2": "n1"}[node_of(cluster, "a")]
    cluster.pod("b", claim="claim", nodeSelector={"kubernetes.io/hostname": other})
    cluster.settle()
    assert message(cluster, "b") == (
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "1 resourceclaim not available on the node. "
        f"preemption: 0/2 nodes are available: 2 {NOT_HELPFUL}"
    )


def test_misplaced_unused_claim_is_deallocated_and_the_pod_scheduled():
    cluster = fleet(nodes=2)
    cluster.claim()
    cluster.pod("a", claim="claim")
    cluster.settle()
    home = node_of(cluster, "a")
    other = {"n1": "n2", "n2": "n1"}[home]
    # A reservation is taken back without deallocation (C10), as a failed binding does.
    tree = json_tree.copy(cluster.must("resourceclaims", "claim"))
    tree["status"].pop("reservedFor")
    cluster.update("resourceclaims", tree, "status")
    cluster.delete("pods", "a", grace_seconds=0)
    cluster.pod("b", claim="claim", nodeSelector={"kubernetes.io/hostname": other})
    cluster.settle()
    assert node_of(cluster, "b") == other
    told = [text for text in cluster.messages("b") if "deallocation" in text]
    assert told[0].startswith("0/2 nodes are available: ")
    assert "deallocation of ResourceClaim completed, preemption: 0/2" in told[0]


def test_preenqueue_leaves_no_trace_c11():
    cluster = fleet()
    cluster.pod(claim="absent")
    cluster.wait(3600)
    assert cluster.pod_condition("pod") is None
    assert cluster.messages("pod") == []
    cluster.claim("absent")
    cluster.settle()
    assert node_of(cluster) == "n1"


def test_claim_that_terminates_gates_its_pods():
    cluster = fleet()
    cluster.claim()
    cluster.pod("a", claim="claim")
    cluster.settle()
    cluster.delete("resourceclaims", "claim")
    cluster.pod("b", claim="claim")
    cluster.wait(60)
    assert cluster.pod_condition("b") is None


def test_selector_error_ends_the_attempt_for_all_nodes_c16():
    cluster = fleet(nodes=2)
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        "broken",
        spec={
            "spec": claim_spec(
                selectors=[
                    {"cel": {"expression": f'device.attributes["{DRIVER}"].noSuchAttribute == 1'}}
                ]
            )
        },
    )
    cluster.pod(template="broken")
    cluster.settle()
    condition = cluster.pod_condition("pod")
    claim = cluster.claim_of("pod")
    assert condition["reason"] == "SchedulerError"
    text = f'running "DynamicResources" filter plugin: claim default/{claim}: selector #0'
    assert condition["message"].startswith(text)
    assert "CEL runtime error: no such key: noSuchAttribute" in condition["message"]


# Queue


def test_first_second_and_third_failure():
    """Event 1, event 2 because the condition moved the version, then one series, then silence."""
    cluster = fleet(devices=0)
    cluster.pod(template="gpu")
    cluster.settle()
    kinds = []
    for number in range(8):
        before = len(cluster.line.events)
        cluster.device_class(f"other-{number}")
        cluster.wait(15)
        made = [e for e in cluster.line.events[before:] if e.key.resource == "events"]
        kinds.append([str(e.type).removeprefix("Object") for e in made])
    assert kinds == [["Created"], ["Updated"], [], [], [], [], [], []]
    told = [outcome for _, outcome in cluster.decisions("scheduling")]
    assert told.count("Unschedulable") == 3
    assert told[3:] == ["Unchanged"] * (len(told) - 3)


def test_condition_of_a_failure_is_added_behind_those_that_others_wrote():
    cluster = fleet(devices=0)
    cluster.pod(template="gpu", schedulingGates=[{"name": "example.com/wait"}])
    extra = {"type": "example.com/Admitted", "status": "True"}
    cluster.patch("pods", "pod", {"status": {"conditions": [extra]}}, subresource="status")
    cluster.patch("pods", "pod", {"spec": {"schedulingGates": None}})
    cluster.settle()
    found = cluster.must("pods", "pod")["status"]["conditions"]
    assert [one["type"] for one in found] == ["example.com/Admitted", "PodScheduled"]
    assert found[1]["reason"] == "Unschedulable"


def test_released_device_wakes_a_waiting_pod():
    cluster = fleet(devices=1)
    cluster.pod("a", template="gpu")
    cluster.pod("b", template="gpu")
    cluster.settle()
    assert node_of(cluster, "b") == ""
    cluster.finish("a")
    cluster.wait(2)
    assert node_of(cluster, "b") == "n1"


def test_new_slice_wakes_and_deleted_slice_does_not_c15():
    cluster = fleet(devices=0)
    cluster.pod(template="gpu")
    cluster.settle()
    cluster.slice()
    cluster.wait(2)
    assert node_of(cluster) == "n1"


def test_missed_trigger_is_mended_by_the_flush_after_five_minutes():
    cluster = fleet(devices=1, profile=Profile(version="1.36"))
    cluster.claim()
    cluster.pod("a", claim="claim")
    cluster.settle()
    cluster.pod("b", template="gpu")
    cluster.settle()
    tree = json_tree.copy(cluster.must("resourceclaims", "claim"))
    tree["metadata"].pop("finalizers")
    cluster.delete("pods", "a", grace_seconds=0)
    cluster.update("resourceclaims", tree)
    cluster.delete("resourceclaims", "claim")
    cluster.wait(60)
    assert node_of(cluster, "b") == "", "deleting a claim wakes nobody (C15)"
    cluster.wait(300)
    assert node_of(cluster, "b") == "n1"


def test_higher_priority_goes_first():
    cluster = fleet(devices=0, nodes=1)
    cluster.pod("low", template="gpu")
    cluster.create("scheduling.k8s.io/v1", "PriorityClass", "high", value=10)
    cluster.pod("high", template="gpu", priorityClassName="high")
    cluster.settle()
    cluster.slice(devices=1)
    cluster.wait(15)
    assert node_of(cluster, "high") == "n1"
    assert node_of(cluster, "low") == ""


def test_pod_with_scheduling_gates_waits():
    cluster = fleet()
    cluster.pod(template="gpu", schedulingGates=[{"name": "example.com/g"}])
    cluster.wait(60)
    assert node_of(cluster) == ""
    cluster.patch("pods", "pod", {"spec": {"schedulingGates": None}})
    cluster.settle()
    assert node_of(cluster) == "n1"


def test_pod_of_another_scheduler_is_left_alone():
    cluster = fleet()
    cluster.pod(template="gpu", schedulerName="mine")
    cluster.wait(60)
    assert node_of(cluster) == ""


def test_rule_without_toleration_keeps_pods_away_until_it_goes():
    cluster = fleet()
    cluster.rule(effect="NoSchedule")
    cluster.pod(template="gpu")
    cluster.settle()
    assert "1 cannot allocate all claims" in message(cluster)
    cluster.delete("devicetaintrules", "rule")
    cluster.wait(15)
    assert node_of(cluster) == "n1"


def test_status_of_a_rule_wakes_nobody():
    cluster = fleet()
    cluster.rule(effect="NoSchedule")
    cluster.pod(template="gpu")
    cluster.wait(30)
    before = len(cluster.decisions("scheduling"))
    body = {
        "status": {
            "conditions": [
                {
                    "type": "x",
                    "status": "True",
                    "reason": "R",
                    "message": "",
                    "lastTransitionTime": "2026-01-02T03:00:00Z",
                }
            ]
        }
    }
    cluster.patch("devicetaintrules", "rule", body, subresource="status")
    cluster.wait(30)
    assert len(cluster.decisions("scheduling")) == before


def test_the_257th_consumer_fails_at_the_write_c14():
    cluster = fleet(options=ControllerOptions(off=frozenset({"claims"})))
    cluster.patch(
        "nodes", "n1", {"status": {"allocatable": {"pods": "1000"}}}, subresource="status"
    )
    cluster.claim()
    for number in range(257):
        cluster.pod(f"pod-{number:03}", claim="claim")
    cluster.settle()
    assert len(cluster.must("resourceclaims", "claim")["status"]["reservedFor"]) == 256
    condition = cluster.pod_condition("pod-256")
    assert condition["reason"] == "SchedulerError"
    assert condition["message"].startswith(
        'running PreBind plugin "DynamicResources": add reservation to claim default/claim: '
    )
    assert "status.reservedFor: Too many: 257: must have at most 256 items" in condition["message"]


@draws.in_turn(
    "refusals",
    each_day="unit/controllers/test_scheduling.py::test_the_257th_consumer_fails_at_the_write_c14",
)
def test_failed_write_names_the_claim_that_was_refused():
    """controllers.md 3.7: the prefix is that of the claim being written, not of the first one."""
    cluster = fleet(options=ControllerOptions(off=frozenset({"claims"})))
    cluster.patch(
        "nodes", "n1", {"status": {"allocatable": {"pods": "1000"}}}, subresource="status"
    )
    cluster.claim("crowded")
    for number in range(256):
        cluster.pod(f"pod-{number:03}", claim="crowded")
    cluster.claim("fresh")
    cluster.settle()
    cluster.pod(
        "both",
        resourceClaims=[
            {"name": "a", "resourceClaimName": "fresh"},
            {"name": "b", "resourceClaimName": "crowded"},
        ],
    )
    cluster.settle()
    assert cluster.pod_condition("both")["message"].startswith(
        'running PreBind plugin "DynamicResources": add reservation to claim default/crowded: '
    )


CLAIM_SUMMARY = {
    "claims": [
        {"claim": "default/fresh", "fresh": True},
        {"claim": "default/held", "fresh": False},
    ]
}


@pytest.mark.parametrize(
    ("problem", "prefix"),
    [
        ('X "fresh" is invalid: metadata.finalizers: no', "add finalizer to claim default/fresh: "),
        ('X "fresh" is invalid: a', "add allocation and reservation to claim default/fresh: "),
        ('X "held" is invalid: a', "add reservation to claim default/held: "),
        ("no name", "add allocation and reservation to claim default/fresh: "),
    ],
)
def test_prefix_of_a_refused_write(problem, prefix):
    told = messages.prebind_error(CLAIM_SUMMARY, problem)
    assert told == f'running PreBind plugin "DynamicResources": {prefix}{problem}'


# Scores


@pytest.mark.parametrize(
    ("totals", "index"),
    [
        ([50, 50, 100, 100], 3),
        ([100, 100, 100], 0),
        ([0, 5, 5], 1),
        ([1, 2, 3], 2),
        ([3, 2, 1], 0),
        ([1, 1, 1, 1, 2], 4),
        ([1, 2, 1, 2, 2], 1),
    ],
)
def test_winner_is_the_root_of_the_heap(totals, index):
    assert scoring.winner(totals) == index


@pytest.mark.parametrize(
    ("raw", "normalised"),
    [
        ([8, 7], [200, 174]),
        ([15, 13], [200, 172]),
        ([16, 15, 14], [200, 186, 174]),
        ([0, 0], [0, 0]),
    ],
)
def test_device_scores_are_normalised_by_the_best_and_weigh_two(raw, normalised):
    zeros = [0] * len(raw)
    assert scoring.totals(zeros, zeros, (), raw) == normalised


@pytest.mark.parametrize(
    ("count", "wanted"), [(1, 1), (99, 99), (100, 100), (500, 230), (5000, 500), (20000, 1000)]
)
def test_how_many_feasible_nodes_are_looked_for(count, wanted):
    assert nodes_to_find(count) == wanted


def test_prioritized_list_prefers_the_node_with_the_better_alternative():
    cluster = Cluster()
    cluster.device_class()
    cluster.device_class(
        "better", selector="device.attributes['gpu.example.com'].?good.orValue(false)"
    )
    for name, attributes in (("n1", {}), ("n2", {"good": {"bool": True}})):
        cluster.node(name)
        cluster.slice(name, devices=[{"name": "d", "attributes": attributes}])
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "claim",
        spec={
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "firstAvailable": [
                            {"name": "best", "deviceClassName": "better"},
                            {"name": "any", "deviceClassName": "gpu"},
                        ],
                    }
                ]
            }
        },
    )
    cluster.pod(claim="claim")
    cluster.settle()
    assert node_of(cluster) == "n2"


# Binding conditions


def binding_cluster() -> Cluster:
    cluster = Cluster()
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
    return cluster.settle()


def say(cluster: Cluster, condition: str) -> None:
    tree = json_tree.copy(cluster.must("resourceclaims", "claim"))
    tree["status"]["devices"] = [
        {
            "driver": DRIVER,
            "pool": "n1",
            "device": "d",
            "conditions": [
                {
                    "type": condition,
                    "status": "True",
                    "reason": "Because",
                    "message": "text",
                    "lastTransitionTime": "2026-01-02T03:00:00Z",
                }
            ],
        }
    ]
    cluster.update("resourceclaims", tree, "status")


def test_binding_waits_for_the_next_look_after_the_condition():
    cluster = binding_cluster()
    assert node_of(cluster) == ""
    assert cluster.messages("pod") == ["waiting for binding conditions for device on node n1"]
    cluster.wait(4.06)
    say(cluster, "ready")
    cluster.wait(0.9)
    assert node_of(cluster) == ""
    cluster.wait(0.05)
    assert node_of(cluster) == "n1"


def test_binding_failure_takes_the_reservation_back_and_deallocates():
    cluster = binding_cluster()
    cluster.wait(3)
    say(cluster, "failed")
    cluster.wait(2)
    condition = cluster.pod_condition("pod")
    assert condition["reason"] == "SchedulerError"
    assert condition["message"] == (
        'running PreBind plugin "DynamicResources": device binding failed: claim=claim, '
        'reason=Because, message="text"'
    )
    claim = cluster.must("resourceclaims", "claim")
    assert "reservedFor" not in claim["status"]
    assert "nominatedNodeName" not in cluster.must("pods", "pod")["status"]
    cluster.wait(2)
    assert any("deallocation of ResourceClaim completed" in m for m in cluster.messages("pod"))
    again = cluster.must("resourceclaims", "claim")["status"]
    assert again["reservedFor"], "allocated anew at once"
    assert "devices" not in again


def test_binding_times_out():
    cluster = binding_cluster()
    cluster.wait(606)
    assert any("device binding timeout: claim=claim" in text for text in cluster.messages("pod"))


# Decisions


def test_every_decision_can_be_made_again():
    cluster = fleet(nodes=3, devices=2)
    for number in range(9):
        cluster.pod(f"pod-{number}", template="gpu")
    cluster.settle()
    cluster.rule(effect="NoExecute", selector={"driver": DRIVER, "pool": "n1"})
    cluster.wait(30)
    for number in range(4):
        if cluster.get("pods", f"pod-{number}") is not None:
            cluster.delete("pods", f"pod-{number}", grace_seconds=0)
    cluster.wait(30)
    decisions, effects = check_decisions(cluster)
    assert decisions.differences == ()
    assert effects.differences == ()
    assert decisions.total == len(cluster.decisions())
    outcomes = {outcome for _, outcome in cluster.decisions()}
    assert {"Scheduled", "Unschedulable", "Evicted", "Deallocated"} <= outcomes
