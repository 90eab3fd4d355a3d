"""Which recorded writes of the scheduler were under way when a run begins, and which came after."""

import pytest

from app.analysis.replay import tolerances
from app.analysis.replay.acts import Act
from app.analysis.replay.authors import CLAIMS, SCHEDULER
from app.analysis.replay.beginning import (
    Beginning,
    end_of_placement,
    under_way,
    waits_for_devices,
)
from app.analysis.replay.readiness import bounded_starts
from app.analysis.verify.invariants.violations import IN_FLIGHT
from app.domain.log import DECISION, Actor, Event, EventType, Head, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.objects.kinds.extended_resources import ANNOTATION
from app.domain.values import timestamps
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import SECOND, Instant

POD = ObjectKey("", "pods", "ns", "p")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c")
REPORT = ObjectKey("", "events", "ns", "e")
HEAD = Instant(1_000 * SECOND)
WHY = "0/1 nodes are available: 1 cannot allocate all claims."


def event(key: ObjectKey, uid: str, tree: dict, at: float, revision: int, *, is_new=False) -> Event:
    stamp = Stamp(time=Instant(HEAD + int(at * SECOND)), actor=Actor(user="u"), verb="update")
    return Event(
        revision=Revision(revision),
        type=EventType.OBJECT_CREATED if is_new else EventType.OBJECT_UPDATED,
        key=key,
        uid=Uid(uid),
        body=canonical_json(tree),
        stamp=stamp,
    )


def pod(message: str | None) -> dict:
    refused = {"type": "PodScheduled", "status": "False", "message": message}
    return {"status": {"conditions": [] if message is None else [refused]}}


def act(written: Event, before: dict | None, user: str = SCHEDULER) -> Act:
    known = written.stamp.time
    return Act(event=written, before=before, known=known, user=user, is_guessed=False)


def report(
    at: float, written: float, revision: int, *, is_new: bool = True, note: str = WHY
) -> Act:
    """An Event of an attempt at the second `at`, which was written later."""
    instant = timestamps.micro_text(Instant(HEAD + int(at * SECOND)))
    tree: dict = {
        "reason": "FailedScheduling",
        "note": note,
        "eventTime": instant,
        "regarding": {"kind": "Pod", "namespace": "ns", "name": "p", "uid": "p"},
    }
    if not is_new:
        tree["series"] = {"count": 2, "lastObservedTime": instant}
    made = event(REPORT, "e", tree, written, revision, is_new=is_new)
    return act(made, None if is_new else {})


def condition(written: float, revision: int, *, message: str = WHY, old: str | None = None) -> Act:
    return act(event(POD, "p", pod(message), written, revision), pod(old))


SOON = tolerances.TABLE.reported_before / SECOND
NEAR = tolerances.TABLE.same_attempt / SECOND


@pytest.mark.parametrize(
    ("acts", "expected"),
    [
        pytest.param([report(-1, 1, 1), condition(1.2, 2)], {1, 2}, id="both came late"),
        pytest.param([report(1, 1, 1), condition(1.2, 2)], set(), id="tried afterwards"),
        pytest.param([condition(-1, 2)], {2}, id="a condition of before"),
        pytest.param(
            [report(-1, 1, 1), condition(1, 2, message="another")], {1}, id="of another reason"
        ),
        pytest.param(
            [report(-1, 1, 1), condition(1, 2), condition(2, 3, message=WHY, old="another")],
            {1, 2},
            id="a report has one condition",
        ),
        pytest.param([report(-1, 1, 1), condition(SOON, 2)], {1}, id="too long after the report"),
        pytest.param([report(-1, 1, 1), condition(SOON - 2, 2)], {1, 2}, id="after a long wait"),
        pytest.param(
            [report(-NEAR / 4, 1, 1, is_new=False), condition(NEAR / 2, 2)],
            {1, 2},
            id="a repeated report has no note, and is near",
        ),
        pytest.param(
            [report(-NEAR / 4, 1, 1, is_new=False), condition(NEAR, 2)],
            {1},
            id="a repeated report is not near",
        ),
        pytest.param(
            [report(-1, 1, 1), condition(1, 2, old=WHY)], {1}, id="the condition said so before"
        ),
    ],
)
def test_attempt_before_the_beginning_has_its_report_and_its_condition(acts, expected) -> None:
    beginning = Beginning(head=Head(time=HEAD), after=Revision(0), state=b"", objects=())
    assert under_way(acts, beginning, 0, {"p"}) == expected
    assert (
        under_way([act(each.event, each.before, CLAIMS) for each in acts], beginning, 0, {"p"})
        == set()
    )


