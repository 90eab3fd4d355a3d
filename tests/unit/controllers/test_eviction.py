"""Device taint eviction (controllers.md 1 and 8.1), over whole clusters in virtual time."""

import msgspec
import pytest

from app.analysis.verify.compare import ComparisonResult
from app.domain.controllers.eviction import TaintState, taints
from app.domain.controllers.eviction.reconciler import EvictionReconciler, is_marked
from app.domain.controllers.eviction.state import REFERENCES_READ_MAX
from app.domain.controllers.eviction.taints import Eviction, NoExecuteTaint
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.work_queue import RETRY_FIRST_MICROS
from app.domain.errors import Rejected
from app.domain.objects.profile import Profile
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import DRIVER, Cluster, check_decisions

MARKING = "Marking for deletion"
CANCELLING = "Cancelling deletion"
CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByDeviceTaintManager",
    "message": "Device Taint manager: deleting due to NoExecute taint",
}
TAINT = {"key": "example.com/bad", "value": "x", "effect": "NoExecute"}


def tolerate(seconds: int | None = None, **more: str) -> JsonObject:
    found: JsonObject = {"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}
    found.update(more)
    if seconds is not None:
        found["tolerationSeconds"] = seconds
    return found


def running(*tolerations: JsonObject, pods: int = 1, **options) -> Cluster:
    """`pods` pods, each with a device of its own, bound to node n1."""
    cluster = Cluster(**options)
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=4)
    cluster.template(tolerations=list(tolerations))
    for number in range(pods):
        cluster.pod(f"pod-{number}", template="gpu")
    return cluster.settle()


def taint_slice(cluster: Cluster, *lists: list[JsonObject]) -> None:
    """Replace the taints of the first devices; further devices lose theirs."""
    tree = cluster.must("resourceslices", "n1-slice")
    devices = []
    for index, device in enumerate(tree["spec"]["devices"]):
        changed = {name: value for name, value in device.items() if name != "taints"}
        if index < len(lists) and lists[index]:
            changed["taints"] = lists[index]
        devices.append(changed)
    body = {**tree, "spec": {**tree["spec"], "devices": devices}}
    cluster.update("resourceslices", body)
    cluster.settle()


def is_terminating(cluster: Cluster, pod: str = "pod-0") -> bool:
    return "deletionTimestamp" in cluster.must("pods", pod)["metadata"]


def said(cluster: Cluster, pod: str = "pod-0") -> list[str]:
    return [text for text in cluster.messages(pod) if text in (MARKING, CANCELLING)]


A, B = {"key": "a"}, {"key": "example.com/bad"}


@pytest.mark.parametrize(
    ("name", "tolerations", "after_seconds"),
    [
        ("none", [], 0),
        ("other key", [{"key": "a", "operator": "Exists", "effect": "NoExecute"}], 0),
        ("other effect", [tolerate(effect="NoSchedule")], 0),
        ("empty effect (C2)", [{"operator": "Exists"}], 0),
        ("for ever", [tolerate()], None),
        ("sixty seconds", [tolerate(60)], 60),
        ("negative seconds", [tolerate(-5)], 0),
        ("smallest matching", [tolerate(20, key="a"), tolerate(60), tolerate(30)], 30),
        ("for ever beats seconds", [tolerate(60), tolerate()], None),
        ("equal value", [tolerate(60, operator="Equal", value="x")], 60),
        ("unequal value", [tolerate(60, operator="Equal", value="y")], 0),
        ("empty key", [tolerate(60, key="")], 60),
        ("unknown operator", [tolerate(60, operator="Gt")], 0),
    ],
)
def test_instant_of_eviction(name, tolerations, after_seconds):
    taint = NoExecuteTaint(key="example.com/bad", value="x", time_added=Instant(1000 * SECOND))
    found = taints.eviction_time(taint, tolerations)
    expected = None if after_seconds is None else (1000 + after_seconds) * SECOND
    assert found == expected


def test_tainted_device_evicts_its_pod_at_once():
    cluster = running()
    taint_slice(cluster, [TAINT])
    assert is_terminating(cluster)
    assert said(cluster) == [MARKING]
    condition = cluster.pod_condition("pod-0", "DisruptionTarget")
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByDeviceTaintManager",
        "message": "Device Taint manager: deleting due to NoExecute taint",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }


