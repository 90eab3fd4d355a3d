"""Whole courses of workloads: all that their controllers write in small clusters, kept as text."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.domain.log import EventType
from app.domain.objects.write.commands import Propagation
from app.domain.values.json_tree import JsonObject
from tests.cluster import T0, Cluster
from tests.unit.analysis import kept_texts
from tests.unit.workloads.test_workloads import cluster_of, job_template, template, workload

FILE = Path(__file__).with_name("whole_courses.txt")
CONTROLLERS = frozenset(
    f"system:serviceaccount:kube-system:{name}-controller"
    for name in (
        "deployment",
        "replicaset",
        "statefulset",
        "daemon-set",
        "job",
        "ttl-after-finished",
    )
)
HIDDEN = frozenset({"uid", "resourceVersion", "creationTimestamp", "managedFields"})
"""Fields of the metadata, and of references, that say nothing of a rule."""


def leaves(tree: object, path: str = "") -> Iterator[tuple[str, object]]:
    """The values of a tree, each with its path."""
    if isinstance(tree, dict) and tree:
        for name in sorted(tree):
            if name not in HIDDEN:
                yield from leaves(tree[name], f"{path}.{name}" if path else name)
    elif isinstance(tree, list) and tree:
        for index, value in enumerate(tree):
            yield from leaves(value, f"{path}[{index}]")
    else:
        yield path, tree


def course(cluster: Cluster) -> str:
    """The writes of the controllers of workloads, with what each changes.

    Of an object that they create, it is what the first one of its kind had not.
    """
    lines: list[str] = []
    shown: dict[object, dict[str, object]] = {}
    for event in cluster.line.events:
        if not event.is_about_object:
            continue
        tree, resource = event.object, event.key.resource
        now = dict(leaves(tree))
        is_new = event.type is EventType.OBJECT_CREATED
        before = shown.get(resource if is_new else event.key, {})
        shown[event.key] = now
        if event.stamp.actor.user not in CONTROLLERS:
            continue
        seconds = (event.stamp.time - T0) / 1_000_000
        if resource == "events":
            about = tree["involvedObject"]
            subject = f"{about['apiVersion']} {about['kind']} {about['namespace']}/{about['name']}"
            count = tree.get("count", 1)
            lines.append(
                f"{seconds:g} s: {tree['source']['component']} says of {subject}: {tree['type']} "
                f"{tree['reason']}: {tree['message']} ({count})"
            )
            continue
        lines.append(f"{seconds:g} s: {event.stamp.verb} {resource}/{event.key.name}")
        if event.type is EventType.OBJECT_DELETED or event.stamp.verb == "delete":
            continue
        shown.setdefault(resource, now)
        lines += [
            f"    {path}: {value!r}"
            for path, value in now.items()
            if before.get(path, ...) != value and path not in ("metadata.name", "kind")
        ]
        lines += [f"    {path} is gone" for path in before if path not in now]
    return "\n".join(lines)


def image(cluster: Cluster, resource: str, version: int) -> None:
    containers = [{"name": "main", "image": f"busybox:{version}"}]
    body: JsonObject = {"spec": {"template": {"spec": {"containers": containers}}}}
    cluster.patch(resource, "web", body)


def rolled() -> Cluster:
    """A Deployment that is rolled out three times, keeps one old set, is paused and scaled."""
    cluster = cluster_of()
    described = template()
    described["metadata"]["annotations"] = {"note": "kept"}
    workload(
        cluster,
        "Deployment",
        replicas=3,
        pod=described,
        revisionHistoryLimit=1,
        minReadySeconds=2,
        strategy={
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "34%"},
        },
    )
    for version in (2, 3):
        cluster.wait(30)
        image(cluster, "deployments", version)
    cluster.wait(30)
    cluster.patch("deployments", "web", {"spec": {"paused": True, "replicas": 5}})
    cluster.wait(5)
    image(cluster, "deployments", 2)
    cluster.wait(5)
    cluster.patch("deployments", "web", {"spec": {"paused": None}})
    return cluster.wait(60)


def recreated() -> Cluster:
    """A Deployment that is recreated, and does not come up in time."""
    cluster = cluster_of(nodes=1)
    workload(
        cluster,
        "Deployment",
        replicas=2,
        strategy={"type": "Recreate"},
        progressDeadlineSeconds=20,
    )
    cluster.wait(10)
    cluster.delete("nodes", "n1")
    image(cluster, "deployments", 2)
    cluster.wait(120)
    cluster.node("n2")
    return cluster.wait(30)


def replaced() -> Cluster:
    """A ReplicaSet whose pods fail, are deleted and become fewer, and one that may make no pod."""
    cluster = cluster_of()
    workload(cluster, "ReplicaSet", replicas=4, minReadySeconds=3)
    cluster.wait(10)
    first, second, *_ = cluster.names("pods")
    cluster.finish(first, "Failed")
    cluster.delete("pods", second)
    cluster.wait(40)
    costly = {"controller.kubernetes.io/pod-deletion-cost": "5"}
    cluster.patch("pods", cluster.names("pods")[-1], {"metadata": {"annotations": costly}})
    cluster.patch("replicasets", "web", {"spec": {"replicas": 1}})
    cluster.wait(40)
    cluster.create("v1", "ResourceQuota", "q", spec={"hard": {"pods": "0"}})
    cluster.patch("replicasets", "web", {"spec": {"replicas": 3}})
    cluster.wait(5)
    cluster.patch("resourcequotas", "q", {"spec": {"hard": {"pods": "9"}}})
    return cluster.wait(30)


def ordered() -> Cluster:
    """A StatefulSet with volumes that begins at 5, is updated down to a partition, and shrinks."""
    cluster = cluster_of()
    volume = {
        "metadata": {"name": "data", "labels": {"of": "web"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    workload(
        cluster,
        "StatefulSet",
        replicas=3,
        serviceName="headless",
        podManagementPolicy="Parallel",
        ordinals={"start": 5},
        volumeClaimTemplates=[volume],
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 6}},
    )
    for name in cluster.settle().names("persistentvolumeclaims"):
        cluster.patch(
            "persistentvolumeclaims", name, {"status": {"phase": "Bound"}}, subresource="status"
        )
    cluster.wait(20)
    image(cluster, "statefulsets", 2)
    cluster.wait(120)
    cluster.patch(
        "statefulsets", "web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}
    )
    cluster.wait(120)
    cluster.patch("statefulsets", "web", {"spec": {"replicas": 1}})
    return cluster.wait(90)


def scaled_to_none() -> Cluster:
    """A ReplicaSet, a StatefulSet with a dash in its name and a Deployment that lose all pods."""
    cluster = cluster_of()
    for kind, name in (("ReplicaSet", "web"), ("StatefulSet", "my-web"), ("Deployment", "web")):
        pod = template()
        pod["metadata"]["labels"] |= {"of": kind}
        workload(cluster, kind, name, pod, replicas=2)
    cluster.wait(60)
    for resource, name in (
        ("replicasets", "web"),
        ("statefulsets", "my-web"),
        ("deployments", "web"),
    ):
        cluster.patch(resource, name, {"spec": {"replicas": 0}})
    return cluster.wait(90)


def parallel() -> Cluster:
    """A parallel StatefulSet of which a quota lets two pods in, both of which fail at once."""
    cluster = cluster_of()
    cluster.create("v1", "ResourceQuota", "q", spec={"hard": {"pods": "2"}})
    workload(cluster, "StatefulSet", replicas=3, serviceName="web", podManagementPolicy="Parallel")
    cluster.wait(2)
    cluster.patch("resourcequotas", "q", {"spec": {"hard": {"pods": "4"}}})
    cluster.wait(30)
    for name in ("web-0", "web-1"):
        cluster.finish(name, "Failed")
    return cluster.wait(30)


def behind() -> Cluster:
    """A StatefulSet whose pod below the partition is made again as it was."""
    cluster = cluster_of()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    workload(cluster, "StatefulSet", replicas=2, serviceName="web", updateStrategy=strategy)
    cluster.wait(20)
    image(cluster, "statefulsets", 2)
    cluster.wait(60)
    cluster.delete("pods", "web-0")
    return cluster.wait(60)


def one_by_one() -> Cluster:
    """A StatefulSet whose pods come and are updated one by one, fail, and are told to wait."""
    cluster = cluster_of()
    workload(cluster, "StatefulSet", replicas=2, serviceName="web", minReadySeconds=4)
    cluster.wait(30)
    image(cluster, "statefulsets", 2)
    cluster.wait(120)
    cluster.finish("web-0", "Failed")
    cluster.wait(30)
    cluster.patch("statefulsets", "web", {"spec": {"updateStrategy": {"type": "OnDelete"}}})
    image(cluster, "statefulsets", 3)
    cluster.wait(20)
    cluster.delete("pods", "web-1")
    return cluster.wait(60)


def on_each_node(**strategy: object) -> Cluster:
    """A DaemonSet that is updated, whose nodes come, are tainted and go."""
    cluster = cluster_of(nodes=4)
    workload(cluster, "DaemonSet", updateStrategy=strategy, minReadySeconds=2)
    cluster.wait(20)
    image(cluster, "daemonsets", 2)
    cluster.wait(60)
    cluster.finish(cluster.names("pods")[0], "Failed")
    taint = {"key": "k", "value": "v", "effect": "NoExecute"}
    cluster.patch("nodes", "n2", {"spec": {"taints": [taint]}}, namespace="")
    cluster.node("n5")
    cluster.wait(60)
    cluster.delete("nodes", "n1")
    cluster.wait(60)
    image(cluster, "daemonsets", 3)
    return cluster.wait(120)


def completed() -> Cluster:
    """A Job of five completions that is suspended, resumed, and removed in the end."""
    cluster = cluster_of()
    workload(
        cluster,
        "Job",
        pod=job_template("12"),
        completions=5,
        parallelism=2,
        ttlSecondsAfterFinished=20,
    )
    cluster.wait(5)
    cluster.patch("jobs", "web", {"spec": {"suspend": True}})
    cluster.wait(60)
    cluster.patch("jobs", "web", {"spec": {"suspend": False}})
    cluster.wait(30)
    cluster.patch("jobs", "web", {"spec": {"parallelism": 1}})
    return cluster.wait(120)


def failing() -> Cluster:
    """A Job whose pods fail too often, each after a longer pause."""
    cluster = cluster_of()
    workload(cluster, "Job", pod=job_template("4", "3"), backoffLimit=2, parallelism=2)
    return cluster.wait(200)


def indexed() -> Cluster:
    """An indexed Job, one of whose pods is deleted, with a policy for failures."""
    cluster = cluster_of()
    rules = [
        {
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        },
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]
    workload(
        cluster,
        "Job",
        pod=job_template("10"),
        completions=4,
        parallelism=3,
        completionMode="Indexed",
        podFailurePolicy={"rules": rules},
    )
    cluster.wait(4)
    cluster.delete("pods", cluster.names("pods")[1])
    return cluster.wait(120)


def failed_by_policy() -> Cluster:
    """A Job that one exit code fails as a whole."""
    cluster = cluster_of()
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    workload(
        cluster,
        "Job",
        pod=job_template("6", "42"),
        parallelism=2,
        completions=2,
        podFailurePolicy={"rules": rules},
    )
    return cluster.wait(60)


def late() -> Cluster:
    """A Job that is not done in time."""
    cluster = cluster_of()
    workload(cluster, "Job", pod=job_template("1000"), parallelism=2, activeDeadlineSeconds=15)
    return cluster.wait(90)


def deleted() -> Cluster:
    """Workloads that are deleted with and without their pods."""
    cluster = cluster_of()
    workload(cluster, "Deployment", replicas=2)
    workload(cluster, "Job", "batch", pod=job_template("1000"))
    cluster.wait(10)
    cluster.delete("deployments", "web", propagation=Propagation.ORPHAN)
    cluster.delete("jobs", "batch")
    return cluster.wait(60)


STORIES: dict[str, Callable[[], Cluster]] = {
    "a Deployment is rolled out, paused and scaled": rolled,
    "a Deployment is recreated and does not come up in time": recreated,
    "a ReplicaSet replaces pods and may not make some": replaced,
    "a StatefulSet with volumes is updated down to a partition": ordered,
    "a StatefulSet goes one by one": one_by_one,
    "a StatefulSet may not make all of its pods at once": parallel,
    "a StatefulSet makes a pod below its partition again": behind,
    "workloads are scaled to none": scaled_to_none,
    "a DaemonSet has half of its pods away at most": lambda: on_each_node(
        type="RollingUpdate", rollingUpdate={"maxUnavailable": "50%"}
    ),
    "a DaemonSet ends its pods before it replaces them in spite of maxSurge": lambda: on_each_node(
        type="RollingUpdate", rollingUpdate={"maxSurge": 1, "maxUnavailable": 0}
    ),
    "a DaemonSet is updated by hand": lambda: on_each_node(type="OnDelete"),
    "a Job is suspended, resumed and removed": completed,
    "a Job fails too often": failing,
    "an indexed Job loses a pod": indexed,
    "a Job fails by its policy": failed_by_policy,
    "a Job is late": late,
    "workloads are deleted": deleted,
}


@pytest.mark.parametrize("name", STORIES)
def test_controllers_of_workloads_write_as_was_read(name: str) -> None:
    kept_texts.check(FILE, name, course(STORIES[name]()), STORIES)


def test_each_kept_course_has_its_story() -> None:
    assert list(kept_texts.kept(FILE)) == list(STORIES)
