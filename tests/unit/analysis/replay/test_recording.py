"""What a recording notes of its events besides traces; the rows are read from the raw objects."""

from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.recording import Recording, ReportTime
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.writers import Writers
from app.analysis.views import LiveViews
from app.bootstrap.rules import rules_for
from app.domain.controllers import registry
from app.domain.log import Event, EventType
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
