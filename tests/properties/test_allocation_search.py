"""The allocator answers like the literal one, with any shortcuts, variant and repairs.

REDRA_FUZZ_WORLDS sets how many worlds are tried (20,000 take about two minutes); a failure names
the seed, and `python -m tests.fuzz worlds --cases 1 --seed SEED` shows it again, made small.
"""

import os

import pytest

from app.domain.allocation import Quirks, Variant
from app.domain.allocation.quirks import NUMBERS
from tests import draws
from tests.fuzz import worlds as fuzzing
from tests.worlds import differences, random_worlds, recombined_worlds, trap_worlds

WORLDS = int(os.environ.get("REDRA_FUZZ_WORLDS") or 600 * draws.FACTOR)
CHUNKS = 8


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_answers_are_those_of_the_literal_allocator(chunk: int) -> None:
    size = WORLDS // CHUNKS
    report = fuzzing.compare(range(chunk * size, (chunk + 1) * size))
    assert report.too_long <= max(3, size // 20), "too many worlds are too long to be compared"
    assert {"allocated", "none", "fatal"} <= set(report.outcomes), "the worlds are all alike"


@pytest.mark.parametrize("variant", [Variant.STABLE, Variant.INCUBATING])
def test_other_variants_answer_as_the_literal_allocator(variant: Variant) -> None:
    for seed in range(WORLDS // 16):
        for source in (random_worlds, recombined_worlds, trap_worlds):
            found = differences.difference(source.world(seed), variant=variant)
            assert found in (None, differences.TOO_LONG), f"{source.__name__} {seed}: {found}"


@pytest.mark.parametrize("quirk", NUMBERS)
def test_each_repaired_quirk_answers_as_the_literal_allocator(quirk: str) -> None:
    repaired = Quirks.named(quirk)
    for seed in range(WORLDS // 20):
        found = differences.difference(trap_worlds.world(seed), quirks=repaired)
        assert found in (None, differences.TOO_LONG), f"trap {seed}: {found}"


def test_a_difference_is_made_small() -> None:
    world = recombined_worlds.world(1)

    def differs(made: dict) -> bool:
        return any(
            found.get("spec", {}).get("devices") for found in made["input"].get("slices", ())
        )

    small = fuzzing.smaller(world, differs)["input"]
    assert list(small) == ["slices"]
    assert len(small["slices"]) == 1
    assert len(small["slices"][0]["spec"]["devices"]) == 1
