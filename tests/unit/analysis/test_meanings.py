"""What means the same has one form, and nothing else has."""

import random

import pytest

from app.adapters import schemas
from app.analysis import meanings
from app.domain.log import ObjectKey
from app.domain.objects.schema.equality import semantic_equal
from app.domain.values import json_tree
from tests.together import together

SCHEMAS = schemas.load("1.36")
NODE = meanings.allocation_node(SCHEMAS)
POD = meanings.node_of(SCHEMAS, ObjectKey("", "pods", "", ""))
CLAIM = meanings.node_of(SCHEMAS, ObjectKey("resource.k8s.io", "resourceclaims", "", ""))


def allocation(**result):
    result = {"request": "r", "driver": "d", "pool": "p", "device": "a", **result}
    return {"devices": {"results": [result]}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            allocation(consumedCapacity={"memory": "5G"}),
            allocation(consumedCapacity={"memory": "5000000000"}),
        ),
        (
            allocation(consumedCapacity={"memory": "1Gi"}),
            allocation(consumedCapacity={"memory": "1024Mi"}),
        ),
        (
            allocation(consumedCapacity={"memory": "0.5"}),
            allocation(consumedCapacity={"memory": "500m"}),
        ),
        (allocation(tolerations=[], shareID="x"), allocation()),
        (allocation(bindingConditions=None), allocation()),
        ({**allocation(), "allocationTimestamp": "2026-01-02T03:04:05Z"}, allocation()),
        ({"devices": {**allocation()["devices"], "config": []}}, allocation()),
        (
            allocation(tolerations=[{"key": "k", "operator": "", "effect": ""}]),
            allocation(tolerations=[{"key": "k"}]),
        ),
    ],
)
def test_notations_of_one_allocation_mean_the_same(one, other):
    assert meanings.of_allocation(one, SCHEMAS) == meanings.of_allocation(other, SCHEMAS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (allocation(device="b"), allocation()),
        (allocation(adminAccess=True), allocation()),
        (
            allocation(consumedCapacity={"memory": "5G"}),
            allocation(consumedCapacity={"memory": "5Gi"}),
        ),
        (allocation(consumedCapacity={"memory": "0"}), allocation()),
        (
            {"devices": {"results": [{"device": "a"}, {"device": "b"}]}},
            {"devices": {"results": [{"device": "b"}, {"device": "a"}]}},
        ),
        ({**allocation(), "nodeSelector": {"nodeSelectorTerms": []}}, allocation()),
        (
            {"devices": {"config": [{"opaque": {"driver": "d", "parameters": {"a": []}}}]}},
            {"devices": {"config": [{"opaque": {"driver": "d", "parameters": {}}}]}},
        ),
    ],
)
def test_another_allocation_means_something_else(one, other):
    assert meanings.of_allocation(one, SCHEMAS) != meanings.of_allocation(other, SCHEMAS)


def test_lists_with_keys_and_instants_have_one_order_and_one_notation():
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    scheduled = {"type": "PodScheduled", "status": "True"}
    later = {**ready, "lastTransitionTime": "2026-01-02T04:04:05.000+01:00"}
    one = {"status": {"conditions": [ready, scheduled]}}
    other = {"status": {"conditions": [scheduled, later]}}
    assert meanings.of(one, POD) == meanings.of(other, POD)
    moved = {"status": {"conditions": [scheduled, {**ready, "lastTransitionTime": None}]}}
    assert meanings.of(one, POD) != meanings.of(moved, POD)


def test_fields_that_a_kind_does_not_declare_are_left_out():
    known = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n"}}
    newer = {**known, "newer": 1, "spec": {**known["spec"], "newer": {"x": []}}, "status": {}}
    assert meanings.of(newer, POD) == meanings.of(known, POD)
    labelled = {**known, "metadata": {"labels": {"a": "b", "newer": "c"}}}
    assert meanings.of(labelled, POD) != meanings.of(known, POD)


@pytest.mark.parametrize(
    ("path", "declared"),
    [
        ("spec.nodeName", True),
        ("metadata.labels.example.com/any", True),
        ("status.conditions.any", True),
        ("status.newer", False),
        ("newer.nodeName", False),
    ],
)
def test_fields_are_declared_by_the_kind(path, declared):
    assert meanings.is_declared(POD, path.split(".")) is declared
    assert meanings.is_declared(None, path.split("."))


def test_what_is_no_quantity_or_no_instant_means_what_is_written():
    assert meanings.of_allocation(allocation(consumedCapacity={"m": "many"}), SCHEMAS) == (
        allocation(consumedCapacity={"m": "many"})
    )
    assert meanings.of({"metadata": {"creationTimestamp": 7}}, CLAIM) == {
        "metadata": {"creationTimestamp": 7}
    }


@together(range(200), str)
def test_one_meaning_is_what_the_api_takes_for_no_change(seed):
    """Judged by the comparison that decides whether a write changes an object.

    That one keeps the order of lists with keys, of which these trees have none.
    """
    draw = random.Random(seed)
    one, other = draw_allocation(draw), draw_allocation(draw)
    if draw.random() < 0.7:
        other = spelt_otherwise(draw, one)
    is_same = meanings.of(one, NODE) == meanings.of(other, NODE)
    assert is_same == semantic_equal(one, other, NODE)


def draw_allocation(draw):
    results = []
    for _ in range(draw.randrange(3)):
        result = {"request": "r", "driver": "d", "pool": "p", "device": draw.choice("ab")}
        if draw.random() < 0.5:
            result["consumedCapacity"] = {"m": draw.choice(("1Gi", "1024Mi", "1G", "1000M", "0"))}
        if draw.random() < 0.3:
            result["tolerations"] = draw.choice(([], None, [{"operator": "Exists"}]))
        if draw.random() < 0.3:
            result["adminAccess"] = draw.choice((None, False, True))
        results.append(result)
    tree = {"devices": {"results": results}}
    if draw.random() < 0.4:
        tree["nodeSelector"] = draw.choice((None, {}, {"nodeSelectorTerms": []}))
    return tree


def spelt_otherwise(draw, tree):
    """The tree with other notations at some places, and now and then another value."""
    changed = json_tree.copy(tree)
    for result in changed["devices"]["results"]:
        amounts = result.get("consumedCapacity", {})
        for name, amount in amounts.items():
            notations = {"1Gi": "1024Mi", "1G": "1000M", "0": "0Gi"}
            amounts[name] = draw.choice((amount, notations.get(amount, amount), "3"))
        if not result.get("tolerations"):
            result["tolerations"] = draw.choice((None, []))
    return changed
