"""On which objects a difference may depend, and up to which instant."""

import pytest

from app.analysis.replay.authors import CLAIMS
from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.facts import Bound, EventSeen, Released
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.races import Races
from app.analysis.replay.traces import AllocationStep, Step, Trace
from app.analysis.replay.unsure import dependence
from app.analysis.replay.unsure.judging import Doubting
from app.analysis.replay.unsure.lacks import Lacks
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp, doubts
from app.domain.log.event import Origin
from app.domain.log.records import Loss
from tests.unit.analysis.replay.test_lacks import CLAIM, POD, at, event

EVENT = ObjectKey("", "events", "ns", "e")
RULE = ObjectKey("resource.k8s.io", "devicetaintrules", "", "r")
GAP = event(POD, EventType.GAP_OBSERVED, losses=[Loss.GAP])


def step(key, seconds, writer):
    fact = Released()
    return Step(revision=1, time=at(seconds), writer=writer, key=key, uid=key.name, facts=(fact,))


def differing(key, seconds, writer):
    return Sides(
        aspect=Aspect.WRITES,
        uid=key.name,
        recorded=["it"],
        again=[],
        only_recorded=(step(key, seconds, writer),),
    )


def trace(*allocations):
    made = Trace()
    made.keys.update({"c": CLAIM, "p": POD, "r": RULE})
    for seconds, device in allocations:
        given = AllocationStep(
            revision=1,
            time=at(seconds),
            key=CLAIM,
            uid="c",
            pod="p",
            devices=(f"gpu: {device}",),
            allocation={"device": device},
        )
        made.allocations["c"].append(given)
    return made


def lack(sides, recorded, again, *events):
    lacks = Lacks(())
    for seconds, each in events:
        lacks.note(each, at(seconds))
    races = Races(recorded, RecordedPace())
    doubting = Doubting.of(recorded=recorded, end=at(100), lacks=lacks, impossible={}, races=races)
    return doubting.lack(sides, again)


def test_release_depends_on_all_where_an_object_of_its_own_is_in_no_line():
    released, there = differing(CLAIM, 20, "resource-claim-controller"), trace()
    assert dependence.of_difference(released, there, trace(), {"c", "p"}) is not None
    assert dependence.of_difference(released, there, trace(), {"c", "unnamed"}) is None


def test_status_of_a_rule_counts_what_was_unseen_long_before():
    before = (10, event(POD)), (11, GAP), (12, event(POD))
    counted = differing(RULE, 60, "device-taint-eviction-controller")
    assert lack(counted, trace(), trace(), *before)
    released = differing(CLAIM, 60, "resource-claim-controller")
    assert not lack(released, trace(), trace(), *before)


@pytest.mark.parametrize(
    ("recorded", "is_unsure"),
    [
        # the run does what was recorded first, and something else after the loss
        ([(10, "a")], True),
        # what was recorded first is not what the run does, then or later
        ([(10, "b")], False),
        ([(40, "b")], True),
    ],
)
def test_recorded_allocation_depends_on_no_line_that_was_lost_later(recorded, is_unsure):
    there, here = trace(*recorded), trace((10, "a"), (50, "c"))
    sides = Sides(aspect=Aspect.DEVICES, uid="c", recorded=[1], again=[2])
    assert bool(lack(sides, there, here, (20, event(POD)), (30, GAP))) is is_unsure


@pytest.mark.parametrize(
    ("seconds", "writer", "is_own"),
    [
        (20, "pod-garbage-collector", True),
        (60, "pod-garbage-collector", False),
        (20, "device-taint-eviction-controller", False),
        (20, "", False),
    ],
)
def test_what_another_did_before_rests_on_nothing_that_is_missing(seconds, writer, is_own):
    """The run removes the pod, too, but later, and by a controller of which no line is recorded."""
    there, here = trace(), trace()
    theirs = step(POD, seconds, writer)
    ours = step(POD, 50, "device-taint-eviction-controller")
    there.writes["p"].append(theirs)
    here.writes["p"].append(ours)
    here.evicted["p"] = ours
    writes = Sides(
        aspect=Aspect.WRITES,
        uid="p",
        recorded=["a"],
        again=["b"],
        only_recorded=(theirs,),
        only_again=(ours,),
    )
    evicted = Sides(aspect=Aspect.EVICTIONS, uid="p", recorded=[], again=["b"], only_again=(ours,))
    lacks = Lacks(())
    by = Stamp(time=at(1), actor=Actor(user=CLAIMS), verb="update", origin=Origin(source="audit"))
    made = Event(
        revision=Revision(1),
        type=EventType.OBJECT_UPDATED,
        key=CLAIM,
        uid="c",
        body=b"{}",
        stamp=by,
    )
    lacks.note(made, at(1))
    races = Races(there, RecordedPace())
    doubting = Doubting.of(recorded=there, end=at(100), lacks=lacks, impossible={}, races=races)
    assert doubting.lack(evicted, here)
    assert doubting.is_of_own(writes, here, evicted) is is_own


