"""Incidents that other people's writes cause, altered by one value: what is said, and what not."""

import copy
import re
from dataclasses import replace

import pytest

from tests import draws
from tests.api.serving import serving
from tests.web import asked_incidents
from tests.web.invented import Names, ask, claim, class_of, node, pod
from tests.web.reported_incidents import lab, one
from tests.web.test_incident_stories import stored, texts


async def answers(made, kind, name):
    """The findings, and the sentences of `why` about an object in question."""
    async with serving(store=await stored(made.incident())) as server:
        history = "/redra/v1/histories/default"
        findings = (await server.get(f"{history}/findings"))["items"]
        answer = await server.get(f"{history}/why?kind={kind}&namespace=lab&name={name}")
    return findings, [answer["outcome"], answer["text"], *texts(answer["reasons"])]


def with_patch(attribute="model", value=None):
    """The incident of a patch, whose patch changes another attribute or to another value."""
    made = asked_incidents.patch_removes_what_a_selector_reads(Names(4))
    steps = copy.deepcopy(made.steps)
    (patch,) = steps[3]["apply"]
    devices = patch["spec"]["devices"]
    ((name, removed),) = devices["attributes"].items()
    devices["attributes"] = {
        name.replace("model", attribute): {"string": value} if value else removed
    }
    return replace(made, steps=steps), patch["metadata"]["name"]


@pytest.mark.parametrize(
    ("attribute", "value", "is_told"),
    [
        ("model", None, True),
        draws.repeated("model", "small", True),
        # The device matches none the less.
        draws.repeated("model", "large", False),
        draws.repeated("colour", "red", False),
    ],
)
async def test_patch_after_which_a_held_device_matches_no_more_is_the_cause_of_a_finding(
    attribute, value, is_told
):
    """No slice is blamed: times of allocations have whole seconds, in which both were written."""
    made, name = with_patch(attribute, value)
    findings, said = await answers(made, "pod", "before")
    causes = [one["causes"] for one in findings if one["kind"] == "ChangedDevices"]
    assert [[one.partition(" at ")[0] for one in each] for each in causes] == [
        [f"ResourceSlicePatch {name} was written after the allocation, by redra:incidents"]
    ] * is_told
    assert any(f"the claim keeps it: patch {name} " in line for line in said) == is_told


KEPT = "no longer matches request dev, and the claim keeps it: "


def chosen_with_a_patch(*later):
    """A device was chosen for what a patch makes of it, and for its class; then these change."""
    made = asked_incidents.patch_removes_what_a_selector_reads(Names(4))
    steps = copy.deepcopy(made.steps)
    patch, apply = steps[3]["apply"][0], {"apply": steps[1]["apply"]}
    devices = patch["spec"]["devices"]
    ((name, _),) = devices["attributes"].items()
    devices["attributes"] = {name: {"string": "large"}}
    for card in steps[0]["apply"][-1]["spec"]["devices"]:
        card["attributes"] = {name.partition("/")[2]: {"string": "small"}}
    other = class_of("c", "other.test")
    changes = {
        "patch gone": ({"delete": f"resourceslicepatch/{patch['metadata']['name']}"},),
        "patch altered": (
            {"patch": {"spec": {"devices": {"attributes": {name: {"string": "mid"}}}}},
             "of": f"resourceslicepatch/{patch['metadata']['name']}"},
        ),
        "class altered": ({"patch": {"spec": other["spec"]}, "of": "deviceclass/c"},),
        "class made anew": ({"delete": "deviceclass/c"}, {"wait": 2}, {"apply": [other]}),
        "class labelled": ({"patch": {"metadata": {"labels": {"a": "b"}}}, "of": "deviceclass/c"},),
    }  # fmt: skip
    more = [{"wait": 5}, *(step for one in later for step in changes[one]), {"wait": 20}]
    return replace(made, steps=(steps[0], {"apply": [patch]}, apply, {"wait": 20}, *more))


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(
    ("later", "told"),
    [
        (["patch gone"], [r"without patch hide\d+, which sets attribute \S+, published as small, "
                          r"to large; it was deleted, by \S+ at 20"]),
        (["patch altered"], [r"patch hide\d+ sets attribute \S+, published as small, to mid; it "
                             r"was written, by"]),
        (["class altered"], ["class c selects otherwise; it was written, by"]),
        (["class made anew"], ["class c selects otherwise; it was created, by"]),
        (["patch gone", "class altered"], ["without patch hide", "class c selects otherwise"]),
        (["class labelled", "patch gone"], ["without patch hide"]),
        (["class labelled"], []),
        ([], []),
    ],
)  # fmt: skip
async def test_device_that_was_chosen_thanks_to_what_is_gone_names_it(later, told):
    made = chosen_with_a_patch(*later)
    _, said = await answers(made, "resourceclaim", "kept")
    lines = [line.partition(KEPT)[2] for line in said if KEPT in line]
    assert len(lines) == len(told), said
    for line, pattern in zip(lines, told, strict=True):
        assert re.match(pattern, line), lines


