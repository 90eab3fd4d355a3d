"""Pre-emption over whole clusters: the victims, the pods that stay, messages and writes."""

import pytest

from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.resources import pod_key
from app.domain.controllers.scheduling.scheduling_cycle import default_preemption
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import BindPod
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.cluster import USER, Cluster, check_decisions

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
CLASSES = {"high": 1000, "middle": 500, "low": -5}


def fleet(*cpus: str, **options) -> Cluster:
    """One node for each amount of cpu, the classes high, middle and low."""
    cluster = Cluster(**options)
    for number, cpu in enumerate(cpus, 1):
        cluster.node(f"n{number}", cpu=cpu)
    for name, value in CLASSES.items():
        cluster.create("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
    return cluster.settle()


def pod(
    cluster: Cluster,
    name: str,
    cpu: str = "1",
    *,
    priority: str = "",
    node: str = "",
    labels: JsonObject | None = None,
    started: str = "",
    **spec: object,
) -> None:
    """A pod; with `node` it is bound there whatever the scheduler would say."""
    body: JsonObject = {
        "containers": [{"name": "main", "image": "busybox:1", "resources": {"requests": {}}}],
        **spec,
    }
    body["containers"][0]["resources"]["requests"]["cpu"] = cpu
    if "ports" in body:
        body["containers"][0]["ports"] = body.pop("ports")
    if priority:
        body["priorityClassName"] = priority
    if node:
        body["nodeName"] = node
    metadata: JsonObject = {"name": name, "labels": labels or {}}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body})
    if started:
        cluster.patch("pods", name, {"status": {"startTime": started}}, subresource="status")


UNCOUNTED = ControllerOptions(off=frozenset({"disruption"}))
"""Nobody counts for budgets: a test says what their status says."""


def budget(cluster: Cluster, name: str, labels: JsonObject, allowed: int) -> None:
    """A budget whose status a disruption controller has filled."""
    cluster.create(
        "policy/v1",
        "PodDisruptionBudget",
        name,
        spec={"selector": {"matchLabels": labels}, "minAvailable": 1},
    )
    status = {"disruptionsAllowed": allowed, "observedGeneration": 1}
    cluster.patch("poddisruptionbudgets", name, {"status": status}, subresource="status")


def victims(cluster: Cluster) -> list[str]:
    """Pods that say that they make room for another one, by name."""
    found = []
    for name in cluster.names("pods"):
        told = cluster.pod_condition(name, "DisruptionTarget")
        if told is not None and told["reason"] == "PreemptionByScheduler":
            found.append(name)
    return found


def nominated(cluster: Cluster, name: str) -> str:
    return json_tree.text(cluster.must("pods", name), "status", "nominatedNodeName")


def node_of(cluster: Cluster, name: str) -> str:
    return json_tree.text(cluster.must("pods", name), "spec", "nodeName")


def message(cluster: Cluster, name: str) -> str:
    told = cluster.pod_condition(name)
    assert told is not None, f"{name} has no condition"
    return str(told["message"])


def check_again(cluster: Cluster) -> None:
    """Every decision and each of its writes come out again."""
    for compared in check_decisions(cluster):
        assert not compared.differences, compared.differences[:1]


# What is written


def test_victim_is_told_and_deleted_and_its_node_nominated():
    cluster = fleet("4")
    pod(cluster, "small", "3")
    cluster.settle()
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    uid = cluster.must("pods", "big")["metadata"]["uid"]
    small = cluster.must("pods", "small")
    assert small["metadata"]["deletionGracePeriodSeconds"] == 30
    assert cluster.pod_condition("small", "DisruptionTarget") == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "observedGeneration": 1,
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }
    assert [found["type"] for found in small["status"]["conditions"]][-1] == "DisruptionTarget"
    assert nominated(cluster, "big") == "n1"
    told = (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement "
        "for pod on node n1, preempting 1 victims"
    )
    assert message(cluster, "big") == told
    assert cluster.messages("big") == [told]
    assert cluster.messages("small")[-1] == f"Preempted by pod {uid} on node n1"
    check_again(cluster)


