"""Answers about a Job, a node and a budget name the pods that they let go, keep out or lost."""

import copy

import pytest

from tests import draws
from tests.web.invented import ask, claim, class_of, node, pod, rule, slice_of, space, template
from tests.web.test_named_causes import DRIVER, why

DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
KILLED = {"onExitCodes": {"operator": "In", "values": [137, 143]}}
RULES_MATCHED = [
    ([{"action": "Ignore", **DISRUPTED}],
     "rule 0 of its podFailurePolicy ignores 1 failed pod, which does not count towards "
     "backoffLimit: Pod lab/train-"),
    ([{"action": "FailJob", **KILLED, "onExitCodes": {"operator": "In", "values": [3]}},
      {"action": "Ignore", **DISRUPTED}], "rule 1 of its podFailurePolicy ignores 1 failed pod"),
    ([{"action": "FailJob", **DISRUPTED}],
     "rule 0 of its podFailurePolicy ends the Job because of 1 failed pod: Pod lab/train-"),
    ([{"action": "Count", **DISRUPTED}],
     "rule 0 of its podFailurePolicy counts 1 failed pod towards backoffLimit: Pod lab/train-"),
    ([{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}],
     "no rule of its podFailurePolicy matches 1 failed pod, which counts towards backoffLimit: "
     "lab/train-"),
    ([], ""),
]  # fmt: skip
"""The rules of a Job, and what is told of them when a taint has evicted its pod."""


def evicted_job(rules):
    """A Job whose first pod is evicted for a taint of its device, and ends."""
    run = {**pod("x", "lab", template="t")["spec"], "restartPolicy": "Never"}
    spec = {"backoffLimit": 3, "template": {"spec": run}}
    if rules:
        spec["podFailurePolicy"] = {"rules": rules}
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": spec,
           "metadata": {"name": "train", "namespace": "lab"}}  # fmt: skip
    cards = [{"name": "x"}, {"name": "y"}]
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), template("t", "lab", ask("c")),
                   slice_of("s", DRIVER, "n", cards, nodeName="n"), job]},
        {"wait": 20},
        {"apply": [rule("old", DRIVER, key="x.test/old", effect="NoExecute")]},
        {"wait": 60},
    )  # fmt: skip


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(("rules", "told"), RULES_MATCHED)
async def test_job_names_the_rule_that_decides_about_its_evicted_pod(rules, told):
    said = await why(evicted_job(rules), "job/train")
    assert "DeletionByDeviceTaintManager" in said
    assert told in said
    assert ("of its podFailurePolicy" in said) == bool(rules)


KEEPS = "but for that, 1 waiting pod would fit here: lab/job"


def cordoned(*, on="n", node_spec=None, wanted=None, extra=()):
    """A pod waits for a device of a node that is cordoned."""
    wants = wanted or pod("job", "lab", claim="want")
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), node("m"),
                   slice_of("s", DRIVER, on, [{"name": "x"}], nodeName=on),
                   claim("want", "lab", ask("c"))]},
        {"patch": {"spec": {"unschedulable": True, **(node_spec or {})}}, "of": "node/n"},
        {"apply": [wants, *extra]},
        {"wait": 20},
    )  # fmt: skip


def larger():
    wanted = pod("job", "lab", claim="want")
    wanted["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "400"}
    return wanted


def gated():
    wanted = pod("job", "lab", claim="want")
    wanted["spec"]["schedulingGates"] = [{"name": "x.test/later"}]
    return wanted


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(
    ("steps", "is_kept_out"),
    [
        (cordoned(), True),
        # The pod would not fit either if the node were not cordoned, or is not placed at all.
        (cordoned(wanted=larger()), False),
        (cordoned(wanted=gated()), False),
        (cordoned(node_spec={"taints": [{"key": "x.test/t", "effect": "NoSchedule"}]}), False),
        # The device is on the other node, which takes the pod.
        (cordoned(on="m"), False),
        ((*cordoned(), {"patch": {"spec": {"unschedulable": None}}, "of": "node/n"}, {"wait": 20}),
         False),
    ],
)  # fmt: skip
async def test_cordoned_node_names_the_pods_that_wait_for_it(steps, is_kept_out):
    said = await why(steps, "node/n")
    assert (KEEPS in said) == is_kept_out
    assert is_kept_out or "fit here" not in said


def passed_over(least=1, app="serve", effect="NoExecute"):
    """A taint evicts a pod of a budget."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "lab"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": app}}},
    }
    run = pod("serve", "lab", claim="want")
    run["metadata"]["labels"] = {"app": "serve"}
    published = slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n")
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), published, budget]},
        {"apply": [claim("want", "lab", ask("c")), run]},
        {"wait": 20},
        {"apply": [rule("old", DRIVER, key="x.test/old", effect=effect)]},
        {"wait": 60},
    )  # fmt: skip


def again(steps):
    """The pod is made again under its name, and evicted again."""
    run = copy.deepcopy(steps[1]["apply"][1])
    return (*steps, {"delete": "devicetaintrule/old"}, {"wait": 5}, {"apply": [run]},
            {"wait": 20}, steps[3], {"wait": 60})  # fmt: skip


def evicted_from_its_node():
    """What a control plane does for a taint of a node, on which redra evicts nobody."""
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint"}  # fmt: skip
    return (
        *passed_over()[:3],
        {"status": {"conditions": [mark]}, "of": "pod/lab/serve"},
        {"delete": "pod/lab/serve"},
        {"wait": 60},
    )


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (passed_over(), ("1 pod was evicted past it, for a taint: no budget is asked then",
                         "pod lab/serve, at 20", "DeletionByDeviceTaintManager")),
        (again(passed_over()), ("2 pods were evicted past it, for taints",)),
        (evicted_from_its_node(), ("1 pod was evicted past it", "DeletionByTaintManager")),
        (passed_over(least=0), ()),
        (passed_over(app="other"), ()),
        (passed_over(effect="NoSchedule"), ()),
    ],
)  # fmt: skip
async def test_budget_names_the_pods_that_were_evicted_past_it(steps, told):
    said = await why(steps, "poddisruptionbudget/keep")
    for text in told:
        assert text in said
    assert ("evicted past it" in said) == bool(told)


async def test_pod_that_a_taint_of_its_node_evicted_names_the_budget_that_was_not_asked():
    said = await why(evicted_from_its_node(), "pod/serve")
    assert "PodDisruptionBudget lab/keep allowed no eviction then; who evicts for taints " in said
