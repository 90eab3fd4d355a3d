"""`why` names the cause that a generator planted: objects, numbers, and the event behind it."""

import random

import pytest

from tests import draws
from tests.unit.service.test_explaining import asking
from tests.worlds.planted import hardware, held, placed, plant, waiting
from tests.worlds.planted.plant import Sow

SEEDS = draws.seeds(1)


@draws.in_turn("rows of ways")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "sow",
    [*waiting.SOWN, *placed.SOWN, *held.SOWN, *hardware.SOWN],
    ids=lambda sow: sow.__name__,
)
async def test_planted_cause_is_among_the_first(sow: Sow, seed: int) -> None:
    planted = sow(random.Random(seed))
    async with asking(planted.cluster) as ask:
        answer = await ask(planted.kind, planted.name, **planted.ask)
    problems = plant.problems(planted, answer.to_json())
    assert not problems, "\n".join(problems)