async def test_only_failure_of_a_binding_is_not_told_twice():
    made = asked_incidents.attachment_fails_each_time(Names(4))
    (*steps, _) = made.steps[:5]
    _, said = await answers(replace(made, steps=(*steps, {"wait": 4})), "pod", "job")
    assert any("port" in line and "is down" in line for line in said)
    assert not any(line.startswith("its binding failed 1 time") for line in said)


async def test_waiting_for_a_condition_that_failed_before_is_a_finding_with_the_failure():
    made = asked_incidents.attachment_fails_each_time(Names(4))
    findings, _ = await answers(made, "pod", "job")
    (waiting,) = [one for one in findings if one["kind"] == "WaitingPods" and one["present"]]
    assert "not true yet" in waiting["text"]
    assert any(line.startswith("its binding failed 2 times") for line in waiting["causes"])


@draws.BY_DAY
async def test_cause_that_pods_of_a_finding_share_is_told_once():
    made = asked_incidents.patch_removes_what_a_selector_reads(Names(4))
    cluster = [*lab("d.test", one("d.test")), node("closed", unschedulable=True)]
    wants = [claim("a", "lab", ask("c", count=2)), claim("b", "lab", ask("c", count=3))]
    pods = [pod("a", "lab", claim="a"), pod("b", "lab", claim="b")]
    steps = ({"apply": cluster}, {"apply": [*wants, *pods]}, {"wait": 20})
    findings, _ = await answers(replace(made, steps=steps), "pod", "a")
    (waiting,) = [one for one in findings if one["kind"] == "WaitingPods"]
    causes = [cause.partition(": ")[::2] for cause in waiting["causes"]]
    assert [sorted(who.split(", ")) for who, cause in causes if "is cordoned" in cause] == [
        ["lab/a", "lab/b"]
    ]
    assert sorted(who for who, cause in causes if " wants " in cause) == ["lab/a", "lab/b"]


@draws.BY_DAY
async def test_budget_that_allows_the_eviction_is_not_passed_over():
    made = asked_incidents.device_taint_asks_no_budget(Names(4))
    steps = copy.deepcopy(made.steps)
    (budget,) = [tree for tree in steps[0]["apply"] if tree["kind"] == "PodDisruptionBudget"]
    budget["spec"]["minAvailable"] = 0
    _, said = await answers(replace(made, steps=steps), "pod", "serve")
    assert any("DeletionByDeviceTaintManager" in line for line in said)
    assert not any("asks no budget" in line for line in said)


@draws.BY_DAY
async def test_only_user_of_a_shared_device_is_named_once():
    made = asked_incidents.bandwidth_is_used_from_another_namespace(Names(4))
    steps = [step for step in made.steps if "probe" not in str(step)]
    steps[1]["apply"][0]["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {
        "requests": {"bandwidth": "9G"}
    }
    _, said = await answers(replace(made, steps=tuple(steps)), "pod", "job")
    assert any("needs 4G, 1G of 10G is free, held by " in line for line in said)
    assert not any(line.startswith("of capacity bandwidth") for line in said)


@draws.BY_DAY
@pytest.mark.parametrize(
    ("spec", "outcome"),
    [
        ({"activeDeadlineSeconds": 10_000}, "Present"),
        ({"suspend": True}, "Suspended"),
        ({}, "Failed"),
    ],
)
async def test_job_is_headed_by_its_state(spec, outcome):
    made = asked_incidents.deadline_passes_while_a_pod_waits(Names(4))
    steps = copy.deepcopy(made.steps)
    steps[3]["apply"][0]["spec"].update(spec)
    _, said = await answers(replace(made, steps=steps), "job", "train")
    assert said[0] == outcome