def test_pod_is_not_told_of_its_victims_up_to_1_36():
    cluster = fleet("4", profile=Profile(version="1.36"))
    pod(cluster, "small", "3")
    cluster.settle()
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    assert victims(cluster) == ["small"]
    assert message(cluster, "big") == "0/1 nodes are available: 1 Insufficient cpu."


def test_event_about_a_victim_names_the_other_pod_as_related():
    cluster = fleet("4")
    pod(cluster, "small", "3")
    cluster.settle()
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    told = next(
        event.object
        for event in cluster.line.events
        if event.key.resource == "events" and event.object.get("reason") == "Preempted"
    )
    assert (told["type"], told["action"], told["reportingComponent"]) == (
        "Normal",
        "Preempting",
        "default-scheduler",
    )
    assert (told["involvedObject"]["name"], told["related"]["name"]) == ("small", "big")


def test_pod_gets_the_node_when_its_victims_are_gone():
    cluster = fleet("4", kubelet=True)
    pod(cluster, "small", "3")
    cluster.settle()
    pod(cluster, "big", "2", priority="high")
    cluster.settle().wait(60)
    assert cluster.get("pods", "small") is None
    assert node_of(cluster, "big") == "n1"
    assert nominated(cluster, "big") == ""
    check_again(cluster)


def test_claims_of_a_victim_are_freed_when_it_has_ended():
    cluster = fleet("4", kubelet=True)
    cluster.device_class()
    cluster.template()
    cluster.slice("n1", devices=1)
    cluster.pod("small", template="gpu", requests={"cpu": "3"})
    cluster.settle()
    claim = cluster.claim_of("small")
    assert cluster.devices_of(claim) == ["n1/gpu-0"]
    pod(cluster, "big", "2", priority="high")
    cluster.settle().wait(60)
    assert node_of(cluster, "big") == "n1"
    assert cluster.get("resourceclaims", claim) is None


# Who goes


def test_no_more_pods_go_than_have_to():
    cluster = fleet("4")
    for name, cpu in (("a", "1"), ("b", "1"), ("c", "2")):
        pod(cluster, name, cpu, node="n1")
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    assert victims(cluster) == ["c"]


def test_less_important_pods_go_first():
    cluster = fleet("3")
    pod(cluster, "low", node="n1", priority="low")
    pod(cluster, "usual", node="n1")
    pod(cluster, "middle", node="n1", priority="middle")
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    assert victims(cluster) == ["low", "usual"]


def test_of_equal_priority_the_later_started_pod_goes():
    cluster = fleet("2")
    pod(cluster, "young", node="n1", started="2026-01-02T02:59:00Z")
    pod(cluster, "old", node="n1", started="2026-01-02T01:00:00Z")
    pod(cluster, "big", "1", priority="high")
    cluster.settle()
    assert victims(cluster) == ["young"]


def test_of_pods_that_start_together_the_later_created_goes():
    cluster = fleet("2")
    for name in ("b", "a"):
        pod(cluster, name, node="n1", started="2026-01-02T01:00:00Z")
        cluster.wait(5)
    pod(cluster, "big", "1", priority="high")
    cluster.settle()
    assert victims(cluster) == ["a"]
    check_again(cluster)


@pytest.mark.parametrize("begins_anew", [False, True])
def test_of_pods_alike_the_last_by_name_goes_also_after_a_new_start(begins_anew):
    """A scheduler that begins reads the pods by their last changes, not as they were bound."""
    cluster = fleet("2")
    for name in ("b", "a"):
        pod(cluster, name, node="n1", started="2026-01-02T01:00:00Z")
    cluster.patch("pods", "b", {"metadata": {"annotations": {"seen": "yes"}}})
    cluster.settle()
    if begins_anew:
        views = cluster.line.views
        cluster.line.controllers = cluster.fresh_controllers()
        for event in views.objects.left_over(views.revision):
            for controller in cluster.line.controllers:
                controller.fold(event, views)
    pod(cluster, "big", "1", priority="high")
    cluster.settle()
    assert victims(cluster) == ["b"]
    check_again(cluster)


