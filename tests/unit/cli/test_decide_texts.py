"""What `redra replay --mode decide` prints about the writes of a recording, and of differences."""

import pytest

from app.cli import replaying
from app.cli.console import Output
from app.cli.judging import differences


def test_treatments_of_recorded_writes_are_named_in_words_and_in_one_order():
    inputs = {
        "controller that is not emulated": 2,
        "refused or without effect": 3,
        "outside": 202,
        "decided again": 189,
    }
    assert replaying.recorded_writes_text(inputs) == (
        "recorded writes: 189 decided again, 202 taken as inputs (from users, drivers, kubelets "
        "and others), 2 taken from controllers that are not emulated, 3 refused or without effect"
    )


@pytest.mark.parametrize(
    ("recorded", "again", "first"),
    [
        ([], ["evicted"], (None, "evicted")),
        (["named", "bound"], ["named", "nominated"], ("bound", "nominated")),
        ([{"node": "n1"}], [], ({"node": "n1"}, None)),
        (
            [{"name": "p", "status": {"phase": "Failed"}}],
            [{"name": "p", "status": {"phase": "Running"}}],
            ({"status.phase": "Failed"}, {"status.phase": "Running"}),
        ),
        (
            [{"devices": [{"device": "g0"}, {"device": "g1"}]}],
            [{"devices": [{"device": "g0"}, {"device": "g2"}]}],
            ({"devices": {"device": "g1"}}, {"devices": {"device": "g2"}}),
        ),
        ([{"metadata": {}}], [{"metadata": {"x": 1}}], (None, {"metadata.x": 1})),
    ],
)
def test_first_difference_is_what_each_side_has_in_the_first_place_that_differs(
    recorded, again, first
):
    assert differences.first_difference(recorded, again) == first


def test_unexplained_difference_says_what_is_recorded_and_what_is_decided_here(capsys):
    """Without the sides, a pod that was not evicted was named with no word of an eviction."""
    spec = "status: " + "same " * 100
    differences = [
        {"subject": "pods/a", "recorded": [], "again": ["evicted"], "users": ["alice"]},
        {
            "subject": "rules/r",
            "recorded": [f"{spec}2 pods"],
            "again": [f"{spec}1 pod"],
            "users": [],
        },
    ]
    report = {
        "history": "h",
        "revision": 1,
        "inputs": {},
        "tiesTakenFromTheRecording": 0,
        "aspects": {},
        "writtenBy": {},
        "notComparable": {},
        "notDone": {},
        "violations": {},
        "doubts": [],
        "outcome": "unexplained differences",
        "runsToProveClasses": 0,
        "differences": [
            {"aspect": "evictions", "class": "unexplained", "detail": "", **each}
            for each in differences
        ],
    }
    replaying._print_decide(report, Output.TEXT)
    out = capsys.readouterr().out
    sides = "  recorded:      nothing\n  decided again: evicted"
    assert f"evictions, pods/a: unexplained\n{sides}" in out
    assert "(others who wrote to it: alice)" in out
    assert "same 2 pods\n" in out
    assert "same 1 pod\n" in out
    assert "-o json" not in out
