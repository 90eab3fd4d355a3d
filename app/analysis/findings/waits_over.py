"""Ends of waits: the event with which a pod that was refused waits no more, as text."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.analysis.explain import attempts, questions, sources
from app.analysis.scheduler_messages import first_cause
from app.domain.log import Event, EventType, Revision, records
from app.domain.values import condition_types
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView

_WRITES = {
    EventType.OBJECT_CREATED: "was created",
    EventType.OBJECT_UPDATED: "was changed",
    EventType.OBJECT_DELETED: "was deleted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEnd:
    """The event of a pod after which it waits no more, and what the event did."""

    event: Event
    text: str
    is_placed: bool = False


def end_of(events: Sequence[Event], refused: Revision) -> WaitEnd | None:
    """The end of the wait of a pod that was refused at a revision; `events` are newest first.

    None while it waits, and where the events do not reach back to the refusal: an earlier one may
    be the end. None, too, for a pod that was refused for another cause in between: the end of its
    wait is then not the end of this cause.
    """
    if not events or events[-1].revision > refused:
        return None
    later = [event for event in reversed(events) if event.revision > refused]
    then = next(event for event in events if event.revision <= refused)
    cause = _cause(then.object)
    for number, event in enumerate(later):
        if event.type is EventType.OBJECT_DELETED or meta.is_deleting(event.object):
            return _deletion(later[number:])
        if core.has_node(event.object):
            text = f"placed on node {core.node_name(event.object)} at "
            return WaitEnd(event=event, text=text + sources.when(event.stamp.time), is_placed=True)
        if core.is_finished(event.object) or _cause(event.object) not in ("", cause):
            return None
    return None


def _deletion(later: Sequence[Event]) -> WaitEnd:
    """The deletion with which states begin, the oldest first, and who asked for it.

    Where no user is recorded who marked the pod, that is who deleted it, if the log shows that.
    """
    mark = later[0]
    if mark.stamp.actor.user == records.IMPORTER_USER:
        gone = (event for event in later if event.type is EventType.OBJECT_DELETED)
        mark = next(gone, mark)
    return WaitEnd(event=mark, text=f"deleted {sources.asked_by(mark)}")


def waking_revision(decisions: Sequence[Event], refused: Revision, end: WaitEnd) -> Revision | None:
    """The revision of the event that woke a pod for the attempt with which it was placed.

    `decisions` are those about the pod, newest first. None for an attempt that came when a wait was
    over, and where the history has no decision about it.
    """
    own = attempts.made_by_scheduler(decisions)
    for attempt in attempts.of_decisions(own[::-1])[::-1]:
        if refused < attempt.begun.revision <= end.event.revision:
            return Revision(attempt.cause) if attempt.cause > refused else None
    return None


def waking_text(cause: Event) -> str:
    """The write after which a pod was tried again, as text; empty for an event that is none."""
    write = _WRITES.get(cause.type)
    return f"{questions.named(cause.key)} {write} {sources.by(cause)}" if write else ""


def _cause(pod: JsonView) -> str:
    """The cause in the condition of a pod that a scheduler has refused; empty for another pod."""
    placed = meta.condition(pod, condition_types.POD_SCHEDULED)
    if placed is None or placed.status != "False":
        return ""
    return first_cause(placed.message)
