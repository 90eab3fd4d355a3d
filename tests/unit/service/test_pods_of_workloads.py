"""The pods of a workload that are gone: which are its own, what ended them, what was not read."""

from collections.abc import Sequence

import pytest

from app.analysis.explain.pods import ExplainBounds
from app.analysis.explain.questions import Question
from app.analysis.explain.reasons import Reason
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import Actor, Event, ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import CreateObject, DeleteObject
from app.domain.values.json_tree import JsonObject
from app.service.explaining import Explainer
from app.service.explaining.evidence import PastMoments
from tests.cluster import USER, Cluster
from tests.unit.service.test_explaining import views_up_to
from tests.unit.service.test_replaying import history_of

SPEC = {"containers": [{"name": "main", "image": "e:1"}]}
RUNS = {"group": "x.test", "scope": "Namespaced",
        "names": {"plural": "runs", "singular": "run", "kind": "Run"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
            "openAPIV3Schema": {"type": "object",
                                "x-kubernetes-preserve-unknown-fields": True}}}]}  # fmt: skip


def owned(
    cluster: Cluster, owner: JsonObject, *names: str, namespace: str = "default", **spec: object
) -> None:
    """Pods of an owner, which is their controller."""
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True,
                 "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}  # fmt: skip
    for name in names:
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [reference]}
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                       "spec": {**SPEC, **spec}})  # fmt: skip


def made(cluster: Cluster, resource: str, tree: JsonObject) -> JsonObject:
    """An object of a kind that `Cluster` does not know by name."""
    group, _, version = tree["apiVersion"].rpartition("/")
    metadata = tree["metadata"]
    key = ObjectKey(group, resource, metadata.get("namespace", ""), metadata["name"])
    outcome = cluster.line.submit(CreateObject(key=key, version=version, tree=tree), actor=USER)
    assert outcome.tree is not None
    return outcome.tree


def nightly(cluster: Cluster, namespace: str = "default") -> JsonObject:
    """A CronJob: its controller is not emulated, and does not interfere."""
    jobs = {"spec": {"template": {"spec": {**SPEC, "restartPolicy": "Never"}}}}
    tree = {"apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": "nightly", "namespace": namespace},
            "spec": {"schedule": "0 3 * * *", "jobTemplate": jobs}}  # fmt: skip
    return made(cluster, "cronjobs", tree)


def run(cluster: Cluster) -> JsonObject:
    """An object of a custom kind."""
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                  "metadata": {"name": "runs.x.test"}, "spec": RUNS}  # fmt: skip
    made(cluster, "customresourcedefinitions", definition)
    cluster.settle()
    metadata = {"name": "demo", "namespace": "default"}
    return made(cluster, "runs", {"apiVersion": "x.test/v1", "kind": "Run", "metadata": metadata})


async def why(
    events: Sequence[Event], kind: str, name: str, namespace: str = "default", **bounds: int
) -> list[str]:
    """The reasons of the answer, in any depth."""
    log, info = await history_of(events)
    views = views_up_to(events, len(events))

    async def views_at(revision: Revision):
        return views_up_to(events, revision)

    explainer = Explainer(
        log, info, views, CelCompiler(detailed_errors=True), Profile(),
        past=PastMoments(views_at, views_at),
        bounds=ExplainBounds(**bounds),
    )  # fmt: skip
    answer = await explainer.why(Question(kind=kind, namespace=namespace, name=name))

    def lines(reason: Reason) -> list[str]:
        return [reason.text, *(line for child in reason.children for line in lines(child))]

    return lines(answer.reason)


def with_gone(names: Sequence[str], namespace: str = "default") -> Cluster:
    cluster = Cluster(namespaces=("default", "other"))
    owned(cluster, nightly(cluster, namespace), *names, namespace=namespace)
    for name in names:
        cluster.delete("pods", name, namespace, grace_seconds=0)
    return cluster


def starts(lines: Sequence[str], text: str) -> list[str]:
    return [line for line in lines if line.startswith(text)]


async def test_pods_of_other_namespaces_keep_no_pod_of_a_workload_from_being_read() -> None:
    cluster = with_gone(["nightly-1"], namespace="other")
    for number in range(5):
        cluster.pod(f"a{number}")
    lines = await why(cluster.line.events, "cronjob", "nightly", "other", names_max=3)
    assert starts(lines, "1 pod was deleted by ")
    assert not [line for line in lines if "looked at" in line]


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"cause_workload_pods_max": 3}, "1 more pod whose names begin alike was not looked at"),
        ({"cause_workload_pods_max": 1, "names_max": 3},
         "at least 2 more pods whose names begin alike were not looked at"),
        ({"names_max": 4}, "there may be more pods whose names begin alike: not all were looked "
                           "at"),
        ({}, None),
    ],
)  # fmt: skip
async def test_answer_that_reads_a_part_of_the_names_says_so(
    bounds: dict[str, int], said: str | None
) -> None:
    events = with_gone([f"nightly-{number}" for number in range(4)]).line.events
    lines = await why(events, "cronjob", "nightly", **bounds)
    assert [line for line in lines if "looked at" in line] == ([said] if said else [])


