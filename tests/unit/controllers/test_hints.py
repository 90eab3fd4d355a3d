"""Which plug-ins a change of a node, of a waiting pod or of a class may make think again.

Parity: controllers.md 3.9. Besides, what the index of nodes says of its changes, by which attempts
know that an answer still holds.
"""

from typing import Any

import pytest

from app.domain.controllers.pods import facts
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, bound_pod
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.controllers.scheduling.queue import hints
from app.domain.controllers.scheduling.queue.waiting_pods import (
    QueuedPod,
    QueuePart,
    SchedulingQueue,
)
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant

Tree = dict[str, Any]
ALONE = hints.NODE_PLUGINS | {hints.INTER_POD_AFFINITY, hints.POD_TOPOLOGY_SPREAD}
WITH_DEVICES = ALONE | {hints.DEVICES}
NEW = WITH_DEVICES | {hints.PORTS}


def event(resource: str, tree: Tree, kind: EventType = EventType.OBJECT_UPDATED) -> Event:
    metadata = tree["metadata"]
    return Event(
        revision=Revision(1),
        type=kind,
        key=ObjectKey("", resource, metadata.get("namespace", ""), metadata["name"]),
        uid=Uid(metadata.get("uid", "")),
        body=canonical_json(tree),
        stamp=Stamp(time=Instant(1), actor=Actor(user="someone"), verb="update"),
    )


def node(name: str = "n", cpu: str = "4", labels: Tree | None = None, **spec: Any) -> Tree:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu}},
    }


TAINT = {"key": "k", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("after", "plugins"),
    [
        pytest.param(node(), None, id="nothing changes"),
        pytest.param(node(cpu="5"), WITH_DEVICES, id="more room"),
        pytest.param(node(cpu="3"), WITH_DEVICES, id="less room"),
        pytest.param(node(labels={"a": "b"}), WITH_DEVICES, id="labels"),
        pytest.param(node(taints=[TAINT]), ALONE, id="taints"),
        pytest.param(node(unschedulable=True), ALONE, id="cordoned"),
        pytest.param(node(cpu="5", taints=[TAINT]), WITH_DEVICES, id="room and taints"),
        pytest.param(node(labels={"a": "b"}, taints=[TAINT]), WITH_DEVICES, id="labels and taints"),
        pytest.param(node(podCIDR="10.0.0.0/24"), None, id="another field of the spec"),
        pytest.param(
            {**node(), "status": {**node()["status"], "images": [{"names": ["i"]}]}},
            None,
            id="images",
        ),
        pytest.param(node("other"), NEW, id="another node"),
    ],
)
def test_change_of_a_node_hints_at_the_plugins_that_it_may_change(
    after: Tree, plugins: frozenset[str] | None
) -> None:
    nodes = NodeIndex()
    nodes.put(node())
    hint = hints.fold_node(nodes, event("nodes", after))
    assert (hint and hint.plugins) == plugins
    assert hint is None or (hint.node and hint.node.name) == after["metadata"]["name"]


def test_node_that_goes_helps_nobody_and_comes_back_as_a_new_one() -> None:
    nodes = NodeIndex()
    nodes.put(node())
    assert hints.fold_node(nodes, event("nodes", node(), EventType.OBJECT_DELETED)) is None
    assert len(nodes) == 0
    hint = hints.fold_node(nodes, event("nodes", node()))
    assert hint is not None
    assert hint.plugins == NEW


def waiting(labels: Tree | None = None, named: str = "", **spec: Any) -> PodSpec:
    entries = [{"name": "c", "resourceClaimTemplateName": "t"}]
    status = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": named}]} if named else {}
    return pod_spec.read(
        {
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": labels or {}},
            "spec": {"resourceClaims": entries, **spec},
            "status": status,
        }
    )


OWN = [
    ({}, None),
    ({"named": "claim"}, {hints.DEVICES}),
    ({"labels": {"a": "b"}}, {hints.INTER_POD_AFFINITY, hints.POD_TOPOLOGY_SPREAD}),
    ({"tolerations": [{"operator": "Exists"}]}, {"NodeUnschedulable", "TaintToleration"}),
    (
        {"named": "claim", "labels": {"a": "b"}},
        {hints.DEVICES, hints.INTER_POD_AFFINITY, hints.POD_TOPOLOGY_SPREAD},
    ),
    ({"schedulingGates": [{"name": "g"}]}, None),
]


