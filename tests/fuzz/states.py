"""Asks `why` of pods and claims in use in drawn worlds, and compares with a model.

`python -m tests.fuzz states --cases N --seed S` judges N worlds (`tests/truth/states`).
"""

from tests.fuzz.judged import awaited, judge_worlds
from tests.truth.states.judging import world_differences


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    judge_worlds(cases, seed, awaited(world_differences))
