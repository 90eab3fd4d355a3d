"""The write that made a pod wait stands beside the headline, in answers, findings and pages."""

import copy

import pytest

from tests.api.serving import serving
from tests.web.field_incidents import told_by_kubelet
from tests.web.invented import (
    Invented,
    Names,
    ask,
    claim,
    class_of,
    driver_pod,
    node,
    pod,
    slice_of,
    space,
    template,
)
from tests.web.reading import read
from tests.web.reported_incidents import lab, one
from tests.web.test_incident_stories import stored, texts

D = "d.test"
LABELLED = {"x.test/pool": "gpu"}
WAITS = [claim("want", "lab", ask("c")), pod("train", "lab", claim="want")]
HERRING = node("zz", taints=[{"key": "x.test/fan", "effect": "NoSchedule"}])


def on_pool(made):
    return {**made, "spec": {**made["spec"], "nodeSelector": LABELLED}}


def large(made):
    """The pod with a request of more cpu than a node has."""
    made = copy.deepcopy(made)
    made["spec"]["containers"][0].setdefault("resources", {})["requests"] = {"cpu": "999"}
    return made


def with_selector(expression):
    made = copy.deepcopy(class_of("c", D))
    made["spec"]["selectors"] = [{"cel": {"expression": expression}}]
    return made


def waiting(*change, last=WAITS):
    """A pod that waits since a change of other objects, beside a node that never had devices."""
    return ({"apply": [*lab(D, one(D)), HERRING]}, {"wait": 5}, *change, {"apply": last},
            {"wait": 30})  # fmt: skip


