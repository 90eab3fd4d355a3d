"""Asks `fit` about drawn pods in small drawn worlds, creates copies, and compares.

`python -m tests.fuzz fits --cases N --seed S` judges N worlds (`tests/truth/fits`).
"""

from tests.truth.fits.judging import judge


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    wrong = [f"seed {one}: {text}" for one in range(seed, seed + cases) for text in judge(one)]
    print(f"{cases} worlds judged, {len(wrong)} differences")
    if wrong:
        raise AssertionError("\n".join(wrong))