@pytest.mark.parametrize("consumers", [0, 1, 3, 4, 5, 9])
def test_claim_is_followed_with_its_pods_and_without_a_short_list_of_consumers(consumers):
    cluster = running()
    (name,) = cluster.names("resourceclaims")
    pods = [{"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(consumers)]
    claim = json_tree.copy(cluster.must("resourceclaims", name))
    claim["status"]["reservedFor"] = [{"resource": "others", "name": "o", "uid": "o"}, *pods]
    last = cluster.line.events[-1]
    state = TaintState()
    place = ("default", name)
    state.fold(
        msgspec.structs.replace(
            next(event for event in cluster.line.events if event.key[2:] == place),
            revision=last.revision + 1,
            body=msgspec.json.encode(claim),
            tree=None,
            reading=None,
        )
    )
    tracked = state.claims[place]
    is_short = consumers + 1 <= REFERENCES_READ_MAX
    assert len(tracked.references) == (0 if is_short else consumers + 1)
    assert tracked.consumers == consumers + 1
    assert tracked.reserved == tuple((f"p{n}", f"u{n}") for n in range(consumers))
    assert tracked.pod_uids == {f"u{n}" for n in range(consumers)}


def test_decision_of_an_eviction_holds_all_that_it_rested_on():
    cluster = running(tolerate(60))
    cluster.rule()
    cluster.wait(60)
    uid = cluster.must("pods", "pod-0")["metadata"]["uid"]
    rule = cluster.must("devicetaintrules", "rule")
    due = timestamps.parse(rule["spec"]["taint"]["timeAdded"]) + 60 * SECOND
    (body,) = [
        event.object
        for event in cluster.line.events
        if event.type == "DecisionRecorded" and event.object["controller"] == "eviction"
    ]
    assert (body["resource"], body["namespace"], body["name"]) == ("pods", "default", "pod-0")
    assert body["outcome"] == "Evicted"
    rules = [["rule", rule["metadata"]["uid"]]]
    assert body["inputs"] == {"now": due, "uid": uid, "due": due, "rules": rules}
    assert timestamps.parse(body["summary"]["due"]) == due
    assert body["summary"]["reasonsCount"] == len(body["summary"]["reasons"]) == 1


def test_event_of_an_eviction_is_of_the_controller_as_upstream_names_it():
    cluster = running()
    taint_slice(cluster, [TAINT])
    sources = [
        event.object["source"]["component"]
        for event in cluster.line.events
        if event.key.resource == "events" and event.object["message"] == MARKING
    ]
    assert sources == ["device-taint-eviction-controller"]


def test_refused_evictions_are_tried_one_by_one_and_then_after_a_delay():
    cluster = running(pods=2)
    cluster.rule()
    line, now = cluster.line, cluster.line.now
    (eviction,) = (each for each in line.controllers if isinstance(each, EvictionReconciler))
    both = eviction.step(line.views, now)
    assert [part.key for part in both.parts] == ["evict:default/pod-0", "evict:default/pod-1"]
    assert {part.controller for part in both.parts} == {"eviction"}
    eviction.settled(both, "refused", now)
    for name, problem in (("pod-0", "refused"), ("pod-1", None)):
        alone = eviction.step(line.views, now)
        assert (alone.key, alone.parts) == (f"evict:default/{name}", ())
        eviction.settled(alone, problem, now)
    assert eviction.step(line.views, now) is None
    due = eviction.due()
    assert due == now + RETRY_FIRST_MICROS
    assert eviction.step(line.views, Instant(due - 1)) is None
    assert eviction.step(line.views, due).key == "evict:default/pod-0"


def test_refused_cancellation_is_tried_again_after_a_delay():
    cluster = running(tolerate(60))
    taint_slice(cluster, [TAINT])
    cluster.stop("eviction")
    taint_slice(cluster, [])
    reconciler = EvictionReconciler()
    line, now = cluster.line, cluster.line.now
    for event in line.events:
        reconciler.fold(event, line.views)
    plan = reconciler.step(line.views, now)
    assert plan.key == "cancel:default/pod-0"
    reconciler.settled(plan, "refused", now)
    assert reconciler.step(line.views, now) is None
    due = reconciler.due()
    assert due == now + RETRY_FIRST_MICROS
    assert reconciler.step(line.views, due).key == "cancel:default/pod-0"


def test_eviction_deletes_the_pod_that_it_was_decided_for_and_no_successor():
    cluster = running(tolerate(60))
    taint_slice(cluster, [TAINT])
    line = cluster.line
    (eviction,) = (each for each in line.controllers if isinstance(each, EvictionReconciler))
    marked: JsonObject = {"status": {"conditions": [CONDITION]}}
    cluster.patch("pods", "pod-0", marked, subresource="status")
    plan = eviction.step(line.views, Instant(line.now + 60 * SECOND))
    assert plan is not None
    cluster.kill("pod-0")
    cluster.pod("pod-0", template="gpu")
    successor = cluster.must("pods", "pod-0")
    _event, deletion = plan.commands
    with pytest.raises(Rejected):
        line.submit(deletion, actor="eviction")
    assert cluster.must("pods", "pod-0") == successor


def test_pod_of_an_event_is_referred_to_as_a_pod_of_its_namespace():
    cluster = running(tolerate(60))
    uid = cluster.must("pods", "pod-0")["metadata"]["uid"]
    taint_slice(cluster, [TAINT])
    taint_slice(cluster, [])
    taint_slice(cluster, [TAINT])
    cluster.wait(61)
    events = [
        event.object
        for event in cluster.line.events
        if event.key.resource == "events" and event.object["message"] in (CANCELLING, MARKING)
    ]
    assert [(event["message"], event["type"], event["reason"]) for event in events] == [
        (text, "Normal", "DeviceTaintManagerEviction") for text in (CANCELLING, MARKING)
    ]
    for event in events:
        assert event["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "default",
            "name": "pod-0",
            "uid": uid,
        }


@pytest.mark.parametrize("pool", ["n1", "elsewhere"])
def test_taint_goes_with_its_slice_to_another_pool(pool):
    """No API server lets a slice move; a recording that lost a deletion shows it so."""
    cluster = running()
    (name,) = cluster.names("resourceclaims")
    taint_slice(cluster, [TAINT])
    events = cluster.line.events
    slices = [event for event in events if event.key.resource == "resourceslices"]
    tree = json_tree.copy(slices[-1].object)
    tree["spec"]["pool"]["name"] = pool
    moved = msgspec.structs.replace(
        slices[-1],
        revision=events[-1].revision + 1,
        body=msgspec.json.encode(tree),
        tree=None,
        reading=None,
    )
    state = TaintState()
    for event in (*events, moved):
        if event.is_about_object:
            state.fold(event)
    results = state.claims["default", name].results
    assert (state.claim_eviction(results) is not None) == (pool == "n1")


@pytest.mark.parametrize(
    ("selector", "evicts"),
    [
        ({"driver": DRIVER}, True),
        ({"driver": "other.example.com"}, False),
        ({"pool": "n1"}, True),
        ({"pool": "n2"}, False),
        ({"driver": DRIVER, "pool": "n2"}, False),
        ({"device": "gpu-0"}, True),
        ({"device": "gpu-1"}, False),
        ({"pool": "n1", "device": "gpu-1"}, False),
    ],
)
def test_rule_evicts_from_the_devices_that_each_part_of_its_selector_names(selector, evicts):
    cluster = running()
    cluster.rule(selector=selector)
    cluster.wait(1)
    assert is_terminating(cluster) == evicts


@pytest.mark.parametrize(
    ("c2", "tolerations", "ignored"),
    [
        (True, [], False),
        (True, [tolerate()], False),
        (True, [tolerate(60)], False),
        (True, [{"operator": "Exists"}], True),
        (True, [{"operator": "Exists", "tolerationSeconds": 60}], True),
        (True, [{"operator": "Exists", "tolerationSeconds": 0}], False),
        (True, [{"key": "other", "operator": "Exists"}], False),
        (True, [tolerate(60), {"operator": "Exists", "tolerationSeconds": 60}], False),
        (False, [{"operator": "Exists"}], False),
    ],
)
@pytest.mark.parametrize("by_rule", [False, True])
def test_toleration_without_effect_that_would_change_the_instant_is_said_to_be_ignored(
    c2, tolerations, ignored, by_rule
):
    cluster = running(*tolerations, options=ControllerOptions(quirks=ControllerQuirks(c2=c2)))
    (name,) = cluster.names("resourceclaims")
    if by_rule:
        cluster.rule()
    else:
        taint_slice(cluster, [TAINT])
    state = TaintState(ControllerQuirks(c2=c2))
    for event in cluster.line.events:
        if event.is_about_object:
            state.fold(event)
    results = state.claims["default", name].results
    eviction = Eviction(time=Instant(0), reasons=state.reasons_on(results))
    assert eviction.reasons
    assert state.ignores_toleration(results, eviction) == ignored
    unrelated = Eviction(time=Instant(0), reasons=())
    assert not state.ignores_toleration(results, unrelated)


@pytest.mark.parametrize(
    ("kind", "reason", "is_ours"),
    [
        ("DisruptionTarget", "DeletionByDeviceTaintManager", True),
        ("DisruptionTarget", "PreemptionByScheduler", False),
        ("Ready", "DeletionByDeviceTaintManager", False),
    ],
)
def test_pod_is_marked_by_type_and_reason_together(kind, reason, is_ours):
    pod = {
        "metadata": {"deletionTimestamp": "2026-01-02T03:00:00Z"},
        "status": {"conditions": [{"type": kind, "status": "True", "reason": reason}]},
    }
    assert is_marked(pod) == is_ours


def test_patch_precedes_delete():
    cluster = running()
    first = cluster.line.head.revision
    taint_slice(cluster, [TAINT])
    verbs = [
        e.stamp.verb
        for e in cluster.line.events
        if e.revision > first and e.key.name == "pod-0" and e.is_about_object
    ]
    assert verbs[:2] == ["patch", "delete"]


def test_condition_of_an_eviction_is_added_at_the_end():
    cluster = running()
    before = cluster.must("pods", "pod-0")["status"]["conditions"]
    extra = {"type": "Ready", "status": "True"}
    body = {"status": {"conditions": [*before, extra]}}
    cluster.patch("pods", "pod-0", body, subresource="status")
    taint_slice(cluster, [TAINT])
    found = cluster.must("pods", "pod-0")["status"]["conditions"]
    assert [one["type"] for one in found] == ["PodScheduled", "Ready", "DisruptionTarget"]
    assert found[2] == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByDeviceTaintManager",
        "message": "Device Taint manager: deleting due to NoExecute taint",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }


def test_other_device_evicts_nobody():
    cluster = running()
    taint_slice(cluster, [], [TAINT])
    assert not is_terminating(cluster)


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
def test_other_effects_evict_nobody(effect):
    cluster = running()
    taint_slice(cluster, [{**TAINT, "effect": effect}])
    assert not is_terminating(cluster)


def test_toleration_with_seconds_delays_the_eviction():
    cluster = running(tolerate(3600))
    taint_slice(cluster, [TAINT])
    cluster.wait(3599)
    assert not is_terminating(cluster)
    cluster.wait(1)
    assert is_terminating(cluster)


def test_toleration_for_ever_never_evicts():
    cluster = running(tolerate(60), tolerate())
    taint_slice(cluster, [TAINT])
    cluster.wait(7200)
    assert not is_terminating(cluster)


def test_untolerated_taint_beside_a_tolerated_one_is_the_only_reason():
    cluster = running(tolerate())
    taint_slice(cluster, [TAINT, {"key": "other", "effect": "NoExecute"}])
    assert is_terminating(cluster)
    decision = next(e for e in cluster.line.events if e.object.get("outcome") == "Evicted")
    assert decision.object["summary"]["reasons"] == [
        {"driver": DRIVER, "pool": "n1", "device": "gpu-0", "taint": 1}
    ]


@pytest.mark.parametrize("change", ["removed", "reduced", "new generation", "slice gone"])
def test_eviction_is_cancelled_when_the_taint_goes(change):
    cluster = running(tolerate(60))
    taint_slice(cluster, [TAINT])
    cluster.wait(10)
    if change == "removed":
        taint_slice(cluster, [])
    elif change == "reduced":
        taint_slice(cluster, [{**TAINT, "effect": "NoSchedule"}])
    elif change == "new generation":
        cluster.slice(name="newer", generation=2)
    else:
        cluster.delete("resourceslices", "n1-slice")
    cluster.settle()
    assert said(cluster) == [CANCELLING]
    cluster.wait(120)
    assert not is_terminating(cluster)


def test_pod_deleted_meanwhile_cancels_without_a_word():
    cluster = running(tolerate(60))
    taint_slice(cluster, [TAINT])
    cluster.delete("pods", "pod-0", grace_seconds=0)
    cluster.wait(120)
    assert said(cluster) == []


def test_pod_evicted_cancelled_and_evicted_again():
    cluster = running(tolerate(60))
    taint_slice(cluster, [TAINT])
    cluster.settle()
    taint_slice(cluster, [])
    taint_slice(cluster, [TAINT])
    cluster.wait(61)
    assert said(cluster) == [CANCELLING, MARKING]


def test_released_pod_is_cancelled():
    cluster = running(tolerate(60))
    taint_slice(cluster, [TAINT])
    cluster.finish("pod-0")
    cluster.settle()
    assert said(cluster) == [CANCELLING]


def pod_with_two_claims() -> Cluster:
    """A pod whose first claim stands taints for 60 seconds, its second one for 30."""
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=4)
    cluster.template("slow", tolerations=[tolerate(60)])
    cluster.template("fast", tolerations=[tolerate(30)])
    names = ("slow", "fast")
    cluster.pod(
        "pod-0",
        resourceClaims=[{"name": name, "resourceClaimTemplateName": name} for name in names],
    )
    return cluster.settle()


