"""Pairs of clusters that differ in one thing: a setting, a device, a node, a budget, an order.

Users do the same in both, in virtual time. The one thing is the root of all that differs, and of
nothing in a cluster that is played twice.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from app.analysis.diff.causes import RootKind
from app.analysis.diff.compare import compare
from app.analysis.diff.report import DiffReport
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import HistoryId, HistoryInfo
from app.domain.objects import profile as profiles
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from app.service import diffing
from tests import draws
from tests.cluster import DRIVER, Cluster
from tests.simulation import stated_answers

NODES = ("n0", "n1", "n2")
HIGH, TOLERANT = "high", "tolerant"
SETTINGS = "settings"
PAIRS_MAX = 12


@dataclass(frozen=True)
class Step:
    """A write of a user about the object `name`."""

    name: str
    act: Callable[[Cluster, "Step"], object]
    number: int = 0
    value: str = ""


@dataclass(frozen=True)
class Story:
    """A cluster and what its users do."""

    steps: tuple[Step, ...]
    profile: Profile = Profile()
    quirks: Mapping[str, bool] = field(default_factory=dict)

    def ran(self) -> Cluster:
        options = ControllerOptions(quirks=ControllerQuirks(**self.quirks))
        cluster = Cluster(profiles.from_settings(self.info.settings), options)
        cluster.device_class(selector=f'device.attributes["{DRIVER}"].model == "a"')
        cluster.template()
        # A toleration without an effect: quirk C2 lets a pod onto the device and evicts it.
        cluster.template(TOLERANT, tolerations=[{"key": "example.com/bad", "operator": "Exists"}])
        cluster.create("scheduling.k8s.io/v1", "PriorityClass", HIGH, value=1000)
        for name in NODES:
            cluster.node(name, cpu="4")
            cluster.slice(name, devices(2))
        cluster.settle()
        for step in self.steps:
            step.act(cluster, step)
            cluster.settle().wait(5)
        return cluster.wait(30)

    @property
    def info(self) -> HistoryInfo:
        settings = {**self.profile.settings(), "quirks": {**self.quirks}}
        return HistoryInfo(id=HistoryId(1), name="drawn", settings=settings)


def devices(count: int, **models: str) -> list[JsonObject]:
    names = [f"gpu-{number}" for number in range(count)]
    return [
        {"name": name, "attributes": {"model": {"string": models.get(name[4:], "a")}}}
        for name in names
    ]


def nothing(_cluster: Cluster, _step: Step) -> None:
    """Time passes."""


def workload(cluster: Cluster, step: Step) -> None:
    labels = {"app": step.name}
    resources = {"requests": {"cpu": "1"}}
    pod: JsonObject = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
    if step.value == "gpu":
        pod["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"template": template, "replicas": step.number, "selector": {"matchLabels": labels}}
    cluster.create("apps/v1", "ReplicaSet", step.name, spec=spec)


def pod(cluster: Cluster, step: Step) -> None:
    """A pod that others are evicted for, or one with a device that tolerates the rules."""
    if step.value == HIGH:
        cluster.pod(step.name, requests={"cpu": str(step.number)}, priorityClassName=HIGH)
    else:
        cluster.pod(step.name, template=TOLERANT)


def rule(cluster: Cluster, step: Step) -> None:
    selector = {"driver": DRIVER, "pool": NODES[step.number]}
    cluster.rule(step.name, selector=selector, effect=step.value or "NoExecute")


def removal(cluster: Cluster, step: Step) -> None:
    cluster.delete("nodes", step.name)


def another_model(cluster: Cluster, step: Step) -> None:
    tree = dict(cluster.must("resourceslices", step.name))
    changed = devices(2, **{str(step.number): "b"})
    cluster.update("resourceslices", tree | {"spec": {**tree["spec"], "devices": changed}})


def budget(cluster: Cluster, step: Step) -> None:
    selector = {"matchLabels": {"app": step.value}}
    spec = {"maxUnavailable": 0, "selector": selector}
    cluster.create("policy/v1", "PodDisruptionBudget", step.name, spec=spec)


def story(drawn: random.Random) -> Story:
    """Workloads, pods and rules, and one step in which time passes."""
    made = [
        Step(f"w{n}", workload, drawn.randrange(1, 4), drawn.choice(("gpu", "gpu", "")))
        for n in range(drawn.randrange(3, 6))
    ]
    made += [Step(f"p{n}", pod, 1) for n in range(drawn.randrange(1, 4))]
    drawn.shuffle(made)
    for number in range(drawn.randrange(1, 3)):
        one = Step(f"rule-{number}", rule, drawn.randrange(3))
        made.insert(drawn.randrange(2, len(made) + 1), one)
    for number in range(drawn.randrange(1, 3)):
        one = Step(f"urgent-{number}", pod, drawn.randrange(2, 4), HIGH)
        made.insert(drawn.randrange(len(made) // 2, len(made) + 1), one)
    made.insert(drawn.randrange(2, len(made) // 2 + 2), Step("", nothing))
    return Story(tuple(made))


Alteration = Callable[[random.Random, Story], tuple[Story, set[str]]]


def instead(make: Callable[[random.Random], Step]) -> Alteration:
    """The alteration in which a step is done while time passes in the other cluster."""

    def alter(drawn: random.Random, there: Story) -> tuple[Story, set[str]]:
        step = make(drawn)
        steps = tuple(step if each.act is nothing else each for each in there.steps)
        return replace(there, steps=steps), {step.name}

    return alter


def a_budget(drawn: random.Random, there: Story) -> tuple[Story, set[str]]:
    app = drawn.choice([each.name for each in there.steps if each.act is workload])
    return instead(lambda _: Step("budget", budget, value=app))(drawn, there)


def another_order(drawn: random.Random, there: Story) -> tuple[Story, set[str]]:
    """Two neighbouring creations change places."""
    steps = list(there.steps)
    places = [
        n
        for n, (one, other) in enumerate(pairwise(steps))
        if {one.act, other.act} <= {workload, pod}
    ]
    if not places:
        return there, set()
    n = drawn.choice(places)
    steps[n], steps[n + 1] = steps[n + 1], steps[n]
    return replace(there, steps=tuple(steps)), {steps[n].name, steps[n + 1].name}


def without_taints(_drawn: random.Random, there: Story) -> tuple[Story, set[str]]:
    """With the gate off, the API also drops the tolerations of the template, which differs then."""
    return replace(there, profile=Profile(gates={"DRADeviceTaints": False})), {SETTINGS, TOLERANT}


def with_quirk(**quirks: bool) -> Alteration:
    def alter(_drawn: random.Random, there: Story) -> tuple[Story, set[str]]:
        return replace(there, quirks=quirks), {SETTINGS}

    return alter


ALTERATIONS: Mapping[str, Alteration] = {
    "another model": instead(
        lambda drawn: Step(f"{drawn.choice(NODES)}-slice", another_model, drawn.randrange(2))
    ),
    "a node less": instead(lambda drawn: Step(drawn.choice(NODES), removal)),
    "a rule": instead(lambda drawn: Step("planted", rule, drawn.randrange(3))),
    "a rule that keeps away": instead(
        lambda drawn: Step("planted", rule, drawn.randrange(3), "NoSchedule")
    ),
    "a budget": a_budget,
    "another order": another_order,
    "a gate": without_taints,
    "a quirk": with_quirk(c2=False),
    "a defect of a release": with_quirk(c24=True),
}


async def compared(a: Story, b: Story) -> DiffReport:
    sides = [
        diffing.side_of(each.info, each.ran().line.events, name)
        for each, name in ((a, "A"), (b, "B"))
    ]
    return await diffing.drive(compare(*sides))


def roots(report: DiffReport) -> dict[str, str]:
    """The name of the root of each pod with another outcome; messages are not judged."""
    return {
        each.pair.name: SETTINGS
        if each.root.kind is RootKind.SETTINGS
        else each.root.name.rpartition("/")[2]
        for each in report.differences
        if not each.is_about_words
    }


def filled(there: Story) -> Story:
    """The story on nodes that are full, so that pods are evicted for others."""
    return replace(there, steps=(Step("full", workload, 9), *there.steps))


async def judged(alteration: str, seed: int) -> tuple[dict[str, str], set[str]]:
    """The roots of the differences of a drawn pair, and those that are right."""
    drawn = random.Random(f"one change {alteration} {seed}")
    one = story(drawn)
    if alteration == "a budget":
        one = filled(one)
    other, names = ALTERATIONS[alteration](drawn, one)
    return roots(await compared(one, other)), names


RECORDED = ("a budget", "another order")
"""The alterations that the track record names."""


@pytest.mark.parametrize(
    "alteration", [*RECORDED, *map(draws.by_day, sorted(ALTERATIONS.keys() - {*RECORDED}))]
)
async def test_one_change_is_the_root_of_all_differences(alteration: str) -> None:
    """Pairs are drawn until one differs, or several with more draws."""
    different = 0
    for seed in range(PAIRS_MAX):
        shown, names = await judged(alteration, seed)
        assert {*shown.values()} <= names, (seed, shown)
        different += bool(shown)
        if different == draws.FACTOR:
            break
    assert different, "the alteration is idle"


OF_OBJECTS = sorted(ALTERATIONS.keys() - {"a gate", "a quirk", "a defect of a release"})
"""Of a switch many pods follow at once, any of which may be named as the cause of another."""


@draws.BY_DAY
@pytest.mark.parametrize("alteration", OF_OBJECTS)
async def test_one_change_is_compared_from_both_sides_alike(alteration: str) -> None:
    for seed in range(PAIRS_MAX):
        drawn = random.Random(f"turned {alteration} {seed}")
        one = story(drawn)
        if alteration == "a budget":
            one = filled(one)
        other, _ = ALTERATIONS[alteration](drawn, one)
        report = await compared(one, other)
        if report.differences:
            turned = await compared(other, one)
            stated_answers.judge_turned(report, turned, f"{alteration} {seed}")
            return
    raise AssertionError("the alteration is idle")


async def test_cluster_played_twice_has_no_difference() -> None:
    one = story(random.Random("twice"))
    assert (await compared(one, one)).is_same


@pytest.mark.parametrize("names", [("plain", TOLERANT), (TOLERANT, "plain")])
async def test_claims_with_equal_requests_are_compared_one_by_one(names: tuple[str, str]) -> None:
    """Only one claim lacks devices; the other one tolerates the taint."""
    sides = []
    for name in "AB":
        cluster = Cluster()
        cluster.device_class()
        cluster.node()
        cluster.slice(devices=3)
        cluster.template("plain")
        cluster.template(TOLERANT, tolerations=[{"operator": "Exists"}])
        cluster.settle()
        if name == "B":
            cluster.rule(effect="NoSchedule", selector={"driver": DRIVER})
        entries = [
            {"name": each, "resourceClaimTemplateName": each} for each in ("plain", TOLERANT)
        ]
        cluster.pod(resourceClaims=entries)
        cluster.settle().wait(30)
        info = HistoryInfo(id=HistoryId(1), name="two", settings=cluster.profile.settings())
        sides.append(diffing.side_of(info, cluster.line.events, name))
    report = await diffing.drive(compare(*sides))
    assert roots(report) == {"default/pod": "rule"}


async def test_quota_is_the_root_of_a_claim_that_is_made_when_there_is_room() -> None:
    """The second pod's claim is made when the first pod has ended."""
    sides = []
    for name in "AB":
        cluster = Cluster()
        cluster.device_class()
        cluster.node()
        cluster.slice(devices=3)
        cluster.template()
        if name == "B":
            hard = {"gpu.deviceclass.resource.k8s.io/devices": "1"}
            cluster.create(
                "v1", "ResourceQuota", "devices", namespace="default", spec={"hard": hard}
            )
        for pod_name in ("first", "second"):
            cluster.pod(pod_name, template="gpu")
            cluster.settle().wait(30)
        cluster.finish("first")
        cluster.settle().wait(600)
        info = HistoryInfo(id=HistoryId(1), name="one", settings=cluster.profile.settings())
        sides.append(diffing.side_of(info, cluster.line.events, name))
    report = await diffing.drive(compare(*sides))
    assert roots(report) == {"default/second": "devices"}