@pytest.mark.parametrize(("changes", "plugins"), OWN)
def test_own_change_of_a_waiting_pod_hints_at_that_pod_alone(changes: Any, plugins: Any) -> None:
    hint = hints.own_hint(("ns", "p"), waiting(), waiting(**changes))
    assert (hint and hint.plugins) == plugins
    assert hint is None or hint.pod == ("ns", "p")
    back = hints.own_hint(("ns", "p"), waiting(**changes), waiting())
    assert (back and back.plugins) == plugins


def pod_tree(**changes: Any) -> Tree:
    """A pod that waits; labels and fields of its spec can be others."""
    labels = changes.pop("labels", {})
    spec = {"nodeSelector": {"a": "b"}, **changes}
    metadata = {"name": "p", "namespace": "ns", "uid": "u", "labels": labels}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"labels": {"c": "d"}},
        {"schedulingGates": [{"name": "g"}]},
        {"tolerations": [{"operator": "Exists"}]},
        {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
    ],
)
@pytest.mark.parametrize("is_gated", [False, True])
def test_waiting_pod_is_read_again_where_it_can_have_changed(changes: Tree, is_gated: bool) -> None:
    """While it has gates, and when they go, its node selector can change too."""
    gates: Tree = {"schedulingGates": [{"name": "g"}]} if is_gated else {}
    before = pod_spec.read(pod_tree(**gates))
    after = pod_tree(**changes, **({"nodeSelector": {"x": "y"}} if is_gated else {}))
    again = pod_spec.read_again(event("pods", after), before)
    is_kept = is_gated and changes.keys() == {"schedulingGates"}
    expected = pod_spec.read(after)
    if is_kept:
        assert again.node_selector == before.node_selector
        assert again.is_gated
    else:
        assert again == expected
    assert again.facts == facts(after)


def counted(name: str, on: str = "n", cpu: str = "1") -> Any:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return bound_pod(
        {
            "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": {"nodeName": on, "containers": [container]},
        }
    )


def test_version_of_the_index_never_comes_back() -> None:
    """An answer is kept for a version: what is another state may not have the same one."""
    nodes = NodeIndex()
    steps = [
        lambda: nodes.put(node()),
        lambda: nodes.put(node("m")),
        lambda: nodes.bind(counted("a")),
        lambda: nodes.release(("ns", "a")),
        lambda: nodes.remove("m"),
        lambda: nodes.put(node("m")),
        lambda: nodes.touch("m"),
        lambda: nodes.touch_all(),
        lambda: nodes.remove("m"),
        lambda: nodes.remove("n"),
    ]
    versions = [nodes.version]
    for step in steps:
        step()
        versions.append(nodes.version)
    assert versions == sorted(set(versions))
    for nothing in (
        lambda: nodes.remove("unknown"),
        lambda: nodes.release(("ns", "unknown")),
        lambda: nodes.touch("unknown"),
    ):
        nothing()
    assert nodes.version == versions[-1]


def test_touched_nodes_are_named_by_their_places_until_the_order_changes() -> None:
    nodes = NodeIndex()
    for name in ("n", "m", "o"):
        nodes.put(node(name))
    era, cursor = nodes.era, nodes.cursor
    assert [info.name for info in nodes.order()] == ["n", "m", "o"]
    nodes.bind(counted("a", "o"))
    nodes.bind(counted("b", "n"))
    nodes.bind(counted("b", "n"))
    nodes.touch("m")
    assert nodes.touched_since(cursor) == ([2, 0, 1], cursor + 3)
    assert nodes.touched_since(cursor + 2) == ([1], cursor + 3)
    assert nodes.era == era
    nodes.remove("n")
    assert nodes.era > era
    assert [info.name for info in nodes.order()] == ["m", "o"]


def test_pods_of_a_node_that_goes_count_when_it_comes_back() -> None:
    nodes = NodeIndex()
    nodes.put(node())
    nodes.bind(counted("a", cpu="1"))
    nodes.remove("n")
    nodes.bind(counted("b", cpu="2"))
    nodes.bind(counted("c", cpu="500m"))
    nodes.release(("ns", "c"))
    nodes.put(node())
    info = nodes.get("n")
    assert info is not None
    assert sorted(name for _, name in info.pods) == ["a", "b"]
    assert info.requested["cpu"] == counted("x", cpu="3").requests["cpu"]
    nodes.put(node(cpu="9"))
    info = nodes.get("n")
    assert info is not None
    assert info.requested["cpu"] == counted("x", cpu="3").requests["cpu"]


