"""Each change of a pod or a claim is one fact, and is no change of a field besides."""

from typing import Any

import pytest

from app.analysis.replay import facts
from app.analysis.replay.facts import Fact, facts_of
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import EventType, ObjectKey
from tests.unit.analysis.replay.test_reports import event

POD = ObjectKey("", "pods", "ns", "p")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c")
NODE = ObjectKey("", "nodes", "", "n")
Tree = dict[str, Any]


def tree(place: str, value: Any) -> Tree:
    """An object with a value at a path."""
    made: Tree = {"metadata": {"name": "x", "uid": "x"}}
    *above, last = place.split(".")
    inner = made
    for name in above:
        inner = inner.setdefault(name, {})
    if value is not None:
        inner[last] = value
    return made


def condition(status: str, **more: Any) -> list[Tree]:
    return [{"type": "PodScheduled", "status": status, "lastTransitionTime": "t", **more}]


def scheduled(status: str, **more: Any) -> facts.ConditionSet:
    given = {"reason": "", "message": "", "observed": None, "is_dated": True, **more}
    return facts.ConditionSet(type="PodScheduled", status=status, **given)


def devices(*names: str) -> Tree:
    results = [{"request": "r", "driver": "d", "pool": "p", "device": name} for name in names]
    return {"devices": {"results": results}}


def users(*names: str) -> list[Tree]:
    return [{"resource": "pods", "name": name, "uid": f"u-{name}"} for name in names]


CLAIM_OF_GPU = ("gpu", "p-gpu")
NAMED = [{"name": "gpu", "resourceClaimName": "p-gpu"}]
GRACE, PHASE = "metadata.deletionGracePeriodSeconds", "status.phase"
GIVEN, FOR, KEPT = "status.allocation", "status.reservedFor", "metadata.finalizers"


@pytest.mark.parametrize(
    ("key", "place", "old", "new", "expected"),
    [
        (POD, "spec.nodeName", None, "n", [facts.Bound("n")]),
        (POD, "status.nominatedNodeName", None, "n", [facts.Nominated("n")]),
        (POD, "status.nominatedNodeName", "n", "m", [facts.Nominated("m")]),
        (POD, "status.nominatedNodeName", "n", None, [facts.NominationEnded()]),
        (POD, "status.resourceClaimStatuses", None, NAMED, [facts.ClaimsNamed((CLAIM_OF_GPU,))]),
        (POD, "status.conditions", None, condition("True"), [scheduled("True")]),
        (POD, "status.conditions", condition("True"), condition("True"), []),
        (POD, "status.conditions", condition("True"), [], [facts.ConditionRemoved("PodScheduled")]),
        (
            POD, "status.conditions", condition("False", message="a"),
            condition("False", message="b"), [scheduled("False", message="b")],
        ),
        (
            POD, "status.conditions", condition("True"), condition("True", observedGeneration=2),
            [scheduled("True", observed=2)],
        ),
        (POD, PHASE, "Pending", "Running", [facts.FieldChanged(PHASE, '"Pending"', '"Running"')]),
        (POD, GRACE, 30, 0, []),
        (CLAIM, GRACE, 30, 0, []),
        (CLAIM, KEPT, None, ["b", "a"], [facts.FinalizerAdded("a"), facts.FinalizerAdded("b")]),
        (CLAIM, KEPT, ["a", "b"], ["b"], [facts.FinalizerRemoved("a")]),
        (CLAIM, KEPT, ["a", "b"], ["b", "a"], []),
        (CLAIM, GIVEN, None, devices("a", "b"), [facts.Allocated(("r: p/a", "r: p/b"))]),
        (CLAIM, GIVEN, devices("a"), None, [facts.Released()]),
        (CLAIM, GIVEN, devices("a"), devices("b"), [facts.AllocationChanged()]),
        (CLAIM, FOR, None, users("q"), [facts.Reserved("q", "u-q")]),
        (CLAIM, FOR, users("q"), None, [facts.Unreserved("q", "u-q")]),
        (
            CLAIM, FOR, users("q", "s"), users("s", "t"),
            [facts.Reserved("t", "u-t"), facts.Unreserved("q", "u-q")],
        ),
        (CLAIM, FOR, users("q", "s"), users("s", "q"), []),
        (NODE, KEPT, None, ["a"], [facts.FieldChanged(KEPT, "null", '["a"]')]),
        (NODE, "spec.taints", [], None, []),
    ],
)  # fmt: skip
def test_change_is_one_fact(
    key: ObjectKey, place: str, old: Any, new: Any, expected: list[Fact]
) -> None:
    written = event(EventType.OBJECT_UPDATED, key, "x", tree(place, new))
    assert list(facts_of(written, tree(place, old))) == expected


