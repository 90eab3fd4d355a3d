"""What a change means to pods that wait for a node."""

import pytest

from app.analysis.blast import compare, text, world
from app.analysis.blast.compare import ProposedDeletion
from app.analysis.blast.radius import BlastRadius
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import HistoryInfo
from app.domain.values import json_tree
from tests.cluster import Cluster, claim_spec
from tests.unit.analysis.blast.worlds import ask, frozen, put, rule, slice_spec


def crowded(pods: int = 4, devices: int = 1, **request: object) -> Cluster:
    """Two nodes with too few devices for their pods `pod-0`, `pod-1` and so on."""
    cluster = Cluster()
    cluster.device_class()
    for node in ("n1", "n2"):
        cluster.node(node)
        cluster.slice(node, devices=devices)
    cluster.template(**request)
    for number in range(pods):
        cluster.pod(f"pod-{number}", template="gpu")
    return cluster.settle()


def told(found: BlastRadius) -> dict[str, tuple[str, str]]:
    return {pod.name: (pod.prospect.value, pod.node) for pod in found.waiting}


def totals(found: BlastRadius) -> tuple[int, int, int]:
    names = ("waiting", "waiting_fits", "waiting_kept")
    return tuple(found.totals[name] for name in names)


def paired(**request: object) -> Cluster:
    """A pod that holds both devices of the only node, and one that waits for one of them."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=2)
    cluster.template("two", count=2)
    cluster.template("one", **request)
    cluster.pod("pair", template="two")
    cluster.settle()
    cluster.pod("waits", template="one")
    return cluster.settle()


def narrow(device: str = "gpu-0") -> compare.Put:
    return rule("bad", pool="n1", device=device)


def test_waiting_pod_gets_what_an_evicted_one_gives_back():
    cluster = paired()
    found = ask(cluster, narrow())
    assert told(found) == {"waits": ("freed", "n1")}
    assert (totals(found), found.totals["waiting_freed"]) == ((1, 0, 0), 1)
    lines = list(text.lines(found, 5))
    place = lines.index(
        "waiting pods: 0 of 1 would fit from then on, 1 once the evicted pods have ended"
    )
    assert lines[place + 1] == (
        "  default/waits would get a place on n1 once the evicted pods have ended"
    )


def test_what_is_given_back_is_what_happens_when_the_change_is_made():
    cluster = paired()
    (change,) = [narrow()]
    cluster.apply(json_tree.copy(change.tree))
    cluster.settle()
    assert "nodeName" not in cluster.must("pods", "waits")["spec"]
    cluster.kill("pair")
    cluster.wait(15)
    assert cluster.must("pods", "waits")["spec"]["nodeName"] == "n1"
    assert cluster.devices_of(cluster.claim_of("waits")) == ["n1/gpu-1"]


def test_device_that_stays_tainted_is_given_to_nobody_who_does_not_tolerate_it():
    cluster = paired()
    found = ask(cluster, rule("bad"))
    assert told(found) == {}


EXISTS = {"operator": "Exists"}
LASTING = [
    # A toleration without an effect counts for scheduling and not for evictions (C2).
    (EXISTS, "evicted", 0.0, "and be evicted from it at once: rule bad"),
    (EXISTS | {"effect": "NoExecute"}, "freed", None, "once the evicted pods have ended"),
    (
        EXISTS | {"effect": "NoExecute", "tolerationSeconds": 90},
        "freed",
        90.0,
        "once the evicted pods have ended, and be evicted from it 90 s from now: rule bad",
    ),
]


@pytest.mark.parametrize(("toleration", "prospect", "seconds", "said"), LASTING)
def test_place_from_which_the_pod_would_be_evicted_is_no_promise(
    toleration, prospect, seconds, said
):
    cluster = paired(tolerations=[toleration])
    change = rule("bad")
    found = ask(cluster, change)
    assert told(found) == {"waits": (prospect, "n1")}
    assert [pod.evicted_after for pod in found.waiting] == [seconds]
    assert f"  default/waits would get a place on n1 {said}" in text.lines(found, 5)
    # What happens when the change is made.
    cluster.apply(json_tree.copy(change.tree))
    cluster.settle()
    cluster.kill("pair")
    cluster.wait(15)
    assert cluster.must("pods", "waits")["spec"]["nodeName"] == "n1"
    assert is_evicted(cluster, "waits") == (seconds == 0)
    cluster.wait(120)
    assert is_evicted(cluster, "waits") == (seconds is not None)


def is_evicted(cluster, name):
    pod = cluster.get("pods", name)
    return pod is None or "deletionTimestamp" in pod["metadata"]


def test_toleration_without_effect_is_named_where_it_does_not_keep_a_pod():
    cluster = paired(tolerations=[EXISTS])
    cluster.kill("pair")
    cluster.wait(15)
    (pod,) = ask(cluster, rule("bad")).pods
    assert pod.fate.value == "now"
    assert pod.reasons == (
        "rule bad", "a toleration without an effect does not count for evictions (C2)"
    )  # fmt: skip


def test_evicted_pod_gives_its_room_back():
    cluster = Cluster()
    cluster.device_class()
    cluster.node(cpu="1")
    cluster.slice(devices=2)
    cluster.template()
    cluster.pod("big", template="gpu", requests={"cpu": "1"})
    cluster.settle()
    cluster.pod("waits", template="gpu", requests={"cpu": "1"})
    cluster.settle()
    assert told(ask(cluster, narrow())) == {"waits": ("freed", "n1")}


def test_devices_that_somebody_else_has_reserved_are_not_given_back():
    cluster = paired()
    name = cluster.claim_of("pair")
    tree = json_tree.copy(cluster.must("resourceclaims", name))
    other = {"apiGroup": "batch", "resource": "jobs", "name": "job", "uid": "uid-1"}
    tree["status"]["reservedFor"].append(other)
    cluster.update("resourceclaims", tree, "status")
    assert told(ask(cluster, narrow())) == {}


def test_existing_rule_tells_what_evicted_pods_would_give_back():
    cluster = paired()
    cluster.line.controllers = ()
    change = narrow()
    cluster.apply(json_tree.copy(change.tree))
    state = frozen(cluster)
    found = compare.blast_of_rule(state, "bad")
    assert told(found) == {"waits": ("freed", "n1")}
    assert compare.blast_of_rule(state, "bad") == found


def test_new_devices_are_given_to_as_many_waiting_pods_as_fit():
    cluster = crowded(pods=5)
    devices = [{"name": name} for name in ("gpu-0", "gpu-1", "gpu-2")]
    found = ask(cluster, put("ResourceSlice", "n1-slice", slice_spec(devices)))
    assert told(found) == {"pod-2": ("fits", "n1"), "pod-3": ("fits", "n1")}
    assert totals(found) == (3, 2, 0)


def test_answer_is_what_happens_when_the_change_is_made():
    cluster = crowded(pods=5)
    devices = [{"name": name} for name in ("gpu-0", "gpu-1")]
    spec = slice_spec(devices, node="n2")
    found = ask(cluster, put("ResourceSlice", "n2-slice", spec))
    tree = cluster.must("resourceslices", "n2-slice")
    cluster.update("resourceslices", {**tree, "spec": {**tree["spec"], "devices": devices}})
    cluster.wait(15)
    placed = {
        name: cluster.must("pods", name)["spec"]["nodeName"]
        for name in ("pod-2", "pod-3", "pod-4")
        if "nodeName" in cluster.must("pods", name)["spec"]
    }
    assert {name: node for name, (_, node) in told(found).items()} == placed == {"pod-2": "n2"}


def test_deleted_rule_lets_waiting_pods_in():
    cluster = crowded(pods=0)
    cluster.rule("bad", effect="NoSchedule")
    cluster.pod("pod", template="gpu")
    cluster.settle()
    assert told(ask(cluster, ProposedDeletion(kind="devicetaintrule", name="bad"))) == {
        "pod": ("fits", "n1")
    }


def test_existing_rule_names_the_pods_that_wait_because_of_it():
    cluster = crowded(pods=0)
    cluster.rule("bad", effect="NoSchedule")
    for number in range(3):
        cluster.pod(f"pod-{number}", template="gpu")
    cluster.settle()
    found = compare.blast_of_rule(frozen(cluster), "bad")
    assert told(found) == {"pod-0": ("kept", "n1"), "pod-1": ("kept", "n2")}
    assert totals(found) == (3, 0, 2)


def test_changed_class_lets_a_waiting_pod_in():
    cluster = Cluster()
    cluster.device_class(selector='device.driver == "other.example.com"')
    cluster.node()
    cluster.slice()
    cluster.template()
    cluster.pod(template="gpu")
    cluster.settle()
    assert told(ask(cluster, put("DeviceClass", "gpu", {}))) == {"pod": ("fits", "n1")}


def test_pods_with_more_priority_come_first():
    cluster = crowded(pods=2)
    cluster.pod("low", template="gpu")
    cluster.create(
        "scheduling.k8s.io/v1", "PriorityClass", "high", value=10, preemptionPolicy="Never"
    )
    cluster.pod("high", template="gpu", priorityClassName="high")
    cluster.settle()
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    found = ask(cluster, put("ResourceSlice", "n1-slice", slice_spec(devices)))
    assert told(found) == {"high": ("fits", "n1")}


def test_pods_of_one_claim_go_together():
    cluster = crowded(pods=0, devices=1)
    spec = claim_spec(count=2)
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "both", spec=spec)
    cluster.pod("a", claim="both")
    cluster.pod("b", claim="both")
    cluster.settle()
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    found = ask(cluster, put("ResourceSlice", "n2-slice", slice_spec(devices, node="n2")))
    assert told(found) == {"a": ("fits", "n2"), "b": ("fits", "n2")}


def test_pods_that_nobody_would_try_are_not_told():
    cluster = crowded(pods=2)
    cluster.pod("gated", template="gpu", schedulingGates=[{"name": "example.com/wait"}])
    cluster.pod("others", template="gpu", schedulerName="mine")
    cluster.pod("unmade", template="missing")
    cluster.pod("nothing", nodeSelector={"no": "where"})
    cluster.settle()
    devices = [{"name": f"gpu-{number}"} for number in range(6)]
    found = ask(cluster, put("ResourceSlice", "n1-slice", slice_spec(devices)))
    assert totals(found) == (0, 0, 0)


def test_bound_on_the_pods_that_are_tried_is_told():
    cluster = crowded(pods=6)
    devices = [{"name": f"gpu-{number}"} for number in range(6)]
    found = ask(cluster, put("ResourceSlice", "n1-slice", slice_spec(devices)), waiting_max=3)
    assert totals(found) == (3, 3, 0)
    assert "1 more pod waits and was not tried" in found.notes


def test_without_a_scheduler_nobody_is_placed():
    cluster = crowded()
    info = HistoryInfo(id=1, name="default", settings={"controllers": {"off": ["scheduling"]}})
    line = cluster.line
    state = world.freeze(line.views, info, line.rules, line.now)
    found = compare.blast(state, [rule("bad", "NoSchedule")])
    assert totals(found) == (0, 0, 0)


def test_page_names_the_first_few():
    cluster = crowded(pods=5)
    devices = [{"name": name} for name in ("gpu-0", "gpu-1", "gpu-2")]
    found = ask(cluster, put("ResourceSlice", "n1-slice", slice_spec(devices)))
    lines = list(text.lines(found, 1))
    place = lines.index("waiting pods: 2 of 3 would fit from then on")
    assert lines[place + 1 : place + 3] == [
        "  default/pod-2 would get a place on n1",
        "  … 1 more; -o json has them",
    ]


def test_page_is_silent_when_nobody_waits():
    cluster = crowded(pods=1)
    lines = list(text.lines(ask(cluster, rule()), 5))
    assert not any(line.startswith("waiting pods") for line in lines)


def test_question_leaves_the_state_as_it_was():
    cluster = crowded()
    state = frozen(cluster)
    first = compare.blast(state, [rule("bad", "NoSchedule")])
    assert compare.blast(state, [rule("bad", "NoSchedule")]) == first


def test_extended_resources_count_as_devices():
    cluster = Cluster(options=ControllerOptions())
    spec = {"extendedResourceName": "example.com/gpu"}
    cluster.create("resource.k8s.io/v1", "DeviceClass", "gpu", spec=spec)
    cluster.node()
    amounts = {"example.com/gpu": "1"}
    container = {"name": "main", "image": "busybox:1"}
    container["resources"] = {"requests": amounts, "limits": amounts}
    cluster.pod(containers=[container])
    cluster.settle()
    found = ask(cluster, put("ResourceSlice", "n1-slice", slice_spec([{"name": "gpu-0"}])))
    assert told(found) == {"pod": ("fits", "n1")}


def test_preview_gives_no_device_that_its_rule_would_taint():
    """With effect None nobody is evicted, and with NoExecute the waiting pod would not fit."""
    cluster = paired()
    for effect in ("None", "NoExecute"):
        found = ask(cluster, rule("bad", effect, pool="n1"))
        assert (told(found), found.totals["pods_evicted"]) == ({}, 1)
    # A rule for one of the two devices frees the other one, in the preview, too.
    found = ask(cluster, rule("bad", "None", pool="n1", device="gpu-0"))
    assert told(found) == {"waits": ("freed", "n1")}


def test_deleted_pod_that_waits_for_its_binding_gives_its_device_back():
    """It has no node, so it is gone at once; its claim is reserved, and another pod waits."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    cluster.slice(devices=[{"name": "d", **conditions}])
    for name in ("binding", "waits"):
        cluster.claim(name)
        cluster.pod(name, claim=name)
        cluster.settle()
    found = ask(cluster, ProposedDeletion(kind="pod", name="binding"))
    assert told(found) == {"waits": ("freed", "n1")}
    (release,) = found.claim_releases
    assert (release.name, release.pods) == ("binding", ("binding",))
    # Its node is chosen, and a cordon takes that back no more.
    cordoned = ask(cluster, compare.ProposedCordon(node="n1"))
    assert (told(cordoned), cordoned.totals["waiting"]) == ({}, 1)


def one_device(holder_seconds: int) -> Cluster:
    """A pod that holds the only device for some seconds of a taint, and one that waits for it."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=1)
    for name, seconds in (("holder", holder_seconds), ("waits", 60)):
        lasts = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        cluster.template(name, tolerations=[lasts])
        cluster.pod(name, template=name)
        cluster.settle()
    return cluster


def test_terminating_pod_frees_nothing_by_the_change():
    cluster = one_device(0)
    cluster.delete("pods", "holder")
    cluster.settle()
    answer = ask(cluster, narrow())
    assert [(pod.name, pod.fate.value) for pod in answer.pods] == [("holder", "terminating")]
    assert told(answer) == {}


@pytest.mark.parametrize(
    ("seconds", "prospect", "after"), [(0, "freed", 60.0), (30, "freed", 60.0), (60, "evicted", 60)]
)
def test_device_that_is_freed_later_has_been_tainted_until_then(seconds, prospect, after):
    cluster = one_device(seconds)
    answer = ask(cluster, narrow())
    assert told(answer) == {"waits": (prospect, "n1")}
    assert answer.waiting[0].evicted_after == after