def reasons(cluster: Cluster) -> list[str]:
    """The devices that the last decision of the eviction names."""
    *_, last = (
        event.object
        for event in cluster.line.events
        if event.type == "DecisionRecorded" and event.object["controller"] == "eviction"
    )
    return [reason["device"] for reason in last["summary"]["reasons"]]


@pytest.mark.parametrize(
    ("first", "then", "devices", "after_seconds"),
    [
        ([[TAINT], [TAINT]], [[TAINT], [TAINT]], ["gpu-0", "gpu-1"], 30),
        ([[TAINT], [TAINT]], [[TAINT], []], ["gpu-0"], 60),
        ([[TAINT], [TAINT]], [[], [TAINT]], ["gpu-1"], 30),
        ([[TAINT], []], [[TAINT], [TAINT]], ["gpu-0", "gpu-1"], 30),
    ],
)
def test_pod_tainted_through_two_claims_goes_when_the_first_of_them_wants_it(
    first, then, devices, after_seconds
):
    cluster = pod_with_two_claims()
    taint_slice(cluster, *first)
    cluster.wait(5)
    taint_slice(cluster, *then)
    # A taint that is written again without its time begins anew.
    cluster.wait(after_seconds - 1)
    assert not is_terminating(cluster)
    cluster.wait(1)
    assert is_terminating(cluster)
    assert said(cluster) == [MARKING]
    assert reasons(cluster) == devices
    for compared in check_decisions(cluster):
        assert compared.differences == ()