def test_condition_that_was_there_at_the_beginning_belongs_to_the_report_of_its_reason() -> None:
    """Its attempt has both; a condition that comes later with the same text is of another one."""
    objects = [event(POD, "p", pod(WHY), -1, 1)]
    beginning = Beginning(head=Head(time=HEAD), after=Revision(1), state=b"", objects=objects)
    acts = [report(-1, 1, 2), condition(1, 3, old="another")]
    assert under_way(acts, beginning, 0, set()) == {2}


def test_clock_that_goes_ahead_by_the_skew_leaves_less_before_the_beginning() -> None:
    beginning = Beginning(head=Head(time=HEAD), after=Revision(0), state=b"", objects=())
    acts = [report(-1, 1, 1), condition(1, 2)]
    assert under_way(acts, beginning, 2 * SECOND, {"p"}) == set()


def reserved(*uids: str, devices: bool = False) -> dict:
    users = [{"resource": "pods", "name": uid, "uid": uid} for uid in uids]
    status: dict = {"reservedFor": users}
    return {"status": status | ({"allocation": {"devices": {}}} if devices else {})}


def of_claim(before: dict, after: dict, revision: int, user: str = SCHEDULER) -> Act:
    return act(event(CLAIM, "c", after, 1, revision), before, user)


@pytest.mark.parametrize(
    ("acts", "expected"),
    [
        pytest.param([of_claim(reserved(), reserved("gone"), 2)], {2}, id="a pod that is gone"),
        pytest.param([of_claim(reserved(), reserved("p"), 2)], set(), id="a pod that is there"),
        pytest.param(
            [
                of_claim(reserved(), reserved(devices=True), 2),
                of_claim(reserved(), reserved("gone"), 3),
            ],
            {2, 3},
            id="with the write that prepares it",
        ),
        pytest.param(
            [
                of_claim(reserved(), reserved(devices=True), 2),
                of_claim(reserved(), reserved("p"), 3),
                of_claim(reserved("p"), reserved("p", "gone"), 4),
            ],
            {4},
            id="without one that prepares another's",
        ),
        pytest.param(
            [of_claim(reserved(), reserved("gone"), 2, CLAIMS)], set(), id="of another controller"
        ),
    ],
)
def test_claim_that_is_written_for_a_pod_that_is_gone_was_chosen_before(acts, expected) -> None:
    beginning = Beginning(head=Head(time=HEAD), after=Revision(0), state=b"", objects=())
    assert under_way(acts, beginning, 0, {"p"}) == expected


def extended(owner: str, *, conditions: tuple[str, ...] | None = None) -> dict:
    """A claim that the scheduler makes for a pod; allocated if there are `conditions`, or none."""
    result = {"request": "r", "driver": "d", "pool": "p", "device": "a"}
    status: dict = {}
    if conditions is not None:
        given = {**result, **({"bindingConditions": list(conditions)} if conditions else {})}
        status = {"allocation": {"devices": {"results": [given]}}}
    reference = {"kind": "Pod", "name": owner, "uid": owner, "controller": True}
    metadata = {"annotations": {ANNOTATION: "true"}, "ownerReferences": [reference]}
    return {"metadata": metadata, "status": status}


def of_pod(uid: str, node: str, revision: int, *, is_gone: bool = False) -> Event:
    made = event(POD._replace(name=uid), uid, {"spec": {"nodeName": node}}, 1, revision)
    return gone(made) if is_gone else made


def of_extended(owner: str, revision: int, *, is_gone: bool = False, **how) -> Event:
    is_new = how.pop("is_new", False)
    made = event(CLAIM, f"of-{owner}", extended(owner, **how), 1, revision, is_new=is_new)
    return gone(made) if is_gone else made


def gone(made: Event) -> Event:
    made.type = EventType.OBJECT_DELETED
    return made


