"""What breaks logs: many writers, killed writers, open transactions, restarts. PostgreSQL only,
except where the memory store can be held to the same."""

import asyncio
import gc
import os
import signal
from collections import Counter
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import asyncpg
import pytest
from anyio.abc import TaskGroup

from app.adapters.postgres import migrating
from app.adapters.postgres.database import Database, DatabaseBounds, open_database
from app.adapters.postgres.leases import PostgresLeases
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.server import EmbeddedServer
from app.adapters.postgres.wakeup import WakeUpBounds, open_wake_up
from app.domain.errors import HeadMoved, LogError, LogUnavailable, StaleLease
from app.domain.log import Event, Head, HistoryId, Revision
from app.domain.log.chain import check_chain
from app.ports import EventLog, WakeUp
from tests import draws
from tests.conftest import say
from tests.contracts.building import START, claims
from tests.contracts.processes import line_of, started
from tests.contracts.stores import OpenStores
from tests.patience import PATIENCE_SECONDS

SOON = 20.0
"""Bound for what happens at once on a busy machine."""

QUICK = DatabaseBounds(lock_seconds=0.3, acquire_seconds=20.0)


async def append(log: EventLog, history: HistoryId, name: str, count: int, each: int) -> None:
    """Append `count` batches of `each`, deciding again whenever another writer was first."""
    head = await log.head(history)
    while count:
        try:
            events = claims(head, each, prefix=name, user=name)
            head = await log.append(history, expected=head, events=events)
            count -= 1
        except HeadMoved:
            head = await log.head(history)


async def tail(
    log: EventLog, wake_up: WakeUp, history: HistoryId, until: int, poll_seconds: float = 0.5
) -> list[Event]:
    """Follow the log from its beginning, through any trouble, as far as `until`."""
    seen: list[Event] = []
    async with wake_up.listen(history) as listener:
        while len(seen) < until:
            after = seen[-1].revision if seen else Revision(0)
            try:
                page = await log.read(history, after=after, limit=50)
            except LogError:
                page = []
            seen += page
            if not page:
                await listener.wait(poll_seconds)
    return seen


def check_complete(events: list[Event], count: int) -> None:
    """Every revision once, in order, and an unbroken chain."""
    assert [event.revision for event in events] == list(range(1, count + 1))
    check_chain(events)


@draws.in_turn("ways")
async def test_sixteen_writers_and_a_tail_that_sees_every_revision_once(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        seen: list[Event] = []

        async def follow() -> None:
            seen.extend(await tail(stores.log, stores.wake_up, history, 16 * 5 * 3))

        with anyio.fail_after(SOON):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow)
                for number in range(16):
                    tasks.start_soon(append, stores.log, history, f"w{number}", 5, 3)
        check_complete(seen, 240)
        assert Counter(event.stamp.actor.user for event in seen) == {
            f"w{number}": 15 for number in range(16)
        }


