"""Connections to one database: a bounded pool whose sessions have time limits."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import asyncpg
from anyio import CancelScope
from asyncpg.pool import PoolConnectionProxy

from app.adapters.postgres import schema
from app.adapters.postgres.names import APPLICATION_NAME
from app.adapters.postgres.problems import Unreachable, check_address, translated


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseBounds:
    """The number of connections, and the time that each kind of wait may take.

    `acquire_seconds` is for a free connection. `lock_seconds` is for a row that another session has
    locked (PostgreSQL's lock_timeout). `statement_seconds` is for one statement (statement_timeout;
    the program gives up a little later when the server does not answer at all).
    `idle_in_transaction_seconds` is how long a session may leave a transaction open before the
    server ends it, so that a stuck process cannot hold the log forever.
    """

    connections_max: int = 10
    connect_seconds: float = 10.0
    acquire_seconds: float = 10.0
    lock_seconds: float = 5.0
    statement_seconds: float = 60.0
    idle_in_transaction_seconds: float = 15.0
    close_seconds: float = 5.0


class Database:
    """The connection pool. Create it by `open_database`; every use translates the driver's errors.

    The last used connection is kept outside of the pool for the next use, because an acquire costs
    the driver as much as a short statement. When a caller waits for a connection, or after an
    error, the connection goes back to the pool, which replaces broken ones.
    """

    def __init__(self, pool: asyncpg.Pool, url: str, bounds: DatabaseBounds) -> None:
        self._pool = pool
        self.url = url
        self.bounds = bounds
        self._resting: PoolConnectionProxy | None = None
        self._waiting = 0
        self._is_ours = False

    def confirm(self) -> None:
        """Record that the schema is ours; from now on missing objects mean that callers wait."""
        self._is_ours = True

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[PoolConnectionProxy]:
        """A connection. Raises LogUnavailable and WrongDatabase.

        After `confirm`, missing objects and rights raise LogUnavailable: see `translated`.
        """
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
        """Release the kept connection and end all connections, within `close_seconds`.

        Nothing is left to close where the server has ended them: that is no error.
        """
        with CancelScope(shield=True):
            with anyio.move_on_after(self.bounds.close_seconds), suppress(*Unreachable):
                if self._resting is not None:
                    await self._pool.release(self._resting)
                await self._pool.close()
            self._pool.terminate()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PoolConnectionProxy]:
        """A transaction: committed on leaving, rolled back after an error."""
        async with self.connection() as connection:
            # Not the driver's transaction: when cancelled while it begins, it stays open.
            await connection.execute("BEGIN")
            yield connection
            await connection.execute("COMMIT")

    async def _roll_back(self, connection: PoolConnectionProxy) -> None:
        """Roll back an open transaction, also when the begin or the commit was cancelled.

        The pool would roll back as well, but reports it as a mistake of the program. A connection
        that does not answer is ended: a driver that waits for it fails where nobody listens.
        """
        seconds = self.bounds.close_seconds
        with anyio.move_on_after(seconds, shield=True) as scope, suppress(*Unreachable):
            # A cancelled statement may still be answered; the state is known only after that.
            with suppress(asyncpg.InFailedSQLTransactionError):
                await connection.execute("SELECT")
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")
        if scope.cancelled_caught and _is_open(connection):
            connection.terminate()


@asynccontextmanager
async def open_database(
    url: str,
    bounds: DatabaseBounds = DatabaseBounds(),
    *,
    session: Mapping[str, str] = {},
    connections: type[asyncpg.Connection] = asyncpg.Connection,
) -> AsyncIterator[Database]:
    """Connect, check the schema, and close on leaving.

    `session` holds PostgreSQL settings for each session, in addition to the usual ones;
    `connections` is the class of the connections. Raises LogUnavailable when no server answers,
    WrongDatabase when the schema is not ours.
    """
    check_address(url)
    with translated():
        pool = await asyncpg.create_pool(
            url,
            connection_class=connections,
            # The schema check below connects. With a minimum, a task of the driver would restore
            # the connections, and would write to the log whenever the database is away.
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
    """False for a connection that has ended; the pool has already taken it back."""
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        return False


def session_settings(bounds: DatabaseBounds) -> dict[str, str]:
    """The PostgreSQL settings of each session."""
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
    # JSON is sent as the given bytes; nothing decodes, checks or rewrites it here. `bytes` returns
    # the bytes that the driver has read themselves, without a call of Python for each value.
    await connection.set_type_codec(
        "json", schema="pg_catalog", encoder=_as_is, decoder=bytes, format="binary"
    )


async def _reset(connection: asyncpg.Connection) -> None:
    """Do nothing: sessions change no settings, and `connection` rolls open transactions back.

    The driver's own reset costs a round trip for each release of a connection.
    """


def _as_is(value: bytes) -> bytes:
    return value
