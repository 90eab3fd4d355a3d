"""Which hypotheses a difference is worth, and what the traces tell without a run."""

import pytest

from app.adapters import schemas
from app.analysis.replay import differences
from app.analysis.replay.classes import DifferenceClass, End, seen_in_traces
from app.analysis.replay.differences import Aspect
from app.analysis.replay.facts import (
    Bound,
    ConditionSet,
    Created,
    DeletionAsked,
    EventSeen,
    FinalizerRemoved,
    Nominated,
    Removed,
    Reserved,
    event_seen,
)
from app.analysis.replay.hypotheses.proposals import Proposals
from app.analysis.replay.traces import AllocationStep, Step, Trace
from app.domain.log import ObjectKey
from app.domain.values.timestamps import SECOND, Instant

CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
POD = ObjectKey("", "pods", "default", "p")
EVICTED = ConditionSet("DisruptionTarget", "True", "DeletionByDeviceTaintManager", "deleting")
FAILED = ConditionSet("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")
SKIPPED = EventSeen("Warning", "FailedScheduling", "skip schedule deleting pod: default/p")
IN_FLIGHT = EventSeen(
    "Warning", "FailedScheduling", "resource claim c is in the process of being allocated"
)
OTHERS = EventSeen("Normal", "DeviceTaintManagerEviction", "Marking for deletion")
AGAIN = EventSeen("Warning", "FailedScheduling", "0/1 nodes are available")
PLACED = EventSeen("Normal", "Scheduled", "Successfully assigned default/p to n")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (
            '"p-gpu-xbkd2" is forbidden: no room',
            '"p-gpu-9qz4c" is forbidden: no room',
            True,
        ),
        (
            '"p-gpu-xbkd2" is forbidden: no room',
            '"p-nic-9qz4c" is forbidden: no room',
            False,
        ),
        (
            '"p-gpu-xbkd2" is forbidden: no room',
            '"p-gpu-9qz4c" is forbidden: no right',
            False,
        ),
        ('claim "p-gpu-xbkd2" is bound', 'claim "p-gpu-9qz4c" is bound', False),
        ('"p-gpu-aeiou" is forbidden', '"p-gpu-xbkd2" is forbidden', False),
    ],
)
def test_only_drawn_names_of_what_was_refused_do_not_count(one, other, is_same):
    first, second = (
        event_seen({"type": "Warning", "reason": "FailedResourceClaimCreation", "message": text})
        for text in (one, other)
    )
    assert (first == second) is is_same


def step(*facts, at=1, key=CLAIM, uid="claim"):
    time = Instant(at * SECOND)
    return Step(revision=1, time=time, writer="claims", key=key, uid=uid, facts=facts)


def of_pod(*facts, at=1):
    return step(*facts, at=at, key=POD, uid="pod")


def trace(*claim, pod=(), said=(), removed=(), finished=()):
    made = Trace()
    made.keys |= {"claim": CLAIM, "pod": POD}
    made.owner_of["claim"] = "pod"
    made.writes["claim"] = list(claim)
    made.of_pod["pod"] = [*claim, *pod]
    made.writes["pod"] = list(pod)
    made.said["pod"] = list(said)
    made.removed |= dict.fromkeys(removed, Instant(0))
    made.finished |= dict.fromkeys(finished, Instant(0))
    return made


def sides(recorded, again, aspect=Aspect.WRITES, uid="claim"):
    return differences.compare(recorded, again).different[aspect, uid, ""]


def fields(recorded, again, aspect=Aspect.WRITES, uid="claim"):
    different = sides(recorded, again, aspect, uid)
    return [each.field for each in Proposals(recorded).local(different, again)]


@pytest.mark.parametrize(("aspect", "uid"), [(Aspect.WRITES, "claim"), (Aspect.ORDER, "pod")])
def test_claim_of_a_pod_that_was_gone_may_have_been_made_for_nobody(aspect, uid):
    again = trace(step(Created()), step(Removed(), at=2))
    assert "unsynced" in fields(trace(removed=["pod"]), again, aspect, uid)
    assert "unsynced" not in fields(trace(), again, aspect, uid)


def test_second_claim_of_a_finished_pod_may_be_on_either_side():
    second = trace(step(Created()), step(Removed(), at=2), finished=["pod"])
    first = trace(finished=["pod"])
    assert fields(first, second)[0] == fields(second, first)[0] == "quirks"
    assert "quirks" not in fields(trace(), trace(step(Created())))


