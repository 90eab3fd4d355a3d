"""Pods that wait no more: the findings say why they had waited, as they did at that time."""

import pytest

from app.api.server.limits import ApiLimits
from tests import draws
from tests.api.serving import serving
from tests.web.invented import (
    Invented,
    Names,
    ask,
    cel,
    claim,
    class_of,
    node,
    pod,
    rule,
    slice_of,
    space,
)
from tests.web.overlooked_incidents import OVERLOOKED
from tests.web.test_incident_stories import stored

D = "d.test"
HISTORY = "/redra/v1/histories/default"
WAITING = "WaitingPods"
OVER = " waits no more since revision "


def wanting(user, *requests):
    return [claim(f"{user}-claim", "lab", *requests), pod(user, "lab", claim=f"{user}-claim")]


def device(**more):
    return slice_of("n1", D, "n1", [{"name": "x0", **more}], nodeName="n1")


BEGIN = (space("lab"), class_of("c", D), node("n1"))
ENDS = {
    "no slice": ([*BEGIN, *wanting("job", ask("c"))], {"apply": [device()]}),
    "held": (
        [*BEGIN, device(), *wanting("first", ask("c")), *wanting("job", ask("c"))],
        {"delete": "pod/lab/first"},
    ),
    "tainted": (
        [
            *BEGIN,
            device(),
            rule("broken", D, key="broken", effect="NoSchedule"),
            *wanting("job", ask("c")),
        ],
        {"delete": "devicetaintrule/broken"},
    ),
    "other model": (
        [
            *BEGIN,
            device(attributes={"model": {"string": "old"}}),
            *wanting("job", ask("c", selectors=cel(f"device.attributes['{D}'].model == 'new'"))),
        ],
        {"apply": [device(attributes={"model": {"string": "new"}})]},
    ),
    "deleted": ([*BEGIN, *wanting("job", ask("c"))], {"delete": "pod/lab/job"}),
}
"""What makes a pod wait, and what ends that."""
BY_USER = "by redra:incidents at 2026-01-02T03:00:10Z"
AGAIN = "when it was tried again after "
ENDINGS = {
    "no slice": ("placed on node n1", f"{AGAIN}ResourceSlice n1 was created {BY_USER}"),
    "held": ("placed on node n1", f"{AGAIN}ResourceClaim lab/first-claim was changed by system:"),
    "tainted": ("placed on node n1", f"{AGAIN}DeviceTaintRule broken was deleted {BY_USER}"),
    "other model": ("placed on node n1", f"{AGAIN}ResourceSlice n1 was changed {BY_USER}"),
    "deleted": ("deleted by redra:incidents", BY_USER),
}
"""How the wait ended, and after which write."""


async def findings(server, moment=""):
    items = (await server.get(f"{HISTORY}/findings{moment}"))["items"]
    return [item for item in items if item["kind"] == WAITING]


def former(items):
    return [item for item in items if not item["present"]]


async def checked(server, item):
    """The pods that a finding about former refusals names causes of: the causes are those of then.

    Each line begins with pods, each with the revision of its refusal.
    """
    named = set()
    for line in item["causes"]:
        if OVER in line:
            continue
        who, _, cause = line.partition(": ")
        for one in who.split(", "):
            name, _, revision = one.partition(" at revision ")
            then = await findings(server, f"?at={revision}")
            causes = {
                each.removeprefix(f"{name}: ")
                for other in then
                if other["present"]
                for each in other["causes"]
            }
            assert cause in causes, (line, causes)
            named.add(name)
    return named


@pytest.mark.parametrize("name", ENDS)
async def test_causes_of_a_pod_that_waits_no_more_are_those_of_then(name):
    before, end = ENDS[name]
    world = Invented(told=(), steps=({"apply": before}, {"wait": 10}, end, {"wait": 60}))
    async with serving(store=await stored(world.incident())) as server:
        items = await findings(server)
        assert [item["present"] for item in items] == [0]
        named = await checked(server, items[-1])
        (over,) = (line for line in items[-1]["causes"] if OVER in line)
        revision, _, text = over.removeprefix(f"lab/job{OVER}").partition(": ")
        for moment, is_over in ((int(revision) - 1, False), (int(revision), True)):
            then = await findings(server, f"?at={moment}")
            assert any(item["present"] for item in then) is not is_over
    assert named == {"lab/job"}
    assert text.partition(" at ")[0] == ENDINGS[name][0]
    assert ENDINGS[name][1] in text


@draws.in_turn("former causes")
@pytest.mark.parametrize("make", OVERLOOKED, ids=lambda make: make.__name__)
async def test_causes_of_incidents_that_ended_are_those_of_then(make):
    """Each pod that waited is deleted, so that its causes are former ones."""
    made = make(Names(7))
    async with serving(store=await stored(made.incident())) as server:
        waiting = [item for item in await findings(server) if item["present"]]
    pods = {f"pod/{one['namespace']}/{one['name']}" for item in waiting for one in item["objects"]}
    steps = (*made.steps, *({"delete": pod} for pod in sorted(pods)), {"wait": 60})
    world = Invented(told=(), steps=steps)
    async with serving(store=await stored(world.incident())) as server:
        named = set()
        for item in former(await findings(server)):
            named |= await checked(server, item)
    assert {f"pod/{name}" for name in named} <= pods


@pytest.mark.parametrize(
    ("bounds", "count"),
    [
        ({}, 3),
        ({"findings_former_pods_max": 1}, 1),
        ({"findings_former_pods_max": 0}, 0),
        ({"findings_former_objects_max": 10}, 0),
    ],
    ids=["all", "one", "none", "no-objects"],
)
async def test_former_refusals_that_are_looked_at_are_bounded(bounds, count):
    jobs = [one for number in range(3) for one in wanting(f"job-{number}", ask("c"))]
    ends = tuple({"delete": f"pod/lab/job-{number}"} for number in range(3))
    steps = ({"apply": [*BEGIN, *jobs]}, {"wait": 10}, *ends, {"wait": 60})
    store = await stored(Invented(told=(), steps=steps).incident())
    async with serving(store=store, limits=ApiLimits(**bounds)) as server:
        (item,) = await findings(server)
    named = {
        one.partition(" at ")[0]
        for line in item["causes"]
        if OVER not in line
        for one in line.partition(": ")[0].split(", ")
    }
    assert len(named) == count == sum(OVER in line for line in item["causes"])
