"""Leases as rows, timed by the clock of the database, which all processes share.

Epochs come from the head row, so that no two holders of leases in a history ever have the same
epoch. An append locks the lease rows that it carries, then the head; a take-over locks in the same
order. The first one makes the other wait, so a take-over never falls between the check of an append
and its commit. A new lease refers to its history, which it locks before the head, as a deletion
does.
"""

from datetime import timedelta

import anyio

from app.adapters.postgres.database import Database
from app.adapters.postgres.problems import no_history
from app.adapters.postgres.statements import REFER
from app.domain.log import HistoryId, LeaseToken

FIND = """
SELECT epoch, holder, until > clock_timestamp() AS is_running
FROM leases WHERE history = $1 AND name = $2 FOR UPDATE
"""
"""The lease, locked until the end of the transaction."""

NEXT_EPOCH = "UPDATE log_heads SET epoch = epoch + 1 WHERE history = $1 RETURNING epoch"
"""A new epoch."""

INSERT = """
INSERT INTO leases (history, name, epoch, holder, until)
VALUES ($1, $2, $3, $4, clock_timestamp() + $5)
ON CONFLICT (history, name) DO NOTHING
RETURNING epoch
"""
"""Insert a lease that has no holder; no row when another session was faster."""

HAND_OVER = """
UPDATE leases SET epoch = $3, holder = $4, until = clock_timestamp() + $5
WHERE history = $1 AND name = $2
"""
"""Give the lease to another holder."""

RENEW = """
UPDATE leases SET until = clock_timestamp() + $4
WHERE history = $1 AND name = $2 AND epoch = $3
RETURNING epoch
"""
"""Prolong a lease; no row when it was taken over."""

RELEASE = "DELETE FROM leases WHERE history = $1 AND name = $2 AND epoch = $3"
"""Release a lease."""

HOLDERS = """
SELECT name, holder FROM leases WHERE history = $1 AND until > clock_timestamp() ORDER BY name
"""
"""The holders of running leases."""


AT_ONCE_MAX = 2
"""Concurrent lease requests of one process. All its controllers renew at the same time, and each
extra connection is a PostgreSQL process that stays for minutes."""


class PostgresLeases:
    """Leases in the database of the log."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turn = anyio.Semaphore(AT_ONCE_MAX)

    async def acquire(
        self, history: HistoryId, name: str, holder: str, *, seconds: float
    ) -> LeaseToken | None:
        """Take the lease when it is free, expired or ours; None when another holder has it."""
        length = timedelta(seconds=seconds)
        async with self._turn, self._database.transaction() as connection:
            row = await connection.fetchrow(FIND, history, name)
            if row is not None and row["holder"] == holder:
                await connection.execute(RENEW, history, name, row["epoch"], length)
                return LeaseToken(name=name, epoch=row["epoch"], holder=holder)
            if row is not None and row["is_running"]:
                return None
            if row is None and await connection.fetchval(REFER, history) is None:
                raise no_history(history)
            epoch = await connection.fetchval(NEXT_EPOCH, history)
            if epoch is None:
                raise no_history(history)
            if row is not None:
                await connection.execute(HAND_OVER, history, name, epoch, holder, length)
            elif await connection.fetchval(INSERT, history, name, epoch, holder, length) is None:
                return None
        return LeaseToken(name=name, epoch=epoch, holder=holder)

    async def renew(self, history: HistoryId, token: LeaseToken, *, seconds: float) -> bool:
        """Prolong the lease; False when it was taken over or released."""
        async with self._turn, self._database.connection() as connection:
            epoch = await connection.fetchval(
                RENEW, history, token.name, token.epoch, timedelta(seconds=seconds)
            )
        return epoch is not None

    async def release(self, history: HistoryId, token: LeaseToken) -> None:
        """Release the lease; nothing happens when it was taken over."""
        async with self._turn, self._database.connection() as connection:
            await connection.execute(RELEASE, history, token.name, token.epoch)

    async def holders(self, history: HistoryId) -> dict[str, str]:
        """The holders of the leases that have not expired."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(HOLDERS, history)
        return {row["name"]: row["holder"] for row in rows}
