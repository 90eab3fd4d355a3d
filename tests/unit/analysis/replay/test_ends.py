"""What may lie behind the end of a recording: what was due near it, not what was made near it."""

import pytest

from app.analysis.replay.acts import Act
from app.analysis.replay.classes import DifferenceClass, End, seen_in_traces
from app.analysis.replay.differences import Aspect, compare
from app.analysis.replay.facts import ConditionSet
from app.analysis.replay.lateness import Process
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.unsure import ending
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.values.timestamps import SECOND, Instant

END = 100
POD = ObjectKey("", "pods", "default", "a")
EVICTION = "device-taint-eviction-controller"


def instant(seconds):
    return Instant(int(seconds * SECOND))


def trace(made=None, *, due=None, writer=EVICTION):
    """A trace in which a writer marks the pod, or does nothing."""
    made_trace = Trace()
    made_trace.keys["u"] = POD
    if made is not None:
        fact = ConditionSet("DisruptionTarget", "True", "Evicted", "because")
        step = Step(revision=1, time=instant(made), writer=writer, key=POD, uid="u", facts=(fact,))
        made_trace.writes["u"].append(step)
        if due is not None:
            made_trace.due["u", step.time] = instant(due)
    return made_trace


@pytest.mark.parametrize(
    ("made", "due", "queued", "is_after"),
    [
        (101, 101, None, True),
        (101, 99.8, None, True),
        (109, 99, None, False),
        (99.8, 89.8, None, False),
        (101, 91, None, False),
        (101, 91, 90, True),
        (101, 91, 92, False),
        (101, None, None, True),
    ],
)
def test_what_was_due_before_the_end_is_not_after_it(made, due, queued, is_after):
    recorded, again = trace(), trace(made, due=due)
    known = {} if queued is None else {EVICTION: instant(queued)}
    end = End(at=instant(END), later=Trace(), is_of_recording=True, queued=known)
    sides = compare(recorded, again).different[Aspect.WRITES, "u", ""]
    judgement = seen_in_traces(sides, recorded, again, end)
    assert (judgement is not None) is is_after
    assert not is_after or judgement.reason == DifferenceClass.AFTER_END


@pytest.mark.parametrize(
    ("ready", "undone", "is_after"),
    [(None, 40, False), (91, None, False), (91, 90, True), (91, 91, False)],
)
def test_what_could_be_done_since_the_last_sign_of_its_writer_may_come_after_the_end(
    ready, undone, is_after
):
    """It is made here before the end, by which it was ready for longer than acts take."""
    recorded, again = trace(), trace(99)
    if ready is not None:
        again.ready["u", instant(99)] = instant(ready)
    known = {} if undone is None else {EVICTION: instant(undone)}
    end = End(at=instant(END), later=Trace(), is_of_recording=True, undone=known)
    sides = compare(recorded, again).different[Aspect.WRITES, "u", ""]
    assert (seen_in_traces(sides, recorded, again, end) is not None) is is_after


def sent(user, at):
    stamp = Stamp(time=instant(at), actor=Actor(user=user), verb="patch")
    event = Event(
        revision=Revision(1),
        type=EventType.OBJECT_UPDATED,
        key=POD,
        uid="u",
        body=b"{}",
        stamp=stamp,
    )
    return Act(event=event, before=None, known=instant(at), user=user, is_guessed=False)


@pytest.mark.parametrize(
    ("own", "others", "led", "since"),
    [
        pytest.param([], [], 0, 40, id="the process is away"),
        pytest.param([], [99], 0, 85, id="the controller alone stands still"),
        pytest.param([90], [90], 0, 90, id="since its last act"),
        pytest.param([50], [50], 0, 50, id="since its last act, long ago"),
        pytest.param([10], [50], 0, 50, id="since the last sign of its process"),
        pytest.param([99.5], [99.5], 0, 99.5, id="it was at work"),
        pytest.param([50], [50], 100, 100, id="a Lease shows the process"),
        pytest.param([50], [50], 97, 97, id="a Lease shows it until shortly before the end"),
        pytest.param([50], [50], 45, 50, id="its Lease was not renewed after its last sign"),
        pytest.param([50], [50, 110], 0, 50, id="what comes after the end says nothing"),
    ],
)
def test_what_was_due_may_be_undone_since_the_last_sign_of_its_process(own, others, led, since):
    process = Process(map(instant, others), is_led=lambda begin, _: begin <= instant(led))
    acts = [sent("user", at) for at in own]
    undone = ending.undone_since(acts, (), instant(END), {"user": process})
    assert undone == {"user": instant(since)}


@pytest.mark.parametrize(
    ("other", "at", "expected"),
    [
        (None, None, {EVICTION}),
        ("resource-claim-controller", 90, {EVICTION}),
        ("resource-claim-controller", 80, set()),
        ("scheduler", 20, {EVICTION}),
    ],
)
def test_controller_of_a_process_at_work_does_not_start_after_the_end(other, at, expected):
    recorded = trace() if other is None else trace(at, writer=other)
    end = End(at=instant(END), later=Trace(), is_of_recording=True)
    assert ending.unstarted(recorded, trace(95), end) == expected


@pytest.mark.parametrize(("others", "is_judged"), [(0, False), (1, True)])
def test_missing_event_tells_nothing_where_there_are_none(others, is_judged):
    recorded, again = trace(), trace()
    step = trace(50).writes["u"][0]
    again.said["u"].append(step)
    for number in range(others):
        recorded.said[f"other-{number}"].append(step)
        again.said[f"other-{number}"].append(step)
    end = End(at=instant(END), later=Trace(), is_of_recording=True)
    sides = compare(recorded, again).different[Aspect.SAID, "u", ""]
    judgement = seen_in_traces(sides, recorded, again, end)
    assert (judgement is None) is is_judged
    assert is_judged or judgement.reason == DifferenceClass.NOT_COMPARABLE
