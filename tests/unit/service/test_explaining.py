"""Why: pods that wait, claims that have devices, subjects that are gone, one question at a time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from app.analysis import device_map
from app.analysis.explain.pages import page
from app.analysis.explain.pods import ExplainBounds
from app.analysis.explain.questions import ObjectExplanation, Question, placed
from app.analysis.explain.reasons import Reason
from app.analysis.spans import Spans, begin_of_last
from app.analysis.views import LiveViews
from app.domain.controllers.registry import ControllerOptions
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.errors import InputError, NotFound
from app.domain.log import Event, ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.explaining import Explainer
from app.service.explaining.evidence import ExplainedMoment, PastMoments, Sight
from tests.cluster import DRIVER, Cluster
from tests.unit.analysis.blast.worlds import PATIENT
from tests.unit.service.test_replaying import history_of

Ask = Callable[..., Awaitable[ObjectExplanation]]


def views_up_to(events: list[Event], revision: int, profile: Profile = Profile()) -> LiveViews:
    views = LiveViews(profile)
    for event in events[:revision]:
        views.fold(event)
    return views


@asynccontextmanager
async def asking(
    cluster: Cluster,
    *,
    at: int | None = None,
    views: LiveViews | None = None,
    sight: Sight = Sight(),
    tries_max: int = 50,
    settings: JsonObject | None = None,
) -> AsyncIterator[Ask]:
    events = cluster.line.events
    log, info = await history_of(events, settings)
    asked: list[int] = []

    async def views_at(revision: Revision) -> LiveViews:
        asked.append(revision)
        return views_up_to(events, revision, cluster.profile)

    async def ask(kind: str, name: str, **how: object) -> ObjectExplanation:
        explainer = Explainer(
            log,
            info,
            views or views_up_to(events, len(events) if at is None else at, cluster.profile),
            CelCompiler(detailed_errors=True),
            cluster.profile,
            past=PastMoments(views_at, views_at),
            bounds=ExplainBounds(help_tries_max=tries_max),
            sight=sight,
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
    assert any(
        "upstream's defect Q6 (distinctAttribute remembers one value" in text for text in claim
    )


async def test_selector_errors_of_many_nodes_are_one_answer() -> None:
    selectors = [{"cel": {"expression": 'device.attributes["gpu.example.com"].none == 1'}}]
    cluster = cluster_of(nodes=20, selectors=selectors)
    cluster.pod("p", template="gpu")
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p")
    failing, ends, nodes, *_ = found.reason.children
    assert failing.text.startswith("selector #0 of request gpu of claim ")
    assert failing.text.endswith(': device.attributes["gpu.example.com"].none == 1')
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
    helps = found.reason.children[0]
    claim = cluster.claim_of("p")
    assert helps.text.startswith("what would help, each proved by allocating again")
    assert [child.text for child in helps.children] == [
        f"lower count to 2 in request gpu of claim default/{claim}: then it fits on n0; "
        "1 more looks the same"
    ]
    assert found.to_json()["helps"][0]["node"] == "n0"


@pytest.mark.parametrize(("is_gone", "cause"), [(False, "what would help"), (True, "deleted at ")])
async def test_cause_comes_before_what_was_decided_because_of_it(is_gone: bool, cause: str) -> None:
    cluster = cluster_of(nodes=2, devices=2, count=3)
    cluster.pod("p", template="gpu")
    cluster.settle()
    if is_gone:
        cluster.delete("pods", "p")
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p", help=True)
    lines = [child.text for child in found.reason.children]
    assert lines[0].startswith(cause)
    assert [line for line in lines[1:] if line.startswith("scheduling decided Unschedulable")]


async def test_claims_of_which_any_may_be_released_are_told_together() -> None:
    cluster = cluster_of(nodes=1, devices=5)
    for number in range(6):
        cluster.pod(f"p{number}", template="gpu")
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p5", help=True)
    assert len(found.to_json()["helps"]) == 5
    (line,) = found.reason.children[0].children
    assert line.text.startswith("release any one of 5 claims: default/p0-gpu-")
    assert line.text.endswith("and 2 more: then it fits on n0")


async def test_removing_a_taint_rule_is_a_help() -> None:
    cluster = cluster_of(nodes=1, devices=1)
    cluster.rule("bad", effect="NoSchedule")
    cluster.settle()
    cluster.pod("p", template="gpu")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p", help=True)).reason)
    assert any(text.startswith("remove DeviceTaintRule bad: then it fits on n0") for text in said)


async def test_cordoned_node_is_told_with_its_cure() -> None:
    cluster = cluster_of(nodes=1)
    cluster.patch("nodes", "n0", {"spec": {"unschedulable": True}})
    cluster.pod("p", template="gpu")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p", help=True)).reason)
    assert "uncordon node n0: then it fits there" in said
    assert any(text.endswith("allocating again (tried on 1 of 1 node)") for text in said)


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


async def test_pod_that_is_marked_for_disruption_is_not_said_to_run_on() -> None:
    cluster = cluster_of(nodes=1, devices=1)
    cluster.pod("p", template="gpu")
    cluster.settle()
    async with asking(cluster) as ask:
        before = (await ask("pod", "p")).text
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "Drained", "message": "m"}
    cluster.patch("pods", "p", {"status": {"conditions": [mark]}}, subresource="status")
    async with asking(cluster) as ask:
        after = (await ask("pod", "p")).text
    assert "n0" in before
    assert "disruption" not in before
    assert after == "is on node n0 and is marked for disruption: Drained"


async def test_pod_whose_claim_cannot_be_made_tells_why() -> None:
    cluster = cluster_of(nodes=1)
    cluster.pod("p", template="missing")
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p")
    assert found.text == 'pod "default/p": ResourceClaim not created yet'
    assert [child.text for child in found.reason.children][:1] == [
        'FailedResourceClaimCreation: PodResourceClaim gpu: resource claim template "missing": '
        'resourceclaimtemplate.resource.k8s.io "missing" not found'
    ]


@pytest.mark.parametrize("reads_events", [True, False])
async def test_refusal_of_a_claim_is_only_for_those_who_may_read_events(reads_events: bool) -> None:
    cluster = Cluster()
    hard = {"hard": {"count/resourceclaims.resource.k8s.io": "1"}}
    cluster.create("v1", "ResourceQuota", "secret", spec=hard)
    cluster.device_class()
    cluster.template()
    cluster.wait(5)
    for name in ("first", "second"):
        cluster.pod(name, template="gpu")
        cluster.settle()
    async with asking(cluster, sight=Sight(reads_events=reads_events)) as ask:
        answer = await ask("pod", "second", help=True)
    assert answer.text == 'pod "default/second": ResourceClaim not created yet'
    said = [text for text in texts(answer.reason) if "secret" in text or "claim controller" in text]
    assert bool(said) is reads_events
    assert ("secret" in str(answer.to_json())) is reads_events


async def test_pod_whose_claim_ends_tells_for_whom_it_waits() -> None:
    cluster = cluster_of(nodes=1)
    cluster.claim("shared")
    cluster.pod("first", claim="shared")
    cluster.settle()
    cluster.delete("resourceclaims", "shared")
    cluster.pod("p", claim="shared")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p")).reason)
    assert "claim shared was deleted; it is kept until pod first ends" in said


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"schedulingGates": [{"name": "example.com/a"}, {"name": "example.com/b"}]},
            "scheduling gates example.com/a, example.com/b hold it back",
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
        answer = await ask("pod", "p")
    assert answer.text == text
    said = texts(answer.reason)
    assert text not in said, "the headline is not repeated"
    unseen = "1 pod of namespace default names that scheduler, without a node: nothing shows that "
    assert (f"{unseen}it runs" in said) == ("schedulerName" in spec)


async def test_bound_pod_tells_whether_it_runs() -> None:
    cluster = cluster_of(nodes=1, devices=4)
    names = ("runs", "starts", "ends", "done")
    for name in names:
        cluster.pod(name, template="gpu")
    cluster.settle()
    cluster.finish("runs", "Running")
    cluster.delete("pods", "ends")
    cluster.finish("done")
    async with asking(cluster.settle()) as ask:
        told = {name: (await ask("pod", name)).text for name in names}
    assert told == {
        "runs": "runs on node n0",
        "starts": "is bound to node n0 and has not started there",
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
    assert "is to be evicted at 2026-01-02T03:01:00Z: rule bad" in said


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
    assert (found.outcome, found.text) == ("Deleted", "is gone")
    assert any(
        "request gpu: 1 device on 1 node, such as n0: n0/gpu-0: allocated" in t for t in said
    )


@pytest.mark.parametrize(
    ("condition", "outcome"),
    [
        ({"reason": "DeletionByDeviceTaintManager"}, "Evicted"),
        ({"reason": "DeletionByTaintManager"}, "Evicted"),
        ({"reason": "EvictionByEvictionAPI"}, "Evicted"),
        ({"reason": "PreemptionByScheduler"}, "Evicted"),
        ({"reason": "DeletionByPodGC"}, "Deleted"),
        ({"reason": "EvictionByEvictionAPI", "status": "False"}, "Deleted"),
        ({"reason": "EvictionByEvictionAPI", "type": "Ready"}, "Deleted"),
    ],
)
@pytest.mark.parametrize("is_decided", [False, True])
async def test_pod_that_is_gone_was_evicted_as_its_last_condition_says(
    condition: JsonObject, outcome: str, is_decided: bool
) -> None:
    """Without a decision, as in a recording that first sees it so, and behind that of its node."""
    cluster = cluster_of(nodes=1)
    cluster.pod("p", **({} if is_decided else {"nodeName": "n0"}))
    cluster.settle()
    whole = {"type": "DisruptionTarget", "status": "True", "message": "m", **condition}
    cluster.patch("pods", "p", {"status": {"conditions": [whole]}}, subresource="status")
    async with asking(cluster) as ask:
        there = await ask("pod", "p")
    cluster.kill("p")
    async with asking(cluster) as ask:
        gone = await ask("pod", "p")
    assert there.outcome == "Scheduled"
    assert gone.text == "is gone"
    assert gone.outcome == outcome


@pytest.mark.parametrize(
    ("kind", "name", "problem", "text"),
    [
        ("pod", "none", NotFound, 'pods "none" not found in namespace default up to revision'),
        ("deviceclass", "none", NotFound, 'deviceclasses "none" not found up to revision'),
        ("device", "gpu-0", InputError, "'gpu-0' names no device"),
        ("device", f"{DRIVER}/n0/none", NotFound, "pool gpu.example.com/n0 has gpu-0, gpu-1"),
        ("pool", f"{DRIVER}/none", NotFound, "no slice of pool gpu.example.com/none is published"),
        ("nonsense", "x", InputError, "there is no kind 'nonsense'"),
    ],
)
async def test_subject_that_cannot_be_explained_is_refused_in_words(
    kind: str, name: str, problem: type[Exception], text: str
) -> None:
    async with asking(cluster_of().settle()) as ask:
        with pytest.raises(problem, match=text):
            await ask(kind, name)


@pytest.mark.parametrize(
    ("kind", "name", "place"),
    [
        ("pod", "web", ("default", "web")),
        ("pod", "shop/web", ("shop", "web")),
        ("po", "shop/web", ("shop", "web")),
        ("pod", "a/b/c", ("default", "a/b/c")),
        ("pod", "/web", ("default", "/web")),
        ("device", "driver/pool/name", ("default", "driver/pool/name")),
        ("POOL", "driver/pool", ("default", "driver/pool")),
    ],
)
def test_name_as_answers_write_it_brings_its_namespace(
    kind: str, name: str, place: tuple[str, str]
) -> None:
    assert placed(kind, name, "default") == place


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
    cluster.create("v1", "Namespace", "third")
    cluster.pod("away", namespace="third")
    async with asking(cluster.settle()) as ask:
        with pytest.raises(NotFound, match=r"; there is one in namespaces other, third$"):
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
    answers: list[ObjectExplanation] = []
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


@pytest.mark.parametrize("nodes", [1, 2])
async def test_pod_that_wants_all_devices_names_the_pool_that_cannot_be_used(nodes: int) -> None:
    cluster = cluster_of(nodes=nodes, allocationMode="All")
    for number in range(nodes):
        tree = cluster.must("resourceslices", f"n{number}-slice")
        spec = tree["spec"]
        pool = {**spec["pool"], "resourceSliceCount": 2}
        cluster.update("resourceslices", {**tree, "spec": {**spec, "pool": pool}})
    cluster.pod("p", template="gpu")
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p", help=True)
        claim = await ask("resourceclaim", cluster.claim_of("p"))
    for answer in (found, claim):
        said = " ".join(texts(answer.reason))
        assert f"{DRIVER}/n0" in said
        assert "cannot be used: incomplete: 1 of 2 slices are there" in said
    assert {node["outcome"] for node in found.to_json()["nodes"]} == {"refused"}


async def test_pod_that_wants_all_of_nothing_is_not_told_that_it_could_be_satisfied() -> None:
    nothing = [{"cel": {"expression": "false"}}]
    cluster = cluster_of(nodes=1, allocationMode="All", selectors=nothing)
    cluster.pod("p", template="gpu")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p")).reason)
    assert not [text for text in said if "could be satisfied" in text or "all 0" in text]
    assert any("wants all matching devices" in text for text in said)


def limited(amount: int) -> list[JsonObject]:
    """Containers of which one wants some of the extended resource."""
    resources = {"limits": {"example.com/gpu": str(amount)}}
    return [{"name": "c", "image": "i", "resources": resources}]


def extended_cluster() -> Cluster:
    """Two nodes with two devices each, of a class that is an extended resource."""
    cluster = Cluster()
    for name in ("n0", "n1"):
        cluster.node(name)
        cluster.slice(name, 2)
    cluster.create(
        "resource.k8s.io/v1",
        "DeviceClass",
        "gpu",
        spec={"extendedResourceName": "example.com/gpu"},
    )
    cluster.template()
    return cluster


async def test_extended_resource_that_devices_cannot_serve_is_told_with_its_request() -> None:
    cluster = extended_cluster()
    cluster.pod("p", containers=limited(3))
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p", help=True)
    assert found.text == "0 of 2 nodes would take it"
    said = " ".join(texts(found.reason))
    assert "request container-0-request-0 wants 3 devices" in said
    assert "it fits" not in said.replace("then it fits", "")


async def test_class_that_was_deleted_is_named_for_the_resource_that_it_had_by_its_name() -> None:
    cluster = extended_cluster()
    resource = "deviceclass.resource.kubernetes.io/gpu"
    cluster.delete("deviceclasses", "gpu")
    cluster.pod("p", requests={resource: "1"})
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p")).reason)
    assert f"no DeviceClass stands for {resource}: DeviceClass gpu does not exist" in said
    assert any(f"DeviceClass gpu stood for {resource} until it was deleted" in one for one in said)


async def test_what_helps_a_pod_with_a_claim_and_an_extended_resource_helps_indeed() -> None:
    cluster = extended_cluster()
    cluster.delete("nodes", "n1")
    cluster.pod("holder", template="gpu")
    cluster.settle()
    cluster.pod("p", template="gpu", containers=limited(2))
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p", help=True)
    assert found.text == "it does not fit on node n0"
    released = [text for text in texts(found.reason) if text.startswith("release claim")]
    # Releasing alone leaves two devices for three.
    assert released
    less = "request 1 instead of 2 example.com/gpu in container c"
    assert all(f"and {less}" in text for text in released)


async def test_containers_that_share_devices_request_less_together() -> None:
    cluster = extended_cluster()
    first = [{**limited(3)[0], "name": "first"}]
    cluster.pod("p", containers=limited(3), initContainers=first)
    async with asking(cluster.settle()) as ask:
        helps = (await ask("pod", "p", help=True)).to_json()["helps"]
    less = "request 2 instead of 3 example.com/gpu in container"
    assert {frozenset(one["changes"]) for one in helps} == {
        frozenset((f"{less} first", f"{less} c"))
    }


async def test_nobody_can_tolerate_a_taint_for_an_extended_resource() -> None:
    cluster = extended_cluster()
    cluster.rule(effect="NoSchedule")
    cluster.pod("p", containers=limited(1))
    async with asking(cluster.settle()) as ask:
        helps = (await ask("pod", "p", help=True)).to_json()["helps"]
    assert [one["changes"] for one in helps] == [["remove DeviceTaintRule rule"]]


async def test_bound_pod_is_asked_about_other_nodes_as_of_when_it_was_placed() -> None:
    cluster = cluster_of(nodes=2, devices=1)
    cluster.pod("p", template="gpu")
    cluster.settle()
    own = cluster.must("pods", "p")["spec"]["nodeName"]
    other = "n0" if own == "n1" else "n1"
    cluster.pod("later", template="gpu")
    async with asking(cluster.settle()) as ask:
        for node in (own, other):
            text = (await ask("pod", "p", node=node)).text
            assert text.startswith("when it was placed (revision ")
            assert text.endswith(f"), it would fit on node {node}")


async def test_pod_made_for_its_node_was_never_placed() -> None:
    cluster = cluster_of(nodes=2)
    cluster.pod("p", nodeName="n0")
    async with asking(cluster.settle()) as ask:
        text = (await ask("pod", "p", node="n1")).text
    assert text == "it was made for its node, so no other was asked"


async def test_pod_that_names_a_claim_twice_is_told_so() -> None:
    cluster = cluster_of(nodes=1)
    cluster.claim("twice")
    entries = [{"name": name, "resourceClaimName": "twice"} for name in ("a", "b")]
    cluster.pod("p", resourceClaims=entries)
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p")).reason)
    assert [text for text in said if text.startswith("two entries of the pod name claim twice")]


async def test_claim_that_binds_a_pod_to_another_node_is_named_with_its_place() -> None:
    cluster = cluster_of(nodes=2, devices=1)
    cluster.claim("mine")
    cluster.pod("first", claim="mine")
    cluster.settle()
    node = cluster.must("pods", "first")["spec"]["nodeName"]
    other = "n0" if node == "n1" else "n1"
    cluster.pod("p", claim="mine", nodeSelector={"kubernetes.io/hostname": other})
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p", node=other)).reason)
    assert f"claim default/mine is allocated on node {node}, and reserved for first" in said


async def test_pool_that_disappears_for_a_newer_generation_elsewhere_is_named() -> None:
    cluster = cluster_of(nodes=2, devices=1)
    for name, generation in (("n0", 1), ("n1", 2)):
        tree = cluster.must("resourceslices", f"{name}-slice")
        pool = {"name": "one", "generation": generation, "resourceSliceCount": 2}
        cluster.delete("resourceslices", f"{name}-slice")
        cluster.create(
            "resource.k8s.io/v1",
            "ResourceSlice",
            f"{name}-of-one",
            spec={**tree["spec"], "pool": pool},
        )
    cluster.pod("p", template="gpu")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p", node="n0")).reason)
    assert (
        f"pool {DRIVER}/one cannot be used: generation 2 is already there for other nodes, so it "
        "disappears from here (known issue Q13)"
    ) in said


async def test_claim_without_requests_is_allocated_without_devices() -> None:
    cluster = cluster_of(nodes=1)
    cluster.create(
        "resource.k8s.io/v1", "ResourceClaim", "none", namespace="default", spec={"devices": {}}
    )
    cluster.pod("p", claim="none")
    async with asking(cluster.settle()) as ask:
        found = await ask("resourceclaim", "none")
    assert found.outcome == "Allocated"
    assert "is allocated without devices, because it requests none" in texts(found.reason)


async def test_claim_that_is_deleted_while_in_use_says_so() -> None:
    cluster = cluster_of(nodes=1)
    cluster.claim("mine")
    cluster.pod("p", claim="mine")
    cluster.settle()
    cluster.delete("resourceclaims", "mine")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("resourceclaim", "mine")).reason)
    protection = "resource.kubernetes.io/delete-protection"
    assert f"finalizer {protection} keeps it until p ends" in said


async def test_class_that_does_not_exist_is_what_would_help_before_nodes_are_asked() -> None:
    cluster = Cluster()
    cluster.node("n0")
    cluster.slice("n0", 2)
    cluster.template("gpu", class_name="nowhere")
    cluster.pod("p", template="gpu")
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "p", help=True)
        asked = await ask("pod", "p")
    assert "create DeviceClass nowhere" in texts(found.reason)
    assert "create DeviceClass nowhere" not in texts(asked.reason)
    cluster.device_class("nowhere")
    cluster.wait(60)
    assert cluster.must("pods", "p")["spec"]["nodeName"] == "n0"


@pytest.mark.parametrize(
    ("phase", "outcome", "text"),
    [
        ("Running", "Scheduled", "runs; its node was not recorded"),
        ("Succeeded", "Succeeded", "has finished and never had a node"),
    ],
)
async def test_pod_whose_phase_is_known_and_not_its_node_is_not_pending(phase, outcome, text):
    cluster = cluster_of()
    cluster.pod("p", template="gpu")
    cluster.patch("pods", "p", {"status": {"phase": phase}}, subresource="status")
    async with asking(cluster) as ask:
        answer = await ask("pod", "p")
    assert (answer.outcome, answer.text) == (outcome, text)
    assert "nodes" not in answer.to_json()


async def test_claim_that_is_known_to_be_allocated_and_not_with_what_is_not_pending():
    """As a table of kubectl shows it: `allocated,reserved`."""
    cluster = cluster_of()
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "c", spec={"devices": {}})
    cluster.patch("resourceclaims", "c", {"status": {"allocation": {}}}, subresource="status")
    async with asking(cluster) as ask:
        answer = await ask("resourceclaim", "c")
    assert (answer.outcome, answer.text) == ("Allocated", "its allocation names no device")


async def test_pod_made_again_has_no_attempts_of_the_earlier_one() -> None:
    """Nothing was decided about the new objects: they have other uids."""
    cluster = cluster_of()
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle()
    cluster.delete("pods", "pod", grace_seconds=0)
    cluster.settle()
    cluster.delete("resourceclaims", "claim")
    cluster.settle()
    cluster.pod(claim="claim", schedulingGates=[{"name": "example.com/wait"}])
    cluster.settle()
    async with asking(cluster) as ask:
        pod = await ask("pod", "pod")
    assert (pod.outcome, pod.text) == ("Pending", "scheduling gate example.com/wait holds it back")
    assert pod.decision is None
    assert not [text for text in texts(pod.reason) if "attempt" in text or "decided" in text]
    cluster.claim()
    async with asking(cluster) as ask:
        claim = await ask("resourceclaim", "claim")
    assert claim.decision is None
    assert not [text for text in texts(claim.reason) if "decided" in text]


async def test_partition_that_nobody_can_take_is_not_free() -> None:
    """The first partition takes the counters of the whole card; so says the map, too."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool}
    drawn = [{"counterSet": "card", "counters": {"mem": {"value": "1"}}}]
    parts = {
        "devices": [{"name": name, "consumesCounters": drawn} for name in ("a", "b")],
        "sharedCounters": [{"name": "card", "counters": {"mem": {"value": "1"}}}],
    }
    for name, part in parts.items():
        cluster.create(
            "resource.k8s.io/v1", "ResourceSlice", name.lower(), spec={**spec, name: part}
        )
    async with asking(cluster) as ask:
        free = await ask("device", f"{DRIVER}/n1/b")
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle()
    async with asking(cluster) as ask:
        blocked = await ask("device", f"{DRIVER}/n1/b")
    assert (free.outcome, free.text) == ("Free", "no claim has it")
    assert blocked.outcome == "Blocked"
    assert blocked.text.endswith("and none can: too little is left of counter card/mem")


