"""Pairs of clusters with workloads that differ in one drawn step: it is the root of all.

Both clusters run in virtual time with the same steps: workloads are made and scaled, nodes are
cordoned, rules taint pools. In one of them a step is left out or another one. Their pods have
controllers, so they have other names, are fewer, come later or are elsewhere then; nothing else
differs, so nothing else can be the cause.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from app.analysis.diff.compare import compare
from app.analysis.diff.report import DiffReport
from app.domain.log import HistoryId, HistoryInfo
from app.domain.values.json_tree import JsonObject
from app.service import diffing
from tests import draws
from tests.cluster import DRIVER, Cluster

pytestmark = draws.modules_in_turn("worlds")


NODES = ("n0", "n1", "n2")
KINDS = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
}


@dataclass(frozen=True)
class Step:
    """One step of a user; `name` is that of the object which it writes."""

    name: str
    act: Callable[[Cluster, "Step"], object]
    kind: str = ""
    number: int = 0


def nothing(_cluster: Cluster, _step: Step) -> None:
    """A step that is left out; time passes."""


def workload(cluster: Cluster, step: Step) -> None:
    labels = {"app": step.name}
    entry = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    pod: JsonObject = {"containers": [{"name": "c", "image": "i"}], "resourceClaims": [entry]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec: JsonObject = {"template": template}
    if step.kind == "Job":
        pod["restartPolicy"] = "Never"
        spec |= {"completions": step.number, "parallelism": step.number}
    else:
        spec |= {"replicas": step.number, "selector": {"matchLabels": labels}}
    if step.kind == "StatefulSet":
        spec |= {"serviceName": step.name, "podManagementPolicy": "Parallel"}
    cluster.create(KINDS[step.kind], step.kind, step.name, spec=spec)


def scaling(cluster: Cluster, step: Step) -> None:
    spec = {"replicas": step.number}
    cluster.patch(f"{step.kind.lower()}s", step.name, {"spec": spec})


def cordon(cluster: Cluster, step: Step) -> None:
    cluster.patch("nodes", step.name, {"spec": {"unschedulable": True}})


def rule(cluster: Cluster, step: Step) -> None:
    selector = {"driver": DRIVER, "pool": NODES[step.number]}
    cluster.rule(step.name, selector=selector, effect="NoExecute")


def quota(cluster: Cluster, step: Step) -> None:
    spec = {"hard": {"pods": str(step.number)}}
    cluster.create("v1", "ResourceQuota", step.name, spec=spec)


def steps(drawn: random.Random) -> list[Step]:
    made = [
        Step(f"w{number}", workload, drawn.choice([*KINDS]), drawn.randrange(1, 4))
        for number in range(drawn.randrange(3, 6))
    ]
    scaled = [each for each in made if each.kind != "Job"]
    every = list(made)
    for number in range(drawn.randrange(2, 5)):
        match drawn.randrange(3):
            case 0 if scaled:
                one = drawn.choice(scaled)
                changed = replace(one, act=scaling, number=drawn.randrange(5))
                every.insert(drawn.randrange(every.index(one) + 1, len(every) + 1), changed)
            case 1:
                every.insert(drawn.randrange(1, len(every)), Step(drawn.choice(NODES), cordon))
            case _:
                one = Step(f"rule-{number}", rule, number=drawn.randrange(len(NODES)))
                every.insert(drawn.randrange(1, len(every)), one)
    return every


def some(drawn: random.Random, every: Sequence[Step], act: Callable[..., object]) -> int | None:
    """The number of a drawn step that does this."""
    numbers = [number for number, each in enumerate(every) if each.act is act]
    return drawn.choice(numbers) if numbers else None


def left_out(act: Callable[..., object]) -> Callable[[random.Random, list[Step]], str | None]:
    """The alteration that leaves such a step out."""

    def alter(drawn: random.Random, every: list[Step]) -> str | None:
        number = some(drawn, every, act)
        if number is None:
            return None
        name = every[number].name
        later = [each for each in every[number:] if each.name == name]
        for each in later if act is workload else later[:1]:
            every[every.index(each)] = replace(each, act=nothing)
        return name

    return alter


def more(act: Callable[..., object]) -> Callable[[random.Random, list[Step]], str | None]:
    """The alteration that makes more replicas in such a step."""

    def alter(drawn: random.Random, every: list[Step]) -> str | None:
        number = some(drawn, every, act)
        if number is None:
            return None
        step = every[number]
        every[number] = replace(step, number=step.number + drawn.randrange(1, 4))
        return step.name

    return alter


def limited(drawn: random.Random, every: list[Step]) -> str | None:
    """The alteration that makes a quota instead of waiting, before some workload."""
    number = every.index(Step("", nothing))
    every[number] = Step("quota", quota, number=drawn.randrange(1, 6))
    return "quota"


ALTERATIONS: Mapping[str, Callable[[random.Random, list[Step]], str | None]] = {
    "a workload less": left_out(workload),
    "more replicas": more(workload),
    "scaled to more": more(scaling),
    "no scaling": left_out(scaling),
    "no rule": left_out(rule),
    "no cordon": left_out(cordon),
    "a quota": limited,
}


def ran(every: Sequence[Step]) -> Cluster:
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    for name in NODES:
        cluster.node(name)
        cluster.slice(name)
    cluster.settle()
    for step in every:
        step.act(cluster, step)
        cluster.settle().wait(5)
    return cluster.wait(30)


async def compared(a: Sequence[Step], b: Sequence[Step]) -> DiffReport:
    info = HistoryInfo(id=HistoryId(1), name="drawn")
    sides = [
        diffing.side_of(info, ran(every).line.events, name) for every, name in ((a, "A"), (b, "B"))
    ]
    return await diffing.drive(compare(*sides))


@pytest.mark.parametrize("alteration", ALTERATIONS)
async def test_the_only_other_step_is_the_root_of_what_befalls_pods_of_workloads(
    alteration: str,
) -> None:
    different = Counter[str]()
    for seed in draws.seeds(4):
        drawn = random.Random(f"workloads {alteration} {seed}")
        every = steps(drawn)
        every.insert(drawn.randrange(1, len(every)), Step("", nothing))
        altered = list(every)
        name = ALTERATIONS[alteration](drawn, altered)
        if name is None:
            continue
        report = await compared(every, altered)
        roots = {each.pair.name: each.root.name for each in report.differences}
        assert {each.rpartition("/")[2] for each in roots.values()} <= {name}, (seed, roots)
        different[alteration] += len(roots)
    assert different.total(), "the alterations are idle"
