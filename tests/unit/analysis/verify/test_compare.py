"""The first difference of two trees, and the counts of comparisons as JSON."""

import pytest

from app.analysis.verify.compare import (
    ComparisonCounts,
    ComparisonResult,
    DifferenceKind,
    first_difference,
)


@pytest.mark.parametrize(
    ("recorded", "again", "difference"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, None),
        ({"a": [1, 2]}, {"a": [1, 3]}, ("a[1]", 2, 3)),
        ({"a": [1]}, {"a": [1, 2]}, ("a[1]", None, 2)),
        ({"a": [1, 2]}, {"a": [1]}, ("a[1]", 2, None)),
        ({"a": [3, 2]}, {"a": [1]}, ("a[0]", 3, 1)),
        ({"a": {"b": 1}}, {"a": {}}, ("a.b", 1, None)),
        ({"a": {}}, {"a": {"b": 1}}, ("a.b", None, 1)),
        ({"b": 1, "a": 2}, {"b": 3, "a": 4}, ("a", 2, 4)),
        ({"a": 1}, {"a": True}, ("a", 1, True)),
        ([], {}, ("", [], {})),
    ],
)
def test_first_difference_has_its_path_and_both_values(recorded, again, difference) -> None:
    assert first_difference(recorded, again) == difference


def test_counts_as_json_name_what_did_not_occur() -> None:
    tree = ComparisonCounts(
        counts={ComparisonResult.DIFFERENT: 2},
        differences=(),
        reasons={"gap": {"b": 1, "a": 2}},
        kinds={DifferenceKind.VIOLATION: 2},
    ).to_json()
    assert tree["counts"] == {
        each.value: 2 * (each is ComparisonResult.DIFFERENT) for each in ComparisonResult
    }
    assert tree["differencesByKind"] == {
        each.value: 2 * (each is DifferenceKind.VIOLATION) for each in DifferenceKind
    }
    assert list(tree["notComparable"]["gap"].items()) == [("a", 2), ("b", 1)]
