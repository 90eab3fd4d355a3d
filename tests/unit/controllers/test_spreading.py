"""Pods spread over topology domains (PodTopologySpread)."""

import pytest

from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, bound_pod
from app.domain.controllers.scheduling.plugins import pod_topology_spread
from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster, check_decisions

ZONE = "topology.kubernetes.io/zone"


def zones(*names: str, **options) -> Cluster:
    cluster = Cluster(**options)
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
        "1 node(s) were unschedulable. preemption: 0/2 nodes are "
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


def test_pods_of_a_service_are_spread_by_default_over_nodes_and_zones():
    """The second avoids the zone of the first, the third its node."""
    cluster = zones("a", "a", "b")
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    cluster.create("v1", "Service", "web", spec=spec)
    for number in range(3):
        web(cluster, f"web-{number}")
    placed = [node_of(cluster, f"web-{number}") for number in range(3)]
    assert placed == ["n1", "n3", "n2"]
    decisions, effects = check_decisions(cluster)
    assert (decisions.differences, effects.differences) == ((), ())


def test_pods_without_an_owner_are_not_spread_by_default():
    """Equal scores go to the first node again and again, until its room scores lower."""
    cluster = zones("a", "a", "a")
    web(cluster, "web-0")
    web(cluster, "web-1")
    assert node_of(cluster, "web-0") == node_of(cluster, "web-1")


# Which nodes and pods count


def soft(key: str = ZONE, **more: object) -> JsonObject:
    return {**hard(key=key)[0], "whenUnsatisfiable": "ScheduleAnyway", **more}


def test_tainted_nodes_count_as_domains_unless_the_policy_leaves_them_out():
    """Zone b is tainted and has no pod: with it the smallest count is 0, without it 1."""
    for policy, node in (("Ignore", ""), ("Honor", "n1")):
        cluster = zones("a", "b")
        taint = {"key": "broken", "effect": "NoSchedule"}
        cluster.patch("nodes", "n2", {"spec": {"taints": [taint]}})
        constraint = {**hard()[0], "nodeTaintsPolicy": policy}
        web(cluster, "first", topologySpreadConstraints=[constraint])
        web(cluster, "second", topologySpreadConstraints=[constraint])
        assert node_of(cluster, "second") == node


def test_excluded_nodes_are_no_domains_unless_the_policy_counts_them():
    for policy, node in (("Honor", "n1"), ("Ignore", "")):
        cluster = zones("a", "b")
        constraint = {**hard()[0], "nodeAffinityPolicy": policy}
        chosen = {"kubernetes.io/hostname": "n1"}
        for name in ("first", "second"):
            web(cluster, name, topologySpreadConstraints=[constraint], nodeSelector=chosen)
        assert node_of(cluster, "second") == node


def test_fewer_domains_than_wanted_count_as_one_without_pods():
    for domains, node in ((2, "n1"), (3, "")):
        cluster = zones("a", "b")
        constraint = {**hard()[0], "minDomains": domains}
        for name in ("first", "second", "third"):
            web(cluster, name, topologySpreadConstraints=[constraint])
        assert bool(node_of(cluster, "third")) is bool(node)


def test_constraint_without_a_selector_counts_nobody():
    cluster = zones("a", "b")
    constraint = {key: value for key, value in hard()[0].items() if key != "labelSelector"}
    for name in ("first", "second", "third"):
        web(
            cluster,
            name,
            topologySpreadConstraints=[constraint],
            nodeSelector={"kubernetes.io/hostname": "n1"},
        )
        assert node_of(cluster, name) == "n1"


@pytest.mark.parametrize(("r6", "node"), [(True, "n1"), (False, "")])
def test_empty_selector_counts_nobody_unless_repaired(r6, node):
    cluster = zones("a", "b", options=ControllerOptions(quirks=ControllerQuirks(r6=r6)))
    constraint = {**hard()[0], "labelSelector": {}, "nodeAffinityPolicy": "Ignore"}
    for name in ("first", "second"):
        web(
            cluster,
            name,
            topologySpreadConstraints=[constraint],
            nodeSelector={"kubernetes.io/hostname": "n1"},
        )
    assert node_of(cluster, "second") == node


def test_label_keys_tell_pods_of_one_version_apart():
    cluster = zones("a", "b")
    constraint = {**hard()[0], "matchLabelKeys": ["version"], "nodeAffinityPolicy": "Ignore"}
    for name, version in (("old", "1"), ("new", "2"), ("newer", "2")):
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": {"app": "web", "version": version}},
                "spec": {
                    "containers": [{"name": "c", "image": "i:1"}],
                    "topologySpreadConstraints": [constraint],
                    "nodeSelector": {"kubernetes.io/hostname": "n1"},
                },
            }
        )
        cluster.settle()
    assert [node_of(cluster, name) for name in ("old", "new", "newer")] == ["n1", "n1", ""]


