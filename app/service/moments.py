"""Moments as users write them: a revision such as `42`, or an instant in one of many forms."""

from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec
from anyio import lowlevel

from app.domain.errors import InputError, RevisionTooLarge
from app.domain.log import Event, EventType, HistoryId, HistoryInfo, ObjectKey, Revision, forks
from app.domain.log.event import EVENTS_PAGE
from app.domain.values import moments, timestamps
from app.domain.values.moments import AS_OF, HistoryEnd, Resolved
from app.domain.values.timestamps import Instant, TimestampError
from app.ports import EventLog

is_revision = moments.is_revision

_STATES = 8
"""Events of one object that are read at once in search of its last state."""

_WRITE_PAGE = 100
"""Events that are read at once to find the end of a write."""


def parse_instant(moment: str, end: Instant | None = None) -> Instant:
    """The instant of a moment that is not a revision, in a history that ends at `end`.

    Raises InputError for a moment that is neither.
    """
    try:
        return moments.parse(moment, end)
    except TimestampError as problem:
        raise moments.refusal(moment) from problem


def end_of(info: HistoryInfo, last: Instant, now: Instant) -> HistoryEnd:
    """The end from which relative moments count in a history with its last event at `last`."""
    if info.is_decided_elsewhere or info.has_own_time:
        return HistoryEnd(instant=last)
    return HistoryEnd(instant=max(last, now), is_now=True)


async def find_end(log: EventLog, info: HistoryInfo, now: Instant) -> HistoryEnd:
    """The end from which relative moments of a history count."""
    return end_of(info, (await log.head(info.id)).time, now)


def absolute(moment: str, end: HistoryEnd) -> str:
    """The moment, as an instant if it is relative. Raises InputError."""
    if not moment or is_revision(moment):
        return moment
    try:
        return moments.absolute(moment, end)
    except TimestampError as problem:
        raise moments.refusal(moment) from problem


def resolved(texts: Sequence[str], end: HistoryEnd) -> Resolved:
    """The moments in absolute form, with what the relative ones name. Raises InputError."""
    meanings = (moments.meaning(text, end) for text in texts)
    return Resolved(
        moments=tuple(absolute(text, end) for text in texts),
        meanings=tuple(dict.fromkeys(filter(None, meanings))),
    )


def with_meaning(body: bytes, texts: Iterable[str], end: HistoryEnd) -> bytes:
    """An answer in JSON with the field `asOf`, which says what the relative moments name.

    Answers that are no JSON object, and those about other moments, stay as they are.
    """
    meanings = dict.fromkeys(filter(None, (moments.meaning(text, end) for text in texts)))
    if not meanings or not body.startswith(b'{"'):
        return body
    return msgspec.json.encode({AS_OF: "; ".join(meanings)})[:-1] + b"," + body[1:]


async def find_revision(
    log: EventLog, info: HistoryInfo, moment: str, now: Instant | None = None
) -> Revision:
    """The last revision up to the moment. Raises InputError, RevisionTooLarge beyond the end.

    Without `now`, the present instant, a relative moment is refused.
    """
    if not is_revision(moment):
        return await log.revision_at(info.id, await _instant(log, info, moment, now))
    last = (await log.head(info.id)).revision
    if int(moment) > last:
        raise RevisionTooLarge(f"history {info.name!r} has no revision {moment}: it ends at {last}")
    return Revision(int(moment))


async def before(
    log: EventLog, info: HistoryInfo, moment: str, now: Instant | None = None
) -> Revision:
    """The revision after which a part begins whose first moment is given; perhaps in the future.

    Raises InputError.
    """
    if is_revision(moment):
        return Revision(max(int(moment) - 1, 0))
    instant = await _instant(log, info, moment, now)
    return await log.revision_at(info.id, Instant(instant - 1))


async def hash_at(log: EventLog, info: HistoryInfo, revision: Revision) -> bytes:
    """The hash of the event at a revision; empty when there is none."""
    before = Revision(revision - 1)
    rows = await log.read_stored(info.id, after=before, limit=1, until=revision)
    return rows[0].event.hash if rows else b""


async def end_of_write(log: EventLog, info: HistoryInfo, revision: Revision) -> Revision:
    """The last revision of the controller's write that a revision is part of, or the revision.

    A controller writes a decision and what follows from it at once. The cluster was never as it is
    between these events, and no other process would write the rest.
    """
    after, last, within = Revision(max(revision - 1, 0)), revision, None
    while revision and (page := await log.read(info.id, after=after, limit=_WRITE_PAGE)):
        for event in page:
            stamp = event.stamp
            identity = (stamp.time, stamp.actor.user, stamp.observed)
            within = within or identity
            if identity != within or not stamp.observed:
                return last
            last = event.revision
        after = last
    return last


async def history_at(log: EventLog, info: HistoryInfo, revision: Revision) -> HistoryInfo:
    """The history as it was at a revision: without a later fork, and with the settings before it.

    A copy may hold the events of several forks.
    """
    if info.beginning is None or (info.is_fork and revision > info.parent_revision):
        return info
    head = await log.head(info.id)
    then, last = [
        await log.read_object(info.id, forks.FORK, until=until, limit=1)
        for until in (revision, head.revision)
    ]
    if [event.revision for event in then] == [event.revision for event in last]:
        return info
    return forks.as_of(info, then[0] if then else None)


