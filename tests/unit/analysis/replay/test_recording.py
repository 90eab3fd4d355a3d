"""What a recording notes of its events besides traces; the rows are read from the raw objects."""

import pytest
from msgspec.structs import replace

from app.analysis.replay.authors import CLAIMS, COLLECTOR, SCHEDULER, UNNAMED
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


SAID = ObjectKey("", "events", "ns", "e")
POD_KEY = ObjectKey(*api_resources.PODS, "ns", "p")
CLAIM_KEY = ObjectKey(*api_resources.RESOURCE_CLAIMS, "ns", "c")
GIVEN = {"status": {"allocation": {"devices": {"results": []}}}}
BOUND = {"spec": {"nodeName": "n"}}


def line(
    key: ObjectKey,
    tree: dict[str, object] | None = None,
    *,
    type_: EventType = EventType.OBJECT_CREATED,
    user: str = "alice",
    verb: str = "create",
    losses: tuple[str, ...] = (),
) -> Event:
    metadata = {"namespace": key.namespace, "name": key.name, "uid": key.name}
    return Event(
        revision=Revision(1),
        type=type_,
        key=key,
        uid=key.name,
        body=canonical_json({**(tree or {}), "metadata": metadata}),
        stamp=Stamp(
            time=Instant(1),
            actor=Actor(user=user),
            verb=verb,
            origin=Origin(source="watch", losses=losses),
        ),
    )


def empty() -> Recording:
    schemas = rules_for(Profile()).schemas
    return Recording(Writers(DECIDED), LiveViews(Profile()), {}, Lacks(()), schemas)


def taken(*lines: Event) -> Recording:
    recording = empty()
    for number, each in enumerate(lines, 1):
        recording.take(each, Instant(number))
    recording.finish()
    return recording


UPDATED = EventType.OBJECT_UPDATED
GAP = EventType.GAP_OBSERVED


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([line(POD_KEY), line(POD_KEY, BOUND, type_=UPDATED)],
         {"a binding by alice, taken as recorded": 1}),
        ([line(POD_KEY), line(POD_KEY, BOUND, type_=UPDATED, user=UNNAMED)], {}),
        ([line(POD_KEY), line(POD_KEY, BOUND, type_=UPDATED, user=SCHEDULER)], {}),
        ([line(POD_KEY, BOUND)], {}),
        ([line(POD_KEY, BOUND), line(POD_KEY, BOUND, type_=UPDATED)], {}),
        ([line(CLAIM_KEY), line(CLAIM_KEY, GIVEN, type_=UPDATED)],
         {"an allocation by alice, taken as recorded": 1}),
        ([line(CLAIM_KEY, GIVEN)], {}),
        ([line(POD_KEY), line(CLAIM_KEY, GIVEN, verb="baseline")],
         {"an allocation by alice before the object was first seen": 1}),
        # the state at the beginning is that of both sides
        ([line(CLAIM_KEY, GIVEN, verb="baseline")],
         {"an allocation by an unknown author before the object was first seen": 1}),
        ([line(ObjectKey("", "", "", ""), type_=GAP)], {"the recording has a gap": 1}),
        ([line(POD_KEY, type_=GAP), line(CLAIM_KEY, type_=GAP)], {"the recording has a gap": 2}),
        ([line(SAID, type_=GAP)], {"the recording has a gap": 1}),
        ([line(SAID), line(SAID, type_=UPDATED, losses=("contradicted",))],
         {"an Event that sources show differently": 1}),
        ([line(POD_KEY, losses=("contradicted",))], {}),  # a doubt of the report
        ([line(ObjectKey("", "secrets", "ns", "s"), type_=GAP)], {}),
        ([line(ObjectKey("example.com", "things", "ns", "t"), type_=GAP)], {}),
    ],
)  # fmt: skip
def test_what_others_decided_and_what_was_not_seen_is_not_compared(
    lines: list[Event], expected: dict[str, int]
) -> None:
    recording = taken(*lines)
    assert dict(recording.not_comparable) == expected


