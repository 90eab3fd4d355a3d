"""The prover in worlds whose runs are drawn: which hypotheses it keeps, and what it says then."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.replay.classes import DifferenceClass, End
from app.analysis.replay.differences import Aspect, Compared, Sides
from app.analysis.replay.facts import ClaimsNamed
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.proving.budget import Budget
from app.analysis.replay.proving.evidence import Evidence
from app.analysis.replay.proving.prover import Prover
from app.analysis.replay.proving.runs import MadeRun
from app.analysis.replay.races import Races
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.variants import Variant
from app.domain.log import ObjectKey, Revision
from app.domain.values.timestamps import Instant

RULES = [f"rule-{number}" for number in range(9)]
WAYS = ("postponed", "counted_last", "counted", "counted_first")
"""The hypotheses about the status of a rule, in their order."""


def difference(uid):
    return Sides(aspect=Aspect.RULES, uid=uid, name="Status", recorded=["2"], again=["3"])


class World:
    """Rules with a difference each, by the way that explains it.

    `spoiling` are pairs of a way and a rule that change an object which is related to no rule.
    """

    def __init__(self, explained, spoiling=()):
        self._explained = explained
        self._spoiling = spoiling
        self._made = Variant()
        self.recorded = Trace()
        for name in (*explained, "other"):
            resource = "devicetaintrules" if name in explained else "namespaces"
            self.recorded.keys[name] = ObjectKey("resource.k8s.io", resource, "", name)

    async def run(self, variant, _until, _is_over):
        self._made = variant
        return MadeRun(trace=Trace(), events=1)

    def compare(self, _recorded, _again):
        left = [
            rule
            for rule, way in self._explained.items()
            if not way or rule not in getattr(self._made, way)
        ]
        if any(rule in getattr(self._made, way) for way, rule in self._spoiling):
            left.append("other")
        return Compared(different={each.key: each for each in map(difference, left)})

    async def judged(self, **bounds):
        budget = Budget(**{"runs_max": 1_000, "events_max": 1_000_000, **bounds})
        prover = Prover(
            recorded=self.recorded,
            end=End(at=Instant(9), later=Trace()),
            evidence=Evidence(),
            races=Races(self.recorded, RecordedPace()),
            run=self.run,
            compare=self.compare,
            variant=Variant(),
            budget=budget,
        )
        different = self.compare(self.recorded, Trace()).different
        await prover.judge(Trace(), different)
        return {key[1]: each for key, each in prover.judgements.items()}, budget


@given(
    explained=st.dictionaries(st.sampled_from(RULES), st.sampled_from(WAYS), min_size=1),
    spoiling=st.sets(st.tuples(st.sampled_from(WAYS), st.sampled_from(RULES)), max_size=6),
)
async def test_each_way_that_explains_is_kept_unless_it_changes_something_else(explained, spoiling):
    judged, _ = await World(explained, spoiling).judged()
    for rule, way in explained.items():
        is_proved = (way, rule) not in spoiling
        assert judged[rule].reason == (
            DifferenceClass.TIMING if is_proved else DifferenceClass.UNEXPLAINED
        )


async def test_one_wrong_hypothesis_among_many_costs_a_few_runs():
    judged, budget = await World(
        dict.fromkeys(RULES, "postponed"), {("postponed", "rule-3")}
    ).judged()
    assert {rule for rule, each in judged.items() if each.reason != DifferenceClass.TIMING} == {
        "rule-3"
    }
    assert budget.runs <= 2 * len(RULES)


class FinishedPods(World):
    """Rules, and pods that the claim controller did not sync after their end.

    Their first hypothesis is one for all pods, and changes something else.
    """

    def __init__(self, explained, pods):
        super().__init__(explained)
        self._pods = pods
        for name in pods:
            self.recorded.keys[name] = ObjectKey("", "pods", "ns", name)
            self.recorded.finished[name] = Instant(8)
            self.recorded.removed[name] = Instant(9)

    def compare(self, recorded, again):
        left = dict(super().compare(recorded, again).different)
        unsynced = {key.name for key in self._made.unsynced}
        left |= {each.key: each for each in map(named_late, self._pods) if each.uid not in unsynced}
        if self._made.resyncs:
            left[difference("other").key] = difference("other")
        return Compared(different=left)


def named_late(pod):
    key = ObjectKey("", "pods", "ns", pod)
    facts = (ClaimsNamed(entries=(("gpu", "claim"),)),)
    step = Step(revision=Revision(1), time=Instant(1), writer="", key=key, uid=pod, facts=facts)
    return Sides(
        aspect=Aspect.WRITES, uid=pod, name="", recorded=[], again=["1"], only_again=(step,)
    )


async def test_hypothesis_that_is_one_for_many_objects_is_tried_once():
    world = FinishedPods(dict.fromkeys(RULES, "postponed"), [f"pod-{n}" for n in range(9)])
    judged, budget = await world.judged()
    assert len(judged) == 18
    assert {each.reason for each in judged.values()} == {
        DifferenceClass.TIMING,
        DifferenceClass.RACE,
    }
    assert budget.runs == 4  # all together, the local ones, the one for all, and the next ones


@pytest.mark.parametrize("bounds", [{"runs_max": 2}, {"events_max": 2}])
async def test_differences_beyond_the_bound_are_not_said_to_have_no_explanation(bounds):
    judged, budget = await World(dict.fromkeys(RULES, "counted_first")).judged(**bounds)
    assert budget.runs == 2
    for each in judged.values():
        assert each.reason == DifferenceClass.UNEXPLAINED
        assert each.detail.startswith("not proved within 2 ")


async def test_difference_that_nothing_explains_is_said_to_have_no_explanation():
    judged, _ = await World({"rule-1": "", "rule-2": "counted"}).judged()
    assert judged["rule-1"].detail == "no hypothesis gives the recorded outcome"
    assert judged["rule-2"].reason == DifferenceClass.TIMING