async def test_refused_appends_leave_no_gap(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        head = Head()
        for _ in range(5):
            stale = head
            head = await stores.log.append(history, expected=head, events=claims(head, 2))
            for size in (1, 1_500):
                with pytest.raises(HeadMoved):
                    await stores.log.append(history, expected=stale, events=claims(stale, size))
        check_complete(await stores.log.read(history, after=Revision(0), limit=99), 10)


@pytest.mark.database
async def test_failed_insert_leaves_no_gap(database_url: str):
    async with open_database(database_url) as database:
        log = PostgresLog(database)
        history = await new_history(log)
        head = await log.append(history, expected=Head(), events=claims(Head(), 2))
        for size in (1, 1_500):
            events = claims(head, size)
            events[-1].body = b"{not json"
            with pytest.raises(LogUnavailable, match="refused a statement"):
                await log.append(history, expected=head, events=events)
        assert await log.head(history) == head
        await log.append(history, expected=head, events=claims(head, 1))
        check_complete(await log.read(history, after=Revision(0), limit=99), 3)


KEEP_OUT = """
CREATE FUNCTION keep_out() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RETURN CASE WHEN new.name <> 'claim-000001' THEN new END; END $$;
CREATE TRIGGER keep_out BEFORE INSERT ON log_events FOR EACH ROW EXECUTE FUNCTION keep_out();
"""
"""A trigger of the database's owner that drops one row, as one that moves rows elsewhere does."""


@pytest.mark.database
@pytest.mark.parametrize("size", [1, 2, 1_500])
async def test_append_of_which_the_database_keeps_rows_out_is_refused_as_a_whole(
    database_url: str, size: int
):
    async with open_database(database_url) as database:
        log = PostgresLog(database)
        history = await new_history(log)
        events = claims(Head(), size)
        assert events[0].key.name == "claim-000001"
        await say(database_url, KEEP_OUT)
        with pytest.raises(LogUnavailable, match="trigger or rule"):
            await log.append(history, expected=Head(), events=events)
        assert (await log.head(history)).revision == 0
        assert await log.read(history, after=Revision(0), limit=9) == []
        await say(database_url, "DROP TRIGGER keep_out ON log_events")
        await log.append(history, expected=Head(), events=events)
        check_complete(await log.read(history, after=Revision(0), limit=size), size)


@draws.in_turn("ways")
@pytest.mark.database
async def test_two_writer_processes_share_a_history(database_url: str):
    async with open_database(database_url) as database, open_wake_up(database_url) as wake_up:
        log = PostgresLog(database)
        history = await new_history(log)
        with anyio.fail_after(PATIENCE_SECONDS):
            async with (
                started("write", database_url, history, "one", 40) as one,
                started("write", database_url, history, "two", 40) as two,
            ):
                seen = await tail(log, wake_up, history, 80)
                assert await one.wait() == 0
                assert await two.wait() == 0
        check_complete(seen, 80)
        assert Counter(event.stamp.actor.user for event in seen) == {"one": 40, "two": 40}


@pytest.mark.database
async def test_writer_killed_inside_a_transaction_leaves_nothing(database_url: str):
    async with open_database(database_url) as database:
        log = PostgresLog(database)
        history = await new_history(log)
        head = await log.append(history, expected=Head(), events=claims(Head(), 1))
        async with started("hold", database_url, history) as writer:
            assert await line_of(writer) == "holding"
            writer.kill()
            await writer.wait()
        head = await log.append(history, expected=head, events=claims(head, 1))
        check_complete(await log.read(history, after=Revision(0), limit=9), 2)


@draws.in_turn("ends")
@pytest.mark.database
async def test_writers_killed_at_any_time_leave_whole_appends(database_url: str):
    async with open_database(database_url) as database:
        log = PostgresLog(database)
        history = await new_history(log)
        for number in range(3):
            async with started("write", database_url, history, f"w{number}", 10_000) as writer:
                before = (await log.head(history)).revision
                with anyio.fail_after(SOON):
                    while (await log.head(history)).revision < before + 5:
                        pass
                writer.kill()
                await writer.wait()
        await append(log, history, "last", 1, 1)
        head = await log.head(history)
        found = await log.read(history, after=Revision(0), limit=100_000)
        check_complete(found, head.revision)
        assert found[-1].stamp.actor.user == "last"


@pytest.mark.database
async def test_transaction_left_open_is_waited_for_so_long_and_named(database_url: str):
    async with open_database(database_url, QUICK) as database:
        log = PostgresLog(database)
        history = await new_history(log)
        async with started("hold", database_url, history) as other:
            assert await line_of(other) == "holding"
            for size in (1, 1_500):
                with pytest.raises(LogUnavailable, match="another session holds"):
                    await log.append(history, expected=Head(), events=claims(Head(), size))
            assert (await log.head(history)).revision == 0
        await append(log, history, "after", 1, 1)
        assert (await log.head(history)).revision == 1


@pytest.mark.database
@pytest.mark.parametrize("is_copied", [False, True])
async def test_work_that_is_cancelled_at_any_moment_leaves_no_transaction(
    database: Database, is_copied: bool
):
    # The driver tells the loop of a connection that comes back with one.
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, said: told.append(said["message"]))

    async def work() -> None:
        if is_copied:
            async with database.connection() as connection, connection.transaction():
                await connection.execute("SELECT 1")
        else:
            async with database.transaction() as connection:
                await connection.execute("SELECT 1")

    for turns in range(60):
        # The connection rests: nothing is waited for before the transaction begins.
        async with database.connection() as connection:
            await connection.execute("SELECT 1")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    async with database.connection() as connection:
        open_ones = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
        )
    assert (told, open_ones) == ([], 0)