@pytest.mark.parametrize(
    ("key", "is_certain"),
    [
        (ObjectKey(*api_resources.NAMESPACES, "", "ns"), False),
        (ObjectKey(*api_resources.NAMESPACES, "", "default"), True),
        (ObjectKey(*api_resources.NAMESPACES, "", "kube-system"), True),
        (ObjectKey(*api_resources.RESOURCE_CLAIM_TEMPLATES, "ns", "t"), False),
    ],
)
def test_object_that_no_line_shows_is_an_input_of_unsure_content(
    key: ObjectKey, is_certain: bool
) -> None:
    recording = empty()
    recording.take_implied(line(key, verb="baseline"), Instant(1))
    ending = {"metadata": {"deletionTimestamp": "2026-01-02T03:00:00Z"}}
    end = line(key, type_=UPDATED, verb="delete")
    end.body = canonical_json({"metadata": {**end.object["metadata"], **ending["metadata"]}})
    end.forget_tree()
    recording.take_implied(end, Instant(5))
    assert [each.event.key for each in recording.inputs] == [key, key]
    kind = "namespace" if key.resource == "namespaces" else "template of claims"
    counted = {} if is_certain else {f"a {kind} that no line shows": 1}
    assert dict(recording.not_comparable) == counted
    is_ending = [bool(recording.lacks.in_ending(key.name, Instant(at))) for at in (4, 5)]
    assert is_ending == [False, key.resource == "namespaces"]


def test_writers_without_a_line_and_owners_of_unknown_kinds_are_counted() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r"}
    owned = line(POD_KEY)
    owned.body = canonical_json(
        {"metadata": {**owned.object["metadata"], "ownerReferences": [owner]}}
    )
    owned.forget_tree()
    shown = line(ObjectKey("apps", "replicasets", "ns", "r"))
    for lines, ownerless in (
        ([line(POD_KEY)], set()),
        ([owned], {POD_KEY.name}),
        ([shown, owned], set()),
        ([replace(shown, uid=""), owned], {POD_KEY.name}),
        ([replace(shown, uid="", key=shown.key._replace(name="q")), owned], set()),
    ):
        recording = taken(*lines, line(CLAIM_KEY, user=CLAIMS))
        assert recording.imposed == {(COLLECTOR, uid) for uid in ownerless}
        unseen = sorted(recording.lacks.omissions.controllers)
        assert len(unseen) > 2, "of one controller of their manager there is a line"
        recording.note_unseen_writers(frozenset((*unseen[:2], "nobody")))
        reason = "whether the owner of an object exists, which no line shows with its uid"
        assert dict(recording.not_comparable) == {
            **{f"all that {name} does, of which no line is recorded": 1 for name in unseen[:2]},
            **({reason: 1} if ownerless else {}),
        }


def claimed(*names: str) -> dict[str, object]:
    named = [{"name": name, "resourceClaimName": f"p-{name}"} for name in names]
    return {"status": {"resourceClaimStatuses": named}}


def made_for(pod: str) -> dict[str, object]:
    owner = {"kind": "Pod", "name": pod, "uid": pod, "controller": True}
    return {"ownerReferences": [owner]}


@pytest.mark.parametrize(
    ("owner", "names", "writer", "known"),
    [
        ("p", ["a"], SCHEDULER, 3),
        ("other", ["a"], SCHEDULER, None),
        ("p", [], SCHEDULER, None),
        ("p", ["a"], "alice", None),
    ],
    ids=["lost", "no claim of it", "no names", "by another writer"],
)
def test_attempt_that_shows_the_names_of_claims_shows_that_their_line_is_lost(
    owner: str, names: list[str], writer: str, known: int | None
) -> None:
    """The claim was made at 2, so they were named by 3; the attempt came at 4."""
    claim = line(CLAIM_KEY, user=CLAIMS)
    claim.body = canonical_json({"metadata": {**claim.object["metadata"], **made_for(owner)}})
    claim.forget_tree()
    other = line(CLAIM_KEY._replace(name="d"), user=CLAIMS)
    recording = taken(
        line(POD_KEY), claim, other, line(POD_KEY, claimed(*names), type_=UPDATED, user=writer)
    )
    added = [act for act in recording.acts if act.is_guessed and act.user == CLAIMS]
    assert [(act.event.key, act.known) for act in added] == (
        [] if known is None else [(POD_KEY, known)]
    )
