"""Reservations that upstream's controllers cannot have written, and identifiers of no share.

The verdict of each row was fixed from the words of the specification: the scheduler appends the
reference of one pod in one update, and the claim controller keeps the order of those that it keeps.
"""

from collections.abc import Sequence

import msgspec
import pytest

from app.analysis.verify.claim_writes import ClaimWriteWatch
from app.analysis.verify.invariants.violations import ViolationKind
from app.domain.log import Actor, Event, EventType, ObjectKey, Stamp, raw_parts
from app.domain.log.event import Origin, Revision
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import Cluster
from tests.together import together

KEY = ObjectKey("resource.k8s.io", "resourceclaims", "default", "shared")
SCHEDULER = "system:kube-scheduler"
CONTROLLER = "system:serviceaccount:kube-system:resource-claim-controller"
MANAGER = "system:kube-controller-manager"
UUID = "00000000-0000-4000-8000-0000000000aa"


class Log:
    """The events about one claim, as an audit log of everything gives them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.write("", type=EventType.OBJECT_CREATED, user="alice", verb="create")

    def write(
        self,
        pods: str,
        user: str = SCHEDULER,
        verb: str = "update",
        losses: Sequence[str] = (),
        uid: str = "u1",
        share: str = "",
        type: EventType = EventType.OBJECT_UPDATED,
    ) -> None:
        """Reserve the claim for these pods, one letter for each."""
        consumers = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
        given = {
            "devices": {"results": [{"device": "gpu-0"} | ({"shareID": share} if share else {})]}
        }
        status = {"allocation": given, "reservedFor": consumers} if pods else {}
        self.add(type, KEY, user, verb, tuple(losses), uid, {"metadata": {}, "status": status})

    def miss(self, key: ObjectKey) -> None:
        """A gap: writes before it were not recorded."""
        self.add(EventType.GAP_OBSERVED, key, "redra:import", "gap", (), "", {})

    def add(
        self,
        type: EventType,
        key: ObjectKey,
        user: str,
        verb: str,
        losses: tuple[str, ...],
        uid: str,
        tree: dict[str, object],
    ) -> None:
        revision = len(self.events) + 1
        self.events.append(
            Event(
                revision=Revision(revision),
                type=type,
                key=key,
                uid=Uid(uid),
                body=msgspec.json.encode(tree),
                stamp=Stamp(
                    time=Instant(revision * SECOND),
                    actor=Actor(user=user),
                    verb=verb,
                    origin=Origin(source="audit.log", losses=losses),
                ),
            )
        )


def judged(events: Sequence[Event]) -> list[tuple[str, int, int | None]]:
    watch = ClaimWriteWatch()
    for event in events:
        is_claim = event.is_about_object and event.key[:2] == KEY[:2]
        is_there = is_claim and event.type is not EventType.OBJECT_DELETED
        watch.take(event, raw_parts.of_claim(event.body) if is_there else None)
    for each in watch.violations():
        assert (each.kind, each.objects, each.doubt) == (ViolationKind.BROKEN, (KEY,), "")
        times = {event.revision: event.stamp.time for event in events}
        for moment in (each.begin, each.end or each.begin):
            assert moment.time == times[moment.revision]
    return [
        (each.rule, each.begin.revision, None if each.end is None else each.end.revision)
        for each in watch.violations()
    ]


RESERVATIONS = [
    ("", "a", False),
    ("a", "ab", False),
    ("abc", "abcd", False),
    ("abc", "ac", False),
    ("abc", "c", False),
    ("abc", "", False),
    ("", "ab", True),
    ("a", "abc", True),
    ("a", "ba", True),
    ("abc", "abdc", True),
    ("abc", "cba", True),
    ("abc", "ca", True),
    ("a", "b", True),
    ("ab", "ac", True),
]
"""The reservations before and after a write, and whether the write is wrong."""


@together(
    [(user, *row) for row in RESERVATIONS for user in (SCHEDULER, CONTROLLER, MANAGER)],
    lambda row: " ".join(map(str, row[:3])),
)
def test_reservation_is_appended_alone(row: tuple[str, str, str, bool]) -> None:
    user, before, after, is_wrong = row
    log = Log()
    for count in range(1, len(before) + 1):
        log.write(before[:count])
    log.write(after, user)
    here = len(log.events)
    log.write("")
    wrong = [("reservation-appended", here, here + 1)] if is_wrong else []
    assert judged(log.events) == wrong


@pytest.mark.parametrize(
    "doubt", ["other", "patch", "loss", "loss before", "gap", "gap of all", "new"]
)
def test_only_writes_that_follow_the_state_before_them_are_judged(doubt: str) -> None:
    log = Log()
    log.write("a", losses=("truncated_body",) if doubt == "loss before" else ())
    if doubt.startswith("gap"):
        log.miss(KEY if doubt == "gap" else ObjectKey("", "", "", ""))
    log.write(
        "cba",
        user="system:my-scheduler" if doubt == "other" else SCHEDULER,
        verb="patch" if doubt == "patch" else "update",
        losses=("truncated_body",) if doubt == "loss" else (),
        uid="u2" if doubt == "new" else "u1",
    )
    assert judged(log.events) == []
    log.write("cbad", uid="u2" if doubt == "new" else "u1")
    log.write("c", uid="u2" if doubt == "new" else "u1")
    log.write("dec", uid="u2" if doubt == "new" else "u1")
    assert judged(log.events) == [("reservation-appended", len(log.events), None)]


@pytest.mark.parametrize(
    ("share", "is_wrong"),
    [("", False), (UUID, False), (UUID.upper(), True), ("XX", True), (f"{UUID}\n", True)],
)
def test_share_has_a_uuid(share: str, is_wrong: bool) -> None:
    log = Log()
    log.write("a", share=share)
    log.write("ab", share=share)
    log.write("abc", share=UUID)
    assert judged(log.events) == ([("share-has-uuid", 2, 4)] if is_wrong else [])


def test_writes_of_our_own_controllers_are_sound() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.slice("n1", 1)
    cluster.device_class()
    cluster.claim("shared")
    for name in ("p0", "p1", "p2"):
        cluster.pod(name, claim="shared")
    cluster.wait(5)
    cluster.finish("p1")
    events = [event.undecoded() for event in cluster.wait(90).line.events]
    assert judged(events) == []
    told = [event.body for event in events if event.key[:2] == KEY[:2]]
    assert any(body.count(b'"resource":"pods"') == 3 for body in told), "three pods share the claim"
    swapped = [
        msgspec.structs.replace(event, body=_turned(event.body)) if event.is_about_object else event
        for event in events
    ]
    assert [rule for rule, *_ in judged(swapped)] == ["reservation-appended"]


def _turned(body: bytes) -> bytes:
    """The object with its reservations in the other order."""
    tree = msgspec.json.decode(body)
    if isinstance(tree.get("status"), dict) and tree["status"].get("reservedFor"):
        tree["status"]["reservedFor"].reverse()
    return msgspec.json.encode(tree)
