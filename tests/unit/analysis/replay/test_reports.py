"""Reports of a decide replay and their basis: facts as sentences, waits, outcomes, owners."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from app.adapters import schemas
from app.analysis.replay import differences, facts, tolerances
from app.analysis.replay.attempts import Try
from app.analysis.replay.classes import DifferenceClass, End, Judgement, seen_in_traces
from app.analysis.replay.differences import Aspect
from app.analysis.replay.readiness import Readiness
from app.analysis.replay.report import (
    LISTED_MAX,
    REFUSED_PLAN,
    USERS_MAX,
    AspectCounts,
    DecideDifference,
    DecideReport,
    listed,
)
from app.analysis.replay.traces import AllocationStep, Step, Trace
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.log import Actor, Draft, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import seal
from app.domain.values.timestamps import Instant

POD = ObjectKey("", "pods", "ns", "p")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c")


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (facts.Created(), "created"),
        (facts.Created("{}"), "created {}"),
        (facts.Removed(), "removed"),
        (facts.DeletionAsked(30), "deletion asked for, grace 30"),
        (facts.ClaimsNamed((("a", "p-a"), ("b", "p-b"))), "claims a=p-a, b=p-b"),
        (facts.Nominated("n"), "nominated n"),
        (facts.NominationEnded(), "no nominated node"),
        (facts.Bound("n"), "bound to n"),
        (facts.ConditionSet("Ready", "True", "", ""), "Ready True"),
        (facts.ConditionSet("Ready", "False", "Off", "no power"), "Ready False Off: no power"),
        (
            facts.ConditionSet("Ready", "True", "On", "", observed=2, is_dated=False),
            "Ready True On:  (generation 2) (no time)",
        ),
        (facts.ConditionRemoved("Ready"), "no condition Ready"),
        (facts.Reserved("p"), "reserved for p"),
        (facts.Reserved("p", "u-1"), "reserved for p (u-1)"),
        (facts.Unreserved("p", "u-1"), "no longer reserved for p (u-1)"),
        (facts.FinalizerAdded("f"), "finalizer f"),
        (facts.FinalizerRemoved("f"), "no finalizer f"),
        (facts.Allocated(("r: p/a", "r: p/b")), "allocated r: p/a, r: p/b"),
        (facts.Released(), "released"),
        (facts.AllocationChanged(), "allocation changed"),
        (facts.FieldChanged("spec.a", "1", "2"), "spec.a: 1 -> 2"),
        (facts.EventSeen("Normal", "Scheduled", "to n"), "Normal Scheduled: to n"),
        (
            facts.EventSeen("Normal", "Scheduled", "to n", about="Pod ns/q"),
            "Normal Scheduled: to n (about Pod ns/q)",
        ),
    ],
)
def test_fact_in_words(fact: facts.Fact, words: str) -> None:
    assert facts.text(fact) == words


@pytest.mark.parametrize(
    ("tree", "content"),
    [
        ({}, "{}"),
        ({"kind": "Pod", "apiVersion": "v1", "status": {"phase": "Running"}}, "{}"),
        ({"spec": {"a": 1}, "metadata": {"name": "p", "uid": "u"}}, '{"spec":{"a":1}}'),
        (
            {"data": {"b": "2"}, "metadata": {"name": "p", "labels": {"x": "y"}}},
            '{"data":{"b":"2"},"metadata":{"labels":{"x":"y"}}}',
        ),
    ],
)
def test_content_of_a_new_object_is_all_but_who_it_is(tree: dict, content: str) -> None:
    assert facts.content_of(tree, None) == content


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"kind": "Pod", "namespace": "ns", "name": "p"}, ""),
        ({"uid": "u"}, ""),  # what it leaves out agrees with any object
        ({"kind": "Pod", "namespace": "ns", "name": "q"}, "Pod ns/q"),
        ({"kind": "Pod", "namespace": "other", "name": "p"}, "Pod other/p"),
        ({"kind": "Job", "namespace": "ns", "name": "p"}, "Job ns/p"),
    ],
)
def test_event_is_about_the_object_of_its_uid(about: dict[str, str], words: str) -> None:
    assert facts.event_seen({"reason": "Scheduled", "regarding": about}, POD).about == words
    assert facts.event_seen({"reason": "Scheduled", "regarding": about}).about == ""


@pytest.mark.parametrize(
    ("reason", "action", "reporter", "words"),
    [
        ("Scheduled", "Binding", "default-scheduler", ""),
        ("Scheduled", "Binding", "batch", ""),  # the name that the pod gives
        ("Scheduled", "", "", ""),  # what it leaves out agrees with any
        ("Scheduled", "Preempting", "batch", " (action Preempting)"),
        ("FailedScheduling", "Binding", "batch", " (action Binding)"),
        ("Preempted", "Preempting", "other", " (reported by other)"),
        ("Killing", "", "kubelet", ""),
        ("Killing", "Binding", "kubelet", " (action Binding)"),
    ],
)
@pytest.mark.parametrize("name", ["reportingComponent", "reportingController"])
def test_event_has_the_action_and_the_reporter_of_its_reason(
    reason: str, action: str, reporter: str, words: str, name: str
) -> None:
    tree = {"type": "Normal", "reason": reason, "action": action, name: reporter}
    assert facts.text(facts.event_seen(tree, POD, "batch")) == f"Normal {reason}: {words}"
    if reporter == "other":
        assert facts.event_seen(tree, POD).reporter == ""


def test_key_waited_from_the_slack_before_it_was_ready_until_it_was_due() -> None:
    slack = tolerances.TABLE.unseen
    waits = Readiness({"claims": Instant(50)})
    begun, due = Instant(10 * slack), Instant(12 * slack)
    waits.note("eviction", ("p",), begun, due)
    waits.note("eviction", ("p",), Instant(20 * slack), Instant(21 * slack))
    for now, expected in [
        (begun - slack - 1, False),
        (begun - slack, True),
        (due, True),
        (due + 1, False),
        (20 * slack, True),
    ]:
        assert waits.was_waiting("eviction", ("p",), Instant(now)) is expected, now
    assert not waits.was_waiting("eviction", ("q",), begun)
    assert not waits.was_waiting("claims", ("p",), Instant(51))
    assert waits.was_waiting("claims/late", ("p",), Instant(50))


def test_claim_waits_for_its_recorded_act_only_while_it_has_work() -> None:
    slack = tolerances.TABLE.unseen
    waits, key = Readiness({}), ("default", "c")
    waits.note("claims", key, Instant(0), Instant(100 * slack))
    assert not waits.was_waiting("claims", key, Instant(50 * slack))
    waits.note_work("claims", key, Instant(80 * slack))
    waits.note_work("claims", key, Instant(81 * slack))
    assert not waits.was_waiting("claims", key, Instant(50 * slack))
    assert waits.was_waiting("claims", key, Instant(79 * slack))
    waits.note_no_work("claims", key, Instant(90 * slack))
    assert waits.was_waiting("claims", key, Instant(90 * slack))
    assert not waits.was_waiting("claims", key, Instant(95 * slack))


def test_result_of_a_pod_was_put_off_only_for_that_pod() -> None:
    waits = Readiness({})
    waits.note_put_off("u", Instant(100), Instant(200))
    waits.note_put_off("u", Instant(150), Instant(120))
    assert waits.was_put_off("u", Instant(200))
    assert not waits.was_put_off("u", Instant(201))
    assert not waits.was_put_off("v", Instant(150))


def test_result_is_put_off_no_longer_once_an_attempt_counts() -> None:
    waits = Readiness({})
    waits.note_counted("u", Instant(90))
    waits.note_put_off("u", Instant(100), Instant(200))
    waits.note_counted("u", Instant(130))
    assert waits.was_put_off("u", Instant(129))
    assert not waits.was_put_off("u", Instant(130))
    waits.note_counted("u", Instant(150))
    assert waits.was_put_off("u", Instant(129))


def tried(node: str = "", message: str = "", devices: tuple = ()) -> AttemptOutcome:
    return AttemptOutcome(node=node, message=message, devices=devices)


@pytest.mark.parametrize(
    ("there", "also", "here", "expected"),
    [
        (tried(message="no room"), (), tried(message="no room"), True),
        (tried(message="no room"), (), tried(message="no class"), False),
        (tried(message="no room"), ("no class",), tried(message="no class"), True),
        (tried(message="no room"), ("no class",), tried(node="n", message="no class"), False),
        (tried(node="n"), (), tried(node="n"), True),
        (tried(node="n"), (), tried(node="m"), False),
    ],
)
def test_attempt_came_to_what_was_recorded_or_may_have_been(there, also, here, expected) -> None:
    at = Instant(1)
    made = Try(instant=at, first=at, last=at, tried=there, also=frozenset(also))
    assert made.came_to(here) is expected


def event(type: EventType, key: ObjectKey, uid: str, tree: dict, at: int = 1):
    stamp = Stamp(time=Instant(at), actor=Actor(user="a"), verb="update", observed=Revision(0))
    return seal(Draft(type=type, key=key, uid=uid, tree=tree, stamp=stamp), Revision(at), bytes(32))


def claim(*users: str, owner: str = "") -> dict:
    metadata: dict = {"name": "c", "uid": "c"}
    if owner:
        own = {"kind": "Pod", "name": "p", "uid": owner, "controller": True}
        metadata["ownerReferences"] = [own]
    reserved = [{"resource": "pods", "name": user, "uid": user} for user in users]
    return {"metadata": metadata, "status": {"reservedFor": reserved}}


def test_write_of_a_claim_concerns_its_owner_or_those_whose_reservation_changes() -> None:
    trace = Trace(schemas.load("1.36"))
    owned = event(EventType.OBJECT_CREATED, CLAIM, "c", claim(owner="p"))
    trace.begin(owned)
    assert list(trace.pods_of(owned, None)) == ["p"]
    shared = event(EventType.OBJECT_UPDATED, CLAIM, "d", claim("b", "new"))
    trace.begin(shared)
    assert list(trace.pods_of(shared, claim("b", "old"))) == ["new", "old"]
    pod = event(EventType.OBJECT_UPDATED, POD, "p", {"metadata": {"name": "p"}})
    assert list(trace.pods_of(pod, None)) == ["p"]
    assert trace.users["d"] == {"b", "new"}


def test_object_is_kept_until_it_is_deleted() -> None:
    trace = Trace(schemas.load("1.36"))
    trace.begin(event(EventType.OBJECT_CREATED, CLAIM, "c", claim()))
    assert list(trace.kept) == ["c"]
    assert trace.removed == {}
    trace.begin(event(EventType.OBJECT_DELETED, CLAIM, "c", claim(), at=7))
    assert trace.kept == {}
    assert trace.removed == {"c": Instant(7)}


@pytest.mark.parametrize(("missing", "late", "expected"), [
    (False, True, "after the end"), (True, True, None), (False, False, None),
])  # fmt: skip
def test_allocation_lies_after_the_end_if_nothing_that_was_written_is_missing(
    missing: bool, late: bool, expected: str | None
) -> None:
    end = Instant(10)
    recorded, again = Trace(schemas.load("1.36")), Trace(schemas.load("1.36"))
    reserved = step_of(facts.Reserved("p"), 1)
    for trace in (recorded, again):
        trace.keys["c"] = CLAIM
    recorded.writes["c"] = [reserved]
    again.writes["c"] = [
        *([] if missing else [reserved]),
        step_of(facts.Released(), 11 if late else 9),
    ]
    again.allocations["c"] = [
        AllocationStep(revision=1, time=Instant(11), key=CLAIM, uid="c", pod="p",
                       devices=("r: p/a",), allocation={})
    ]  # fmt: skip
    (sides,) = [
        each
        for each in differences.compare(recorded, again).different.values()
        if each.aspect is Aspect.DEVICES
    ]
    judged = seen_in_traces(sides, recorded, again, End(at=end, later=Trace()))
    assert (judged.reason if judged else None) == expected


def step_of(fact: facts.Fact, at: int) -> Step:
    return Step(revision=at, time=Instant(at), writer="", key=CLAIM, uid="c", facts=(fact,))


def report(*classes: str, **fields: object) -> DecideReport:
    counts = AspectCounts(same=2, different=Counter(classes))
    made: dict = {
        "history": "h",
        "revision": Revision(7),
        "inputs": {"b": 2, "a": 1},
        "aspects": {Aspect.NODES: counts},
        "differences": (),
        "not_comparable": {},
    }
    return DecideReport(**{**made, **fields})


@pytest.mark.parametrize(
    ("classes", "fields", "outcome"),
    [
        ((), {}, "agrees"),
        (("race",), {}, "agrees apart from proved classes"),
        (("race", "unexplained"), {}, "unexplained differences"),
        ((), {"violations": {"c": "held twice"}}, "impossible states or times"),
        (("race",), {"violations": {"c": "came too late"}}, "impossible states or times"),
        (("unexplained",), {"violations": {"c": "held twice"}}, "unexplained differences"),
        (("not comparable",), {}, "agrees in part"),
        ((), {"not_comparable": {"gap": 1}}, "agrees in part"),
        ((), {"not_done": {"the object is gone": 1}}, "agrees in part"),
        (("race",), {"not_done": {"the object is gone": 1}}, "agrees apart from proved classes"),
        ((), {"not_done": {REFUSED_PLAN: 1}}, "agrees"),
    ],
)
def test_outcome_follows_from_classes_and_from_what_was_not_compared(
    classes: tuple, fields: dict, outcome: str
) -> None:
    """The table of outcomes in docs/explanation/decide.md."""
    made = report(*classes, **fields)
    assert made.agreement.value == outcome
    assert made.explained is outcome.startswith("agrees")


def test_report_as_json_names_everything_that_it_counts() -> None:
    difference = DecideDifference(
        aspect=Aspect.NODES,
        subject="pods/p",
        uid="p",
        owner="p",
        since=None,
        revision=3,
        users=("u",),
        reason="race",
        detail="d",
        recorded=["a"],
        again=["b"],
    )
    made = report(
        "race", "switch --quirk q1=off", "race",
        differences=(difference,), not_comparable={"gap": 1}, not_done={"z": 1, "gone": 2},
        violations={"c": "twice"}, written_by={"claims": {"v": 2, "u": 1}}, ties=4, runs=5,
    )  # fmt: skip
    assert json.loads(json.dumps(made.to_json())) == {
        "history": "h",
        "revision": 7,
        "outcome": "impossible states or times",
        "explained": False,
        "inputs": {"a": 1, "b": 2},
        "aspects": {
            "nodes": {
                "same": 2,
                "different": 3,
                "classes": {"race": 2, "switch --quirk q1=off": 1},
            }
        },
        "tiesTakenFromTheRecording": 4,
        "runsToProveClasses": 5,
        "violations": {"c": "twice"},
        "writtenBy": {"claims": {"u": 1, "v": 2}},
        "differences": [
            {
                "aspect": "nodes",
                "subject": "pods/p",
                "revision": 3,
                "users": ["u"],
                "class": "race",
                "detail": "d",
                "recorded": ["a"],
                "again": ["b"],
            }
        ],
        "certainty": "sure",
        "doubts": [],
        "notComparable": {"gap": 1},
        "notDone": {"gone": 2, "z": 1},
    }


def test_unexplained_difference_is_listed_however_many_others_there_are() -> None:
    """A thousand are listed, in the order of aspects; the unexplained one is the last by name."""
    trace, order = Trace(), list(Aspect)
    different, judged = {}, {}
    for number in range(LISTED_MAX + 2):
        is_grave = number == LISTED_MAX + 1
        aspect = max(order) if is_grave else order[number % len(order)]
        why = DifferenceClass.UNEXPLAINED if is_grave else DifferenceClass.TIMING
        key = (aspect, f"u{number:04}", "")
        different[key] = differences.Sides(
            aspect=aspect,
            uid=key[1],
            recorded=["it"],
            again=[],
            only_recorded=(step_of(facts.Released(), 1),),
        )
        judged[key] = Judgement(reason=why, detail="d")
    listed_ones = listed(different, judged, trace, trace, {"u0001": {"bob"}})
    assert len(listed_ones) == LISTED_MAX
    assert [each.uid for each in listed_ones if each.reason is DifferenceClass.UNEXPLAINED] == [
        f"u{LISTED_MAX + 1:04}"
    ]
    assert [each.aspect for each in listed_ones] == sorted(
        (each.aspect for each in listed_ones), key=order.index
    )
    assert [each.uid for each in listed_ones if each.users] == ["u0001"]


THERE, HERE = step_of(facts.Released(), 5), replace(step_of(facts.Released(), 7), revision=9)


@pytest.mark.parametrize(
    ("sides", "revision", "subject", "owner", "since"),
    [
        ("there", 5, CLAIM, "of there", 5),
        ("here", 9, CLAIM, "of here", 7),
        ("there here", 5, CLAIM, "of there", 5),
        ("", 0, None, "c", None),
    ],
)
def test_difference_is_listed_with_what_either_side_has_of_its_subject(
    sides: str, revision: int, subject: ObjectKey | None, owner: str, since: int | None
) -> None:
    """The recorded side counts where both have it."""
    recorded, again = Trace(), Trace()
    for trace, name, made in ((recorded, "there", THERE), (again, "here", HERE)):
        if name in sides:
            trace.writes["c"] = [made]
            trace.keys["c"] = CLAIM
            trace.owner_of["c"] = f"of {name}"
    both = differences.Sides(
        aspect=Aspect.WRITES,
        uid="c",
        recorded=["r"],
        again=["a"],
        only_recorded=(THERE,) if "there" in sides else (),
        only_again=(HERE,) if "here" in sides else (),
    )
    judged = {both.key: Judgement(reason=DifferenceClass.RACE, detail="d")}
    names = [f"user{number}" for number in range(USERS_MAX + 1)]
    (each,) = listed({both.key: both}, judged, recorded, again, {"c": set(names)})
    assert (each.aspect, each.uid, each.revision) == (Aspect.WRITES, "c", revision)
    assert each.subject == ("c" if subject is None else str(subject))
    assert (each.owner, each.since) == (owner, since)
    assert each.users == tuple(names[:USERS_MAX])
    assert (each.reason, each.detail) == (DifferenceClass.RACE, "d")
    assert (each.recorded, each.again) == (["r"], ["a"])