@pytest.mark.database
async def test_work_that_is_cancelled_while_the_server_is_frozen_ends_quietly(database_url: str):
    """The driver would go on in a task of its own, whose failure nobody asks for."""
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, said: told.append(said["message"]))
    bounds = DatabaseBounds(close_seconds=0.2, acquire_seconds=0.5)
    async with open_database(database_url, bounds) as database:
        async with database.connection() as connection:
            backend = await connection.fetchval("SELECT pg_backend_pid()")
        os.kill(backend, signal.SIGSTOP)
        try:

            async def ask() -> None:
                async with database.connection() as connection:
                    await connection.execute("SELECT 1")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await anyio.sleep(0.1)  # waits: until the statement is sent
                tasks.cancel_scope.cancel()
            await anyio.sleep(1.0)  # waits: for what the driver does beside
        finally:
            os.kill(backend, signal.SIGCONT)
        gc.collect()
        async with database.connection() as connection:
            assert await connection.fetchval("SELECT 1") == 1
    gc.collect()
    assert told == []


@pytest.mark.database
async def test_own_session_that_leaves_a_transaction_open_is_ended(database_url: str):
    bounds = DatabaseBounds(idle_in_transaction_seconds=0.2, lock_seconds=10.0)
    async with open_database(database_url, bounds) as database:
        log = PostgresLog(database)
        history = await new_history(log)

        async def get_stuck() -> None:
            async with database.transaction() as stuck:
                await stuck.execute("UPDATE log_heads SET revision = 9 WHERE history = $1", history)
                # This append waits for the lock until the server has ended the session above.
                await log.append(history, expected=Head(), events=claims(Head(), 1))

        with pytest.raises(LogUnavailable, match="connection to the database was lost"):
            await get_stuck()
        assert (await log.head(history)).revision == 1


@pytest.mark.database
async def test_take_over_waits_for_an_append_that_carries_the_lease(database_url: str):
    async with open_database(database_url) as database:
        log, leases = PostgresLog(database), PostgresLeases(database)
        history = await new_history(log)
        old = await leases.acquire(history, "eviction", "one", seconds=0)
        assert old is not None
        taken: list[int] = []

        async def take_over() -> None:
            token = await leases.acquire(history, "eviction", "two", seconds=60)
            assert token is not None
            taken.append(token.epoch)

        async with (
            anyio.create_task_group() as tasks,
            started("hold", database_url, history) as other,
        ):
            assert await line_of(other) == "holding"
            # The append has locked the lease and waits for the head; then comes the take-over.
            tasks.start_soon(_append_with, log, history, old)
            await waiting_sessions(database_url, 1)
            tasks.start_soon(take_over)
            await waiting_sessions(database_url, 2)
            assert taken == []
        assert taken == [old.epoch + 1]
        head = await log.head(history)
        assert head.revision == 1
        with pytest.raises(StaleLease):
            await log.append(history, expected=head, events=claims(head, 1), leases=[old])


async def _append_with(log: EventLog, history: HistoryId, lease) -> None:
    await log.append(history, expected=Head(), events=claims(Head(), 1), leases=[lease])


async def waiting_sessions(url: str, count: int) -> None:
    """Return when so many sessions of the database wait for a lock."""
    connection = await asyncpg.connect(url)
    question = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with anyio.fail_after(SOON):
        while await connection.fetchval(question) < count:
            pass
    await connection.close()


@draws.in_turn("ends")
@pytest.mark.database
async def test_two_tails_and_a_writer_live_through_a_restart(tmp_path):
    server = EmbeddedServer(tmp_path / "server")
    async with server:
        await migrating.migrate(server.url)
        bounds = WakeUpBounds(pause_first_seconds=0.02, pause_max_seconds=0.1)
        async with (
            open_database(server.url) as database,
            open_wake_up(server.url, bounds) as first,
            open_wake_up(server.url, bounds) as second,
        ):
            log = PostgresLog(database)
            history = await new_history(log)
            seen: dict[str, list[Event]] = {}

            async def follow(name: str, wake_up: WakeUp, tasks: TaskGroup) -> None:
                seen[name] = await tail(log, wake_up, history, 60)

            with anyio.fail_after(PATIENCE_SECONDS):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(follow, "first", first, tasks)
                    tasks.start_soon(follow, "second", second, tasks)
                    await append(log, history, "before", 30, 1)
                    await anyio.to_thread.run_sync(server.stop)
                    with pytest.raises(LogUnavailable):
                        await log.head(history)
                    await anyio.to_thread.run_sync(server.start)
                    await append(log, history, "after", 30, 1)
            check_complete(seen["first"], 60)
            check_complete(seen["second"], 60)
            assert (first.connections, second.connections) >= (2, 2)
            # Hints come again, not only polls.
            async with first.listen(history) as listener:
                await append(log, history, "hint", 1, 1)
                assert await listener.wait(SOON) is True


