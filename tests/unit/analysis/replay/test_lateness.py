"""Which delays of acts a recording explains; the rows were written before the judge."""

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest

from app.analysis.replay import facts, tolerances
from app.analysis.replay.acts import Act, RefusedRequest
from app.analysis.replay.attempts import Try
from app.analysis.replay.authors import CLAIMS, EVICTION, SCHEDULER
from app.analysis.replay.hypotheses.successors import successions
from app.analysis.replay.lags import Waits
from app.analysis.replay.lateness import (
    Delay,
    FirstAttempt,
    KeyLook,
    PacedAct,
    PacedRun,
    Process,
    Silences,
    Timers,
    late_acts,
    late_attempts,
)
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.variants import Succession
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import Actor, Event, EventType, ObjectKey, Origin, Revision, Stamp
from app.domain.log.doubts import NEVER_SEEN, Affects, Doubt
from app.domain.log.records import Loss
from app.domain.values.timestamps import SECOND, Instant
from app.service.replays.deciding.violations import delays_of

BUSY = tuple(range(11, 100, 5))
"""Instants at which another controller of the same process writes."""

AGAIN = [10 + 0.005 * (2**number - 1) for number in range(11)]
"""Instants at which a request is refused again and again, with the back-off of a work queue."""


def instant(seconds):
    return Instant(int(seconds * SECOND))


def act(name, came, user=EVICTION, *, is_guessed=False):
    origin = Origin(source="x", time_quality="exact", asked=instant(came))
    event = Event(
        revision=Revision(1),
        type=EventType.OBJECT_UPDATED,
        key=ObjectKey("", "pods", "default", name),
        uid=name,
        body=b"{}",
        stamp=Stamp(time=instant(came), actor=Actor(user=user), verb="patch", origin=origin),
    )
    return Act(event=event, before=None, known=instant(came), user=user, is_guessed=is_guessed)


def late(own, *, others=(), refused=(), is_guessed=False, written=range(0, 1000, 5), is_sure=True):
    """The names of the late evictions; `own` are (name, ready, came); a deletion follows each.

    `written` are the seconds in which somebody writes.
    """
    delays = delays_among(own, others, refused, is_guessed, written)
    return {delay.key.name for delay in delays if delay.is_sure == is_sure}


def delays_among(own, others=(), refused=(), is_guessed=False, written=range(0, 1000, 5)):
    """The delays of the evictions that `late` names."""
    paced = [
        PacedAct(queue="eviction", ready=instant(ready), act=act(name, came, is_guessed=is_guessed))
        for name, ready, came in own
    ]
    acts = [each.act for each in paced]
    acts += [act(name, came + 0.001) for name, _, came in own]
    acts += [act("other", came, CLAIMS) for came in others]
    refusals = [
        RefusedRequest(user=EVICTION, at=instant(came), key=ObjectKey("", "pods", "default", "a"))
        for came in refused
    ]
    silences = Silences([*map(instant, written), *(each.known for each in acts)])
    return [*late_acts(paced, acts, refusals, silences)]


TOGETHER = ("b", 10, 10.02)
"""An eviction that is due at the same time, and is done."""

