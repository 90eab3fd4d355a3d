"""When a placement was decided and what refused pods were told, from a scheduler's writes alone."""

import random

import pytest
from msgspec import structs

from app.analysis.diff.classes import messages_of
from app.analysis.diff.courses import Courses
from app.analysis.diff.sides import Side
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision
from app.domain.log.event import Stamp
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import Cluster

PODS = 8


def courses(events: list[Event], common: int = 0) -> Courses:
    return Courses(
        Side(
            name="a",
            profile=Profile(),
            options=ControllerOptions(),
            events=events,
            revision=events[-1].revision,
            common=Revision(common),
        )
    )


def crowd(seed: int) -> list[Event]:
    """Pods that come together: some share a claim, some wait until others have ended."""
    drawn = random.Random(seed)
    cluster = Cluster(seed=seed)
    cluster.device_class()
    cluster.template()
    for node in ("n1", "n2"):
        cluster.node(node)
        cluster.slice(node)
    cluster.claim("shared")
    for number in range(PODS):
        cluster.pod(f"p{number}", **drawn.choice(({"claim": "shared"}, {"template": "gpu"}, {})))
    cluster.settle()
    for number in drawn.sample(range(PODS), PODS // 2):
        cluster.finish(f"p{number}")
        cluster.settle()
    cluster.wait(400)
    return cluster.line.events


@pytest.mark.parametrize("seed", range(4))
def test_writes_alone_show_what_was_there_when_a_placement_was_decided(seed):
    """The judge is the decision, which is in the log before its writes."""
    events = crowd(seed)
    writes = [event for event in events if event.type is not EventType.DECISION_RECORDED]
    with_decisions, without = courses(events), courses(writes)
    placed = {uid: course.placed for uid, course in with_decisions.by_uid.items() if course.placed}
    assert len(placed) > PODS // 2
    for uid, placement in placed.items():
        shown = without.by_uid[uid].placed
        between = range(placement.decided + 1, shown.decided + 1)
        assert [event.key for event in writes if event.revision in between] == []
        assert shown.decided >= placement.decided


def waiting() -> list[Event]:
    """A pod that is refused with three messages, and then deleted."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.node("n2")
    cluster.pod("p", requests={"cpu": "64"})
    cluster.settle()
    for name in ("n1", "n2"):
        cluster.patch("nodes", name, {"spec": {"unschedulable": True}})
        cluster.wait(400)
    cluster.kill("p")
    cluster.settle()
    return cluster.line.events


@pytest.mark.parametrize("lost", range(4))
def test_message_that_came_too_late_for_a_pod_was_not_said(lost):
    """The pod is gone before the last messages are written. The judge is the log of writes."""
    events = waiting()
    updates = [
        event
        for event in events
        if event.key[:2] == ("", "pods")
        and event.type is EventType.OBJECT_UPDATED
        and "deletionTimestamp" not in event.object["metadata"]
    ]
    assert len(updates) == 3
    late = updates[len(updates) - lost :]
    last = {"conditions": updates[-lost - 1].object["status"]["conditions"]} if lost < 3 else {}
    log = [
        structs.replace(event, tree=event.object | {"status": last})
        if event.key[:2] == ("", "pods") and "deletionTimestamp" in event.object["metadata"]
        else event
        for event in events
        if event not in late
    ]
    alone = [event for event in log if event.type is not EventType.DECISION_RECORDED]
    (course,) = courses(log).by_uid.values()
    (shown,) = courses(alone).by_uid.values()
    assert messages_of(course.refusals) == messages_of(shown.refusals)
    assert len(messages_of(shown.refusals)) == 3 - lost
    if not lost:
        # The attempts that said the same again have no write, and are kept.
        tried = [event for event in log if event.type is EventType.DECISION_RECORDED]
        outcomes = [event.object["outcome"] for event in tried]
        assert len(course.refusals) == outcomes.count("Unschedulable") > 3


def condition(message: str) -> JsonObject:
    time = "2026-01-02T03:00:00Z"
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": time,
    }


def pod(node: str = "", named: str = "", said: str = "", *, is_evicted: bool = False) -> JsonObject:
    """A pod, bound to a node or nominated for one, with the message of a refusal."""
    conditions = [condition(said)] if said else []
    if is_evicted:
        conditions += [
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        ]
    return {
        "metadata": {},
        "spec": {"nodeName": node} if node else {},
        "status": {"nominatedNodeName": named, "conditions": conditions},
    }


def events(*writes: tuple[str, JsonObject | None]) -> list[Event]:
    """One event for each write of a named pod, at the revisions from 1 on; None is its deletion."""
    made = []
    latest: dict[str, JsonObject] = {}
    for number, (name, tree) in enumerate(writes, 1):
        is_new, is_gone = name not in latest, tree is None
        latest[name] = latest[name] if tree is None else tree
        kind = EventType.OBJECT_CREATED if is_new else EventType.OBJECT_UPDATED
        made.append(
            Event(
                revision=Revision(number),
                type=EventType.OBJECT_DELETED if is_gone else kind,
                key=ObjectKey("", "pods", "default", name),
                uid=name,
                body=b"",
                stamp=Stamp(time=Instant(number * SECOND), actor=Actor(user="x"), verb="update"),
                tree=latest[name],
            )
        )
    return made


NEW, NAMED, BOUND = ("p", pod()), ("p", pod(named="n1")), ("p", pod("n1"))
VICTIM, EVICTED = ("v", pod("n1")), ("v", pod("n1", is_evicted=True))
REFUSED, OTHER = ("p", pod(named="n1", said="no")), ("p", pod(named="n2"))


@pytest.mark.parametrize(
    ("writes", "decided"),
    [
        pytest.param([NEW, NAMED, VICTIM, BOUND], 1, id="nominated"),
        pytest.param([NEW, VICTIM, BOUND], 2, id="never nominated"),
        pytest.param([NEW, VICTIM, ("p", pod("n1", "n1"))], 2, id="nominated with the binding"),
        pytest.param([NAMED, VICTIM, BOUND], 2, id="nominated before the log began"),
        pytest.param([NEW, OTHER, VICTIM, BOUND], 3, id="nominated for another node"),
        pytest.param([NEW, OTHER, NAMED, VICTIM, BOUND], 4, id="exchanged"),
        pytest.param([NEW, REFUSED, VICTIM, BOUND], 3, id="nominated by a refusal"),
        pytest.param([NEW, NAMED, REFUSED, VICTIM, BOUND], 4, id="refused after it"),
        pytest.param([NEW, NAMED, REFUSED, NEW, NAMED, BOUND], 4, id="nominated again after it"),
        pytest.param([VICTIM, NEW, EVICTED, NAMED, ("v", None), BOUND], 5, id="after an eviction"),
        pytest.param([VICTIM, NEW, NAMED, EVICTED, ("v", None), BOUND], 5, id="with an eviction"),
        pytest.param([VICTIM, NEW, EVICTED, NAMED, BOUND], 4, id="before the evicted pod ends"),
        pytest.param([VICTIM, EVICTED, ("v", None), NEW, NAMED, BOUND], 4, id="long after one"),
    ],
)
def test_placement_begins_with_its_nomination(writes, decided):
    assert courses(events(*writes)).by_uid["p"].placed.decided == decided


def test_nomination_of_the_common_past_begins_no_placement():
    log = events(NEW, NAMED, VICTIM, BOUND)
    assert courses(log, common=2).by_uid["p"].placed.decided == 3