NO_MODEL = f"device.attributes['{D}'].model == 'a'"
BY = "by redra:incidents at "
ZONE = "topology.kubernetes.io/zone"
IN_ZONE = {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1"]}]}]}  # fmt: skip
ROOT = "resource.kubernetes.io/pcieRoot"
ALIGNED = claim("want", "lab", ask("c", "one"), ask("c", "two"),
                constraints=[{"requests": ["one", "two"], "matchAttribute": ROOT}])  # fmt: skip


def in_zone(zone, name="n", **spec):
    return node(name, {ZONE: zone}, **spec)


def rooted(*roots, generation=1):
    """A slice of devices with, or without, the attribute of a PCIe root."""
    devices = [
        {"name": f"x{number}", "attributes": {ROOT: {"string": root}} if root else {}}
        for number, root in enumerate(roots)
    ]
    return slice_of("s", D, "n", devices, generation=generation, nodeName="n")


ROWS = {
    "a class was edited into an error": (
        waiting({"apply": [with_selector(NO_MODEL)]}),
        f"class c selected {D}/n/x for request dev of claim want until it was changed, {BY}",
    ),
    "a class was edited to select nothing": (
        waiting({"apply": [with_selector("device.driver == 'other.test'")]}),
        f"class c selected {D}/n/x for request dev of claim want until it was changed, {BY}",
    ),
    "a label was taken from the node": (
        (
            {"apply": [*lab(D, one(D)), node("n", LABELLED), HERRING]},
            {"apply": [node("n")]},
            {"apply": [WAITS[0], on_pool(WAITS[1])]},
            {"wait": 30},
        ),
        f"node n had x.test/pool=gpu until that was taken away, {BY}",
    ),
    "a label by which a pool selects one of its nodes was changed": (
        (
            {
                "apply": [
                    space("lab"),
                    class_of("c", D),
                    in_zone("z1"),
                    HERRING,
                    in_zone("z1", "full", unschedulable=True),
                    slice_of("s", D, "z1", [{"name": "x"}], nodeSelector=IN_ZONE),
                ]
            },
            {"wait": 5},
            {"apply": [in_zone("z2")]},
            {"apply": WAITS},
            {"wait": 30},
        ),
        f"slice s was for node n, which had {ZONE}=z1 until that became z2, {BY}",
    ),
    "an attribute that a constraint needs was withdrawn": (
        (
            {"apply": [space("lab"), class_of("c", D), node("n"), HERRING, rooted("r", "r")]},
            {"wait": 5},
            {"apply": [rooted("r", "", generation=2)]},
            {"apply": [ALIGNED, WAITS[1]]},
            {"wait": 30},
        ),
        f"slice s had {ROOT}=r for x1 until it was written without it, {BY}",
    ),
    "the device of a claim that is allocated already was withdrawn": (
        (
            {"apply": [*lab(D, one(D)), HERRING, WAITS[0], pod("first", "lab", claim="want")]},
            {"wait": 10},
            {"delete": "resourceslice/s"},
            {"apply": [large(WAITS[1])]},
            {"wait": 20},
        ),
        f"slice s, which had {D}/n/x, was deleted, {BY}",
    ),
    "the node was tainted": (
        waiting({"apply": [node("n", taints=[{"key": "x.test/hot", "effect": "NoSchedule"}])]}),
        f"node n is tainted x.test/hot:NoSchedule, {BY}",
    ),
    "the node was cordoned": (
        waiting({"apply": [node("n", unschedulable=True)]}),
        f"node n is cordoned, {BY}",
    ),
    "the template was replaced": (
        waiting(
            {"apply": [template("tmpl", "lab", ask("c", count=1))]},
            {"delete": "resourceclaimtemplate/lab/tmpl"},
            {"apply": [template("tmpl", "lab", ask("c", count=8))]},
            last=[pod("train", "lab", template="tmpl")],
        ),
        f"template lab/tmpl was made anew {BY}",
    ),
}


async def answers(steps, off=()):
    """The reasons below the headline of a pod, the causes of findings, and the page of the pod."""
    made = Invented(told=(), steps=steps, off=off)
    async with serving(store=await stored(made.incident())) as server:
        history = "/redra/v1/histories/default"
        findings = (await server.get(f"{history}/findings"))["items"]
        query = "kind=pod&namespace=lab&name=train"
        answer = await server.get(f"{history}/why?{query}")
        page = await server.raw("GET", f"/ui/h/default/why?{query}")
    causes = [cause for item in findings for cause in item.get("causes", ())]
    return answer["reasons"]["children"], causes, read(page.text).one("main").text


@pytest.mark.parametrize("row", ROWS)
async def test_past_write_stands_before_the_answers_of_nodes_and_in_findings(row):
    steps, past = ROWS[row]
    reasons, causes, page = await answers(steps)
    own = [reason["text"] for reason in reasons]
    assert own[0].startswith(past), own
    assert any(text.startswith("scheduling decided ") for text in own[1:])
    assert any(cause.startswith(past) for cause in causes), causes
    assert page.index(past) < page.index("n: ", page.index(past))


async def test_taint_of_a_node_without_devices_stands_behind_the_answers_of_nodes():
    reasons, _, _ = await answers(ROWS["the node was cordoned"][0])
    own = [reason["text"] for reason in reasons]
    taint = next(n for n, text in enumerate(own) if text.startswith("node zz is tainted"))
    answer = next(n for n, text in enumerate(own) if text.startswith("zz: node(s) had"))
    assert answer < taint


@pytest.mark.parametrize(("phase", "is_forced"), [("Running", True), ("Succeeded", False)])
async def test_forced_deletion_of_a_pod_without_claims_is_named(phase, is_forced):
    said = f"Failed to prepare dynamic resources: DRA driver {D} is not registered"
    plugin = driver_pod("plugin", "n")
    steps = (
        {"apply": [*lab(D, one(D)), *WAITS, space("drivers"), plugin]},
        {"wait": 5},
        {"status": {"phase": phase}, "of": "pod/drivers/plugin"},
        {"delete": "pod/drivers/plugin", "now": True},
        {"wait": 60},
        {"apply": [told_by_kubelet(Names(1), "train", "FailedPrepareDynamicResources", said)]},
        {"wait": 5},
    )
    reasons, _, _ = await answers(steps, off=("kubelet",))
    about = [text for reason in reasons for text in texts(reason) if "drivers/plugin" in text]
    assert ["before its kubelet confirmed its end" in text for text in about] == [is_forced]
