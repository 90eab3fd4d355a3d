"""Published manifests with workloads: each makes the pods it asks for, without a refusal."""

from pathlib import Path

import pytest
import yaml

from app.domain.controllers.workloads import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.objects.write.commands import CreateObject
from app.domain.values import json_tree
from tests import draws
from tests.cluster import USER, Cluster
from tests.shared_data import shared_path

KINDS = {
    workload.kind: workload
    for workload in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS)
}
FILES_MIN = 40
MISTAKEN = "4815-dra-partitionable-devices/README.md/06.yaml"
"""Wraps a required term of affinity as a preferred one is wrapped, which no server accepts."""


def documents(path: Path) -> list[dict]:
    try:
        found = list(yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader))
    except yaml.YAMLError:
        return []  # templates of another tool
    return [tree for tree in found if isinstance(tree, dict) and "kind" in tree]


def manifests() -> list[Path]:
    """Files of the corpus that hold a workload of ours."""
    return [
        path
        for path in sorted(shared_path("corpus").rglob("*.yaml"))
        if any(
            tree["kind"] in KINDS and tree.get("apiVersion") == KINDS[tree["kind"]].api_version
            for tree in documents(path)
        )
    ]


def create(cluster: Cluster, tree: dict) -> None:
    """Create namespaces and workloads; pods are made whether their claims can be or not."""
    group, _, version = tree["apiVersion"].rpartition("/")
    kind = registry.find_kind(group, version, tree["kind"])
    if kind is None or kind.kind not in {*KINDS, "Namespace"}:
        return
    namespace = ""
    if kind.namespaced:
        namespace = tree["metadata"].setdefault("namespace", "default")
        if cluster.get("namespaces", namespace) is None:
            cluster.create("v1", "Namespace", namespace)
    name = tree["metadata"].get("name", "")
    if kind.kind == "Namespace" and cluster.get("namespaces", name) is not None:
        return
    key = ObjectKey(group, kind.plural, namespace, name)
    cluster.line.submit(CreateObject(key=key, version=version, tree=tree), actor=USER)


def expected(tree: dict, nodes: int) -> int:
    spec = tree["spec"]
    if tree["kind"] == "DaemonSet":
        return nodes
    if tree["kind"] == "Job":
        if spec.get("suspend"):
            return 0
        return min(spec.get("parallelism", 1), spec.get("completions", 1_000))
    if tree["kind"] == "StatefulSet" and spec.get("podManagementPolicy") != "Parallel":
        return 1  # the first of them; nothing tells it to start
    return int(spec.get("replicas", 1))


@draws.in_turn("ways")
def test_every_manifest_makes_the_pods_it_asks_for():
    paths = manifests()
    assert len(paths) >= FILES_MIN
    problems: list[str] = []
    for path in paths:
        if str(path).endswith(MISTAKEN):
            continue
        cluster = Cluster()
        cluster.node("n1", cpu="256")
        wanted = 0
        for tree in documents(path):
            create(cluster, tree)
            if tree["kind"] in KINDS:
                place = KINDS[tree["kind"]]
                if tree["apiVersion"] == place.api_version:
                    wanted += expected(tree, nodes=1)
        cluster.settle()
        objects = cluster.line.views.objects
        pods = [objects.get(key) for key in objects.keys("", "pods")]
        made = sum(
            1 for pod in pods if pod and json_tree.objects(pod, "metadata", "ownerReferences")
        )
        if made != wanted or cluster.line.refusals:
            refused = [text for _, text in cluster.line.refusals]
            problems.append(f"{path}: {made} pods of {wanted}, refused: {refused}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("running", [1, 2])
def test_anti_affinity_of_the_multi_host_example_spreads_its_pods(running):
    """KEP-4815: two pods share a claim of two hosts, one pod on each."""
    cluster = Cluster(kubelet=True)
    for number in range(running):
        cluster.node(f"n{number}")
    path = shared_path("corpus") / (
        "kubernetes__enhancements/keps/sig-scheduling/4815-dra-partitionable-devices/README.md"
    )
    deployment = documents(path / "06.yaml")[0]
    terms = deployment["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    # The KEP's text wraps the term as a preferred one is wrapped, which no server accepts.
    terms[key] = [term["podAffinityTerm"] for term in terms[key]]
    del deployment["spec"]["template"]["spec"]["resourceClaims"]
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        container.pop("resources")
    cluster.apply(deployment)
    cluster.settle()
    pods = [cluster.must("pods", name) for name in cluster.names("pods")]
    nodes = [pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]]
    assert len(pods) == 2
    assert len(nodes) == len(set(nodes)) == running