ROWS = [
    ("2 s, beside one that was done", [("a", 10, 12), TOGETHER], {}, set()),
    ("3 s, beside one that was done", [("a", 10, 13), TOGETHER], {}, {"a"}),
    ("11 s, beside one that was done", [("a", 10, 21), TOGETHER], {}, {"a"}),
    ("30 s, and the process may be replaced", [("a", 10, 40), TOGETHER], {}, set()),
    ("30 s, and the process works", [("a", 10, 40), TOGETHER], {"others": BUSY}, {"a"}),
    ("300 s", [("a", 10, 310), TOGETHER], {}, {"a"}),
    ("11 s, alone", [("a", 10, 21)], {"others": BUSY}, set()),
    ("30 s, alone, and the process works", [("a", 10, 40)], {"others": BUSY}, {"a"}),
    ("30 s, alone, and the process may be replaced", [("a", 10, 40)], {}, set()),
    ("70 s, alone, and the process may be replaced", [("a", 10, 80)], {}, {"a"}),
    ("3 s, and a younger one is done", [("a", 10, 13.5), ("b", 10.8, 11)], {}, {"a"}),
    ("after those that were due before", [("a", 10, 15), *[(f"b{n}", 9, 10 + n) for n in range(5)]],
     {}, set()),
    ("as slow as the limit", [(f"b{n}", 10, 10 + n) for n in range(40)], {}, set()),
    ("slower than the limit", [*[(f"b{n}", 10, 10 + n) for n in range(40)], ("a", 10, 56)], {},
     {"a"}),
    ("after eleven refusals", [("a", 10, 20.3), TOGETHER], {"others": BUSY, "refused": AGAIN},
     set()),
    ("long after eleven refusals", [("a", 10, 24), TOGETHER], {"others": BUSY, "refused": AGAIN},
     {"a"}),
    ("11 s after one refusal", [("a", 10, 21), TOGETHER], {"refused": (10.1,)}, {"a"}),
    ("70 s, alone, while nobody writes", [("a", 10, 80)], {"written": (9,)}, set()),
    ("70 s, beside one that was done, while nobody writes", [("a", 10, 80), TOGETHER],
     {"written": (9,)}, {"a"}),
    ("70 s, after one that was due and done before, while nobody writes",
     [("a", 10, 80), ("b", 9.6, 9.62)], {"written": (9,)}, set()),
    ("70 s, beside one that was due before and done after, while nobody writes",
     [("a", 10, 80), ("b", 9.6, 10.02)], {"written": (9,)}, {"a"}),
    ("70 s, alone, a last one writes amid", [("a", 10, 80)], {"written": (9, 25)}, {"a"}),
    ("140 s, of which nobody writes in 70", [("a", 10, 150)],
     {"written": (*range(0, 80, 5), 150)}, {"a"}),
    ("140 s, of which nobody writes in 85", [("a", 10, 150)],
     {"written": (*range(0, 70, 5), 150)}, set()),
    ("300 s, of which its process was at work for 10", [("a", 10, 310)],
     {"others": (11, 16, 21), "written": (9,)}, set()),
    ("300 s, of which its process was at work for 40", [("a", 10, 310)],
     {"others": (11, 21, 31, 41, 51), "written": (9,)}, {"a"}),
    ("11 s, by an author that is a guess", [("a", 10, 21), TOGETHER], {"is_guessed": True}, set()),
]  # fmt: skip


@pytest.mark.parametrize(("own", "beside", "expected"), [row[1:] for row in ROWS],
                         ids=[row[0] for row in ROWS])  # fmt: skip
def test_delay_of_an_act_needs_an_explanation(own, beside, expected):
    assert late(own, **beside) == expected


@pytest.mark.parametrize(
    ("own", "others", "due", "came", "proof"),
    [
        ([("a", 10, 15.5), ("b", 12, 12.1)], (), 10, 15.5,
         "the controller did younger work before it"),
        ([("a", 10, 13), TOGETHER], (), 10, 13,
         "the controller was at work, and its process was not replaced"),
        ([("a", 10, 40)], BUSY, 10, 40, "its process was at work"),
        ([("a", 10, 80)], (), 10, 80, "no controller stands still for so long"),
    ],
)  # fmt: skip
def test_delay_of_an_act_names_its_proof(own, others, due, came, proof):
    delay = next(each for each in delays_among(own, others) if each.key.name == "a")
    assert (delay.due, delay.came) == (instant(due), instant(came))
    assert delay.proof == proof
    assert delay.uid == "a"
    seconds = (instant(came) - instant(due)) / SECOND
    assert f"{seconds:.1f} s later than was due (" in delay.text
    assert delay.text.endswith(f"), and {proof}")


