"""Whether another process may have taken over from a scheduler between two of its writes.

Each row is what a log shows in order: `w` with the tenth of a second of a write, or the Lease of a
user with its holder and the number of its changes. The first write is the nomination of a pod, the
last one its allocation.
"""

import json
from typing import Any

import pytest

from app.analysis.verify.handovers import Handovers
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import SECOND, Instant

ONE = "cp-1_0b7e5f6a-93d1-4c57-8f0e-2a61c4f1d9b3"
OTHER = "cp-2_5d4c3b2a-1f0e-4d9c-8b7a-6f5e4d3c2b1a"


def w(tenth: int) -> int:
    return tenth


def lease(
    holder: str = ONE, changes: int = 3, name: str = "kube-scheduler", by: str = "s", uid: str = "u"
) -> Event:
    spec: dict[str, Any] = {"holderIdentity": holder, "leaseTransitions": changes}
    namespace = "kube-node-lease" if name == "node" else "kube-system"
    return Event(
        revision=Revision(1),
        type=EventType.OBJECT_DELETED if holder == "deleted" else EventType.OBJECT_UPDATED,
        key=ObjectKey("coordination.k8s.io", "leases", namespace, name),
        uid=Uid(uid),
        body=json.dumps({"spec": spec}).encode(),
        stamp=Stamp(time=Instant(0), actor=Actor(user=by), verb="update"),
    )


ROWS = {
    "no pause": (False, [w(0), w(19)]),
    "two seconds": (True, [w(0), w(20)]),
    "two seconds, with a write amid": (False, [w(0), w(14), w(28)]),
    "an earlier write comes late": (True, [w(0), w(20), w(19)]),
    "a pause before the nomination": (False, [w(0), w(1)]),
    "the Lease has the same holder": (False, [lease(), w(0), lease(), w(30), lease()]),
    "the Lease has another holder": (
        True,
        [lease(), w(0), lease(OTHER, 4), w(30), lease(OTHER, 4)],
    ),
    "it went to another one and back": (True, [lease(), w(0), w(30), lease(changes=5)]),
    "it was given back": (True, [lease(), w(0), lease(""), w(30), lease(changes=4)]),
    "it is a new Lease": (True, [lease(), w(0), w(30), lease(uid="v")]),
    "it was deleted": (True, [lease(), w(0), lease("deleted"), w(30), lease()]),
    "no line of it before": (True, [w(0), lease(), w(30), lease()]),
    "no line of it after": (True, [lease(), w(0), lease(), w(30)]),
    "the holder is a host": (True, [lease("cp-1"), w(0), w(30), lease("cp-1")]),
    "the Lease of another user": (True, [lease(by="m"), w(0), w(30), lease(by="m")]),
    "the Lease of a node": (True, [lease(name="node"), w(0), w(30), lease(name="node")]),
    "one of two Leases is not shown after it": (
        True,
        [lease(), lease(name="second"), w(0), w(30), lease()],
    ),
    "both Leases are shown after it": (
        False,
        [lease(), lease(name="second"), w(0), w(30), lease(), lease(name="second")],
    ),
}


@pytest.mark.parametrize(("may_be", "lines"), ROWS.values(), ids=ROWS)
def test_other_process_may_have_taken_over_in_a_pause(may_be: bool, lines: list[Any]) -> None:
    handovers, writes, now = Handovers(), list[int](), Instant(-SECOND)
    handovers.note_write("s", 0, Instant(-9 * SECOND))
    for number, line in enumerate(lines, 1):
        if isinstance(line, Event):
            handovers.note_lease(line, Instant(now + 1))
        else:
            now = Instant(line * SECOND // 10)
            handovers.note_write("s", number, now)
            writes.append(number)
    assert handovers.may_lie_between("s", writes[0], writes[-1]) == may_be
    assert not handovers.may_lie_between("other", writes[0], writes[-1])


@pytest.mark.parametrize(
    ("holder", "begin", "end", "is_led"),
    [
        (ONE, 15, 18, True),
        (ONE, 0, 10, True),
        (ONE, 20, 30, True),
        (ONE, 0, 9, False),
        (ONE, 21, 30, False),
        (ONE, 18, 15, False),
        ("cp-1", 15, 18, False),
    ],
)
def test_process_with_the_lease_is_there_between_its_first_and_its_last_line(
    holder: str, begin: int, end: int, is_led: bool
) -> None:
    handovers = Handovers()
    for at in (10, 20):
        handovers.note_lease(lease(holder), Instant(at))
    assert handovers.is_led("s", Instant(begin), Instant(end)) is is_led
    assert not handovers.is_led("m", Instant(begin), Instant(end))