def spread_scores(constraints: list[JsonObject], counts: list[int]) -> list[int]:
    """The scores of n1 to n3 in zones a, a, b on which so many pods run."""
    cluster = zones("a", "a", "b", options=ControllerOptions(off=frozenset({"scheduling"})))
    index = NodeIndex()
    for name in ("n1", "n2", "n3"):
        index.put(cluster.must("nodes", name))
    for number, count in enumerate(counts, start=1):
        for other in range(count):
            metadata = {"name": f"{number}-{other}", "namespace": "default", "uid": "u"}
            tree = {"metadata": {**metadata, "labels": {"app": "web"}}}
            index.bind(bound_pod({**tree, "spec": {"containers": [], "nodeName": f"n{number}"}}))
    web(cluster, "web", topologySpreadConstraints=constraints)
    tree = cluster.must("pods", "web")
    found = pod_topology_spread.survey(cluster.line.views.objects, pod_spec.read(tree), index, tree)
    assert found is not None
    nodes = [info for name in ("n1", "n2", "n3") if (info := index.get(name)) is not None]
    return found.scores(nodes)


def test_soft_constraint_over_zones():
    """Weight log(2 zones + 2) = 1.386; zone a: 3 * 1.386 = 4.16 -> 4, b: 1 * 1.386 = 1.39 -> 1.

    100 * (4 + 1 - 4) / 4 = 25, 100 * (4 + 1 - 1) / 4 = 100.
    """
    assert spread_scores([soft()], [2, 1, 1]) == [25, 25, 100]


def test_soft_constraint_over_nodes():
    """Weight log(3 nodes + 2) = 1.609, and maxSkew 3 adds 2: 5.22 -> 5, 3.61 -> 4, 2 -> 2.

    100 * (5 + 2 - 5) / 5 = 40, 100 * (7 - 4) / 5 = 60, 100 * (7 - 2) / 5 = 100.
    """
    constraint = soft(key="kubernetes.io/hostname", maxSkew=3)
    assert spread_scores([constraint], [2, 1, 0]) == [40, 60, 100]


def test_soft_constraint_without_pods_makes_no_difference():
    assert spread_scores([soft()], [0, 0, 0]) == [100, 100, 100]


def test_default_constraints_are_three_over_nodes_and_five_over_zones():
    """Hosts: count * log 5 + 2, zones: count * log 4 + 4, rounded together.

    n1: 2 * 1.609 + 2 + 3 * 1.386 + 4 = 13.38 -> 13; n2: 1.609 + 2 + 4.159 + 4 = 11.77 -> 12;
    n3: 0 + 2 + 0 + 4 = 6. 100 * (13 + 6 - 13) / 13 = 46, 100 * (19 - 12) / 13 = 53, 100.
    """
    cluster = zones("a", "a", "b", options=ControllerOptions(off=frozenset({"scheduling"})))
    replica_set(cluster, 1)
    name = next(name for name in cluster.names("pods") if name.startswith("web-"))
    tree = cluster.must("pods", name)
    index = NodeIndex()
    for node in ("n1", "n2", "n3"):
        index.put(cluster.must("nodes", node))
    for number, node in enumerate(("n1", "n1", "n2")):
        metadata = {"name": f"p{number}", "namespace": "default", "uid": "u"}
        bound = {"metadata": {**metadata, "labels": {"app": "web"}}}
        index.bind(bound_pod({**bound, "spec": {"containers": [], "nodeName": node}}))
    found = pod_topology_spread.survey(cluster.line.views.objects, pod_spec.read(tree), index, tree)
    assert found is not None
    nodes = [info for node in ("n1", "n2", "n3") if (info := index.get(node)) is not None]
    assert found.scores(nodes) == [46, 53, 100]


def test_pod_like_one_without_hope_is_still_told_of_its_own_constraints():
    """Both are alike for all filters but this one, and nothing happens in between."""
    cluster = zones("a", "b")
    cluster.device_class()
    cluster.template()
    entries = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    web(cluster, "plain", resourceClaims=entries)
    assert "2 cannot allocate all claims" in cluster.pod_condition("plain")["message"]
    web(cluster, "spread", resourceClaims=entries, topologySpreadConstraints=hard(key="rack"))
    assert (
        "2 node(s) didn't match pod topology spread constraints (missing required label)"
        in (cluster.pod_condition("spread")["message"])
    )