MADE = of_extended("p", 1, is_new=True)


@pytest.mark.parametrize(
    ("before", "after", "end"),
    [
        pytest.param([], [of_pod("p", "n", 5)], None, id="nothing is begun"),
        pytest.param([MADE], [of_pod("p", "n", 5)], 5, id="bound"),
        pytest.param([MADE], [of_pod("p", "", 5), of_pod("p", "n", 6)], 6, id="named, then bound"),
        pytest.param([MADE], [of_pod("q", "n", 5)], None, id="another pod"),
        pytest.param([MADE], [], None, id="it does not end"),
        pytest.param([MADE, of_pod("p", "n", 3)], [of_pod("q", "n", 5)], None, id="bound before"),
        pytest.param([MADE], [of_pod("p", "", 5, is_gone=True)], 5, id="the pod is gone"),
        pytest.param([MADE], [of_extended("p", 5, is_gone=True)], 5, id="given up"),
        pytest.param(
            [MADE], [of_extended("p", 5, conditions=()), of_pod("p", "n", 6)], 6, id="allocated"
        ),
        pytest.param(
            [MADE], [of_extended("p", 5, conditions=("ready",)), of_pod("p", "n", 6)], 5,
            id="goes on waiting for its device",
        ),
        pytest.param(
            [MADE, of_extended("q", 2, is_new=True)],
            [of_pod("p", "n", 5), of_pod("q", "n", 6)],
            6,
            id="two pods",
        ),
        pytest.param(
            [of_claim(reserved(), reserved("p"), 2).event], [of_pod("p", "n", 5)], None,
            id="of a claim that somebody wrote",
        ),
    ],
)  # fmt: skip
def test_placement_with_extended_resources_is_begun_by_its_claim_and_ends_with_the_binding(
    before, after, end
) -> None:
    assert end_of_placement(before, after) == end


def after(seconds: float) -> Instant:
    return Instant(HEAD + int(seconds * SECOND))


@pytest.mark.parametrize(
    ("acts", "since"),
    [
        pytest.param([], 10, id="no act: the first write"),
        pytest.param([report(4, 10, 1)], 4 - 0.005, id="reported attempt"),
        pytest.param([report(12, 12, 1)], 10, id="later attempt"),
        pytest.param(
            [act(event(POD, "p", pod(WHY), 4, 1), pod(None))], 4 - 0.01, id="condition without one"
        ),
        pytest.param(
            [act(event(POD, "p", pod(WHY), 4, 1), pod(None), "alice")], 10, id="by another"
        ),
    ],
)
def test_scheduler_runs_at_its_first_attempt_before_any_write_is_stored(
    acts: list[Act], since: float
) -> None:
    """The manager's controllers start together, whatever the scheduler does."""
    starts = {"scheduling": after(10), "claims": after(7), "eviction": after(60)}
    bounded = bounded_starts(starts, acts)
    assert bounded == {
        "scheduling": after(since),
        "claims": after(7),
        "eviction": Instant(after(7) + IN_FLIGHT),
    }
    assert starts["scheduling"] == after(10)


NOMINATED = {"nominatedNodeName": "n1"}
BOUND = {"spec": {"nodeName": "n1"}, "status": NOMINATED}
GOING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": NOMINATED}


def conditioned(at: float, *uids: str, dated: float | None = None, conditions: bool = True) -> dict:
    """A claim whose device may have conditions, allocated at one second, reserved for pods."""
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    more = {"bindingConditions": ["Ready"]} if conditions else {}
    stamp = timestamps.seconds_text(Instant(HEAD + int((at if dated is None else dated) * SECOND)))
    allocation = {"devices": {"results": [{**result, **more}]}, "allocationTimestamp": stamp}
    users = [{"resource": "pods", "name": uid, "uid": uid} for uid in uids]
    return {"status": {"allocation": allocation, "reservedFor": users}}


