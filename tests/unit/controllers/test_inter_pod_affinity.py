"""Required affinity between pods, host ports and nodes asked for by name."""

import pytest

from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, bound_pod
from app.domain.controllers.scheduling.plugins import inter_pod_affinity
from app.domain.controllers.scheduling.plugins.inter_pod_affinity import Neighbourhood
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster, check_decisions

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NO_AFFINITY = "node(s) didn't match pod affinity rules"
NO_PORTS = "node(s) didn't have free ports for the requested pod ports"


def zoned(*zones: str, **options) -> Cluster:
    made = Cluster(**options)
    for number, zone in enumerate(zones, start=1):
        made.node(f"n{number}")
        if zone:
            made.patch("nodes", f"n{number}", {"metadata": {"labels": {ZONE: zone}}})
    return made.settle()


def needs(app: str = "db", key: str = ZONE, **more: object) -> JsonObject:
    selector = {"matchLabels": {"app": app}}
    return {"podAffinity": {REQUIRED: [{"labelSelector": selector, "topologyKey": key, **more}]}}


def run(
    cluster: Cluster,
    name: str,
    app: str = "web",
    *,
    affinity: JsonObject | None = None,
    namespace: str = "default",
    **more: object,
) -> str:
    """Create a pod and let it be scheduled; returns its node."""
    labels = {"app": app, **more.pop("labels", {})}
    spec: JsonObject = {"containers": [{"name": "c", "image": "i:1"}], **more}
    if affinity:
        spec["affinity"] = affinity
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": spec,
        }
    )
    cluster.settle()
    return cluster.must("pods", name, namespace)["spec"].get("nodeName", "")


def told(cluster: Cluster, name: str) -> str:
    condition = cluster.pod_condition(name)
    assert condition is not None
    return condition["message"]


def checked(cluster: Cluster) -> None:
    decisions, effects = check_decisions(cluster)
    assert (decisions.differences, effects.differences) == ((), ())


def on(node: str) -> JsonObject:
    return {HOSTNAME: node}


# Affinity


def test_pod_goes_to_the_domain_of_the_pod_that_it_needs():
    cluster = zoned("a", "b", "b")
    assert run(cluster, "db", "db", nodeSelector=on("n2")) == "n2"
    assert run(cluster, "web", affinity=needs()) in ("n2", "n3")
    assert run(cluster, "near", affinity=needs(key=HOSTNAME)) == "n2"
    checked(cluster)


def test_pod_waits_for_the_pod_that_it_needs_and_follows_it():
    cluster = zoned("a", "b")
    assert run(cluster, "web", affinity=needs()) == ""
    assert told(cluster, "web") == (
        f"0/2 nodes are available: 2 {NO_AFFINITY}. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    run(cluster, "db", "db", nodeSelector=on("n2"))
    cluster.wait(20)
    assert cluster.must("pods", "web")["spec"]["nodeName"] == "n2"
    checked(cluster)


def test_first_pod_of_a_group_needs_nobody_but_later_ones_do():
    cluster = zoned("a", "b")
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    assert run(cluster, "first", "db", affinity=needs()) == "n2"
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": False}})
    cluster.patch("nodes", "n2", {"spec": {"unschedulable": True}})
    assert run(cluster, "second", "db", affinity=needs()) == ""
    assert f"1 {NO_AFFINITY}" in told(cluster, "second")


def test_first_pod_of_a_group_still_needs_the_label_of_the_key():
    cluster = zoned("", "")
    assert run(cluster, "first", "db", affinity=needs()) == ""
    assert f"2 {NO_AFFINITY}" in told(cluster, "first")


def test_one_pod_has_to_match_all_terms():
    cluster = zoned("a", "b")
    run(cluster, "db", "db", nodeSelector=on("n1"))
    run(cluster, "cache", "cache", nodeSelector=on("n1"))
    both = needs("db")["podAffinity"][REQUIRED] + needs("cache")["podAffinity"][REQUIRED]
    assert run(cluster, "web", affinity={"podAffinity": {REQUIRED: both}}) == ""


@pytest.mark.parametrize(
    ("more", "node"),
    [
        ({}, ""),
        ({"namespaces": ["other"]}, "n2"),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, "n2"),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, ""),
        ({"namespaceSelector": {}}, "n2"),
        ({"namespaces": ["other"], "namespaceSelector": {"matchLabels": {"team": "b"}}}, "n2"),
    ],
)
def test_other_namespaces_are_named_or_selected(more, node):
    cluster = zoned("a", "b", namespaces=("default", "other"))
    cluster.patch("namespaces", "other", {"metadata": {"labels": {"team": "a"}}})
    run(cluster, "db", "db", namespace="other", nodeSelector=on("n2"))
    assert run(cluster, "web", affinity=needs(**more)) == node


