"""What goes on in a changed world: which pods are lacked there, and which stand alone."""

import pytest

from app.analysis.replay.inputs import Input
from app.domain.log import EventType, ObjectKey
from app.domain.objects.write.commands import ImportObject, RecordDecision
from app.domain.values.timestamps import SECOND
from app.service.replays.deciding import altered
from app.service.replays.deciding.pod_progress import PodProgress
from projections.objects import ObjectsProjection
from tests.unit.projections.log_of import LogOf

SETS = ObjectKey("apps", "replicasets", "ns", "web")


def pod(name, *, kind="ReplicaSet", owner="uid-web", **parts):
    reference = {"kind": kind, "name": "web", "uid": owner, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "ns",
            "name": name,
            "uid": f"uid-{name}",
            "ownerReferences": [reference],
            **parts.pop("metadata", {}),
        },
        **parts,
    }


def world(replicas, *pods):
    """A ReplicaSet that wants so many pods (None: it does not say) and has these."""
    log = LogOf(ObjectsProjection())
    wanted = {} if replicas is None else {"replicas": replicas}
    metadata = {"namespace": "ns", "name": "web", "uid": "uid-web"}
    tree = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": wanted}
    log.append(EventType.OBJECT_CREATED, SETS, tree)
    for each in pods:
        key = ObjectKey("", "pods", "ns", each["metadata"]["name"])
        log.append(EventType.OBJECT_CREATED, key, each)
    return log.view


def made(tree):
    """The event with which a recorded controller made a pod."""
    log = LogOf(ObjectsProjection())
    key = ObjectKey("", "pods", "ns", tree["metadata"]["name"])
    log.append(EventType.OBJECT_CREATED, key, tree)
    return log.events[-1]


DONE = {"status": {"phase": "Succeeded"}}
GOING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:09Z"}}


@pytest.mark.parametrize(
    ("replicas", "pods", "is_enough"),
    [
        (2, [], False),
        (2, [pod("a")], False),
        (2, [pod("a"), pod("b")], True),
        (2, [pod("a"), pod("b"), pod("c")], True),
        (2, [pod("a"), pod("b", **DONE)], False),
        (2, [pod("a"), pod("b", **GOING)], False),
        (2, [pod("a"), pod("b", owner="uid-other")], False),
        (0, [], True),
        (None, [], False),
        (None, [pod("a")], True),
    ],
)
def test_pod_is_made_where_its_set_lacks_one(replicas, pods, is_enough):
    assert altered.lacks_no_pod(made(pod("new")), world(replicas, *pods)) is is_enough


def test_pods_of_others_are_made_as_recorded():
    objects = world(0)
    assert altered.lacks_no_pod(made(pod("new")), objects)
    assert not altered.lacks_no_pod(made(pod("new", kind="Job")), objects)
    assert not altered.lacks_no_pod(made(pod("new", owner="uid-gone")), objects)
    log = LogOf(ObjectsProjection())
    log.put("pod", "ns/new", metadata=pod("new")["metadata"])
    log.put("pod", "ns/new", metadata=pod("new")["metadata"])
    assert [altered.lacks_no_pod(event, objects) for event in log.events] == [True, False]


def test_pods_that_wait_refused_are_named():
    refused = {"conditions": [{"type": "PodScheduled", "status": "False"}]}
    placed = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
    objects = world(
        1,
        pod("b", status=refused),
        pod("a", status=refused),
        pod("bound", status=refused, spec={"nodeName": "n"}),
        pod("placed", status=placed),
        pod("new"),
    )
    assert [key.name for key in altered.refused_pods(objects)] == ["a", "b"]


class Kubelet:
    """A kubelet that remembers what it was shown."""

    name, reads, queues = "kubelet", frozenset(("pods",)), ("queue",)

    def __init__(self):
        self.shown = []
        self.step, self.settled, self.due, self.redecide = "step", "settled", "due", "redecide"

    def fold(self, event, views):
        assert views == "views"
        self.shown.append(event.key.name)


def progress(there, *inputs, removed=frozenset(), is_changed=True):
    return PodProgress(there, inputs, removed, is_changed=is_changed)


