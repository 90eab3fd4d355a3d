"""Pods whose volumes have claims that are missing, lost, going or not bound."""

from typing import Any

import pytest

from app.domain.controllers.registry import ControllerOptions
from tests.cluster import Cluster

CHECKED = ControllerOptions(checks_volumes=True)
CLASSES = {"fast": "Immediate", "late": "WaitForFirstConsumer"}
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
NOT_FOUND = 'persistentvolumeclaim "data" not found'
STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
NAMED = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": STORAGE}}}


def cluster_with(*volumes: dict[str, Any], options: ControllerOptions = CHECKED) -> Cluster:
    """A node, two storage classes and the pod p, which waits for its node until `settle`."""
    cluster = Cluster(options=options)
    cluster.node()
    for name, mode in CLASSES.items():
        cluster.create("storage.k8s.io/v1", "StorageClass", name,
                       provisioner="disk.example.com", volumeBindingMode=mode)  # fmt: skip
    containers = [{"name": "c", "image": "i"}]
    cluster.create("v1", "Pod", "p", spec={"containers": containers, "volumes": [*volumes]})
    return cluster


def volume_claim(cluster: Cluster, name: str = "data", phase: str = "", **spec: object) -> None:
    cluster.create("v1", "PersistentVolumeClaim", name, spec={**STORAGE, **spec})
    if phase:
        tree = cluster.must("persistentvolumeclaims", name)
        cluster.update("persistentvolumeclaims", {**tree, "status": {"phase": phase}}, "status")


def refusal(cluster: Cluster) -> str:
    """The scheduler's text about the claims; empty when the pod has a node."""
    cluster.settle()
    if cluster.must("pods", "p")["spec"].get("nodeName"):
        return ""
    condition = cluster.pod_condition("p")
    assert condition is not None
    assert condition["reason"] == "Unschedulable"
    message: str = condition["message"]
    text, _, after = message.partition(". ")
    assert after.endswith("1 Preemption is not helpful for scheduling.")
    return text.removeprefix("0/1 nodes are available: ")


@pytest.mark.parametrize(
    ("spec", "phase", "expected"),
    [
        (None, "", NOT_FOUND),
        ({}, "", UNBOUND),
        ({"storageClassName": "fast"}, "", UNBOUND),
        ({"storageClassName": "gone"}, "", UNBOUND),
        ({"storageClassName": "late"}, "", ""),
        ({"volumeName": "pv"}, "Bound", ""),
        ({"volumeName": "pv", "storageClassName": "fast"}, "", ""),
        ({"volumeName": "pv"}, "Lost",
         'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'),
    ],
    ids=["missing", "no-class", "immediate", "class-missing", "waits-for-its-pod", "bound",
         "named-volume", "lost"],
)  # fmt: skip
def test_pod_is_refused_for_the_claim_of_its_volume(
    spec: dict[str, Any] | None, phase: str, expected: str
) -> None:
    cluster = cluster_with(NAMED)
    if spec is not None:
        volume_claim(cluster, phase=phase, **spec)
    assert refusal(cluster) == expected


def test_claim_that_is_being_deleted_places_no_further_pod() -> None:
    cluster = cluster_with(NAMED)
    volume_claim(cluster, volumeName="pv")
    assert refusal(cluster) == ""
    cluster.delete("persistentvolumeclaims", "data")
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [NAMED]}
    cluster.create("v1", "Pod", "q", spec=spec)
    cluster.settle()
    condition = cluster.pod_condition("q")
    assert condition is not None
    assert 'persistentvolumeclaim "data" is being deleted' in condition["message"]


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        (None, ""),
        ([], "PVC default/p-v was not created for pod default/p (pod is not owner)"),
        (["p"], UNBOUND),
    ],
    ids=["not-made", "of-nobody", "of-the-pod"],
)
def test_claim_of_an_ephemeral_volume_counts_as_made(
    owners: list[str] | None, expected: str
) -> None:
    """The controller that makes such claims does not exist here (A18)."""
    cluster = cluster_with(EPHEMERAL)
    if owners is not None:
        uid = cluster.must("pods", "p")["metadata"]["uid"]
        owned = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
                 for name in owners]  # fmt: skip
        metadata = {"name": "p-v", "ownerReferences": owned}
        cluster.create("v1", "PersistentVolumeClaim", "p-v", metadata=metadata, spec=STORAGE)
    assert refusal(cluster) == expected


def test_pod_is_tried_again_when_its_claim_appears_and_when_it_can_be_bound() -> None:
    cluster = cluster_with(NAMED, {"name": "w", "persistentVolumeClaim": {"claimName": "other"}})
    volume_claim(cluster, "other", storageClassName="late")
    assert refusal(cluster) == NOT_FOUND
    attempts = len(cluster.decisions("scheduling"))
    volume_claim(cluster, "unrelated")
    cluster.wait(30)
    assert len(cluster.decisions("scheduling")) == attempts
    volume_claim(cluster, storageClassName="soon")
    cluster.wait(30)
    assert refusal(cluster) == UNBOUND
    cluster.create("storage.k8s.io/v1", "StorageClass", "soon", provisioner="disk.example.com",
                   volumeBindingMode="WaitForFirstConsumer")  # fmt: skip
    cluster.wait(30)
    assert refusal(cluster) == ""


def test_history_without_the_setting_places_pods_as_before() -> None:
    """Decisions of older histories come out again as they were made."""
    assert refusal(cluster_with(NAMED, options=ControllerOptions())) == ""
    assert not ControllerOptions().checks_volumes
