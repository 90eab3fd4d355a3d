"""Histories as wholes, in every store: renamed, deleted, copied, made of something."""

from contextlib import AbstractAsyncContextManager
from functools import partial

import anyio
import anyio.lowlevel
import asyncpg
import pytest

from app.adapters.postgres import deletion
from app.adapters.postgres.database import open_database
from app.adapters.postgres.log import PostgresLog
from app.domain.errors import (
    AlreadyExists,
    ChainBroken,
    InputError,
    LogUnavailable,
    NotFound,
    StaleLease,
)
from app.domain.log import Event, Head, HistoryId, HistoryInfo, Revision, Tombstone, chain
from app.domain.log.heads import SignedHead
from app.domain.values.timestamps import Instant
from app.service import copying, history_creation
from tests.contracts.building import START, claims
from tests.contracts.stores import OpenStores, Stores

LATER = Instant(START + 5)


async def filled(stores: Stores, name: str, count: int) -> HistoryId:
    history = await stores.history(name)
    await stores.log.append(history, expected=Head(), events=claims(Head(), count))
    return history


async def names(stores: Stores) -> list[str]:
    return [info.name for info in await stores.log.histories()]


async def test_renamed_history_is_the_same_history(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        history = await filled(stores, "old", 3)
        head = await stores.log.head(history)
        await stores.log.rename_history(history, "new")
        assert await names(stores) == ["new"]
        assert await stores.log.find_history("old") is None
        found = await stores.log.find_history("new")
        assert found is not None
        assert (found.id, await stores.log.head(history)) == (history, head)
        await stores.log.rename_history(history, "new")
        await stores.history("old")
        with pytest.raises(AlreadyExists, match='"old" already exists'):
            await stores.log.rename_history(history, "old")
        with pytest.raises(NotFound):
            await stores.log.rename_history(HistoryId(99), "other")
        assert await names(stores) == ["new", "old"]


async def test_deleted_history_leaves_a_tombstone_and_nothing_else(
    open_stores: OpenStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "DELETED_AT_ONCE", 4)
    async with open_stores() as stores:
        victim, other = await filled(stores, "victim", 9), await filled(stores, "other", 9)
        child = await stores.log.create_history(
            "child", seed=0, settings={}, created=START, parent=victim
        )
        head = await stores.log.head(victim)
        assert await stores.leases.acquire(victim, "a", "me", seconds=60.0) is not None
        for history in (victim, other):
            await stores.views.save_snapshot(history, "objects", 1, Revision(3), b"state")
            await stores.log.keep_heads(
                history,
                [SignedHead(history="h", revision=Revision(1), hash="", time="", key="k")],
            )
        tombstone = await stores.log.delete_history(victim, at=LATER, by="alice")
        assert tombstone == Tombstone(
            name="victim",
            seed=1,
            settings={},
            created=tombstone.created,
            revision=Revision(9),
            hash=head.hash,
            time=head.time,
            deleted=LATER,
            deleted_by="alice",
        )
        assert await stores.log.tombstones() == [tombstone]
        assert await names(stores) == ["child", "other"]
        assert await stores.log.find_history("victim") is None
        assert (await stores.log.find_history("child")) is not None
        assert next(i for i in await stores.log.histories() if i.id == child.id).parent is None
        assert len(await stores.log.read(other, after=Revision(0), limit=99)) == 9
        kept = await stores.views.load_snapshot(other, "objects", 1, until=Revision(9))
        assert kept == (3, b"state")
        with pytest.raises(NotFound):
            await stores.log.head(victim)
        with pytest.raises(NotFound):
            await stores.log.append(victim, expected=head, events=claims(head, 1))
        with pytest.raises(NotFound):
            await stores.log.delete_history(victim, at=LATER, by="bob")


async def test_name_of_a_deleted_history_may_be_given_again(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        first = await filled(stores, "h", 2)
        await stores.log.delete_history(first, at=LATER, by="alice")
        second = await filled(stores, "h", 3)
        assert second != first
        assert (await stores.log.head(second)).revision == 3


async def test_holder_of_a_lease_of_a_deleted_history_cannot_write(
    open_stores: OpenStores,
) -> None:
    async with open_stores() as stores:
        history = await filled(stores, "h", 2)
        token = await stores.leases.acquire(history, "a", "me", seconds=60.0)
        assert token is not None
        head = await stores.log.head(history)
        await stores.log.delete_history(history, at=LATER, by="alice")
        with pytest.raises((NotFound, StaleLease)):
            await stores.log.append(history, expected=head, events=claims(head, 1), leases=[token])
        with pytest.raises(NotFound):
            await stores.leases.acquire(history, "a", "me", seconds=60.0)


def unfinished(stores: Stores, name: str) -> AbstractAsyncContextManager[HistoryInfo]:
    make = partial(stores.log.create_history, seed=1, settings={}, created=START)
    return history_creation.unfinished(stores.log, name, make)


async def test_what_is_being_made_has_no_name_until_it_is_whole(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        async with unfinished(stores, "h") as first:
            async with unfinished(stores, "other"):
                assert await names(stores) == []
                assert len(await stores.log.unfinished()) == 2
            assert await names(stores) == ["other"]
        assert await names(stores) == ["h", "other"]
        found = await stores.log.find_history("h")
        assert found is not None
        assert (found.id, found.name) == (first.id, first.name)
        assert await stores.log.unfinished() == []


@pytest.mark.parametrize("problem", [LogUnavailable("the disk is full"), KeyboardInterrupt()])
async def test_what_fails_in_the_making_leaves_nothing(
    open_stores: OpenStores, problem: BaseException
) -> None:
    async with open_stores() as stores:

        async def fail() -> None:
            async with unfinished(stores, "h") as info:
                await stores.log.append(info.id, expected=Head(), events=claims(Head(), 3))
                raise problem

        with pytest.raises(type(problem)):
            await fail()
        assert await names(stores) == []
        assert await stores.log.unfinished() == []
        assert await stores.log.tombstones() == [], "nobody knew of it"
        await stores.history("h")


async def test_cancelled_making_leaves_nothing(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        with anyio.CancelScope() as scope:
            async with unfinished(stores, "h"):
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        assert await stores.log.unfinished() == []


async def test_name_that_was_taken_meanwhile_is_left_to_its_history(
    open_stores: OpenStores,
) -> None:
    async with open_stores() as stores:
        with pytest.raises(InputError, match="'h' already exists"):
            async with unfinished(stores, "h"):
                taken = await stores.history("h")
        assert [info.id for info in await stores.log.histories()] == [taken]
        assert await stores.log.unfinished() == []


def anchored(count: int) -> tuple[bytes, list[Event]]:
    beginning = chain.genesis(seed=1, settings={"a": 1}, created=START)
    return beginning, claims(Head(hash=beginning), count)


@pytest.mark.parametrize("until", [0, 7, 12])
async def test_copy_is_the_same_log_up_to_a_revision(open_stores: OpenStores, until: int) -> None:
    async with open_stores() as stores:
        beginning, events = anchored(12)
        source = await stores.log.create_history(
            "source", seed=1, settings={"a": 1}, created=START, hash=beginning
        )
        await stores.log.append(source.id, expected=Head(hash=beginning), events=events)
        copied = await copying.copy_history(stores.log, source, "copy", until=Revision(until))
        assert copied == await stores.log.find_history("copy")
        assert (copied.parent, copied.parent_revision) == (source.id, until)
        assert (copied.seed, copied.settings, copied.created) == (1, {"a": 1}, START)
        read = await stores.log.read(copied.id, after=Revision(0), limit=99)
        assert [each.hash for each in read] == [each.hash for each in events[:until]]
        head = await stores.log.head(copied.id)
        assert head.hash == (events[until - 1].hash if until else beginning)
        await stores.log.append(copied.id, expected=head, events=claims(head, 1))
        assert (await stores.log.head(source.id)).revision == 12


async def test_copy_of_a_broken_log_is_refused_and_leaves_nothing(
    open_stores: OpenStores,
) -> None:
    async with open_stores() as stores:
        source = await stores.log.create_history("source", seed=1, settings={}, created=START)
        events = claims(Head(), 6)
        events[3].hash = b"x" * 32
        await stores.log.append(source.id, expected=Head(), events=events)
        with pytest.raises(ChainBroken):
            await copying.copy_history(stores.log, source, "copy", until=Revision(6))
        assert await names(stores) == ["source"]
        assert await stores.log.unfinished() == []


@pytest.mark.database
async def test_writer_that_waits_for_a_deletion_is_refused(database_url: str) -> None:
    """The append waits for the head row while the deletion holds it."""
    async with open_database(database_url) as database:
        log = PostgresLog(database)
        info = await log.create_history("h", seed=1, settings={}, created=START)
        head = await log.append(info.id, expected=Head(), events=claims(Head(), 5))
        holder, watcher = [await asyncpg.connect(database_url) for _ in range(2)]
        outcomes: list[str] = []

        async def remove() -> None:
            await log.delete_history(info.id, at=LATER, by="alice")
            outcomes.append("deleted")

        async def write() -> None:
            try:
                await log.append(info.id, expected=head, events=claims(head, 1))
                outcomes.append("written")
            except NotFound:
                outcomes.append("refused")

        held = holder.transaction()
        await held.start()
        await holder.execute("SELECT FROM log_heads FOR UPDATE")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(remove)
            await waits(watcher, 1)
            tasks.start_soon(write)
            await waits(watcher, 2)
            await held.rollback()
        assert sorted(outcomes) == ["deleted", "refused"]
        assert await watcher.fetchval("SELECT count(*) FROM log_events") == 0
        await holder.close()
        await watcher.close()


async def waits(connection: asyncpg.Connection, count: int) -> None:
    """Return when so many sessions of the database wait for a lock."""
    with anyio.fail_after(20.0):
        while (
            await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            < count
        ):
            await connection.fetchval("SELECT pg_sleep(0.01)")


@pytest.mark.database
async def test_rows_of_other_histories_cannot_be_deleted_under_a_tombstone(
    database_url: str,
) -> None:
    async with open_database(database_url) as database:
        log = PostgresLog(database)
        gone = await log.create_history("gone", seed=1, settings={}, created=START)
        kept = await log.create_history("kept", seed=1, settings={}, created=START)
        await log.append(kept.id, expected=Head(), events=claims(Head(), 2))
        await log.delete_history(gone.id, at=LATER, by="alice")
    connection = await asyncpg.connect(database_url)

    async def remove(table: str, said: str) -> None:
        async with connection.transaction():
            await connection.execute("SELECT set_config('redra.deleted_history', $1, true)", said)
            await connection.execute("DELETE FROM leases")
            await connection.execute(f"DELETE FROM {table}")

    try:
        for said in ("", str(kept.id), str(gone.id)):
            for table in ("log_events", "log_heads", "histories"):
                with pytest.raises(asyncpg.RestrictViolationError, match="append-only"):
                    await remove(table, said)
        for statement in ("UPDATE tombstones SET name = ''", "DELETE FROM tombstones"):
            with pytest.raises(asyncpg.RestrictViolationError, match="append-only"):
                await connection.execute(statement)
    finally:
        await connection.close()


@pytest.mark.database
@pytest.mark.parametrize("events", [0, 3])
async def test_history_without_a_head_can_be_deleted(database_url: str, events: int) -> None:
    """It is listed as broken, so somebody wants it away; its tombstone has the last event."""
    async with open_database(database_url) as database:
        log = PostgresLog(database)
        night = await log.create_history("night", seed=1, settings={}, created=START)
        head = Head(time=START)
        if events:
            head = await log.append(night.id, expected=Head(), events=claims(Head(), events))
        owner = await asyncpg.connect(database_url)
        try:
            await owner.execute("ALTER TABLE log_heads DISABLE TRIGGER USER")
            await owner.execute("DELETE FROM log_heads")
            await owner.execute("ALTER TABLE log_heads ENABLE TRIGGER USER")
            await owner.execute("ALTER TABLE log_heads ENABLE ALWAYS TRIGGER deleted_as_a_whole")
        finally:
            await owner.close()
        made = await log.delete_history(night.id, at=LATER, by="alice")
        assert (made.revision, made.hash, made.time) == (head.revision, head.hash, head.time)
        assert await log.tombstones() == [made]
        assert await log.histories() == []
        assert await log.read(night.id, after=Revision(0), limit=1) == []
        with pytest.raises(NotFound):
            await log.delete_history(night.id, at=LATER, by="alice")
