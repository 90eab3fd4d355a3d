"""The recorded acts of controllers, what they say of attempts, and their refused requests."""

from dataclasses import dataclass

from app.analysis.replay.facts import FAILED_SCHEDULING
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import condition_types, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant, TimestampError


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One recorded write that shows a controller at work; `known` is when others could see it.

    `user` is the name of its author, recorded or derived from the write; `is_guessed` is True when
    the recording does not identify the author.
    """

    event: Event
    before: JsonObject | None
    known: Instant
    user: str
    is_guessed: bool

    @property
    def requested(self) -> Instant:
        """The instant of the controller's request, as far as recorded."""
        origin = self.event.stamp.origin
        requested = 0 if origin is None else origin.asked
        return Instant(min(requested, self.known) if requested else self.known)

    @property
    def answered(self) -> Instant:
        """The instant of the answer, as far as recorded; others may have seen the write before."""
        origin = self.event.stamp.origin
        return Instant(max(self.known, 0 if origin is None else origin.answered))


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRequest:
    """A request without a write: its user, its instant and its object.

    The name of the object is empty where the server would have generated it.
    """

    user: str
    at: Instant
    key: ObjectKey


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """A failed attempt as the scheduler's Event reports it: the pod's uid, and the instant.

    `note` is empty for a repeated report; `version` is that of the pod which the attempt saw.
    """

    pod: str
    instant: Instant
    note: str
    version: str


def report_of(act: Act) -> FailedAttempt | None:
    """The failed attempt that a write of an Event object reports; None if it reports another."""
    said = core.event_object(act.event.object)
    if said.reason != FAILED_SCHEDULING:
        return None
    last = said.series.last_observed_time if said.series else ""
    try:
        instant = Instant(min(timestamps.parse(last or said.event_time or ""), act.known))
    except TimestampError:
        instant = act.requested
    return FailedAttempt(
        pod=said.subject.uid,
        instant=instant,
        # Parity: controllers.md 4.3, a repeated report keeps the note of the first.
        note="" if act.event.type is not EventType.OBJECT_CREATED else said.text,
        version=said.subject.resource_version,
    )


def refusal_of(pod: JsonView) -> str | None:
    """The message of the condition of a pod that could not be placed; None without it."""
    conditions = (
        each for each in meta.conditions(pod) if each.type == condition_types.POD_SCHEDULED
    )
    return next((each.message for each in conditions if each.status == "False"), None)


def version_number(text: str) -> int:
    """A resource version as a number; 0 when there is none to compare."""
    return int(text) if text.isascii() and text.isdigit() else 0
