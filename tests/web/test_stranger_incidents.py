"""Causes that stand with the first finding, and what is not said where it would be wrong."""

import copy
import re
from dataclasses import replace

import pytest

from tests import draws
from tests.web import left_incidents, stranger_incidents
from tests.web.invented import Names
from tests.web.test_asked_incidents import answers


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(
    "make",
    [*stranger_incidents.STRANGERS, *left_incidents.LEFT],
    ids=lambda make: make.__name__,
)
async def test_first_finding_has_all_words_of_the_cause(make):
    made = make(Names(6))
    kind, _, name = made.about.rpartition("/")
    findings, _ = await answers(made, kind or "pod", name)
    first = " ".join((findings[0]["text"], *findings[0]["causes"]))
    for part in made.told:
        assert re.search(part, first), first


def _published(made, **published):
    """The incident with a further device, which has these values, in another slice."""
    steps = copy.deepcopy(made.steps)
    trees = steps[0]["apply"]
    other = copy.deepcopy(trees[-1])
    other["metadata"]["name"] = "other"
    other["spec"]["pool"]["name"] = "other"
    other["spec"]["devices"] = [{"name": "y", **published}]
    other["spec"]["nodeName"] = "elsewhere"
    trees.append(other)
    return replace(made, steps=steps)


async def test_name_that_another_device_has_is_no_mistake():
    """A pool of other cards has it: the name is right, and these cards lack it."""
    made = stranger_incidents.guarded_attribute_is_misspelled(Names(6))
    driver = made.steps[0]["apply"][-1]["spec"]["driver"]
    for name, is_asked in (("modle", False), ("colour", True)):
        with_other = _published(made, attributes={name: {"string": "x"}})
        findings, said = await answers(with_other, "pod", "job")
        told = [*said, *(cause for one in findings for cause in one["causes"])]
        assert any("do you mean" in line for line in told) == is_asked, (driver, name)


@pytest.mark.parametrize(
    ("expression", "value", "is_told"),
    [
        ("'8'", {"int": 8}, True),
        ("true", {"string": "true"}, True),
        ("'1.2.3'", {"version": "1.2.3"}, True),
        ("9", {"int": 8}, False),
        ("'x'", {"string": "y"}, False),
        ("true", {"bool": False}, False),
    ],
)
async def test_only_literals_of_another_type_are_never_equal(expression, value, is_told):
    made = stranger_incidents.number_is_compared_with_a_text(Names(6))
    steps = copy.deepcopy(made.steps)
    for device in steps[0]["apply"][-1]["spec"]["devices"]:
        device["attributes"] = {"slots": value}
    (selector,) = steps[1]["apply"][0]["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    path, _, _ = selector["cel"]["expression"].partition(" == ")
    selector["cel"]["expression"] = f"{path} == {expression}"
    findings, said = await answers(replace(made, steps=steps), "pod", "job")
    for told in (said, findings[0]["causes"]):
        assert any("these are never equal" in line for line in told) == is_told, told


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_daemon_set_is_named_only_if_it_may_publish(is_allowed):
    made = stranger_incidents.driver_wants_a_label_that_no_node_has(Names(6))
    steps = copy.deepcopy(made.steps)
    for tree in steps[0]["apply"] if not is_allowed else ():
        if tree["kind"] == "ClusterRole":
            tree["rules"][0]["verbs"] = ["get", "list"]
    findings, said = await answers(replace(made, steps=steps), "pod", "job")
    for told in (said, findings[0]["causes"]):
        assert any("wants no pod on node n" in line for line in told) == is_allowed, told


@pytest.mark.parametrize(("value", "is_told"), [(1000, True), (0, False)])
async def test_policy_is_told_only_where_less_urgent_pods_are_placed(value, is_told):
    made = stranger_incidents.pod_of_high_priority_evicts_none(Names(6))
    steps = copy.deepcopy(made.steps)
    for tree in steps[0]["apply"]:
        if tree["kind"] == "PriorityClass":
            tree["value"] = value
    findings, _ = await answers(replace(made, steps=steps), "pod", "job")
    told = "the pod evicts none of lower priority: its preemptionPolicy is Never, by PriorityClass"
    assert any(line.startswith(told) for line in findings[0]["causes"]) == is_told