async def settings_over_time(
    log: EventLog, info: HistoryInfo
) -> list[tuple[Revision, HistoryInfo]]:
    """The history with the settings that its events were decided under, each from a revision on.

    The first entry is that of its beginning, and each fork gives another one. The history itself is
    the last entry.
    """
    if info.beginning is None:
        return [(Revision(0), info)]

    def is_own(event: Event) -> bool:
        return info.is_fork and event.revision == info.parent_revision + 1

    head = await log.head(info.id)
    events = await log.read_object(info.id, forks.FORK, until=head.revision, limit=EVENTS_PAGE)
    entries = [(Revision(0), forks.as_of(info, None))]
    entries += [
        (event.revision, info if is_own(event) else forks.as_of(info, event))
        for event in reversed(events)
    ]
    return entries


async def check_inside(
    log: EventLog,
    info: HistoryInfo,
    moment: str,
    now: Instant | None = None,
    *,
    is_past: bool = False,
) -> None:
    """Raise RevisionTooLarge for an instant about which a history says nothing.

    For a recording that is an instant after its end. With `is_past` it is, for other histories, an
    instant after their end and after `now`.
    """
    if is_revision(moment):
        return
    end = (await log.head(info.id)).time
    instant = await _instant(log, info, moment, now)
    if not info.is_recorded:
        if now is None or not is_past:
            return
        end = max(end, now)
    if instant > end:
        ends = timestamps.micro_text(end)
        raise RevisionTooLarge(
            f"history {info.name!r} ends at {ends}, before {timestamps.micro_text(instant)}"
        )


async def find_time(
    log: EventLog, info: HistoryInfo, moment: str, revision: Revision, now: Instant | None = None
) -> Instant:
    """The given instant, or the time of the event at the given revision."""
    if not is_revision(moment):
        return await _instant(log, info, moment, now)
    return await time_of(log, info, revision)


async def _instant(log: EventLog, info: HistoryInfo, moment: str, now: Instant | None) -> Instant:
    """The instant of a moment that is not a revision."""
    end = None if now is None else (await find_end(log, info, now)).instant
    return parse_instant(moment, end)


async def time_of(log: EventLog, info: HistoryInfo, revision: Revision) -> Instant:
    """The time of the event at that revision; 0 in an empty history.

    Before the first event, where a history begins, it is the time of that.
    """
    at = max(revision, Revision(1))
    events = await log.read(info.id, after=Revision(at - 1), until=at, limit=1)
    return events[0].stamp.time if events else Instant(0)


async def last_state(
    log: EventLog, history: HistoryId, key: ObjectKey, until: Revision
) -> Event | None:
    """The last event about the state of an object up to a revision, or None.

    Observed requests and gaps have the key of their object, too, and are left out.
    """
    while events := await log.read_object(history, key, until=until, limit=_STATES):
        for event in events:
            if event.is_about_object:
                return event
        until = Revision(events[-1].revision - 1)
    return None


async def objects_at(
    log: EventLog,
    info: HistoryInfo,
    revision: Revision,
    objects_max: int,
    *,
    kinds: Sequence[tuple[str | None, str | None]] = ((None, None),),
) -> AsyncIterator[Event]:
    """The last event of each object that existed at a revision, sorted by key within a kind.

    `kinds` are groups and resources, None for any; the log is read for no other kinds. Raises
    InputError when there are more than `objects_max`.
    """
    count = 0
    for group, resource in kinds:
        after: ObjectKey | None = None
        while page := await log.objects_at(
            info.id, revision, group=group, resource=resource, after=after, limit=EVENTS_PAGE
        ):
            count += len(page)
            if count > objects_max:
                raise InputError(
                    f"more than {objects_max} objects exist at revision {revision}",
                    cure="raise REDRA_PAST_OBJECTS_MAX",
                )
            for event in page:
                yield event
            # A log in memory answers without waiting.
            await lowlevel.checkpoint()
            after = page[-1].key


async def life_of(
    log: EventLog, info: HistoryInfo, key: ObjectKey, at: Revision | None = None
) -> str:
    """The revision at which a missing object is made later, or was deleted; empty if neither."""
    head = await log.head(info.id)
    at = head.revision if at is None else at
    events = await log.read_object(info.id, key, until=head.revision, limit=EVENTS_PAGE)
    made = [each for each in events if each.type is EventType.OBJECT_CREATED]
    gone = [each for each in events if each.type is EventType.OBJECT_DELETED]
    if later := [each for each in made if each.revision > at]:
        return f"it is created at {_place(later[-1])}"
    if earlier := [each for each in gone if each.revision <= at]:
        return f"it was deleted at {_place(earlier[0])}"
    return ""


def _place(event: Event) -> str:
    return f"revision {event.revision}, {timestamps.micro_text(event.stamp.time)}"