def test_term_without_a_selector_means_nobody():
    cluster = zoned("a", "b")
    run(cluster, "db", "db", nodeSelector=on("n2"))
    nobody = {"podAntiAffinity": {REQUIRED: [{"topologyKey": ZONE}]}}
    assert run(cluster, "web", affinity=nobody, nodeSelector=on("n2")) == "n2"
    everybody = {"podAntiAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": {}}]}}
    assert run(cluster, "alone", affinity=everybody, nodeSelector=on("n2")) == ""


def test_match_label_keys_are_written_into_the_selector():
    cluster = zoned("a", "b")
    run(cluster, "old", "db", nodeSelector=on("n1"), labels={"version": "1"})
    run(cluster, "new", "db", nodeSelector=on("n2"), labels={"version": "2"})
    same = needs(matchLabelKeys=["version", "absent"])
    assert run(cluster, "same", affinity=same, labels={"version": "2"}) == "n2"
    other = needs(mismatchLabelKeys=["version"])
    assert run(cluster, "other", affinity=other, labels={"version": "2"}) == "n1"
    stored = cluster.must("pods", "same")["spec"]["affinity"]["podAffinity"][REQUIRED][0]
    assert stored["labelSelector"] == {
        "matchLabels": {"app": "db"},
        "matchExpressions": [{"key": "version", "operator": "In", "values": ["2"]}],
    }


def test_pods_that_keep_others_away_are_nothing_to_pods_they_do_not_mean():
    cluster = zoned("a", "b")
    away = {"podAntiAffinity": needs("web")["podAffinity"]}
    run(cluster, "db", "db", affinity=away, nodeSelector=on("n1"))
    nodes = NodeIndex()
    for name in ("n1", "n2"):
        nodes.put(cluster.must("nodes", name))
    nodes.bind(bound_pod(cluster.must("pods", "db")))

    def surveyed(app: str) -> Neighbourhood | None:
        pod = pod_spec.read({"metadata": {"namespace": "default", "labels": {"app": app}}})
        return inter_pod_affinity.survey(pod, nodes, lambda _: {})

    assert surveyed("other") is None
    found = surveyed("web")
    assert found is not None
    assert found.closed_domains == {(ZONE, "a"): 1}
    assert run(cluster, "other", "other", nodeSelector=on("n1")) == "n1"
    assert run(cluster, "web", "web") == "n2"
    checked(cluster)


# Ports


def ports(*wanted: JsonObject, sidecar: bool = False, **more: object) -> JsonObject:
    served = {"name": "s", "image": "i:1", "ports": list(wanted)}
    plain = {"name": "c", "image": "i:1"}
    if sidecar:
        return {"containers": [plain], "initContainers": [{**served, "restartPolicy": "Always"}]}
    return {"containers": [served], **more}


def port(number: int, address: str = "", protocol: str = "TCP") -> JsonObject:
    found = {"containerPort": 80, "hostPort": number, "protocol": protocol}
    return {**found, "hostIP": address} if address else found


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        (port(80), port(80), False),
        (port(80), port(81), True),
        (port(80), port(80, protocol="UDP"), True),
        (port(80, "10.0.0.1"), port(80), False),
        (port(80), port(80, "10.0.0.1"), False),
        (port(80, "10.0.0.1"), port(80, "10.0.0.2"), True),
        (port(80, "10.0.0.1"), port(80, "10.0.0.1"), False),
    ],
)
def test_ports_of_a_node_are_taken_once(first, second, fits):
    cluster = zoned("a")
    assert run(cluster, "first", **ports(first)) == "n1"
    assert run(cluster, "second", **ports(second)) == ("n1" if fits else "")
    if not fits:
        assert told(cluster, "second").startswith(f"0/1 nodes are available: 1 {NO_PORTS}.")