@pytest.mark.parametrize("priority", ["high", "middle"])
def test_pod_of_equal_or_higher_priority_never_goes(priority):
    cluster = fleet("4")
    pod(cluster, "small", "3", priority=priority)
    cluster.settle()
    pod(cluster, "big", "2", priority="middle")
    cluster.settle()
    assert victims(cluster) == []
    assert message(cluster, "big") == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        f"preemption: 0/1 nodes are available: 1 {NO_VICTIMS}."
    )


def test_pod_that_does_not_preempt_waits():
    cluster = fleet("4")
    cluster.create(
        "scheduling.k8s.io/v1", "PriorityClass", "patient", value=9, preemptionPolicy="Never"
    )
    pod(cluster, "small", "3")
    cluster.settle()
    pod(cluster, "big", "2", priority="patient")
    cluster.settle()
    assert victims(cluster) == []
    assert message(cluster, "big").endswith(
        "preemption: not eligible due to preemptionPolicy=Never."
    )


def test_nobody_goes_when_that_would_not_be_enough():
    cluster = fleet("4", "4", "1")
    pod(cluster, "strong", "3", priority="high", node="n1")
    pod(cluster, "weak", "1", node="n1")
    pod(cluster, "other", "3", priority="high", node="n2")
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    assert victims(cluster) == []
    assert message(cluster, "big") == (
        "0/3 nodes are available: 3 Insufficient cpu. preemption: "
        f"0/3 nodes are available: 1 Insufficient cpu, 1 {NO_VICTIMS}, 1 {NOT_HELPFUL}."
    )


def test_devices_are_not_freed_by_preemption():
    cluster = fleet("4")
    cluster.device_class()
    cluster.template()
    cluster.slice("n1", devices=1)
    cluster.pod("small", template="gpu")
    cluster.settle()
    cluster.pod("big", template="gpu", priorityClassName="high")
    cluster.settle()
    assert victims(cluster) == []
    assert message(cluster, "big") == (
        "0/1 nodes are available: 1 cannot allocate all claims. "
        f"preemption: 0/1 nodes are available: 1 {NOT_HELPFUL}."
    )


def test_nobody_goes_when_devices_would_not_fit_then():
    cluster = fleet("4")
    cluster.device_class()
    cluster.template()
    pod(cluster, "small", "3")
    cluster.settle()
    cluster.pod("big", template="gpu", priorityClassName="high", requests={"cpu": "2"})
    cluster.settle()
    assert victims(cluster) == []
    assert message(cluster, "big").endswith(
        "preemption: 0/1 nodes are available: 1 cannot allocate all claims."
    )


def _affinity(kind: str) -> JsonObject:
    """To be with, or not to be with, pods of the app x on one node."""
    term = {
        "labelSelector": {"matchLabels": {"app": "x"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"kubernetes.io/hostname": "elsewhere"}},
        {"affinity": _affinity("podAffinity")},
    ],
    ids=["node selector", "pod affinity"],
)
def test_what_evictions_cannot_cure_evicts_nobody(spec):
    cluster = fleet("4")
    pod(cluster, "small", "3")
    cluster.settle()
    pod(cluster, "big", "1", priority="high", **spec)
    cluster.settle()
    assert victims(cluster) == []
    assert message(cluster, "big").endswith(f"1 {NOT_HELPFUL}.")


def test_pod_that_keeps_another_away_goes():
    away = _affinity("podAntiAffinity")
    cluster = fleet("4")
    pod(cluster, "bystander", node="n1")
    pod(cluster, "shy", node="n1", affinity=away)
    pod(cluster, "disliked", node="n1", labels={"app": "x"})
    pod(cluster, "big", priority="high", labels={"app": "x"}, affinity=away)
    cluster.settle()
    assert victims(cluster) == ["disliked", "shy"]
    check_again(cluster)


