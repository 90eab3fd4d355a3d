"""Detection and correction of server clocks that contradict the order of changes.

The requests of one user are assumed to be dated by one clock. A change with a lower version was
stored before one with a higher version, so the first was requested before the second was answered;
and an object records the second of its creation. These facts limit the offsets between the clocks
of two users. The system of difference constraints is solved with as few wrong clocks as possible.

Example: a, at version 5, is requested at 10.0 s; b, at version 6, is answered at 8.0 s: the clock
of the user of a is at least 2 s ahead of that of the user of b.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from app.adapters.history import times
from app.adapters.history.joining.spool import Spool
from app.adapters.history.reading import Notes
from app.domain.log.records import Loss, Record, join_losses
from app.domain.values import counts, timestamps
from app.domain.values.timestamps import Instant

USERS_MAX = 150
"""With more users than this, clocks are not corrected: the cost grows cubically."""

USERS_NAMED = 6
"""Users with a wrong clock that a note names."""

_OBJECTS = "\0"
"""The pseudo user for the times in objects, which servers write in whole seconds."""

_BY_USER, _BY_KIND = False, True
"""The clock that dates a request: one per user, or one per user and kind."""

_Limits: TypeAlias = dict[tuple[str, str], float]
"""By first and second user, the maximum offset by which the second clock is ahead of the first."""


def settle(spool: Spool, notes: Notes) -> bool:
    """Correct the times of users whose clock is wrong; True if there was one.

    Their records are marked with the loss of contradicting times, and a note gives the offset. If
    one clock per user does not fit, one per user and kind is tried, because a log may be combined
    from several. If neither fits, nothing is changed.
    """
    spool.database.create_function("clock_of", 3, _clock_of, deterministic=True)
    for by_kind in (_BY_USER, _BY_KIND):
        limits, counts = _limits(spool, by_kind=by_kind)
        if all(limit >= -times.CLOCK_SKEW for limit in limits.values()):
            return False
        users = sorted(counts, key=lambda user: (user != _OBJECTS, -counts[user], user))
        if len(users) > USERS_MAX:
            return False
        offsets = _offsets(limits, users)
        if offsets is None and users[0] == _OBJECTS:
            # The times in objects come from the server that created them, whose clock may be wrong.
            del users[0]
            between = {pair: limit for pair, limit in limits.items() if _OBJECTS not in pair}
            offsets = _offsets(between, users)
        if offsets is not None:
            _correct(spool, offsets, by_kind=by_kind)
            _note_offsets(offsets, users[0], notes)
            return bool(offsets)
    return False


def _clock_of(who: str, key: str, by_kind: int) -> str:
    return f"{who} for {key.split(chr(0))[1]}" if by_kind else who


def _note_offsets(offsets: Mapping[str, int], first: str, notes: Notes) -> None:
    reference = "the objects tell" if first == _OBJECTS else f"the clock of {first} shows"
    alike: dict[int, list[str]] = {}
    for user, offset in offsets.items():
        alike.setdefault(round(offset / times.CLOCK_SKEW), []).append(user)
    for users in alike.values():
        middle = statistics.median(offsets[user] for user in users)
        notes.add(
            f"the requests of {_listed(sorted(users))} are dated "
            f"{middle / timestamps.SECOND:+.1f} s from what {reference}: their times are "
            "corrected, a guess"
        )


def _listed(users: list[str]) -> str:
    more = len(users) - USERS_NAMED
    rest = f" and {more} more {counts.plural(more, 'user')}" if more > 0 else ""
    return ", ".join(users[:USERS_NAMED]) + rest


def _limits(spool: Spool, *, by_kind: bool) -> tuple[_Limits, dict[str, int]]:
    """The limits of clock offsets, and the number of writes per user."""
    limits: _Limits = {}
    counts: dict[str, int] = {}
    newest: dict[str, int] = {}
    """The latest request time per user, among the changes before the current one."""
    last_epoch = None
    for epoch, who, came, answered, made in _writes(spool, by_kind=by_kind):
        if epoch != last_epoch:
            last_epoch = epoch
            newest.clear()
        counts[who] = counts.get(who, 0) + 1
        for other, latest in newest.items():
            _lower(limits, (other, who), answered - latest)
        newest[who] = max(came, newest.get(who, came))
        if made is not None:
            counts[_OBJECTS] = counts.get(_OBJECTS, 0) + 1
            _lower(limits, (_OBJECTS, who), answered - made)
            _lower(limits, (who, _OBJECTS), made + timestamps.SECOND - came)
    return limits, counts


def _lower(limits: _Limits, pair: tuple[str, str], limit: float) -> None:
    if limit < limits.get(pair, math.inf):
        limits[pair] = limit


def _writes(spool: Spool, *, by_kind: bool) -> Iterator[tuple[int, str, int, int, int | None]]:
    """The epoch, user, request time, response time and creation time of each write, in order.

    Of several responses with one version of one object, only one changed something. Only their
    times tell which, so all of them are left out.
    """
    yield from spool.database.execute(
        "SELECT epoch, min(clock_of(who, key, ?)), min(asked), min(time), min(made) FROM record "
        "WHERE own <> '' AND exact AND actor AND asked IS NOT NULL "
        "AND op IN ('ADDED', 'MODIFIED', 'DELETED') GROUP BY epoch, own, key "
        "HAVING count(*) = 1 ORDER BY epoch, own",
        (by_kind,),
    )


def _offsets(limits: _Limits, users: list[str]) -> Mapping[str, int] | None:
    """The offsets by which the wrong clocks are ahead, by user; None when no offsets fit."""
    apart = _shortest(limits, users)
    if any(apart[user, user] < -times.CLOCK_SKEW for user in users):
        return None
    settled: dict[str, int] = {users[0]: 0}
    for user in users[1:]:
        low = max(settled[other] - apart[user, other] for other in settled)
        high = min(settled[other] + apart[other, user] for other in settled)
        settled[user] = _nearest(low, high, settled.values())
    return {user: offset for user, offset in settled.items() if offset}


def _nearest(low: float, high: float, known: Iterable[int]) -> int:
    """Zero if it nearly fits, else a fitting offset of another clock, else the middle."""
    if low - times.CLOCK_SKEW <= 0 <= high + times.CLOCK_SKEW:
        return 0
    for offset in known:
        if low <= offset <= high:
            return offset
    if math.isinf(low) or math.isinf(high):
        return round(high if math.isinf(low) else low)
    return round((low + high) / 2)


def _shortest(limits: _Limits, users: list[str]) -> _Limits:
    """The limits of clock offsets, tightened through all other clocks (shortest paths)."""
    apart = {
        (one, other): limits.get((one, other), math.inf if one != other else 0.0)
        for one in users
        for other in users
    }
    for through in users:
        for one in users:
            first = apart[one, through]
            if math.isinf(first):
                continue
            for other in users:
                way = first + apart[through, other]
                if way < apart[one, other]:
                    apart[one, other] = way
    return apart


def _correct(spool: Spool, offsets: Mapping[str, int], *, by_kind: bool) -> None:
    """Correct the times in the records of these users."""
    changed = []
    for user, offset in offsets.items():
        cursor = spool.database.execute(
            "SELECT row, head FROM record WHERE actor AND clock_of(who, key, ?) = ?",
            (by_kind, user),
        )
        for row, head in cursor:
            record = _moved(spool.record_in(head), offset)
            changed.append((record.observed_at, record.asked_at, spool.column_of(record), row))
    spool.database.execute("BEGIN")
    spool.database.executemany(
        "UPDATE record SET time = ?, asked = ?, head = ? WHERE row = ?", changed
    )
    spool.database.execute("COMMIT")


def _moved(record: Record, offset: int) -> Record:
    observed, came = record.observed_at, record.asked_at
    return msgspec.structs.replace(
        record,
        observed_at=None if observed is None else Instant(observed - offset),
        asked_at=None if came is None else Instant(came - offset),
        losses=join_losses(record.losses, (Loss.TIMES_CONTRADICT,)),
    )
