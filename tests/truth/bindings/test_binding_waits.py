"""Waits for binding conditions end when the looks at the claims say, and are counted and told so.

Worlds of drawn seeds come by day; those that showed a defect come each time.
"""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from tests import draws
from tests.truth.bindings import model
from tests.truth.bindings.judging import happenings_of, world_differences
from tests.truth.bindings.worlds import BindingWorld

WORLDS = 4
"""Worlds of one row."""


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
async def test_waits_end_as_counted_and_metrics_and_why_tell_so(first):
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        assert await world_differences(seed) == [], f"seed {seed}"


@draws.ONLY
def test_the_worlds_have_each_end():
    met: Counter = Counter()
    for seed in range(40):
        for one in model.waits(happenings_of(BindingWorld(seed))):
            met[one.status if one.ended else "gone" if one.is_gone else "lasts"] += 1
    assert met.keys() == {"success", "failure", "timeout", "error", "gone", "lasts"}


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(3))
def test_look_that_would_say_something_else_is_noticed(seed):
    """Each report of a driver that ended a wait is left out in turn, and the time is doubled."""
    world = BindingWorld(seed)
    happenings = happenings_of(world)
    end, timeout = happenings[-1].time, timedelta(seconds=world.timeout)
    assert list(model.differences(happenings, end, timeout)) == []
    for number, one in enumerate(happenings):
        ready = one.key[0] == "resourceclaims" and "'True'" in str((one.tree or {}).get("status"))
        was_decided = any(
            wait.status == "success" and wait.ended and wait.begin < number < wait.until
            for wait in model.waits(happenings)
            if one.key[1] in str(wait.pod["spec"]["resourceClaims"])
        )
        if ready and was_decided and one.tree is not None:
            status = {name: each for name, each in one.tree["status"].items() if name != "devices"}
            other = replace(one, tree={**one.tree, "status": status})
            later = [each for each in happenings[number + 1 :] if each.key != one.key]
            altered = [*happenings[:number], other, *later]
            assert list(model.differences(altered, end, timeout)), one.key
