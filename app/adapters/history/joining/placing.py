"""The order of records: positions for those without a version, and writes that changed nothing.

This module works on the spool, before records are resolved.

Parity: history-formats.md 3.2, 4.3, 4.4.
"""

import statistics
from bisect import bisect_left, bisect_right
from typing import TypeAlias

import msgspec

from app.adapters.history.joining import (
    acceptance,
    clocks,
    contradictions,
    endings,
    lost_dependencies,
    odd_times,
    statuses,
    stores,
    stretches,
)
from app.adapters.history.joining.reservations import Reservations, moved_after
from app.adapters.history.joining.spool import (
    ORDER_BY_REVISION,
    ORDER_BY_SOURCE,
    ORDER_BY_TIME,
    Spool,
)
from app.adapters.history.reading import Notes
from app.domain.log.records import (
    BoundEffect,
    Contradiction,
    Effect,
    Loss,
    Op,
    Record,
    TerminatingEffect,
    join_losses,
)
from app.domain.values import counts, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject

SKEW_REPORTED = 100_000
"""The least difference between two clocks that is reported, in microseconds."""


def place(spool: Spool, *, one_counter: bool, notes: Notes) -> None:
    """Decide the order of the import and set the position of every record."""
    spool.index()
    choose_order(spool, one_counter=one_counter, notes=notes)
    spool.is_coarse = _has_whole_seconds(spool)
    if spool.order == ORDER_BY_REVISION:
        _report_skew(spool, notes)
        _set_aside_late_lists(spool, notes)
        clocks.settle(spool, notes)
        _set_aside_empty_writes(spool, notes)
        stores.note(spool, notes)
        endings.date_collected(spool, notes)
        _place_after(spool, _answer_clocks(spool), notes)
        stretches.note(spool, notes)
        statuses.note(spool, notes)
        lost_dependencies.note(spool, notes)


def _has_whole_seconds(spool: Spool) -> bool:
    """True if every request was answered in the instant in which a second begins."""
    (between,) = spool.database.execute(
        "SELECT count(*) FROM record WHERE actor AND exact AND time % ? <> 0", (timestamps.SECOND,)
    ).fetchone()
    return not between


def choose_order(spool: Spool, *, one_counter: bool, notes: Notes) -> None:
    """Choose the order: by resource version, else by time, else as in the sources.

    Parity: history-formats.md 3.2.
    """
    total, versioned, odd, untimed = spool.database.execute(
        "SELECT count(*), count(nullif(version, '')), 0, sum(time IS NULL) FROM record "
        "WHERE op NOT IN ('GAP', 'CONTEXT')"
    ).fetchone()
    odd = _count_incomparable(spool)
    if total == 0:
        return
    if versioned and not odd and one_counter:
        types = spool.database.execute(
            "SELECT count(DISTINCT substr(key, 1, instr(substr(key, instr(key, char(0)) + 1), "
            "char(0)) + instr(key, char(0)))) FROM record WHERE op NOT IN ('GAP', 'CONTEXT')"
        ).fetchone()[0]
        if types > 1:
            notes.add("resource versions of different types are taken as one counter")
        return
    if odd:
        notes.add(f"{odd} resource versions are not numbers: ordered by time")
    spool.order = ORDER_BY_TIME if not untimed else ORDER_BY_SOURCE
    notes.add(
        "records are ordered by their times"
        if spool.order == ORDER_BY_TIME
        else "records are ordered as they stand in the sources"
    )


def _count_incomparable(spool: Spool) -> int:
    """The number of records whose version is not a number."""
    cursor = spool.database.execute("SELECT head FROM record WHERE sub = 0 AND version = ''")
    return sum(bool(spool.record_in(head).resource_version) for (head,) in cursor)


_Answered: TypeAlias = tuple[int, int, int]
"""The moment of a response: time, number of the source, position in it."""


class _Clock:
    """The highest version answered by a given moment, in one epoch."""

    def __init__(self, answers: list[tuple[_Answered, str]]) -> None:
        answers.sort()
        self.moments = [moment for moment, _ in answers]
        self.newest: list[str] = []
        highest = ""
        for _, version in answers:
            highest = max(highest, version)
            self.newest.append(highest)
        self.versions = sorted(version for _, version in answers)

    def version_by(self, time: int | None, source: int, position: int) -> str:
        """The highest version answered by a moment; empty before the first response.

        Of the responses at the same instant, those at earlier positions count.
        """
        if time is None:
            return ""
        index = bisect_right(self.moments, (time, source, position))
        return self.newest[index - 1] if index else ""

    def below(self, version: str) -> str:
        """The highest version below the given one."""
        index = bisect_left(self.versions, version)
        return self.versions[index - 1] if index else ""