def test_placement_that_only_one_side_has_is_no_attempt_at_another_instant():
    """Else a placement that was left out of a log would be explained by not trying the pod."""
    failed, placed = trace(said=[of_pod(FAILED)]), trace(said=[of_pod(PLACED)])
    assert fields(trace(), failed, Aspect.SAID, "pod") == ["untried"]
    assert fields(trace(), placed, Aspect.SAID, "pod") == []


@pytest.mark.parametrize(
    ("fact", "field", "reason"),
    [
        (SKIPPED, "skipped", DifferenceClass.TIMING),
        (IN_FLIGHT, "tried", DifferenceClass.IN_FLIGHT),
        (FAILED, "tried", DifferenceClass.TIMING),
    ],
)
def test_attempt_that_only_the_recording_has_is_tried_when_it_was_recorded(fact, field, reason):
    recorded = trace(said=[of_pod(fact)])
    different = sides(recorded, trace(), Aspect.SAID, "pod")
    first = next(Proposals(recorded).local(different, trace()))
    assert (first.field, first.reason) == (field, reason)


@pytest.mark.parametrize(("gone", "expected"), [(2, True), (60, False), (None, False)])
def test_condition_may_have_come_too_late_only_where_the_pod_went_soon(gone, expected):
    recorded, again = trace(), trace(pod=[of_pod(FAILED)])
    if gone is not None:
        recorded.removed["pod"] = Instant(gone * SECOND)
    assert ("unreported" in fields(recorded, again, Aspect.WRITES, "pod")) is expected
    placed = trace(pod=[of_pod(Nominated("n"))])
    assert "unreported" not in fields(recorded, placed, Aspect.WRITES, "pod")


def test_status_of_a_rule_may_tell_of_each_instant_of_its_write():
    rule = ObjectKey("resource.k8s.io", "devicetaintrules", "", "r")
    recorded, again = Trace(), Trace()
    for each, count in ((recorded, "7 pods"), (again, "6 pods")):
        each.keys["rule"] = rule
        told = ConditionSet("EvictionInProgress", "False", "NoEffect", count)
        each.writes["rule"] = [step(told, key=rule, uid="rule")]
    assert set(fields(recorded, again, Aspect.WRITES, "rule")) >= {
        "counted", "counted_first", "counted_last",
    }  # fmt: skip


def test_nomination_may_have_come_too_late_only_where_the_pod_went():
    again = trace(pod=[of_pod(Nominated("n"))])
    assert "unanswered" in fields(trace(removed=["pod"]), again, Aspect.WRITES, "pod")
    assert "unanswered" not in fields(trace(), again, Aspect.WRITES, "pod")


@pytest.mark.parametrize(
    "recorded",
    [[OTHERS, AGAIN, PLACED], [AGAIN, OTHERS, PLACED], [AGAIN, OTHERS, AGAIN, PLACED]],
    ids=["before", "between", "between a report and its repetition"],
)
def test_events_of_two_components_may_only_be_in_another_order(recorded):
    """A repetition that nothing parts from the first is none that counts."""
    theirs = trace(said=[of_pod(fact) for fact in recorded])
    ours = trace(said=[of_pod(fact) for fact in (AGAIN, AGAIN, PLACED, OTHERS)])
    assert "reported" in fields(theirs, ours, Aspect.SAID, "pod")
    assert "reported+repeated" in fields(theirs, ours, Aspect.SAID, "pod")
    less = trace(said=[of_pod(fact) for fact in (AGAIN, PLACED)])
    assert "reported" not in fields(theirs, less, Aspect.SAID, "pod")


def test_ends_of_a_claim_may_come_in_another_order_and_reservations_may_not():
    ended = trace(step(DeletionAsked(0)), step(Removed(), at=2))
    other = trace(step(FinalizerRemoved("f")), step(Removed(), at=2))
    assert "collected_last" in fields(other, ended)
    assert fields(trace(), trace(step(Reserved("p")))) == []


def test_what_lies_after_the_end_is_told_apart_from_what_does_not():
    end = End(at=Instant(9 * SECOND), later=Trace())
    late = trace(pod=[of_pod(EVICTED, at=10)])
    judgement = seen_in_traces(sides(trace(), late, Aspect.ORDER, "pod"), trace(), late, end)
    assert judgement is not None
    assert judgement.reason is DifferenceClass.AFTER_END
    failed = trace(pod=[of_pod(FAILED)])
    assert seen_in_traces(sides(failed, late, Aspect.ORDER, "pod"), failed, late, end) is None


