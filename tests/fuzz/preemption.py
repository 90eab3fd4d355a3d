"""Lets more important pods come to clusters that are full, and compares who goes with a model.

`python -m tests.fuzz preemption --cases N --seed S` judges N worlds (`tests/truth/preemption`).
"""

from tests.fuzz.judged import judge_worlds
from tests.truth.preemption.judging import judge


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    judge_worlds(cases, seed, judge)
