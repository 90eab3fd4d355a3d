"""Why: pods that went for others, pods that wait for their end, rooms that are kept."""

from app.analysis.explain import preemption
from tests.cluster import Cluster
from tests.unit.service.test_explaining import asking, texts


def cluster_with_victims() -> Cluster:
    """Two small pods on n1 that have to go for a big one, and a node that would cost more."""
    cluster = Cluster()
    cluster.node("n1", cpu="4")
    cluster.node("n2", cpu="4")
    for name, value in (("high", 1000), ("middle", 10)):
        cluster.create("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
    for name in ("a", "b"):
        cluster.pod(name, requests={"cpu": "2"}, nodeName="n1")
    cluster.pod("c", requests={"cpu": "4"}, nodeName="n2", priorityClassName="middle")
    cluster.pod("big", requests={"cpu": "4"}, priorityClassName="high")
    return cluster.settle()


async def test_pod_that_waits_for_its_victims_names_them() -> None:
    async with asking(cluster_with_victims()) as ask:
        found = await ask("pod", "big")
    said = texts(found.reason)
    assert (
        "evicted default/a, default/b on node n1 for it: the cheapest of 2 nodes that would fit "
        "by evictions" in said
    )
    place = said.index("waits until 2 evicted pods end on node n1, which is kept for it")
    assert said[place + 1 : place + 3] == [
        "default/a ends by 2026-01-02T03:00:30Z",
        "default/b ends by 2026-01-02T03:00:30Z",
    ]


async def test_node_is_kept_when_the_victims_are_gone() -> None:
    cluster = cluster_with_victims()
    cluster.kill("a")
    events = len(cluster.line.events)
    cluster.kill("b")
    at = next(
        event.revision
        for event in cluster.line.events[events:]
        if event.type == "ObjectDeleted" and event.key.name == "b"
    )
    async with asking(cluster, at=at) as ask:
        found = await ask("pod", "big")
    assert "node n1 is kept for it (status.nominatedNodeName)" in texts(found.reason)


async def test_victim_that_ends_names_the_pod_and_why_it() -> None:
    cluster = cluster_with_victims()
    async with asking(cluster) as ask:
        ending = await ask("pod", "b")
    cluster.kill("b")
    async with asking(cluster.settle()) as ask:
        gone = await ask("pod", "b")
    for found in (ending, gone):
        said = texts(found.reason)
        place = said.index(
            "PreemptionByScheduler: default-scheduler: preempting to accommodate a higher "
            "priority pod"
        )
        assert said[place + 1 : place + 4] == [
            "for pod default/big of priority 1000; its own is 0",
            "0/2 nodes are available: 2 Insufficient cpu. preemption: found a potential placement "
            "for pod on node n1, preempting 2 victims",
            "on node n1: with default/a; the cheapest of 2 nodes that would fit by evictions",
        ]


def test_victim_of_a_recording_without_decisions_has_what_the_event_says() -> None:
    cluster = cluster_with_victims()
    uid = cluster.must("pods", "big")["metadata"]["uid"]
    objects = cluster.line.views.objects
    found = preemption.evicted_for(None, objects, cluster.must("pods", "b"))
    assert [reason.text for reason in found] == [f"Preempted by pod {uid} on node n1"]


async def test_pod_that_leaves_room_for_another_says_for_whom() -> None:
    cluster = cluster_with_victims()
    cluster.kill("a")
    cluster.node("n3", cpu="1")
    cluster.pod("late", requests={"cpu": "2"})
    async with asking(cluster.settle()) as ask:
        found = await ask("pod", "late", node="n1")
    assert any(
        "Insufficient cpu, because the node is kept for default/big" in text
        for text in texts(found.reason)
    )
