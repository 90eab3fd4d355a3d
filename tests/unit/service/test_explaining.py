"""Why: pods that wait, claims that have devices, subjects that are gone, one question at a time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from app.domain.devices.cel_selectors import CelCompiler
from app.domain.errors import InputError, NotFound
from app.domain.log import Event, Revision
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from app.service.explaining import Explainer
from app.service.pod_reasons import ExplainBounds
from app.service.questions import Answer, Question
from app.service.reason_pages import page
from app.service.reasons import Reason
from app.service.views import LiveViews
from tests.cluster import DRIVER, Cluster
from tests.unit.blasting.worlds import PATIENT
from tests.unit.service.test_replaying import history_of

Ask = Callable[..., Awaitable[Answer]]


def views_up_to(events: list[Event], revision: int) -> LiveViews:
    views = LiveViews(Profile())
    for event in events[:revision]:
        views.fold(event)
    return views


@asynccontextmanager
async def asking(
    cluster: Cluster, *, at: int | None = None, views: LiveViews | None = None
) -> AsyncIterator[Ask]:
    events = cluster.line.events
    log, info = await history_of(events)
    asked: list[int] = []

    async def views_at(revision: Revision) -> LiveViews:
        asked.append(revision)
        return views_up_to(events, revision)

    async def ask(kind: str, name: str, **how: object) -> Answer:
        explainer = Explainer(
            log,
            info,
            views or views_up_to(events, len(events) if at is None else at),
            CelCompiler(),
            Profile(),
            views_at=views_at,
            bounds=ExplainBounds(help_tries_max=50),
        )
        return await explainer.why(Question(kind=kind, namespace="default", name=name, **how))

    yield ask


def texts(reason: Reason) -> list[str]:
    return [reason.text, *(text for child in reason.children for text in texts(child))]


def cluster_of(nodes: int = 2, devices: int = 2, **request: object) -> Cluster:
    cluster = Cluster()
    for number in range(nodes):
        cluster.node(f"n{number}")
        cluster.slice(f"n{number}", devices)
    cluster.device_class()
    cluster.template(**request)
    return cluster


async def test_waiting_pod_has_every_node_and_device() -> None:
    cluster = cluster_of()
    for number in range(5):
        cluster.pod(f"p{number}", template="gpu")
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p4")
    assert found.outcome == "Unschedulable"
    assert found.text == "0 of 2 nodes would take it"
    nodes = found.to_json()["nodes"]
    assert [one["node"] for one in nodes] == ["n0", "n1"]
    for one in nodes:
        (request,) = one["claims"][0]["requests"]
        assert (request["suitable"], request["total"]) == (0, 2)
        assert sum(group["count"] for group in request["devices"]) == 2


async def test_allocated_claim_tells_why_this_device_and_not_that_one() -> None:
    cluster = cluster_of(nodes=1, devices=4)
    for number in range(2):
        cluster.pod(f"p{number}", template="gpu")
    cluster.settle()
    # What comes later changes nothing of why it was chosen.
    cluster.finish("p0")
    cluster.wait(60)
    name = cluster.claim_of("p1")
    async with asking(cluster) as ask:
        found = await ask("resourceclaim", name)
    said = texts(found.reason)
    assert "request gpu has gpu-1 of gpu.example.com/n0" in said
    first, chosen, rest = said[-3:]
    assert first.startswith("gpu-0: allocated to default/p0-gpu-")
    assert chosen == "gpu-1: chosen"
    assert rest == "gpu-2, gpu-3: not reached: gpu-1 was the first fit"


async def test_claims_of_one_pod_are_explained_together() -> None:
    cluster = cluster_of(nodes=1, devices=3)
    cluster.claim("a")
    cluster.claim("b")
    claims = [{"name": name, "resourceClaimName": name} for name in ("a", "b")]
    cluster.pod("both", resourceClaims=claims)
    async with asking(cluster.settle()) as ask:
        found = await ask("resourceclaim", "b")
    said = texts(found.reason)
    assert "gpu-0: taken by request gpu of claim default/a" in said
    assert "gpu-1: chosen" in said


async def test_defect_of_upstream_that_decides_is_named() -> None:
    cluster = Cluster()
    cluster.node("n0")
    numas = [{"name": f"d{n}", "attributes": {"numa": {"int": n % 2}}} for n in range(3)]
    cluster.slice("n0", numas)
    cluster.device_class()
    spec = {
        "devices": {
            "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 3}}],
            "constraints": [{"distinctAttribute": "gpu.example.com/numa"}],
        }
    }
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "claim", spec=spec)
    cluster.pod("pod", claim="claim")
    async with asking(cluster.settle()) as ask:
        claim = texts((await ask("resourceclaim", "claim")).reason)
    assert any("upstream's defect distinct-last-only took part" in text for text in claim)


async def test_selector_errors_of_many_nodes_are_one_answer() -> None:
    selectors = [{"cel": {"expression": 'device.attributes["gpu.example.com"].none == 1'}}]
    cluster = cluster_of(nodes=20, selectors=selectors)
    cluster.pod("p", template="gpu")
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p")
    _, ends, nodes = found.reason.children
    assert "ends the scheduler's attempt" in ends.text
    assert nodes.count == 20
    assert nodes.text.startswith("20 nodes (n0, n1, n2 and 17 more): ")
    assert "no such key: none" in nodes.text
    assert nodes.text.endswith("(the others alike)")


async def test_requests_that_fail_together_tell_what_was_tried() -> None:
    cluster = Cluster()
    cluster.node("n0")
    numas = [{"name": f"d{n}", "attributes": {"numa": {"int": n}}} for n in range(3)]
    cluster.slice("n0", numas)
    cluster.device_class()
    spec = {
        "devices": {
            "requests": [{"name": n, "exactly": {"deviceClassName": "gpu"}} for n in "ab"],
            "constraints": [{"matchAttribute": "gpu.example.com/numa"}],
        }
    }
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "claim", spec=spec)
    cluster.pod("pod", claim="claim")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "pod")).reason)
    assert "each request could be satisfied alone, but not all together" in said
    assert any(
        text.startswith(
            "tried d0 for request a: then request b wants 1 device, 0 of 3 can be taken"
        )
        and "constraint (gpu.example.com/numa does not match what is taken)" in text
        for text in said
    )
    assert "… given up 4 times in all" in said


async def test_help_names_the_smallest_change_and_proves_it() -> None:
    cluster = cluster_of(nodes=2, devices=2, count=3)
    cluster.pod("p", template="gpu")
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p", help=True)
    helps = found.reason.children[1]
    claim = cluster.claim_of("p")
    assert helps.text.startswith("what would help, each proved by allocating again")
    assert [child.text for child in helps.children] == [
        f"lower count to 2 in request gpu of claim default/{claim}: then it fits on n0; "
        "1 more looks the same"
    ]
    assert found.to_json()["helps"][0]["node"] == "n0"


async def test_claims_of_which_any_may_be_released_are_told_together() -> None:
    cluster = cluster_of(nodes=1, devices=5)
    for number in range(6):
        cluster.pod(f"p{number}", template="gpu")
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p5", help=True)
    assert len(found.to_json()["helps"]) == 5
    (line,) = found.reason.children[1].children
    assert line.text.startswith("release any one of 5 claims: default/p0-gpu-")
    assert line.text.endswith("and 2 more: then it fits on n0")


async def test_removing_a_taint_rule_is_a_help() -> None:
    cluster = cluster_of(nodes=1, devices=1)
    cluster.rule("bad", effect="NoSchedule")
    cluster.settle()
    cluster.pod("p", template="gpu")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p", help=True)).reason)
    assert any(text.startswith("remove devicetaintrule bad: then it fits on n0") for text in said)


async def test_cordoned_node_is_told_with_its_cure() -> None:
    cluster = cluster_of(nodes=1)
    cluster.patch("nodes", "n0", {"spec": {"unschedulable": True}})
    cluster.pod("p", template="gpu")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p", help=True)).reason)
    assert any("node(s) were unschedulable (kubectl uncordon)" in text for text in said)


async def test_evicted_pod_tells_its_device_and_who_tainted_it() -> None:
    cluster = cluster_of(nodes=1, devices=1)
    cluster.pod("p", template="gpu")
    cluster.settle()
    claim = cluster.claim_of("p")
    cluster.rule("bad", effect="NoExecute")
    cluster.wait(20)
    cluster.kill("p")
    cluster.settle()
    async with asking(cluster) as ask:
        said = texts((await ask("pod", "p")).reason)
    assert (
        f"claim {claim} has gpu.example.com/n0/gpu-0, tainted example.com/bad:NoExecute by rule bad"
    ) in said


async def test_pod_whose_claim_cannot_be_made_tells_why() -> None:
    cluster = cluster_of(nodes=1)
    cluster.pod("p", template="missing")
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p")
    assert found.text == 'pod "default/p": ResourceClaim not created yet'
    assert [child.text for child in found.reason.children] == [
        'FailedResourceClaimCreation: PodResourceClaim gpu: resource claim template "missing": '
        'resourceclaimtemplate.resource.k8s.io "missing" not found'
    ]


async def test_pod_whose_claim_ends_tells_for_whom_it_waits() -> None:
    cluster = cluster_of(nodes=1)
    cluster.claim("shared")
    cluster.pod("first", claim="shared")
    cluster.settle()
    cluster.delete("resourceclaims", "shared")
    cluster.pod("p", claim="shared")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p")).reason)
    assert "claim shared was deleted, which goes on until first end" in said


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"schedulingGates": [{"name": "example.com/a"}, {"name": "example.com/b"}]},
            "scheduling gates hold it back: example.com/a, example.com/b",
        ),
        (
            {"schedulerName": "mine"},
            "it is left to the scheduler mine, which does not run here",
        ),
    ],
)
async def test_pod_that_nobody_tries_tells_who_would_have_to(spec: JsonObject, text: str) -> None:
    cluster = cluster_of(nodes=1)
    cluster.pod("p", template="gpu", **spec)
    async with asking(cluster.settle()) as ask:
        assert (await ask("pod", "p")).text == text


async def test_bound_pod_tells_whether_it_runs() -> None:
    cluster = cluster_of(nodes=1, devices=4)
    for name in ("runs", "ends", "done"):
        cluster.pod(name, template="gpu")
    cluster.settle()
    cluster.delete("pods", "ends")
    cluster.finish("done")
    async with asking(cluster.settle()) as ask:
        told = {name: (await ask("pod", name)).text for name in ("runs", "ends", "done")}
    assert told == {
        "runs": "runs on node n0",
        "ends": "ends on node n0; its devices are free when it has",
        "done": "has ended on node n0",
    }
    cluster.delete("nodes", "n0")
    async with asking(cluster.settle()) as ask:
        text = (await ask("pod", "runs")).text
    assert text.startswith("is bound to node n0, which is gone; PodGC removes it")


async def test_running_pod_tells_when_it_will_be_evicted_and_why() -> None:
    cluster = cluster_of(nodes=1, devices=1)
    cluster.template("patient", tolerations=PATIENT)
    cluster.pod("p", template="patient")
    cluster.settle()
    cluster.rule("bad", effect="NoExecute")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p")).reason)
    assert "is to be evicted at 2026-01-02T03:01:00.000000Z: rule bad" in said


async def test_running_pod_names_a_device_that_is_published_no_more() -> None:
    cluster = cluster_of(nodes=1, devices=1)
    cluster.pod("p", template="gpu")
    cluster.settle()
    cluster.delete("resourceslices", "n0-slice")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p")).reason)
        of_claim = texts((await ask("resourceclaim", cluster.claim_of("p"))).reason)
    expected = f"{DRIVER}/n0/gpu-0 is not published any more; that alone ends no pod"
    assert expected in said
    assert expected in of_claim


async def test_rule_without_a_selector_tells_both_its_sides() -> None:
    cluster = cluster_of(nodes=1, devices=1)
    spec = {"taint": {"key": "example.com/bad", "effect": "NoExecute"}}
    cluster.create("resource.k8s.io/v1", "DeviceTaintRule", "bad", spec=spec)
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("devicetaintrule", "bad")).reason)
    assert any("evicts nobody, but new pods keep away from every device" in t for t in said)


async def test_deleted_pod_keeps_the_counted_causes_of_its_decision() -> None:
    cluster = cluster_of(nodes=1, devices=1)
    cluster.pod("first", template="gpu")
    cluster.pod("second", template="gpu")
    cluster.settle()
    cluster.delete("pods", "second")
    cluster.settle()
    async with asking(cluster) as ask:
        found = await ask("pod", "second")
    said = texts(found.reason)
    assert found.text == "is gone"
    assert any(
        "request gpu: 1 device on 1 node, such as n0: n0/gpu-0: allocated" in t for t in said
    )


@pytest.mark.parametrize(
    ("kind", "name", "problem", "text"),
    [
        ("pod", "none", NotFound, 'pods "none" not found in namespace default up to revision'),
        ("deviceclass", "none", NotFound, 'deviceclasses "none" not found up to revision'),
        ("deviceclass", "gpu", InputError, "no controller has decided about deviceclass gpu"),
        ("nonsense", "x", InputError, "there is no kind 'nonsense'"),
    ],
)
async def test_subject_that_cannot_be_explained_is_refused_in_words(
    kind: str, name: str, problem: type[Exception], text: str
) -> None:
    async with asking(cluster_of().settle()) as ask:
        with pytest.raises(problem, match=text):
            await ask(kind, name)


async def test_subject_of_another_moment_or_namespace_is_said_to_be_there() -> None:
    cluster = cluster_of()
    cluster.wait(60)
    cluster.pod("late", template="gpu")
    cluster.create("v1", "Namespace", "other")
    cluster.pod("away", namespace="other")
    async with asking(cluster.settle(), at=1) as ask:
        with pytest.raises(NotFound, match=r"; one was created later, at 2026-01-02T03:01:00Z"):
            await ask("pod", "late")
    async with asking(cluster) as ask:
        with pytest.raises(NotFound, match=r"; there is one in namespace other$"):
            await ask("pod", "away")


async def test_rule_with_many_claims_fits_a_page() -> None:
    cluster = cluster_of(nodes=10, devices=10)
    for number in range(100):
        cluster.pod(f"p{number}", template="gpu")
    cluster.settle()
    cluster.rule("bad", effect="None")
    async with asking(cluster.settle()) as ask:
        found = await ask("devicetaintrule", "bad")
    assert len(found.details["claims"]) == len(found.details["devices"]) == 100
    assert len(page("head", found.reason.children)) <= 50


async def test_answer_is_of_the_revision_at_which_it_was_asked() -> None:
    cluster = cluster_of(nodes=40)
    cluster.pod("p", template="gpu", nodeSelector={"none": "such"})
    cluster.settle()
    revision = len(cluster.line.events)
    cluster.pod("later", template="gpu")
    cluster.settle()
    views = views_up_to(cluster.line.events, revision)
    answers: list[Answer] = []
    async with asking(cluster, views=views) as ask, anyio.create_task_group() as tasks:

        async def wonder() -> None:
            answers.append(await ask("pod", "p"))

        tasks.start_soon(wonder)
        await anyio.lowlevel.checkpoint()
        while not answers:
            if views.revision < len(cluster.line.events):
                views.fold(cluster.line.events[views.revision])
            await anyio.lowlevel.checkpoint()
    assert views.revision > revision
    assert answers[0].revision == revision


async def test_others_run_while_many_nodes_are_explained() -> None:
    cluster = cluster_of(nodes=30, count=9)
    cluster.pod("p", template="gpu")
    cluster.settle()
    turns = 0
    done = anyio.Event()
    async with asking(cluster) as ask, anyio.create_task_group() as tasks:

        async def wonder() -> None:
            await ask("pod", "p")
            done.set()

        tasks.start_soon(wonder)
        while not done.is_set():
            await anyio.lowlevel.checkpoint()
            turns += 1
    assert turns >= 30
