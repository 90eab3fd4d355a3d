"""Incidents that nothing reports, altered by one value: the answers about each."""

import copy
import re
from dataclasses import replace

import pytest

from tests.api.serving import serving
from tests.web import quiet_incidents
from tests.web.invented import Invented, Names, ask, claim, class_of, node, pod, slice_of
from tests.web.reading import read
from tests.web.reported_incidents import lab, one
from tests.web.test_incident_stories import stored

KINDS = ("UnhealthyDevices", "UnreadConfigurations")


async def answers(made, **asked):
    """The kinds of findings with their sentences, and the page of an object in question."""
    async with serving(store=await stored(made.incident())) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
        query = "&".join(f"{key}={value}" for key, value in asked.items())
        answer = await server.raw("GET", f"/ui/h/default/why?{query}")
    assert answer.status_code == 200
    return [(one["kind"], one["text"]) for one in items], read(answer.text).one("main").text


def with_report(**values):
    """The incident of a driver's report, with other values in its condition or its device."""
    made = quiet_incidents.driver_reports_a_device_as_not_ready(Names(4))
    steps = copy.deepcopy(made.steps)
    (status,) = (step["status"] for step in steps if "status" in step)
    device = status["devices"][0]
    condition = device["conditions"][0]
    for key, value in values.items():
        (condition if key in condition else device)[key] = value
    return replace(made, steps=steps)


@pytest.mark.parametrize(
    ("values", "is_told"),
    [
        ({}, True),
        ({"status": "Unknown"}, True),
        ({"status": "True"}, False),
        # No convention says which state of another condition is bad.
        ({"type": "LinkUp"}, False),
    ],
    ids=["as-reported", "unknown", "ready", "another-type"],
)
async def test_device_that_its_driver_reports_as_not_ready_is_a_finding(values, is_told):
    made = with_report(**values)
    items, page = await answers(made, kind="resourceclaim", namespace="lab", name="want")
    assert [kind for kind, _ in items if kind in KINDS] == ["UnhealthyDevices"] * is_told
    # Whatever it is, the page of the claim quotes it.
    kind, status = values.get("type", "Ready"), values.get("status", "False")
    assert kind in page
    assert f"is {status}" in page
    assert ("reported by redra:incidents at" in page) == is_told


async def test_report_about_a_device_of_an_earlier_allocation_is_not_about_the_present_one():
    made = quiet_incidents.driver_reports_a_device_as_not_ready(Names(4))
    steps = (*made.steps, {"delete": "pod/lab/job", "now": True}, {"wait": 30})
    items, page = await answers(
        replace(made, steps=steps), kind="resourceclaim", namespace="lab", name="want"
    )
    assert not [kind for kind, _ in items if kind in KINDS]
    assert "AttachFailed" not in page


async def test_device_that_a_pod_waits_for_is_told_of_the_pod_alone():
    made = with_report()
    steps = copy.deepcopy(made.steps)
    (device,) = steps[0]["apply"][-1]["spec"]["devices"]
    device.update(bindsToNode=True, bindingConditions=["Ready"], bindingFailureConditions=["Lost"])
    items, page = await answers(replace(made, steps=steps), kind="pod", namespace="lab", name="job")
    assert "WaitingPods" in [kind for kind, _ in items]
    assert "UnhealthyDevices" not in [kind for kind, _ in items]
    assert "Ready is False (AttachFailed" in page


async def test_page_of_a_device_quotes_its_driver():
    made = with_report()
    driver = made.told[0].partition("/")[0]
    _, page = await answers(made, kind="device", name=f"{driver}/n/x")
    assert "Ready is False (AttachFailed" in page


def with_configuration(change):
    made = quiet_incidents.configuration_is_for_another_driver(Names(4))
    steps = copy.deepcopy(made.steps)
    slice_step, claim_step = steps[0]["apply"], steps[1]["apply"][0]
    change(slice_step, claim_step["spec"]["devices"])
    return replace(made, steps=steps)


def as_written(slices, devices):
    pass


def of_the_driver(slices, devices):
    driver = slices[-1]["spec"]["driver"]
    devices["config"][0]["opaque"]["driver"] = driver


def of_another_driver_that_publishes(slices, devices):
    """A claim may be for devices of several drivers, of which it gets one."""
    other = copy.deepcopy(slices[-1])
    other["metadata"]["name"] = "other"
    other["spec"]["driver"] = devices["config"][0]["opaque"]["driver"]
    slices += [class_of("other", other["spec"]["driver"]), other]