def said(reason="Scheduled", note="on n1"):
    fact = EventSeen(type="Normal", reason=reason, note=note)
    return Step(revision=1, time=at(5), writer="scheduler", key=EVENT, uid="e", facts=(fact,))


@pytest.mark.parametrize(
    ("change", "is_of_it"),
    [
        pytest.param({}, True, id="the texts alone differ"),
        pytest.param({"aspect": Aspect.WRITES}, False, id="of other writes"),
        pytest.param({"ours": ()}, False, id="one side says nothing"),
        pytest.param({"ours": (said("Killing"),)}, False, id="another report"),
        pytest.param({"here": "n2"}, False, id="bound elsewhere"),
        pytest.param({"here": None}, False, id="not bound here"),
        pytest.param({"there": None, "here": None}, False, id="bound nowhere"),
        pytest.param({"ended": True}, False, id="ended on one side alone"),
    ],
)
def test_event_about_a_placement_may_name_the_node_otherwise(change, is_of_it):
    given = {"aspect": Aspect.SAID, "ours": (said(note="on n2"),), "there": "n1", "here": "n1"}
    given |= change
    sides = Sides(
        aspect=given["aspect"],
        uid="p",
        recorded=[],
        again=[],
        only_recorded=(said(),),
        only_again=given["ours"],
    )
    recorded, again = trace(), trace()
    for side, node in ((recorded, given["there"]), (again, given["here"])):
        if node is not None:
            bound = Step(revision=1, time=at(1), writer="s", key=POD, uid="p", facts=(Bound(node),))
            side.node_of["p"] = bound
    if given.get("ended"):
        again.removed["p"] = at(9)
    assert dependence.is_of_told_node(sides, recorded, again) is is_of_it


LOST = "of it or of what it is about: a line is lost"
OF_CLAIM = event(CLAIM, EventType.GAP_OBSERVED, losses=[Loss.GAP])
UNSEEN = "it may have been written later, unseen"


@pytest.mark.parametrize(
    ("events", "aspect", "again", "reason"),
    [
        pytest.param([(10, event(POD))], Aspect.FINAL, ["b"], "", id="nothing is missing"),
        pytest.param(
            [(10, event(POD)), (60, GAP)], Aspect.FINAL, ["b"], UNSEEN, id="a gap after its line"
        ),
        pytest.param(
            [(10, event(POD)), (60, GAP), (70, event(POD))],
            Aspect.FINAL,
            ["b"],
            LOST,
            id="a line of it is lost before its last",
        ),
        pytest.param(
            [(10, event(POD)), (60, GAP)],
            Aspect.FINAL,
            [],
            f"of it or of what it is about: {doubts.text_of(Loss.GAP)}",
            id="the run has none",
        ),
        pytest.param(
            [(10, event(POD)), (60, OF_CLAIM)], Aspect.FINAL, ["b"], "", id="of another object"
        ),
        pytest.param(
            [(10, event(POD)), (60, OF_CLAIM)], Aspect.FINAL, [], "", id="of another, one side"
        ),
    ],
)
def test_end_of_an_object_is_unsure_where_it_may_have_been_written_unseen(
    events, aspect, again, reason
):
    """The pod is on both sides, and differs at the end, second 100."""
    sides = Sides(aspect=aspect, uid="p", recorded=["a"], again=again)
    assert lack(sides, trace(), trace(), *events) == reason
