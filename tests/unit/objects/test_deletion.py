"""Deleting: at once, with grace, with finalizers, namespaces, preconditions."""

import copy
from typing import Any

import pytest

from app.domain.errors import Conflict, Forbidden, NotFound
from app.domain.objects.write.commands import BindPod, Propagation, UpdateObject, WriteOptions
from tests.unit.objects.builders import Cluster, claim, cluster, key, pod

CLAIM = key("resourceclaims", "c", "default")
POD = key("pods", "p", "default")


def with_claim(*finalizers: str) -> Cluster:
    made = cluster()
    tree = claim()
    tree["metadata"]["finalizers"] = list(finalizers)
    made.create(tree)
    return made


def with_pod(*, bound: bool = True, finalizers: tuple[str, ...] = (), **spec: Any) -> Cluster:
    made = cluster()
    tree = pod(**spec)
    tree["metadata"]["finalizers"] = list(finalizers)
    made.create(tree)
    if bound:
        made.do(BindPod(key=POD, node="n"))
    return made


def test_an_object_without_finalizers_goes_at_once() -> None:
    made = with_claim()
    answer = made.delete(CLAIM)
    assert made.types == ["ObjectDeleted"]
    assert answer["metadata"]["resourceVersion"] == "3"
    assert "deletionTimestamp" not in answer["metadata"]
    assert made.get(CLAIM) is None


@pytest.mark.parametrize("propagation", [None, *Propagation])
def test_recorded_object_with_null_metadata_goes_as_one_without(
    propagation: Propagation | None,
) -> None:
    """Imports store what a recording shows, also nulls."""
    made = with_claim()
    stored = made.get(CLAIM)
    assert stored is not None
    stored["metadata"] |= {"finalizers": None, "labels": None, "ownerReferences": None}
    made.delete(CLAIM, propagation=propagation)
    left = made.get(CLAIM)
    kept = [] if left is None else left["metadata"]["finalizers"]
    assert len(kept) == (propagation in (Propagation.ORPHAN, Propagation.FOREGROUND))


def test_an_object_with_finalizers_terminates() -> None:
    made = with_claim("a/b")
    answer = made.delete(CLAIM)
    assert made.types == ["ObjectUpdated"]
    assert answer["metadata"]["deletionTimestamp"] == "2026-03-01T10:00:03Z"
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 0
    assert made.get(CLAIM) == answer


def test_a_second_delete_changes_nothing() -> None:
    made = with_claim("a/b")
    first = copy.deepcopy(made.delete(CLAIM))
    assert made.delete(CLAIM) == first
    assert made.types == []


def test_termination_counts_a_generation_where_one_is_kept() -> None:
    made = cluster()
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r", "finalizers": ["a/b"]},
        "spec": {"taint": {"key": "k", "effect": "None"}},
    }
    made.create(tree)
    assert made.delete(key("devicetaintrules", "r"))["metadata"]["generation"] == 2


def test_what_does_not_exist_cannot_be_deleted() -> None:
    with pytest.raises(NotFound) as refused:
        cluster().delete(POD)
    assert refused.value.message == 'pods "p" not found'


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            {"uid": "x"},
            'Operation cannot be fulfilled on ResourceClaim.resource.k8s.io "c": the UID in the '
            "precondition (x) does not match the UID in record "
            "(00000000-0000-4000-8000-000000002000). The object might have been deleted and then "
            "recreated",
        ),
        (
            {"resource_version": "1"},
            'Operation cannot be fulfilled on ResourceClaim.resource.k8s.io "c": the '
            "ResourceVersion in the precondition (1) does not match the ResourceVersion in record "
            "(2). The object might have been modified",
        ),
    ],
)
def test_preconditions_that_fail_conflict(wanted: dict[str, str], message: str) -> None:
    with pytest.raises(Conflict) as refused:
        with_claim().delete(CLAIM, **wanted)
    assert refused.value.message == message


def test_preconditions_that_hold_let_it_go() -> None:
    made = with_claim()
    made.delete(CLAIM, uid="00000000-0000-4000-8000-000000002000", resource_version="2")
    assert made.types == ["ObjectDeleted"]


def test_a_dry_run_deletes_nothing() -> None:
    made = with_claim()
    made.delete(CLAIM, options=WriteOptions(dry_run=True))
    assert made.types == []
    assert made.get(CLAIM) is not None


@pytest.mark.parametrize(
    ("present", "propagation", "finalizers"),
    [
        ((), Propagation.FOREGROUND, ["foregroundDeletion"]),
        ((), Propagation.ORPHAN, ["orphan"]),
        (("a/b",), Propagation.FOREGROUND, ["a/b", "foregroundDeletion"]),
        (("a/b", "orphan"), Propagation.FOREGROUND, ["a/b", "foregroundDeletion"]),
        (("a/b", "foregroundDeletion"), Propagation.BACKGROUND, ["a/b"]),
        (("orphan",), None, ["orphan"]),
    ],
)
def test_propagation_acts_through_finalizers(
    present: tuple[str, ...], propagation: Propagation | None, finalizers: list[str]
) -> None:
    made = with_claim(*present)
    answer = made.delete(CLAIM, propagation=propagation)
    assert answer["metadata"]["finalizers"] == finalizers
    assert made.types == ["ObjectUpdated"]


