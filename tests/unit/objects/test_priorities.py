"""Priority classes and the priority of pods (the admission plug-in Priority)."""

from typing import Any

import pytest

from app.bootstrap.rules import rules_for
from app.domain.errors import Forbidden, Invalid
from app.domain.log import ObjectKey
from app.domain.objects.kinds import priorities
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.unit.objects.builders import Cluster, cluster, pod


def priority_class(name: str, value: int, **more: object) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


def checking_cluster() -> Cluster:
    """With the rules of a server, validation included."""
    made = cluster()
    made.rules = rules_for(Profile())
    return made


def priority_of(spec: JsonObject) -> tuple[str, int, str]:
    return spec.get("priorityClassName", ""), spec["priority"], spec["preemptionPolicy"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ("", 0, "PreemptLowerPriority")),
        ({"priorityClassName": "high"}, ("high", 1000, "PreemptLowerPriority")),
        ({"priorityClassName": "high", "priority": 1000}, ("high", 1000, "PreemptLowerPriority")),
        ({"priorityClassName": "patient"}, ("patient", 10, "Never")),
        (
            {"priorityClassName": "system-cluster-critical"},
            ("system-cluster-critical", 2_000_000_000, "PreemptLowerPriority"),
        ),
    ],
)
def test_pod_gets_what_its_class_says(given, found):
    made = cluster()
    made.create(priority_class("high", 1000))
    made.create(priority_class("patient", 10, preemptionPolicy="Never"))
    assert priority_of(made.create(pod(**given))["spec"]) == found


def test_pod_without_a_class_gets_the_default():
    made = cluster()
    made.create(priority_class("usual", 5, globalDefault=True, preemptionPolicy="Never"))
    assert priority_of(made.create(pod())["spec"]) == ("usual", 5, "Never")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"priorityClassName": "high", "priority": 7},
            'pods "p" is forbidden: the integer value of priority (7) must not be provided in pod '
            "spec; priority admission controller computed 1000 from the given PriorityClass name",
        ),
        (
            {"priority": 7},
            'pods "p" is forbidden: the integer value of priority (7) must not be provided in pod '
            "spec; priority admission controller computed 0 from the given PriorityClass name",
        ),
        (
            {"priorityClassName": "high", "preemptionPolicy": "Never"},
            'pods "p" is forbidden: the string value of PreemptionPolicy (Never) must not be '
            "provided in pod spec; priority admission controller computed PreemptLowerPriority "
            "from the given PriorityClass name",
        ),
        (
            {"priorityClassName": "low"},
            'pods "p" is forbidden: no PriorityClass with name low was found',
        ),
    ],
)
def test_pod_that_says_otherwise_is_refused(given, text):
    made = cluster()
    made.create(priority_class("high", 1000))
    with pytest.raises(Forbidden) as refusal:
        made.create(pod("p", **given))
    assert str(refusal.value) == text


def test_second_default_is_refused():
    made = cluster()
    made.create(priority_class("usual", 5, globalDefault=True))
    with pytest.raises(Forbidden) as refusal:
        made.create(priority_class("other", 1, globalDefault=True))
    assert str(refusal.value) == (
        'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass usual is already '
        "marked as default. Only one default can exist"
    )


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (
            "huge",
            1_000_000_001,
            'PriorityClass.scheduling.k8s.io "huge" is invalid: value: Forbidden: maximum allowed '
            "value of a user defined priority is 1000000000",
        ),
        (
            "system-mine",
            1,
            'PriorityClass.scheduling.k8s.io "system-mine" is invalid: metadata.name: Forbidden: '
            "priority class names with 'system-' prefix are reserved for system use only. error: "
            "system-mine is not a known system priority class",
        ),
        (
            "system-node-critical",
            1,
            'PriorityClass.scheduling.k8s.io "system-node-critical" is invalid: metadata.name: '
            "Forbidden: priority class names with 'system-' prefix are reserved for system use "
            "only. error: value of system-node-critical PriorityClass must be 2000001000",
        ),
    ],
)
def test_class_out_of_bounds_is_refused(name, value, text):
    with pytest.raises(Invalid) as refusal:
        checking_cluster().create(priority_class(name, value))
    assert str(refusal.value) == text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"value": 11}, "value: Forbidden: may not be changed in an update."),
        (
            {"preemptionPolicy": "Never"},
            'preemptionPolicy: Invalid value: "Never": field is immutable',
        ),
    ],
)
def test_value_and_policy_of_a_class_stay(change: dict[str, Any], text):
    made = checking_cluster()
    tree = made.create(priority_class("c", 10))
    with pytest.raises(Invalid) as refusal:
        made.update({**tree, **change})
    assert str(refusal.value) == f'PriorityClass.scheduling.k8s.io "c" is invalid: {text}'


def test_pod_keeps_its_priority_when_an_update_leaves_it_out():
    made = checking_cluster()
    made.create(priority_class("high", 1000, preemptionPolicy="Never"))
    tree = json_tree.copy(made.create(pod(priorityClassName="high")))
    for field in ("priority", "preemptionPolicy"):
        del tree["spec"][field]
    tree["metadata"]["labels"] = {"a": "b"}
    updated = made.update(tree)
    assert updated["metadata"]["labels"] == {"a": "b"}
    assert priority_of(updated["spec"]) == ("high", 1000, "Never")


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
def test_class_of_the_system_stays(name):
    made = checking_cluster()
    (tree,) = [one for one in priorities.system_classes() if one["metadata"]["name"] == name]
    stored = made.create(tree)
    assert (stored["value"], stored["preemptionPolicy"]) == (
        priorities.SYSTEM_PRIORITIES[name],
        "PreemptLowerPriority",
    )
    with pytest.raises(Forbidden) as refusal:
        made.delete(ObjectKey("scheduling.k8s.io", "priorityclasses", "", name))
    assert str(refusal.value) == (
        f'priorityclasses.scheduling.k8s.io "{name}" is forbidden: this is a system priority '
        "class and cannot be deleted"
    )
