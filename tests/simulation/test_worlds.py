"""Seeded worlds with crashes at any step, whose log must give the same result when folded again."""

import os

import pytest

from tests import draws
from tests.cluster import check_decisions
from tests.simulation.world import World

pytestmark = draws.BY_DAY
"""A world of one seed has every rule of its test; the others come on other days."""

SEEDS = draws.seeds(2, first=1)
STEPS = int(os.environ.get("REDRA_STEPS", "60"))


@pytest.mark.parametrize("seed", SEEDS)
def test_world_stays_sound(seed):
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.end()
    assert world.cluster.seconds > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_world_stays_sound_when_controllers_lose_their_memory(seed):
    world = World(seed)
    for _ in range(STEPS):
        world.step(crash=0.3)
    world.end()
    assert world.crashes > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_of_memory_changes_nothing(seed):
    """One story told twice, once with controllers that forget: the same after each act."""
    whole, broken = World(seed), World(seed)
    for number in range(STEPS):
        whole.step()
        broken.step(crash=0.3)
        assert whole.state() == broken.state(), f"seed {seed}, act {number}"


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_decisions_of_a_world_can_be_made_again(seed):
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    decisions, effects = check_decisions(world.cluster)
    assert decisions.differences == ()
    assert effects.differences == ()


def test_same_seed_gives_the_same_log():
    logs = []
    for _ in range(2):
        world = World(7)
        for _ in range(20):
            world.step()
        logs.append(world.cluster.line.head.hash)
    assert logs[0] == logs[1]