def test_pod_tainted_through_two_claims_stays_when_no_claim_is_tainted_any_more():
    cluster = pod_with_two_claims()
    for lists in ([[TAINT], [TAINT]], [[], [TAINT]]):
        taint_slice(cluster, *lists)
        assert said(cluster) == []
    taint_slice(cluster, [], [])
    assert said(cluster) == [CANCELLING]
    cluster.wait(120)
    assert not is_terminating(cluster)


def test_pod_that_a_rule_is_to_evict_through_two_claims_counts_once():
    cluster = pod_with_two_claims()
    cluster.rule()
    cluster.wait(12)
    text = "1 pod needs to be evicted in 1 namespace."
    assert cluster.rule_condition() == ("True", "PodsPendingEviction", text)
    cluster.wait(30)
    text = "1 pod evicted since starting the controller."
    assert cluster.rule_condition() == ("False", "Completed", text)


def test_unrelated_changes_leave_the_eviction_alone():
    cluster = running(tolerate(60))
    taint_slice(cluster, [TAINT])
    cluster.patch("pods", "pod-0", {"metadata": {"labels": {"a": "b"}}})
    claim = cluster.claim_of("pod-0")
    cluster.patch("resourceclaims", claim, {"metadata": {"labels": {"a": "b"}}})
    cluster.wait(59)
    assert said(cluster) == []
    cluster.wait(1)
    assert is_terminating(cluster)


