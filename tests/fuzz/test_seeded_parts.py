"""A small part of the API fuzzers with a fixed seed; `make fuzz` runs the large one.

The fuzzers raise findings themselves. These tests check that the cases are useful: some are stored
and some are refused, for several reasons.
"""

import pytest

from tests import draws
from tests.fuzz import (
    api,
    bodies,
    forks,
    judged,
    live,
    minimal_pairs,
    minimal_recordings,
    minimals,
    recordings,
    requests,
)

WORTHWHILE = {200, 201, 400, 404, 409, 422}


@draws.in_turn("refusals")
def test_damaged_bodies_are_taken_or_refused():
    codes = bodies.run(cases=500, seed=2026)
    assert set(codes) > WORTHWHILE


@draws.in_turn("refusals")
def test_requests_of_the_served_documents_are_taken_or_refused():
    codes = api.run(cases=40, seed=2026, places=("apis/resource.k8s.io/v1alpha3",))
    assert set(codes) >= WORTHWHILE


@draws.in_turn("refusals")
def test_odd_requests_are_taken_or_refused():
    codes = requests.run(cases=400, seed=2026)
    assert set(codes) >= WORTHWHILE | {405, 406, 415}


@draws.in_turn("refusals")
def test_changed_recordings_are_refused_or_go_the_whole_way():
    outcomes = recordings.run(cases=12, seed=2026)
    assert set(outcomes) == {"taken", "refused"}


@draws.in_turn("refusals")
@pytest.mark.database
@pytest.mark.slow
def test_damaged_bodies_leave_a_real_server_and_its_log_whole():
    codes = live.run(cases=60, seed=2026)
    assert set(codes) >= WORTHWHILE


@draws.ONLY
def test_drawn_predicates_are_shown_by_the_smallest_histories():
    outcomes = minimals.run(cases=12, seed=3)
    assert len({outcome == "not shown" for outcome in outcomes}) == 2


@draws.ONLY
def test_drawn_predicates_of_recordings_are_shown_by_the_smallest_histories():
    outcomes = minimal_recordings.run(cases=12, seed=1)
    assert len({outcome == "not shown" for outcome in outcomes}) == 2


@draws.ONLY
def test_smallest_histories_of_recordings_become_tests_that_end_as_their_rules_do():
    outcomes = minimal_pairs.run(cases=9, seed=0)
    assert any(outcome.endswith("its test passes") for outcome in outcomes)


FORKS = ((3, 115), (5, 22), (5, 30), (5, 31))
BY_DAY = (
    (3, 50),
    (4117, 14),
    (4120, 35),
    (4126, 30),
    *((5, number) for number in (1, 4, 6, 10, 14, 16, 17, 18)),
)


@pytest.mark.parametrize(
    ("seed", "number"), [*FORKS, *(draws.by_day(seed, number) for seed, number in BY_DAY)]
)
def test_drawn_forks_of_drawn_worlds_keep_their_laws(seed: int, number: int) -> None:
    """The first rows refuse a pod beside a binding, are forked amid one, and amid one write."""
    assert ": " in forks.judge(seed, number)


@draws.ONLY
def test_more_drawn_forks_keep_their_laws() -> None:
    outcomes = forks.run(cases=100, seed=5)
    assert len(outcomes) > 8


async def _differs_of_world_4(world: int) -> list[str]:
    return ["the claim is pending"] if world == 4 else []


def test_differences_of_drawn_worlds_are_raised_with_their_seeds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    judges = (judged.awaited(_differs_of_world_4), lambda world: ["no"] if world == 5 else [])
    with pytest.raises(AssertionError) as raised:
        judged.judge_worlds(3, 3, *judges)
    assert str(raised.value) == "seed 4: the claim is pending\nseed 5: no"
    judged.judge_worlds(2, 6, *judges)
    assert capsys.readouterr().out.splitlines()[-1] == "2 worlds judged, 0 differences"