async def test_device_of_an_invalid_pool_is_not_short_of_counters_that_nobody_uses() -> None:
    cluster = Cluster()
    drawn = {
        name: [{"counterSet": counters, "counters": {"mem": {"value": "1"}}}]
        for name, counters in (("a", "card"), ("b", "misspelt"))
    }
    parts = {
        "devices": [{"name": name, "consumesCounters": uses} for name, uses in drawn.items()],
        "sharedCounters": [{"name": "card", "counters": {"mem": {"value": "1"}}}],
    }
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool}
    for name, part in parts.items():
        cluster.create(
            "resource.k8s.io/v1", "ResourceSlice", name.lower(), spec={**spec, name: part}
        )
    wanted = device_map.DeviceMapRequest()
    shown = device_map.of("h", cluster.line.views, wanted, device_map.MapBounds())
    assert [(one.name, one.state, one.lacks) for one in shown.pools[0].devices] == [
        ("a", "unusable", ()),
        ("b", "unusable", ()),
    ]


async def test_outcome_of_a_tainted_device_is_the_word_of_the_map() -> None:
    cluster = Cluster()
    cluster.slice("n1", devices=[{"name": "a"}])
    cluster.rule(effect="NoSchedule", selector={"driver": DRIVER})
    async with asking(cluster) as ask:
        device = await ask("device", f"{DRIVER}/n1/a")
    assert device.outcome == "Tainted"
    assert device.text == "no claim has it; only claims that tolerate its taints get it"


