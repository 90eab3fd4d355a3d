"""The comparison of two runs, aspect by aspect: what both have, and what one has alone."""

from dataclasses import replace
from typing import Any

import pytest

from app.adapters import schemas
from app.analysis.replay import differences, facts
from app.analysis.replay.differences import Aspect, Compared
from app.analysis.replay.traces import AllocationStep, Step, Trace
from app.domain.log import ObjectKey
from app.domain.values.timestamps import Instant

POD = ObjectKey("", "pods", "ns", "p")
RULE = ObjectKey("resource.k8s.io", "devicetaintrules", "", "r")
UID = "u"
NOTED = facts.EventSeen("Warning", "FailedScheduling", "no room")
NOTED_AGAIN = facts.EventSeen("Warning", "FailedScheduling", "no device")
READY = facts.ConditionSet("Ready", "True", "", "")
UNREADY = facts.ConditionSet("Ready", "False", "", "")


def step(*what: facts.Fact, writer: str = "scheduler", key: ObjectKey = POD) -> Step:
    return Step(revision=1, time=Instant(0), writer=writer, key=key, uid=UID, facts=what)


def allocation(device: str) -> AllocationStep:
    tree = {"devices": {"results": [{"device": device}]}}
    return AllocationStep(
        revision=1, time=Instant(0), key=POD, uid=UID, pod="", devices=(device,), allocation=tree
    )


def trace(aspect: Aspect | None = None, *answers: Any, key: ObjectKey = POD) -> Trace:
    """A trace that has answers of one aspect, or nothing but the key of the object."""
    made = Trace(schemas.load("1.36"))
    made.keys[UID] = key
    match aspect:
        case Aspect.NODES:
            made.node_of[UID] = answers[0]
        case Aspect.EVICTIONS:
            made.evicted[UID] = answers[0]
        case Aspect.FINAL:
            made.kept[UID] = answers[0]
        case Aspect.CONDITIONS | Aspect.RULES:
            made.conditions[UID, "Ready"] = list(answers)
        case Aspect.DEVICES:
            made.allocations[UID] = list(answers)
        case Aspect.SAID:
            made.said[UID] = list(answers)
        case Aspect.WRITES:
            made.writes[UID] = list(answers)
        case Aspect.ORDER:
            made.of_pod[UID] = list(answers)
    return made


def pod(node: str) -> dict:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"node": node}}


ROWS = [
    (Aspect.NODES, POD, step(facts.Bound("a")), step(facts.Bound("b"))),
    (Aspect.DEVICES, POD, allocation("a"), allocation("b")),
    (Aspect.CONDITIONS, POD, step(READY), step(UNREADY)),
    (Aspect.RULES, RULE, step(READY, key=RULE), step(UNREADY, key=RULE)),
    (Aspect.EVICTIONS, POD, step(READY), step(UNREADY)),
    (Aspect.SAID, POD, step(NOTED), step(NOTED_AGAIN)),
    (Aspect.WRITES, POD, step(READY), step(UNREADY)),
    (Aspect.ORDER, POD, step(READY), step(UNREADY)),
    (Aspect.FINAL, POD, pod("a"), pod("b")),
]


def outcome(compared: Compared) -> tuple[dict, list]:
    """The equal subjects by aspect, and each difference with how many answers either side has."""
    different = [
        (aspect, uid, len(sides.recorded), len(sides.again))
        for (aspect, uid, _), sides in compared.different.items()
    ]
    return dict(compared.same), different


@pytest.mark.parametrize(("aspect", "key", "one", "other"), ROWS)
def test_answer_of_one_side_alone_is_a_difference(aspect, key, one, other) -> None:
    def compare(left: Trace, right: Trace) -> tuple[dict, list]:
        return outcome(differences.compare(left, right))

    first, second = (trace(aspect, answer, key=key) for answer in (one, other))
    without = trace(key=key)
    assert compare(without, without) == ({}, [])
    assert compare(first, first) == ({aspect: 1}, [])
    assert compare(first, without) == ({}, [(aspect, UID, 1, 0)])
    assert compare(without, first) == ({}, [(aspect, UID, 0, 1)])
    assert compare(first, second) == ({}, [(aspect, UID, 1, 1)])


def test_event_objects_are_not_compared_as_final_objects() -> None:
    key = ObjectKey("", "events", "ns", "e")
    sides = (trace(Aspect.FINAL, pod(name), key=key) for name in "ab")
    assert outcome(differences.compare(*sides)) == ({}, [])


@pytest.mark.parametrize("aspect", [Aspect.SAID, Aspect.CONDITIONS])
def test_repetition_counts_only_where_something_came_between(aspect: Aspect) -> None:
    once, twice = trace(aspect, step(READY)), trace(aspect, step(READY), step(READY))
    assert outcome(differences.compare(once, twice)) == ({aspect: 1}, [])
    back = trace(aspect, step(READY), step(UNREADY), step(READY))
    assert outcome(differences.compare(once, back)) == ({}, [(aspect, UID, 1, 3)])


def test_writer_counts_where_the_recording_names_all_of_them() -> None:
    ours = trace(Aspect.WRITES, step(READY, writer="scheduler"))
    named = trace(Aspect.WRITES, step(READY, writer="claim-controller"))
    unnamed = trace(Aspect.WRITES, step(READY, writer=""))
    assert outcome(differences.compare(named, ours)) == ({}, [(Aspect.WRITES, UID, 1, 1)])
    assert outcome(differences.compare(unnamed, ours)) == ({Aspect.WRITES: 1}, [])


