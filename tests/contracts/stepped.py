"""Sessions that stop before one of their statements, and the transactions that are played so."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import asyncpg

from app.adapters.postgres.database import Database, DatabaseBounds
from app.adapters.postgres.leases import PostgresLeases
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.views import PostgresViewStore
from app.bootstrap.stores import view_tables
from app.domain.errors import LogUnavailable, NotFound, StaleLease
from app.domain.log import Head, HistoryId, LeaseToken, Revision
from app.domain.log.heads import SignedHead
from app.domain.values.timestamps import Instant
from tests.contracts.building import START, claims

LATER = Instant(START + 5)
VIEW, TABLE = "objects", "view_objects"

STATEMENTS_MAX = 100
"""More than any side has; the last one that is tried does not stop."""


@dataclass(kw_only=True)
class Stepped:
    """A database whose sessions stop before one of their statements, until they may go on."""

    database: Database
    stop: int
    count: int = 0
    reached: anyio.Event = field(default_factory=anyio.Event)
    onward: anyio.Event = field(default_factory=anyio.Event)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator["SteppedConnection"]:
        async with self.database.connection() as connection:
            yield SteppedConnection(self, connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["SteppedConnection"]:
        async with self.database.transaction() as connection:
            yield SteppedConnection(self, connection)

    @property
    def bounds(self) -> DatabaseBounds:
        return self.database.bounds

    def go_on(self, stop: int) -> None:
        """Let the session go on until it is before that statement."""
        waited, self.stop = self.onward, stop
        self.reached, self.onward = anyio.Event(), anyio.Event()
        waited.set()

    async def pass_by(self) -> None:
        if self.count == self.stop:
            self.reached.set()
            await self.onward.wait()
        self.count += 1


class SteppedConnection:
    def __init__(self, stepped: Stepped, connection: Any) -> None:
        self._stepped, self._connection = stepped, connection

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._connection, name)
        if name not in ("execute", "executemany", "fetch", "fetchval", "fetchrow"):
            return method

        async def stop_first(*values: object) -> object:
            await self._stepped.pass_by()
            return await method(*values)

        return stop_first


@dataclass(kw_only=True)
class Scene:
    """A history with rows in every table, and two leases that its writer holds."""

    history: HistoryId
    head: Head
    tokens: list[LeaseToken]


async def scene(database: Database, number: int) -> Scene:
    log, views = PostgresLog(database), views_of(database)
    info = await log.create_history(f"h-{number}", seed=1, settings={}, created=START)
    await log.append(info.id, expected=Head(), events=claims(Head(), 3))
    tokens = []
    for name in ("z", "a"):
        token = await PostgresLeases(database).acquire(info.id, name, "me", seconds=60.0)
        assert token is not None
        tokens.append(token)
    await write(views, info.id, version=1, after=0, rows="one")
    await views.save_snapshot(info.id, VIEW, 1, Revision(1), b"state")
    await log.keep_heads(info.id, [signed(1)])
    return Scene(history=info.id, head=await log.head(info.id), tokens=tokens)


def views_of(database: Any) -> PostgresViewStore:
    return PostgresViewStore(database, view_tables)


def signed(revision: int) -> SignedHead:
    return SignedHead(history="h", revision=Revision(revision), hash="", time="", key="k")


async def write(
    views: PostgresViewStore, history: HistoryId, *, version: int, after: int, rows: str
) -> bool:
    (table,) = view_tables()[VIEW]
    values = {"text": rows, "integer": 1, "json": {}}
    row = {column.name: values[column.type] for column in table.columns}
    return await views.write(
        history, VIEW, version,
        after=Revision(after), revision=Revision(after + 1), state_hash="",
        upserts={TABLE: [row]}, deletes={TABLE: [tuple(row[name] for name in table.key)]},
    )  # fmt: skip


Act = Callable[[Any, Scene], Awaitable[object]]

ACTS: dict[str, Act] = {
    "rows": lambda db, at: write(views_of(db), at.history, version=1, after=1, rows="one"),
    "more rows": lambda db, at: write(views_of(db), at.history, version=1, after=1, rows="two"),
    "a new version": lambda db, at: write(views_of(db), at.history, version=2, after=0, rows="x"),
    "a rebuild": lambda db, at: views_of(db).clear(at.history, VIEW, 1),
    "a snapshot": lambda db, at: views_of(db).save_snapshot(
        at.history, VIEW, 1, Revision(2), b"other"
    ),
    "the same snapshot": lambda db, at: views_of(db).save_snapshot(
        at.history, VIEW, 1, Revision(1), b"other"
    ),
    "a lease": lambda db, at: PostgresLeases(db).acquire(at.history, "m", "you", seconds=60.0),
    "a lease again": lambda db, at: PostgresLeases(db).acquire(at.history, "a", "me", seconds=60.0),
    "events": lambda db, at: PostgresLog(db).append(
        at.history, expected=at.head, events=claims(at.head, 1), leases=at.tokens
    ),
    "a signed head": lambda db, at: PostgresLog(db).keep_heads(at.history, [signed(2)]),
}  # fmt: skip


async def delete(database: Any, at: Scene) -> None:
    await PostgresLog(database).delete_history(at.history, at=LATER, by="alice")


async def outcome(act: Act, database: Any, at: Scene) -> str:
    try:
        await act(database, at)
    except (NotFound, StaleLease):
        return "refused"
    except LogUnavailable as problem:
        return f"failed: {problem}"
    return "done"


async def waiting(watcher: asyncpg.Connection) -> int:
    count: int = await watcher.fetchval(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return count
