"""Rows that one test checks together are all checked, and those that fail are named."""

import pytest

from tests.together import check_each, together


def test_rows_that_fail_are_named_and_the_others_are_checked() -> None:
    checked = []

    def check(row: int) -> None:
        checked.append(row)
        assert row % 2 == 0

    with pytest.raises(ExceptionGroup, match="2 of 5 rows fail: <1>, <3>") as raised:
        check_each(range(5), lambda row: f"<{row}>", check)
    assert checked == [0, 1, 2, 3, 4]
    assert [type(problem) for problem in raised.value.exceptions] == [AssertionError] * 2


def test_parts_have_each_row_once() -> None:
    rows = [f"row {number}" for number in range(45)]
    checked: list[str] = []

    @together(rows, str)
    def test(row: str) -> None:
        checked.append(row)

    (mark,) = test.pytestmark  # type: ignore[attr-defined]  # pytest's own attribute
    for part in mark.args[1]:
        test(part)
    assert checked == rows
    assert mark.kwargs["ids"][-1] == "row 40..row 44"


def test_without_rows_the_reason_is_given() -> None:
    def absent() -> None:
        pytest.fail("no file")

    test = together([], str, absent=absent)(lambda row: None)
    with pytest.raises(pytest.fail.Exception, match="no file"):
        test(())
