"""What recorded decisions say of attempts, and what a controller had seen when it wrote."""

import random

import pytest

from app.analysis.replay.acts import (
    Act,
    DecidedAttempt,
    Observations,
    decided_attempts,
    keys_of,
    refusal_of,
    report_of,
    version_of,
)
from app.domain.controllers.garbage import namespaces, pod_gc
from app.domain.controllers.nodes import readiness
from app.domain.controllers.scheduling import planning, repeated_attempts
from app.domain.log import DECISION, Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.event import Origin
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import SECOND, Instant
from tests import draws

NOW = Instant(9)
POD = ObjectKey("", "pods", "ns", "p")


def decision(body: dict, *, user: str = "scheduler", at: int = 1, observed: int = 0) -> Event:
    stamp = Stamp(time=Instant(at), actor=Actor(user=user), verb="", observed=Revision(observed))
    return Event(
        revision=Revision(1),
        type=EventType.DECISION_RECORDED,
        key=DECISION,
        uid=Uid(""),
        body=canonical_json(body),
        stamp=stamp,
    )


def one(outcome: str, message: str = "", controller: str = planning.NAME) -> dict:
    return {
        "controller": controller,
        "outcome": outcome,
        "inputs": {"uid": "p"},
        "summary": {"message": message},
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (one("Scheduled"), [("p", True, "")]),
        (one("Unschedulable", "0/1 nodes"), [("p", False, "0/1 nodes")]),
        (one("Error", "no answer"), [("p", False, "no answer")]),
        (one("Unschedulable", "x" * 2000), [("p", False, "x" * 1020 + " ...")]),
        (one("Skipped"), []),
        (one("Unschedulable", "0/1 nodes", controller="claims"), []),
    ],
)
def test_decision_of_the_scheduler_is_one_attempt_unless_it_skips_the_pod(
    body: dict, expected: list
) -> None:
    """A report has no more than 1,024 characters: a longer message ends with three dots."""
    made = list(decided_attempts(decision(body), NOW))
    assert made == [
        (uid, DecidedAttempt(at=NOW, is_placed=placed, message=message))
        for uid, placed, message in expected
    ]


def test_attempts_that_wrote_nothing_are_one_decision_and_failed_without_a_message() -> None:
    attempts = [
        repeated_attempts.RepeatedAttempt(
            namespace="ns",
            name=name,
            uid=Uid(name),
            outcome="Unschedulable",
            plugins=(),
            start=0,
            assumed=0,
            number=number,
        )
        for number, name in enumerate("pq", 2)
    ]
    plan = repeated_attempts.plan_of(attempts, now=NOW, following=0, cause=0, observed=Revision(1))
    recorded = plan.decision
    assert recorded is not None
    body = {
        "controller": planning.NAME,
        "outcome": recorded.outcome,
        "inputs": recorded.inputs,
        "summary": recorded.summary,
    }
    assert list(decided_attempts(decision(body), NOW)) == [
        (name, DecidedAttempt(at=NOW, is_placed=False)) for name in "pq"
    ]


def write(user: str, at: int, observed: int) -> Event:
    stamp = Stamp(time=Instant(at), actor=Actor(user=user), verb="", observed=Revision(observed))
    return Event(
        revision=Revision(1),
        type=EventType.OBJECT_UPDATED,
        key=POD,
        uid=Uid("p"),
        body=b"{}",
        stamp=stamp,
    )


FIRST = 5
"""The revision of the first event that is read."""


@pytest.mark.parametrize("seed", draws.seeds(10))
def test_last_instant_that_a_writer_saw_is_that_before_the_first_event_that_it_did_not_see(
    seed: int,
) -> None:
    """A plan is a decision, which names its controller, and the writes behind it.

    Its writer had seen all events up to `observed`, and its own plans of the same state.
    """
    draw = random.Random(seed)
    plans: list[tuple[tuple[str, str, int], int, Event, int]] = []
    while len(plans) < 30:
        last = FIRST + len(plans) - 1
        controller, user = draw.choice((("a", "manager"), ("b", "manager"), ("c", "scheduler")))
        seen = (0, FIRST - 2, max(FIRST - 1, last - draw.randrange(5)))
        # Controllers of one manager often decide on the same state.
        observed = plans[-1][3] if plans and draw.random() < 0.5 else draw.choice(seen)
        at, plan = 10 + len(plans), (user, controller, observed)
        body = {"controller": controller}
        plans.append((plan, at, decision(body, user=user, at=at, observed=observed), observed))
        for _ in range(draw.randrange(3)):
            plans.append((plan, at, write(user, at, observed), observed))
    observations = Observations()
    for number, (plan, _, event, observed) in enumerate(plans):
        event.revision = Revision(FIRST + number)
        observations.add(event, Instant(100 + number))
        unseen = [
            100 + place
            for place, (other, *_) in enumerate(plans[: number + 1])
            if FIRST + place > observed and other != plan
        ]
        expected = 100 + number if not unseen else unseen[0] - 1
        is_named = observed >= FIRST - 1
        assert observations.last_seen() == (expected if is_named else None)


