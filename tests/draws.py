"""The number of drawn cases in a run of the tests: REDRA_DRAWS=1, and `make draws` for more.

A normal run takes few drawn cases and only the beginning of long recordings, always the same ones,
and a fourth of the rows that come by day, another one each day (REDRA_DAY). More cases find rare
defects: with REDRA_DRAWS=N a test takes N times as many, and whole recordings.
"""

import itertools
import os
import random
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest
from _pytest.mark.structures import ParameterSet

from tests import track_record

Case = TypeVar("Case")

FACTOR = max(1, int(os.environ.get("REDRA_DRAWS") or 1))

WHOLE = FACTOR > 1
"""True when tests take whole recordings."""

DAY = int(os.environ.setdefault("REDRA_DAY", str(int(time.time()) // 86_400)))
"""The day of this run, counted from 1970. All processes of a run have that of the first, which
prints it; REDRA_DAY repeats the run of another day."""

_DAYS = 4
"""The runs of so many days in a row have all rows that come by day."""


def seeds(few: int, *, first: int = 0) -> Sequence[int]:
    """The seeds of a test: those in REDRA_SEEDS, otherwise `few` times the factor from `first`."""
    if named := os.environ.get("REDRA_SEEDS", "").split():
        return [int(seed) for seed in named]
    return range(first, first + few * FACTOR)


def examples(many: int) -> int:
    """The number of examples that Hypothesis draws: a fifth of `many` in a normal run.

    Hypothesis draws other examples in each run, so many runs cover what one long run covers. With
    more draws it is a third of `many`, times the factor.
    """
    return max(2, many * FACTOR // 3 if WHOLE else many // 5)


def part(cases: Sequence[Case], every: int) -> Sequence[Case]:
    """Each `every`th case in a normal run; all cases with more draws."""
    return cases if WHOLE else cases[::every]


def of_today(cases: Sequence[Case]) -> Sequence[Case]:
    """A fourth of the cases that one test goes through, in their order; all with more draws.

    Four days have all of them, the next four in other parts: cases that only together show a
    mistake meet on some days.
    """
    if WHOLE:
        return cases
    block, day = divmod(DAY, _DAYS)
    numbers = random.Random(block).sample(range(len(cases)), len(cases))
    return [cases[number] for number in sorted(numbers[day::_DAYS])]


def by_turns(cases: Iterable[Sequence[Case]]) -> list[Case]:
    """One case of each group in a normal run, at changing positions; all cases with more draws.

    The cases of a group have one cause, such as one alteration of several recordings.
    """
    if WHOLE:
        return [case for group in cases for case in group]
    groups = [group for group in cases if group]
    return [group[number % len(group)] for number, group in enumerate(groups)]


def first_of_each(cases: Iterable[Sequence[Case]]) -> list[Case]:
    """The first case of each group in a normal run; all cases with more draws.

    The cases of a group stand in the order of their work. Each fourth group of several cases is
    represented by another one, by turns, so that a normal run has all groups and all positions.
    """
    if WHOLE:
        return [case for group in cases for case in group]
    chosen, several = [], itertools.count(1)
    for group in filter(None, cases):
        turn, left = divmod(next(several), _OTHERS_EVERY) if group[1:] else (0, 1)
        chosen.append(group[0 if left else 1 + (turn - 1) % (len(group) - 1)])
    return chosen


_OTHERS_EVERY = 4

ONLY = pytest.mark.draws
"""Marks a test that only repeats what others of a normal run show: it comes with more draws.

`tests/conftest.py` leaves such tests out of a normal run, whose last line counts them as
"deselected". A module with such tests lies below a path of DRAWN in the Makefile.
"""


def repeated(*values: object) -> ParameterSet:
    """A row of parameters that comes with more draws alone."""
    return pytest.param(*values, marks=ONLY)


BY_DAY = pytest.mark.by_day
"""Marks a test of many rows of which each run has a fourth, another one each day, and always one.

The rows have cause, path and verdict in common, so that any of them notices most of what breaks
them all. A row that the track record names holds a defect: it comes with each run, as does the
first row of an alteration that it names; rows stand in the order of their work. Tests of equal rows
that share work name it (`BY_DAY("imports")`): they have the same rows on each day.
"""


def by_day(*values: object) -> ParameterSet:
    """A row of parameters that comes by day with the others of its test."""
    return pytest.param(*values, marks=BY_DAY)


def of_other_days(items: Iterable[pytest.Item], day: int = DAY) -> list[pytest.Item]:
    """The rows that come by day, and not on this one."""
    families: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    held = set()
    for item in items:
        mark = item.get_closest_marker(BY_DAY.name)
        if mark is None:
            continue
        test = item.nodeid.partition("[")[0]
        defect = test, track_record.defect_of(item)
        if defect[1] and defect not in held:
            held.add(defect)
        else:
            families[test, mark.args[0] if mark.args else test].append(item)
    left = []
    for (_, shared), rows in families.items():
        days = min(_DAYS, len(rows))
        # Otherwise the same day would begin all families.
        begin = day + zlib.crc32(shared.encode())
        left += [item for number, item in enumerate(rows) if (number - begin) % days]
    return left