async def test_one_slice_more_than_a_page_shows_is_one_slice() -> None:
    cluster = Cluster()
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 9}
    for number in range(9):
        spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": []}
        cluster.create("resource.k8s.io/v1", "ResourceSlice", f"s{number}", spec=spec)
    async with asking(cluster) as ask:
        answer = await ask("pool", f"{DRIVER}/n1")
    assert texts(answer.reason)[-1] == "1 more slice"


async def test_device_that_two_slices_name_counts_once() -> None:
    cluster = Cluster()
    cluster.device_class()
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [{"name": "a"}]}
    for name in ("one", "two"):
        cluster.create("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)
    async with asking(cluster) as ask:
        pool_answer = await ask("pool", f"{DRIVER}/n1")
        class_answer = await ask("deviceclass", "gpu")
        device = await ask("device", f"{DRIVER}/n1/a")
    assert "its only device is free" in texts(pool_answer.reason)
    assert class_answer.text == "selects 1 of 1 device"
    assert device.outcome == "Unusable"


async def test_devices_that_draw_different_amounts_are_not_said_to_need_the_same() -> None:
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool}
    drawn = {
        name: [{"counterSet": "card", "counters": {"mem": {"value": size}}}]
        for name, size in (("a", "4"), ("b", "4"), ("c", "1"))
    }
    parts = {
        "devices": [{"name": name, "consumesCounters": uses} for name, uses in drawn.items()],
        "sharedCounters": [{"name": "card", "counters": {"mem": {"value": "4"}}}],
    }
    for name, part in parts.items():
        cluster.create(
            "resource.k8s.io/v1", "ResourceSlice", name.lower(), spec={**spec, name: part}
        )
    for name in ("first", "second"):
        cluster.claim(name)
        cluster.pod(name, claim=name)
        cluster.settle()
    async with asking(cluster) as ask:
        said = texts((await ask("pod", "second")).reason)
    assert any("needs 4 or 1, 0 is left" in text for text in said)


