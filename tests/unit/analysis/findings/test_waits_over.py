"""The event with which a pod that was refused waits no more."""

import pytest

from app.analysis.findings import waits_over
from app.domain.log import Event, EventType, ObjectKey, Revision, records
from app.domain.log.event import Actor, Stamp
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant

POD = ObjectKey("", "pods", "lab", "job")
REFUSED = "0/1 nodes are available: 1 cannot allocate all claims."
OTHER = "0/1 nodes are available: 1 node(s) were unschedulable."


def state(revision, message="", *, user="scheduler", gone=False, **fields):
    """The pod after an event, refused with the message if there is one."""
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    conditions = [{**condition, "reason": "Unschedulable"}] if message else []
    return Event(
        revision=Revision(revision),
        type=EventType.OBJECT_DELETED if gone else EventType.OBJECT_UPDATED,
        key=POD,
        uid=Uid("u"),
        body=b"",
        tree={
            "metadata": {"namespace": "lab", "name": "job", **fields.get("metadata", {})},
            "spec": fields.get("spec", {}),
            "status": {"conditions": conditions, **fields.get("status", {})},
        },
        stamp=Stamp(time=Instant(0), actor=Actor(user=user), verb="update"),
    )


PLACED = {"spec": {"nodeName": "n1"}}
MARKED = {"metadata": {"deletionTimestamp": "2026-01-02T03:00:00Z"}}
LATER = {
    "placed": ([state(9, **PLACED)], (9, "placed on node n1 at 1970-01-01T00:00:00Z")),
    "written and placed": (
        [state(8, REFUSED), state(9, **PLACED), state(10, gone=True, **PLACED)],
        (9, "placed on node n1 at 1970-01-01T00:00:00Z"),
    ),
    "deleted": (
        [state(9, REFUSED, user="alice", gone=True)],
        (9, "deleted by alice at 1970-01-01T00:00:00Z"),
    ),
    "marked before": (
        [state(8, REFUSED, user="alice", **MARKED), state(9, REFUSED, gone=True)],
        (8, "deleted by alice at 1970-01-01T00:00:00Z"),
    ),
    "marked by nobody who is recorded": (
        [
            state(8, REFUSED, user=records.IMPORTER_USER, **MARKED),
            state(9, REFUSED, user="alice", gone=True, **MARKED),
        ],
        (9, "deleted by alice at 1970-01-01T00:00:00Z"),
    ),
    "refused for another cause, then placed": ([state(8, OTHER), state(9, **PLACED)], None),
    "failed": ([state(9, REFUSED, status={"phase": "Failed"})], None),
    "still waiting": ([state(9, REFUSED)], None),
    "nothing more": ([], None),
}
"""The states after a refusal, the oldest first, and the end that they show."""


@pytest.mark.parametrize("name", LATER)
def test_end_of_a_wait_is_the_placement_or_the_request_of_the_deletion(name):
    later, expected = LATER[name]
    events = [state(5), state(7, REFUSED), *later]
    end = waits_over.end_of(events[::-1], Revision(7))
    assert (None if end is None else (end.event.revision, end.text)) == expected


def test_events_that_do_not_reach_back_to_the_refusal_show_no_end():
    """The pod may have been deleted and made anew in those that are not read."""
    assert waits_over.end_of([state(9, **PLACED)], Revision(7)) is None
