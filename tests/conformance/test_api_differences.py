"""Recorded differences to a real API server: each is gone, or has a row with the reason."""

import pytest

from tests import draws
from tests.conformance.api_differences.blocks import read
from tests.conformance.api_differences.judging import FILES, Verdict, judge, load_entries
from tests.shared_data import shared_path


@draws.in_turn("ways")
@pytest.mark.parametrize("name", FILES)
async def test_every_difference_is_gone_or_documented(name):
    text = shared_path("api-differences", name).read_text(encoding="utf-8")
    judgements = await judge(text, load_entries()[name])
    wrong = [
        f"{judgement.verdict} {judgement.block.title[:120]}\n{judgement.lacks}"
        for judgement in judgements
        if judgement.verdict in (Verdict.OPEN, Verdict.STALE)
    ]
    assert not wrong, "\n\n".join(wrong[:5])
    assert sum(judgement.verdict is Verdict.GONE for judgement in judgements) > 50


@pytest.mark.parametrize("name", FILES)
def test_what_is_known_of_differences_is_about_blocks_that_are_there(name):
    text = shared_path("api-differences", name).read_text(encoding="utf-8")
    keys = {block.key for block in read(text)}
    assert set(load_entries()[name]) <= keys
