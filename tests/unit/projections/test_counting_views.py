"""Decisions and activity: views that only grow."""

import pytest

from projections.activity import MINUTE, ActivityProjection
from projections.decisions import DecisionsProjection
from tests.unit.projections.log_of import START, LogOf


@pytest.fixture
def decisions() -> LogOf:
    return LogOf(DecisionsProjection())


@pytest.fixture
def activity() -> LogOf:
    return LogOf(ActivityProjection())


def test_a_decision_is_a_row(decisions: LogOf) -> None:
    decisions.put("pod", "ns/a")
    revision = decisions.decide(
        "ns/a",
        controller="scheduling",
        resource="pods",
        outcome="Unschedulable",
        inputs={"attempt": 2},
        summary={"message": "no", "causes": [{"cause": "taint", "devices": 2}]},
        plan="sha256:1",
        commands=1,
    )
    columns = (
        "controller resource namespace name outcome observed inputs summary causes plan commands"
    )
    assert decisions.part("view_decisions", revision, columns=columns) == [
        "scheduling",
        "pods",
        "ns",
        "a",
        "Unschedulable",
        1,
        {"attempt": 2},
        {"message": "no", "causes": [{"cause": "taint", "devices": 2}]},
        [{"cause": "taint", "devices": 2}],
        "sha256:1",
        1,
    ]


def test_each_decision_about_a_pod_has_a_row(decisions: LogOf) -> None:
    first = decisions.decide("ns/a", outcome="x")
    other = decisions.decide("ns/b", outcome="x")
    third = decisions.decide("ns/a", outcome="y")
    decisions.put("pod", "ns/a")
    rows = [decisions.view.row("view_decisions", (number,)) for number in range(first, third + 2)]
    assert [row and (row["revision"], row["name"], row["outcome"]) for row in rows] == [
        (first, "a", "x"),
        (other, "b", "x"),
        (third, "a", "y"),
        None,
    ]


def test_an_odd_decision_is_a_row_with_blanks(decisions: LogOf) -> None:
    revision = decisions.decide("ns/a", controller=7, inputs=[], summary=None, commands="many")
    columns = "controller inputs summary causes commands"
    assert decisions.part("view_decisions", revision, columns=columns) == ["", {}, {}, [], 0]


def test_events_are_counted_by_minute_kind_verb_and_actor(activity: LogOf) -> None:
    for number in range(61):
        activity.put("pod", f"ns/{number}")
    activity.put("pod", "ns/61", actor="bob")
    key = ("ObjectCreated", "", "pods", "update", "alice")
    assert activity.row("view_activity", START, *key)["events"] == 59
    assert activity.row("view_activity", START + MINUTE, *key)["events"] == 2
    bob = activity.row("view_activity", START + MINUTE, *key[:-1], "bob")
    assert bob["bytes"] == len(activity.events[-1].body)


def test_decisions_are_counted_by_outcome(activity: LogOf) -> None:
    for outcome in ("Scheduled", "Scheduled", "Unschedulable"):
        activity.decide("ns/a", controller="scheduling", outcome=outcome)
    assert activity.row("view_outcomes", START, "scheduling", "Scheduled")["decisions"] == 2
    assert activity.row("view_outcomes", START, "scheduling", "Unschedulable")["decisions"] == 1


def test_keys_of_counts_are_plain_values(activity: LogOf) -> None:
    activity.put("pod", "ns/a")
    [key] = activity.touched()["view_activity"]
    assert [type(part) for part in key] == [int, str, str, str, str, str]
