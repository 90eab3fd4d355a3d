"""Asks `why` of pods in small drawn worlds, and compares with a model that tries everything.

`python -m tests.fuzz waiting --cases N --seed S` judges N worlds (`tests/truth/waiting`).
"""

from functools import partial

from tests.fuzz.judged import awaited, judge_worlds
from tests.truth.waiting.extended_worlds import ExtendedWorld
from tests.truth.waiting.judging import judge, judge_helps

JUDGES = (
    judge,
    partial(judge, made=ExtendedWorld),
    judge_helps,
    partial(judge_helps, made=ExtendedWorld),
)


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    judge_worlds(cases, seed, *map(awaited, JUDGES))
