"""What the scheduler took back: an earlier state explains it only where it had placed in vain."""

import pytest

from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.facts import Bound, EventSeen, Unreserved
from app.analysis.replay.lags import Waits
from app.analysis.replay.proving.earlier_states import attempts_of
from app.analysis.replay.traces import Step, Trace
from app.domain.log import ObjectKey
from app.domain.values.timestamps import SECOND, Instant

POD = ObjectKey("", "pods", "ns", "p")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c")
VAIN = 'running Bind plugin "DefaultBinder": pods "p" not found'


def step(key, uid, *facts):
    time = Instant(10 * SECOND)
    return Step(revision=5, time=time, writer="scheduler", key=key, uid=uid, facts=facts)


def sides(aspect, uid, *steps):
    return Sides(aspect=aspect, uid=uid, recorded=[*steps], again=[], only_recorded=steps)


@pytest.mark.parametrize(
    ("is_bound", "is_reported", "expected"),
    [(False, True, []), (False, False, None), (True, False, None), (True, True, None)],
)
def test_reservation_is_given_back_only_after_a_binding_in_vain(is_bound, is_reported, expected):
    recorded = Trace()
    recorded.keys |= {"pod": POD, "claim": CLAIM}
    recorded.removed["pod"] = Instant(9 * SECOND)
    if is_bound:
        recorded.node_of["pod"] = step(POD, "pod", Bound("n1"))
    open_ones = [sides(Aspect.WRITES, "claim", step(CLAIM, "claim", Unreserved("p", "pod")))]
    if is_reported:
        said = step(POD, "pod", EventSeen(type="Warning", reason="FailedScheduling", note=VAIN))
        open_ones.append(sides(Aspect.SAID, "pod", said))
    assert attempts_of("pod", open_ones, recorded, Waits((), ())) == expected
