"""When two values mean the same to the API."""

from typing import Any

import pytest

from app.domain.objects.schema import equality
from tests.unit.objects import builders


def parameters(value: Any) -> dict[str, Any]:
    """A class with raw parameters."""
    opaque = {"driver": "gpu.example.com", "parameters": value}
    return {"metadata": {"name": "gpu"}, "spec": {"config": [{"opaque": opaque}]}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": {}}, {}),
        ({"a": []}, {"a": None}),
        ({"a": 1}, {"a": True}),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}),
        ({"a": ""}, {}),
    ],
)
def test_raw_json_is_compared_as_written(one: Any, other: Any) -> None:
    node = builders.node("deviceclasses")
    assert not equality.semantic_equal(parameters(one), parameters(other), node)
    assert equality.semantic_equal(parameters(one), parameters(one.copy()), node)


def test_typed_fields_that_are_empty_equal_absent_ones() -> None:
    node = builders.node("deviceclasses")
    one = {"metadata": {"labels": {}}, "spec": {"selectors": [], "extendedResourceName": None}}
    assert equality.semantic_equal(one, {"metadata": {}, "spec": {}}, node)


def test_quantities_are_compared_by_value() -> None:
    node = builders.node("resourceslices")
    trees = [
        {"spec": {"devices": [{"name": "d", "capacity": {"memory": {"value": amount}}}]}}
        for amount in ("1Gi", "1024Mi", "1G")
    ]
    assert equality.semantic_equal(trees[0], trees[1], node)
    assert not equality.semantic_equal(trees[0], trees[2], node)