def reports(tree, *phases):
    """What the recorded kubelet wrote about a pod, a second after its binding and from then on."""
    log = LogOf(ObjectsProjection())
    key = ObjectKey("", "pods", "ns", tree["metadata"]["name"])
    before = {**tree, "status": {}}
    for number, phase in enumerate(phases):
        after = {**tree, "status": {"phase": phase}}
        log.append(EventType.OBJECT_UPDATED, key, after)
        at = made(tree).stamp.time + (10 + number) * SECOND
        yield Input(
            event=log.events[-1], before=before, time=at, author="system:node:n", number=number
        )
        before = after


def test_recorded_kubelet_is_as_much_earlier_as_its_pod_is_bound():
    tree = pod("p", spec={"nodeName": "n"})
    event = made(tree)
    now = event.stamp.time
    there = {("uid-p", "bound"): now + 9 * SECOND}
    writes = list(reports(tree, "Running", "Succeeded"))
    ahead = progress(there, *writes)
    assert ahead.note(event, now)
    assert ahead.taken_ahead(event) == writes
    assert [ahead.due(each) - now for each in writes] == [1 * SECOND, 2 * SECOND]
    assert ahead.taken_ahead(event) == []
    assert [ahead.is_ahead(each) for each in writes] == [True, True]
    assert not ahead.lacks_run("uid-p", now)


@pytest.mark.parametrize("bound", [None, 0, 1])
def test_recorded_kubelet_waits_for_its_turn_where_its_pod_is_bound_no_earlier(bound):
    tree = pod("p", spec={"nodeName": "n"})
    event = made(tree)
    there = {} if bound is None else {("uid-p", "bound"): event.stamp.time + bound * SECOND}
    writes = list(reports(tree, "Running"))
    turns = progress(there, *writes)
    turns.note(event, event.stamp.time)
    assert turns.taken_ahead(event) == ()
    assert turns.due(writes[0]) == writes[0].time


def test_writes_about_the_end_of_a_pod_wait_for_its_end():
    tree = pod("p", spec={"nodeName": "n"})
    event = made(tree)
    there = {("uid-p", "bound"): event.stamp.time + 9 * SECOND}
    (write,) = reports({**tree, "metadata": {**tree["metadata"], **GOING["metadata"]}}, "Failed")
    ends = progress(there, write)
    ends.note(event, event.stamp.time)
    assert not ends.taken_ahead(event)


@pytest.mark.parametrize(
    ("reached", "deleting", "beginning", "is_served"),
    [
        ({}, False, 0, True),
        ({"bound": 0}, False, 0, False),
        ({"bound": 0}, True, 0, True),
        ({"bound": 0, "terminating": 0}, True, 0, False),
        ({"bound": 0, "terminating": 3_600}, True, 0, True),
        ({"terminating": 0}, True, 0, True),
        ({"bound": 3_600, "terminating": 3_600}, True, 3_600, False),
        ({"bound": 3_600}, True, 3_600, True),
        ({"bound": 3_600}, False, 0, True),
        ({"bound": 1}, False, 0, False),
        ({"bound": 3_600, "terminating": 7_200}, True, 3_600, True),
    ],
    ids=[
        "never bound there",
        "bound there",
        "ends only here",
        "ended there before",
        "ends there much later",
        "ended there unbound",
        "terminates at the beginning",
        "terminates at the beginning only here",
        "bound much later there, where nobody ran it",
        "bound a little later there",
        "terminates at the beginning and there much later",
    ],
)
def test_kubelets_serve_the_pods_that_no_recorded_one_serves(
    reached, deleting, beginning, is_served
):
    """Seconds are counted from the pod's event; what was so at the beginning has its instant."""
    event = made(pod("p", spec={"nodeName": "n"}, **(GOING if deleting else {})))
    there = {
        ("uid-p", what): event.stamp.time + seconds * 1_000_000 for what, seconds in reached.items()
    }
    kubelet = Kubelet()
    start = event.stamp.time + beginning * 1_000_000
    altered.StrayPods(kubelet, progress(there), start).fold(event, "views")
    assert kubelet.shown == (["p"] if is_served else [])


def test_kubelets_of_a_changed_world_work_as_any_others():
    kubelet = Kubelet()
    stray = altered.StrayPods(kubelet, progress({}), 0)
    for port in ("name", "reads", "queues", "step", "settled", "due", "redecide"):
        assert getattr(stray, port) == getattr(kubelet, port)


