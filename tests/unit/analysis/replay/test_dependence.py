"""On which objects a difference may depend, and up to which instant."""

from dataclasses import replace

import pytest

from app.analysis.replay.authors import CLAIMS
from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.facts import Bound, ConditionSet, Created, EventSeen, Released
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.races import Races
from app.analysis.replay.traces import AllocationStep, Step, Trace
from app.analysis.replay.unsure import dependence
from app.analysis.replay.unsure.judging import Doubting
from app.analysis.replay.unsure.lacks import Lacks
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp, doubts
from app.domain.log.doubts import Affects, Doubt
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


def doubting_of(recorded, *events, doubted=(), impossible=None):
    """The doubts about a recording of these events, each with the second in which it was seen."""
    doubts_of = [
        Doubt(code=code, affects=Affects.TIME, kind="pods", count=1, text="") for code in doubted
    ]
    lacks = Lacks(doubts_of)
    for seconds, each in events:
        lacks.note(each, at(seconds))
    lacks.conclude()
    races = Races(recorded, RecordedPace())
    return Doubting.of(
        recorded=recorded, end=at(100), lacks=lacks, impossible=impossible or {}, races=races
    )


def ours(key, seconds, fact, aspect=Aspect.WRITES):
    """A difference of which only the run has a step."""
    made = Step(revision=1, time=at(seconds), writer="w", key=key, uid=key.name, facts=(fact,))
    return Sides(aspect=aspect, uid=key.name, recorded=[], again=["it"], only_again=(made,))


SPACE = ObjectKey("", "namespaces", "", "default")
OTHER_SPACE = SPACE._replace(name="other")
REPORT = EVENT._replace(namespace="default")
BY_NAMESPACES = "namespace-controller"


@pytest.mark.parametrize(
    ("sides", "is_within"),
    [
        pytest.param(differing(SPACE, 60, BY_NAMESPACES), True, id="its end"),
        pytest.param(differing(OTHER_SPACE, 60, BY_NAMESPACES), False, id="of another one"),
        pytest.param(differing(RULE, 60, BY_NAMESPACES), False, id="of no namespace"),
        pytest.param(differing(REPORT, 60, BY_NAMESPACES), True, id="with its namespace"),
        pytest.param(differing(REPORT, 60, "scheduler"), False, id="by another controller"),
        pytest.param(differing(ObjectKey("", "x", "", "x"), 60, "w"), False, id="not known"),
    ],
)
def test_end_of_a_namespace_is_undecided_where_an_object_in_it_is_not_recorded(sides, is_within):
    recorded, again = trace(), trace()
    for side, keys in ((recorded, (SPACE, OTHER_SPACE)), (again, (REPORT,))):
        side.keys.update({key.name: key for key in keys})
    cut = event(CLAIM, losses=[Loss.METADATA_ONLY])
    doubting = doubting_of(recorded, (1, event(CLAIM)), (70, cut), (80, event(CLAIM)))
    expected = "an object in its namespace is not recorded whole" if is_within else ""
    assert doubting._lack_within(sides, again) == expected


@pytest.mark.parametrize(
    ("sides", "began", "is_after"),
    [
        (ours(RULE, 60, Released()), 60, True),
        (ours(RULE, 70, Released()), 70, True),
        (ours(RULE, 71, Released()), 71, False),
        (differing(RULE, 60, "w"), 60, False),
        (ours(POD, 60, Released()), 60, False),
        (ours(CLAIM, 60, Released()), 60, False),
        (ours(ObjectKey("", "x", "", "x"), 60, Released()), 60, False),
    ],
)
def test_act_of_the_run_alone_may_be_done_later_where_nothing_is_recorded(sides, began, is_after):
    """Nothing is recorded of any kind from second 70 on. Placements happen or do not."""
    recorded = trace()
    everything = event(ObjectKey("", "", "", ""), EventType.GAP_OBSERVED)
    doubting = doubting_of(recorded, (1, event(POD)), (70, everything))
    expected = "it may have been done later, where nothing was recorded" if is_after else ""
    assert doubting._lack_after(sides, trace(), at(began)) == expected


REFUSED = ConditionSet("PodScheduled", "False", "Unschedulable", "no node")
ODD = event(POD, losses=[Loss.TIMES_CONTRADICT], asked=at(150), answered=at(150))
LATE = event(CLAIM, asked=at(120), answered=at(120)), event(CLAIM, asked=at(121), answered=at(121))
ACCIDENT = ((100, event(CLAIM)), (110, ODD), (120, LATE[0]), (121, LATE[1]))
"""One line about the pod says that it was asked for later than the two that follow it."""
OF_POD = ours(POD, 115, REFUSED, Aspect.CONDITIONS)
CONTENT = replace(
    ours(POD, 115, Created("{}")),
    recorded=["other"],
    only_recorded=ours(POD, 115, Created('{"spec":{}}')).only_again,
)


@pytest.mark.parametrize(
    ("sides", "how", "is_excused"),
    [
        pytest.param(OF_POD, {}, True, id="of the object"),
        pytest.param(OF_POD, {"doubted": ()}, False, id="its report has no doubt of times"),
        pytest.param(OF_POD, {"impossible": {POD: "why"}}, False, id="an impossible fact"),
        pytest.param(OF_POD, {"impossible": {RULE: "why"}}, True, id="one about another object"),
        pytest.param(CONTENT, {}, False, id="content has no time"),
        pytest.param(
            ours(POD._replace(name="q"), 115, REFUSED, Aspect.CONDITIONS), {}, True, id="beside it"
        ),
        pytest.param(
            ours(POD._replace(name="q"), 900, REFUSED, Aspect.CONDITIONS),
            {},
            False,
            id="long after",
        ),
        pytest.param(
            ours(POD._replace(name="q"), 50, REFUSED, Aspect.CONDITIONS), {}, False, id="before it"
        ),
    ],
)
def test_wrong_time_excuses_what_may_rest_on_it(sides, how, is_excused):
    again, doubted = trace(), how.pop("doubted", (Loss.TIMES_CONTRADICT,))
    again.keys["q"] = POD._replace(name="q")
    doubting = doubting_of(trace(), *ACCIDENT, doubted=doubted, **how)
    text = f"{doubts.text_of(Loss.TIMES_CONTRADICT)}: when it was done is not known"
    assert doubting.times(sides, again) == (text if is_excused else "")


@pytest.mark.parametrize(
    ("impossible", "said"),
    [
        ({}, ""),
        ({POD: "of it"}, "of it"),
        ({CLAIM: "of its claim"}, "of its claim"),
        ({RULE: "of another"}, ""),
        ({CLAIM: "of its claim", POD: "of it"}, "of it"),
    ],
)
def test_impossible_fact_about_a_pod_or_its_claims_is_named(impossible, said):
    """It leaves nothing undecided, whatever else is missing."""
    recorded, again = trace(), trace()
    again.users["c"] = {"p"}
    doubting = doubting_of(recorded, (10, event(POD)), (60, GAP), impossible=impossible)
    sides = Sides(aspect=Aspect.FINAL, uid="p", recorded=["a"], again=["b"])
    assert doubting.impossibility(sides, again) == said
    assert doubting.lack(sides, again) == ("" if said else UNSEEN)
    assert bool(doubting.gap(OF_POD, again)) is (not said)
