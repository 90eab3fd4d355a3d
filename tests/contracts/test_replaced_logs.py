"""A log that is replaced under a running server: a restore, or an older copy that takes over.

The server says so, reads that history anew and goes on with the others. What was folded from the
events that are lost is shown nowhere any more: not in the views, in the past, to watchers, in the
tables, nor after a restart.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import anyio.lowlevel
import asyncpg
import pytest

from app.adapters.memory import MemoryLog, MemoryStore, MemoryViewStore, MemoryWakeUp
from app.adapters.uids import RandomUids
from app.bootstrap.histories import views_of
from app.bootstrap.rules import rules_for
from app.bootstrap.stores import open_store, view_tables
from app.domain.errors import Expired, HistoryBroken, LogUnavailable, NotFound
from app.domain.log import Event, Head, HistoryId, Revision
from app.domain.log.chain import check_chain, genesis_of
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import Instant
from app.ports import EventLog, RuntimePorts
from app.service.folding.projecting import FoldingBounds
from app.service.histories import Histories
from app.service.runtime import HistoryRuntime, RuntimeBounds
from app.settings import Settings
from app.workers import projecting
from tests import draws
from tests.contracts.building import claims
from tests.contracts.restoring import restore_older
from tests.patience import PATIENCE_SECONDS
from tests.unit.service.builders import ALICE, config_map, namespace
from tests.unit.service.test_cluster_clock import Hands

Cut = Callable[[HistoryId, int], Awaitable[None]]
"""Deletes the events after a revision and lets the head name that one, as a restore does."""

NAMES = ("a", "b", "c", "d")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Ports, and how the owner of the store cuts a log."""

    ports: RuntimePorts
    cut: Cut

    @property
    def log(self) -> EventLog:
        return self.ports.log


@asynccontextmanager
async def in_memory(_url: str) -> AsyncIterator[World]:
    store, wake_up = MemoryStore(), MemoryWakeUp()

    async def cut(history: HistoryId, keep: int) -> None:
        restore_older(store.history(history), keep)

    ports = RuntimePorts(
        log=MemoryLog(store, wake_up.grown),
        wake_up=wake_up,
        clock=Hands(),
        uids=RandomUids(),
        views=MemoryViewStore(view_tables()),
    )
    yield World(ports=ports, cut=cut)


@asynccontextmanager
async def in_postgres(url: str) -> AsyncIterator[World]:
    async def cut(history: HistoryId, keep: int) -> None:
        connection = await asyncpg.connect(url)
        try:
            async with connection.transaction():
                tables = await connection.fetch(
                    "SELECT relname FROM pg_class WHERE relname ~ '^log_' AND relkind IN ('r', 'p')"
                )
                for row in tables:
                    statement = f"ALTER TABLE {row['relname']} DISABLE TRIGGER ALL"
                    await connection.execute(statement)
                await connection.execute(
                    "DELETE FROM log_events WHERE history = $1 AND revision > $2", history, keep
                )
                await connection.execute(
                    "UPDATE log_heads SET revision = $2, hash = e.hash, time = e.clock "
                    "FROM log_events e WHERE e.history = $1 AND e.revision = $2 "
                    "AND log_heads.history = $1",
                    history,
                    keep,
                )
                for row in tables:
                    statement = f"ALTER TABLE {row['relname']} ENABLE TRIGGER ALL"
                    await connection.execute(statement)
        finally:
            await connection.close()

    async with open_store(Settings(database_url=url)) as store:
        yield World(ports=store.ports, cut=cut)


WORLDS = pytest.mark.parametrize(
    "open_world",
    [
        pytest.param(in_memory, id="memory"),
        pytest.param(in_postgres, id="postgres", marks=pytest.mark.database),
    ],
)


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    is_memory = request.node.callspec.params["open_world"] is in_memory
    return "" if is_memory else request.getfixturevalue("database_url")


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="redra")