def test_each_pod_is_evicted_once():
    cluster = running()
    taint_slice(cluster, [TAINT])
    taint_slice(cluster, [TAINT, TAINT])
    taint_slice(cluster, [{**TAINT, "value": "y"}])
    cluster.wait(60)
    assert said(cluster) == [MARKING]
    assert cluster.decisions("eviction").count(("pod-0", "Evicted")) == 1


def test_pod_placed_on_a_device_whose_window_is_over_goes_at_once():
    cluster = running(tolerate(60), pods=0)
    taint_slice(cluster, [TAINT], [TAINT], [TAINT], [TAINT])
    cluster.wait(100)
    cluster.pod("late", template="gpu")
    cluster.settle()
    assert is_terminating(cluster, "late")
    assert cluster.must("pods", "late")["spec"]["nodeName"] == "n1"


def test_quirk_c1_rule_without_selector_evicts_nobody():
    cluster = running()
    cluster.create(
        "resource.k8s.io/v1",
        "DeviceTaintRule",
        "all",
        spec={"taint": {"key": "a", "effect": "NoExecute"}},
    )
    cluster.settle()
    assert not is_terminating(cluster)
    assert cluster.rule_condition("all") == ("False", "NotStarted", "")


def test_quirk_c2_empty_effect_is_scheduled_and_evicted():
    cluster = running({"operator": "Exists"}, pods=0)
    taint_slice(cluster, [TAINT], [TAINT], [TAINT], [TAINT])
    cluster.pod("pod-0", template="gpu")
    cluster.settle()
    assert cluster.must("pods", "pod-0")["spec"]["nodeName"] == "n1"
    assert is_terminating(cluster)
    repaired = running(
        {"operator": "Exists"}, pods=1, options=ControllerOptions(quirks=ControllerQuirks(c2=False))
    )
    taint_slice(repaired, [TAINT])
    assert not is_terminating(repaired)


def test_quirk_c4_finished_pod_with_a_reservation_is_evicted():
    cluster = running(options=ControllerOptions(off=frozenset({"claims"})), pods=0)
    cluster.claim()
    cluster.pod("pod-0", claim="claim")
    cluster.settle()
    cluster.finish("pod-0")
    taint_slice(cluster, [TAINT])
    assert cluster.get("pods", "pod-0") is None
    assert said(cluster) == [MARKING]


@pytest.mark.parametrize(
    ("c4", "outcome", "texts"), [(True, "Evicted", [MARKING]), (False, "Cancelled", [CANCELLING])]
)
def test_c4_decides_about_a_pod_that_finishes_before_its_toleration_ends(c4, outcome, texts):
    quirks = ControllerQuirks(c4=c4)
    options = ControllerOptions(quirks=quirks, off=frozenset({"claims"}))
    cluster = running(options=options, pods=0)
    cluster.claim(tolerations=[tolerate(60)])
    cluster.pod("pod-0", claim="claim")
    cluster.rule()
    cluster.wait(20)
    cluster.finish("pod-0")
    cluster.wait(60)
    assert cluster.decisions("eviction") == [("pod-0", outcome)]
    assert said(cluster) == texts
    for counts in check_decisions(cluster):
        assert counts.counts.keys() == {ComparisonResult.SAME}


def test_pod_learns_late_of_the_claim_of_its_extended_resource():
    """Nothing but the status of the pod names the claim, which may be written after the binding."""
    quirks = ControllerQuirks(c3=False)
    cluster = Cluster(options=ControllerOptions(quirks=quirks, off=frozenset({"claims"})))
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=2)
    cluster.claim()
    cluster.claim("extended")
    cluster.pod("pod-0", claim="claim")
    cluster.pod("other", claim="extended")
    cluster.settle()
    uid = cluster.must("pods", "pod-0")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "pod-0", "uid": uid, "controller": True}
    owned: JsonObject = {"metadata": {"ownerReferences": [owner]}}
    cluster.patch("resourceclaims", "extended", owned)
    user = {"resource": "pods", "name": "pod-0", "uid": uid}
    reserved: JsonObject = {"status": {"reservedFor": [user]}}
    cluster.patch("resourceclaims", "extended", reserved, subresource="status")
    extended = cluster.must("resourceclaims", "extended")
    result = extended["status"]["allocation"]["devices"]["results"][0]
    index = int(result["device"].rpartition("-")[2])
    taint_slice(cluster, *([] for _ in range(index)), [TAINT])
    assert not is_terminating(cluster)
    mapped = {"containerName": "main", "requestName": "gpu", "resourceName": "example.com/gpu"}
    status = {"resourceClaimName": "extended", "requestMappings": [mapped]}
    body: JsonObject = {"status": {"extendedResourceClaimStatus": status}}
    cluster.patch("pods", "pod-0", body, subresource="status")
    cluster.settle()
    assert is_terminating(cluster)