def test_pod_that_holds_a_port_goes():
    port = [{"containerPort": 80, "hostPort": 80}]
    cluster = fleet("4")
    pod(cluster, "bystander", node="n1")
    pod(cluster, "server", node="n1", ports=port)
    pod(cluster, "big", priority="high", ports=port)
    cluster.settle()
    assert victims(cluster) == ["server"]


def test_pod_that_skews_the_spread_goes():
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    cluster = fleet("4", "1")
    pod(cluster, "strong", "1", node="n2", priority="high")
    pod(cluster, "bystander", node="n1")
    pod(cluster, "skews", node="n1", labels={"app": "x"})
    pod(
        cluster, "big", priority="high", labels={"app": "x"}, topologySpreadConstraints=[constraint]
    )
    cluster.settle()
    assert victims(cluster) == ["skews"]


# Disruption budgets


def test_protected_pod_is_spared_before_more_important_ones():
    cluster = fleet("2", options=UNCOUNTED)
    pod(cluster, "middle", node="n1", priority="middle")
    pod(cluster, "guarded", node="n1", priority="low", labels={"app": "db"})
    budget(cluster, "db", {"app": "db"}, 0)
    pod(cluster, "big", "1", priority="high")
    cluster.settle()
    assert victims(cluster) == ["middle"]


def test_budget_is_violated_when_nothing_else_helps():
    cluster = fleet("1", options=UNCOUNTED)
    pod(cluster, "guarded", node="n1", labels={"app": "db"})
    budget(cluster, "db", {"app": "db"}, 0)
    pod(cluster, "big", "1", priority="high")
    cluster.settle()
    assert victims(cluster) == ["guarded"]


def test_node_with_fewer_violations_is_preferred():
    cluster = fleet("1", "1", options=UNCOUNTED)
    pod(cluster, "guarded", node="n1", priority="low", labels={"app": "db"})
    pod(cluster, "free", node="n2", priority="middle")
    budget(cluster, "db", {"app": "db"}, 0)
    pod(cluster, "big", "1", priority="high")
    cluster.settle()
    assert (victims(cluster), nominated(cluster, "big")) == (["free"], "n2")


def test_disruptions_that_a_budget_allows_violate_nothing():
    cluster = fleet("1", "1", options=UNCOUNTED)
    pod(cluster, "guarded", node="n1", priority="low", labels={"app": "db"})
    pod(cluster, "free", node="n2", priority="middle")
    budget(cluster, "db", {"app": "db"}, 1)
    pod(cluster, "big", "1", priority="high")
    cluster.settle()
    assert victims(cluster) == ["guarded"]


@pytest.mark.parametrize("options", [ControllerOptions(), UNCOUNTED], ids=["counted", "uncounted"])
@pytest.mark.parametrize(("least", "gone"), [(1, "guarded-1"), (2, "free")])
def test_budget_lets_go_as_many_pods_as_it_can_spare(options, least, gone):
    cluster = fleet("2", "1", kubelet=True, options=options)
    for name in ("guarded-1", "guarded-2"):
        pod(cluster, name, node="n1", priority="low", labels={"app": "db"})
    pod(cluster, "free", node="n2", priority="middle")
    cluster.create(
        "policy/v1",
        "PodDisruptionBudget",
        "db",
        spec={"selector": {"matchLabels": {"app": "db"}}, "minAvailable": least},
    )
    cluster.settle().wait(5)
    pod(cluster, "big", "1", priority="high")
    cluster.settle()
    told = [tree["involvedObject"]["name"] for tree in _said(cluster, "Preempted")]
    assert told == [gone]


def _said(cluster: Cluster, reason: str) -> list[JsonObject]:
    return [
        event.object
        for event in cluster.line.events
        if event.key.resource == "events" and event.object.get("reason") == reason
    ]


