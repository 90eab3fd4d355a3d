"""A history is deleted while others write about it: all lock in one order, and nothing is left.

Each interleaving is forced: one side stops before its Nth statement, the other goes on until it
has ended or waits for a lock, then the first goes on. No session may be the victim of a deadlock.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import asyncpg
import pytest

from app.adapters.postgres.database import Database, DatabaseBounds, open_database
from app.adapters.postgres.leases import PostgresLeases
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.views import PostgresViewStore
from app.bootstrap.stores import view_tables
from app.domain.errors import Conflict, LogUnavailable, NotFound, StaleLease
from app.domain.log import Head, HistoryId, LeaseToken, Revision
from app.domain.log.heads import SignedHead
from app.domain.values.timestamps import Instant
from tests import draws
from tests.contracts.building import START, claims
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.database

LATER = Instant(START + 5)
VIEW, TABLE = "objects", "view_objects"

STATEMENTS_BEFORE_REMOVAL = 8
"""Those of a deletion until its tombstone is written; what it locks is locked then."""

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


async def begin(database: Any, at: Scene) -> None:
    """A controller that begins takes a lease that nobody had."""
    lease = await PostgresLeases(database).acquire(at.history, "n", "me", seconds=60.0)
    assert lease is not None
    at.tokens = [lease]


async def write_first(database: Any, at: Scene) -> None:
    """The controller writes its first event under that lease."""
    head = await PostgresLog(database).head(at.history)
    await PostgresLog(database).append(
        at.history, expected=head, events=claims(head, 1), leases=at.tokens
    )


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


async def interleaved(
    url: str, first: dict[str, Act], others: dict[str, Act], every: int = 1
) -> int:
    """Let each of `first` stop before its statements while all `others` go on; returns how often.

    A normal run takes each `every`th statement.
    """
    async with open_database(url, DatabaseBounds(connections_max=20)) as database:
        watcher = await asyncpg.connect(url)
        number = 0

        async def run(name: str, act: Act, through: Any, at: Scene, into: dict[str, str]) -> None:
            into[name] = await outcome(act, through, at)

        for name, act in first.items():
            for stop in draws.part(range(STATEMENTS_MAX), every):
                number += 1
                at = await scene(database, number)
                stepped = Stepped(database=database, stop=stop)
                outcomes: dict[str, str] = {}

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(run, name, act, stepped, at, outcomes)
                    with anyio.fail_after(PATIENCE_SECONDS):
                        while not stepped.reached.is_set() and not outcomes:
                            await anyio.lowlevel.checkpoint()
                    if outcomes:
                        break
                    for other, acts in others.items():
                        tasks.start_soon(run, other, acts, database, at, outcomes)
                    with anyio.fail_after(PATIENCE_SECONDS):
                        while len(outcomes) + await waiting(watcher) < len(others):
                            pass
                    stepped.onward.set()
                assert not [each for each in outcomes.values() if "failed" in each], (
                    f"{name} before its statement {stop}: {outcomes}"
                )
                rows = await left_of(watcher, at.history)
                assert rows == [], f"{name} before its statement {stop}: {outcomes}"
        await watcher.close()
        return number


async def left_of(watcher: asyncpg.Connection, history: HistoryId) -> list[str]:
    """The tables that still have rows of a history, except tombstones."""
    names = await watcher.fetch(
        "SELECT DISTINCT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE a.attname = 'history' AND c.relkind IN ('r', 'p') AND NOT c.relispartition "
        "AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'tombstones'"
    )
    union = " UNION ALL ".join(
        f"SELECT '{row['relname']}' AS name WHERE EXISTS "
        f"(SELECT FROM {row['relname']} WHERE history = $1)"
        for row in names
    )
    return [row["name"] for row in await watcher.fetch(union, history)]


@draws.in_turn("ways")
async def test_others_write_at_each_step_of_a_deletion(database_url: str) -> None:
    assert await interleaved(database_url, {"deletion": delete}, ACTS, every=4) > 5


async def test_history_is_deleted_at_each_step_of_others(database_url: str) -> None:
    assert await interleaved(database_url, ACTS, {"deletion": delete}) > 2 * len(ACTS)


async def test_leases_of_an_append_and_of_a_deletion_are_locked_in_one_order(
    database_url: str,
) -> None:
    """Both wait for the lease in the middle, which somebody holds; then one goes first.

    The planner may join the leases of an append in any order, here in that of the append.
    """
    as_given = {"enable_hashjoin": "off", "enable_mergejoin": "off", "enable_seqscan": "off"}
    async with open_database(database_url, session=as_given) as database:
        at = await scene(database, 1)
        middle = await PostgresLeases(database).acquire(at.history, "m", "me", seconds=60.0)
        assert middle is not None
        at.head = await PostgresLog(database).head(at.history)
        at.tokens.insert(1, middle)
        holder, watcher = [await asyncpg.connect(database_url) for _ in range(2)]
        held = holder.transaction()
        await held.start()
        await holder.execute("SELECT FROM leases WHERE name = 'm' FOR UPDATE")
        outcomes: dict[str, str] = {}

        async def run(name: str, act: Act) -> None:
            outcomes[name] = await outcome(act, database, at)

        async with anyio.create_task_group() as tasks:
            for count, (name, act) in enumerate(
                (("events", ACTS["events"]), ("deletion", delete)), start=1
            ):
                tasks.start_soon(run, name, act)
                with anyio.fail_after(PATIENCE_SECONDS):
                    while await waiting(watcher) < count:
                        pass
            await held.rollback()
        assert outcomes["deletion"] == "done"
        assert outcomes["events"] in ("done", "refused")
        await holder.close()
        await watcher.close()


async def test_two_histories_are_deleted_at_each_step_of_each_other(database_url: str) -> None:
    async with open_database(database_url) as database:
        others = [await scene(database, -number) for number in range(1, 13 * draws.FACTOR)]

        async def delete_other(database: Any, at: Scene) -> None:
            await delete(database, others.pop())

        assert (
            await interleaved(database_url, {"deletion": delete}, {"other": delete_other}, every=4)
            > 5
        )


async def test_second_deletion_does_not_wait_for_the_first(database_url: str) -> None:
    """It is a conflict, wherever the first one is once it has begun to remove rows."""
    async with open_database(database_url) as database:
        counted = Stepped(database=database, stop=STATEMENTS_MAX)
        await delete(counted, await scene(database, 0))
        for number, stop in enumerate((counted.count // 2, counted.count - 1), start=1):
            at = await scene(database, number)
            first = Stepped(database=database, stop=stop)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(delete, first, at)
                with anyio.fail_after(PATIENCE_SECONDS):
                    await first.reached.wait()
                    with pytest.raises(Conflict, match=f'history "h-{number}" is being deleted'):
                        await delete(database, at)
                first.onward.set()
            with pytest.raises(NotFound):
                await delete(database, at)


async def test_deletion_of_another_history_is_named_when_it_takes_too_long(
    database_url: str,
) -> None:
    async with open_database(database_url, DatabaseBounds(lock_seconds=0.2)) as database:
        one, other = await scene(database, 1), await scene(database, 2)
        first = Stepped(database=database, stop=12)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(delete, first, one)
            with anyio.fail_after(PATIENCE_SECONDS):
                await first.reached.wait()
                with pytest.raises(LogUnavailable, match="another history is being deleted"):
                    await delete(database, other)
            first.onward.set()
        await delete(database, other)


@pytest.mark.parametrize("first", range(STATEMENTS_BEFORE_REMOVAL))
async def test_controller_begins_while_its_history_is_deleted(
    database_url: str, first: int
) -> None:
    """It takes its lease before one statement of the deletion, and writes before a later one."""
    async with open_database(database_url) as database:
        watcher = await asyncpg.connect(database_url)
        for then in range(first + 1, STATEMENTS_BEFORE_REMOVAL + 1):
            at = await scene(database, then)
            outcomes = await begun_amid(database, watcher, at, (first, then))
            assert outcomes.pop("deletion") == "done", (first, then, outcomes)
            assert set(outcomes.values()) <= {"done", "refused"}, (first, then, outcomes)
            assert await left_of(watcher, at.history) == []
        await watcher.close()


async def begun_amid(
    database: Database, watcher: asyncpg.Connection, at: Scene, stops: tuple[int, int]
) -> dict[str, str]:
    """The outcomes of a deletion, of the lease before its first stop, and of a later event."""
    outcomes: dict[str, str] = {}
    stepped = Stepped(database=database, stop=stops[0])

    async def run(name: str, act: Act, through: Any) -> None:
        outcomes[name] = await outcome(act, through, at)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, "deletion", delete, stepped)
        for name, act, onward in (
            ("lease", begin, stops[1]), ("event", write_first, STATEMENTS_MAX),
        ):  # fmt: skip
            with anyio.fail_after(PATIENCE_SECONDS):
                await stepped.reached.wait()
                tasks.start_soon(run, name, act, database)
                while name not in outcomes and await waiting(watcher) < 1:
                    pass
            stepped.go_on(onward)
    return outcomes