def test_quirk_c5_pod_that_terminates_already_counts_as_evicted():
    cluster = running()
    cluster.delete("pods", "pod-0")
    cluster.rule()
    cluster.wait(20)
    assert said(cluster) == []
    assert cluster.rule_condition() == (
        "False",
        "Completed",
        "1 pod evicted since starting the controller.",
    )


def test_quirk_c20_late_cancellation_after_an_eviction():
    cluster = running(pods=0)
    cluster.claim()
    cluster.pod("a", claim="claim")
    cluster.pod("b", claim="claim")
    cluster.settle()
    taint_slice(cluster, [TAINT])
    assert is_terminating(cluster, "a")
    assert is_terminating(cluster, "b")
    cluster.finish("a", "Failed")
    cluster.settle()
    assert said(cluster, "a") == [MARKING]
    cluster.finish("b", "Failed")
    cluster.settle()
    assert said(cluster, "b") == [MARKING, CANCELLING]


# Rules


def test_rule_evicts_and_reports():
    cluster = running()
    cluster.rule()
    first = len(cluster.line.events)
    cluster.settle()
    pending = [
        e.object["status"]["conditions"][0]
        for e in cluster.line.events[first:]
        if e.key.resource == "devicetaintrules"
    ]
    assert [c["message"] for c in pending] == ["1 pod needs to be evicted in 1 namespace."]
    assert pending[0]["reason"] == "PodsPendingEviction"
    assert pending[0]["observedGeneration"] == 1
    assert is_terminating(cluster)
    cluster.wait(9.9)
    assert cluster.rule_condition()[1] == "PodsPendingEviction"
    cluster.wait(0.2)
    assert cluster.rule_condition() == (
        "False",
        "Completed",
        "1 pod evicted since starting the controller.",
    )


def test_rule_evicts_later_and_completes_ten_seconds_after():
    cluster = running(tolerate(3600))
    cluster.rule()
    cluster.wait(3599)
    assert cluster.rule_condition()[1] == "PodsPendingEviction"
    cluster.wait(1)
    assert is_terminating(cluster)
    cluster.wait(9)
    assert cluster.rule_condition()[1] == "PodsPendingEviction"
    cluster.wait(1)
    assert cluster.rule_condition()[1] == "Completed"


def test_rule_without_pods_has_not_started():
    cluster = running(pods=0)
    cluster.rule()
    cluster.settle()
    assert cluster.rule_condition() == ("False", "NotStarted", "")


def test_rule_with_another_effect_says_so():
    cluster = running()
    cluster.rule(effect="NoSchedule")
    cluster.settle()
    assert cluster.rule_condition() == (
        "False",
        "OtherEffect",
        "Eviction only happens for the NoExecute effect.",
    )


def spread(namespaces: list[str], **options) -> Cluster:
    cluster = running(tolerate(600), pods=0, **options)
    for number, namespace in enumerate(namespaces):
        if namespace != "default":
            cluster.create("v1", "Namespace", namespace)
            tree = cluster.must("resourceclaimtemplates", "gpu")
            cluster.apply(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaimTemplate",
                    "metadata": {"name": "gpu", "namespace": namespace},
                    "spec": tree["spec"],
                }
            )
        cluster.pod(f"pod-{number}", template="gpu", namespace=namespace)
    return cluster.settle()


@pytest.mark.parametrize(
    ("namespaces", "text"),
    [
        (["default", "second"], "2 pods need to be evicted in 2 different namespaces."),
        (["default", "default"], "2 pods need to be evicted in 1 namespace."),
    ],
)
def test_pending_pods_are_counted_by_namespace(namespaces, text):
    cluster = spread(namespaces)
    cluster.rule()
    cluster.settle()
    assert cluster.rule_condition()[2] == text


def test_preview_of_a_rule_without_effect():
    cluster = running(pods=1)
    cluster.rule(effect="None")
    cluster.settle()
    status, reason, text = cluster.rule_condition()
    assert (status, reason) == ("False", "NoEffect")
    assert text == (
        "4 published devices selected. 1 allocated device selected. "
        "1 pod would be evicted in 1 namespace if the effect was NoExecute. "
        "This information will not be updated again. "
        "Recreate the DeviceTaintRule to trigger an update."
    )
    assert not is_terminating(cluster)


def test_preview_with_nothing_selected():
    cluster = running(pods=1)
    cluster.rule(effect="None", selector={"driver": "other.example.com"})
    cluster.settle()
    assert cluster.rule_condition()[2].startswith(
        "0 published devices selected. 0 allocated devices selected. "
        "0 pods would be evicted in 0 different namespaces if"
    )


def test_repaired_c1_and_c4_hold_for_previews_too():
    quirks = ControllerQuirks(c1=False, c4=False)
    cluster = Cluster(options=ControllerOptions(quirks=quirks, off=frozenset({"claims"})))
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=4)
    for name in ("runs", "finished"):
        cluster.claim(name)
        cluster.pod(name, claim=name)
    cluster.settle()
    cluster.finish("finished")
    spec = {"taint": {"key": "example.com/bad", "effect": "None"}}
    cluster.create("resource.k8s.io/v1", "DeviceTaintRule", "rule", spec=spec)
    cluster.settle()
    assert cluster.rule_condition()[2].startswith(
        "4 published devices selected. 2 allocated devices selected. "
        "1 pod would be evicted in 1 namespace if"
    )