async def test_choice_is_explained_when_the_pod_of_the_choice_is_gone() -> None:
    cluster = cluster_of(nodes=1)
    cluster.claim()
    for name in ("first", "second"):
        cluster.pod(name, claim="claim")
        cluster.settle()
    async with asking(cluster) as ask:
        before = texts((await ask("resourceclaim", "claim")).reason)
    cluster.delete("pods", "first", grace_seconds=0)
    cluster.settle()
    async with asking(cluster) as ask:
        after = texts((await ask("resourceclaim", "claim")).reason)
    (why,) = (text for text in before if text.startswith("why these"))
    assert why in after


@pytest.mark.parametrize("devices", [1, 2])
async def test_help_counts_the_claims_that_the_pod_has_elsewhere(devices: int) -> None:
    """Claim `there` is on node n1: on n0 the pod needs its release, too, and then two devices."""
    cluster = cluster_of(nodes=2, devices=devices)
    for name in ("held", "there", "new"):
        cluster.claim(name)
    others = [f"filler-{number}" for number in range(2 * devices - 2)]
    for name, node in (("held", "n0"), ("there", "n1")):
        cluster.pod(name, claim=name, nodeSelector={"kubernetes.io/hostname": node})
        cluster.settle()
    for name in others:
        cluster.claim(name)
        cluster.pod(name, claim=name)
        cluster.settle()
    entries = [{"name": name, "resourceClaimName": name} for name in ("there", "new")]
    cluster.pod("both", resourceClaims=entries)
    async with asking(cluster.settle()) as ask:
        answer = await ask("pod", "both", help=True)
    said = texts(answer.reason)
    told = "claim default/there is allocated, and its devices cannot be used there, either"
    assert told in said
    helps = answer.details.get("helps", [])
    for one in helps:
        # Each proved help makes the pod fit when it is done.
        released = [text.removeprefix("release claim default/") for text in one["changes"]]
        assert one["node"] == "n1" or "there" in released
    if devices == 1:
        assert not helps, "no node has two devices"
    else:
        assert helps