def test_delay_while_nobody_writes_is_in_doubt():
    assert late([("a", 10, 80)], written=(9,), is_sure=False) == {"a"}
    assert late([("a", 10, 69)], written=(9,), is_sure=False) == set()


def delays_of_pods(own, written=range(0, 1000, 5), acts=(), ranks=None):
    """Each late pod: when it was due and tried, the proof, and whether that is sure."""
    firsts = {
        name: FirstAttempt(
            ready=instant(ready),
            attempt=Try(
                instant=instant(tried),
                first=instant(tried),
                last=instant(tried),
                tried=AttemptOutcome(message="none"),
            ),
        )
        for name, ready, tried in own
    }
    keys = {name: ObjectKey("", "pods", "default", name) for name in firsts}
    silences = Silences(map(instant, written))
    waits = Waits((), ())
    return {
        each.uid: (each.key.name, each.due // SECOND, each.came // SECOND, each.proof, each.is_sure)
        for each in late_attempts(firsts, firsts, ranks or {}, keys, waits, acts, silences)
    }


def late_pods(own, ranks=None, written=range(0, 1000, 5)):
    """The names of the pods that were surely tried too late; `own` are (name, ready, tried)."""
    delays = delays_of_pods(own, written, ranks=ranks).values()
    return {name for name, _, _, _, is_sure in delays if is_sure}


@pytest.mark.parametrize(
    ("own", "ranks", "expected"),
    [
        ([("a", 10, 15), ("b", 11, 12)], {}, {"a"}),
        ([("a", 10, 13), ("b", 11, 12)], {}, set()),
        ([("a", 10, 15), ("b", 9, 12)], {}, set()),
        ([("a", 10, 40)], {}, set()),
        ([("a", 10, 80)], {}, {"a"}),
        ([("a", 10, 15), ("b", 11, 12)], {"b": ("", 5)}, set()),
        ([("a", 10, 15), ("b", 11, 12)], {"a": ("", 5)}, {"a"}),
        ([("a", 10, 15), ("b", 11, 12)], {"b": ("another", 0)}, set()),
    ],
)
def test_pod_is_tried_before_younger_ones_of_its_priority(own, ranks, expected):
    assert late_pods(own, ranks) == expected


def test_pod_may_wait_for_longer_while_nobody_writes():
    assert late_pods([("a", 10, 80)], written=(10, 80)) == set()
    assert late_pods([("a", 10, 140)], written=(10, 30, 105, 140)) == set()
    assert late_pods([("a", 10, 140)], written=(10, 75, 140)) == {"a"}


CHOSEN, GIVEN_BACK = facts.Nominated("n"), facts.Unreserved("p", "pod")
REFUSED = facts.ConditionSet("PodScheduled", "False", "Unschedulable", "no node")
FAILED = facts.EventSeen("Warning", "FailedScheduling", "no node")
IN_VAIN = facts.EventSeen("Warning", "FailedScheduling", messages.prebind_failure("timeout"))
PENDING = facts.EventSeen("Normal", "BindingConditionsPending", "waits")
NAMED_IN_STATUS = facts.FieldChanged("status.extendedResourceClaimStatus", "null", "{}")
SUCCESSIONS = [
    ("it paused, and tried anew", [(1, CHOSEN), (3, REFUSED)], (), [(1, 3)], []),
    ("its pause was shorter", [(1, CHOSEN), (2.9, REFUSED)], (), [], []),
    ("it wrote of others meanwhile", [(1, CHOSEN), (3, REFUSED)], (2,), [], []),
    ("it had refused the pod", [(1, REFUSED), (3, FAILED)], (), [], []),
    ("it tried it long after its pause", [(1, CHOSEN), (9, REFUSED)], (4, 5.9, 7.8, 8.9), [], []),
    ("it tried it soon after its pause", [(1, CHOSEN), (5, REFUSED)], (4,), [(1, 4)], []),
    ("its wait ended", [(1, CHOSEN), (9, GIVEN_BACK), (9.01, IN_VAIN)], (), [], []),
    ("its devices were given back", [(1, CHOSEN), (9, facts.Released())], (), [(1, 9)], []),
    ("it had named the claim", [(1, NAMED_IN_STATUS), (9, REFUSED)], (), [(1, 9)], []),
    ("it had said that it waits", [(1, CHOSEN), (1.1, PENDING), (9, FAILED)], (), [(1.1, 9)], []),
    ("it bound the pod", [(1, CHOSEN), (9, facts.Bound("n"))], (), [], [(1, 9)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "others", "certain", "bound"),
    [row[1:] for row in SUCCESSIONS],
    ids=[row[0] for row in SUCCESSIONS],
)
def test_scheduler_that_paused_amid_a_placement_may_have_been_replaced(
    steps, others, certain, bound
):
    trace, pod = Trace(), ObjectKey("", "pods", "ns", "p")
    for at, fact in steps:
        is_said = isinstance(fact, facts.EventSeen)
        step = Step(
            revision=1, time=instant(at), writer="scheduler", key=pod, uid="pod", facts=(fact,)
        )
        (trace.said if is_said else trace.of_pod)["pod"].append(step)
    written = [instant(at) for at in (*(at for at, _ in steps), *others)]
    found = successions("pod", trace, Process(written), Waits((), written))
    expected = (
        {Succession(pod="pod", since=since, until=until) for since, until in spans}
        for spans in (
            [(Instant(instant(since) + 1), instant(until)) for since, until in each]
            for each in (certain, bound)
        )
    )
    assert found == tuple(expected)
    same = Process(written, lambda begin, end: (begin, end) != (0, 0))
    assert not any(successions("pod", trace, same, Waits((), written))), "its Lease says so"


YOUNGER = "younger pods were tried before it"


@pytest.mark.parametrize(
    ("own", "written", "said"),
    [
        ([("a", 10, 12)], (10, 12), {}),
        ([("a", 10, 15), ("b", 11, 12)], (10, 12), {"a": ("a", 10, 15, YOUNGER, True)}),
        ([("a", 10, 15), ("b", 11, 12), ("c", 10, 12)], (), {"a": ("a", 10, 15, YOUNGER, True)}),
        ([("a", 10, 80), ("b", 11, 12)], (10, 80), {"a": ("a", 10, 80, YOUNGER, True)}),
        # Pods of one instant may be tried in any order.
        ([("a", 10, 15), ("b", 10, 12)], (10, 12), {}),
    ],
)
def test_late_pod_is_named_with_its_proof(own, written, said):
    assert delays_of_pods(own, written) == said


def test_scheduler_that_does_nothing_for_a_minute_is_late_though_nobody_was_tried_before():
    (late_one,) = delays_of_pods([("a", 10, 80)]).values()
    (unsure,) = delays_of_pods([("a", 10, 80)], written=(10, 80)).values()
    assert late_one[:3] == unsure[:3] == ("a", 10, 80)
    assert "scheduler" in late_one[3]
    assert (late_one[4], unsure[4]) == (True, False)
    assert delays_of_pods([("a", 10, 69)]) == {}


def test_work_of_the_scheduler_on_others_puts_off_the_minute():
    """From its last write on: by then it was at work."""
    busy = [act("other", 40, SCHEDULER)]
    assert delays_of_pods([("a", 10, 80)], acts=busy) == {}
    assert delays_of_pods([("a", 10, 110)], acts=busy).keys() == {"a"}
    of_another = [act("other", 40, CLAIMS)]
    assert delays_of_pods([("a", 10, 80)], acts=of_another).keys() == {"a"}
    long_before = [act("other", 5, SCHEDULER)]
    assert delays_of_pods([("a", 10, 69)], acts=long_before) == {}


def test_delay_is_said_in_seconds_from_when_it_was_due():
    delay = Delay(
        key=ObjectKey("", "pods", "default", "a"),
        uid="a",
        due=instant(10),
        came=instant(12.25),
        proof="why",
    )
    due = "1970-01-01T00:00:10.000000Z"
    assert delay.text == f"was tried 2.2 s later than was due ({due}), and why"


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (EventType.OBJECT_CREATED, "was created"),
        (EventType.OBJECT_UPDATED, "was changed"),
        (EventType.OBJECT_DELETED, "was removed"),
    ],
)
def test_delay_of_an_act_says_what_came_late(type_, words):
    made = act("a", 30)
    event = msgspec.structs.replace(made.event, type=type_)
    paced = [
        PacedAct(queue="eviction", ready=instant(10), act=replace(made, event=event)),
        PacedAct(queue="eviction", ready=instant(10), act=act("b", 10.02)),
    ]
    beside = [act("a", 30.001), *(act("other", came, CLAIMS) for came in BUSY)]
    (delay,) = late_acts(paced, [*(each.act for each in paced), *beside], ())
    assert delay.text.startswith(f"{words} 20.0 s later than was due (1970-01-01T00:00:10.000000Z)")