def test_new_node_wakes_a_pod_that_waits_for_ports():
    cluster = zoned("a")
    run(cluster, "first", **ports(port(80)))
    assert run(cluster, "second", **ports(port(80))) == ""
    cluster.node("n2")
    cluster.wait(20)
    assert cluster.must("pods", "second")["spec"]["nodeName"] == "n2"
    checked(cluster)


def test_pod_that_leaves_wakes_a_pod_that_waits_for_its_ports():
    cluster = zoned("a")
    run(cluster, "first", **ports(port(80)))
    assert run(cluster, "second", **ports(port(80))) == ""
    cluster.delete("pods", "first", grace_seconds=0)
    cluster.wait(20)
    assert cluster.must("pods", "second")["spec"]["nodeName"] == "n1"


def test_label_of_a_running_pod_wakes_a_pod_that_needs_it():
    cluster = zoned("a", "b")
    run(cluster, "db", "other", nodeSelector=on("n2"))
    assert run(cluster, "web", affinity=needs()) == ""
    cluster.patch("pods", "db", {"metadata": {"labels": {"app": "db"}}})
    cluster.wait(20)
    assert cluster.must("pods", "web")["spec"]["nodeName"] == "n2"


def test_ports_of_sidecars_are_taken_too():
    cluster = zoned("a")
    assert run(cluster, "first", **ports(port(80), sidecar=True)) == "n1"
    assert run(cluster, "second", **ports(port(80))) == ""


def test_ports_of_init_containers_are_not():
    cluster = zoned("a")
    spec = ports(port(80), sidecar=True)
    del spec["initContainers"][0]["restartPolicy"]
    assert run(cluster, "first", **spec) == "n1"
    assert run(cluster, "second", **ports(port(80))) == "n1"


def test_ports_of_pods_in_the_network_of_the_host_are_host_ports():
    cluster = zoned("a")
    served = {"containerPort": 80}
    assert run(cluster, "first", **ports(served, hostNetwork=True)) == "n1"
    assert run(cluster, "second", **ports(served, hostNetwork=True)) == ""


# Nodes by name


def named(*nodes: str, operator: str = "In") -> JsonObject:
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [node]}]}
        for node in nodes
    ]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def test_pod_goes_to_a_node_by_name():
    cluster = zoned("a", "b", "b")
    assert run(cluster, "one", affinity=named("n3")) == "n3"
    assert run(cluster, "two", affinity=named("n2", "n3")) in ("n2", "n3")
    assert run(cluster, "not", affinity=named("n1", operator="NotIn")) != "n1"
    checked(cluster)


def test_other_nodes_are_not_looked_at_for_a_pod_that_names_one():
    cluster = zoned("a", "b", "b")
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    tall = {"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "100"}}}
    assert run(cluster, "tall", affinity=named("n2"), containers=[tall]) == ""
    assert told(cluster, "tall").startswith(
        "0/3 nodes are available: 1 Insufficient cpu, "
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
    )
    checked(cluster)


def test_node_that_is_named_and_is_not_there():
    cluster = zoned("a", "b")
    assert run(cluster, "lost", affinity=named("n9")) == ""
    assert "2 node(s) didn't satisfy plugin(s) [NodeAffinity]" in told(cluster, "lost")


def test_terms_that_name_different_nodes_at_once_contradict():
    cluster = zoned("a", "b")
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n1", "n2")]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": fields}]}}}
    assert run(cluster, "torn", affinity=affinity) == ""
    assert told(cluster, "torn") == (
        "0/2 nodes are available: pod affinity terms conflict. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    checked(cluster)


def test_named_node_moves_the_start_of_the_next_look_by_one():
    """Upstream counts the nodes that it asked (controllers.md 4.4)."""
    cluster = zoned("a", "b", "b", profile=Profile(version="1.36"))
    assert run(cluster, "named", affinity=named("n3")) == "n3"
    assert run(cluster, "next") == "n2", "n1 is as good, and would be first from the beginning"
