"""The reader of audit logs: one record per change. Parity: history-formats.md 4."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from app.adapters.history import kinds, times
from app.adapters.history.audit import event as audit_event
from app.adapters.history.audit import mapping
from app.adapters.history.audit.event import AuditEvent, ObjectRef
from app.adapters.history.audit.mapping import RequestOutcome
from app.adapters.history.joining import contradictions
from app.adapters.history.reading import Notes, ReadOptions
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Op, Record, TimeQuality, comparable_version
from app.domain.objects.write import intake
from app.domain.values import counts, json_tree, timestamps
from app.domain.values.fields import meta
from app.domain.values.timestamps import Instant, TimestampError

SETTLE_AFTER = 5 * timestamps.SECOND
"""Microseconds after which the responses in a log count as older than all later lines."""

_EARLIEST = Instant(0)
"""The response time of a line without a time, for comparisons in the order of lines."""

_STORED_TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d(?:\.\d+)?)"
    r" ?(?P<zone>UTC|Z|[+-]00(?::?00)?)?"
)
_ZERO_DAY = "0001-01-01T00:00:00"
"""The zero time, as servers write a time that is not set."""


@dataclass(slots=True)
class _ReadingState:
    """The state while reading the lines of a log: among others the highest version per key.

    `changed_types` maps each type with a change to the time of its earliest change. `answered`
    holds recent (stage time, version) pairs, `settled` the highest version of older ones: they
    reveal a store that was restored from a backup.
    """

    highest: dict[ObjectKey, str] = field(default_factory=dict)
    changed_types: dict[tuple[str, str], Instant] = field(default_factory=dict)
    answered: deque[tuple[Instant, str]] = field(default_factory=deque)
    settled: str = ""
    newest_time: Instant = Instant(0)
    epoch: int = 0
    bodies: int = 0
    unseen: int = 0


def read(source: ByteSource, number: int, options: ReadOptions, notes: Notes) -> Iterator[Record]:
    """The records of one log, in the order of its lines. Raises InputError naming the line.

    A write without a recorded body becomes a gap of its object.
    """
    state = _ReadingState()
    index = seen = 0
    for position, event in audit_event.read_events(source, options.unwrap, notes):
        seen += 1
        try:
            times = _times(event, f"{source.name}:{position}", notes)
            records = _readable(event, times[1], state, options, notes, source.name, position)
        except InputError as problem:
            notes.refuse(problem)
            continue
        for matched in records:
            index += 1
            record = _placed(matched, event, times, position, (number, index), state)
            if matched[0].unlike:
                notes.contradict(contradictions.of_answer(record, matched[0].unlike))
            yield record
    if seen and not index:
        raise InputError(
            f"in its {counts.of(seen, 'event')} there are only reads, or stages without an "
            "answer: none is a change",
            place=source.name,
            cure="record writes of resource.k8s.io, pods and nodes with level RequestResponse",
        )
    if state.unseen and not state.bodies:
        notes.add(
            f"{source.name}: none of its {state.unseen} writes has a body: each is a gap of a "
            "known object"
        )
    elif state.unseen:
        notes.add(f"{source.name}: {state.unseen} writes were recorded without their body")


def _readable(
    event: AuditEvent,
    answered: Instant | None,
    state: _ReadingState,
    options: ReadOptions,
    notes: Notes,
    source: str,
    position: str,
) -> list[tuple[RequestOutcome, ObjectRef, str]]:
    """The outcomes of an event. Raises InputError for a body that cannot be read."""
    try:
        return list(_records(event, answered, state, options, notes, source))
    except (ValueError, RecursionError) as problem:
        raise InputError(
            f"a body of the event cannot be read: {problem}", place=f"{source}:{position}"
        ) from problem


def _records(
    event: AuditEvent,
    answered: Instant | None,
    state: _ReadingState,
    options: ReadOptions,
    notes: Notes,
    source: str,
) -> Iterator[tuple[RequestOutcome, ObjectRef, str]]:
    reference = event.object_ref or ObjectRef()
    for outcome in mapping.outcomes(event):
        if outcome.op is Op.GAP:
            state.unseen += 1
        elif outcome.op is not Op.CONTEXT:
            state.bodies += 1
            place = (reference.api_group, reference.resource)
            at = answered or _EARLIEST
            state.changed_types[place] = min(at, state.changed_types.get(place, at))
        yield outcome, reference, source
    if event.verb == "list" and options.audit_list_baseline:
        place = (reference.api_group, reference.resource)
        first = state.changed_types.get(place)
        is_late = first is not None and (answered is None or answered > first)
        listed = None if is_late else mapping.listed_items(event)
        if listed is None:
            return
        items, is_complete = listed
        if not is_complete:
            notes.add(f"{source}: the baseline of {reference.resource} is from a filtered list")
        for item in items:
            state.bodies += 1
            yield _baseline(item), reference, source


def _baseline(tree: json_tree.JsonObject) -> RequestOutcome:
    return RequestOutcome(
        op=Op.BASELINE,
        namespace=meta.namespace(tree),
        name=meta.name(tree),
        uid=meta.uid(tree),
        tree=tree,
    )


def _placed(
    matched: tuple[RequestOutcome, ObjectRef, str],
    event: AuditEvent,
    times: tuple[Instant | None, Instant | None],
    position: str,
    order: tuple[int, int],
    state: _ReadingState,
) -> Record:
    outcome, reference, source = matched
    received, stage_time = times
    is_cluster = kinds.is_cluster_resource(reference.resource)
    resource = "pods" if reference.resource == "bindings" else reference.resource
    key = ObjectKey(
        reference.api_group,
        resource,
        "" if is_cluster else outcome.namespace,
        outcome.name,
    )
    tree = outcome.tree
    own = ""
    if not outcome.is_after:
        own = outcome.floor or meta.resource_version(tree or {})
    comparable = comparable_version(own)
    if outcome.op is Op.ADDED and comparable and stage_time is not None:
        _notice_restore(state, comparable, received)
    if comparable:
        if stage_time is not None:
            _note_answer(state, stage_time, comparable)
        if comparable > state.highest.get(key, ""):
            state.highest[key] = comparable
        place = comparable
    else:
        # Earlier responses are found by their times, because lines may be in any order.
        before = state.highest.get(key, "") if stage_time is None else ""
        place = max(before, comparable_version(outcome.floor))
    version = reference.api_version
    group = reference.api_group
    if tree is not None and tree.get("apiVersion"):
        group, version = kinds.split_version(meta.api_version(tree))
    return Record(
        source=source,
        position=position,
        op=outcome.op,
        group=group,
        version=version,
        resource=key.resource,
        kind=meta.kind(tree) if tree is not None else outcome.kind,
        namespace=key.namespace,
        name=key.name,
        uid=outcome.uid,
        resource_version=own,
        upon=outcome.upon,
        meant=outcome.meant,
        sent=outcome.sent,
        object=tree,
        object_quality=outcome.quality,
        observed_at=stage_time,
        asked_at=received,
        time_quality=TimeQuality.EXACT if stage_time is not None else TimeQuality.NONE,
        order_key=(state.epoch, place, 0 if comparable else 1, *order),
        subresource=reference.subresource,
        actor=event.actor(),
        account=event.account(),
        verb=event.verb,
        request_id=event.audit_id,
        losses=_losses(outcome, event, has_time=bool(stage_time or received)),
        code=event.code,
        message=outcome.message,
        effect=outcome.effect,
    )


def _losses(outcome: RequestOutcome, event: AuditEvent, *, has_time: bool) -> tuple[Loss, ...]:
    """The losses of a record. Servers write the microseconds of a time also where they are zero."""
    losses = {*outcome.losses}
    if outcome.unlike:
        losses.add(Loss.IMMUTABLE)
    if not has_time:
        losses.add(Loss.NO_TIME)
    elif event.stage_timestamp and "." not in event.stage_timestamp:
        losses.add(Loss.COARSE_TIME)
    return tuple(sorted(losses))


def _note_answer(state: _ReadingState, stage_time: Instant, version: str) -> None:
    """Record a response.

    Responses older than `SETTLE_AFTER` are reduced to their highest version.
    """
    state.newest_time = max(state.newest_time, stage_time)
    state.answered.append((stage_time, version))
    horizon = state.newest_time - SETTLE_AFTER
    while state.answered and state.answered[0][0] < horizon:
        state.settled = max(state.settled, state.answered.popleft()[1])


def _notice_restore(state: _ReadingState, version: str, received: Instant | None) -> None:
    """Begin a new epoch when a create has a lower version than the responses long before it."""
    if version >= state.settled:
        return
    if received is None or state.newest_time - received > SETTLE_AFTER - times.CLOCK_SKEW:
        return
    state.epoch += 1
    state.answered.clear()
    state.settled = ""
    state.newest_time = Instant(0)
    state.highest.clear()


def _times(event: AuditEvent, place: str, notes: Notes) -> tuple[Instant | None, Instant | None]:
    """The times of the request and of its response. Raises InputError naming the field."""
    named = (
        ("requestReceivedTimestamp", event.request_received_timestamp),
        ("stageTimestamp", event.stage_timestamp),
    )
    received, answered = (_instant(text, name, place, notes) for name, text in named)
    return received, answered


def _instant(text: str, name: str, place: str, notes: Notes) -> Instant | None:
    """The time of a field; None when it is empty or the zero time of Go."""
    if not text or text.startswith(_ZERO_DAY):
        return None
    try:
        # A fast path for the format that servers write.
        if len(text) == 27 and text.endswith("Z"):
            instant = timestamps.from_datetime(datetime.fromisoformat(text))
        else:
            instant = timestamps.parse(_written_out(text, notes))
    except (TimestampError, ValueError) as problem:
        raise InputError(
            f"{name} is {text[:80]!r}, which is not a time",
            place=place,
            cure="repair the time, or leave the line out",
        ) from problem
    intake.check_time(instant, name, place)
    return instant


def _written_out(text: str, notes: Notes) -> str:
    """A time as stores of logs write it, in the form of a server; other text is unchanged.

    Example: `2026-01-02 03:04:05.123456 UTC`. Stores that leave out the zone write UTC.
    """
    match = _STORED_TIME.fullmatch(text)
    if match is None:
        return text
    if not match["zone"]:
        notes.add("times without a zone are taken as UTC")
    return f"{match['day']}T{match['time']}Z"
