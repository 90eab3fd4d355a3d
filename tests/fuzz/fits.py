"""Asks `fit` about drawn pods in small drawn worlds, creates copies, and compares.

`python -m tests.fuzz fits --cases N --seed S` judges N worlds (`tests/truth/fits`).
"""

from tests.fuzz.judged import judge_worlds
from tests.truth.fits.judging import world_differences


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    judge_worlds(cases, seed, world_differences)
