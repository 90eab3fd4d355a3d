"""Who is evicted for whom, on which node, and what is said of it, is what the model counts.

Worlds of drawn seeds come by day; those that showed a defect come each time.
"""

import copy
import re
from collections import Counter
from dataclasses import replace

import pytest

from tests import draws
from tests.truth.preemption.fitting import fit_differences
from tests.truth.preemption.judging import attempts_of, differences, fresh, world_differences
from tests.truth.preemption.telling import of_victim, told_differences
from tests.truth.preemption.worlds import PreemptionWorld
from tests.unit.service.test_explaining import asking, texts

WORLDS = 8
"""Worlds of one row."""


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(14))
def test_victims_nominations_and_messages_are_as_counted(first):
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        assert world_differences(seed) == [], f"seed {seed}"


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
async def test_why_says_for_whom_pods_went_and_which_ones_a_pod_waits_for(first):
    for seed in range(first * 4, first * 4 + 4):
        assert await told_differences(PreemptionWorld(seed)) == [], f"seed {seed}"


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
def test_fit_names_who_would_go_and_keeps_room_for_nominated_pods(first):
    for seed in range(first * 8, first * 8 + 8):
        assert fit_differences(seed) == [], f"seed {seed}"


@pytest.mark.parametrize("seed", [36, 41])
def test_room_that_is_kept_for_a_nominated_pod_does_not_fit_another_one(seed):
    assert fit_differences(seed) == []


@pytest.mark.parametrize("seed", [117, 172, 235])
def test_node_that_a_pod_gives_up_is_free_for_the_next_ones(seed):
    assert world_differences(seed) == []


def test_pods_alike_rank_by_creation_and_name():
    assert world_differences(3316) == []


@draws.ONLY
def test_the_worlds_have_each_case():
    met: Counter = Counter()
    for seed in range(80):
        for tried in attempts_of(PreemptionWorld(seed)):
            counted = tried.counted
            met["never"] += "preemptionPolicy" in counted.text
            met["awaits"] += "terminating pod" in counted.text
            met["in vain"] += "nodes are available" in counted.text
            met["equal candidates"] += len(counted.best) > 1
            met["several candidates"] += len(counted.candidates) > 1
            for one in counted.best:
                trees = [tried.before["pods", *name.split("/")] for name in one.victims]
                met["several victims"] += len(trees) > 1
                met["violations"] += one.violations > 0
                met["had devices"] += any(tree["spec"].get("resourceClaims") for tree in trees)
                met["ended already"] += any("deletionTimestamp" in t["metadata"] for t in trees)
    assert all(met.values()), met


@draws.BY_DAY
@pytest.mark.parametrize("seed", [7, 13])
async def test_sentence_about_a_victim_that_is_altered_is_noticed(seed):
    world = PreemptionWorld(seed)
    chosen = [one for one in attempts_of(world) if one.chosen]
    tried, name = next((one, name) for one in chosen for name in sorted(fresh(one, one.chosen)))
    async with asking(world.cluster) as ask:
        lines = texts((await ask("pod", name.partition("/")[2])).reason)
    assert list(of_victim(tried, name, lines)) == []
    about = [line for line in lines if line.startswith(("for pod ", "on node "))]
    assert len(about) == 2
    for line in about:
        for old in set(re.findall(r"-?\d+$|default/\w+|n\d+", line)):
            other = [one.replace(old, f"{old}1") if one is line else one for one in lines]
            assert list(of_victim(tried, name, other)), (line, old)
        assert list(of_victim(tried, name, [one for one in lines if one is not line])), line


@draws.BY_DAY
@pytest.mark.parametrize("seed", [4, 7])
def test_decision_that_is_altered_is_noticed(seed):
    tried = next(one for one in attempts_of(PreemptionWorld(seed)) if one.counted.candidates)
    assert list(differences(tried)) == []
    for number, act in enumerate(ALTERATIONS):
        body = copy.deepcopy(tried.event.object)
        act(body["summary"])
        other = replace(tried, body=body)
        assert list(differences(other)), number
    assert list(differences(replace(tried, after=tried.before)))


ALTERATIONS = (
    lambda summary: summary.pop("preemption"),
    lambda summary: summary["preemption"]["victims"].append("default/other"),
    lambda summary: summary["preemption"].update(victims=[]),
    lambda summary: summary["preemption"].update(node="elsewhere"),
    lambda summary: summary["preemption"].update(victimsCount=9),
    lambda summary: summary["preemption"].update(violations=9),
    lambda summary: summary["preemption"].update(candidates=9),
    lambda summary: summary.update(message="0/9 nodes are available: 9 Insufficient cpu."),
    lambda summary: summary.update(message=summary["message"] + " It waits."),
)