def test_preview_is_computed_again_after_a_change_of_the_spec_only():
    cluster = running(pods=1)
    cluster.rule(effect="None")
    cluster.settle()
    before = cluster.rule_condition()
    cluster.pod("more", template="gpu")
    cluster.wait(60)
    assert cluster.rule_condition() == before
    cluster.patch(
        "devicetaintrules", "rule", {"spec": {"taint": {"timeAdded": "2026-01-02T03:00:30Z"}}}
    )
    cluster.settle()
    assert cluster.rule_condition()[2].startswith("4 published devices selected. 2 allocated")


def test_pod_hit_twice_by_a_rule_counts_once():
    cluster = running(pods=0)
    cluster.pod(
        "pod-0",
        resourceClaims=[
            {"name": "a", "resourceClaimTemplateName": "gpu"},
            {"name": "b", "resourceClaimTemplateName": "gpu"},
        ],
    )
    cluster.settle()
    cluster.rule()
    cluster.wait(20)
    assert cluster.rule_condition()[2] == "1 pod evicted since starting the controller."


def test_both_rules_are_credited_and_the_earlier_time_counts():
    cluster = running(tolerate(60, key="slow"), tolerate(30, key="fast"))
    for name in ("slow", "fast"):
        cluster.create(
            "resource.k8s.io/v1",
            "DeviceTaintRule",
            name,
            spec={
                "deviceSelector": {"driver": DRIVER},
                "taint": {"key": name, "effect": "NoExecute"},
            },
        )
    cluster.wait(29)
    assert not is_terminating(cluster)
    cluster.wait(1)
    assert is_terminating(cluster)
    cluster.wait(15)
    text = "1 pod evicted since starting the controller."
    assert cluster.rule_condition("slow") == ("False", "Completed", text)
    assert cluster.rule_condition("fast") == ("False", "Completed", text)


def test_quirk_c6_status_stays_stale_when_the_owner_deletes_the_pod():
    cluster = running(tolerate(600))
    cluster.rule()
    cluster.wait(30)
    cluster.delete("pods", "pod-0", grace_seconds=0)
    cluster.wait(60)
    assert cluster.rule_condition()[1] == "PodsPendingEviction"


def test_pod_deleted_before_the_look_of_ten_seconds_is_no_longer_counted():
    cluster = running(tolerate(600))
    cluster.rule()
    cluster.wait(3)
    cluster.delete("pods", "pod-0", grace_seconds=0)
    cluster.wait(6)
    assert cluster.rule_condition()[1] == "PodsPendingEviction"
    cluster.wait(1)
    assert cluster.rule_condition() == ("False", "NotStarted", "")


def test_look_of_ten_seconds_is_not_lost_by_a_restart():
    cluster = running(tolerate(600))
    cluster.rule()
    cluster.wait(3)
    cluster.delete("pods", "pod-0", grace_seconds=0)
    cluster.settle()
    cluster.restart()
    cluster.wait(7)
    assert cluster.rule_condition() == ("False", "NotStarted", "")
    decisions = len(cluster.decisions("rule-status"))
    cluster.restart()
    cluster.wait(60)
    assert len(cluster.decisions("rule-status")) == decisions


def test_effect_changed_to_no_schedule_cancels():
    cluster = running(tolerate(60))
    cluster.rule()
    cluster.settle()
    cluster.patch("devicetaintrules", "rule", {"spec": {"taint": {"effect": "NoSchedule"}}})
    cluster.wait(120)
    assert said(cluster) == [CANCELLING]
    assert cluster.rule_condition()[1] == "OtherEffect"


def test_rule_deleted_cancels():
    cluster = running(tolerate(60))
    cluster.rule()
    cluster.settle()
    cluster.delete("devicetaintrules", "rule")
    cluster.wait(120)
    assert said(cluster) == [CANCELLING]


def test_status_of_many_evictions_is_written_at_most_every_ten_seconds():
    cluster = running(pods=4)
    cluster.rule()
    cluster.settle()
    written = []
    for second in range(40):
        before = len(cluster.line.events)
        cluster.wait(1)
        for event in cluster.line.events[before:]:
            if event.key.resource == "devicetaintrules":
                written.append(second + 1)
    assert written == [10]
    assert cluster.rule_condition()[2] == "4 pods evicted since starting the controller."


def test_rule_on_an_unpublished_device_still_evicts():
    cluster = running()
    cluster.delete("resourceslices", "n1-slice")
    cluster.settle()
    cluster.rule(selector={"driver": DRIVER, "pool": "n1", "device": "gpu-0"})
    cluster.settle()
    assert is_terminating(cluster)


def test_begin_from_objects_alone_remembers_what_was_evicted():
    """A controller that does not read the whole log takes counts from the status of rules."""
    cluster = running(pods=2)
    cluster.rule()
    cluster.wait(15)
    line = cluster.line
    objects = line.views.objects
    line.controllers = cluster.fresh_controllers()
    last = [event for place in objects.resources() for event in objects.events(*place)]
    for event in sorted(last, key=lambda event: event.revision):
        for controller in line.controllers:
            controller.fold(event, line.views)
    before = line.head.revision
    cluster.wait(60)
    assert cluster.rule_condition()[2] == "2 pods evicted since starting the controller."
    assert [
        e for e in line.events if e.revision > before and e.object.get("outcome") == "Evicted"
    ] == []