def look(*key: str, ready: float = 1) -> KeyLook:
    return KeyLook(key=key, first=instant(0), ready=instant(ready))


def test_looks_at_an_object_are_those_at_its_key_its_uid_or_its_owner() -> None:
    trace = Trace()
    trace.keys["claim-uid"] = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "claim")
    trace.keys["pod-uid"] = ObjectKey("", "pods", "ns", "pod")
    trace.owner_of["claim-uid"] = "pod-uid"
    looks = [look("ns", "claim"), look("ns", "pod"), look("pod-uid"), look("claim-uid"), look("x")]
    run = PacedRun(looks={instant(5): looks, instant(6): [look("ns", "claim")]})
    assert list(run.looks_for(trace, "claim-uid", instant(5))) == looks[:4]
    assert list(run.looks_for(trace, "pod-uid", instant(5))) == looks[1:3]
    assert list(run.looks_for(trace, "unknown", instant(5))) == []
    assert list(run.looks_for(trace, "claim-uid", instant(7))) == []


def test_looks_within_a_namespace_are_those_at_the_kind_there() -> None:
    kind = ("ns", "resource.k8s.io", "resourceclaims")
    looks = [look(*kind), look("other", *kind[1:]), look("ns", "", "pods"), look("ns", "claim")]
    run = PacedRun(looks={instant(5): looks})
    claim = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "claim")
    assert list(run.looks_within(claim, instant(5))) == looks[:1]
    assert list(run.looks_within(ObjectKey("", "pods", "ns", "p"), instant(5))) == looks[2:3]
    assert list(run.looks_within(claim, instant(6))) == []


