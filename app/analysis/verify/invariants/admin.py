"""Namespaces: their phase, and the admin access that claims and templates ask for in them.

Here is also what a server keeps together in every object: the fields of a deletion.

Parity: objects.md 5.2. A server reads the label when a claim or template is created, and when an
allocation gives the claim admin access. Later changes of the label have no effect on it.

Parity: controllers.md 5.5, api.md 5. The server sets the phase with the mark of a deletion, and a
label with the name, and lets nobody write others.
"""

from collections.abc import Callable
from typing import Any

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.cluster import LISTED, Cluster, losses_of
from app.analysis.verify.invariants.known import KnownNamespace
from app.analysis.verify.invariants.reading import Allocation
from app.analysis.verify.invariants.unseen import is_shown
from app.analysis.verify.invariants.violations import (
    CLOCK_TOLERANCE,
    IN_FLIGHT,
    Finding,
    ViolationKind,
)
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.records import Loss
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant

NAMESPACES = "namespaces"
PODS = "pods"
RULE = "admin-access-allowed"
AGREEMENT = "fields-agree"

_LABEL = "resource.kubernetes.io/admin-access"
_OLD_LABEL = "resource.k8s.io/admin-access"
"""The label in releases before 1.34."""

_ENDING = b'"deletionTimestamp"'
_Take = Callable[[Cluster, Event, Any], None]

_NAME_LABEL = "kubernetes.io/metadata.name"
_END, _GRACE = "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds"
_OF_DELETIONS = ("foregroundDeletion", "orphan")
"""The finalizers that a request of a deletion itself adds, also a second one."""

_SKEW = CLOCK_TOLERANCE + SECOND
"""The greatest difference between times in objects, which are whole seconds, that clocks make."""

_LIVING_PHASE, _DELETED_PHASE = "Active", "Terminating"
_NO_PLACE = frozenset((Loss.NO_RV, Loss.VERSION_GUESS, Loss.LATE))
"""The losses of a write whose place among the writes of other objects is a guess."""

_MADE_BEFORE = _NO_PLACE | {Loss.COLLAPSED}
"""The losses of a write that may have been earlier than its place in the log says."""