@pytest.mark.parametrize(
    ("release", "version", "applied"),
    [
        ("1.36", "v1beta2", ["v1beta2"]),
        ("1.36", "v1alpha3", ["v1beta2"]),
        ("1.35", "v1alpha3", ["v1alpha3"]),
        ("1.34", "v1alpha3", []),  # rules have a status since 1.35
    ],
)
def test_status_of_a_rule_is_written_in_the_version_of_its_release(release, version, applied):
    profile = Profile(version=release, gates={"DRADeviceTaints": True, "DRADeviceTaintRules": True})
    cluster = running(profile=profile)
    cluster.create(
        f"resource.k8s.io/{version}",
        "DeviceTaintRule",
        "rule",
        spec={
            "deviceSelector": {"driver": DRIVER},
            "taint": {"key": "example.com/bad", "effect": "NoExecute"},
        },
    )
    cluster.settle()
    rule = cluster.must("devicetaintrules", "rule")
    reasons = [each["reason"] for each in rule.get("status", {}).get("conditions", ())]
    assert reasons == ["PodsPendingEviction" for _ in applied]
    owners = [each for each in rule["metadata"]["managedFields"] if each["operation"] == "Apply"]
    assert [(each["manager"], each["apiVersion"]) for each in owners] == [
        ("device-taint-eviction-controller", f"resource.k8s.io/{each}") for each in applied
    ]
    assert not cluster.line.refusals


def beta_rule(cluster: Cluster) -> None:
    taint = {"key": "example.com/bad", "effect": "NoExecute"}
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
    cluster.create("resource.k8s.io/v1beta2", "DeviceTaintRule", "rule", spec=spec)


def test_without_the_gate_of_rules_only_taints_of_slices_evict():
    cluster = running(profile=Profile(version="1.36"))
    beta_rule(cluster)
    cluster.wait(30)
    assert not is_terminating(cluster)
    assert not cluster.must("devicetaintrules", "rule")["status"]
    taint_slice(cluster, [TAINT])
    assert is_terminating(cluster)


def test_without_the_gate_of_taints_rules_do_nothing():
    gates = {"DRADeviceTaints": False, "DRADeviceTaintRules": True}
    cluster = running(profile=Profile(version="1.36", gates=gates))
    beta_rule(cluster)
    cluster.wait(30)
    assert not is_terminating(cluster)
    assert not cluster.must("devicetaintrules", "rule")["status"]


class NotingPace:
    """Lets every key be processed at once, and notes when evictions were to be processed.

    Cancellations wait for some seconds after `since`.
    """

    def __init__(self, since: Instant = Instant(0), cancelling_seconds: int = 0) -> None:
        self.instants: list[Instant] = []
        self._cancelling = Instant(since + cancelling_seconds * SECOND)

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        if queue == "eviction":
            self.instants.append(now)
        return max(now, self._cancelling) if queue == "eviction/cancelled" else now

    def version_seen(self, pod: str, newest: str, now: Instant) -> str:
        return newest

    def put_off(self, pod: str, tried: AttemptOutcome, now: Instant) -> Instant | None:
        return None

    def bind_delay(self, pod: str, now: Instant) -> tuple[Instant, Instant]:
        return now, now


@pytest.mark.parametrize("seconds_between", [-3, 0, 4, 14])
def test_pod_is_looked_at_only_when_its_toleration_ends(seconds_between: int) -> None:
    cluster = running(tolerate(15))
    first = Instant(cluster.line.now + SECOND)
    second = Instant(first + seconds_between * SECOND)
    for since in (first, second):
        taint_slice(cluster, [{**TAINT, "timeAdded": timestamps.seconds_text(since)}])
    pace = NotingPace()
    reconciler = EvictionReconciler(pace=pace)
    for event in cluster.line.events:
        reconciler.fold(event, cluster.line.views)
    former, end = [
        Instant(timestamps.parse(timestamps.seconds_text(since)) + 15 * SECOND)
        for since in (first, second)
    ]
    for instant in (former, end - 1):
        if instant < end:
            assert reconciler.step(cluster.line.views, Instant(instant)) is None
    assert pace.instants == []
    assert reconciler.step(cluster.line.views, end) is not None
    assert pace.instants == [end]


@pytest.mark.parametrize("seconds", [0, 3])
def test_cancellation_is_processed_at_its_own_pace(seconds: int) -> None:
    cluster = running(tolerate(60))
    taint_slice(cluster, [TAINT])
    cluster.stop("eviction")
    taint_slice(cluster, [])
    line, now = cluster.line, cluster.line.now
    reconciler = EvictionReconciler(pace=NotingPace(now, seconds))
    for event in line.events:
        reconciler.fold(event, line.views)
    last = Instant(now + seconds * SECOND)
    assert (reconciler.step(line.views, now) is None) == (seconds > 0)
    if seconds:
        assert reconciler.step(line.views, Instant(last - 1)) is None
        assert reconciler.step(line.views, last).key == "cancel:default/pod-0"