SPEED = f"device.attributes['{DRIVER}'].speed"


@pytest.mark.parametrize(
    ("expression", "is_named"),
    [
        (f"{SPEED} == 2", True),
        (f"device.attributes['{DRIVER}']['speed'] == 2", True),
        (f'device.attributes["{DRIVER}"].?speed.orValue(0) == 2', True),
        (f"{SPEED} == 2 && device.attributes['{DRIVER}'].size == 7", True),
        (f"device.attributes['{DRIVER}'].size == 7", False),
        (f"device.capacity['{DRIVER}'].speed.isGreaterThan(quantity('1Gi'))", False),
    ],
)
async def test_patch_of_a_value_that_a_selector_reads_is_a_cause(expression, is_named) -> None:
    """The driver publishes 2, and a patch makes it 5."""
    cluster = Cluster()
    cluster.node()
    attributes = {"speed": {"int": 2}, "size": {"int": 1}}
    capacity = {"speed": {"value": "1Gi"}}
    cluster.slice(devices=[{"name": "d", "attributes": attributes, "capacity": capacity}])
    cluster.device_class()
    spec = {
        "filter": {"driver": DRIVER}, "priority": 20,
        "attributes": {f"{DRIVER}/speed": {"int": 5}},
    }  # fmt: skip
    cluster.create("resource.k8s.io/v1alpha3", "ResourceSlicePatch", "p2", spec={"devices": spec})
    cluster.claim(selectors=[{"cel": {"expression": expression}}])
    cluster.pod("p", claim="claim")
    async with asking(cluster.settle()) as ask:
        answer = await ask("pod", "p")
    said = [text for text in texts(answer.reason) if "patch p2" in text]
    line = f"attribute {DRIVER}/speed is 5 by patch p2, priority 20; the driver published 2"
    assert said == ([line] if is_named else [])


