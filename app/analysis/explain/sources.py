"""The source of a state: the event that caused it, who requested it, and when.

Events of one object are given newest first, as the log returns them.
"""

from collections.abc import Callable, Sequence

from app.analysis.explain.reasons import Reason
from app.domain.log import Event, EventType, ObjectKey, doubts, records
from app.domain.log.records import BASELINE_VERB, Loss
from app.domain.objects.printing import durations
from app.domain.objects.reader import ObjectsReader
from app.domain.values import timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import SECOND, Instant


def since(events: Sequence[Event], holds: Callable[[JsonView], bool]) -> Event | None:
    """The event since which a predicate holds without interruption.

    None when it does not hold now, or when the events do not reach back to its beginning.
    """
    first: Event | None = None
    for event in events:
        if event.type is EventType.OBJECT_DELETED:
            break
        if not holds(event.object):
            return first
        first = event
    return first if first is not None and first.type is EventType.OBJECT_CREATED else None


def revision_of(objects: ObjectsReader, key: ObjectKey) -> int:
    """The revision of the last event of an object; 0 if it does not exist."""
    event = objects.event(key)
    return 0 if event is None else event.revision


def creation(events: Sequence[Event]) -> Event | None:
    """The event that created the object; None when the events do not reach back that far."""
    return next((one for one in events if one.type is EventType.OBJECT_CREATED), None)


def by(event: Event) -> str:
    """`by alice at 2026-01-02T03:04:05Z`, or that the state predates the recording."""
    if event.stamp.verb == BASELINE_VERB:
        return "before it was first recorded"
    return f"by {author(event)} at {when(event.stamp.time)}"


def asked_by(deletion: Event) -> str:
    """The author of a deletion, from the first event that shows it.

    No update or patch deletes: where a recorded one shows the deletion, its request was lost.
    """
    if doubts.is_change(deletion):
        return (
            f"by {records.named_author(records.IMPORTER_USER)}, before {when(deletion.stamp.time)}"
        )
    return by(deletion)


def is_only_asked(events: Sequence[Event]) -> bool:
    """Whether a deletion, the newest event, may only have begun: its answer was not recorded.

    An object with finalizers stays, as does a pod on a node until its kubelet confirms its end.
    """
    deletion, *before = events
    origin = deletion.stamp.origin
    is_unanswered = origin is not None and Loss.NO_DELETE_STATE.value in origin.losses
    if not is_unanswered or deletion.stamp.verb != "delete" or not before:
        return False
    last = before[0].object
    is_by_kubelet = deletion.stamp.actor.user.startswith(USERS_OF_NODES)
    is_running = core.has_node(last) and not core.is_finished(last)
    return bool(meta.finalizers(last)) or (is_running and not is_by_kubelet)


USERS_OF_NODES = "system:node:"
"""The beginning of the names under which kubelets write."""


def author(event: Event) -> str:
    """The user who requested a write, or a note that the source does not name one."""
    return records.named_author(event.stamp.actor.user)


def made(event: Event | None, text: str, *children: Reason) -> Reason:
    """A reason with the event that caused it, if that event is known."""
    if event is None:
        return Reason(text=text, children=children)
    sentence = f"{text}, {by(event)}"
    return Reason(text=sentence, children=children, revision=event.revision, about=event.key)


def deletion(events: Sequence[Event], text: str, *children: Reason) -> Reason:
    """The deletion with which the events of an object end, and who asked for it.

    An object with finalizers goes later, when a controller removes the last one.
    """
    last, *before = events
    mark = since(before, meta.is_deleting)
    if mark is None or author(mark) == author(last):
        return made(last, text, *children)
    end = made(last, "it went when its last finalizer was removed")
    request = f"{text}, {asked_by(mark)}"
    return Reason(text=request, children=(end, *children), revision=mark.revision, about=mark.key)


def when(instant: Instant) -> str:
    """The instant as people write it, with fractions of a second only if they are not zero."""
    if instant % SECOND:
        return timestamps.micro_text(instant)
    return timestamps.seconds_text(instant)


def lasted(begin: Instant, end: Instant) -> str:
    """The time between two instants, as kubectl writes ages."""
    return durations.duration_text(max(0, end - begin))


def is_recorded(events: Sequence[Event]) -> bool:
    """Whether the states of an object, newest first, come from a recording."""
    return bool(events) and events[0].stamp.origin is not None


def is_printed(events: Sequence[Event]) -> bool:
    """Whether only those fields of the object's newest state are known that kubectl printed."""
    origin = events[0].stamp.origin if events else None
    return origin is not None and Loss.PRINTED.value in origin.losses


def is_only_requested(event: Event) -> bool:
    """Whether nothing is known of an object but the request that created it, without its answer."""
    origin = event.stamp.origin
    return (
        origin is not None
        and event.type is EventType.OBJECT_CREATED
        and Loss.NO_UID.value in origin.losses
        and not event.object.get("status")
    )
