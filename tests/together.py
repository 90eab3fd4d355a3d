"""Rows of a table that one test checks together.

For each test the processes of a run collect it, report on it and exchange messages: three to four
milliseconds, which is more than a short row takes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

_ROWS_OF_A_TEST = 20


def together(
    rows: Sequence[Any],
    name_of: Callable[[Any], str],
    *,
    absent: Callable[[], object] | None = None,
) -> Callable[[Callable[[Any], None]], Callable[[Sequence[Any]], None]]:
    """Makes a test of one row a test of twenty rows, with the names of the first and last one.

    Each row is checked, whatever others show. Those that fail are raised together, each with its
    name. Without rows the test calls `absent`, which says why there are none.
    """
    begins = range(0, len(rows), _ROWS_OF_A_TEST)
    parts = [rows[begin : begin + _ROWS_OF_A_TEST] for begin in begins]
    ids = [f"{name_of(part[0])}..{name_of(part[-1])}" for part in parts]
    if absent is not None and not parts:
        parts, ids = [()], ["absent"]

    def decorate(check: Callable[[Any], None]) -> Callable[[Sequence[Any]], None]:
        @pytest.mark.parametrize("rows", parts, ids=ids)
        def test(rows: Sequence[Any]) -> None:
            if absent is not None and not rows:
                absent()
            check_each(rows, name_of, check)

        # functools.wraps would make pytest ask for the parameters of one row.
        test.__name__, test.__qualname__ = check.__name__, check.__qualname__
        test.__module__, test.__doc__ = check.__module__, check.__doc__
        return test

    return decorate


def check_each(
    rows: Sequence[Any], name_of: Callable[[Any], str], check: Callable[[Any], None]
) -> None:
    """Checks each row. Raises ExceptionGroup with what those that fail have raised, named."""
    problems = []
    for row in rows:
        try:
            check(row)
        except Exception as problem:
            problem.add_note(f"row: {name_of(row)}")
            problems.append(problem)
    if problems:
        names = ", ".join(problem.__notes__[-1].removeprefix("row: ") for problem in problems)
        raise ExceptionGroup(f"{len(problems)} of {len(rows)} rows fail: {names}", problems)
