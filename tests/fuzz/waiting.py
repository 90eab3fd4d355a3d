"""Draws worlds in which a pod waits, and compares what redra says with a count and with trials.

`python -m tests.fuzz waiting --cases N --seed S` judges N worlds (`tests/truth/waiting`).
"""

from functools import partial

from tests.fuzz.judged import awaited, judge_worlds
from tests.truth.waiting import alternatives
from tests.truth.waiting.extended_worlds import ExtendedWorld
from tests.truth.waiting.judging import help_differences, world_differences
from tests.truth.waiting.prioritized import PrioritizedWorld
from tests.truth.waiting.privileged import PrivilegedWorld
from tests.truth.waiting.worlds import SmallWorld

WORLDS = (SmallWorld, ExtendedWorld, PrivilegedWorld, PrioritizedWorld)


async def _choices(seed: int) -> list[str]:
    world = PrioritizedWorld(seed)
    return [*alternatives.differences(world), *await alternatives.told_differences(world)]


JUDGES = (
    *(
        partial(judged, made=world)
        for world in WORLDS
        for judged in (world_differences, help_differences)
    ),
    _choices,
)


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    judge_worlds(cases, seed, *map(awaited, JUDGES))
