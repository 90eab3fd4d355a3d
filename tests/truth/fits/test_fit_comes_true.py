"""As many copies of a drawn pod fit as `fit` says, on the nodes and until the refusal that it says.

Worlds of drawn seeds come by day; those that showed a defect come each time.
"""

from collections import Counter

import msgspec
import pytest

from app.domain.errors import Forbidden
from tests import draws
from tests.truth.fits.judging import (
    COPIES_MAX,
    FitWorld,
    asked,
    differences,
    lived,
    world_differences,
)

WORLDS = 6
"""Worlds of one row."""


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(14))
def test_as_many_copies_fit_as_are_placed(first):
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        assert world_differences(seed) == [], f"seed {seed}"


@pytest.mark.parametrize("seed", [429, 430, 656])
def test_equal_nodes_are_taken_in_the_order_of_their_arrival(seed):
    assert world_differences(seed) == []


def test_claim_of_all_copies_that_a_quota_refuses_is_refused():
    with pytest.raises(Forbidden, match="exceeded quota"):
        asked(FitWorld(6))
    assert world_differences(6) == []


@draws.ONLY
def test_the_worlds_have_room_and_each_limit():
    met: Counter = Counter()
    for seed in range(120):
        try:
            answer = asked(FitWorld(seed))
        except Forbidden:
            met["shared"] += 1
            continue
        met["none" if not answer.count else "all" if answer.count == COPIES_MAX else "some"] += 1
        met[answer.limit.kind] += 1
        met["several nodes"] += len(answer.nodes) > 1
    named = {"none", "all", "some", "unschedulable", "refused", "bound", "shared", "several nodes"}
    assert {name for name, count in met.items() if count} >= named


def altered(answer):
    """The answer with one number or the limit changed."""
    yield msgspec.structs.replace(answer, count=answer.count + 1)
    yield msgspec.structs.replace(answer, nodes=())
    for number, one in enumerate(answer.nodes):
        rest = list(answer.nodes)
        rest[number] = msgspec.structs.replace(one, count=one.count + 1)
        yield msgspec.structs.replace(answer, nodes=tuple(rest))
    for text in ("0/9 nodes are available", "it is gated"):
        limit = msgspec.structs.replace(answer.limit, text=text)
        yield msgspec.structs.replace(answer, limit=limit)
    yield msgspec.structs.replace(answer, at_most=answer.count - 1)


@pytest.mark.parametrize("seed", [103, 117])
def test_answer_that_is_altered_is_noticed(seed):
    world = FitWorld(seed)
    answer = asked(world)
    nodes, text = lived(world.cluster, world.documents)
    assert list(differences(answer, nodes, text)) == []
    alterations = list(altered(answer))
    assert len(alterations) > 6
    for other in alterations:
        assert list(differences(other, nodes, text)), other
