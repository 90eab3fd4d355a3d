"""Asks `why` of pods whose claims a quota may refuse, and does what is proposed.

`python -m tests.fuzz quotas --cases N --seed S` judges N worlds (`tests/truth/quotas`).
"""

from tests.fuzz.judged import awaited, judge_worlds
from tests.truth.quotas.judging import world_differences


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    judge_worlds(cases, seed, awaited(world_differences))
