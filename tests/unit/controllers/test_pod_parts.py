"""What is read of a pod that waits, and what is said of it: amounts, reasons, summaries."""

from typing import Any

import pytest

from app.domain.controllers.scheduling import repeated_attempts
from app.domain.controllers.scheduling.binding_cycle import writes
from app.domain.controllers.scheduling.framework import amounts, filters, pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, bound_pod
from app.domain.controllers.scheduling.framework.nominations import Nominations
from app.domain.controllers.scheduling.repeated_attempts import RepeatedAttempt
from app.domain.values.identifiers import Uid
from tests.cluster import Cluster, check_decisions

Tree = dict[str, Any]


def asks(name: str = "c", restart: str = "", **requests: str) -> Tree:
    """A container; `x` stands for an extended resource."""
    named = {{"x": "example.com/x"}.get(key, key): value for key, value in requests.items()}
    more = {"restartPolicy": restart} if restart else {}
    return {"name": name, "resources": {"requests": named}, **more}


def always(**requests: str) -> Tree:
    return asks(restart="Always", **requests)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [asks(cpu="1"), asks(cpu="500m")]}, {"cpu": 1500}),
        ({"containers": [asks(x="1"), asks(x="2")]}, {"example.com/x": 3}),
        ({"containers": [asks()]}, {}),
        ({"containers": [asks(x="0")], "initContainers": [asks(x="0")]}, {"example.com/x": 0}),
        ({"containers": [asks(cpu="1")], "initContainers": [asks(cpu="3")]}, {"cpu": 3000}),
        ({"containers": [asks(cpu="3")], "initContainers": [asks(cpu="1")]}, {"cpu": 3000}),
        (
            {"containers": [asks(cpu="1")], "initContainers": [asks(x="1")]},
            {"cpu": 1000, "example.com/x": 1},
        ),
        # a sidecar runs beside all that comes later
        ({"containers": [asks(cpu="1")], "initContainers": [always(cpu="2")]}, {"cpu": 3000}),
        (
            {"containers": [asks(cpu="1")], "initContainers": [always(cpu="2"), asks(cpu="4")]},
            {"cpu": 6000},
        ),
        (
            {"containers": [asks(cpu="1")], "initContainers": [asks(cpu="4"), always(cpu="2")]},
            {"cpu": 4000},
        ),
        ({"containers": [asks(cpu="1")], "overhead": {"cpu": "250m"}}, {"cpu": 1250}),
        (
            {"containers": [asks(cpu="1", x="1")], "resources": {"requests": {"cpu": "5"}}},
            {"cpu": 5000, "example.com/x": 1},
        ),
    ],
)
def test_pod_needs_the_most_of_what_runs_at_one_time(spec: Tree, expected: dict[str, int]) -> None:
    """Parity: controllers.md 4.2."""
    assert dict(amounts.of_pod(spec).requests) == expected


