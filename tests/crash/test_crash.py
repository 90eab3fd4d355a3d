"""A story with kills at any point ends like one without them. `make crash` kills 200 times."""

import msgspec
import pytest

from tests import draws
from tests.crash import judging, told_inside, told_outside
from tests.crash.__main__ import DELAY_MILLIS, check_same
from tests.crash.told_inside import Told

KILLS = 12


@pytest.fixture(scope="module")
def plain() -> Told:
    return told_inside.tell(0, 0)


@pytest.fixture(scope="module")
def plain_with_delay() -> Told:
    return told_inside.tell(0, 0, DELAY_MILLIS)


@draws.in_turn("ends")
def test_delay_of_bindings_changes_no_end(plain, plain_with_delay):
    assert plain.states == plain_with_delay.states
    # A quiet story writes each act once: as many claims written as there are pods with claims.
    counted = plain_with_delay.counted
    assert counted["Assumed"] == counted["Reserved"] == counted["Scheduled"]


@draws.in_turn("ends")
@pytest.mark.parametrize("seed", draws.seeds(2, first=11))
def test_story_with_kills_between_the_acts_of_bindings_ends_as_the_one_without(
    seed, plain_with_delay
):
    told = told_inside.tell(seed, KILLS, DELAY_MILLIS)
    assert len(told.killed) == KILLS
    check_same(told, plain_with_delay)


@draws.in_turn("ends")
@pytest.mark.parametrize("seed", draws.seeds(2, first=1))
def test_story_with_kills_ends_as_the_one_without(seed, plain):
    told = told_inside.tell(seed, KILLS)
    assert len(told.killed) == KILLS
    check_same(told, plain)


@draws.in_turn("ends")
@pytest.mark.slow
@pytest.mark.database
async def test_real_processes_with_kills_end_the_story_as_without(tmp_path, plain):
    toll = await told_outside.tell(tmp_path, 1, 3, plain.states, together=False)
    assert len(toll.killed) >= 3


def test_judge_notices_an_event_that_was_left_out(plain):
    with pytest.raises(AssertionError, match="revision 11 is missing"):
        judging.check_log(plain.log[:10] + plain.log[11:])


def test_judge_notices_an_event_that_was_changed(plain):
    changed = msgspec.structs.replace(plain.log[10], uid="another")
    with pytest.raises(AssertionError, match="revision 11 does not follow"):
        judging.check_log([*plain.log[:10], changed, *plain.log[11:]])