@pytest.mark.parametrize(
    ("change", "is_told"),
    [(as_written, True), (of_the_driver, False), (of_another_driver_that_publishes, False)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
async def test_configuration_that_no_driver_reads_is_a_finding(change, is_told):
    made = with_configuration(change)
    items, page = await answers(made, kind="pod", namespace="lab", name="job")
    assert [kind for kind, _ in items if kind in KINDS] == ["UnreadConfigurations"] * is_told
    assert ("no driver reads a configuration" in page) == is_told


@pytest.mark.parametrize("phase", ["Succeeded", ""])
async def test_claim_of_a_pod_that_has_ended_is_not_said_to_be_named_by_none(phase):
    made = quiet_incidents.driver_reports_a_device_as_not_ready(Names(4))
    job = [{"status": {"phase": phase}, "of": "pod/lab/job"}, {"wait": 30}]
    ends = job if phase else [{"delete": "pod/lab/job", "now": True}, {"wait": 30}]
    items, _ = await answers(
        replace(made, steps=(*made.steps, *ends)),
        kind="resourceclaim", namespace="lab", name="want",
    )  # fmt: skip
    (text,) = (text for kind, text in items if kind == "UnusedClaims")
    assert ("each pod that names it has ended" in text) == bool(phase)
    assert ("no pod names it" in text) == (not phase)


async def test_tolerations_that_every_pod_has_are_not_meant_for_the_taint_of_a_node():
    made = quiet_incidents.pod_tolerates_another_value(Names(4))
    steps = copy.deepcopy(made.steps)
    for tree in steps[0]["apply"]:
        if tree["metadata"]["name"] == "a":
            tree["status"]["conditions"][0]["status"] = "False"
            tree["spec"]["taints"] = []
    late = [claim("late", "lab", {"name": "r", "exactly": {"deviceClassName": "c"}}),
            pod("late", "lab", claim="late")]  # fmt: skip
    late[1]["spec"]["tolerations"] = [
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": 300}
    ]  # fmt: skip
    steps = (*steps, {"apply": late}, {"wait": 20})
    _, page = await answers(replace(made, steps=steps), kind="pod", namespace="lab", name="late")
    assert "node a is tainted node.kubernetes.io/not-ready:NoSchedule" in page
    assert "which does not fit" not in page


@pytest.mark.parametrize(
    ("wanted", "is_cordoned", "is_told"),
    [(2, True, True), (1, True, False), (2, False, False)],
    ids=["drain-waits", "one-may-go", "no-drain"],
)
async def test_cordoned_node_names_the_budget_that_keeps_its_pods(wanted, is_cordoned, is_told):
    keep = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "lab"},
        "spec": {"minAvailable": wanted, "selector": {"matchLabels": {"app": "serve"}}},
    }
    pods = [pod(f"serve-{number}", "lab", claim=f"c{number}") for number in (1, 2)]
    for each in pods:
        each["metadata"]["labels"] = {"app": "serve"}
    claims = [claim(f"c{number}", "lab", ask("c")) for number in (1, 2)]
    cordon = {"patch": {"spec": {"unschedulable": True}}, "of": "node/n"}
    steps = (
        {"apply": [*lab("d.test", one("d.test")), node("m"), one("d.test", "t", on="m"), keep]},
        {"apply": [*claims, *pods]},
        {"wait": 20},
        *([cordon] if is_cordoned else []),
        {"wait": 20},
    )  # fmt: skip
    findings, page = await answers(Invented(told=(), steps=steps), kind="node", name="n")
    text = " ".join(page.split())
    assert ("KeptNodes" in {kind for kind, _ in findings}) == is_told
    said = "PodDisruptionBudget lab/keep allows no eviction now, so a drain leaves pod serve-"
    assert (said in text) == is_told
    assert ("cordoned: no new pod" in text) == is_cordoned


@pytest.mark.parametrize("served", [(), ("a",)], ids=["nowhere", "on another node"])
async def test_driver_that_publishes_nothing_is_on_the_landing_page(served):
    made = quiet_incidents.driver_runs_and_publishes_nothing(Names(4))
    steps = copy.deepcopy(made.steps)
    slices = [slice_of(on, "other.test", on, [{"name": "x"}], nodeName=on) for on in served]
    steps[0]["apply"] += slices
    async with serving(store=await stored(replace(made, steps=steps).incident())) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    causes = [cause for item in items for cause in item.get("causes", ())]
    (named,) = (cause for cause in causes if cause.startswith("ServiceAccount drivers/"))
    where = "node b" if served else "nodes a, b"
    assert re.search(rf"drivers/plugin\d+ may write .* none for {where}, where .* log", named)