def _answer_clocks(spool: Spool) -> dict[int, _Clock]:
    answers: dict[int, list[tuple[_Answered, str]]] = {}
    requests: dict[int, list[tuple[int | None, int | None]]] = {}
    cursor = spool.database.execute(
        "SELECT epoch, asked, time, source, position, own FROM record "
        "WHERE own <> '' AND exact AND time IS NOT NULL AND op <> 'BASELINE' ORDER BY epoch, own"
    )
    for epoch, requested, time, source, position, own in cursor:
        answers.setdefault(epoch, []).append(((time, source, position), own))
        requests.setdefault(epoch, []).append((requested, time))
    # Writes that change nothing return old versions late. They do not falsify the clock, because it
    # uses the highest version. A single answer that is dated too early would.
    for epoch, places in answers.items():
        for number in sorted(odd_times.outliers(requests[epoch]), reverse=True):
            del places[number]
    return {epoch: _Clock(offsets) for epoch, offsets in answers.items()}


def _report_skew(spool: Spool, notes: Notes) -> None:
    """Report the difference between the clocks of logs: the median at adjacent versions."""
    apart: dict[tuple[int, int], list[int]] = {}
    last: tuple[int, int] | None = None
    cursor = spool.database.execute(
        "SELECT source, time FROM record WHERE own <> '' AND exact AND actor AND time IS NOT NULL "
        "ORDER BY epoch, version"
    )
    for source, time in cursor:
        if last is not None and last[0] != source:
            pair = (min(source, last[0]), max(source, last[0]))
            ahead = time - last[1] if source > last[0] else last[1] - time
            apart.setdefault(pair, []).append(ahead)
        last = (source, time)
    for (first, second), skews in sorted(apart.items()):
        skew = int(statistics.median(skews))
        if abs(skew) >= SKEW_REPORTED:
            notes.add(
                f"the clock of log {second + 1} is {skew / 1_000_000:+.3f} s from that of log "
                f"{first + 1} (median of {len(skews)})"
            )


def _set_aside_late_lists(spool: Spool, notes: Notes) -> None:
    """Remove lists later than the first change of their type: they do not show the baseline.

    Their times decide which came first, because lines may be in any order.
    """
    listed = spool.database.execute(
        "SELECT row, epoch, source, time, key FROM record "
        "WHERE op = 'BASELINE' AND actor AND time IS NOT NULL"
    ).fetchall()
    changed: dict[tuple[int, int, str], int | None] = {}
    late = []
    for row, epoch, source, time, key in listed:
        group, resource, *_ = key.split("\0")
        place = (epoch, source, f"{group}\0{resource}\0")
        if place not in changed:
            changed[place] = spool.database.execute(
                "SELECT min(time) FROM record WHERE epoch = ? AND source = ? AND key >= ? "
                "AND key < ? AND actor AND op IN ('ADDED', 'MODIFIED', 'DELETED')",
                (*place, place[2][:-1] + "\1"),
            ).fetchone()[0]
        first = changed[place]
        if first is not None and time > first:
            late.append((row,))
    spool.database.executemany("DELETE FROM record WHERE row = ?", late)
    if late:
        notes.count("objects of lists after the first change of their kind, left out", len(late))


def _set_aside_empty_writes(spool: Spool, notes: Notes) -> None:
    """Mark writes that changed nothing: all but the first with the same version of a key.

    One that shows other content than the first one is a change all the same, without a version.
    A deletion always changes something. Older servers answer it with the version before it, so it
    has none of its own then.
    """
    cursor = spool.database.execute(
        "SELECT row, epoch, key, own, head FROM record "
        "WHERE actor AND own <> '' AND op IN ('ADDED', 'MODIFIED', 'DELETED') "
        "ORDER BY epoch, key, own, op <> 'ADDED', op = 'DELETED', time, source, position"
    )
    outlived = _outlived(spool)
    known: tuple[object, ...] = ()
    first = 0
    end: Record | None = None
    moved = []
    unversioned = []
    doubted: list[tuple[bytes, int]] = []
    for row, epoch, key, own, head in cursor:
        record = spool.record_in(head)
        begins = (epoch, key, own) != known
        if begins:
            known = (epoch, key, own)
            first, end = row, None
        is_end = record.op is Op.DELETED and end is None
        end = record if is_end else end
        if begins and row not in outlived:
            continue
        if is_end:
            unversioned.append((spool.column_of(_without_version(record)), row))
            continue
        shown = spool.row(first)
        contradiction = contradictions.find([shown, spool.row(row)])
        if contradiction is not None:
            notes.contradict(contradiction)
        if contradiction is not None and shown.record.request_id != record.request_id:
            # It shows what it changed, so its version is not that of the other request.
            changing = _without_version(contradictions.marked(record))
            unversioned.append((spool.column_of(changing), row))
            continue
        if contradiction is not None:
            doubted.append((spool.column_of(contradictions.marked(shown.record)), first))
        again = None if end is None else acceptance.removed_twice(end, record)
        if again is not None:
            notes.contradict(again)
            record = contradictions.marked(record)
        record = msgspec.structs.replace(record, op=Op.CONTEXT, message="nothing changed")
        moved.append((spool.column_of(record), row))
    spool.database.execute("BEGIN")
    spool.database.executemany(
        "UPDATE record SET op = 'CONTEXT', sub = 1, own = '', head = ?, body = NULL WHERE row = ?",
        moved,
    )
    spool.database.executemany("UPDATE record SET head = ? WHERE row = ?", doubted)
    spool.database.executemany(
        "UPDATE record SET sub = 1, own = '', head = ? WHERE row = ?", unversioned
    )
    spool.database.execute("COMMIT")
    if moved:
        notes.count("writes that changed nothing", len(moved))