NODE = ObjectKey("", "nodes", "", "n")
SAID = ObjectKey("", "events", "default", "n.1")
RULE = ObjectKey("resource.k8s.io", "devicetaintrules", "", "r")
ABOUT_NODE = {"involvedObject": {"kind": "Node", "name": "n", "uid": "n"}}
ABOUT_POD = {"involvedObject": {"kind": "Pod", "namespace": "ns", "name": "p", "uid": "p"}}
TAINTED = {"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}}
LABELLED = {"metadata": {"labels": {"a": "b"}}}
CANCELLED = {**ABOUT_POD, "reason": "DeviceTaintManagerEviction", "message": "Cancelling deletion"}
EVICTED = {**ABOUT_POD, "reason": "DeviceTaintManagerEviction", "message": "Marking for deletion"}
OF_PLACE = ("namespaces", ("ns",))


@pytest.mark.parametrize(
    ("roles", "key", "before", "after", "seen", "expected"),
    [
        (["namespaces"], POD, {}, {}, None, [OF_PLACE, (namespaces.CONTENT, ("ns", "", "pods"))]),
        (
            ["namespaces"],
            ObjectKey("", "namespaces", "", "ns"),
            {},
            {},
            None,
            [OF_PLACE, (namespaces.END, ("ns",))],
        ),
        ([readiness.NAME], NODE, {}, TAINTED, None, [(readiness.TAINTS, ("n",))]),
        ([readiness.NAME], NODE, TAINTED, {}, None, [(readiness.TAINTS, ("n",))]),
        ([readiness.NAME], NODE, TAINTED, TAINTED, None, []),
        ([readiness.NAME], NODE, {}, LABELLED, None, [(readiness.LABELS, ("n",))]),
        (
            [readiness.NAME],
            NODE,
            TAINTED,
            LABELLED,
            None,
            [(readiness.TAINTS, ("n",)), (readiness.LABELS, ("n",))],
        ),
        ([readiness.NAME], NODE, None, {**TAINTED, **LABELLED}, None, []),
        ([readiness.NAME], POD, {}, {**TAINTED, **LABELLED}, None, []),
        ([readiness.NAME], SAID, None, ABOUT_NODE, 8, [(readiness.SAID, ("n",))]),
        ([readiness.NAME], SAID, None, ABOUT_NODE, None, []),
        (
            [pod_gc.NAME],
            POD,
            {},
            {},
            None,
            [(pod_gc.NAME, (reason, "ns", "p", "uid")) for reason in pod_gc.REASONS],
        ),
        (["eviction"], POD, {}, {}, None, [("eviction", ("ns", "p", "uid"))]),
        (["rule-status"], RULE, {}, {}, None, [("rule-status", ("r", "uid"))]),
        (["eviction", "rule-status"], RULE, {}, {}, None, [("rule-status", ("r", "uid"))]),
        (["eviction"], SAID, None, CANCELLED, None, [("eviction/cancelled", ("ns", "p", "p"))]),
        (["eviction"], SAID, None, EVICTED, None, []),
        (["eviction"], NODE, {}, TAINTED, None, []),
        (["claims"], POD, {}, {}, None, []),
        ([], POD, {}, {}, None, []),
    ],
)
def test_act_shows_a_controller_at_work_on_a_key(
    roles: list, key: ObjectKey, before: dict | None, after: dict, seen: int | None, expected: list
) -> None:
    event = Event(
        revision=Revision(1),
        type=EventType.OBJECT_CREATED if before is None else EventType.OBJECT_UPDATED,
        key=key,
        uid=Uid("uid"),
        body=canonical_json(after),
        stamp=Stamp(time=NOW, actor=Actor(user="manager"), verb=""),
    )
    act = Act(
        event=event,
        before=before,
        known=NOW,
        user="manager",
        is_guessed=False,
        seen=None if seen is None else Instant(seen),
    )
    assert list(keys_of(act, roles)) == expected


EVENT = ObjectKey("", "events", "ns", "e")
AT, LATER = "1970-01-01T00:00:05Z", "1970-01-01T00:00:07Z"


def stored(
    tree: dict,
    *,
    known: int = 9,
    asked: int = 0,
    answered: int = 0,
    seen: int | None = None,
    type_: EventType = EventType.OBJECT_CREATED,
    version: str = "",
    origin: bool = True,
) -> Act:
    """A write with the seconds of its request, of its answer, and of what its writer had seen."""
    asked, answered, known = (each * SECOND for each in (asked, answered, known))
    recorded = Origin(source="x", asked=asked, answered=answered, resource_version=version)
    stamp = Stamp(
        time=Instant(known),
        actor=Actor(user="u"),
        verb="create",
        origin=recorded if origin else None,
    )
    event = Event(
        revision=Revision(1), type=type_, key=EVENT, uid="e", body=canonical_json(tree), stamp=stamp
    )
    last = None if seen is None else Instant(seen * SECOND)
    return Act(
        event=event, before=None, known=Instant(known), user="u", is_guessed=False, seen=last
    )


def said(**parts: object) -> dict:
    about = {"kind": "Pod", "namespace": "ns", "name": "p", "uid": "u-p", "resourceVersion": "7"}
    return {"reason": "FailedScheduling", "involvedObject": about, "message": "no node", **parts}


SERIES = {"count": 2, "lastObservedTime": LATER}


@pytest.mark.parametrize(
    ("act", "second", "note"),
    [
        pytest.param(stored(said(eventTime=AT)), 5, "no node", id="at its time"),
        pytest.param(stored(said(eventTime=AT), known=3), 3, "no node", id="no later than known"),
        pytest.param(stored(said()), 9, "no node", id="without a time"),
        pytest.param(stored(said(), asked=8), 8, "no node", id="without a time, when it was sent"),
        pytest.param(stored(said(eventTime="soon")), 9, "no node", id="with no time at all"),
        pytest.param(
            stored(said(eventTime=AT, series=SERIES)), 7, "no node", id="last of a series"
        ),
        pytest.param(
            stored(said(eventTime=AT, series=SERIES), type_=EventType.OBJECT_UPDATED),
            7,
            "",
            id="repeated, with the note of the first",
        ),
        pytest.param(stored(said(eventTime=AT), seen=4), 4, "no node", id="when it was decided"),
    ],
)
def test_event_of_a_failed_attempt_has_its_instant(act: Act, second: int, note: str) -> None:
    found = report_of(act)
    assert found is not None
    assert (found.pod, found.instant, found.note) == ("u-p", second * SECOND, note)
    assert found.version == "7"


def test_other_events_report_no_failed_attempt() -> None:
    for reason in ("Scheduled", "Preempted", ""):
        assert report_of(stored(said(reason=reason, eventTime=AT))) is None


@pytest.mark.parametrize(
    ("act", "requested", "answered", "begun"),
    [
        (stored({}), 9, 9, 9),
        (stored({}, origin=False), 9, 9, 9),
        (stored({}, asked=8, answered=11), 8, 11, 9),
        (stored({}, asked=10, answered=8), 9, 9, 9),
        (stored({}, asked=8, seen=4), 4, 9, 4),
        (stored({}, seen=12), 9, 9, 9),
    ],
)
def test_act_was_requested_by_when_others_saw_it_and_answered_no_earlier(
    act: Act, requested: int, answered: int, begun: int
) -> None:
    found = act.requested, act.answered, act.begun
    assert found == tuple(each * SECOND for each in (requested, answered, begun))


@pytest.mark.parametrize(
    ("version", "number"), [("", 0), ("12", 12), ("0", 0), ("1a", 0), ("-3", 0), ("٣", 0)]
)
def test_version_is_a_number_or_there_is_none_to_compare(version: str, number: int) -> None:
    assert version_of(stored({}, version=version).event) == number
    assert version_of(stored({}, version=version, origin=False).event) == 0


def scheduled(*conditions: tuple[str, str, str]) -> dict:
    return {
        "status": {
            "conditions": [
                {"type": type_, "status": status, "message": message}
                for type_, status, message in conditions
            ]
        }
    }


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (scheduled(), None),
        (scheduled(("PodScheduled", "False", "no node")), "no node"),
        (scheduled(("PodScheduled", "False", "")), ""),
        (scheduled(("PodScheduled", "True", "no node")), None),
        (scheduled(("Ready", "False", "no node")), None),
        (scheduled(("Ready", "False", "x"), ("PodScheduled", "False", "no node")), "no node"),
    ],
)
def test_refusal_is_the_message_of_the_condition(pod: dict, message: str | None) -> None:
    assert refusal_of(pod) == message