def test_nodes_take_turns_by_zone() -> None:
    """Parity: controllers.md 4.4. A node that changes its zone is the last of the new one."""
    nodes = NodeIndex()
    zones = {"a": "1", "b": "1", "c": "2", "d": "1", "e": "3"}
    for name, zone in zones.items():
        nodes.put(node(name, labels={"topology.kubernetes.io/zone": zone}))
    assert [info.name for info in nodes.order()] == ["a", "c", "e", "b", "d"]
    nodes.put(node("a", labels={"topology.kubernetes.io/zone": "2"}))
    assert [info.name for info in nodes.order()] == ["b", "c", "e", "d", "a"]
    nodes.remove("c")
    assert [info.name for info in nodes.order()] == ["b", "a", "e", "d"]
    nodes.put(node("b", labels={"topology.kubernetes.io/region": "r"}))
    assert [info.name for info in nodes.order()] == ["d", "a", "e", "b"]


class Owner:
    """An owner of a queue that remembers which pods were let in, and because of which revision."""

    def __init__(self) -> None:
        self.let_in: list[tuple[str, int]] = []
        self.waker = hints.Waker(SchedulingQueue(), self.admit)

    def admit(self, pod: QueuedPod, objects: object, now: Instant) -> None:
        self.let_in.append((pod.spec.facts.name, pod.cause))
        pod.where = QueuePart.ACTIVE


def queued(name: str, *claims: str, where: QueuePart = QueuePart.UNSCHEDULABLE) -> QueuedPod:
    """A pod that the spreading of pods has kept from all nodes."""
    entries = [{"name": each, "resourceClaimName": each} for each in claims]
    metadata = {"namespace": "ns", "name": name, "uid": name}
    spec = pod_spec.read({"metadata": metadata, "spec": {"resourceClaims": entries}})
    plugins = frozenset((hints.POD_TOPOLOGY_SPREAD,))
    return QueuedPod(spec=spec, order=Revision(1), since=Instant(0), where=where, plugins=plugins)


MINE, OTHERS = ("ns", "mine"), ("ns", "others")
P, Q = ("ns", "p"), ("ns", "q")


@pytest.mark.parametrize(
    ("hinted", "cause"),
    [
        pytest.param([(5, {})], 5, id="it may help all"),
        pytest.param([(4, {})], None, id="the attempt had seen it"),
        pytest.param([(4, {}), (6, {}), (7, {})], 6, id="the first that it had not seen"),
        pytest.param([(5, {"pod": P})], 5, id="of itself"),
        pytest.param([(5, {"pod": Q})], None, id="of another pod"),
        pytest.param([(5, {"claim": MINE})], 5, id="of its claim"),
        pytest.param([(5, {"claim": OTHERS})], None, id="of a claim of others"),
        pytest.param([(5, {"claim": MINE, "pod": Q})], None, id="of its claim, for another pod"),
        pytest.param([(5, {"claim": OTHERS, "pod": P})], None, id="of it, with another claim"),
        pytest.param([(5, {"plugins": frozenset((hints.PORTS,))})], None, id="for other plug-ins"),
        pytest.param([(5, {"up_to": -1})], None, id="for lower priorities"),
        pytest.param([(5, {"up_to": 0})], 5, id="for its priority"),
        pytest.param([(5, {"claim": OTHERS}), (6, {"claim": MINE})], 6, id="its claim came later"),
    ],
)
def test_pod_that_failed_is_woken_by_what_its_attempt_had_not_seen(
    hinted: list[tuple[int, Tree]], cause: int | None
) -> None:
    """The attempt had seen revision 4."""
    owner, pod = Owner(), queued("p", "mine")
    owner.waker.note_pod(pod)
    for revision, parts in hinted:
        hint = hints.Hint(**{"plugins": pod.plugins, **parts})
        owner.waker._recent.append((Revision(revision), hint))
    objects: Any = None
    owner.waker.replay(pod, objects, Revision(4), Instant(9))
    assert owner.let_in == ([] if cause is None else [("p", cause)])


@pytest.mark.parametrize(
    "where", [part for part in QueuePart if part is not QueuePart.UNSCHEDULABLE]
)
def test_pod_that_waits_otherwise_is_not_woken(where: QueuePart) -> None:
    owner, pod = Owner(), queued("p", where=where)
    objects: Any = None
    owner.waker.wake_one(pod, hints.Hint(plugins=pod.plugins), objects, Instant(9), Revision(5))
    assert owner.let_in == []