def test_background_removes_what_only_waited_for_its_dependents() -> None:
    made = with_claim()
    made.delete(CLAIM, propagation=Propagation.FOREGROUND)
    made.delete(CLAIM, propagation=Propagation.BACKGROUND)
    assert made.types == ["ObjectDeleted"]


@pytest.mark.parametrize(
    ("bound", "phase", "grace", "expected"),
    [
        (False, "Pending", None, ["ObjectUpdated", "ObjectDeleted"]),
        (False, "Pending", 60, ["ObjectUpdated", "ObjectDeleted"]),
        (True, "Succeeded", None, ["ObjectUpdated", "ObjectDeleted"]),
        (True, "Failed", 60, ["ObjectUpdated", "ObjectDeleted"]),
        (True, "Running", None, ["ObjectUpdated"]),
        (True, "Running", 60, ["ObjectUpdated"]),
        (True, "Running", 0, ["ObjectUpdated", "ObjectDeleted"]),
        (True, "Running", -5, ["ObjectUpdated"]),
    ],
)
def test_pods_go_when_no_kubelet_has_to_stop_them(
    bound: bool, phase: str, grace: int | None, expected: list[str]
) -> None:
    made = with_pod(bound=bound)
    made.patch(POD, {"status": {"phase": phase}}, subresource="status")
    made.delete(POD, grace_seconds=grace)
    assert made.types == expected


def test_an_unscheduled_pod_leaves_in_two_revisions() -> None:
    made = with_pod(bound=False)
    answer = made.delete(POD)
    announced, gone = made.world.events[-2:]
    assert announced.object["metadata"]["deletionGracePeriodSeconds"] == 0
    assert announced.object["metadata"]["generation"] == 2
    assert announced.object["metadata"]["resourceVersion"] == "3"
    assert gone.object["metadata"]["resourceVersion"] == "4"
    assert answer["metadata"]["resourceVersion"] == "4"


@pytest.mark.parametrize(
    ("spec", "grace", "seconds"),
    [({}, None, 30), ({"terminationGracePeriodSeconds": 5}, None, 5), ({}, 7, 7), ({}, -1, 1)],
)
def test_a_running_pod_gets_its_grace_period(
    spec: dict[str, int], grace: int | None, seconds: int
) -> None:
    made = with_pod(**spec)
    metadata = made.delete(POD, grace_seconds=grace)["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == seconds
    assert metadata["deletionTimestamp"] == f"2026-03-01T10:00:{4 + seconds:02}Z"
    assert metadata["generation"] == 2


@pytest.mark.parametrize(
    ("second", "types", "seconds"),
    [
        (None, [], 30),
        (60, [], 30),
        (30, [], 30),
        (10, ["ObjectUpdated"], 10),
        (0, ["ObjectUpdated", "ObjectDeleted"], 0),
    ],
)
def test_a_second_delete_may_only_shorten(
    second: int | None, types: list[str], seconds: int
) -> None:
    made = with_pod()
    made.delete(POD)
    metadata = made.delete(POD, grace_seconds=second)["metadata"]
    assert made.types == types
    assert metadata["deletionGracePeriodSeconds"] == seconds
    assert metadata["generation"] == 2


def test_removal_sets_the_time_back_to_now() -> None:
    made = with_pod()
    made.delete(POD)
    metadata = made.delete(POD, grace_seconds=0)["metadata"]
    assert metadata["deletionTimestamp"] == "2026-03-01T10:00:05Z"


def test_a_pod_with_finalizers_waits_for_them() -> None:
    made = with_pod(bound=False, finalizers=("a/b",))
    made.delete(POD)
    assert made.types == ["ObjectUpdated"]
    made.patch(POD, {"metadata": {"finalizers": None}})
    assert made.types == ["ObjectDeleted"]


def test_a_terminating_pod_without_finalizers_stays_for_its_kubelet() -> None:
    made = with_pod(finalizers=("a/b",))
    made.delete(POD)
    made.patch(POD, {"metadata": {"finalizers": None}})
    assert made.types == ["ObjectUpdated"]


def test_a_namespace_terminates_until_it_is_finalized() -> None:
    made = cluster()
    made.namespace("n")
    place = key("namespaces", "n")
    answer = made.delete(place)
    assert made.types == ["ObjectUpdated"]
    assert answer["status"]["phase"] == "Terminating"
    assert "deletionGracePeriodSeconds" not in answer["metadata"]
    made.delete(place)
    assert made.types == []
    tree = copy.deepcopy(made.get(place)) or {}
    tree["spec"] = {}
    answer = made.do(UpdateObject(key=place, version="v1", tree=tree, subresource="finalize"))
    assert made.types == ["ObjectDeleted"]
    assert made.get(place) is None
    assert "finalizers" not in answer["spec"]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_cannot_be_deleted(name: str) -> None:
    made = cluster()
    if name != "default":
        made.namespace(name)
    with pytest.raises(Forbidden) as refused:
        made.delete(key("namespaces", name))
    assert refused.value.message == (
        f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    )
