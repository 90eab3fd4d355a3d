"""The number of drawn cases in a run of the tests: REDRA_DRAWS=1, and `make draws` for more.

A normal run takes few drawn cases and only the beginning of long recordings, always the same ones,
a seventh of the rows and tests that come by day or in turn (a fourteenth of those that show that
something works), others each day (REDRA_DAY). More cases
find rare defects: with REDRA_DRAWS=N a test takes N times as many, and whole recordings.
"""

import itertools
import os
import random
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

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

_DAYS = 7
"""The runs of so many days in a row have all that comes by day or in turn."""

_DAYS_OF_WAYS = 14
"""Those of so many have all long tests that show that something works: where it no longer does,
short ones fail each day."""


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
    """A seventh of the cases that one test goes through, in their order; all with more draws.

    Seven days have all of them, the next seven in other parts: cases that only together show a
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
"""Marks a test of many rows of which each run has a seventh, another one each day, and always one.

The rows have cause, path and verdict in common, so that any of them notices most of what breaks
them all. A row that the track record names holds a defect: it comes twice in seven days, as does
the first row of an alteration that it names; rows stand in the order of their work. Tests of equal
rows that share work name it (`BY_DAY("imports")`): they have the same rows on each day.
"""


def by_day(*values: object) -> ParameterSet:
    """A row of parameters that comes by day with the others of its test."""
    return pytest.param(*values, marks=BY_DAY)


def in_turn(family: str, *, each_day: str = "") -> pytest.MarkDecorator:
    """Marks a test, or a row of one, of a family: of its folder for those in OF_A_FOLDER, else of
    its module.

    Each run has a seventh of the family (of "ways" a fourteenth), another one each day, and always
    one. The tests of a family show by a long way, such as whole recordings, processes and clients,
    what short ones hold each day; `each_day` names one, as "FOLDER/FILE.py::" "test_name". In the
    families of TWICE_IN_SEVEN_DAYS, a test that the track record names comes twice in seven days.
    """
    return BY_DAY(among=family, each_day=each_day)


OF_A_FOLDER = frozenset({"wrongs", "ends", "refusals", "ways"})
"""Families of tests that take long, to which all modules of a folder of `tests` belong.

A family of two tests would have one of them in each run. Where fewer files are collected than a
folder has, such as by the path of one, the family is that of those files.
"""

TWICE_IN_SEVEN_DAYS = frozenset({"wrongs", "refusals", "defects"})
"""Families, also as "rows of …", whose tests hold verdicts: that something is wrong or refused.

What they miss is nowhere else to be seen; what no longer works in a process, a client or a long
recording also fails in others.
"""


def modules_in_turn(family: str) -> pytest.MarkDecorator:
    """Marks a module of a family, whose tests share a server or another long preparation.

    Each run has a seventh of the modules of the family, another one each day, and always one.
    """
    return BY_DAY(modules=family)


def of_other_days(items: Iterable[pytest.Item], day: int = DAY) -> list[pytest.Item]:
    """The rows and tests that come by day or in turn, and not on this one."""
    families: dict[tuple[str, str], dict[str, _Unit]] = defaultdict(dict)
    defects = set()
    for item in items:
        mark = item.get_closest_marker(BY_DAY.name)
        if mark is None:
            continue
        test = item.nodeid.partition("[")[0]
        module = test.partition("::")[0]
        defect = track_record.defect_of(item)
        if family := mark.kwargs.get("modules"):
            families["", family].setdefault(module, _Unit([])).items.append(item)
        elif family := mark.kwargs.get("among"):
            is_often = family.removeprefix("rows of ") in TWICE_IN_SEVEN_DAYS
            named = is_often and track_record.names(item)
            home = "/".join(module.split("/")[:2]) if family in OF_A_FOLDER else module
            families[home, f"{home} {family}"][item.nodeid] = _Unit([item], named)
        else:
            first = bool(defect) and (test, defect) not in defects
            defects.add((test, defect))
            shared = mark.args[0] if mark.args else test
            families[test, shared][item.nodeid] = _Unit([item], first)
    left = []
    for (_, shared), units in families.items():
        is_of_ways = shared.partition(" ")[2] == "ways"
        days = min(_DAYS_OF_WAYS if is_of_ways else _DAYS, len(units))
        # Otherwise the same day would begin all families.
        begin = day + zlib.crc32(shared.encode())
        for number, unit in enumerate(units.values()):
            turn = (number - begin) % days
            if turn and not (unit.holds_a_defect and turn == days // 2 > 1):
                left += unit.items
    return left


class _Unit(NamedTuple):
    """Rows of a family that come together: one row, or the tests of a module."""

    items: list[pytest.Item]
    holds_a_defect: bool = False
