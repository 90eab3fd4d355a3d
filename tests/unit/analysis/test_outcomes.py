"""Outcomes that a test compares: differences are in the order of the history."""

from app.analysis.handover.outcomes import DIFFERENCES_SHOWN_MAX, Outcomes


def test_outcomes_equal_a_dict_in_any_order() -> None:
    assert Outcomes({"a": "runs", "b": "waits"}) == {"b": "waits", "a": "runs"}
    assert Outcomes({"a": "runs"}) != {"a": "waits"}
    assert Outcomes({"a": "runs"}) != {}
    assert repr(Outcomes({"a": "runs"})) == "{'a': 'runs'}"


def test_differences_are_told_in_the_order_of_the_history_with_absent_ones_last() -> None:
    outcomes = Outcomes({"z": "runs", "m": "waits", "a": "runs"})
    assert outcomes.differences({"b": "runs", "a": "gone", "m": "waits", "z": "waits"}) == [
        "3 of 4 outcomes differ",
        "z: runs, expected: waits",
        "a: runs, expected: gone",
        "b: absent, expected: runs",
    ]


def test_differences_beyond_the_bound_are_counted() -> None:
    names = [f"pod-{number}" for number in range(DIFFERENCES_SHOWN_MAX + 2)]
    lines = Outcomes(dict.fromkeys(names, "runs")).differences({})
    assert lines[0] == f"{len(names)} of {len(names)} outcomes differ"
    assert lines[-2:] == [f"pod-{DIFFERENCES_SHOWN_MAX - 1}: runs, expected: absent", "and 2 more"]
