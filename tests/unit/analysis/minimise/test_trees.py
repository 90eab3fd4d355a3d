"""Parts of objects: their paths, and objects without them."""

import pytest

from app.analysis.minimise import trees

SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "a", "uid": "u", "labels": {"x": "1"}},
    "spec": {"devices": [{"name": "gpu-0", "attributes": {"m": 1}}, {"name": "gpu-1"}]},
}


def test_identity_of_an_object_cannot_be_cut() -> None:
    assert list(trees.paths(SLICE, 1)) == [("spec",)]
    assert list(trees.paths(SLICE, 2)) == [("metadata", "labels"), ("spec", "devices")]


def test_allocation_is_cut_as_a_whole_or_keeps_its_time() -> None:
    allocation = {"allocationTimestamp": "2026-01-02T03:04:05Z", "devices": {"results": []}}
    claim = {"status": {"allocation": allocation}}
    assert list(trees.paths(claim, 2)) == [("status", "allocation")]
    assert list(trees.paths(claim, 3)) == [("status", "allocation", "devices")]


@pytest.mark.parametrize(
    ("cuts", "devices"),
    [
        ([("spec", "devices", "[name=gpu-0]")], [{"name": "gpu-1"}]),
        (
            [
                ("spec", "devices", "[name=gpu-1]"),
                ("spec", "devices", "[name=gpu-0]", "attributes"),
            ],
            [{"name": "gpu-0"}],
        ),
        (
            [("spec", "devices", "[name=nobody]")],
            [{"name": "gpu-0", "attributes": {"m": 1}}, {"name": "gpu-1"}],
        ),
    ],
)
def test_items_are_cut_by_what_tells_them_apart(cuts, devices) -> None:
    assert trees.without(SLICE, cuts)["spec"]["devices"] == devices


def test_cut_of_a_whole_covers_cuts_within_it() -> None:
    cuts = [("spec",), ("spec", "devices", "[name=gpu-0]")]
    assert "spec" not in trees.without(SLICE, cuts)


def test_items_without_names_are_told_apart_by_what_they_are() -> None:
    tree = {"spec": {"values": ["a", "b"], "terms": [{"x": 1}, {"y": 2}]}}
    assert trees.without(tree, [("spec", "values", '["a"]')])["spec"]["values"] == ["b"]
    assert trees.without(tree, [("spec", "terms", '[{"y":2}]')])["spec"]["terms"] == [{"x": 1}]


def test_every_path_leads_to_a_part_that_can_be_cut() -> None:
    for depth in range(1, 6):
        for path in trees.paths(SLICE, depth):
            assert trees.without(SLICE, [path]) != SLICE


def test_instants_move_and_texts_that_look_alike_stay() -> None:
    tree = {
        "a": "2026-01-02T03:04:05Z",
        "b": ["2026-01-02T03:04:05.500000Z"],
        "c": "2026-13-45T03:04:05Z",
    }
    assert trees.shifted(tree, 5_000_000) == {
        "a": "2026-01-02T03:04:00Z",
        "b": ["2026-01-02T03:04:00.500000Z"],
        "c": "2026-13-45T03:04:05Z",
    }


def test_numbers_that_can_be_smaller_are_those_above_one_outside_the_metadata() -> None:
    tree = {
        "metadata": {"generation": 5, "annotations": {"n": "7"}},
        "spec": {"replicas": 3, "one": 1, "none": 0, "is": True, "words": "8 pods"},
        "status": [{"capacity": "8Gi"}, {"capacity": "1Gi"}, {"capacity": None}],
    }
    assert [(path[0], path[-1], value) for path, value in trees.numbers(tree)] == [
        ("spec", "replicas", 3),
        ("status", "capacity", "8Gi"),
    ]


@pytest.mark.parametrize(
    ("value", "smaller"),
    [
        (2, [1]),
        (3, [1, 2]),
        (9, [1, 4, 8]),
        ("8Gi", ["1Gi", "4Gi", "7Gi"]),
        ("250m", ["1m", "125m", "249m"]),
        (1, []),
        (-5, []),
        (True, []),
        ("Gi", []),
        (None, []),
    ],
)
def test_smaller_numbers_have_the_form_of_the_number(value, smaller) -> None:
    assert trees.smaller(value) == smaller
