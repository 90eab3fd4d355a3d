"""Answers about drawn moments and objects have the numbers and names of the raw objects."""

import pytest

from tests import draws
from tests.conformance.recordings import RECORDINGS
from tests.truth import histories
from tests.truth.judging import Judgement, judge

INCIDENTS = (
    "counter-below-zero",
    "device-in-two-claims",
    "device-name-in-two-slices",
    "driver-is-lost",
    "newer-generation-unnoticed",
    "placed-to-be-evicted",
    "rule-without-selector",
    "rules-not-seen",
)
MOMENTS = 3 * draws.FACTOR
CASES = [
    *((histories.of_recording, name) for name in RECORDINGS),
    *((histories.of_incident, name) for name in INCIDENTS),
    *((histories.of_world, seed) for seed in draws.seeds(2)),
    *((histories.of_fleet, seed) for seed in draws.seeds(2)),
    *((histories.of_alternatives, seed) for seed in draws.seeds(4)),
    *((histories.of_bindings, seed) for seed in draws.seeds(4)),
    *((histories.of_preemption, seed) for seed in draws.seeds(4)),
]


@draws.BY_DAY
@pytest.mark.parametrize(
    ("make", "which"), CASES, ids=[f"{make.__name__}-{which}" for make, which in CASES]
)
async def test_answers_have_the_numbers_and_names_of_the_raw_objects(make, which):
    judgement = Judgement()
    await judge(await make(which), MOMENTS, moments=MOMENTS, objects=1, judgement=judgement)
    assert judgement.wrong == []
    assert judgement.pairs > 4