@pytest.mark.database
async def test_ended_sessions_are_replaced(database_url: str):
    async with open_database(database_url) as database, open_wake_up(database_url) as wake_up:
        log = PostgresLog(database)
        history = await new_history(log)
        connection = await asyncpg.connect(database_url)
        async with wake_up.listen(history) as listener:
            # A session that is only asked to end may still take a request, which is then lost.
            await connection.execute(
                "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            # The listener is hinted once its connection is back, for what it may have missed.
            assert await listener.wait(SOON) is True
            await append(log, history, "after", 1, 1)
            assert await listener.wait(SOON) is True
        await connection.close()


@pytest.mark.database
async def test_one_connection_serves_many_who_wait_for_it(database_url: str):
    async with open_database(database_url, DatabaseBounds(connections_max=1)) as database:
        log = PostgresLog(database)
        history = await new_history(log)
        found: list[Head] = []

        async def read() -> None:
            for _ in range(3):
                found.append(await log.head(history))

        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(read)
        assert [head.revision for head in found] == [0] * 30


@pytest.mark.database
async def test_database_that_takes_no_writes_says_so_and_recovers(database_url: str):
    connection = await asyncpg.connect(database_url)
    name = await connection.fetchval("SELECT current_database()")
    async with open_database(database_url) as database:
        history = await new_history(PostgresLog(database))
    await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    async with open_database(database_url) as database:
        log = PostgresLog(database)
        with pytest.raises(LogUnavailable, match="read-only"):
            await log.append(history, expected=Head(), events=claims(Head(), 1))
        assert (await log.head(history)).revision == 0
    await connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    await connection.close()
    async with open_database(database_url) as database:
        await append(PostgresLog(database), history, "after", 1, 1)


async def take_away(server_url: str, name: str) -> None:
    """Let there be no database of that name; its sessions are ended."""
    await say(server_url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    await say(
        server_url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='{name}'"
    )
    await say(server_url, f"ALTER DATABASE {name} RENAME TO {name}_away")


async def give_back(server_url: str, name: str) -> None:
    await say(server_url, f"ALTER DATABASE {name}_away RENAME TO {name}")
    await say(server_url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


@pytest.mark.database
@pytest.mark.parametrize("missing", ["database", "tables"])
async def test_database_that_is_dropped_to_restore_a_dump_is_waited_for(
    server_url: str, database_url: str, missing: str
):
    name = urlsplit(database_url).path.strip("/")
    async with (
        open_database(database_url) as database,
        open_wake_up(database_url, WakeUpBounds()) as wake_up,
    ):
        log, leases = PostgresLog(database), PostgresLeases(database)
        history = await new_history(log)
        lease = await leases.acquire(history, "placing", "a", seconds=30)
        assert lease is not None
        if missing == "database":
            await take_away(server_url, name)
        else:
            await say(database_url, "ALTER SCHEMA public RENAME TO away; CREATE SCHEMA public")
        with pytest.raises(LogUnavailable):
            await leases.release(history, lease)
        with pytest.raises(LogUnavailable):
            await log.append(history, expected=Head(), events=claims(Head(), 1))
        with pytest.raises(LogUnavailable, match="gone"):
            await log.head(history)
        if missing == "database":
            await give_back(server_url, name)
        else:
            await say(database_url, "DROP SCHEMA public; ALTER SCHEMA away RENAME TO public")
        await append(log, history, "after", 1, 1)
        assert len(await tail(log, wake_up, history, 1)) == 1


async def new_history(log: EventLog) -> HistoryId:
    """An empty history."""
    return (await log.create_history("h", seed=1, settings={}, created=START)).id