@asynccontextmanager
async def serving(world: World, poll_seconds: float = 0.02) -> AsyncIterator[Histories]:
    histories = Histories(
        ports=world.ports,
        rules=lambda info: rules_for(Profile()),
        bounds=RuntimeBounds(poll_seconds=poll_seconds),
        past_views_max=8,
        objects_max=1_000,
    )
    async with histories.running():
        yield histories


async def begin(histories: Histories, name: str) -> HistoryRuntime:
    """A history of five events: a namespace and four ConfigMaps."""
    runtime = await histories.create(name)
    await runtime.submit(namespace("default"), actor=ALICE)
    for number in NAMES:
        await runtime.submit(config_map(number), actor=ALICE)
    await runtime.save_snapshot()
    return runtime


async def replace(world: World, runtime: HistoryRuntime, keep: int, more: int) -> list[Event]:
    """Cut the log and add other events, as another server would after a failover; the log then."""
    history = runtime.info.id
    await world.cut(history, keep)
    if more:
        head = await world.log.head(history)
        events = claims(head, more, prefix="other", user="bob")
        await world.log.append(history, expected=head, events=events)
    return await world.log.read(history, after=Revision(0), limit=100)


def names(runtime: HistoryRuntime) -> list[str]:
    objects = runtime.views.objects
    places = (("", "configmaps"), ("resource.k8s.io", "resourceclaims"))
    return [event.key.name for place in places for event in objects.events(*place)]


def expected_names(events: list[Event]) -> list[str]:
    return [event.key.name for event in events if event.key.resource != "namespaces"]