def test_step_was_due_at_the_last_reason_of_the_looks_at_its_instant() -> None:
    """Steps before an instant, and those without a look, are due when they come."""
    key = ObjectKey("", "pods", "ns", "pod")
    trace = Trace()
    trace.keys["u"] = key
    steps = {
        seconds: Step(revision=1, time=instant(seconds), writer="w", key=key, uid="u", facts=())
        for seconds in (4, 5, 6, 7)
    }
    trace.writes["u"] += [steps[4], steps[5], steps[6]]
    trace.said["u"].append(steps[7])
    looks = {
        instant(4): [look("u", ready=1)],
        instant(5): [look("u", ready=2), look("ns", "pod", ready=3)],
        instant(7): [look("u", ready=6)],
    }
    PacedRun(looks=looks).note_due(trace, instant(5), instant(4))
    due = [trace.due_at(steps[seconds]) for seconds in (4, 5, 6, 7)]
    assert due == [instant(each) for each in (4, 3, 6, 6)]
    ready = [trace.ready.get(("u", instant(seconds))) for seconds in (4, 5, 6, 7)]
    assert ready == [instant(1), instant(3), None, instant(6)]


def test_steps_of_a_placement_could_be_made_since_the_pod_could_be_tried() -> None:
    trace = Trace()
    keys = {"pod": "pods", "made": "resourceclaims", "used": "resourceclaims"}
    for uid, resource in keys.items():
        key = trace.keys[uid] = ObjectKey("", resource, "ns", uid)
        trace.writes[uid] = [
            Step(revision=1, time=instant(at), writer="w", key=key, uid=uid, facts=())
            for at in (4, 5, 7, 9)
        ]
    trace.owner_of["made"] = "pod"
    trace.users["used"] = {"pod"}
    tried = {"pod": [(instant(5), instant(2)), (instant(9), instant(8))]}
    PacedRun(tried=tried).note_due(trace, instant(9), instant(4))
    assert trace.ready == {
        (uid, instant(at)): instant(since) for uid in keys for at, since in ((5, 2), (7, 2), (9, 8))
    }


