"""The changes that events make to the states of objects over time: a small part of each event.

The changes of a history are kept instead of the states, which would have to be written again
whenever one of them ends. Most events change no state; a lane needs a hundredth of the bytes of the
events about its object.
"""

from enum import IntEnum

import msgspec

from app.domain.log import CLOCKS, Event, EventType, ObjectKey, Revision
from app.domain.values import api_resources, condition_types
from app.domain.values.fields import core
from app.domain.values.timestamps import Instant
from projections import outlines

Moment = tuple[Revision, Instant]

WAITING, BOUND, RUNNING, FINISHED, ENDING = "waiting", "bound", "running", "finished", "ending"
ALLOCATED, RESERVED, HELD = "allocated", "reserved", "held"
READY, NOT_READY = "ready", "not ready"

DEVICES = ("redra", "devices")
"""The group and resource that stand for devices, which are not API objects."""

BEGINNING: Moment = (Revision(0), Instant(0))


class ChangeSort(IntEnum):
    """The subject of a change."""

    POD = 1
    CLAIM = 2
    NODE = 3
    GONE = 4
    GAP = 5


class SpanChange(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The state of an object since an event, its deletion, or the end of a gap.

    `label` is the node of a pod, or whether a node is cordoned. `names` are the claims that a pod
    names, or the devices of a claim; `count` the claims to be made for a pod, -1 if it wants none.
    `owners` are the uids of a claim's owners, `users` the pods that reserve it. `before` is the
    moment before a gap.
    """

    sort: ChangeSort
    key: ObjectKey
    now: Moment
    state: str = ""
    label: str = ""
    uid: str = ""
    names: tuple[str, ...] = ()
    count: int = -1
    owners: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    before: Moment = BEGINNING


def change_of(event: Event, last: Moment) -> SpanChange | None:
    """The change that an event makes; None without one. `last` is the moment of the one before."""
    now = event.revision, event.stamp.time
    if event.type is EventType.GAP_OBSERVED:
        if event.key == CLOCKS:
            return None
        return SpanChange(ChangeSort.GAP, event.key, now, before=last)
    if not event.is_about_object:
        return None
    read = _READERS.get(event.key[:2])
    if read is None:
        return None
    if event.type is EventType.OBJECT_DELETED:
        return SpanChange(ChangeSort.GONE, event.key, now)
    return read(event, now)


def _pod(event: Event, now: Moment) -> SpanChange:
    pod = outlines.pod(event.body)
    node = pod.spec.node_name
    if pod.status.phase in core.FINISHED:
        state = FINISHED
    elif pod.metadata.deletion_timestamp:
        state = ENDING
    elif pod.status.phase == "Running":
        # What was printed for people may show the phase and not the node.
        state = RUNNING
    else:
        state = BOUND if node else WAITING
    entries = pod.spec.resource_claims
    named: tuple[str, ...] = ()
    count = -1
    if entries:
        named = tuple(each.resource_claim_name for each in entries if each.resource_claim_name)
        needless = sum(not each.resource_claim_name for each in pod.status.resource_claim_statuses)
        count = max(0, len(entries) - len(named) - needless)
    return SpanChange(ChangeSort.POD, event.key, now, state, node, event.uid, named, count)


def _claim(event: Event, now: Moment) -> SpanChange:
    claim = outlines.claim(event.body)
    users = tuple(
        consumer.name
        for consumer in claim.status.reserved_for
        if (consumer.api_group, consumer.resource) == api_resources.PODS
    )
    allocation = claim.status.allocation
    devices: tuple[str, ...] = ()
    if allocation is not None:
        # Several shares of one device count as one.
        devices = tuple(dict.fromkeys(one.text for one in allocation.devices.results))
    if claim.metadata.deletion_timestamp:
        state = ENDING
    elif allocation is None:
        state = WAITING
    else:
        state = RESERVED if claim.status.reserved_for else ALLOCATED
    owners = tuple(outlines.owner_uids(event.body))
    return SpanChange(
        ChangeSort.CLAIM, event.key, now, state, names=devices, owners=owners, users=users
    )


def _node(event: Event, now: Moment) -> SpanChange:
    node = outlines.node(event.body)
    ready = [one for one in node.status.conditions if one.type == condition_types.READY]
    state = READY if ready and ready[0].status == "True" else NOT_READY
    label = "cordoned" if node.spec.unschedulable else ""
    return SpanChange(ChangeSort.NODE, event.key, now, state, label)


_READERS = {
    api_resources.PODS: _pod,
    api_resources.RESOURCE_CLAIMS: _claim,
    api_resources.NODES: _node,
}