# Which node


def test_node_whose_most_important_victim_matters_least_is_taken():
    cluster = fleet("2", "2")
    pod(cluster, "middle", "2", node="n1", priority="middle")
    pod(cluster, "a", "1", node="n2")
    pod(cluster, "b", "1", node="n2")
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    assert nominated(cluster, "big") == "n2"


def test_node_with_the_smaller_sum_of_priorities_is_taken():
    cluster = fleet("2", "2")
    pod(cluster, "a", "1", node="n1", priority="middle")
    pod(cluster, "b", "1", node="n1", priority="middle")
    pod(cluster, "c", "1", node="n2", priority="middle")
    pod(cluster, "d", "1", node="n2")
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    assert nominated(cluster, "big") == "n2"


def test_node_with_fewer_victims_of_low_priority_is_taken():
    cluster = fleet("2", "2")
    pod(cluster, "a", "1", node="n1", priority="low")
    pod(cluster, "b", "1", node="n1", priority="low")
    pod(cluster, "c", "2", node="n2", priority="low")
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    assert nominated(cluster, "big") == "n2"


def test_node_whose_victim_started_latest_is_taken():
    cluster = fleet("1", "1")
    pod(cluster, "old", node="n1", started="2026-01-02T01:00:00Z")
    pod(cluster, "young", node="n2", started="2026-01-02T02:00:00Z")
    pod(cluster, "big", priority="high")
    cluster.settle()
    assert nominated(cluster, "big") == "n2"


def test_of_equal_nodes_the_first_is_taken():
    cluster = fleet("1", "1", "1")
    for number in (1, 2, 3):
        pod(cluster, f"p{number}", node=f"n{number}")
    pod(cluster, "big", priority="high")
    cluster.settle()
    assert nominated(cluster, "big") == "n1"


@pytest.mark.parametrize(
    ("hopeful", "wanted"), [(1, 1), (99, 99), (100, 100), (1000, 100), (2000, 200)]
)
def test_how_many_nodes_are_compared(hopeful, wanted):
    assert default_preemption.candidates_wanted(hopeful) == wanted


# Waiting for victims, and nominated pods


def test_pod_evicts_nobody_else_while_its_victims_terminate():
    cluster = fleet("2", "2")
    pod(cluster, "first", "2", node="n1", priority="low")
    pod(cluster, "second", "2", node="n2")
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    assert victims(cluster) == ["first"]
    cluster.wait(10)
    cluster.node("n3", cpu="1")
    cluster.node("n4", cpu="3")
    pod(cluster, "blocks", "2", node="n4", priority="high")
    cluster.settle()
    assert victims(cluster) == ["first"]
    assert nominated(cluster, "big") == "n1"
    assert message(cluster, "big").endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    check_again(cluster)


def test_terminating_victim_is_not_deleted_again():
    cluster = fleet("2")
    pod(cluster, "small", "2", node="n1")
    cluster.settle()
    cluster.delete("pods", "small")
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    assert nominated(cluster, "big") == "n1"
    assert victims(cluster) == []
    assert _said(cluster, "Preempted") == []


def test_nominated_pod_counts_for_pods_of_equal_or_lower_priority():
    cluster = fleet("4")
    pod(cluster, "small", "4")
    cluster.settle()
    pod(cluster, "big", "3", priority="high")
    cluster.settle()
    cluster.kill("small")
    # Before the scheduler looks at it again, others want the room that has come free.
    pod(cluster, "equal", "2", priority="high")
    pod(cluster, "lower", "2")
    pod(cluster, "fits", "1")
    cluster.settle().wait(20)
    assert node_of(cluster, "big") == "n1"
    assert node_of(cluster, "equal") == ""
    assert node_of(cluster, "lower") == ""
    assert node_of(cluster, "fits") == "n1"
    check_again(cluster)


