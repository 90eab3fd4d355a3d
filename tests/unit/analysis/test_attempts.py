"""Attempts as decisions of the log have them, and verdicts as messages of schedulers have them."""

import json
import random
import re

import pytest

from app.analysis import attempts
from app.analysis.explain import attempts as explained
from app.analysis.incidents.incident import IncidentVariant
from app.bootstrap.gallery import incident_files, playing
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.resources import pod_key
from app.domain.log import DECISION, Actor, Event, EventType, Revision, Stamp
from app.domain.values.timestamps import SECOND, Instant, parse
from app.web.frame import Frame
from app.web.links import Links
from app.web.pages import attempts as attempts_page
from tests.cluster import Cluster
from tests.together import together

REASONS = (
    "Insufficient cpu", "cannot allocate all claims", "node(s) had untolerated taint(s)",
    "node(s) didn't match Pod's node affinity/selector", "Too many pods", "Insufficient memory",
)  # fmt: skip
ENDS = (
    "", ".", ". preemption: 0/9 nodes are available: 9 Preemption is not helpful for scheduling.",
    ". no new claims to deallocate, preemption: 0/9 nodes are available: 9 No preemption victims.",
    ". still not schedulable, preemption: 0/2 nodes are available: 2 Preemption is not helpful.",
)  # fmt: skip


@together(range(40), str)
def test_verdicts_count_every_node_of_a_message(seed):
    chance = random.Random(seed)
    reasons = chance.sample(REASONS, chance.randint(1, 4))
    counted = [(text, chance.randint(1, 500)) for text in reasons]
    total = sum(nodes for _, nodes in counted)
    listed = ", ".join(f"{nodes} {text}" for text, nodes in counted)
    prefix = chance.choice(("", "Unschedulable: "))
    message = f"{prefix}0/{total} nodes are available: {listed}{chance.choice(ENDS)}"
    assert [(one.text, one.nodes) for one in attempts.verdicts_of(message)] == counted


@pytest.mark.parametrize("message", ["", "no nodes", "resource claim a/b is missing", "0/0 x"])
def test_message_without_counts_has_no_verdicts(message):
    assert attempts.verdicts_of(message) == ()


