"""What a clock that goes wrong can have caused, and what it cannot."""

import pytest

from app.analysis.replay import differences
from app.analysis.replay.facts import Allocated, Bound, ConditionSet, Created, Released, Reserved
from app.analysis.replay.traces import AllocationStep, Step, Trace
from app.analysis.replay.unsure.times import Clocks
from app.domain.log import ObjectKey
from app.domain.values.timestamps import SECOND, Instant

CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
OTHER = ObjectKey("resource.k8s.io", "resourceclaims", "default", "d")
POD = ObjectKey("", "pods", "default", "p")
EVICTED = ConditionSet("DisruptionTarget", "True", "DeletionByDeviceTaintManager", "deleting")
FAILED = ConditionSet("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")


def at(seconds):
    return Instant(seconds * SECOND)


def step(key, seconds, *facts):
    return Step(
        revision=1,
        time=at(seconds),
        writer="scheduler",
        key=key,
        uid=key.name,
        facts=facts,
    )


def holding(trace, key, pod, seconds, *, until=None, device="worker/gpu-0"):
    """In this trace a claim has a device for a pod, for some time."""
    name = f"gpu: {device}"
    trace.keys[key.name] = key
    trace.allocations[key.name].append(
        AllocationStep(
            revision=1,
            time=at(seconds),
            key=key,
            uid=key.name,
            pod=pod,
            devices=(name,),
            allocation={"name": name},
        )
    )
    trace.writes[key.name].append(step(key, seconds, Allocated((name,))))
    if until is not None:
        trace.writes[key.name].append(step(key, until, Released()))


def excused(recorded, again, *, end=1000):
    """Whether a clock may have caused each difference, by aspect."""
    clocks = Clocks(recorded=recorded, again=again, end=at(end))
    compared = differences.compare(recorded, again)
    return {
        sides.aspect.value: clocks.may_have_caused(sides) for sides in compared.different.values()
    }


def traces():
    recorded, again = Trace(), Trace()
    for trace in (recorded, again):
        trace.keys["p"] = POD
    return recorded, again


def test_attempt_may_have_been_made_at_another_instant():
    recorded, again = traces()
    again.conditions["p", "PodScheduled"].append(step(POD, 5, FAILED))
    assert excused(recorded, again) == {"conditions": True}


def test_content_of_what_is_made_depends_on_no_instant():
    recorded, again = traces()
    for trace, content in ((recorded, "{}"), (again, '{"spec":{}}')):
        trace.keys["c"] = CLAIM
        trace.writes["c"].append(step(CLAIM, 5, Created(content)))
    assert excused(recorded, again) == {"writes per object": False}


@pytest.mark.parametrize(("uid", "expected"), [("p", True), ("nobody", False)])
def test_reservation_for_what_was_never_there_is_no_matter_of_instants(uid, expected):
    recorded, again = traces()
    recorded.keys["c"] = CLAIM
    recorded.writes["c"].append(step(CLAIM, 5, Reserved("p", uid)))
    assert excused(recorded, again) == {"writes per object": expected}


@pytest.mark.parametrize(("removed", "expected"), [(30, True), (None, False)])
def test_pod_that_goes_on_for_minutes_was_not_evicted_late(removed, expected):
    recorded, again = traces()
    for trace in (recorded, again):
        holding(trace, CLAIM, "p", 1)
    again.evicted["p"] = step(POD, 20, EVICTED)
    if removed is not None:
        recorded.removed["p"] = at(removed)
    assert excused(recorded, again) == {"evictions": expected}


def test_pod_with_another_device_may_be_spared():
    recorded, again = traces()
    holding(recorded, CLAIM, "p", 1, device="worker/gpu-1")
    holding(again, CLAIM, "p", 1)
    again.evicted["p"] = step(POD, 20, EVICTED)
    assert excused(recorded, again)["evictions"] is True


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (None, False),  # free all the time
        ((2, 400), True),  # somebody else has it
        ((2, 5), True),  # given back a moment before: who came first is open
        ((2, 10), True),
    ],
)
def test_pod_that_waited_for_minutes_beside_a_free_device_was_not_placed_late(held, expected):
    recorded, again = traces()
    holding(again, CLAIM, "p", 20)
    again.node_of["p"] = step(POD, 20, Bound("worker"))
    if held is not None:
        holding(recorded, OTHER, "q", held[0], until=held[1])
    assert excused(recorded, again)["nodes"] is expected


def test_pod_that_was_placed_in_the_recording_alone_may_be_so_for_its_time():
    recorded, again = traces()
    recorded.node_of["p"] = step(POD, 20, Bound("worker"))
    assert excused(recorded, again) == {"nodes": True}
