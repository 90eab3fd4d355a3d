"""Decisions keep the causes of refusals: counted, bounded, and the same when decided again."""

import json
from dataclasses import replace

import msgspec
import pytest

from app.analysis.verify.compare import ComparisonResult
from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import Event
from tests.cluster import Cluster, check_decisions

RED = 'device.attributes["gpu.example.com"].colour == "red"'


def crowded(
    options: ControllerOptions = ControllerOptions(), nodes: int = 3, waiting: int = 3
) -> Cluster:
    """Nodes with a red device in use, a tainted one and a blue one; pods that want a red one."""
    cluster = Cluster(options=options)
    for number in range(nodes):
        name = f"n{number}"
        cluster.node(name)
        red = {"colour": {"string": "red"}}
        taint = {"key": "bad", "effect": "NoSchedule"}
        cluster.slice(
            name,
            [
                {"name": "a", "attributes": red},
                {"name": "b", "attributes": red, "taints": [taint]},
                {"name": "c", "attributes": {"colour": {"string": "blue"}}},
            ],
        )
    cluster.device_class()
    cluster.template(selectors=[{"cel": {"expression": RED}}])
    for number in range(nodes + waiting):
        cluster.pod(f"p{number}", template="gpu")
    return cluster.settle()


def refusals(cluster: Cluster) -> list[Event]:
    return [
        event
        for event in cluster.line.events
        if event.type == "DecisionRecorded" and event.object["outcome"] == "Unschedulable"
    ]


def same(cluster: Cluster) -> None:
    decisions, effects = check_decisions(cluster)
    assert not decisions.counts.get(ComparisonResult.DIFFERENT), decisions.differences[:1]
    assert not decisions.counts.get(ComparisonResult.NOT_COMPARABLE)
    assert not effects.counts.get(ComparisonResult.DIFFERENT)


def test_decision_counts_the_causes_of_all_nodes() -> None:
    found = refusals(crowded())[0].object["summary"]
    assert found["causesNodes"] == 3
    assert [
        (one["request"], one["cause"], one.get("about", ""), one["nodes"], one["devices"])
        for one in found["causes"]
    ] == [
        ("gpu", "allocated", "", 3, 3),
        ("gpu", "selector", f"selector #0 of the request: {RED}", 3, 3),
        ("gpu", "taint", "bad:NoSchedule", 3, 3),
    ]
    assert found["causes"][0]["examples"] == ["n0: n0/a", "n1: n1/a", "n2: n2/a"]


def test_each_pod_of_a_kind_names_its_own_claim() -> None:
    cluster = crowded()
    for decision in refusals(cluster):
        claim = cluster.claim_of(decision.object["name"])
        causes = decision.object["summary"]["causes"]
        assert {one["claim"] for one in causes} == {f"default/{claim}"}


def test_causes_follow_what_changes_and_are_decided_again_alike() -> None:
    cluster = crowded()
    cluster.finish("p0")
    cluster.wait(30)
    cluster.delete("resourceslices", "n1-slice")
    cluster.wait(300)
    cluster.rule("more", effect="NoSchedule", selector={"pool": "n2"})
    cluster.wait(300)
    assert len(refusals(cluster)) > 3
    same(cluster)


def test_nodes_beyond_the_bound_are_counted_and_not_asked() -> None:
    options = replace(ControllerOptions(), summary=SummaryBounds(nodes_max=2))
    cluster = crowded(options)
    found = refusals(cluster)[0].object["summary"]
    assert (found["causesNodes"], found["causesNodesCut"]) == (2, 1)
    same(cluster)


@pytest.mark.parametrize("bound", [500, 700, 1_500])
def test_summary_is_bounded_in_bytes_and_counts_what_is_cut(bound: int) -> None:
    options = replace(ControllerOptions(), summary=SummaryBounds(bytes_max=bound))
    cluster = crowded(options)
    for decision in refusals(cluster):
        found = decision.object["summary"]
        assert len(json.dumps(found, separators=(",", ":")).encode()) <= bound
        shown = sum(one["devices"] for one in found["causes"])
        assert shown + found.get("causesDevicesCut", 0) == 9
    same(cluster)


def test_decision_is_made_again_under_the_bounds_it_keeps() -> None:
    told = crowded(replace(ControllerOptions(), summary=SummaryBounds(bytes_max=700, nodes_max=2)))
    told._options = ControllerOptions()
    same(told)


def test_decision_from_before_there_were_causes_is_made_again_without() -> None:
    cluster = crowded()
    for event in refusals(cluster):
        body = json.loads(event.body)
        for name in ("causes", "causesNodes"):
            del body["summary"][name]
        del body["inputs"]["summary"]
        again = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        number = cluster.line.events.index(event)
        cluster.line.events[number] = msgspec.structs.replace(event, body=again.encode(), tree=None)
    same(cluster)


def test_pods_that_find_a_node_count_nothing() -> None:
    cluster = crowded(waiting=0)
    for event in cluster.line.events:
        if event.type == "DecisionRecorded":
            assert "causes" not in event.object["summary"]
            assert "summary" not in event.object["inputs"]