async def test_taint_of_a_held_device_is_named_beside_its_holder() -> None:
    cluster = cluster_of(nodes=1, devices=1)
    cluster.pod("holds", template="gpu")
    cluster.settle()
    cluster.rule("service", effect="NoSchedule")
    cluster.pod("waits", template="gpu")
    async with asking(cluster.settle()) as ask:
        answer = await ask("pod", "waits")
    (held,) = [text for text in texts(answer.reason) if "allocated to default/" in text]
    assert held.endswith(" by rule service is not tolerated)")


async def test_creation_of_the_last_object_of_a_name_is_where_its_lane_begins() -> None:
    cluster = cluster_of(nodes=1)
    for _ in range(2):
        cluster.pod("again")
        cluster.wait(30)
        cluster.delete("pods", "again", grace_seconds=0)
        cluster.wait(30)
    cluster.pod("again")
    events = cluster.settle().line.events
    log, info = await history_of(events)
    pod, lanes, times = ObjectKey("", "pods", "default", "again"), Spans(), set[Instant | None]()
    for event in events:
        lanes.fold(event)
        rest: Any = None
        views: Any = SimpleNamespace(revision=event.revision)
        evidence = ExplainedMoment(log=log, info=info, views=views, past=rest, rules=rest)
        lane = lanes.lanes.get(pod)
        created = await evidence.created(pod)
        assert created == (begin_of_last(lane)[1] if lane else None)
        times.add(created)
    assert len(times) == 4


