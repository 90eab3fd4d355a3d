"""The scheduler's attempts for one pod: their outcomes, what woke them, and when the next is due.

An attempt that would only repeat what is already written leaves no decision, so more attempts may
have happened than are recorded. Parity: controllers.md 4.1 and 4.3.
"""

from collections.abc import Iterator, Mapping, Sequence

from app.analysis.explain import sources
from app.analysis.explain.reasons import Reason
from app.domain.controllers.scheduling.planning import NAME
from app.domain.controllers.scheduling.queue import waiting_pods
from app.domain.log import Event, EventType
from app.domain.values.fields import decision_body
from app.domain.values.timestamps import SECOND, Instant

SHOWN_MAX = 5
"""The number of attempts shown one by one, the newest first. The JSON has as many."""

_DONE = {
    EventType.OBJECT_CREATED: "was created",
    EventType.OBJECT_UPDATED: "was changed",
    EventType.OBJECT_DELETED: "was deleted",
}


def made_by_scheduler(decisions: Sequence[Event]) -> list[Event]:
    """The attempts among the decisions about a pod, newest first."""
    return [event for event in decisions if decision_body.read(event.object).controller == NAME]


def causes_of(attempts: Sequence[Event]) -> list[int]:
    """The revisions of the events that woke the attempts shown."""
    return [_cause(event) for event in attempts[:SHOWN_MAX]]


def reasons(
    attempts: Sequence[Event], causes: Mapping[int, Event], now: Instant
) -> Iterator[Reason]:
    """The reasons for the attempts of a waiting pod; `causes` maps revisions to their events."""
    if not attempts:
        return
    last, first = attempts[0], attempts[-1]
    # The page already shows the message of the last attempt above these lines.
    known = decision_body.summary_of(last.object).message
    lines = [_line(event, causes, known) for event in attempts[:SHOWN_MAX]]
    count = len(attempts)
    text = "1 attempt is recorded" if count == 1 else f"{count} attempts are recorded"
    if count > 1:
        spent = sources.lasted(first.stamp.time, last.stamp.time)
        text += f" over {spent}, those that repeat the last one left out"
    yield Reason(text=text, children=(*_next(last, now), *lines), count=count)


def _line(event: Event, causes: Mapping[int, Event], known: str) -> Reason:
    """One attempt: its outcome, its message unless that equals `known`, and what woke it."""
    decision = decision_body.read(event.object)
    number = decision.inputs.attempt or 1
    text = f"attempt {number} at {sources.when(event.stamp.time)}: {decision.outcome}"
    message = decision_body.summary_of(event.object).message
    text += f", {message}" if message and message != known else ""
    cause = causes.get(_cause(event))
    woken = () if cause is None else (_woken(cause),)
    return Reason(text=text, children=woken, revision=event.revision)


def _woken(cause: Event) -> Reason:
    if cause.type is EventType.DECISION_RECORDED:
        about = f"{cause.key.namespace}/{cause.key.name}".removeprefix("/")
        text = f"woken by a decision about {about}, made {sources.by(cause)}"
        return Reason(text=text, revision=cause.revision, about=cause.key)
    what = _DONE.get(cause.type, cause.type.value)
    text = f"woken by {sources.path_of(cause.key)}, which {what} {sources.by(cause)}"
    return Reason(text=text, revision=cause.revision, about=cause.key)


def _next(last: Event, now: Instant) -> Iterator[Reason]:
    """When the pod is tried again, as of its last attempt."""
    decision = decision_body.read(last.object)
    count = decision.inputs.attempt or 1
    at = last.stamp.time
    ready = waiting_pods.backoff_end(at, count)
    length = min(waiting_pods.BACKOFF_FIRST << min(count - 1, 10), waiting_pods.BACKOFF_MAX)
    backoff = f"back-off of {length // SECOND} s after attempt {count}"
    if decision.outcome == "Error":
        yield Reason(text=f"tried again at {sources.when(ready)}, whatever happens ({backoff})")
    elif decision.outcome == "Unschedulable":
        flush = waiting_pods.flush_end(at)
        # Parity: controllers.md 4.1: an empty active queue takes pods whose back-off goes on.
        early = (
            f"before {sources.when(ready)} only if no other pod is to be tried ({backoff})"
            if ready > now
            else "at once"
        )
        text = f"tried again when an event may help, {early}; at the latest after "
        yield Reason(text=f"{text}{sources.when(flush)}")


def _cause(event: Event) -> int:
    """The revision that woke the pod; the stamp has the one that began the step."""
    return decision_body.read(event.object).cause or event.stamp.cause
