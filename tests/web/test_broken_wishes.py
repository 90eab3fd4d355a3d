"""Ten incidents that no earlier one covers: the answer names the cause, and its mend cures."""

import re

import pytest

from tests import draws
from tests.web import broken_wishes
from tests.web.invented import Names
from tests.web.test_named_causes import why


@draws.in_turn("rows of ways")
@pytest.mark.parametrize("make", broken_wishes.BROKEN, ids=lambda make: make.__name__)
async def test_answer_names_the_cause_and_the_pod_runs_when_that_is_mended(make):
    made = make(Names(5))
    said = await why(made.steps, "pod/job")
    assert "runs on node n" not in said
    for pattern in made.told:
        assert re.search(pattern, said), pattern
    assert "runs on node n" in await why((*made.steps, *made.mend), "pod/job")