def test_act_whose_object_the_run_did_not_write_then_is_left_out() -> None:
    acts = [PacedAct(queue="q", ready=instant(0), act=act(name, 10)) for name in ("a", "b", "c")]
    trace = Trace()
    for name, seconds in (("a", 10), ("b", 11), ("d", 10)):
        key = ObjectKey("", "pods", "default", name)
        step = Step(revision=1, time=instant(seconds), writer="", key=key, uid=name, facts=())
        trace.writes[name].append(step)
    run = PacedRun(acts=list(acts))
    run.keep_written(trace)
    assert run.acts == acts[:1]


PAUSE = tolerances.TABLE.replaced_after / SECOND
SOON = tolerances.TABLE.act_after / SECOND


@pytest.mark.parametrize(
    ("written", "at", "is_first"),
    [
        ((0, PAUSE), PAUSE, True),
        ((0, PAUSE), PAUSE + SOON, True),
        ((0, PAUSE), PAUSE + SOON + 0.001, False),
        ((0, PAUSE - 0.001), PAUSE, False),
        ((0, PAUSE), PAUSE - 0.001, False),
        ((0, PAUSE, PAUSE + 1), PAUSE + SOON, True),
        ((0, 2 * PAUSE, 3 * PAUSE), 3 * PAUSE, True),
        ((0,), PAUSE, False),
        ((), PAUSE, False),
    ],
)
def test_act_soon_after_a_pause_may_be_the_first_of_a_new_process(written, at, is_first):
    timers = Timers(processes={"rule-status": Process(map(instant, written))})
    assert timers.is_first_look(instant(at), "rule-status") is is_first
    assert not timers.is_first_look(instant(at), "eviction"), "nothing is known of its process"
    same = Process(map(instant, written), lambda *_: True)
    timers = Timers(processes={"rule-status": same})
    assert not timers.is_first_look(instant(at), "rule-status"), "its Lease says so"


@pytest.mark.parametrize(
    ("written", "first", "last", "back"),
    [
        ((0, 1, 1 + PAUSE, 20), 0, 20, 1 + PAUSE),
        ((0, 1, PAUSE, 20), 0, 20, None),
        ((0, 1, 2), 0, 2 + PAUSE, 2 + PAUSE),
        ((0, PAUSE, 3 * PAUSE, 5 * PAUSE), 0, 3 * PAUSE, 3 * PAUSE),
        ((0, PAUSE, 3 * PAUSE, 5 * PAUSE), PAUSE, 2 * PAUSE - 1, None),
        ((), 3, 3 + PAUSE, 3 + PAUSE),
        ((), 3, 2 + PAUSE, None),
    ],
)
def test_process_begins_anew_at_its_last_return(written, first, last, back):
    timers = Timers(processes={"claims": Process(map(instant, written))})
    expected = None if back is None else instant(back)
    assert timers.begun_anew("claims/pods", instant(first), instant(last)) == expected
    assert timers.begun_anew("claims", instant(first), instant(last)) == expected
    assert timers.begun_anew("eviction", instant(first), instant(last)) is None


