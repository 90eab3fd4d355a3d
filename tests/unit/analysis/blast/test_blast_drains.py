"""Nodes that are drained, where the verdict is planted."""

import pytest

from app.analysis.blast import text
from app.analysis.blast.compare import ProposedDrain
from app.analysis.blast.radius import Fate, Prospect
from app.domain.errors import NotFound
from app.domain.values.json_tree import JsonObject
from tests.cluster import DRIVER, Cluster
from tests.unit.analysis.blast.worlds import ask

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def drained(*, needs: int = 0, devices: int = 2) -> Cluster:
    """Two ready pods with devices on the only node, and a pod that waits for one."""
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    cluster.node("n1", pods=20)
    cluster.slice("n1", devices=devices)
    for name in ("a", "b"):
        cluster.pod(name, template="gpu")
    cluster.settle()
    for name in ("a", "b"):
        cluster.patch("pods", name, {"status": READY}, subresource="status")
    if needs:
        spec = {"selector": {}, "minAvailable": needs}
        cluster.create("policy/v1", "PodDisruptionBudget", "keeps", spec=spec)
    return cluster.settle()


def fates(cluster: Cluster, node: str = "n1") -> dict[str, Fate]:
    return {pod.name: pod.fate for pod in ask(cluster, ProposedDrain(node=node)).pods}


def other_pod(cluster: Cluster, name: str, metadata: JsonObject, **spec: object) -> None:
    container = {"name": "main", "image": "busybox:1"}
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"nodeName": "n1", "containers": [container], **spec},
    }
    cluster.apply(tree)
    cluster.settle()


def workload(kind: str, cluster: Cluster, **more: object) -> None:
    labels = {"app": "many"}
    containers = [{"name": "main", "image": "busybox:1"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": labels}, "template": template, **more}
    cluster.create("apps/v1", kind, "many", spec=spec)
    cluster.settle()


def test_devices_of_a_drained_node_go_to_nobody():
    cluster = drained()
    cluster.claim("shared")
    cluster.pod("waits", claim="shared")
    cluster.settle()
    assert fates(cluster) == {"a": Fate.DRAINED, "b": Fate.DRAINED}
    # The node that has the devices takes no pod any more.
    assert not ask(cluster, ProposedDrain(node="n1")).waiting


def test_budget_keeps_pods_and_is_named():
    answer = ask(drained(needs=1), ProposedDrain(node="n1"))
    assert [(pod.name, pod.fate) for pod in answer.pods] == [
        ("a", Fate.DRAINED),
        ("b", Fate.PROTECTED),
    ]
    assert (answer.totals["pods_evicted"], answer.totals["pods_protected"]) == (1, 1)
    page = list(text.lines(answer, 5))
    assert page[:2] == [
        "Node n1: would be drained",
        "  warning: kubectl drain needs --force: no controller makes default/a, default/b again",
    ]
    refusal = "The disruption budget keeps does not allow evicting pods currently"
    assert [pod.reasons for pod in answer.pods] == [(), (refusal,)]
    assert f"  default/b on n1, kept by a disruption budget: {refusal}" in page


def test_budget_that_lets_nobody_go_keeps_all():
    answer = ask(drained(needs=2), ProposedDrain(node="n1"))
    refusal = "The disruption budget keeps needs 2 healthy pods and has 2 currently"
    assert [(pod.name, pod.fate, pod.reasons) for pod in answer.pods] == [
        ("a", Fate.PROTECTED, (refusal,)),
        ("b", Fate.PROTECTED, (refusal,)),
    ]
    assert answer.totals["pods_evicted"] == 0
    assert answer.effects[0].action == "drained"


def test_pods_of_daemon_sets_and_mirror_pods_stay():
    cluster = drained()
    workload("DaemonSet", cluster)
    other_pod(cluster, "mirror", {"annotations": {"kubernetes.io/config.mirror": "x"}})
    other_pod(cluster, "scratch", {}, volumes=[{"name": "s", "emptyDir": {}}])
    (daemon,) = [name for name in cluster.names("pods") if name.startswith("many")]
    answer = ask(cluster, ProposedDrain(node="n1"))
    assert {pod.name for pod in answer.pods} == {"a", "b", "scratch"}
    assert answer.effects[0].warnings == (
        "kubectl drain needs --force: no controller makes default/a, default/b, default/scratch "
        "again",
        "kubectl drain needs --delete-emptydir-data, which is lost: default/scratch",
        f"kubectl drain needs --ignore-daemonsets, and leaves default/{daemon}",
    )


def test_pods_that_are_made_again_are_counted_and_not_placed():
    cluster = drained()
    workload("ReplicaSet", cluster, replicas=2)
    warnings = ask(cluster, ProposedDrain(node="n1")).effects[0].warnings
    assert warnings[-1] == (
        "2 pods have a controller that creates another one, which is not considered"
    )


def test_node_that_is_not_there_is_refused():
    with pytest.raises(NotFound):
        fates(drained(), "none")


def test_devices_that_every_node_reaches_go_to_a_pod_that_waits():
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    cluster.node("n1", pods=20)
    spec = {
        "driver": DRIVER,
        "allNodes": True,
        "pool": {"name": "far", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    }
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "far", spec=spec)
    cluster.pod("holds", template="gpu")
    cluster.settle()
    cluster.node("n2", pods=20)
    cluster.pod("waits", template="gpu")
    cluster.settle()
    answer = ask(cluster, ProposedDrain(node="n1"))
    assert [(pod.name, pod.fate) for pod in answer.pods] == [("holds", Fate.DRAINED)]
    assert [(pod.name, pod.prospect, pod.node) for pod in answer.waiting] == [
        ("waits", Prospect.FREED, "n2")
    ]
