"""Who is evicted for whom, on which node, and what is said of it, is what the model counts.

Worlds of drawn seeds come by day; those that showed a defect come each time.
"""

import copy
from collections import Counter
from dataclasses import replace

import pytest

from tests import draws
from tests.truth.preemption.judging import attempts_of, differences, judge
from tests.truth.preemption.worlds import PreemptionWorld

WORLDS = 8
"""Worlds of one row."""


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(14))
def test_victims_nominations_and_messages_are_as_counted(first):
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        assert judge(seed) == [], f"seed {seed}"


@pytest.mark.parametrize("seed", [117, 172, 235])
def test_node_that_a_pod_gives_up_is_free_for_the_next_ones(seed):
    assert judge(seed) == []


def test_pods_alike_rank_by_creation_and_name():
    assert judge(3316) == []


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
