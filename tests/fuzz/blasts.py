"""Asks `blast` of changes to small drawn worlds, makes the changes, and compares.

`python -m tests.fuzz blasts --cases N --seed S` judges N worlds (`tests/truth/blasts`).
"""

from tests.truth.blasts.judging import judge


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    wrong = [f"seed {one}: {text}" for one in range(seed, seed + cases) for text in judge(one)]
    print(f"{cases} worlds judged, {len(wrong)} differences")
    if wrong:
        raise AssertionError("\n".join(wrong))
