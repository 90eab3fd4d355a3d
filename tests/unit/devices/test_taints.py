"""Tolerations and rules, row by row."""

import pytest

from app.domain.devices import taints
from tests.worlds.builders import taint

ROWS = [
    ({}, taint(value=""), True),
    ({}, taint(value="v"), False),
    ({"operator": "Exists"}, taint(), True),
    ({"operator": "Exists", "key": "k"}, taint(), True),
    ({"operator": "Exists", "key": "other"}, taint(), False),
    ({"operator": "Equal", "key": "k", "value": "v"}, taint(), True),
    ({"key": "k", "value": "w"}, taint(), False),
    ({"key": "k", "value": "v", "effect": "NoExecute"}, taint(), False),
    ({"key": "k", "value": "v", "effect": "NoSchedule", "tolerationSeconds": 0}, taint(), True),
    ({"operator": "Near", "key": "k", "value": "v"}, taint(), False),
]


@pytest.mark.parametrize(("toleration", "given", "tolerated"), ROWS)
def test_toleration_matches(toleration: dict, given: dict, tolerated: bool) -> None:
    found = taints.tolerates(taints.toleration_of(toleration), taints.taint_of(given))
    assert found is tolerated


@pytest.mark.parametrize(
    ("effect", "blocks"),
    [("NoSchedule", True), ("NoExecute", True), ("None", False), ("", False), ("Other", False)],
)
def test_only_two_effects_block(effect: str, blocks: bool) -> None:
    given = taints.taint_of(taint(effect=effect))
    assert (taints.untolerated([given], []) is not None) is blocks


def test_each_taint_needs_a_toleration_of_its_own() -> None:
    both = [taints.taint_of(taint(effect=effect)) for effect in ("NoSchedule", "NoExecute")]
    one = taints.toleration_of({"operator": "Exists", "effect": "NoExecute"})
    found = taints.untolerated(both, [one])
    assert found is not None
    assert found.effect == "NoSchedule"


def test_rule_matches_what_its_selector_names() -> None:
    rule = taints.rule_of(
        {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"driver": "d", "device": "x"}}}
    )
    assert rule.matches(("d", "any", "x"))
    assert not rule.matches(("d", "any", "y"))
    assert not rule.matches(("e", "any", "x"))
    of_pool = taints.rule_of({"metadata": {"name": "r"}, "spec": {"deviceSelector": {"pool": "p"}}})
    assert of_pool.matches(("d", "p", "x"))
    assert not of_pool.matches(("d", "q", "x"))
    empty = taints.rule_of({"metadata": {"name": "r"}, "spec": {"deviceSelector": {}}})
    assert empty.matches(("a", "b", "c"), without_selector=False)
    none = taints.rule_of({"metadata": {"name": "r"}, "spec": {}})
    assert not none.matches(("a", "b", "c"), without_selector=False)


def test_taint_keeps_the_time_since_when_it_is_there() -> None:
    added = "2026-01-02T03:04:05Z"
    assert taints.taint_of({**taint(), "timeAdded": added}).time_added == added
    assert taints.taint_of(taint()).time_added == ""
