"""Comparisons of one story with itself after one change, kept as the pages that were read."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from app.analysis.diff import compare, text
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import Side
from app.api.redra.models import Reason
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.registry import ControllerOptions
from app.domain.errors import Forbidden
from app.domain.log import EventType
from app.domain.objects.profile import Profile
from app.service import diffing
from tests.cluster import Cluster
from tests.unit.analysis import kept_texts
from tests.unit.workloads.test_workloads import template, workload

FILE = Path(__file__).with_name("whole_comparisons.txt")
Act = Callable[[Cluster], object]


def nothing(_: Cluster) -> None:
    return None


def told(act: Act) -> Act:
    """An act that a side may refuse."""

    def tell(cluster: Cluster) -> None:
        try:
            act(cluster)
        except Forbidden:
            return

    return tell


def story(early: Act, late: Act, options: ControllerOptions = ControllerOptions()) -> Cluster:
    """Two workloads and two pods with devices; an act before they come, and one after that."""
    cluster = Cluster(options=options, kubelet=True, namespaces=("default", "team"))
    cluster.device_class()
    cluster.template()
    for name in ("n1", "n2"):
        cluster.node(name)
        cluster.slice(name, devices=2)
    cluster.settle()
    early(cluster)
    cluster.settle()
    pod = template(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}])
    told(lambda each: workload(each, "Deployment", "web", pod, replicas=2))(cluster)
    cluster.wait(5)
    told(lambda each: each.pod("first", template="gpu"))(cluster)
    told(lambda each: each.pod("other", namespace="team"))(cluster)
    cluster.wait(5)
    late(cluster)
    cluster.wait(20)
    told(lambda each: each.pod("last", template="gpu"))(cluster)
    return cluster.wait(60)


def side(name: str, cluster: Cluster, options: ControllerOptions, *, is_recorded: bool) -> Side:
    events = cluster.line.events
    if is_recorded:
        events = [each for each in events if each.type is not EventType.DECISION_RECORDED]
    return Side(
        name=name,
        profile=Profile(),
        options=options,
        events=events,
        revision=events[-1].revision,
        until=cluster.line.now,
        was_decided_elsewhere=is_recorded,
    )


def quota(pods: int) -> Act:
    return lambda each: each.create(
        "v1", "ResourceQuota", "q", spec={"hard": {"count/pods": str(pods)}}
    )


def urgent(cluster: Cluster) -> None:
    cluster.create("scheduling.k8s.io/v1", "PriorityClass", "high", value=5)
    cluster.pod("urgent", template="gpu", priorityClassName="high")


CHANGES: dict[str, tuple[Act, Act]] = {
    "a node has no devices": (lambda each: each.delete("resourceslices", "n2-slice"), nothing),
    "a node is lost later": (nothing, lambda each: each.delete("nodes", "n2")),
    "a rule taints the devices of a node": (
        lambda each: each.rule(selector={"pool": "n1"}),
        nothing,
    ),
    "a rule evicts later": (nothing, lambda each: each.rule(selector={"pool": "n1"})),
    "a class selects nothing": (
        lambda each: each.patch(
            "deviceclasses", "gpu", {"spec": {"selectors": [{"cel": {"expression": "false"}}]}}
        ),
        nothing,
    ),
    "a quota refuses pods": (quota(3), nothing),
    "a quota is full": (quota(4), lambda each: told(lambda one: one.pod("more"))(each)),
    "a pod is deleted": (nothing, lambda each: each.delete("pods", "first")),
    "a workload is deleted": (nothing, lambda each: each.delete("deployments", "web")),
    "a workload is scaled": (
        nothing,
        lambda each: each.patch("deployments", "web", {"spec": {"replicas": 3}}),
    ),
    "a namespace is deleted": (nothing, lambda each: each.delete("namespaces", "team")),
    "another pod comes first": (lambda each: each.pod("zero", template="gpu"), nothing),
    "an urgent pod comes later": (nothing, urgent),
    "a node is closed": (
        lambda each: each.patch("nodes", "n1", {"spec": {"unschedulable": True}}),
        nothing,
    ),
    "a node gets a label": (
        nothing,
        lambda each: each.patch("nodes", "n1", {"metadata": {"labels": {"a": "b"}}}),
    ),
    "nothing": (nothing, nothing),
}


def flat(reasons: Iterable[Reason], depth: int = 0) -> Iterator[str]:
    """The lines of reasons, each below what it belongs to."""
    for reason in reasons:
        yield f"{'  ' * depth}{reason.text}"
        yield from flat(reason.children, depth + 1)


async def page(a: Side, b: Side) -> str:
    report = await diffing.drive(compare.compare(a, b))
    assert isinstance(report, DiffReport)
    found = flat(text.reasons_of(report))
    return "\n".join((text.head_of(report), *found, *text.notes_of(report)))


SWITCHES = "another quirk"


@pytest.mark.parametrize("is_recorded", [False, True], ids=["decided", "recorded"])
@pytest.mark.parametrize("name", CHANGES)
async def test_comparison_reads_as_it_was_read(name: str, is_recorded: bool) -> None:
    early, late = CHANGES[name]
    options = ControllerOptions()
    a, b = (
        side(letter, story(*acts, options), options, is_recorded=is_recorded)
        for letter, acts in (("A", (nothing, nothing)), ("B", (early, late)))
    )
    there, back = await page(a, b), await page(b, a)
    kept = f"{there}\n\n{back}"
    suffix = " in recordings" if is_recorded else ""
    kept_texts.check(FILE, name + suffix, kept, NAMES)


async def test_comparison_of_two_quirks_reads_as_it_was_read() -> None:
    taint = CHANGES["a rule evicts later"]
    options = [ControllerOptions(quirks=ControllerQuirks(c1=value)) for value in (True, False)]
    late = lambda each: each.rule(selector={})  # noqa: E731
    a, b = (
        side(name, story(taint[0], late, each), each, is_recorded=False)
        for name, each in zip("AB", options, strict=True)
    )
    kept_texts.check(FILE, SWITCHES, await page(a, b), NAMES)


NAMES = [*(f"{name}{suffix}" for name in CHANGES for suffix in ("", " in recordings")), SWITCHES]


def test_each_kept_comparison_has_its_change() -> None:
    assert list(kept_texts.kept(FILE)) == NAMES