def test_steps_of_one_side_alone_are_its_last_surplus_ones() -> None:
    first, again, last = step(READY), step(UNREADY), step(READY)
    left, right = trace(Aspect.WRITES, first, again, last), trace(Aspect.WRITES, step(READY))
    (sides,) = differences.compare(left, right).different.values()
    assert [id(each) for each in sides.only_recorded] == [id(again), id(last)]
    assert sides.only_again == ()
    assert not sides.is_order
    (turned,) = differences.compare(right, left).different.values()
    assert [id(each) for each in turned.only_again] == [id(again), id(last)]


def test_same_steps_in_another_order_belong_to_no_side_alone() -> None:
    left = trace(Aspect.WRITES, step(READY), step(UNREADY))
    right = trace(Aspect.WRITES, step(UNREADY), step(READY))
    (sides,) = differences.compare(left, right).different.values()
    assert sides.is_order
    assert (sides.only_recorded, sides.only_again) == ((), ())


def test_that_an_allocation_has_a_time_counts_where_dates_are_compared() -> None:
    dated, other = allocation("a"), replace(allocation("a"), time=Instant(9))
    undated = replace(allocation("a"), is_dated=False)
    sides = [trace(Aspect.DEVICES, each) for each in (dated, other, undated)]
    key = (Aspect.DEVICES, UID, "")
    for again, differs in zip(sides, (False, False, True), strict=True):
        compared = differences.compare(sides[0], again, with_dates=True)
        assert (key in compared.different) is differs
        assert key not in differences.compare(sides[0], again).different


END = Instant(10)


def at(second: int, made: Any) -> Any:
    return replace(made, time=Instant(second))


GIVEN = [at(2, allocation("a")), at(4, allocation("b"))]
BOUND = step(facts.Bound("a"))


@pytest.mark.parametrize(
    ("aspect", "theirs", "ours", "is_otherwise"),
    [
        (Aspect.NODES, [], [at(11, BOUND)], False),
        (Aspect.NODES, [], [at(10, BOUND)], True),
        (Aspect.NODES, [BOUND], [at(11, step(facts.Bound("b")))], True),
        (Aspect.NODES, [BOUND], [], True),
        (Aspect.NODES, [BOUND], [at(11, BOUND)], False),
        (Aspect.EVICTIONS, [], [at(11, BOUND)], False),
        (Aspect.EVICTIONS, [], [at(10, BOUND)], True),
        (Aspect.EVICTIONS, [BOUND], [], True),
        (Aspect.DEVICES, [], [at(11, allocation("a"))], False),
        (Aspect.DEVICES, [], [at(10, allocation("a"))], True),
        (Aspect.DEVICES, [], [at(10, allocation("a")), at(11, allocation("b"))], True),
        (Aspect.DEVICES, GIVEN, [*GIVEN, at(11, allocation("c"))], False),
        (Aspect.DEVICES, GIVEN, [*GIVEN, at(9, allocation("c"))], True),
        (Aspect.DEVICES, GIVEN, [GIVEN[0], at(11, allocation("c"))], True),
        (Aspect.DEVICES, GIVEN, [GIVEN[0], at(11, allocation("c")), at(12, GIVEN[1])], True),
        (Aspect.DEVICES, GIVEN, GIVEN[:1], True),
        (Aspect.DEVICES, GIVEN, [], True),
        # words are no placement
        (Aspect.SAID, [step(NOTED)], [at(9, step(NOTED_AGAIN))], False),
        (Aspect.CONDITIONS, [], [at(9, step(READY))], False),
    ],
)
def test_what_a_run_goes_on_with_after_the_end_is_not_placed_otherwise(
    aspect: Aspect, theirs: list[Any], ours: list[Any], is_otherwise: bool
) -> None:
    there, here = (trace(aspect, *side) if side else trace() for side in (theirs, ours))
    compared = differences.compare(there, here)
    expected = {UID: POD} if is_otherwise else {}
    assert differences.placed_otherwise(compared, there, here, END) == expected


def observed(generation: int | None, reason: str = "r") -> dict[str, Any]:
    """A pod with a condition that says which generation it is about, or does not."""
    condition = {"type": "Ready", "status": "True", "reason": reason}
    condition |= {} if generation is None else {"observedGeneration": str(generation)}
    return {**pod("n"), "status": {"phase": "Running", "conditions": [condition]}}


@pytest.mark.parametrize(
    ("theirs", "ours", "is_same", "is_same_unobserved"),
    [
        (observed(1), observed(1), True, True),
        (observed(1), observed(2), False, True),
        (observed(1), observed(None), False, True),
        (observed(1), observed(1, "other"), False, False),
        (observed(1), {**observed(1), "status": {"phase": "Failed"}}, False, False),
        (observed(1), pod("n"), False, False),
        (pod("n"), pod("n"), True, True),
    ],
)
@pytest.mark.parametrize("key", [POD, RULE])
def test_generation_of_a_condition_counts_where_conditions_of_pods_have_one(
    theirs: dict[str, Any],
    ours: dict[str, Any],
    is_same: bool,
    is_same_unobserved: bool,
    key: ObjectKey,
) -> None:
    for is_observed in (True, False):
        there, here = (trace(Aspect.FINAL, tree, key=key) for tree in (theirs, ours))
        here.pods_observed = is_observed
        compared = differences.compare(there, here)
        is_left_out = key is POD and not is_observed
        assert (compared.different == {}) is (is_same_unobserved if is_left_out else is_same)