def test_nomination_that_a_server_ends_with_the_binding_is_no_fact_of_its_own() -> None:
    nominated = tree("status.nominatedNodeName", "n")
    bound = event(EventType.OBJECT_UPDATED, POD, "x", tree("spec.nodeName", "n"))
    assert list(facts_of(bound, nominated)) == [facts.Bound("n")]


@pytest.mark.parametrize("key", [POD, CLAIM, NODE])
def test_deletion_is_asked_for_once(key: ObjectKey) -> None:
    marked = tree("metadata.deletionTimestamp", "2026-01-01T00:00:00Z")
    marked["metadata"] |= {"deletionGracePeriodSeconds": 30, "finalizers": ["f"]}
    before = tree("metadata.finalizers", ["f"])
    said = list(facts_of(event(EventType.OBJECT_UPDATED, key, "x", marked), before))
    assert said[0] == facts.DeletionAsked(30)
    labelled = {**marked, "metadata": {**marked["metadata"], "labels": {"a": "b"}}}
    again = list(facts_of(event(EventType.OBJECT_UPDATED, key, "x", labelled), marked))
    assert facts.DeletionAsked(30) not in again
    assert again


FAILED, BUSY = "FailedScheduling", messages.BEING_ALLOCATED
KINDS: list[tuple[Fact, str]] = [
    (scheduled("False", reason="Unschedulable"), "failed"),
    (scheduled("False", reason="SchedulerError"), "failed"),
    (scheduled("False", reason="SchedulingGated"), ""),
    (scheduled("False", reason="Unschedulable", message=f"x {BUSY}"), "failed met"),
    (scheduled("False", reason="SchedulingGated", message=BUSY), ""),
    (scheduled("True"), "placed"),
    (facts.ConditionSet(type="Ready", status="True", reason="", message=""), ""),
    (
        facts.ConditionSet(type="Ready", status="False", reason="Unschedulable", message=BUSY),
        "",
    ),
    (facts.EventSeen(type="Warning", reason=FAILED, note="0/1 nodes"), "failed"),
    (facts.EventSeen(type="Warning", reason=FAILED, note=f"x {BUSY}"), "failed met"),
    (facts.EventSeen(type="Warning", reason=FAILED, note=f"{messages.SKIPPED} x"), "failed skip"),
    (facts.EventSeen(type="Warning", reason=FAILED, note=f"x {messages.SKIPPED}"), "failed"),
    (facts.EventSeen(type="Normal", reason="Scheduled", note="to n"), "placed"),
    (facts.EventSeen(type="Normal", reason="Scheduled", note=f"{messages.SKIPPED}"), "placed"),
    (facts.EventSeen(type="Normal", reason="Killing", note=BUSY), ""),
    (facts.Nominated("n"), "placed"),
    (facts.NominationEnded(), ""),
    (facts.Bound("n"), "placed"),
    (facts.Allocated(("r: p/d",)), "placed"),
    (facts.AllocationChanged(), ""),
    (facts.Released(), ""),
    (facts.FinalizerAdded("f"), "placed"),
    (facts.FinalizerRemoved("f"), ""),
    (facts.Reserved("p"), "placed"),
    (facts.Unreserved("p"), ""),
    (facts.Created(), ""),
    (facts.Removed(), ""),
]


@pytest.mark.parametrize(("fact", "kinds"), KINDS)
def test_fact_is_a_failure_or_a_placement_by_what_it_says(fact: Fact, kinds: str) -> None:
    predicates = {
        "failed": facts.is_failed_attempt,
        "met": facts.meets_claim_in_flight,
        "skip": facts.is_skip,
        "placed": facts.is_placement,
    }
    assert " ".join(name for name, holds in predicates.items() if holds(fact)) == kinds
