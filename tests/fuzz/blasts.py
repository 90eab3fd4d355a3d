"""Asks `blast` of changes to small drawn worlds, makes the changes, and compares.

`python -m tests.fuzz blasts --cases N --seed S` judges N worlds (`tests/truth/blasts`).
"""

from tests.fuzz.judged import judge_worlds
from tests.truth.blasts.judging import world_differences


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    judge_worlds(cases, seed, world_differences)
