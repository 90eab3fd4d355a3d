"""Asks `why` of pods whose claims a quota may refuse, and does what is proposed.

`python -m tests.fuzz quotas --cases N --seed S` judges N worlds (`tests/truth/quotas`).
"""

import anyio

from tests.truth.quotas.judging import judge


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    wrong = anyio.run(_judged, range(seed, seed + cases))
    print(f"{cases} worlds judged, {len(wrong)} differences")
    if wrong:
        raise AssertionError("\n".join(wrong))


async def _judged(seeds: range) -> list[str]:
    return [f"seed {seed}: {one}" for seed in seeds for one in await judge(seed)]
