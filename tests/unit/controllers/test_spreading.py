"""Pods spread over topology domains (PodTopologySpread)."""

from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster

ZONE = "topology.kubernetes.io/zone"


def zones(*names: str) -> Cluster:
    cluster = Cluster()
    for number, zone in enumerate(names, start=1):
        cluster.node(f"n{number}")
        cluster.patch("nodes", f"n{number}", {"metadata": {"labels": {ZONE: zone}}})
    return cluster.settle()


def web(cluster: Cluster, name: str, owner: JsonObject | None = None, **spec: object) -> None:
    metadata: JsonObject = {"name": name, "labels": {"app": "web"}}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec},
        }
    )
    cluster.settle()


def node_of(cluster: Cluster, name: str) -> str:
    return cluster.must("pods", name)["spec"].get("nodeName", "")


def hard(skew: int = 1, key: str = ZONE) -> list[JsonObject]:
    return [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]


def test_hard_constraint_keeps_the_skew():
    cluster = zones("a", "a", "b")
    for number in range(4):
        web(cluster, f"web-{number}", topologySpreadConstraints=hard())
    placed = [node_of(cluster, f"web-{number}") for number in range(4)]
    assert sum(node == "n3" for node in placed) == 2


def test_hard_constraint_refuses_in_words():
    cluster = zones("a", "b")
    cluster.patch("nodes", "n2", {"spec": {"unschedulable": True}})
    web(cluster, "first", topologySpreadConstraints=hard())
    web(cluster, "second", topologySpreadConstraints=hard())
    condition = cluster.pod_condition("second")
    assert condition["message"] == (
        "0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, "
        "1 node(s) were unschedulable. no new claims to deallocate, preemption: 0/2 nodes are "
        "available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_node_without_the_label_is_out():
    cluster = zones("a")
    web(cluster, "web", topologySpreadConstraints=hard(key="rack"))
    condition = cluster.pod_condition("web")
    assert "(missing required label)" in condition["message"]


def replica_set(cluster: Cluster, replicas: int) -> None:
    cluster.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "i:1"}]},
                },
            },
        }
    )
    cluster.settle()


def test_replicas_are_spread_over_nodes_by_default():
    cluster = zones("a", "a", "a")
    replica_set(cluster, 3)
    pods = [name for name in cluster.names("pods") if name.startswith("web-")]
    assert sorted(node_of(cluster, name) for name in pods) == ["n1", "n2", "n3"]


def test_pods_without_an_owner_are_not_spread_by_default():
    """Equal scores go to the first node again and again, until its room scores lower."""
    cluster = zones("a", "a", "a")
    web(cluster, "web-0")
    web(cluster, "web-1")
    assert node_of(cluster, "web-0") == node_of(cluster, "web-1")