async def opened_anew(histories: Histories, old: HistoryRuntime) -> HistoryRuntime:
    """The runtime that follows the ended one."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            found = {runtime.info.name: runtime for runtime in histories.open_runtimes()}
            runtime = found.get(old.info.name, old)
            if runtime is not old:
                return runtime
            await anyio.sleep(0.01)  # waits: for another task


REPLACED = pytest.mark.parametrize(
    ("keep", "more", "words"),
    [
        pytest.param(3, 0, "breaks at revision 3: the log ends there", id="shorter"),
        pytest.param(4, 1, "", id="other-event-at-the-end"),
        pytest.param(3, 9, "", id="other-and-longer"),
    ],
)


@draws.in_turn("ways")
@WORLDS
@REPLACED
async def test_history_is_read_anew_and_the_others_go_on(
    open_world, url: str, keep: int, more: int, words: str
) -> None:
    async with open_world(url) as world, serving(world) as histories:
        night, day = await begin(histories, "night"), await begin(histories, "day")
        past = await histories.at("night", Revision(5))
        assert past.objects.get(config_map("d").key) is not None
        with night.subscribe(after=night.head.revision) as followed:
            events = await replace(world, night, keep, more)
            again = await opened_anew(histories, night)
            with pytest.raises(Expired, match="list and watch again"):
                await followed.next_batch(5.0)
        await again.wait_for(events[-1].revision, 20.0)
        assert names(again) == expected_names(events)
        assert [found.info.name for found in histories.replaced()] == ["night"]
        assert words in histories.why_replaced("night")
        assert histories.broken() == []
        # The ended runtime answers nobody.
        with pytest.raises(LogUnavailable):
            await night.submit(config_map("late"), actor=ALICE)
        await again.submit(config_map("next"), actor=ALICE)
        stored = await world.log.read(night.info.id, after=Revision(0), limit=100)
        check_chain(stored, hash=genesis_of(night.info))
        assert [event.key.name for event in stored[len(events) :]] == ["next"]
        if len(events) >= 5:
            past = await histories.at("night", Revision(5))
            assert past.objects.get(config_map("d").key) is None
        # The other history never noticed.
        assert await histories.open("day") is day
        await day.submit(config_map("e"), actor=ALICE)
        assert names(day) == [*NAMES, "e"]


@WORLDS
@REPLACED
async def test_write_upon_a_lost_event_is_refused_and_the_next_one_stored(
    open_world, url: str, keep: int, more: int, words: str
) -> None:
    async with open_world(url) as world, serving(world, poll_seconds=3600.0) as histories:
        night = await begin(histories, "night")
        events = await replace(world, night, keep, more)
        with pytest.raises(LogUnavailable):
            await night.submit(config_map("lost"), actor=ALICE)
        again = await opened_anew(histories, night)
        await again.submit(config_map("next"), actor=ALICE)
        stored = await world.log.read(night.info.id, after=Revision(0), limit=100)
        check_chain(stored, hash=genesis_of(night.info))
        assert expected_names(stored) == [*expected_names(events), "next"]


@WORLDS
@REPLACED
async def test_restart_takes_no_kept_state_of_lost_events(
    open_world, url: str, keep: int, more: int, words: str
) -> None:
    async with open_world(url) as world:
        async with serving(world) as histories:
            night = await begin(histories, "night")
        events = await replace(world, night, keep, more)
        async with serving(world) as histories:
            again = await histories.open("night")
            assert again.head.revision == len(events)
            assert names(again) == expected_names(events)


@draws.in_turn("ways")
@WORLDS
@REPLACED
async def test_tables_are_made_anew(open_world, url: str, keep: int, more: int, words: str) -> None:
    async with open_world(url) as world, serving(world) as histories:
        night = await begin(histories, "night")
        views = world.ports.views
        assert views is not None

        async def rows_are(wanted: list[str]) -> None:
            with anyio.fail_after(PATIENCE_SECONDS):
                while True:
                    rows = await views.rows(night.info.id, "view_objects")
                    if [row["name"] for row in rows if row["resource"] != "namespaces"] == wanted:
                        return
                    await anyio.sleep(0.05)  # waits: for another task

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, world, night)
            await rows_are(list(NAMES))
            events = await replace(world, night, keep, more)
            # Whatever wakes the projector: another event.
            again = await opened_anew(histories, night)
            await again.submit(config_map("next"), actor=ALICE)
            configs = [name for name in expected_names(events) if name in NAMES]
            others = [name for name in expected_names(events) if name not in NAMES]
            await rows_are([*configs, "next", *others])
            tasks.cancel_scope.cancel()


@WORLDS
@REPLACED
async def test_closed_history_is_compared_with_what_was_read_of_it(
    open_world, url: str, keep: int, more: int, words: str
) -> None:
    async with open_world(url) as world, serving(world) as histories:
        night = await begin(histories, "night")
        past = await histories.at("night", Revision(5))
        assert past.objects.get(config_map("d").key) is not None
        await histories.close("night")
        events = await replace(world, night, keep, more)
        again = await histories.open("night")
        assert names(again) == expected_names(events)
        assert [found.info.name for found in histories.replaced()] == ["night"]
        assert words in histories.why_replaced("night")
        if len(events) >= 5:
            past = await histories.at("night", Revision(5))
            assert past.objects.get(config_map("d").key) is None


async def follow(world: World, runtime: HistoryRuntime) -> None:
    assert world.ports.views is not None
    await projecting.follow_log(
        runtime.info,
        log=world.log,
        wake_up=world.ports.wake_up,
        views=world.ports.views,
        make=views_of({}),
        bounds=FoldingBounds(),
        idle_seconds=3_600.0,
    )


async def test_log_that_is_replaced_again_and_again_is_read_after_a_pause() -> None:
    async with in_memory("") as world, serving(world) as histories:
        night = await begin(histories, "night")
        await replace(world, night, 4, 1)
        second = await opened_anew(histories, night)
        await replace(world, second, 3, 4)
        with anyio.fail_after(PATIENCE_SECONDS):
            while not histories.broken():
                await anyio.lowlevel.checkpoint()
        with pytest.raises(HistoryBroken, match="hash chain breaks"):
            await histories.open("night")
        # After the pause, without anybody asking.
        third = await opened_anew(histories, second)
        assert third.head.revision == 7


async def test_history_that_is_missing_while_a_dump_is_loaded_is_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with in_memory("") as world, serving(world) as histories:
        night = await begin(histories, "night")
        head = world.log.head
        calls: list[HistoryId] = []

        async def not_loaded_yet(history: HistoryId) -> Head:
            calls.append(history)
            if len(calls) == 1:
                raise NotFound("history 1 not found", resource="histories", name="night")
            return await head(history)

        monkeypatch.setattr(world.log, "head", not_loaded_yet)
        again = await opened_anew(histories, night)
        assert calls
        assert histories.broken() == []
        await again.submit(config_map("next"), actor=ALICE)
        assert names(again) == [*NAMES, "next"]


@pytest.mark.parametrize("lost", [0, 2])
async def test_history_that_was_missing_is_compared_when_it_is_there_again(lost: int) -> None:
    """A dump drops the tables before it fills them: the history looks deleted for a while."""
    async with in_memory("") as world, serving(world) as histories:
        night = await begin(histories, "night")
        log = world.log
        assert isinstance(log, MemoryLog)
        stored = log._store.by_id.pop(night.info.id)
        named = log._store.by_name.pop("night")
        await histories.look_again()
        assert histories.open_runtimes() == []
        log._store.by_id[night.info.id], log._store.by_name["night"] = stored, named
        restore_older(stored, 5 - lost)
        again = await histories.open("night")
        assert names(again) == list(NAMES[: 4 - lost])
        assert len(histories.replaced()) == bool(lost)
        assert ("the log ends there" in histories.why_replaced("night")) == bool(lost)


async def lose(url: str, history: HistoryId) -> None:
    """Take the database back to before a history was made: its number is given again."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            tables = await connection.fetch(
                "SELECT table_name AS name FROM information_schema.columns JOIN pg_class "
                "ON relname = table_name WHERE column_name = 'history' AND relkind IN ('r', 'p') "
                "AND table_schema = 'public'"
            )
            for statement in (
                "ALTER TABLE {} DISABLE TRIGGER ALL",
                f"DELETE FROM {{}} WHERE history = {history}",
                "ALTER TABLE {} ENABLE TRIGGER ALL",
            ):
                for table in tables:
                    await connection.execute(statement.format(table["name"]))
            await connection.execute(f"SELECT setval('histories_history_seq', {history}, false)")
    finally:
        await connection.close()


