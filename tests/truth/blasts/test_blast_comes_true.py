"""What `blast` says of a change is what happens when the change is made.

Worlds of drawn seeds come by day; those that showed a defect come each time.
"""

from collections import Counter

import msgspec
import pytest

from app.analysis.blast.radius import Fate, Prospect
from tests import draws
from tests.truth.blasts import changes, living
from tests.truth.blasts.judging import asked, differences, world_differences
from tests.truth.blasts.worlds import UsedWorld

WORLDS = 3
"""Worlds of one row."""


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(14))
def test_change_does_what_it_was_said_to_do(first):
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        assert world_differences(seed) == [], f"seed {seed}"


@pytest.mark.parametrize("seed", [47, 99, 180, 202, 1942])
def test_worlds_that_showed_a_defect_come_true(seed):
    assert world_differences(seed) == []


@draws.ONLY
def test_the_worlds_have_each_fate_and_prospect():
    met: Counter = Counter()
    for seed in range(400):
        world = UsedWorld(seed)
        drawn = changes.draw(world, seed)
        answer = asked(world, drawn.proposed)
        met.update(pod.fate for pod in answer.pods)
        met.update(pod.prospect for pod in answer.waiting)
        met["releases"] += len(answer.claim_releases)
        met["held"] += sum(one.is_held for one in answer.claim_deletions)
        met["remade"] += sum(bool(one.remade) for one in answer.claim_deletions)
    assert set(met) >= {*Fate, *Prospect, "releases", "held", "remade"}


def altered(answer):
    """The answer with one statement changed or left out, in each place."""
    for name in ("pods", "waiting", "claim_releases", "claim_deletions", "classes"):
        for number, one in enumerate(getattr(answer, name)):
            for other in changed(name, one):
                rest = list(getattr(answer, name))
                rest[number : number + 1] = other
                yield msgspec.structs.replace(answer, **{name: tuple(rest)})


def changed(name, one):
    replaced = msgspec.structs.replace
    if name == "pods":
        if one.fate is not Fate.TERMINATING:  # it ends anyway, and may be left out
            yield []
        yield [replaced(one, fate=Fate.LATER if one.fate is not Fate.LATER else Fate.NOW)]
        if one.fate in (Fate.NOW, Fate.LATER):
            yield [replaced(one, due="2030-01-01T00:00:00.000000Z")]
    elif name == "waiting":
        yield []
        yield [replaced(one, prospect=Prospect.KEPT)]
    elif name == "claim_releases":
        yield []
        yield [replaced(one, devices=(*one.devices, "gpu.example.com/n9/gpu-9"))]
    elif name == "claim_deletions":
        yield [replaced(one, is_held=not one.is_held)]
        yield [replaced(one, blocked=(*one.blocked, "nobody"))]
        yield [replaced(one, remade=(*one.remade, "nobody"))]
    else:
        for side in ("before", "after"):
            for count in ("devices", "allocatable", "free"):
                counts = getattr(one, side)
                more = replaced(counts, **{count: getattr(counts, count) + 1})
                yield [replaced(one, **{side: more})]


@draws.BY_DAY
@pytest.mark.parametrize("seed", [3, 11, 62, 78, 98])
def test_statement_that_is_altered_is_noticed(seed):
    world = UsedWorld(seed)
    drawn = changes.draw(world, seed)
    answer = asked(world, drawn.proposed)
    life = living.live(world.cluster, drawn.act)
    twin = living.live(UsedWorld(seed).cluster, lambda cluster: None)
    assert list(differences(answer, life, twin, drawn)) == []
    alterations = list(altered(answer))
    assert len(alterations) > 7
    for other in alterations:
        assert list(differences(other, life, twin, drawn)), other
