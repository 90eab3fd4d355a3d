"""Assigning pods to nodes, and what is recorded without rules."""

import copy
from typing import Any

import pytest

from app.domain.errors import BadRequest, Conflict, NotFound
from app.domain.log import ObjectKey, Origin
from app.domain.objects.write.commands import BindPod, ImportObject, RecordDecision, RecordFact
from tests.unit.objects.builders import Cluster, claim, cluster, key, pod

POD = key("pods", "p", "default")
CLAIM = key("resourceclaims", "c", "default")
ZONE = "topology.kubernetes.io/zone"


def with_pod(release: str = "1.37", **spec: Any) -> Cluster:
    made = cluster(release)
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {ZONE: "z", "other": "x"}},
    }
    made.create(node)
    made.create(pod(**spec))
    return made


def test_a_bound_pod_has_node_condition_and_zone_and_no_new_generation() -> None:
    made = with_pod()
    made.patch(POD, {"status": {"nominatedNodeName": "n"}}, subresource="status")
    tree = made.do(BindPod(key=POD, node="n"))
    assert made.types == ["ObjectUpdated"]
    assert tree["spec"]["nodeName"] == "n"
    assert "nominatedNodeName" not in tree["status"]
    assert tree["status"]["conditions"] == [
        {
            "lastProbeTime": None,
            "lastTransitionTime": "2026-03-01T10:00:05Z",
            "status": "True",
            "type": "PodScheduled",
        }
    ]
    assert tree["metadata"]["labels"] == {ZONE: "z"}
    assert tree["metadata"]["generation"] == 1


def test_an_earlier_condition_is_replaced_as_a_whole() -> None:
    made = with_pod()
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no",
    }  # fmt: skip
    made.patch(POD, {"status": {"conditions": [condition]}}, subresource="status")
    tree = made.do(BindPod(key=POD, node="n"))
    assert [sorted(each) for each in tree["status"]["conditions"]] == [
        ["lastProbeTime", "lastTransitionTime", "status", "type"]
    ]


def test_a_pod_keeps_its_own_labels() -> None:
    made = with_pod()
    made.patch(POD, {"metadata": {"labels": {ZONE: "mine"}}})
    assert made.do(BindPod(key=POD, node="n"))["metadata"]["labels"] == {ZONE: "mine"}


def test_older_releases_copy_no_zone_and_nodes_need_not_exist() -> None:
    assert "labels" not in with_pod("1.34").do(BindPod(key=POD, node="n"))["metadata"]
    tree = with_pod().do(BindPod(key=POD, node="gone"))
    assert tree["spec"]["nodeName"] == "gone"


@pytest.mark.parametrize(
    ("spec", "prepare", "uid", "detail"),
    [
        (
            {},
            "bind",
            "",
            'pod p is already assigned to node "n"',
        ),
        (
            {"schedulingGates": [{"name": "wait"}]},
            "",
            "",
            "pod p has non-empty .spec.schedulingGates",
        ),
        ({}, "delete", "", "pod p is being deleted, cannot be assigned to a host"),
        ({}, "", "other", "Precondition failed: UID in precondition: other"),
    ],
)
def test_pods_that_cannot_be_bound_are_refused(
    spec: dict[str, Any], prepare: str, uid: str, detail: str
) -> None:
    made = with_pod(**spec)
    if prepare == "bind":
        made.do(BindPod(key=POD, node="n"))
    if prepare == "delete":
        made.patch(POD, {"metadata": {"finalizers": ["a/b"]}})
        made.delete(POD)
    with pytest.raises(Conflict) as refused:
        made.do(BindPod(key=POD, node="m", uid=uid))
    assert detail in refused.value.message
    if not uid:
        assert refused.value.message == (
            f'Operation cannot be fulfilled on pods/binding "p": {detail}'
        )


def test_a_pod_that_does_not_exist_cannot_be_bound() -> None:
    with pytest.raises(NotFound):
        cluster().do(BindPod(key=POD, node="n"))


def test_decisions_stand_under_their_subject() -> None:
    made = cluster()
    body = {"controller": "scheduling", "outcome": "Scheduled"}
    made.do(RecordDecision(namespace="default", name="p", body=body))
    event = made.world.events[-1]
    assert made.types == ["DecisionRecorded"]
    assert event.key == ObjectKey("redra", "decisions", "default", "p")
    assert event.object == body


def test_facts_have_their_own_type() -> None:
    made = cluster()
    place = ObjectKey("redra", "gaps", "", "watch")
    made.do(RecordFact(type="GapObserved", key=place, body={"from": 1}))
    assert made.types == ["GapObserved"]
    with pytest.raises(BadRequest):
        made.do(RecordFact(type="Invented", key=place, body={}))


def recorded(uid: str = "u", **more: Any) -> dict[str, Any]:
    tree = claim(**more)
    tree["metadata"] |= {"uid": uid, "resourceVersion": "4711", "generation": 9}
    return tree


@pytest.mark.parametrize(
    ("steps", "types"),
    [
        ([("ADDED", "u")], ["ObjectCreated"]),
        ([("MODIFIED", "u")], ["ObjectCreated"]),
        ([("ADDED", "u"), ("MODIFIED", "u")], ["ObjectUpdated"]),
        ([("ADDED", "u"), ("ADDED", "u")], ["ObjectUpdated"]),
        ([("ADDED", "u"), ("DELETED", "u")], ["ObjectDeleted"]),
        ([("DELETED", "u")], ["ObjectDeleted"]),
        ([("ADDED", "u"), ("ADDED", "v")], ["ObjectDeleted", "ObjectCreated"]),
    ],
)
def test_recorded_states_are_taken_over(steps: list[tuple[str, str]], types: list[str]) -> None:
    made = cluster()
    for operation, uid in steps:
        origin = Origin(source="audit", resource_version="4711")
        made.do(
            ImportObject(operation=operation, key=CLAIM, uid=uid, tree=recorded(uid), origin=origin)
        )
    assert made.types == types
    event = made.world.events[-1]
    assert event.object["metadata"]["generation"] == 9
    assert event.stamp.origin is not None
    assert event.stamp.origin.resource_version == "4711"
    assert event.object["metadata"]["resourceVersion"] == str(event.revision)


def test_an_import_leaves_the_recorded_tree_alone() -> None:
    made = cluster()
    tree = recorded()
    before = copy.deepcopy(tree)
    made.do(ImportObject(operation="ADDED", key=CLAIM, uid="u", tree=tree))
    assert tree == before


def test_an_unknown_import_operation_is_refused() -> None:
    with pytest.raises(BadRequest):
        cluster().do(ImportObject(operation="BOOKMARK", key=CLAIM, uid="u", tree={}))
