"""How long a lost line matters to others: until both sides did what it led to."""

import pytest

from app.adapters import schemas
from app.analysis.replay.facts import Released, Reserved
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.races import Races
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.unsure.aftermath import Aftermath
from app.analysis.replay.unsure.lacks import Lacks
from app.domain.log import EventType
from app.domain.log.records import Loss
from tests.unit.analysis.replay.test_lacks import CLAIM, POD, at, event

WAIT, GIVE = Reserved("p"), Released()


def trace(*steps):
    made = Trace(schemas.load("1.36"))
    made.keys["p"] = POD
    made.users["c"] = {"p"}
    for seconds, fact in steps:
        step = Step(revision=1, time=at(seconds), writer="w", key=CLAIM, uid="c", facts=(fact,))
        made.writes["c"].append(step)
    return made


@pytest.mark.parametrize(
    ("there", "here", "until"),
    [
        # both did the same, at whatever instants
        ([(32, WAIT)], [(36, WAIT)], 10),
        # the run did it as well, and once more
        ([(32, WAIT)], [(32, WAIT), (35, GIVE)], 35),
        # each did something else
        ([(33, WAIT)], [(35, GIVE)], 35),
        # what differs before the loss, or long after it, is no effect of it
        ([(5, WAIT)], [], 10),
        ([(47, WAIT)], [(33, GIVE)], 33),
    ],
)
def test_object_with_a_lost_line_differs_until_both_sides_did_the_same(there, here, until):
    lacks = Lacks(())
    gap = event(POD, EventType.GAP_OBSERVED, losses=[Loss.GAP])
    for seconds, each in ((10, event(POD)), (30, gap), (31, event(POD))):
        lacks.note(each, at(seconds))
    recorded, again = trace(*there), trace(*here)
    races = Races(recorded, RecordedPace())
    aftermath = Aftermath(recorded=recorded, lacks=lacks, races=races)
    assert aftermath.of(again) == {POD: at(until)}
    assert aftermath.of(again) is aftermath.of(again)
    assert aftermath.of(recorded) == {POD: at(10)}