def _without_version(record: Record) -> Record:
    losses = join_losses(record.losses, (Loss.NO_RV,))
    return msgspec.structs.replace(record, losses=losses, resource_version="")


def _outlived(spool: Spool) -> set[int]:
    """The requests of deletions that another source shows as a version that exists."""
    cursor = spool.database.execute(
        "SELECT row FROM record AS ended WHERE actor AND own <> '' AND op = 'DELETED' AND EXISTS ("
        "SELECT 1 FROM record AS shown WHERE shown.key = ended.key AND shown.epoch = ended.epoch "
        "AND shown.own = ended.own AND NOT shown.actor AND shown.op IN ('MODIFIED', 'BASELINE'))"
    )
    return {row for (row,) in cursor}


def _place_after(spool: Spool, answered: dict[int, _Clock], notes: Notes) -> None:
    """Set the position of each record without a version.

    If another source shows the change, its version is used. Otherwise the record follows the
    versions that were answered by its time, between the previous and the next version of its key.
    """
    rows = spool.database.execute(
        "SELECT row, epoch, version, key, uid, op, time, source, position, head FROM record "
        "WHERE sub > 0 "
        "ORDER BY epoch, version, sub, coalesce(time, 0), source, position"
    ).fetchall()
    used_rows: set[int] = set()
    guessed = 0
    reservations = Reservations(spool)
    early = 0
    spool.database.execute("BEGIN")
    for row, epoch, version, key, uid, op, time, source, position, head in rows:
        record = spool.record_in(head)
        if op in ("MODIFIED", "DELETED"):
            # A pod is bound once. The response may come after other writes to the pod, so the
            # versions known by then do not limit the position of the binding.
            lower = (
                ""
                if isinstance(record.effect, BoundEffect)
                else _known_by(spool, key, version, record)
            )
            witness = _witness(spool, used_rows, key, lower, uid, record)
            if witness is not None:
                used_rows.add(witness[0])
                losses = tuple(loss for loss in record.losses if loss is not Loss.NO_RV)
                seen = msgspec.structs.replace(record, losses=losses)
                spool.database.execute(
                    "UPDATE record SET version = ?, own = ?, sub = 0, head = ? WHERE row = ?",
                    (witness[1], witness[1], spool.column_of(seen), row),
                )
                continue
        if op == "GAP" and not record.actor:
            continue
        clock = answered.get(epoch)
        following: str | None = None
        if op != "CONTEXT":
            guessed += 1
            before, following = _between(spool, key, uid, version, record)
            binding = None if following else _other_binding(spool, key, uid, record)
            if binding is None:
                version = before
            else:
                # No state shows the binding, so only its time determines its position.
                notes.contradict(binding)
                marked = contradictions.marked(record, Loss.IMMUTABLE)
                head = spool.column_of(marked)
                spool.database.execute("UPDATE record SET head = ? WHERE row = ?", (head, row))
        estimate = max(version, clock.version_by(time, source, position) if clock else "")
        if following and estimate >= following and clock:
            estimate = max(version, clock.below(following))
        if isinstance(record.effect, BoundEffect):
            reservation = reservations.after(record, estimate, following)
            if reservation is not None:
                early += 1
                estimate = reservation.version
                _date(spool, row, moved_after(record, reservation))
        spool.database.execute("UPDATE record SET version = ? WHERE row = ?", (estimate, row))
    spool.database.execute("COMMIT")
    if early:
        notes.count(
            "bindings dated less than a second before their reservations, placed after them", early
        )
    if guessed:
        changes = counts.of(guessed, "change")
        notes.add(f"{changes} without a version, placed by time, which is a guess")