def pod_of(spec: Tree) -> pod_spec.PodSpec:
    return pod_spec.read({"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec})


def test_what_a_node_lacks_is_named_in_the_order_of_upstream() -> None:
    nodes = NodeIndex()
    nodes.put(
        {
            "metadata": {"name": "n"},
            "spec": {},
            "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "1"}},
        }
    )
    other = {"metadata": {"name": "o", "namespace": "ns", "uid": "o"}, "spec": {"nodeName": "n"}}
    nodes.bind(bound_pod(other))
    wanted = {"memory": "2Gi", "example.com/b": "1", "cpu": "2", "example.com/a": "1"}
    container = asks(**wanted, **{"ephemeral-storage": "1Gi"})
    (info,) = nodes.order()
    refusal = filters.check_node(pod_of({"containers": [container]}), info)
    assert refusal is not None
    assert refusal.reasons == (
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        "Insufficient example.com/a",
        "Insufficient example.com/b",
    )
    assert not refusal.resolvable


def bound(name: str, node: str) -> Any:
    metadata = {"name": name, "namespace": "ns", "uid": name}
    return bound_pod({"metadata": metadata, "spec": {"nodeName": node}})


def test_nomination_is_lost_when_the_pod_has_another_one_or_none() -> None:
    nominations = Nominations()
    one, two = ("ns", "one"), ("ns", "two")

    def never() -> Any:
        raise AssertionError("a pod without a nomination is not read")

    assert nominations.follow(one, "", never) is None
    assert nominations.follow(one, "n", lambda: bound("one", "n")) is None
    assert nominations.follow(two, "n", lambda: bound("two", "n")) is None
    assert nominations.follow(one, "n", lambda: bound("one", "n")) is None
    assert [each.place for each in nominations.on("n")] == [one, two]
    lost = nominations.follow(one, "m", lambda: bound("one", "m"))
    assert lost is not None
    assert (lost.place, lost.node) == (one, "n")
    assert [each.place for each in nominations.on("n")] == [two]
    lost = nominations.follow(two, "", never)
    assert lost is not None
    assert (lost.place, lost.node) == (two, "n")
    assert nominations.on("n") == ()
    assert nominations.forget(two) is None
    assert nominations.forget(one) == bound("one", "m")
    assert nominations.on("m") == ()


def test_refused_write_ends_its_repetition_as_an_error() -> None:
    known = {
        "namespace": "ns",
        "name": "p",
        "uid": Uid("u"),
        "outcome": "Scheduled",
        "plugins": (),
        "start": 3,
        "assumed": 0,
        "number": 1,
    }
    assert repeated_attempts.refusal_of(RepeatedAttempt(**known)) is None
    again = repeated_attempts.refusal_of(RepeatedAttempt(**known, refused="no"))
    assert again is not None
    assert (again.outcome, again.message, again.next_start) == ("Error", "no", 3)


def test_binding_is_of_the_pod_that_was_looked_at() -> None:
    pod = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {}}
    command = writes.bind(pod, "n")
    assert (command.key.namespace, command.key.name) == ("ns", "p")
    assert (command.node, command.uid) == ("n", "u")


def test_decision_says_which_devices_serve_the_extended_resources_of_a_pod() -> None:
    cluster = Cluster()
    served = {"extendedResourceName": "example.com/gpu"}
    cluster.create("resource.k8s.io/v1", "DeviceClass", "gpu", spec=served)
    cluster.node()
    cluster.slice(devices=12)
    cluster.claim("own")
    cluster.pod("few", claim="own", requests={"example.com/gpu": "2"})
    cluster.settle()
    (decision,) = (
        event.object
        for event in cluster.line.events
        if event.type == "DecisionRecorded" and event.object["controller"] == "scheduling"
    )
    summary = decision["summary"]
    assert (summary["node"], summary["claimsCount"]) == ("n1", 2)
    own, extended = summary["claims"]
    assert (own["claim"], own["fresh"], own["devicesCount"]) == ("default/own", True, 1)
    assert (extended["fresh"], extended["devicesCount"]) == (True, 2)
    assert own["claim"] != extended["claim"]
    devices = [*own["devices"], *extended["devices"]]
    assert len(set(devices)) == 3
    assert all("gpu-" in each for each in devices)


def test_each_decision_keeps_what_it_was_made_from() -> None:
    """Of a pod that is placed, one that is refused, and one that is skipped as it terminates."""
    cluster = Cluster()
    cluster.node(cpu="1")
    cluster.pod("placed")
    cluster.pod("refused", requests={"cpu": "4"})
    cluster.settle()
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"a": "b"}}
    metadata = {"name": "skipped", "finalizers": ["example.com/keep"]}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    cluster.wait(1)
    cluster.delete("pods", "skipped")
    cluster.node("n2", a="b", cpu="1")
    cluster.wait(15)
    decisions = {
        event.object["name"]: event
        for event in cluster.line.events
        if event.type == "DecisionRecorded" and event.object["controller"] == "scheduling"
    }
    outcomes = {name: event.object["outcome"] for name, event in decisions.items()}
    assert outcomes == {
        "placed": "Scheduled",
        "refused": "Unschedulable",
        "skipped": "Skipped",
    }
    attempted = {"now", "uid", "start", "next", "attempt", "batch", "plugins"}
    for name, event in decisions.items():
        inputs = event.object["inputs"]
        wanted = {"now", "uid"} if name == "skipped" else attempted
        assert wanted <= inputs.keys(), name
        assert inputs["uid"] == cluster.must("pods", name)["metadata"]["uid"]
        assert inputs["now"] == event.stamp.time
    for compared in check_decisions(cluster):
        assert compared.differences == ()