@pytest.mark.database
@pytest.mark.parametrize("is_fork_lost", [True, False])
async def test_history_with_the_number_of_a_lost_one_has_its_own_events(
    database_url: str, is_fork_lost: bool
) -> None:
    """Where a fork reads the events of its parent is remembered by number."""

    async def make(world: World, histories: Histories, name: str, is_fork: bool) -> HistoryId:
        if not is_fork:
            await (await histories.create(name)).submit(namespace("own"), actor=ALICE)
            return (await histories.info(name)).id
        parent = await histories.info("night")
        [row] = await world.log.read_stored(parent.id, after=Revision(2), limit=1)
        end = Head(revision=Revision(3), hash=row.event.hash, time=Instant(row.clock or 0))
        made = await world.log.fork_history(
            name, parent=parent, end=end, seed=0, settings={}, created=Instant(end.time + 1)
        )
        return made.id

    async with in_postgres(database_url) as world, serving(world) as histories:
        await begin(histories, "night")
        lost = await make(world, histories, "lost", is_fork_lost)
        await histories.open("lost")
        await lose(database_url, lost)
        await histories.look_again()
        assert await make(world, histories, "other", not is_fork_lost) == lost
        other = await histories.open("other")
        assert names(other) == ([] if is_fork_lost else ["a", "b"])
        stored = await world.log.read(lost, after=Revision(0), limit=100)
        own = ["own"] if is_fork_lost else ["default", "a", "b"]
        assert [event.key.name for event in stored] == own


async def test_history_that_is_gone_ends_and_is_not_found() -> None:
    async with in_memory("") as world, serving(world) as histories:
        night, day = await begin(histories, "night"), await begin(histories, "day")
        log = world.log
        assert isinstance(log, MemoryLog)
        del log._store.by_id[night.info.id], log._store.by_name["night"]
        with pytest.raises(LogUnavailable):
            await night.submit(config_map("late"), actor=ALICE)
        await day.submit(config_map("e"), actor=ALICE)
        assert names(day) == [*NAMES, "e"]