def _date(spool: Spool, row: int, record: Record) -> None:
    """Replace a record by one with other times."""
    spool.database.execute(
        "UPDATE record SET time = ?, asked = ?, head = ? WHERE row = ?",
        (record.observed_at, record.asked_at, spool.column_of(record), row),
    )


def _known_by(spool: Spool, key: str, version: str, record: Record) -> str:
    """The highest version of the key that was answered before the response to a request."""
    if record.actor is None or record.observed_at is None:
        return version
    (newest,) = spool.database.execute(
        "SELECT max(own) FROM record WHERE key = ? AND epoch = ? AND exact AND time < ?",
        (key, record.order_key[0], record.observed_at),
    ).fetchone()
    return max(version, newest or "")


def _between(
    spool: Spool, key: str, uid: str, version: str, record: Record
) -> tuple[str, str | None]:
    """The versions of the key between which a change without a version lies.

    Stored states decide first: a pod has no node before its binding, and a deleted object is not
    written. Otherwise a request follows the versions answered by its time (and the creation),
    regardless of the order of lines. `version` is the position that the source gives.
    """
    time = record.observed_at if record.actor is not None else None
    cursor = spool.database.execute(
        "SELECT own, op, time, uid, body FROM record WHERE key = ? AND epoch = ? AND own > ? "
        "AND op NOT IN ('CONTEXT', 'GAP') ORDER BY own",
        (key, record.order_key[0], "" if time is not None else version),
    )
    lower = "" if time is not None else version
    for own, op, answered, owner, body in cursor:
        if time is None:
            return lower, own
        if uid and owner and owner != uid:
            continue
        is_after = _is_afterwards(record, spool.tree_in(body)) if uid else None
        if is_after is None:
            is_made = bool(uid) and op in ("ADDED", "BASELINE")
            is_after = not is_made and (answered or 0) > time
        if is_after:
            return lower, own
        lower = own
    return lower, None


def _other_binding(spool: Spool, key: str, uid: str, record: Record) -> Contradiction | None:
    """The contradiction of a binding with a stored state of the pod on another node."""
    effect = record.effect
    if not isinstance(effect, BoundEffect) or not uid:
        return None
    cursor = spool.database.execute(
        "SELECT own, uid, head, body FROM record WHERE key = ? AND epoch = ? AND own <> '' "
        "AND op NOT IN ('CONTEXT', 'GAP') ORDER BY own",
        (key, record.order_key[0]),
    )
    for _, owner, head, body in cursor:
        node = core.node_name(spool.tree_in(body) or {})
        if owner == uid and node and node != effect.node:
            other = spool.record_in(head)
            return Contradiction(
                key=record.key,
                version=other.resource_version,
                first=record.place,
                second=other.place,
                path="spec.nodeName",
            )
    return None


def _is_afterwards(record: Record, tree: JsonObject | None) -> bool | None:
    """True if a stored state is after the change, False if before it, None if unknown."""
    if record.op is Op.DELETED:
        return False
    if tree is None or not isinstance(record.effect, BoundEffect | TerminatingEffect):
        return None
    return fits(record.op, record.effect, Op.MODIFIED, tree)


def _witness(
    spool: Spool, used_rows: set[int], key: str, lower: str, uid: str, record: Record
) -> tuple[int, str] | None:
    """The row and version of a record of the same change in another source; None without one."""
    cursor = spool.database.execute(
        "SELECT row, own, uid, op, body FROM record AS seen WHERE key = ? AND own > ? "
        "AND NOT actor AND op IN ('MODIFIED', 'DELETED') AND NOT EXISTS (SELECT 1 FROM record "
        "AS told WHERE told.key = seen.key AND told.own = seen.own AND told.actor) ORDER BY own",
        (key, lower),
    )
    for row, own, seen_uid, op, body in cursor:
        if row in used_rows or (uid and seen_uid != uid):
            continue
        tree = spool.tree_in(body) or {}
        if fits(record.op, record.effect, Op(op), tree):
            return row, own
    return None


def fits(op: Op, effect: Effect | None, seen: Op, tree: JsonObject) -> bool:
    """True if an observed record can be the change of a request without a version."""
    if op is Op.DELETED or seen is Op.DELETED:
        return op is seen
    if isinstance(effect, BoundEffect):
        return core.node_name(tree) == effect.node
    if isinstance(effect, TerminatingEffect):
        return bool(meta.deletion_timestamp(tree))
    return True