def take_namespace(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a Namespace."""
    cluster.note_published(event)
    name, before = event.key.name, cluster.namespaces.get(event.key.name)
    is_there = event.type is not EventType.OBJECT_DELETED
    namespace = reading.namespace(event.body)
    labels = namespace.metadata.labels if is_there else {}
    allows, lost = labels.get(_LABEL) == "true", None
    if before is not None:
        lost = event.stamp.time if before.allows and not allows else before.lost
    allowed_once = labels.get(_OLD_LABEL) == "true"
    cluster.namespaces[name] = KnownNamespace(is_there, event.uid, allows, allowed_once, lost)
    if event.type is not EventType.OBJECT_UPDATED or (before and before.uid != event.uid):
        cluster.forget_faults(event.key)
    if is_there and event.uid and is_shown(event.stamp.origin):
        _judge_agreement(cluster, event.key, namespace)


def _judge_agreement(cluster: Cluster, key: ObjectKey, namespace: reading.Namespace) -> None:
    """Notes a phase that does not follow from the deletion, and a label from the name.

    A state may lack either. Two servers, whose clocks may differ, date a creation and a deletion.
    """
    metadata, phase = namespace.metadata, namespace.status.phase
    is_deleted = bool(metadata.deletion_timestamp)
    if phase not in ("", _DELETED_PHASE if is_deleted else _LIVING_PHASE):
        is_set = "set" if is_deleted else "not set"
        message = f"status.phase is {phase}, and metadata.deletionTimestamp is {is_set}"
        note_disagreement(cluster, key, "status.phase", message)
    label = metadata.labels.get(_NAME_LABEL, key.name)
    if label != key.name:
        message = f"the label {_NAME_LABEL} is {label}, and not the name of the namespace"
        note_disagreement(cluster, key, _NAME_LABEL, message)
    made, ended = map(_instant, (metadata.creation_timestamp, metadata.deletion_timestamp))
    if made is not None and ended is not None and ended < made - _SKEW:
        message = f"metadata.deletionTimestamp is {metadata.deletion_timestamp}, "
        message += f"and metadata.creationTimestamp {metadata.creation_timestamp}"
        note_disagreement(cluster, key, _END, message, ViolationKind.UNSURE)


def _instant(text: str) -> Instant | None:
    try:
        return timestamps.parse(text) if text else None
    except timestamps.TimestampError:
        return None


def followed(take: _Take) -> _Take:
    """The function that applies the events of a kind, and follows the deletions of its objects."""

    def take_and_follow(cluster: Cluster, event: Event, parts: Any) -> None:
        take(cluster, event, parts)
        if event.key in cluster.ending or _ENDING in event.body:
            follow_deletion(cluster, event)

    return take_and_follow


def follow_deletion(cluster: Cluster, event: Event) -> None:
    """Notes what no server does to an object that is being deleted. Parity: controllers.md 6.5.

    Nothing between two states that were recorded themselves explains a mark that went or moved, nor
    a finalizer that came. The line of a removal may show an earlier state.
    """
    key, before = event.key, cluster.ending.get(event.key)
    if event.type is EventType.OBJECT_DELETED:
        cluster.ending.pop(key, None)
        return
    if not (event.uid and is_shown(event.stamp.origin)):
        return
    metadata = reading.ending(event.body).metadata
    if metadata.deletion_timestamp:
        cluster.ending[key] = event.uid, metadata
        _judge_grace(cluster, key, metadata.deletion_grace_period_seconds)
    else:
        cluster.ending.pop(key, None)
    if before is None or before[0] != event.uid:
        return
    last = before[1]
    if _is_moved(key, last.deletion_timestamp, metadata.deletion_timestamp):
        note_changed(cluster, event, _END)
    elif any(each not in (*last.finalizers, *_OF_DELETIONS) for each in metadata.finalizers):
        note_changed(cluster, event, "metadata.finalizers")


def _judge_grace(cluster: Cluster, key: ObjectKey, grace: int | None) -> None:
    """Notes a deletion without its grace period, which a server sets with its time.

    Only pods have a grace period of more than 0; a namespace has none.
    """
    if grace == 0 or key.resource == NAMESPACES:
        return
    if grace is None or grace < 0 or key.resource != PODS:
        value = "not set" if grace is None else grace
        message = f"metadata.deletionTimestamp is set, and {_GRACE} is {value}"
        note_disagreement(cluster, key, _GRACE, message)


def _is_moved(key: ObjectKey, before: str, after: str) -> bool:
    """Whether the time of a deletion was changed, other than to an earlier end of a pod."""
    one, other = _instant(before), _instant(after)
    if key.resource == PODS and one is not None and other is not None:
        return other > one
    return one != other


def note_changed(
    cluster: Cluster, event: Event, field: str, kind: ViolationKind = ViolationKind.BROKEN
) -> None:
    """Notes a change of a field that the server keeps immutable. Parity: objects.md 5.1, 6, 7."""
    place = ("immutable-field-unchanged", event.key, field, event.revision)
    message = f"{field} was changed, which no server allows"
    cluster.note_fault(event.key, place, Finding(kind=kind, objects=(event.key,), message=message))


def note_disagreement(
    cluster: Cluster,
    key: ObjectKey,
    field: str,
    message: str,
    kind: ViolationKind = ViolationKind.BROKEN,
) -> None:
    """Notes that a field of an object does not agree with another one from which it follows."""
    finding = Finding(kind=kind, objects=(key,), message=message)
    cluster.note_fault(key, (AGREEMENT, key, field), finding)


def is_of_no_place(event: Event) -> bool:
    """Whether the event is a write of a namespace that may have come earlier than the log says."""
    return event.key.resource == NAMESPACES and not _NO_PLACE.isdisjoint(losses_of(event))


def is_request(event: Event) -> bool:
    """Whether a line of an audit log shows the object as the server answered a request."""
    origin = event.stamp.origin
    return origin is not None and bool(event.stamp.request_id) and is_shown(origin)


def is_creation(event: Event) -> bool:
    """Whether the event shows the creation of an object, and not only that it exists."""
    return (
        event.type is EventType.OBJECT_CREATED
        and event.stamp.verb != LISTED
        and Loss.SYNTHETIC_CREATE not in losses_of(event)
    )


def is_given(allocation: Allocation | None) -> bool:
    """Whether an allocation gives admin access to a device."""
    return allocation is not None and any(each.admin_access for each in allocation.devices.results)


def judge(cluster: Cluster, event: Event, *, is_dated: bool, what: str = "requested") -> None:
    """Notes a write that asks for admin access or gives it, if the namespace forbids that.

    A namespace that is not recorded forbids nothing. Not `is_dated`: a gap lies before the event.
    """
    key = event.key
    namespace = cluster.namespaces.get(key.namespace)
    if namespace is None or not namespace.is_there or namespace.allows:
        return
    lost = namespace.lost
    is_sure = (
        is_dated
        and not namespace.allowed_once
        and (lost is None or event.stamp.time - lost > IN_FLIGHT)
        and is_shown(event.stamp.origin)
        and _MADE_BEFORE.isdisjoint(losses_of(event))
    )
    finding = Finding(
        kind=ViolationKind.BROKEN if is_sure else ViolationKind.UNSURE,
        objects=(key, ObjectKey("", NAMESPACES, "", key.namespace)),
        message=f"admin access is {what} in a namespace without the label that allows it",
        unless=frozenset((NAMESPACES,)),
        reads_times=lost is not None,
    )
    cluster.note_fault(key, (RULE, key, event.revision), finding)