def allocated(memory):
    made = trace()
    result = {"request": "g", "driver": "d", "pool": "p", "device": "x"}
    result["consumedCapacity"] = {"memory": memory}
    made.allocations["claim"].append(
        AllocationStep(
            revision=1,
            time=Instant(1),
            key=CLAIM,
            uid="claim",
            pod="pod",
            devices=("g: p/x",),
            allocation={"devices": {"results": [result]}},
        )
    )
    return made


@pytest.mark.parametrize(("memory", "is_same"), [("5000000000", True), ("5Gi", False)])
def test_allocations_are_compared_by_what_they_mean(memory, is_same):
    compared = differences.compare(allocated("5G"), allocated(memory), schemas.load("1.36"))
    assert compared.same[Aspect.DEVICES] == is_same
    assert bool(compared.different) != is_same


NODE = ObjectKey("", "nodes", "", "n")
ENDED = EventSeen("Normal", "RemovingNode", "Node n event: Removing Node n from Controller")


def of_controller(*facts, at, uid="node", key=NODE):
    writer = "node-controller"
    time = Instant(at * SECOND)
    return Step(revision=1, time=time, writer=writer, key=key, uid=uid, facts=facts)


@pytest.mark.parametrize(
    ("at_work", "is_excused"),
    [
        pytest.param((4, 24), True, id="silent"),
        pytest.param((4, 10, 24), True, id="ended before the report"),
        pytest.param((4, 12, 24), False, id="at work"),
        pytest.param((4, 16), False, id="too short"),
        pytest.param((4,), False, id="never back"),
        pytest.param((24,), True, id="not yet there"),
        pytest.param((22,), False, id="soon there"),
        pytest.param((), False, id="never there"),
    ],
)
def test_end_of_a_node_may_be_unseen_if_its_controller_may_have_been_replaced(at_work, is_excused):
    recorded, again = trace(), trace()
    recorded.writes["claim"] = [
        of_controller(Created(), at=at, uid="claim", key=CLAIM) for at in at_work
    ]
    again.writes["claim"] = list(recorded.writes["claim"])
    for each in (recorded, again):
        each.keys["node"] = NODE
        each.removed["node"] = Instant(10 * SECOND)
    again.said["node"] = [of_controller(ENDED, at=11)]
    end = End(at=Instant(99 * SECOND), later=Trace())
    judgement = seen_in_traces(sides(recorded, again, Aspect.SAID, "node"), recorded, again, end)
    reason = None if judgement is None else judgement.reason
    assert reason == (DifferenceClass.NOT_COMPARABLE if is_excused else None)


@pytest.mark.parametrize("is_crossing", [True, False])
def test_events_in_another_order_need_a_run_although_a_namespace_ends(is_crossing):
    theirs, ours = (
        trace(said=[of_pod(fact, at=number) for number, fact in enumerate(facts, 1)])
        for facts in ((AGAIN, OTHERS, PLACED), (AGAIN, PLACED, OTHERS))
    )
    for each in (theirs, ours):
        each.node_of["pod"] = of_pod(Bound("n"), at=2)
    theirs.crossing.update({1} if is_crossing else ())
    end = End(at=Instant(99 * SECOND), later=Trace())
    different = sides(theirs, ours, Aspect.SAID, "pod")
    assert not different.only_recorded
    assert seen_in_traces(different, theirs, ours, end) is None
    ours.said["pod"].pop(1)
    judgement = seen_in_traces(sides(theirs, ours, Aspect.SAID, "pod"), theirs, ours, end)
    assert (judgement is not None) is is_crossing, "the run lacks the Event of the binding"


def test_events_of_a_node_in_another_order_need_a_run():
    recorded, again = trace(), trace()
    recorded.writes["claim"] = [
        of_controller(Created(), at=at, uid="claim", key=CLAIM) for at in (4, 24)
    ]
    for each, facts in ((recorded, (AGAIN, ENDED)), (again, (ENDED, AGAIN))):
        each.keys["node"] = NODE
        each.removed["node"] = Instant(10 * SECOND)
        each.said["node"] = [of_controller(fact, at=25) for fact in facts]
    different = sides(recorded, again, Aspect.SAID, "node")
    end = End(at=Instant(99 * SECOND), later=Trace())
    assert different.is_order
    assert seen_in_traces(different, recorded, again, end) is None
