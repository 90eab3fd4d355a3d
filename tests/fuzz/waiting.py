"""Asks `why` of pods in small drawn worlds, and compares with a model that tries everything.

`python -m tests.fuzz waiting --cases N --seed S` judges N worlds (`tests/truth/waiting`).
"""

import anyio

from tests.truth.waiting.extended_worlds import ExtendedWorld
from tests.truth.waiting.judging import judge, judge_helps


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    wrong = anyio.run(_judged, range(seed, seed + cases))
    print(f"{cases} worlds judged, {len(wrong)} differences")
    if wrong:
        raise AssertionError("\n".join(wrong))


async def _judged(seeds: range) -> list[str]:
    return [
        f"seed {seed}: {one}"
        for seed in seeds
        for one in (
            *await judge(seed),
            *await judge(seed, ExtendedWorld),
            *await judge_helps(seed),
            *await judge_helps(seed, ExtendedWorld),
        )
    ]
