"""Asks recordings, incidents and drawn worlds about thousands of moments and objects.

Each answer is compared with facts counted from the raw objects (`tests/truth`).
`python -m tests.fuzz truth --cases N --seed S` compares N answers or more.
"""

import itertools
from collections.abc import AsyncIterator

import anyio

from app.bootstrap.gallery import incident_files
from tests.conformance.recordings import RECORDINGS
from tests.truth import histories
from tests.truth.histories import TrueHistory
from tests.truth.judging import Judgement, judge


def run(cases: int, seed: int) -> None:
    """Compares so many answers; raises the differences."""
    judgement = anyio.run(_judged, cases, seed)
    print(f"{judgement.pairs} answers compared, {len(judgement.wrong)} differences")
    if judgement.wrong:
        raise AssertionError("\n".join(judgement.wrong))


async def _judged(cases: int, seed: int) -> Judgement:
    judgement = Judgement()
    async for number, history in _histories(seed):
        if judgement.pairs >= cases:
            break
        await judge(history, number, moments=8, objects=2, judgement=judgement)
    return judgement


async def _histories(seed: int) -> AsyncIterator[tuple[int, TrueHistory]]:
    for number in itertools.count(seed):
        for name in RECORDINGS:
            yield number, await histories.of_recording(name)
        for name in incident_files.names():
            yield number, await histories.of_incident(name)
        for world in range(4 * number, 4 * number + 4):
            yield number, await histories.of_world(world)
            yield number, await histories.of_fleet(world)
            yield number, await histories.of_alternatives(world)
            yield number, await histories.of_bindings(world)
            yield number, await histories.of_preemption(world)
