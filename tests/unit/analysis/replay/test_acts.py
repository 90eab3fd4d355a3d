"""What recorded decisions say of attempts, and what a controller had seen when it wrote."""

import random

import pytest

from app.analysis.replay.acts import (
    Act,
    DecidedAttempt,
    Observations,
    decided_attempts,
    keys_of,
)
from app.domain.controllers.garbage import namespaces, pod_gc
from app.domain.controllers.nodes import readiness
from app.domain.controllers.scheduling import planning, repeated_attempts
from app.domain.log import DECISION, Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant
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