async def test_of_many_pods_that_are_gone_the_answer_is_about_the_last() -> None:
    """By name the first one would come first, which went when nobody remembers it any more."""
    events = with_gone(["nightly-1", "nightly-5", "nightly-9"]).line.events
    lines = await why(events, "cronjob", "nightly", cause_workload_pods_max=1)
    (deleted,) = starts(lines, "1 pod was deleted by ")
    assert "nightly-9" in deleted


async def test_pods_of_a_custom_kind_may_have_any_names() -> None:
    cluster = Cluster()
    owned(cluster, run(cluster), "worker-a", "worker-b")
    cluster.delete("pods", "worker-a", grace_seconds=0)
    lines = await why(cluster.line.events, "run", "demo")
    assert starts(lines, "1 pod was deleted by ")
    assert any("is waiting" in line and "worker-b" in line for line in lines)
    assert await why(cluster.line.events, "runs.x.test", "demo") == lines


async def test_pod_before_one_of_the_same_name_is_read_or_said_to_be_cut() -> None:
    cluster = Cluster()
    owner = run(cluster)
    owned(cluster, owner, "worker")
    cluster.delete("pods", "worker", grace_seconds=0)
    owned(cluster, owner, "worker")
    assert starts(await why(cluster.line.events, "run", "demo"), "1 pod was deleted by ")
    for number in range(4):
        cluster.patch("pods", "worker", {"metadata": {"labels": {"n": str(number)}}})
    lines = await why(cluster.line.events, "run", "demo", cause_changes_max=3)
    assert "only the last 3 events of pod default/worker were looked at" in lines


async def test_pod_failed_only_if_it_did_so_before_it_was_asked_to_go() -> None:
    cluster = Cluster()
    cluster.node("n1")
    owned(cluster, nightly(cluster), "nightly-1", "nightly-2", nodeName="n1")
    end = {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    failed = {"status": {"phase": "Failed", "containerStatuses": [end]}}
    cluster.patch("pods", "nightly-1", failed, subresource="status")
    cluster.delete("pods", "nightly-1", grace_seconds=0)
    cluster.delete("pods", "nightly-2", grace_seconds=30)
    cluster.patch("pods", "nightly-2", failed, subresource="status")
    lines = await why(cluster.line.events, "cronjob", "nightly")
    assert starts(lines, "1 pod is being deleted: "), "its own end made it fail"
    cluster.delete("pods", "nightly-2", grace_seconds=0)
    lines = await why(cluster.line.events, "cronjob", "nightly")
    told = {
        name: next(line for line in starts(lines, "1 pod was deleted by ") if name in line)
        for name in ("nightly-1", "nightly-2")
    }
    assert " after it had failed: exit code 137 (Error): " in told["nightly-1"]
    assert "failed" not in told["nightly-2"]


KUBELET = Actor(user="system:node:n1", groups=("system:nodes",), agent="kubelet")


async def test_deletion_is_forced_only_if_somebody_gave_up_the_grace_period() -> None:
    cluster = Cluster()
    cluster.node("n1")
    owner = nightly(cluster)
    owned(cluster, owner, "nightly-waiting")
    owned(cluster, owner, "nightly-done", "nightly-ended", "nightly-forced", nodeName="n1")
    cluster.finish("nightly-done")
    for name in ("waiting", "done", "ended"):
        cluster.delete("pods", f"nightly-{name}")
    cluster.delete("pods", "nightly-forced", grace_seconds=0)
    end = DeleteObject(key=ObjectKey("", "pods", "default", "nightly-ended"), grace_seconds=0)
    cluster.line.submit(end, actor=KUBELET)

    async def told(name: str) -> str:
        return " ".join(await why(cluster.line.events, "pod", f"nightly-{name}"))

    assert "(no grace period: it had no node)" in await told("waiting")
    assert "(no grace period: it had finished)" in await told("done")
    assert "the grace period became 0 s by system:node:n1" in await told("ended")
    assert "(forced: no grace period)" in await told("forced")
    for name in ("waiting", "done", "ended"):
        assert "forced" not in await told(name)
