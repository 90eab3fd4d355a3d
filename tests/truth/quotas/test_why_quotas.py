"""`why` names the quota that refuses a pod's claim, what uses it, and what would help.

Worlds of drawn seeds come by day; those that showed a defect come each time.
"""

import re
from collections import Counter

import pytest

from tests import draws
from tests.truth.quotas import judging
from tests.truth.quotas.judging import world_differences

WORLDS = 8
"""Worlds of one row."""


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(14))
async def test_why_names_the_quota_and_what_would_help(first):
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        assert await world_differences(seed) == [], f"seed {seed}"


@pytest.mark.parametrize("seed", [31, 32, 64])
async def test_quota_that_is_gone_or_has_room_by_now_needs_no_remedy(seed):
    assert await world_differences(seed) == []


@draws.ONLY
async def test_the_worlds_have_each_case():
    met: Counter = Counter()
    for seed in range(80):
        answer, moments = await judging.asked(judging.QuotaWorld(seed))
        text = str(answer)
        met["refused" if moments.refusal else "not refused"] += 1
        for words in (
            "in all: it is never made",
            "counts like its alternative",
            "has room for the claim by now",
            "was deleted",
            "nobody uses it",
            "have quota",
            "pod use",
        ):
            met[words] += words in text
    assert all(met.values()), met


@pytest.mark.parametrize("seed", [1, 5])
async def test_sentence_about_a_quota_that_is_altered_is_noticed(seed):
    """Each number one more, in each sentence about a quota or who uses it."""
    answer, moments = await judging.asked(judging.QuotaWorld(seed))
    assert moments.differences(answer) == []
    places = [
        one
        for one in judging.nodes_of(answer)
        if re.search("of quota|counts for|have quota|counts like", one["text"])
    ]
    assert len(places) > 2
    for one in places:
        old = one["text"]
        one["text"] = re.sub(
            r"(for|uses?|pods? use|allow) (\d+)", lambda n: f"{n[1]} {int(n[2]) + 1}", old
        )
        assert one["text"] != old
        assert moments.differences(answer), old
        one["text"] = old