@pytest.mark.parametrize(
    ("name", "spec", "note"),
    [
        ("db-1", {}, "StatefulSet db makes its pods one by one: db-1 only when db-0 is ready"),
        ("db-2", {}, "StatefulSet db makes its pods one by one: db-2 only when db-1 is ready"),
        ("db-3", {}, ""),
        ("db-x", {}, ""),
        ("db-0", {}, ""),
        ("db-01", {}, ""),
        ("db-\u00b2", {}, ""),  # a digit that is no number
        (f"db-{'1' * 5_000}", {}, ""),  # longer than Python reads numbers
        ("other-1", {}, ""),
        ("db-4", {"podManagementPolicy": "Parallel", "replicas": 5}, ""),
    ],
)
async def test_pod_that_is_made_later_waits_for_the_one_before(name, spec, note) -> None:
    cluster = Cluster(options=ControllerOptions(off=frozenset({"stateful-sets"})))
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": []}}
    template["spec"]["containers"] = [{"name": "main", "image": "busybox:1"}]
    whole = {"replicas": 3, "selector": {"matchLabels": {"app": "db"}}, "template": template}
    cluster.create("apps/v1", "StatefulSet", "db", spec=whole | spec)
    async with asking(cluster.settle()) as ask:
        with pytest.raises(NotFound) as problem:
            await ask("pod", name)
    assert ("one by one" in str(problem.value)) == bool(note)
    assert note in str(problem.value)
