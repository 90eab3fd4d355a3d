"""Pods that would like to be near others or far from them (InterPodAffinity as a score).

All numbers are computed by hand: the weights of matching terms add up per domain, the least liked
node gets 0, the most liked 100, the others in between, cut off to integers.
"""

import pytest

from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, bound_pod
from app.domain.controllers.scheduling.plugins import inter_pod_affinity_score
from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster, check_decisions

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NAMESPACES = {"default": {}, "other": {"team": "a"}}


def term(app: str, key: str = HOSTNAME, **more: object) -> JsonObject:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}


def likes(app: str, weight: int, key: str = HOSTNAME, **more: object) -> JsonObject:
    return {"podAffinity": {PREFERRED: [_weighted(app, weight, key, **more)]}}


def shuns(app: str, weight: int, key: str = HOSTNAME, **more: object) -> JsonObject:
    return {"podAntiAffinity": {PREFERRED: [_weighted(app, weight, key, **more)]}}


def needs(app: str, key: str = HOSTNAME) -> JsonObject:
    return {"podAffinity": {REQUIRED: [term(app, key)]}}


def _weighted(app: str, weight: int, key: str, **more: object) -> JsonObject:
    return {"weight": weight, "podAffinityTerm": term(app, key, **more)}


def pod(
    name: str, app: str, node: str = "", affinity: JsonObject | None = None, namespace="default"
) -> JsonObject:
    spec: JsonObject = {"containers": []}
    if node:
        spec["nodeName"] = node
    if affinity:
        spec["affinity"] = affinity
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": {"app": app}}
    return {"metadata": metadata, "spec": spec}


def scores(incoming: JsonObject, running: list[JsonObject]) -> list[int]:
    """On n1 and n2 in zone a and n3 in zone b."""
    nodes = NodeIndex()
    for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        labels = {HOSTNAME: name, ZONE: zone}
        nodes.put({"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {}})
    for tree in running:
        nodes.bind(bound_pod(tree))
    read = pod_spec.read(incoming)
    feasible = [info for name in ("n1", "n2", "n3") if (info := nodes.get(name)) is not None]
    return inter_pod_affinity_score.scores(read, nodes, feasible, NAMESPACES.__getitem__)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([0, 5, 10], [0, 50, 100]),
        ([-10, 0, 20], [0, 33, 100]),
        ([3, 3, 3], [0, 0, 0]),
        ([7], [0]),
        ([0, 29, 100], [0, 28, 100]),  # 100 * 0.29 is 28.999... in binary
    ],
)
def test_normalised_between_the_least_and_the_most_liked(raw, expected):
    assert inter_pod_affinity_score.normalised(raw) == expected


def test_nobody_wishes_anything():
    assert scores(pod("p", "web"), [pod("a", "db", "n1")]) == []


def test_wish_that_meets_nobody_makes_no_difference():
    assert scores(pod("p", "web", affinity=likes("db", 10)), [pod("a", "x", "n1")]) == []


def test_preferred_affinity_adds_its_weight_for_each_pod():
    running = [pod("a", "db", "n1"), pod("b", "db", "n1"), pod("c", "db", "n2")]
    # n1: 20, n2: 10, n3: 0
    assert scores(pod("p", "web", affinity=likes("db", 10)), running) == [100, 50, 0]


def test_preferred_anti_affinity_takes_its_weight_away():
    running = [pod("a", "db", "n1"), pod("b", "db", "n1"), pod("c", "db", "n2")]
    # n1: -20, n2: -10, n3: 0
    assert scores(pod("p", "web", affinity=shuns("db", 10)), running) == [0, 50, 100]


def test_terms_of_several_topology_keys_add_up():
    affinity = {**likes("db", 30, ZONE), **shuns("db", 10)}
    # zone a: 30 on n1 and n2; n1 itself: -10
    assert scores(pod("p", "web", affinity=affinity), [pod("a", "db", "n1")]) == [66, 100, 0]


def test_wishes_of_running_pods_count_too():
    running = [
        pod("a", "db", "n1", affinity=likes("web", 40)),
        pod("b", "db", "n3", affinity=shuns("web", 10)),
    ]
    # n1: 40, n2: 0, n3: -10
    assert scores(pod("p", "web"), running) == [100, 20, 0]


def test_required_affinity_of_a_running_pod_weighs_one():
    running = [
        pod("a", "db", "n1", affinity=needs("web")),
        pod("b", "db", "n2", affinity=likes("web", 4)),
    ]
    # n1: 1, n2: 4
    assert scores(pod("p", "web"), running) == [25, 100, 0]


def test_own_required_affinity_is_no_wish():
    running = [pod("a", "db", "n1"), pod("b", "db", "n2")]
    assert scores(pod("p", "web", affinity=needs("db")), running) == []


def test_terms_mean_the_namespace_of_their_pod_unless_they_say_others():
    running = [pod("a", "db", "n1", namespace="other")]
    assert scores(pod("p", "web", affinity=likes("db", 1)), running) == []
    named = likes("db", 1, namespaces=["other"])
    assert scores(pod("p", "web", affinity=named), running) == [100, 0, 0]
    selected = likes("db", 1, namespaceSelector={"matchLabels": {"team": "a"}})
    assert scores(pod("p", "web", affinity=selected), running) == [100, 0, 0]
    everywhere = likes("db", 1, namespaceSelector={})
    assert scores(pod("p", "web", affinity=everywhere), running) == [100, 0, 0]


def test_term_without_a_selector_means_nobody_and_an_empty_one_everybody():
    running = [pod("a", "db", "n1")]
    for selector, expected in ((None, []), ({}, [100, 0, 0])):
        wish = _weighted("db", 1, HOSTNAME)
        wish["podAffinityTerm"]["labelSelector"] = selector
        affinity = {"podAffinity": {PREFERRED: [wish]}}
        assert scores(pod("p", "web", affinity=affinity), running) == expected


def test_node_without_the_label_of_the_key_has_no_domain():
    assert scores(pod("p", "web", affinity=likes("db", 1, "rack")), [pod("a", "db", "n1")]) == []


def test_replicas_that_shun_each_other_take_different_nodes():
    cluster = Cluster()
    for name in ("n1", "n2", "n3"):
        cluster.node(name)
    for number in range(3):
        tree = {"apiVersion": "v1", "kind": "Pod", **pod(f"web-{number}", "web")}
        tree["metadata"].pop("uid")
        tree["spec"] = {
            "containers": [{"name": "c", "image": "i:1"}],
            "affinity": shuns("web", 100),
        }
        cluster.apply(tree)
        cluster.settle()
    placed = [cluster.must("pods", f"web-{number}")["spec"]["nodeName"] for number in range(3)]
    assert sorted(placed) == ["n1", "n2", "n3"]
    decisions, effects = check_decisions(cluster)
    assert (decisions.differences, effects.differences) == ((), ())


def test_wish_of_a_pod_that_is_gone_counts_no_more():
    nodes = NodeIndex()
    nodes.put({"metadata": {"name": "n1", "labels": {HOSTNAME: "n1"}}, "spec": {}, "status": {}})
    nodes.bind(bound_pod(pod("a", "db", "n1", affinity=likes("web", 1))))
    assert nodes.wishing
    nodes.release(("default", "a"))
    assert not nodes.wishing
