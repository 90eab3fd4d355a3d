"""Lets drawn pods wait for binding conditions, and compares with a model.

`python -m tests.fuzz bindings --cases N --seed S` judges N worlds (`tests/truth/bindings`).
"""

import anyio

from tests.truth.bindings.judging import world_differences


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    wrong = anyio.run(_judged, range(seed, seed + cases))
    print(f"{cases} worlds judged, {len(wrong)} differences")
    if wrong:
        raise AssertionError("\n".join(wrong))


async def _judged(seeds: range) -> list[str]:
    return [f"seed {seed}: {one}" for seed in seeds for one in await world_differences(seed)]
