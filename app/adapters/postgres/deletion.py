"""The deletion of a history in PostgreSQL, one at a time.

    wait for other deletions ──the same history──▶ Conflict, at once
             │               ──another one, for too long──▶ LogUnavailable
             ▼
    lock row, leases and head ──▶ tombstone ──▶ events ──▶ views, snapshots, the history

A deletion of many events lasts, so a second one of the same history does not wait for its end.
"""

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from app.adapters.postgres import rows as rows_of
from app.adapters.postgres import statements
from app.adapters.postgres.database import Database
from app.adapters.postgres.names import view_name
from app.adapters.postgres.problems import no_history
from app.domain.errors import Conflict, LogUnavailable
from app.domain.log import HistoryId, Revision, Tombstone
from app.domain.log.forks import has_forks
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant
from projections.tables import ALL as VIEW_TABLES

DELETED_AT_ONCE = 20_000
"""Events of a deleted history that one statement removes; bounds the time of the statement."""

_OF_A_HISTORY = (
    "leases", "snapshots", "checkpoints", *(view_name(view.name) for view in VIEW_TABLES),
    "signed_heads", "log_heads", "histories",
)  # fmt: skip
"""Tables from which a deleted history's rows are removed after its events.

A projector locks snapshots and its checkpoint before rows of views; the references come last.
"""

_LAST_REVISION = Revision((1 << 63) - 1)

_BRIEFLY_SECONDS = 0.1
"""The time for which a deletion waits for another one before it looks which history that is."""

_WAIT_BRIEFLY = f"SET LOCAL lock_timeout = {round(_BRIEFLY_SECONDS * 1000)}"
"""Wait no longer than that for the next lock."""

_WAIT_AS_USUAL = "SET LOCAL lock_timeout TO DEFAULT"
"""Wait for locks as long as the session may."""

_DELETE_ALONE = "LOCK TABLE tombstones IN SHARE ROW EXCLUSIVE MODE"
"""Wait until no other transaction deletes a history.

Two of them cannot grant the right to delete events at once, and the end of a history changes the
rows of its copies, which another deletion may hold. An advisory lock could be held by the role that
only reads.
"""

_HOLD_LEASES = "SELECT FROM leases WHERE history = $1 ORDER BY name FOR UPDATE"
"""Lock the leases of a history in the order in which an append locks them, before the head."""

_BURY = """
INSERT INTO tombstones (history, name, seed, settings, created, revision, hash, time, deleted,
                        deleted_by)
SELECT history, name, seed, settings, created, revision, hash, time, $2, $3
FROM histories, LATERAL (
    (SELECT revision, hash, time, 1 AS place FROM log_heads WHERE history = $1)
    UNION ALL
    (SELECT revision, hash, clock, 2 FROM log_events
     WHERE history = $1 ORDER BY revision DESC LIMIT 1)
    UNION ALL
    SELECT parent_revision * is_fork::int, decode(repeat('00', 32), 'hex'), created, 3
    ORDER BY place LIMIT 1
) AS ended
WHERE history = $1
RETURNING *
"""
"""Insert the tombstone of a history. One whose head row is gone ends with its last event."""

_NAME_DELETED = "SELECT set_config('redra.deleted_history', $1, true)"
"""Set the deleted history for the guards of this transaction. ($1 is its number as text.)"""

_MAY_DELETE = "GRANT DELETE ON log_events TO CURRENT_USER"
"""Grant the owner, for this transaction, the right that it revoked from itself."""

_MAY_NOT_DELETE = "REVOKE DELETE ON log_events FROM CURRENT_USER"
"""Revoke the right again."""

_FORGET_EVENTS = "DELETE FROM log_events WHERE history = $1 AND revision <= $2"
"""Delete the events of a history up to a revision."""


class _Occupied(Exception):
    """Another transaction deletes a history."""


async def delete(database: Database, history: HistoryId, *, at: Instant, by: str) -> Tombstone:
    """Delete a history with all that belongs to it; see the port.

    Raises NotFound; Conflict while it has forks or is being deleted; LogUnavailable while another
    history is being deleted for longer than a lock may be waited for.
    """
    for _ in range(max(1, round(database.bounds.lock_seconds / _BRIEFLY_SECONDS))):
        try:
            return await _try(database, history, at, by)
        except _Occupied:
            await _check_not_being_deleted(database, history)
    raise LogUnavailable("another history is being deleted; repeat when it is gone")


async def _try(database: Database, history: HistoryId, at: Instant, by: str) -> Tombstone:
    async with database.transaction() as connection:
        await connection.execute(_WAIT_BRIEFLY)
        try:
            await connection.execute(_DELETE_ALONE)
        except asyncpg.LockNotAvailableError as problem:
            raise _Occupied from problem
        await connection.execute(_WAIT_AS_USUAL)
        # From here to the commit no session can fork the history or take its first lease: both
        # refer to the row. So the leases that are locked next are all that an append can carry.
        name = await connection.fetchval(statements.HOLD_NAME, history)
        await connection.execute(_HOLD_LEASES, history)
        await connection.execute(statements.HOLD, history)
        if name is None:
            raise no_history(history)
        if forks := await connection.fetch(statements.FORKS, history):
            raise has_forks(name, [row["name"] for row in forks])
        buried = await connection.fetchrow(_BURY, history, timestamps.to_datetime(at), by)
        assert buried is not None, "its row is held"
        await _remove(connection, history, buried["revision"])
    return rows_of.tombstone(buried)


async def _remove(connection: PoolConnectionProxy, history: HistoryId, last: int) -> None:
    await connection.execute(_NAME_DELETED, str(history))
    await connection.execute(_MAY_DELETE)
    for until in (*range(DELETED_AT_ONCE, last, DELETED_AT_ONCE), _LAST_REVISION):
        await connection.execute(_FORGET_EVENTS, history, until)
    await connection.execute(_MAY_NOT_DELETE)
    await connection.execute(statements.HOLD_COPIES, history)
    for table in _OF_A_HISTORY:
        await connection.execute(
            f"DELETE FROM {table} WHERE history = $1",  # noqa: S608 (names of our own)
            history,
        )


async def _check_not_being_deleted(database: Database, history: HistoryId) -> None:
    """Raise Conflict while another transaction holds the row, as a deletion does to its end."""
    async with database.connection() as connection:
        try:
            await connection.execute(statements.TOUCH, history)
        except asyncpg.LockNotAvailableError as problem:
            name = await connection.fetchval(statements.NAME, history)
            if name is None:
                raise no_history(history) from problem
            raise Conflict(
                f'history "{name}" is being deleted', resource="histories", name=name
            ) from problem
