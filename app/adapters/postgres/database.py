"""Connections to one database: a bounded pool whose sessions have bounds of their own."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import asyncpg
from anyio import CancelScope
from asyncpg.pool import PoolConnectionProxy

from app.adapters.postgres import schema
from app.adapters.postgres.names import APPLICATION_NAME
from app.adapters.postgres.problems import Unreachable, translated


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseBounds:
    """How many connections, and how long each kind of waiting may take.

    `acquire_seconds`: for a free connection. `lock_seconds`: for a row that another session has
    locked (PostgreSQL's lock_timeout). `statement_seconds`: for one statement (statement_timeout;
    the program gives up a little later when the server does not answer at all).
    `idle_in_transaction_seconds`: how long a session of ours may leave a transaction open before
    the server ends it, so that a stuck process cannot hold the log for ever.
    """

    connections_max: int = 10
    connect_seconds: float = 10.0
    acquire_seconds: float = 10.0
    lock_seconds: float = 5.0
    statement_seconds: float = 60.0
    idle_in_transaction_seconds: float = 15.0
    close_seconds: float = 5.0


class Database:
    """The pool. Made by `open_database`; every use translates the driver's errors.

    The connection that was used last rests here, outside of the pool, for the next use: lending one
    costs the driver as much as a short statement. When somebody waits, or after an error, it goes
    back to the pool, which sees to broken ones.
    """

    def __init__(self, pool: asyncpg.Pool, url: str, bounds: DatabaseBounds) -> None:
        self._pool = pool
        self.url = url
        self.bounds = bounds
        self._resting: PoolConnectionProxy | None = None
        self._waiting = 0
        self._is_ours = False

    def confirm(self) -> None:
        """The schema was found to be ours: what is missing later is waited for."""
        self._is_ours = True

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[PoolConnectionProxy]:
        """A connection of the pool. Raises LogUnavailable, and WrongDatabase until confirmed."""
        with translated(was_ours=self._is_ours):
            connection = await self._take()
            try:
                yield connection
            except BaseException as problem:
                is_cancelled = isinstance(problem, anyio.get_cancelled_exc_class())
                if is_cancelled or (_is_open(connection) and connection.is_in_transaction()):
                    await self._roll_back(connection)
                await self._pool.release(connection)
                raise
            if self._resting is None and not self._waiting and _is_open(connection):
                self._resting = connection
            else:
                await self._pool.release(connection)

    async def _take(self) -> PoolConnectionProxy:
        connection, self._resting = self._resting, None
        if connection is not None:
            if _is_open(connection):
                return connection
            await self._pool.release(connection)
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=self.bounds.acquire_seconds)
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """Give back what rests and end all connections, within the bound."""
        with CancelScope(shield=True):
            with anyio.move_on_after(self.bounds.close_seconds):
                if self._resting is not None:
                    await self._pool.release(self._resting)
                await self._pool.close()
            self._pool.terminate()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PoolConnectionProxy]:
        """A transaction: committed on leaving, rolled back by an error."""
        async with self.connection() as connection:
            # Not the driver's own: cancelled while it begins, it is given back open.
            await connection.execute("BEGIN")
            yield connection
            await connection.execute("COMMIT")

    async def _roll_back(self, connection: PoolConnectionProxy) -> None:
        """Leave no transaction open, also when cancelled while it began or was committed.

        The pool would roll back as well, but reports it as a mistake of the program.
        """
        seconds = self.bounds.close_seconds
        with anyio.move_on_after(seconds, shield=True), suppress(*Unreachable):
            # What was cancelled may still be answered; only then the state is known.
            with suppress(asyncpg.InFailedSQLTransactionError):
                await connection.execute("SELECT")
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")


@asynccontextmanager
async def open_database(
    url: str, bounds: DatabaseBounds = DatabaseBounds(), *, session: Mapping[str, str] = {}
) -> AsyncIterator[Database]:
    """Connect, check the schema, and close on leaving.

    `session` are settings of PostgreSQL with which each session starts, besides the usual ones.
    Raises LogUnavailable when no server answers, WrongDatabase when the schema is not ours.
    """
    with translated():
        pool = await asyncpg.create_pool(
            url,
            # The schema check below connects; a floor would be restored by a task of the driver's
            # own, which writes to the log whenever the database is away.
            min_size=0,
            max_size=bounds.connections_max,
            max_inactive_connection_lifetime=60.0,
            init=_initialise,
            reset=_reset,
            timeout=bounds.connect_seconds,
            command_timeout=bounds.statement_seconds + 5.0,
            max_cached_statement_lifetime=0,
            server_settings=session_settings(bounds) | dict(session),
        )
    database = Database(pool, url, bounds)
    try:
        async with database.connection() as connection:
            await schema.check(connection)
        database.confirm()
        yield database
    finally:
        await database.close()


def _is_open(connection: PoolConnectionProxy) -> bool:
    """False for a connection that has ended; the pool has taken it back by itself then."""
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        return False


def session_settings(bounds: DatabaseBounds) -> dict[str, str]:
    """The settings with which each session starts."""
    return {
        "application_name": APPLICATION_NAME,
        "lock_timeout": _milliseconds(bounds.lock_seconds),
        "statement_timeout": _milliseconds(bounds.statement_seconds),
        "idle_in_transaction_session_timeout": _milliseconds(bounds.idle_in_transaction_seconds),
        "jit": "off",
        # Statements name one history by a parameter: planning again for each value only costs.
        "plan_cache_mode": "force_generic_plan",
        "timezone": "UTC",
        "synchronous_commit": "on",
    }


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))


async def _initialise(connection: asyncpg.Connection) -> None:
    # JSON travels as the bytes that were given: nothing decodes, checks or rewrites it here.
    await connection.set_type_codec(
        "json", schema="pg_catalog", encoder=_as_is, decoder=_as_is, format="binary"
    )


async def _reset(connection: asyncpg.Connection) -> None:
    """Nothing to undo: sessions change no settings, and open transactions are rolled back anyway.

    The driver's own reset costs a round trip each time a connection is given back.
    """


def _as_is(value: bytes) -> bytes:
    return value
