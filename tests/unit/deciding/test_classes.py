"""Which class a difference gets, from two traces that are made by hand."""

import pytest

from app.domain.log import ObjectKey
from app.domain.values.timestamps import SECOND, Instant
from app.service.deciding.classes import Classes, End, Found, Reason
from app.service.deciding.traces import Allocated, Step, Trace

CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
POD = ObjectKey("", "pods", "default", "p")
EVICTED = "DisruptionTarget True DeletionByDeviceTaintManager: deleting"
FAILED = "PodScheduled False Unschedulable: 0/1 nodes are available"


def step(text, *, at=1, key=CLAIM, uid="claim"):
    time = Instant(at * SECOND)
    return Step(revision=1, time=time, writer="claims", key=key, uid=uid, text=text)


def trace(*claim, pod=(), removed=(), finished=()):
    made = Trace()
    made.keys |= {"claim": CLAIM, "pod": POD}
    made.owner_of["claim"] = "pod"
    made.writes["claim"] = list(claim)
    made.of_pod["pod"] = [*claim, *pod]
    made.writes["pod"] = list(pod)
    made.removed |= dict.fromkeys(removed, Instant(0))
    made.finished |= dict.fromkeys(finished, Instant(0))
    return made


def reason(recorded, again, aspect="writes per object", uid="claim", violations=(), later=None):
    end = End(at=Instant(9 * SECOND), later=later or Trace())
    classes = Classes(recorded, again, violations=dict(violations), end=end)
    sides = [
        [each.text for each in (side.writes if aspect == "writes per object" else side.of_pod)[uid]]
        for side in (recorded, again)
    ]
    return classes.of(Found(aspect=aspect, uid=uid, recorded=sides[0], again=sides[1]))[0]


@pytest.mark.parametrize(("aspect", "uid"), [("writes per object", "claim"), ("order", "pod")])
def test_claim_for_a_pod_that_was_gone_before_anybody_looked_is_a_race(aspect, uid):
    again = trace(step("created"), step("removed", at=2))
    assert reason(trace(removed=["pod"]), again, aspect, uid) is Reason.RACE
    assert reason(trace(), again, aspect, uid) is Reason.UNEXPLAINED


def test_second_claim_of_a_finished_pod_may_be_on_either_side():
    """The switch makes it each time, upstream does now and then."""
    second = trace(step("created"), step("removed", at=2), finished=["pod"])
    first = trace(finished=["pod"])
    assert reason(first, second) is Reason.FINISHED_POD
    assert reason(second, first) is Reason.FINISHED_POD


def test_what_lies_after_the_end_is_told_apart_from_what_does_not():
    late = step(EVICTED, at=10, key=POD, uid="pod")
    failed = step(FAILED, key=POD, uid="pod")
    assert reason(trace(), trace(pod=[late]), "order", "pod") is Reason.AFTER_END
    found = reason(trace(pod=[failed]), trace(pod=[late]), "order", "pod")
    assert found is Reason.TIMING


@pytest.mark.parametrize(("by_rule", "why"), [(True, Reason.IGNORED_RULES), (False, Reason.RACE)])
def test_placement_against_a_taint_is_the_released_bug_only_by_a_rule_that_was_there(by_rule, why):
    recorded = trace()
    allocated = Allocated(
        revision=1,
        time=Instant(1),
        key=CLAIM,
        uid="claim",
        pod="pod",
        devices=("g: pool/gpu-0",),
        allocation={"devices": {}},
    )
    recorded.allocations["claim"].append(allocated)
    assert reason(recorded, trace(), "devices", violations={"claim": by_rule}) is why
