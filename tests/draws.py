"""How much of what only repeats runs with the tests: REDRA_DRAWS=1, and `make draws` for more.

A test that draws its cases, or that decides a long recording, takes few and a part of it with each
run of the tests, always the same ones; more of them find what is rare. With REDRA_DRAWS=N it
takes N times as many, and recordings are taken whole.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

Case = TypeVar("Case")

FACTOR = max(1, int(os.environ.get("REDRA_DRAWS") or 1))

WHOLE = FACTOR > 1
"""Recordings are taken to their end."""


def seeds(few: int, *, first: int = 0) -> Sequence[int]:
    """The seeds of a test: `few` with each run of the tests, or those that REDRA_SEEDS names."""
    if named := os.environ.get("REDRA_SEEDS", "").split():
        return [int(seed) for seed in named]
    return range(first, first + few * FACTOR)


def examples(many: int) -> int:
    """How many examples Hypothesis draws: a third of these with each run of the tests.

    It draws others each time, so that many runs see what one long run sees.
    """
    return max(2, many * FACTOR // 3)


def by_turns(cases: Iterable[Sequence[Case]]) -> list[Case]:
    """Of each group of cases one, by turns, with each run of the tests; all with more draws.

    A group is what has one cause: an alteration on several recordings, say.
    """
    if WHOLE:
        return [case for group in cases for case in group]
    groups = [group for group in cases if group]
    return [group[number % len(group)] for number, group in enumerate(groups)]