def test_decision_of_a_changed_world_says_that_it_was_paced():
    body = {"controller": "scheduling", "inputs": {"revision": 7}, "attempt": 1}
    decided = RecordDecision(namespace="ns", name="p", body=body)
    told = altered.paced(decided)
    assert told.body == {**body, "inputs": {"revision": 7, "paced": True}}
    assert body["inputs"] == {"revision": 7}


def test_what_follows_from_the_log_alone_is_not_paced():
    body = {"controller": "slice-patches", "inputs": {}}
    decided = RecordDecision(namespace="", name="n", body=body)
    assert altered.paced(decided) is decided
    write = ImportObject(operation="ADDED", key=SETS, uid="u", tree={})
    assert altered.paced(write) is write


def test_kubelets_of_a_changed_world_see_all_else_but_nodes():
    log = LogOf(ObjectsProjection())
    log.put("node", "n")
    log.put("claim", "ns/c")
    log.put("pod", "ns/unbound")
    kubelet = Kubelet()
    stray = altered.StrayPods(kubelet, progress({}), 0)
    for event in log.events:
        stray.fold(event, "views")
    assert kubelet.shown == ["c"]


def space(name, **metadata):
    key = ObjectKey("", "namespaces", "", name)
    return key, {"kind": "Namespace", "metadata": {"name": name, "uid": "space", **metadata}}


@pytest.mark.parametrize(
    ("kind", "ours", "spaces", "said"),
    [
        pytest.param("CREATED", None, [space("ns")], "", id="free"),
        pytest.param("CREATED", "uid-p", [space("ns")], "", id="there already"),
        pytest.param("CREATED", "uid-q", [space("ns")], altered._NAME_IN_USE, id="another one"),
        pytest.param("UPDATED", "uid-q", [space("ns")], "", id="change of another one"),
        pytest.param("CREATED", None, [], altered._NO_NAMESPACE, id="no namespace"),
        pytest.param(
            "CREATED",
            None,
            [space("ns", **GOING["metadata"])],
            altered._NO_NAMESPACE,
            id="namespace that goes",
        ),
        pytest.param("CREATED", "uid-p", [], "", id="there, in no namespace"),
    ],
)
def test_recorded_object_cannot_be_made_where_another_one_is(kind, ours, spaces, said):
    log = LogOf(ObjectsProjection())
    for key, tree in spaces:
        log.append(EventType.OBJECT_CREATED, key, tree)
    tree = pod("p")
    event = made(tree)
    if kind == "UPDATED":
        event = next(iter(reports(tree, "Running"))).event
    mine = None if ours is None else pod("p", metadata={"uid": ours})
    for known in (frozenset(("ns",)), frozenset(("other",))):
        # Of a namespace that was not there before the changes nothing is known.
        wanted = said if "ns" in known or said == altered._NAME_IN_USE else ""
        assert altered.collision(event, mine, log.view, known) == wanted


@pytest.mark.parametrize(
    ("phases", "bound", "removed", "policy", "is_served"),
    [
        pytest.param(["Running"], 0, {"uid-p"}, "Never", True, id="removed there"),
        pytest.param(["Running"], 0, {"uid-p"}, "Always", False, id="that starts again"),
        pytest.param(["Running", "Failed"], 0, {"uid-p"}, "Never", False, id="ended there"),
        pytest.param(["Running"], 0, set(), "Never", False, id="still there"),
        pytest.param(["Running"], 3_600, set(), "Never", True, id="bound much later there"),
    ],
)
def test_running_pod_that_its_recorded_kubelet_did_not_end_is_ended_here(
    phases, bound, removed, policy, is_served
):
    spec = {"nodeName": "n", "restartPolicy": policy}
    tree = pod("p", spec=spec, status={"phase": "Running"})
    event = made(tree)
    there = {("uid-p", "bound"): event.stamp.time + bound * SECOND}
    kubelet = Kubelet()
    for is_changed in (False, True):
        here = progress(there, *reports(tree, *phases), removed=removed, is_changed=is_changed)
        altered.StrayPods(kubelet, here, event.stamp.time).fold(event, "views")
        assert kubelet.shown == (["p"] if is_served and is_changed else [])