def test_attempts_tell_what_decisions_of_the_scheduler_say():
    incident = incident_files.read("no-preemption-for-devices").incident
    events = playing.play(incident, IncidentVariant.BROKEN).events
    by_revision = {event.revision: event for event in events}
    decisions = [
        event
        for event in events
        if event.type is EventType.DECISION_RECORDED
        and event.object["controller"] == "scheduling"
        and event.object["name"] == "urgent"
    ]
    assert decisions
    tried = explained.of_decisions(decisions)
    causes = {number: by_revision[number] for number in explained.causes_of(tried)}
    made = attempts.of_attempts(tried, causes)
    for event, one in zip(decisions, made, strict=True):
        body = event.object
        assert (one.revision, one.outcome) == (event.revision, body["outcome"])
        assert one.number == body["inputs"]["attempt"]
        said = {verdict.text: verdict.nodes for verdict in one.verdicts}
        assert said == body["summary"].get("reasons", {})
        assert one.trigger.revision == body["cause"]
        assert one.trigger.key == by_revision[body["cause"]].key
        if one.outcome == "Unschedulable":
            # Twice as long each time, at most 10 s; the second in which it ends belongs to it.
            end = event.stamp.time + min(10, 2 ** (one.number - 1)) * SECOND
            assert parse(one.again) == (end // SECOND + 1) * SECOND
        else:
            assert one.again == ""


def test_each_pod_is_woken_by_its_own_event():
    """Both pods are tried in one step, whose stamp names the first of them."""
    cluster = Cluster()
    cluster.device_class()
    for name in ("p", "q"):
        cluster.claim(f"of-{name}")
        cluster.pod(name, claim=f"of-{name}")
    cluster.settle()
    events = cluster.line.events
    by_revision = {event.revision: event for event in events}
    first = {}
    for event in events:
        if event.type is EventType.DECISION_RECORDED and event.object["controller"] == "scheduling":
            (cause,) = explained.causes_of(explained.of_decisions([event]))
            first.setdefault(event.object["name"], by_revision[cause].key.name)
    assert first == {"p": "p", "q": "q"}


def test_wait_is_no_promise_while_the_active_queue_is_empty():
    """A pod in its back-off is tried as soon as no other one is to be (controllers.md 4.1)."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.wait(0.1)
    cluster.slice()
    cluster.wait(0.1)
    tried = explained.of_decisions(scheduled(cluster))
    refused, placed = attempts.of_attempts(tried, {})
    assert (refused.outcome, placed.outcome) == ("Unschedulable", "Scheduled")
    assert placed.time < refused.again
    (told,) = explained.reasons(tried[:1], {}, tried[0].begun.stamp.time)
    assert any("only if no other pod is to be tried" in line.text for line in told.children)


def scheduled(cluster):
    """The scheduler's decisions, the first one first."""
    return [
        event
        for event in cluster.line.events
        if event.type is EventType.DECISION_RECORDED and event.object["controller"] == "scheduling"
    ]


def test_failed_binding_belongs_to_the_attempt_that_chose_the_node():
    """It waits for its device, fails, gives the claim back, and waits again: three attempts."""
    cluster = Cluster(options=ControllerOptions(binding_timeout=30 * SECOND))
    cluster.device_class()
    cluster.node()
    cluster.slice(
        devices=[{"name": "d", "bindingConditions": ["r"], "bindingFailureConditions": ["f"]}]
    )
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle()
    cluster.wait(40)
    decisions = scheduled(cluster)
    outcomes = [event.object["outcome"] for event in decisions]
    assert outcomes == ["WaitingForBinding", "Error", "Unschedulable", "WaitingForBinding"]
    tried = explained.of_decisions(decisions)
    first, second, third = made = attempts.of_attempts(tried, {})
    assert [one.number for one in made] == [1, 2, 3]
    assert [one.outcome for one in made] == ["Error", "Unschedulable", "WaitingForBinding"]
    assert [step.revision for step in first.binding] == [decisions[1].revision]
    assert "binding timeout" in first.message
    # The back-off begins with the end of the binding, and counts errors by themselves.
    for one, event in ((first, decisions[1]), (second, decisions[2])):
        assert parse(one.again) == (event.stamp.time + SECOND) // SECOND * SECOND + SECOND
    assert third.again == ""
    # The second one came with the end of the back-off, the third with the claim's release.
    by_revision = {event.revision: event for event in cluster.line.events}
    woken = attempts.of_attempts(tried, by_revision)
    assert [one.trigger and one.trigger.resource for one in woken] == [
        "pods", None, "resourceclaims"
    ]  # fmt: skip
    assert [one.is_woken for one in woken] == [True, False, True]
    assert (first.ended, second.ended) == (first.binding[0].time, second.time)
    assert [one.has_node for one in made] == [False, False, True]
    answer = attempts.AttemptList(
        history="h", revision=99, namespace="default", name="pod", created=first.time,
        is_decided=True, items=tuple(made),
    )  # fmt: skip
    frame = Frame(links=Links(history="h"), part="attempts", time=decisions[-1].stamp.time)
    page = attempts_page.page(frame, answer, pod_key("default", "pod")).decode()
    waits = re.findall(r"(\d[^<]*? s), to ", page)
    assert waits == [
        f"{(parse(one.again) - parse(one.ended)) / SECOND:.2f} s" for one in (first, second)
    ]
    (told,) = explained.reasons(tried, {}, decisions[-1].stamp.time)
    assert told.text.startswith("3 attempts are recorded over")
    (short,) = explained.reasons([tried[0], tried[0]], {}, decisions[-1].stamp.time)
    assert short.text.startswith("2 attempts are recorded within a second")
    numbered = [line.text.split(" at ")[0] for line in told.children]
    assert numbered == ["attempt 3", "attempt 2", "attempt 1"]
    assert told.children[-1].children[-1].text.startswith("its binding at ")
    (waited,) = told.children[1].children
    assert waited.text == "no event woke it: its wait after attempt 1 was over"


def decided(revision, outcome, cause, plugins=(), attempt=1):
    body = {
        "controller": "scheduling", "outcome": outcome, "cause": cause,
        "inputs": {"attempt": attempt, "plugins": list(plugins)},
    }  # fmt: skip
    return Event(
        revision=Revision(revision), type=EventType.DECISION_RECORDED, key=DECISION, uid="u",
        body=json.dumps(body).encode(),
        stamp=Stamp(time=Instant(revision * SECOND), actor=Actor(user="s"), verb="", cause=cause),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "plugins", "cause", "is_woken"),
    [
        # The write of the first attempt was refused: what was written last is no reason.
        ("Error", (), 8, False),
        ("Error", (), 3, False),
        ("Unschedulable", (), 8, False),
        ("Unschedulable", ("NodeResourcesFit",), 8, True),
        ("Unschedulable", ("NodeResourcesFit",), 3, False),
    ],
)
def test_attempt_after_an_error_was_woken_by_no_event(outcome, plugins, cause, is_woken):
    decisions = [decided(4, outcome, 3, plugins), decided(9, outcome, cause, plugins, attempt=2)]
    first, second = explained.of_decisions(decisions)
    assert (first.is_woken, first.cause) == (True, 3)
    assert (second.is_woken, second.cause) == (is_woken, cause if is_woken else 0)
