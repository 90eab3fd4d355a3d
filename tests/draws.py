"""The number of drawn cases in a run of the tests: REDRA_DRAWS=1, and `make draws` for more.

A normal run takes few drawn cases and only the beginning of long recordings, always the same ones.
More cases find rare defects: with REDRA_DRAWS=N a test takes N times as many, and whole recordings.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

Case = TypeVar("Case")

FACTOR = max(1, int(os.environ.get("REDRA_DRAWS") or 1))

WHOLE = FACTOR > 1
"""True when tests take whole recordings."""


def seeds(few: int, *, first: int = 0) -> Sequence[int]:
    """The seeds of a test: those in REDRA_SEEDS, otherwise `few` times the factor from `first`."""
    if named := os.environ.get("REDRA_SEEDS", "").split():
        return [int(seed) for seed in named]
    return range(first, first + few * FACTOR)


def examples(many: int) -> int:
    """The number of examples that Hypothesis draws: a third of `many` in a normal run.

    Hypothesis draws other examples in each run, so many runs cover what one long run covers.
    """
    return max(2, many * FACTOR // 3)


def by_turns(cases: Iterable[Sequence[Case]]) -> list[Case]:
    """One case of each group in a normal run, at changing positions; all cases with more draws.

    The cases of a group have one cause, such as one alteration of several recordings.
    """
    if WHOLE:
        return [case for group in cases for case in group]
    groups = [group for group in cases if group]
    return [group[number % len(group)] for number, group in enumerate(groups)]
