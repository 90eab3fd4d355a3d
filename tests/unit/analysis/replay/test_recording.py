"""What a recording notes of its events besides traces; the rows are read from the raw objects."""

import pytest

from app.analysis.replay.authors import SCHEDULER, UNNAMED
from app.analysis.replay.recording import Recording, ReportTime
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.writers import DECIDED, Writers
from app.analysis.views import LiveViews
from app.bootstrap.rules import rules_for
from app.domain.controllers import registry
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.event import Origin
from app.domain.objects.profile import Profile
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant
from tests.cluster import USER, Cluster

FINISHED = {"status": {"phase": "Failed"}}


def story() -> Cluster:
    """Two pods without a place, one of which gets one, is evicted, and whose node is tainted."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.slice(devices=1)
    cluster.template()
    cluster.create("scheduling.k8s.io/v1", "PriorityClass", "high", value=7)
    cluster.pod("runs", template="gpu", priorityClassName="high")
    cluster.settle()
    for name in ("waits", "late"):
        cluster.pod(name, template="gpu", schedulerName="default-scheduler")
        cluster.wait(1)
    cluster.wait(400)
    cluster.rule("rule")
    cluster.wait(5)
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    cluster.patch("nodes", "n1", {"metadata": {"labels": {"own": "label"}}})
    cluster.wait(5)
    cluster.patch("pods", "waits", FINISHED, subresource="status")
    cluster.kill("late")
    cluster.delete("devicetaintrules", "rule")
    cluster.wait(5)
    return cluster


def recording_of(cluster: Cluster) -> Recording:
    views = LiveViews(cluster.profile)
    schemas = rules_for(cluster.profile).schemas
    recording = Recording(Writers(registry.NAMES), views, {}, Lacks(()), schemas)
    for event in cluster.line.events:
        recording.take(event, event.stamp.time)
    return recording


def test_recording_notes_what_runs_need_of_its_events() -> None:
    cluster = story()
    recording = recording_of(cluster)
    events = cluster.line.events
    reported: dict[tuple[str, str], list[ReportTime]] = {}
    repeated: dict[tuple[str, int], list[int]] = {}
    written: dict[str, tuple[str, int]] = {}
    marked: set[str] = set()
    for event in events:
        if event.key.resource != "events":
            continue
        tree, user = event.object, event.stamp.actor.user
        uid = (tree.get("involvedObject") or tree.get("regarding"))["uid"]
        if user == SCHEDULER and event.type is EventType.OBJECT_CREATED:
            report = ReportTime(at=event.stamp.time, is_after_marking=uid in marked)
            reported.setdefault((uid, tree["reason"]), []).append(report)
            written[event.uid] = (uid, sum(each[0] == uid for each in written.values()))
        elif user == SCHEDULER:
            repeated.setdefault(written[event.uid], []).append(event.stamp.time)
        elif "Marking for deletion" in (tree.get("message") or tree.get("note") or ""):
            marked.add(uid)
    assert {reason for _, reason in reported} == {"FailedScheduling", "Scheduled"}
    assert marked
    assert (recording.reported, recording.repeated) == (reported, repeated)
    pods = [event for event in events if event.key.resource == "pods"]
    assert recording.ranks == {
        event.uid: (event.object["spec"]["schedulerName"], event.object["spec"].get("priority", 0))
        for event in pods
    }
    assert sorted(priority for _, priority in recording.ranks.values()) == [0, 0, 7]
    assert recording.removed == {
        event.uid: event.stamp.time for event in events if event.type is EventType.OBJECT_DELETED
    }
    (evicted,) = recording.evicted
    first = next(
        event.stamp.time
        for event in pods
        if any(
            each.get("reason") == "DeletionByDeviceTaintManager"
            for each in event.object.get("status", {}).get("conditions", ())
        )
    )
    assert (evicted in marked, recording.evicted[evicted]) == (True, first)
    own = {event.uid for event in events if event.stamp.actor == USER}
    assert recording.users == {
        uid: {USER.user}
        for uid in own
        if any(event.uid == uid and event.key.resource != "events" for event in events)
    }
    assert recording.written_by == {}, "each controller writes under its own name"
    assert {key.name for key in recording.returned} == set()
    assert recording.node_reasons == {"n1": node_reasons(events)}


def node_reasons(events: list[Event]) -> list[int]:
    """When the node was made and cordoned; neither its taint nor its own label is a reason."""
    instants, before = [], None
    for event in events:
        if event.key.resource != "nodes":
            continue
        now = event.object.get("spec", {}).get("unschedulable", False)
        if before is None or now != before:
            instants.append(event.stamp.time)
        before = now
    return instants


@pytest.mark.parametrize(
    ("phase", "node", "user", "uid", "is_by_anyone"),
    [
        ("Failed", "gone", UNNAMED, "u", True),
        ("Succeeded", "gone", UNNAMED, "u", True),
        ("Running", "gone", UNNAMED, "u", False),
        ("Failed", "n1", UNNAMED, "u", False),
        ("Failed", "gone", "alice", "u", False),
        ("Failed", "gone", UNNAMED, "another", False),
    ],
    ids=["failed", "succeeded", "runs", "on a node", "by a user", "last seen under this name"],
)
def test_removal_of_an_ended_pod_without_a_node_may_be_by_anyone(
    phase: str, node: str, user: str, uid: str, is_by_anyone: bool
) -> None:
    """Its writer is left open then; other writes from outside are not traced."""
    schemas = rules_for(Profile()).schemas
    recording = Recording(Writers(DECIDED), LiveViews(Profile()), {}, Lacks(()), schemas)
    made = {
        "apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": node}, "status": {"phase": phase},
    }  # fmt: skip
    writes = [
        (ObjectKey(*api_resources.NODES, "", "n1"), "n", {"kind": "Node"}, "alice"),
        (ObjectKey(*api_resources.PODS, "ns", "p"), uid, made, "alice"),
        (ObjectKey(*api_resources.PODS, "ns", "p"), "u", made, user),
    ]
    for number, (key, of, tree, writer) in enumerate(writes, 1):
        is_last = number == len(writes)
        stamp = Stamp(
            time=Instant(number),
            actor=Actor(user=writer),
            verb="delete" if is_last else "create",
            origin=Origin(source="watch"),
        )
        metadata = {"namespace": key.namespace, "name": key.name, "uid": of}
        event = Event(
            revision=Revision(number),
            type=EventType.OBJECT_DELETED if is_last else EventType.OBJECT_CREATED,
            key=key,
            uid=of,
            body=canonical_json({**tree, "metadata": metadata}),
            stamp=stamp,
        )
        recording.take(event, Instant(number))
    recording.finish()
    *_, removal = recording.inputs
    assert removal.event.type is EventType.OBJECT_DELETED
    assert removal.traced_as == ("" if is_by_anyone else None)
    assert removal.may_have_come_to_pass is is_by_anyone
    assert [step.writer for step in recording.trace.writes.get("u", ())] == [""] * is_by_anyone
    assert all(each.traced_as is None for each in recording.inputs[:-1])
