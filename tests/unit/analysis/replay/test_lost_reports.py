"""Events that only a run has: which may be lost, and which a controller would have written."""

import pytest

from app.analysis.replay.differences import Aspect, compare
from app.analysis.replay.facts import EventSeen
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.unsure.lost_reports import lost_report
from app.domain.log import ObjectKey
from app.domain.values.timestamps import Instant

KEY = ObjectKey("events.k8s.io", "events", "default", "p.1")
POD, OTHER = "pod", "another pod"
BOUND, FAILED = "Scheduled", "FailedScheduling"


def trace(reports, writer="scheduler"):
    made = Trace()
    for number, (uid, reason, note) in enumerate(reports, 1):
        made.keys[uid] = ObjectKey("", "pods", "default", uid)
        fact = EventSeen(type="Normal", reason=reason, note=note)
        made.said[uid].append(
            Step(
                revision=number,
                time=Instant(number),
                writer=writer,
                key=KEY,
                uid=f"e{number}",
                facts=(fact,),
            )
        )
    return made


ELSEWHERE = [(OTHER, BOUND, "on n2"), (OTHER, FAILED, "full")]
A, B, C = (POD, FAILED, "full"), (POD, FAILED, "tainted"), (POD, BOUND, "on n1")


@pytest.mark.parametrize(
    ("there", "here", "unmade", "is_lost"),
    [
        pytest.param([A], [A, C], [], True, id="the last one"),
        pytest.param([C], [A, C], [], True, id="the first one"),
        pytest.param([], [A, B, C], [], True, id="all about the object"),
        pytest.param([A, A], [A, B, A], [], True, id="one between two equal ones"),
        pytest.param([A, B], [A, C], [], False, id="another text"),
        pytest.param([A, C], [A], [], False, id="one more in the recording"),
        pytest.param([B, A], [A, B, C], [], False, id="another order besides"),
        pytest.param([C, A], [A, C], [2], True, id="the second one was shown later"),
        pytest.param([C, A], [A, C], [], False, id="another order"),
        pytest.param([C, (POD, FAILED, "no")], [A, C], [2], False, id="a wrong one shown later"),
    ],
)
def test_missing_report_counts_unless_it_alone_is_missing(there, here, unmade, is_lost):
    recorded, again = trace([*there, *ELSEWHERE]), trace([*here, *ELSEWHERE])
    recorded.unmade.update(unmade)
    sides = compare(recorded, again).different[Aspect.SAID, POD, ""]
    assert bool(lost_report(sides, recorded, again)) is is_lost


@pytest.mark.parametrize(
    ("there", "here", "is_lost"),
    [
        pytest.param([A], [A, C], True, id="the only one of its sort"),
        pytest.param([A], [A, C, (OTHER, BOUND, "on n2")], False, id="none of its sort at all"),
    ],
)
def test_controller_that_never_reports_a_sort_loses_no_report(there, here, is_lost):
    recorded, again = trace(there), trace(here)
    sides = compare(recorded, again).different[Aspect.SAID, POD, ""]
    assert bool(lost_report(sides, recorded, again)) is is_lost


@pytest.mark.parametrize(("name", "is_lost"), [("default-scheduler", True), ("batch", False)])
def test_scheduler_that_reports_nothing_under_a_name_loses_no_report(name, is_lost):
    recorded, again = trace([(OTHER, BOUND, "on n2")]), trace([(OTHER, BOUND, "on n2"), C])
    recorded.schedulers.update({OTHER: "default-scheduler", POD: name})
    sides = compare(recorded, again).different[Aspect.SAID, POD, ""]
    assert bool(lost_report(sides, recorded, again)) is is_lost


def test_report_of_a_stream_that_names_no_writers_may_be_lost():
    recorded, again = trace(ELSEWHERE, writer=""), trace([*ELSEWHERE, C])
    sides = compare(recorded, again).different[Aspect.SAID, POD, ""]
    assert lost_report(sides, recorded, again)
    assert not lost_report(sides, trace(ELSEWHERE[1:], writer=""), again)
