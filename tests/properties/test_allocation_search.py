"""The pruned search answers as the literal transcription of the specification does.

REDRA_FUZZ_WORLDS sets how many worlds are tried (20,000 take about a minute); a failure names the
world's seed, and `random_worlds.world(seed)` gives it again.
"""

import os

import pytest

from app.domain.allocation import Quirks, Variant, pruning
from tests.worlds import differences, random_worlds

WORLDS = int(os.environ.get("REDRA_FUZZ_WORLDS", "1200"))
CHUNKS = 12


def check(seeds: range, **how) -> None:
    unknown = 0
    for seed in seeds:
        found = differences.difference(random_worlds.world(seed), **how)
        if found == "too long":
            unknown += 1
            continue
        assert found is None, f"seed {seed}: {found}"
    assert unknown <= max(3, len(seeds) // 10), (
        "too many worlds that the literal search gives up on"
    )


@pytest.mark.timeout(900)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_pruned_search_answers_as_the_literal_one(chunk: int) -> None:
    size = WORLDS // CHUNKS
    check(range(chunk * size, (chunk + 1) * size))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("variant", [Variant.STABLE, Variant.INCUBATING])
def test_other_variants_answer_as_the_literal_search(variant: Variant) -> None:
    check(range(WORLDS // 6), variant=variant)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("quirk", ["q1", "q2", "q3", "q4", "q5", "q6", "q10", "q20"])
def test_repaired_quirks_answer_as_the_literal_search(quirk: str) -> None:
    check(range(WORLDS // 8), quirks=Quirks.named(quirk))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("theme", ["tight", "lists", "counters", "shares", "mixed"])
def test_shortcuts_that_wake_at_once_change_nothing(
    theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ("TRACED_AFTER", "MATCHING_AFTER", "SPENT_AFTER"):
        monkeypatch.setattr(pruning, bound, 0)
    monkeypatch.setattr(pruning, "SPENT_EVERY", 1)
    for seed in range(WORLDS // 12):
        found = differences.difference(random_worlds.world(seed, theme=theme))
        assert found in (None, "too long"), f"seed {seed}: {found}"
