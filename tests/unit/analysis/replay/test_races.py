"""The class of a difference that the recorded pace alone does away with."""

from dataclasses import replace

import pytest

from app.adapters import schemas
from app.analysis.replay.attempts import Placing, Try
from app.analysis.replay.classes import DifferenceClass
from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.facts import (
    Allocated,
    Bound,
    ConditionSet,
    Nominated,
    Released,
    Reserved,
)
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.races import Races
from app.analysis.replay.traces import AllocationStep, Step, Trace
from app.analysis.replay.variants import Hold
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.log import ObjectKey
from app.domain.values.timestamps import Instant
from tests.together import together

CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c")
IN_FLIGHT = "resource claim ns/c is in the process of being allocated"
REFUSED = ConditionSet("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")
MET = ConditionSet("PodScheduled", "False", "Unschedulable", IN_FLIGHT)


def trace(allocations=()):
    """A trace in which pods got devices: `("pod", "claim", "device")`."""
    made = Trace(schemas.load("1.36"))
    for pod, claim, device in allocations:
        made.allocations[claim].append(
            AllocationStep(
                revision=1,
                time=Instant(1),
                key=CLAIM,
                uid=claim,
                pod=pod,
                devices=(f"r: pool/{device}",),
                allocation={},
            )
        )
    return made


def class_of(aspect, uid, recorded, again, *facts, facts_again=()):
    def step(fact):
        return Step(revision=1, time=Instant(1), writer="w", key=CLAIM, uid=uid, facts=(fact,))

    sides = Sides(
        aspect=aspect,
        uid=uid,
        recorded=["there"],
        again=["here"],
        only_recorded=tuple(map(step, facts)),
        only_again=tuple(map(step, facts_again)),
    )
    races = Races(recorded, RecordedPace())
    return races.judgement(sides, again).reason


@pytest.mark.parametrize("aspect", [Aspect.DEVICES, Aspect.NODES])
@pytest.mark.parametrize(
    ("there", "here", "reason"),
    [
        ([("p", "c", "a")], [("p", "c", "b"), ("q", "d", "a")], DifferenceClass.QUEUE_ORDER),
        ([("p", "c", "a"), ("q", "d", "b")], [("p", "c", "b")], DifferenceClass.QUEUE_ORDER),
        ([("p", "c", "a")], [("p", "c", "b"), ("q", "d", "x")], DifferenceClass.FOLLOWS),
        ([("p", "c", "a")], [("p", "c", "b"), ("p", "d", "a")], DifferenceClass.FOLLOWS),
        ([("p", "c", "a")], [], DifferenceClass.FOLLOWS),
    ],
    ids=["its device is another's here", "another's there is its own", "nobody", "itself", "none"],
)
def test_queue_decides_only_where_another_pod_has_what_this_one_had(aspect, there, here, reason):
    recorded, again = trace(there), trace(here)
    recorded.owner_of["c"] = again.owner_of["c"] = "p"
    uid = "c" if aspect is Aspect.DEVICES else "p"
    assert class_of(aspect, uid, recorded, again) is reason


class Attempts(RecordedPace):
    """A pace with the attempts of some pods."""

    def __init__(self, tries):
        super().__init__()
        self._tries_of = tries

    def attempts(self, pod):
        return self._tries_of.get(pod, ())


def placed(first, last, claims_at=None):
    """An attempt that placed a pod."""
    placing = Placing(began=Instant(first), claims_at=claims_at)
    return Try(
        instant=Instant(first),
        first=Instant(first),
        last=Instant(last),
        tried=AttemptOutcome(node="n"),
        placing=placing,
    )


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        pytest.param([placed(100, 110)], None, id="over before it"),
        pytest.param([placed(100, 110), placed(695, 710)], (695, 721), id="a second time, too"),
        pytest.param([placed(695, 710)], (0, 721), id="placed once"),
        pytest.param([], (0, 721), id="never placed there"),
    ],
)
def test_pod_competes_in_the_placement_that_differs_and_not_in_an_earlier_one(theirs, expected):
    """The first placement of the pod is the same, and took its claim at 111."""
    recorded, again = (trace([("p", "c", "a"), ("p", "c", each)]) for each in "ab")
    again.allocations["d"] = trace([("q", "d", "a")]).allocations["d"]
    for each in (recorded, again):
        steps = each.allocations["c"]
        each.allocations["c"] = [
            replace(step, time=Instant(at)) for step, at in zip(steps, (111, 711), strict=True)
        ]
    sides = Sides(aspect=Aspect.DEVICES, uid="c", recorded=["a", "a"], again=["a", "b"])
    own = [placed(100, 120, 111), placed(700, 720, 711)]
    races = Races(recorded, Attempts({"p": own, "q": theirs}))
    held = [each.target for each in races.holds(sides, "p", again)]
    assert held == ([Hold(pod="q", since=expected[0], until=expected[1])] if expected else [])


CLASSES_OF_FACTS = [
    ([MET], DifferenceClass.IN_FLIGHT),
    ([REFUSED, MET], DifferenceClass.IN_FLIGHT),
    ([MET, Bound("n")], DifferenceClass.IN_FLIGHT),
    ([Bound("n")], DifferenceClass.FOLLOWS),
    ([Nominated("n")], DifferenceClass.FOLLOWS),
    ([Allocated(("r: p/a",))], DifferenceClass.FOLLOWS),
    ([Reserved("p")], DifferenceClass.FOLLOWS),
    ([REFUSED, Bound("n")], DifferenceClass.FOLLOWS),
    ([ConditionSet("PodScheduled", "True", "", "")], DifferenceClass.FOLLOWS),
    ([REFUSED], DifferenceClass.TIMING),
    ([REFUSED, Released()], DifferenceClass.RACE),
    ([Released()], DifferenceClass.RACE),
    ([ConditionSet("Ready", "False", "Unschedulable", IN_FLIGHT)], DifferenceClass.RACE),
    ([], DifferenceClass.RACE),
]
"""The facts of one side, and the class of the difference."""


@together(
    [(side, *row) for row in CLASSES_OF_FACTS for side in ("there", "here")],
    lambda row: f"{row[0]} {row[1]}",
)
def test_facts_of_one_side_tell_the_class(row):
    side, facts, reason = row
    there, here = (facts, ()) if side == "there" else ((), facts)
    told = class_of(Aspect.WRITES, "p", trace(), trace(), *there, facts_again=here)
    assert told is reason


def test_statuses_of_rules_differ_by_time():
    assert class_of(Aspect.RULES, "r", trace(), trace(), Released()) is DifferenceClass.TIMING
    assert class_of(Aspect.RULES, "r", trace(), trace(), Bound("n")) is DifferenceClass.FOLLOWS
