"""Volumes and claims of volumes that are deleted while somebody uses them."""

import pytest

from tests.cluster import Cluster

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
MODES = {"accessModes": ["ReadWriteOnce"]}


def claim_of(cluster: Cluster, name: str = "data") -> None:
    spec = MODES | {"resources": {"requests": {"storage": "1Gi"}}}
    cluster.create("v1", "PersistentVolumeClaim", name, spec=spec)


def pod_with(cluster: Cluster, volume: dict, **spec: object) -> None:
    cluster.create(
        "v1",
        "Pod",
        "p",
        spec={
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", **volume}],
            **spec,
        },
    )


def test_new_objects_are_protected_and_nobody_owns_the_finalizer() -> None:
    cluster = Cluster()
    claim_of(cluster)
    claim = cluster.must(CLAIMS, "data")
    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    owned = claim["metadata"].get("managedFields", [])
    assert all("f:metadata" not in entry["fieldsV1"] for entry in owned)


def test_claim_that_nobody_uses_ends_at_once() -> None:
    cluster = Cluster()
    claim_of(cluster)
    cluster.delete(CLAIMS, "data")
    cluster.settle()
    assert cluster.get(CLAIMS, "data") is None


@pytest.mark.parametrize(
    ("claim", "volume"),
    [
        ("data", {"persistentVolumeClaim": {"claimName": "data"}}),
        (
            "p-v",
            {"ephemeral": {"volumeClaimTemplate": {"spec": MODES}}},
        ),
    ],
)
def test_claim_of_a_running_pod_waits_for_it(claim: str, volume: dict) -> None:
    cluster = Cluster()
    claim_of(cluster, claim)
    pod_with(cluster, volume, nodeName="n")
    cluster.delete(CLAIMS, claim)
    cluster.settle()
    assert cluster.get(CLAIMS, claim) is not None
    cluster.delete("pods", "p", grace_seconds=0)
    cluster.settle()
    assert cluster.get(CLAIMS, claim) is None


def test_claims_of_one_pod_end_in_the_order_of_their_names() -> None:
    cluster = Cluster()
    names = [f"data-{number}" for number in (5, 2, 7, 0, 6, 1, 4, 3)]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    for name in names:
        claim_of(cluster, name)
    containers = [{"name": "c", "image": "i"}]
    cluster.create(
        "v1", "Pod", "q", spec={"containers": containers, "volumes": volumes, "nodeName": "n"}
    )
    for name in names:
        cluster.delete(CLAIMS, name)
    cluster.settle()
    cluster.delete("pods", "q", grace_seconds=0)
    cluster.settle()
    ended = [
        event.key.name
        for event in cluster.line.events
        if event.key.resource == CLAIMS and event.type == "ObjectDeleted"
    ]
    assert ended == sorted(names)


def test_pod_without_a_node_keeps_no_claim() -> None:
    cluster = Cluster()
    claim_of(cluster)
    volume = {"persistentVolumeClaim": {"claimName": "data"}}
    pod_with(cluster, volume, schedulerName="nobody")
    cluster.delete(CLAIMS, "data")
    cluster.settle()
    assert cluster.get(CLAIMS, "data") is None