def test_pod_leaves_room_for_a_nominated_one_that_waits_for_its_victim():
    cluster = fleet("4")
    pod(cluster, "small", "3")
    cluster.settle()
    pod(cluster, "big", "4", priority="high")
    pod(cluster, "lower", "1")
    cluster.settle()
    assert victims(cluster) == ["small"]
    assert node_of(cluster, "lower") == ""
    assert message(cluster, "lower").startswith("0/1 nodes are available: 1 Insufficient cpu.")
    check_again(cluster)


def test_pod_of_higher_priority_takes_the_room_and_the_nomination():
    cluster = fleet("2")
    pod(cluster, "small", "2", node="n1", priority="low")
    pod(cluster, "middle", "2", priority="middle")
    cluster.settle()
    assert nominated(cluster, "middle") == "n1"
    pod(cluster, "big", "2", priority="high")
    cluster.settle()
    assert (nominated(cluster, "big"), nominated(cluster, "middle")) == ("n1", "")
    cluster.kill("small")
    cluster.settle().wait(20)
    assert node_of(cluster, "big") == "n1"
    check_again(cluster)


def test_nominated_pod_that_is_deleted_lets_others_have_the_room():
    cluster = fleet("4")
    pod(cluster, "small", "3")
    cluster.settle()
    pod(cluster, "big", "4", priority="high")
    pod(cluster, "lower", "1")
    cluster.settle().wait(20)
    assert node_of(cluster, "lower") == ""
    cluster.delete("pods", "big")
    cluster.settle().wait(20)
    assert node_of(cluster, "lower") == "n1"
    check_again(cluster)


def test_nominated_pod_that_is_bound_elsewhere_lets_others_have_the_room():
    cluster = fleet("4", "4")
    pod(cluster, "blocks", "4", node="n2", priority="high")
    pod(cluster, "small", "3", node="n1")
    pod(cluster, "big", "4", priority="high")
    pod(cluster, "lower", "1")
    cluster.settle().wait(20)
    assert (nominated(cluster, "big"), node_of(cluster, "lower")) == ("n1", "")
    bind = BindPod(key=pod_key("default", "big"), node="n2")
    cluster.line.submit(bind, actor=USER)
    cluster.settle().wait(20)
    assert node_of(cluster, "lower") == "n1"


def test_pod_with_a_nomination_in_vain_loses_it():
    cluster = fleet("2")
    pod(cluster, "small", "2", node="n1")
    pod(cluster, "big", "2", priority="middle")
    cluster.settle()
    assert nominated(cluster, "big") == "n1"
    cluster.kill("small")
    pod(cluster, "strong", "2", priority="high", node="n1")
    cluster.settle().wait(20)
    assert nominated(cluster, "big") == ""
    assert message(cluster, "big").endswith(f"1 {NO_VICTIMS}.")


def test_pods_that_are_tried_after_a_lost_nomination_may_have_the_room():
    cluster = fleet("4")
    pod(cluster, "small", "4")
    cluster.settle()
    pod(cluster, "big", "3", priority="high")
    cluster.settle().wait(10)
    # Nobody has looked at these changes yet: both pods are tried one after the other.
    cluster.kill("small")
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    pod(cluster, "lower", "2", tolerations=[{"operator": "Exists"}])
    cluster.settle()
    assert nominated(cluster, "big") == ""
    assert node_of(cluster, "lower") == "n1"
    assert ("lower", "Unschedulable") not in cluster.decisions("scheduling")
    check_again(cluster)


def test_scheduler_that_begins_anew_knows_nominations():
    cluster = fleet("4")
    pod(cluster, "small", "3")
    cluster.settle()
    pod(cluster, "big", "4", priority="high")
    cluster.settle()
    cluster.restart()
    pod(cluster, "lower", "1")
    cluster.settle()
    assert node_of(cluster, "lower") == ""
    cluster.kill("small")
    cluster.settle().wait(20)
    assert node_of(cluster, "big") == "n1"
