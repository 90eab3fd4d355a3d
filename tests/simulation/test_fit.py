"""Compares the number of pods that fit with the number that a fork places, in a seeded world."""

import pytest

from app.analysis.blast import world as hypothetical
from app.analysis.capacity import fitting, subjects
from app.analysis.capacity.answers import Fit
from app.analysis.capacity.fitting import FitBounds
from app.analysis.capacity.subjects import CapacitySubject
from app.domain.log import HistoryInfo, ObjectKey
from app.domain.values import json_tree
from tests import draws
from tests.simulation.world import World

pytestmark = draws.BY_DAY
"""A world of one seed has every rule of its test; the others come on other days."""

SEEDS = draws.seeds(2, first=1)
TEMPLATES = ("gpu", "patient", "pair")
INFO = HistoryInfo(id=1, name="default")


def world_of(seed: int) -> World:
    """A used world with room: it has more devices than its pods need, some of them tainted."""
    world = World(seed, devices=3 + seed % 4)
    for _ in range(6 + 3 * (seed % 5)):
        world.step()
    return world


def ask(world: World, subject: CapacitySubject, copies_max: int = 1_000) -> Fit:
    line = world.cluster.line
    before = line.head
    frozen = hypothetical.freeze(line.views, INFO, line.rules, line.now)
    answer = fitting.fit(frozen, subject, FitBounds(copies_max=copies_max))
    assert line.head == before, "a question writes nothing"
    return answer


def of_template(name: str) -> CapacitySubject:
    return subjects.of_template(
        ObjectKey("resource.k8s.io", "resourceclaimtemplates", "default", name)
    )


def place_copies(world: World, template: str, count: int) -> dict[str, int]:
    """Creates this many pods one by one; returns the number of pods that each node got."""
    nodes: dict[str, int] = {}
    for number in range(count):
        world.cluster.pod(f"copy-{number}", template=template)
        world.cluster.settle()
        pod = world.cluster.must("pods", f"copy-{number}")
        if node := json_tree.text(pod, "spec", "nodeName"):
            nodes[node] = nodes.get(node, 0) + 1
    world.check()
    return nodes


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("seed", SEEDS)
def test_as_many_copies_fit_as_a_fork_places(seed, template):
    answer = ask(world_of(seed), of_template(template))
    placed = place_copies(world_of(seed), template, answer.count + 2)
    assert sum(placed.values()) == answer.count, f"seed {seed}"
    assert {one.node: one.count for one in answer.nodes} == placed, f"seed {seed}"
    assert answer.at_most is not None
    assert answer.at_most >= answer.count
    assert answer.limit.kind == "unschedulable"


@pytest.mark.parametrize("seed", SEEDS)
def test_limit_is_what_the_scheduler_says_of_the_next_copy(seed):
    answer = ask(world_of(seed), of_template("gpu"))
    world = world_of(seed)
    place_copies(world, "gpu", answer.count + 1)
    condition = world.cluster.pod_condition(f"copy-{answer.count}")
    assert condition is not None
    assert condition["message"] == answer.limit.text, f"seed {seed}"


def test_the_worlds_have_room_to_count():
    """Across the fixed seeds something fits, something does not, and devices are what limits."""
    answers = [ask(world_of(seed), of_template("pair")) for seed in range(1, 9)]
    assert len({answer.count for answer in answers}) > 2
    assert any(cause.cause == "allocated" for one in answers for cause in one.limit.causes)
    assert any((one.at_most or 0) > one.count for one in answers), "free devices lie apart"
