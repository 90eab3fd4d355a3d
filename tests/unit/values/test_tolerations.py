"""One match of tolerations and taints, for nodes and devices."""

import pytest

from app.domain.values.json_tree import JsonObject
from app.domain.values.tolerations import fits, tolerates

TAINT: JsonObject = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k"}, False),
        ({"key": "k", "value": "w"}, False),
        # Gt and Lt are gated: they fit no taint, were the values equal.
        ({"key": "k", "operator": "Gt", "value": "v"}, False),
        ({"key": "k", "operator": "Lt", "value": "v"}, False),
    ],
)
def test_toleration_of_a_node_taint(toleration: JsonObject, expected: bool) -> None:
    assert tolerates(toleration, TAINT) is expected


def test_absent_values_are_empty() -> None:
    assert tolerates({"key": "k"}, {"key": "k", "effect": "NoExecute"})


@pytest.mark.parametrize("operator", ["", "Equal"])
def test_empty_key_fits_every_key_of_that_value(operator: str) -> None:
    assert fits("", operator, "v", taint_key="any", taint_value="v")
    assert not fits("", operator, "w", taint_key="any", taint_value="v")