@pytest.mark.parametrize(
    ("pods", "claims", "expected"),
    [
        ({"p": {"status": NOMINATED}}, {"c": (3.25, conditioned(3, "p"))}, [("p", 3.25)]),
        # A driver wrote it later: the allocation has its own time, in whole seconds.
        ({"p": {"status": NOMINATED}}, {"c": (9, conditioned(9, "p", dated=3))}, [("p", 3)]),
        ({"p": {"status": NOMINATED}}, {"c": (3, conditioned(3, "p", dated=4))}, [("p", 4)]),
        (
            {"p": {"status": NOMINATED}},
            {"c": (3, conditioned(3, "p")), "d": (5, conditioned(5, "p"))},
            [("p", 5)],
        ),
        (
            {"p": {"status": NOMINATED}},
            {"c": (5, conditioned(5, "p")), "d": (3, conditioned(3, "p"))},
            [("p", 5)],
        ),
        (
            {"p": {"status": NOMINATED}, "q": {"status": NOMINATED}},
            {"c": (5, conditioned(5, "p")), "d": (3, conditioned(3, "q"))},
            [("q", 3), ("p", 5)],
        ),
        (
            {"q": {"status": NOMINATED}, "p": {"status": NOMINATED}},
            {"c": (5, conditioned(5, "q", "p"))},
            [("p", 5), ("q", 5)],
        ),
        ({"p": {"status": NOMINATED}}, {"c": (3, conditioned(3, "p", conditions=False))}, []),
        ({"p": {"status": NOMINATED}}, {"c": (3, conditioned(3, "q"))}, []),
        ({"p": {"status": NOMINATED}}, {"c": (3, reserved("p"))}, []),
        ({"p": {"status": NOMINATED}}, {}, []),
        ({"p": {}}, {"c": (3, conditioned(3, "p"))}, []),
        ({"p": BOUND}, {"c": (3, conditioned(3, "p"))}, []),
        ({"p": GOING}, {"c": (3, conditioned(3, "p"))}, []),
        (
            {"p": {"status": {**NOMINATED, "phase": "Running"}}},
            {"c": (3, conditioned(3, "p"))},
            [],
        ),
    ],
)
def test_pod_that_waits_for_its_devices_has_the_decision_of_its_wait(
    pods: dict, claims: dict, expected: list
) -> None:
    objects = [
        event(ObjectKey("", "pods", "ns", uid), uid, tree, 1, number)
        for number, (uid, tree) in enumerate(pods.items(), 1)
    ]
    revisions = {each.uid: each.revision for each in objects}
    objects += [
        event(CLAIM._replace(name=name), name, tree, at, 7) for name, (at, tree) in claims.items()
    ]
    waits = waits_for_devices(objects)
    assert [
        (each.revision, each.type, each.key, each.uid, each.stamp.time, each.stamp.actor.user)
        for each in waits
    ] == [
        (
            revisions[Uid(uid)],
            EventType.DECISION_RECORDED,
            DECISION._replace(namespace="ns", name=uid),
            "",
            HEAD + int(at * SECOND),
            SCHEDULER,
        )
        for uid, at in expected
    ]
    assert [each.object for each in waits] == [
        {
            "controller": "scheduling",
            "resource": "pods",
            "namespace": "ns",
            "name": uid,
            "outcome": "WaitingForBinding",
            "inputs": {"now": HEAD + int(at * SECOND), "uid": uid},
            "summary": {"node": "n1"},
        }
        for uid, at in expected
    ]


NODE = ObjectKey("", "nodes", "", "n")
CLAIM_KEY = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c")


@pytest.mark.parametrize(
    ("objects", "is_up"),
    [
        ([], False),
        ([(POD, {"spec": {}})], False),
        ([(POD, {"spec": {"nodeName": "n"}})], True),
        ([(CLAIM_KEY, {"status": {}})], False),
        ([(CLAIM_KEY, {"status": {"allocation": {"devices": {"results": []}}}})], True),
        ([(NODE, {"spec": {"nodeName": "n"}, "status": {"allocation": {"devices": {}}}})], False),
        ([(POD, {"spec": {}}), (POD, {"spec": {"nodeName": "n"}})], True),
    ],
)
def test_control_plane_is_up_where_a_pod_has_a_node_or_a_claim_devices(
    objects: list[tuple[ObjectKey, dict]], is_up: bool
) -> None:
    events = [event(key, "u", tree, -1, 1) for key, tree in objects]
    beginning = Beginning(head=Head(time=HEAD), after=Revision(1), state=b"", objects=events)
    assert beginning.shows_work is is_up