EVERYTHING = ObjectKey("", "", "", "")
LATE_POD = ObjectKey("", "pods", "default", "a")
FREE = ObjectKey("", "pods", "default", "free")


def noted(key, seconds, *, gap=False, asked=None, odd=False):
    """A line that others could see from an instant on."""
    losses = (Loss.TIMES_CONTRADICT.value,) if odd else ()
    asked = instant(seconds if asked is None else asked)
    origin = Origin(source="x", losses=losses, asked=asked, answered=asked)
    line = Event(
        revision=Revision(7 if odd else 5),
        type=EventType.GAP_OBSERVED if gap else EventType.OBJECT_UPDATED,
        key=key,
        uid=key.name,
        body=b"{}",
        stamp=Stamp(time=instant(seconds), actor=Actor(user="u"), verb="patch", origin=origin),
    )
    return line, instant(seconds)


def doubt(code, kind=""):
    return Doubt(code=code, affects=Affects.TIME, kind=kind, count=1, text="")


OF_TIMES = doubt(Loss.TIMES_CONTRADICT)


@pytest.mark.parametrize(
    ("doubts", "lines", "delayed"),
    [
        pytest.param((), [], {"a", "p"}, id="nothing is missing"),
        pytest.param((doubt(NEVER_SEEN, "devices"),), [], set(), id="a kind is missing"),
        pytest.param((OF_TIMES,), [], set(), id="a clock is wrong"),
        pytest.param(
            (OF_TIMES,),
            [noted(LATE_POD, 5, asked=150, odd=True), noted(FREE, 6), noted(FREE, 7)],
            {"p"},
            id="the time of its own line is odd",
        ),
        pytest.param(
            (OF_TIMES,),
            [noted(FREE, 5, asked=150, odd=True), noted(FREE, 6), noted(FREE, 7)],
            {"a", "p"},
            id="the time of another pod was odd before",
        ),
        pytest.param(
            (OF_TIMES,),
            [noted(FREE, 25, asked=150, odd=True), noted(FREE, 26), noted(FREE, 27)],
            {"a"},
            id="the time of another pod is odd, which may be why one waits",
        ),
        pytest.param((), [noted(LATE_POD, 12, gap=True)], set(), id="the pod was not seen"),
        pytest.param((), [noted(EVERYTHING, 12, gap=True)], set(), id="nothing was seen"),
        pytest.param(
            (), [noted(LATE_POD, 120, gap=True)], {"a", "p"}, id="it was not seen afterwards"
        ),
        pytest.param(
            (),
            [noted(LATE_POD, 1, gap=True), noted(LATE_POD, 2)],
            {"a", "p"},
            id="it was not seen before",
        ),
    ],
)
def test_delay_proves_nothing_where_its_reason_may_not_be_recorded(doubts, lines, delayed):
    """An eviction is due at 10 and comes at 21 beside another; a pod waits from 30 to 101."""
    lacks = Lacks(doubts)
    for line, known in lines:
        lacks.note(line, known)
    lacks.conclude()
    paced = [
        PacedAct(queue="eviction", ready=instant(ready), act=act(name, came))
        for name, ready, came in (("a", 10, 21), TOGETHER)
    ]
    at = instant(101)
    tried = Try(instant=at, first=at, last=at, tried=AttemptOutcome(message="none"))
    trace = Trace()
    trace.keys["p"] = LATE_POD._replace(name="p")
    recording = SimpleNamespace(
        lacks=lacks,
        trace=trace,
        acts=[*(each.act for each in paced), act("a", 21.001), act("b", 10.021)],
        refusals=(),
        ranks={},
        observations=SimpleNamespace(instants=lambda: map(instant, range(0, 1000, 5))),
    )
    made = PacedRun(acts=paced, firsts={"p": FirstAttempt(ready=instant(30), attempt=tried)})
    pace = SimpleNamespace(waits=Waits((), ()))
    assert {each.uid for each in delays_of(recording, pace, made)} == delayed
