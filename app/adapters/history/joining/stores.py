"""Detection of the writes of several stores in one recording, as of several clusters.

A store gives each version to one write, so two objects of a kind never share one. Kinds may have
stores of their own. A single shared version may be a damaged line. A service account has one uid as
long as it exists. So several shared versions, or two uids of one account at one time, show that
requests to several clusters are recorded together, and then any object may be another cluster's.
Parity: api.md 5.
"""

from app.adapters.history import times
from app.adapters.history.joining import contradictions
from app.adapters.history.joining.spool import Spool
from app.adapters.history.reading import Notes
from app.domain.log.records import Loss, Op, Quality, Record, TimeQuality
from app.domain.values import timestamps

SHARED_MIN = 2
"""The least number of versions that two objects of a kind share in a recording of two stores."""

TOKEN_KEPT = 10 * timestamps.SECOND
"""Microseconds for which a server may accept the token of a service account that is gone."""

_CONTROLLERS = "system:serviceaccount:kube-system:"
"""The accounts of the controller manager's loops: one process uses each, with one token."""

_WRITES = frozenset({"create", "update", "patch"})


def note(spool: Spool, notes: Notes) -> None:
    """Mark every record, and note that everything is unsure, if the writes are of several stores.

    Records stay contradicted to the end: no later line tells which cluster it is from.
    """
    sign = _of_versions(spool) or _of_accounts(spool)
    if not sign:
        return
    message = (
        f"{sign}: the recording has the writes of several clusters, which cannot be told apart"
    )
    notes.add(f"{message}; import each log by itself")
    _mark_all(spool)
    spool.put(_gap(spool, message))


def _of_versions(spool: Spool) -> str:
    """The sign that several versions were given to two writes each; empty without it."""
    shared = 0
    for epoch, own in _candidates(spool):
        pair = _sharing(spool, epoch, own)
        shared += pair is not None
        if pair is not None and shared == SHARED_MIN:
            places = f"{pair[0].place} and {pair[1].place}"
            return f"a version was given to the writes in {places}, and another one to two, too"
    return ""


def _of_accounts(spool: Spool) -> str:
    """The sign that a service account had two uids at one time; empty without it."""
    rows = spool.database.execute(
        "SELECT who, account, min(time), max(time) FROM record WHERE account <> '' AND exact "
        "AND time IS NOT NULL GROUP BY who, account ORDER BY who, min(time)"
    )
    last, until = "", 0
    for who, _, begin, end in rows:
        # The second account exists since it was made, so the first was gone by then.
        kept = times.CLOCK_SKEW if who.startswith(_CONTROLLERS) else TOKEN_KEPT
        if who == last and until - begin > kept:
            return f"the requests of {who} are of two accounts with other uids at one time"
        until = max(until, end) if who == last else end
        last = who
    return ""


def _gap(spool: Spool, message: str) -> Record:
    """The gap of everything, before all records."""
    epoch, row = spool.database.execute("SELECT min(epoch), min(row) FROM record").fetchone()
    witness = spool.row(row).record
    return Record(
        source=witness.source,
        position=witness.position,
        op=Op.GAP,
        object_quality=Quality.IDENTITY,
        time_quality=TimeQuality.NONE,
        order_key=(epoch, "", 1, *witness.order_key[3:]),
        losses=(Loss.GAP, Loss.CONTRADICTED),
        message=message,
    )


def _candidates(spool: Spool) -> list[tuple[int, str]]:
    rows: list[tuple[int, str]] = spool.database.execute(
        "SELECT epoch, own FROM record WHERE own <> '' AND actor AND op IN ('ADDED', 'MODIFIED') "
        "GROUP BY epoch, own HAVING count(DISTINCT key) > 1 ORDER BY epoch, own"
    ).fetchall()
    return rows


def _sharing(spool: Spool, epoch: int, own: str) -> tuple[Record, Record] | None:
    """Two writes of different objects of one kind with that version, if there are."""
    rows = spool.database.execute(
        "SELECT head FROM record WHERE epoch = ? AND own = ? AND actor "
        "AND op IN ('ADDED', 'MODIFIED') ORDER BY source, position",
        (epoch, own),
    )
    by_kind: dict[tuple[str, str], Record] = {}
    for (head,) in rows:
        record = spool.record_in(head)
        if not _is_write(record):
            continue
        first = by_kind.setdefault((record.group, record.resource), record)
        if first.key != record.key:
            return first, record
    return None


def _is_write(record: Record) -> bool:
    return record.verb in _WRITES and record.object_quality is Quality.FULL


def _mark_all(spool: Spool) -> None:
    rows = spool.database.execute(
        "SELECT row, head FROM record WHERE op NOT IN (?, ?)", (Op.GAP.value, Op.CONTEXT.value)
    ).fetchall()
    marked = [
        (spool.column_of(contradictions.marked(spool.record_in(head))), row) for row, head in rows
    ]
    spool.database.execute("BEGIN")
    spool.database.executemany("UPDATE record SET head = ? WHERE row = ?", marked)
    spool.database.execute("COMMIT")
