"""The recorded acts of controllers, what they say of attempts, and their refused requests."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.analysis.replay.traces import is_event_object
from app.domain.controllers.garbage import namespaces, pod_gc
from app.domain.controllers.nodes import readiness
from app.domain.controllers.scheduling import planning, repeated_attempts
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import Event, EventType, ObjectKey, Stamp, refusals
from app.domain.values import condition_types, event_reasons, timestamps
from app.domain.values.fields import core, decision_body, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant, TimestampError

QueueKey: TypeAlias = tuple[str, tuple[str, ...]]
"""The name of a controller's queue, and a key in it."""

_Step = tuple[str, int, str]
"""A step of a controller: its user, the last revision that it had seen, and its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One recorded write that shows a controller at work; `known` is when others could see it.

    `user` is the name of its author, recorded or derived from the write; `is_guessed` is True when
    the recording does not identify the author. `seen` is the instant since when others could see
    the last event that the controller had seen, where the recording names it; `since` that for the
    write before it about its object.
    """

    event: Event
    before: JsonObject | None
    known: Instant
    user: str
    is_guessed: bool
    seen: Instant | None = None
    since: Instant = Instant(0)

    @property
    def requested(self) -> Instant:
        """The instant of the controller's request, as far as recorded.

        A history of redra names the last event that the controller had seen instead.
        """
        if self.seen is not None:
            return Instant(min(self.seen, self.known))
        origin = self.event.stamp.origin
        requested = 0 if origin is None else origin.asked
        return Instant(min(requested, self.known) if requested else self.known)

    def soonest(self, skew: int) -> Instant:
        """The earliest instant at which a run can store it: after the write before it.

        The clock that dates the request may be ahead by `skew`.
        """
        return Instant(min(max(self.requested - skew, self.since + 1), self.known))

    @property
    def words(self) -> str:
        """The act in words, for reports."""
        made, removed = EventType.OBJECT_CREATED, EventType.OBJECT_DELETED
        return {made: "was created", removed: "was removed"}.get(self.event.type, "was changed")

    @property
    def answered(self) -> Instant:
        """The instant of the answer, as far as recorded; others may have seen the write before."""
        origin = self.event.stamp.origin
        return Instant(max(self.known, 0 if origin is None else origin.answered))

    @property
    def begun(self) -> Instant:
        """The instant of the act: where a recording shows it, or a history names what it saw."""
        return self.known if self.seen is None else self.requested

    def is_of_plan(self, other: Event) -> bool:
        """Whether a history of redra has both writes as parts of one plan, which was one append."""
        one, two = self.event.stamp, other.stamp
        is_alike = (one.time, one.observed, one.actor) == (two.time, two.observed, two.actor)
        return self.seen is not None and is_alike


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRequest:
    """A request without a write: its user, its instant and its object.

    The name of the object is empty where the server would have generated it. `is_rejected` is
    whether it failed; others, such as a dry run, only changed nothing. `is_unmade` is whether it
    would have made an object, and was refused.
    """

    user: str
    at: Instant
    key: ObjectKey
    is_rejected: bool = True
    is_unmade: bool = False

    @classmethod
    def of(cls, event: Event) -> "RefusedRequest":
        """The request that an event of a recording holds."""
        origin, user = event.stamp.origin, event.stamp.actor.user
        at = Instant(event.stamp.time if origin is None else origin.asked)
        return cls(
            user=user,
            at=at,
            key=event.key,
            is_rejected=refusals.is_rejected(event),
            is_unmade=refusals.is_unmade(event),
        )


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
    event_object = core.event_object(act.event.object)
    if event_object.reason != event_reasons.FAILED_SCHEDULING:
        return None
    last = event_object.series.last_observed_time if event_object.series else ""
    try:
        instant = Instant(min(timestamps.parse(last or event_object.event_time or ""), act.known))
    except TimestampError:
        instant = act.requested
    if act.seen is not None:
        instant = act.requested
    return FailedAttempt(
        pod=event_object.subject.uid,
        instant=instant,
        # Parity: controllers.md 4.3, a repeated report keeps the note of the first.
        note="" if act.event.type is not EventType.OBJECT_CREATED else event_object.text,
        version=event_object.subject.resource_version,
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


def version_of(event: Event) -> int:
    """The recorded version of what a write stored; 0 when the recording has none."""
    origin = event.stamp.origin
    return version_number("" if origin is None else origin.resource_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedAttempt:
    """An attempt to place a pod of which a history of redra holds the decision.

    `at` is the last instant of the state that the scheduler had seen. `message` is empty for an
    attempt that wrote nothing: the condition of the pod stated the reason already.
    """

    at: Instant
    is_placed: bool
    message: str = ""


def decided_attempts(decision: Event, at: Instant) -> Iterator[tuple[str, DecidedAttempt]]:
    """The attempts of a scheduler's decision, each with the uid of its pod."""
    body = decision_body.read(decision.object)
    if body.controller != planning.NAME or body.outcome == "Skipped":
        return
    if body.outcome == repeated_attempts.OUTCOME:
        for each in repeated_attempts.read(decision_body.inputs(decision.object)):
            yield each.uid, DecidedAttempt(at=at, is_placed=False)
        return
    is_placed = body.outcome not in ("Unschedulable", "Error")
    note = messages.note(decision_body.summary_of(decision.object).message)
    yield body.inputs.uid, DecidedAttempt(at=at, is_placed=is_placed, message=note)


def keys_of(act: Act, roles: Sequence[str]) -> Iterator[QueueKey]:
    """The queues and keys of controllers with these `roles` that an act shows at work.

    They are those of namespaces, whose controller deletes kind after kind and reports at the end,
    of nodes, of pods that nobody else removes, of evictions and of the statuses of rules.
    """
    key, event = act.event.key, act.event
    event_object = core.event_object(event.object) if is_event_object(key) else None
    if "namespaces" in roles:
        yield namespaces.NAME, (key.namespace or key.name,)
        if key.namespace:
            yield namespaces.CONTENT, (key.namespace, key.group, key.resource)
        else:
            yield namespaces.END, (key.name,)
    elif readiness.NAME in roles:
        yield from _of_node(act)
    elif pod_gc.NAME in roles:
        for reason in pod_gc.REASONS:
            yield pod_gc.NAME, (reason, key.namespace, key.name, event.uid)
    elif "eviction" in roles or "rule-status" in roles:
        if key.resource == "devicetaintrules":
            yield "rule-status", (key.name, event.uid)
        elif key.resource == "pods":
            yield "eviction", (key.namespace, key.name, event.uid)
        elif event_object is not None and event_object.text.startswith("Cancelling"):
            subject = event_object.subject
            yield "eviction/cancelled", (subject.namespace, subject.name, subject.uid)


def _of_node(act: Act) -> Iterator[QueueKey]:
    """The kinds of writes of the node controller that an act shows.

    Its Events wait for the limit of a client of their own, and nothing depends on them: another log
    does not show what the controller had seen when it made one.
    """
    key, event = act.event.key, act.event
    if is_event_object(key):
        if act.seen is not None:
            yield readiness.SAID, (core.event_object(event.object).involved_object.name,)
    elif key.resource == "nodes" and act.before is not None:
        if core.taints(act.before) != core.taints(event.object):
            yield readiness.TAINTS, (key.name,)
        if meta.labels(act.before) != meta.labels(event.object):
            yield readiness.LABELS, (key.name,)


class Observations:
    """The states that the controllers of a redra history had seen when they acted.

    Each write of a controller names the last revision that it had seen (`Stamp.observed`). Other
    writers may have stored events between that revision and the write: the controller did not see
    them. Its own writes of the same plans may lie between them, too, and are no news to it.
    """

    def __init__(self) -> None:
        self._first = 0
        self._events: list[tuple[_Step, Instant]] = []
        self._unseen: dict[_Step, tuple[int, Instant | None]] = {}
        self._last: Stamp | None = None

    def add(self, event: Event, known: Instant) -> None:
        """Adds the next event; events are read without gaps."""
        if not self._events:
            self._first = event.revision
        self._events.append((self._step_of(event), known))
        self._last = event.stamp

    def instants(self) -> Iterator[Instant]:
        """The instants since when others could see the events."""
        return (known for _, known in self._events)

    def last_seen(self) -> Instant | None:
        """The last instant of the state that the writer of the last event had seen.

        None when the event does not name that state, or the state is older than the first event.
        """
        step, known = self._events[-1]
        _, observed, _ = step
        if not observed or observed + 1 < self._first:
            return None
        number, unseen = self._unseen.get(step, (observed + 1 - self._first, None))
        while unseen is None and number < len(self._events):
            other, instant = self._events[number]
            if other != step:
                unseen = instant
            number += 1
        self._unseen[step] = number, unseen
        return known if unseen is None else Instant(unseen - 1)

    def _step_of(self, event: Event) -> _Step:
        """The writer of an event, what it had seen, and its controller, which a decision names."""
        stamp, last = event.stamp, self._last
        name = ""
        if event.type is EventType.DECISION_RECORDED:
            name = decision_body.read(event.object).controller
        elif last is not None and (last.actor.user, last.observed, last.time) == (
            stamp.actor.user,
            stamp.observed,
            stamp.time,
        ):
            (_, _, name), _ = self._events[-1]
        return stamp.actor.user, stamp.observed, name
