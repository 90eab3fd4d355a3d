"""Histories that nobody uses are closed; those that are used, or have something due, are open."""

from contextlib import asynccontextmanager

import anyio
import pytest

from app.adapters.memory import MemoryStore, MemoryViewStore
from app.domain.errors import LogUnavailable, NotFound
from app.domain.log import Actor, ObjectKey
from app.domain.objects.write.commands import CreateObject
from app.domain.values.timestamps import SECOND, Instant
from app.service.alarms import Alarms
from app.workers import reopening
from tests.api.serving import CONFIG_MAPS, config_map, serving
from tests.patience import PATIENCE_SECONDS

HISTORIES = "/redra/v1/histories"


def names(server):
    return [runtime.info.name for runtime in server.histories.open_runtimes()]


async def closed(server, idle_seconds=0.0, kept=("default",)):
    # The first look sees what was stored since the history was opened.
    await server.histories.close_idle(1e9)
    return await server.histories.close_idle(idle_seconds, kept=kept)


async def test_history_that_nobody_uses_is_closed_and_opened_where_it_ended():
    async with serving() as server:
        await server.histories.create_cluster("night")
        await server.post(f"/h/night{CONFIG_MAPS}", config_map("one"))
        assert names(server) == ["default", "night"]
        assert await closed(server, idle_seconds=3_600) == []
        assert await closed(server) == ["night"]
        assert names(server) == ["default"]
        await server.post(f"/h/night{CONFIG_MAPS}", config_map("two"))
        listed = await server.get(f"/h/night{CONFIG_MAPS}")
        assert [item["metadata"]["name"] for item in listed["items"]] == ["one", "two"]


async def test_looking_at_the_list_of_histories_opens_none():
    store = MemoryStore()
    async with serving(store=store) as server:
        await server.histories.create_cluster("night")
    async with serving(store=store) as server:
        listed = {item["name"]: item for item in (await server.get(HISTORIES))["items"]}
        assert listed["night"]["revision"] > 0
        await server.get(f"{HISTORIES}/night")
        assert names(server) == []


@pytest.mark.parametrize(
    "path", [f"/h/night{CONFIG_MAPS}?watch=1", f"{HISTORIES}/night/events?follow=1"]
)
async def test_history_that_a_client_follows_stays_open(path):
    async with serving() as server:
        await server.histories.create_cluster("night")
        async with server.watch(path):
            with anyio.fail_after(PATIENCE_SECONDS):
                night = await server.histories.open("night")
                while not night.watches.count_clients():
                    await anyio.lowlevel.checkpoint()
            assert await closed(server) == []
        with anyio.fail_after(PATIENCE_SECONDS):
            while night.watches.count_clients():
                await anyio.lowlevel.checkpoint()
        assert await closed(server) == ["night"]


async def test_history_in_which_something_is_stored_stays_open():
    async with serving() as server:
        night = await server.histories.create_cluster("night")
        await server.histories.close_idle(1e9)
        key = ObjectKey("", "configmaps", "default", "m")
        command = CreateObject(key=key, version="v1", tree=config_map("m"))
        await night.submit(command, actor=Actor(user="a controller"))
        assert await server.histories.close_idle(0.0, kept=("default",)) == []
        assert await server.histories.close_idle(0.0, kept=("default",)) == ["night"]


async def test_write_to_a_history_that_was_closed_meanwhile_is_refused():
    async with serving() as server:
        night = await server.histories.create_cluster("night")
        await server.histories.close("night")
        key = ObjectKey("", "configmaps", "default", "m")
        command = CreateObject(key=key, version="v1", tree=config_map("m"))
        with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(LogUnavailable):
            await night.submit(command, actor=Actor(user="u"))


class _Due:
    """A controller with something due."""

    def __init__(self, due):
        self._due = due

    def due(self):
        return self._due


async def test_history_is_opened_when_something_becomes_due_in_it():
    async with serving() as server:
        night = await server.histories.create_cluster("night")
        now = night.clock.now()
        night.leading["eviction"] = _Due(Instant(now - SECOND))
        night.leading["scheduling"] = _Due(Instant(0))
        assert await closed(server) == ["night"]
        assert await reopening.open_due(server.histories) == ["night"]
        again = await server.histories.open("night")
        again.leading["eviction"] = _Due(Instant(now + 3_600 * SECOND))
        assert await closed(server) == ["night"]
        assert await reopening.open_due(server.histories) == []


async def test_live_histories_that_others_write_to_are_opened():
    store = MemoryStore()
    async with serving(store=store) as other:
        await other.histories.create_cluster("night")
        await other.histories.create_cluster("recorded", settings={"recorded": True})
        async with serving(store=store) as server:
            assert await reopening.open_active(server.histories, 0.0) == []
            assert await reopening.open_active(server.histories, 3_600, ("other",)) == []
            assert set(await reopening.open_active(server.histories, 3_600)) == {"default", "night"}
            await other.histories.create_cluster("later")
            assert await reopening.open_active(server.histories, 3_600) == ["later"]


@asynccontextmanager
async def process(store, views, only=()):
    """One process that runs controllers over a store that others were served from."""
    async with serving(store=store) as server:
        server.histories.alarms = Alarms(views, only)
        yield server


async def due_after_restart(store, views, only=()):
    async with process(store, views, only) as server:
        await reopening.recall_alarms(server.histories)
        return await reopening.open_due(server.histories)


@pytest.mark.parametrize(("seconds", "opened"), [(-1, ["night"]), (3_600, [])])
async def test_what_is_due_in_a_closed_history_outlives_the_process(seconds, opened):
    store, views = MemoryStore(), MemoryViewStore({})
    async with process(store, views) as server:
        night = await server.histories.create_cluster("night")
        night.leading["eviction"] = _Due(Instant(night.clock.now() + seconds * SECOND))
        await server.histories.close("night")
    assert await due_after_restart(store, views) == opened


async def test_history_without_anything_due_stays_closed_after_a_restart():
    store, views = MemoryStore(), MemoryViewStore({})
    async with process(store, views) as server:
        await server.histories.create_cluster("night")
        await server.histories.close("night")
    assert await due_after_restart(store, views) == []


async def test_history_that_was_open_when_its_process_ended_is_opened_at_the_next_start():
    store, views = MemoryStore(), MemoryViewStore({})
    async with process(store, views) as server:
        await server.histories.create_cluster("night")
        await server.histories.create_cluster("recorded", settings={"recorded": True})
    assert await due_after_restart(store, views) == ["night"]


async def test_what_is_due_is_opened_when_the_database_answers_again(monkeypatch):
    async with serving() as server:
        for name in ("day", "night", "gone"):
            runtime = await server.histories.create_cluster(name)
            runtime.leading["eviction"] = _Due(Instant(0))
            await server.histories.close(name)
        await server.histories.delete("gone", by="alice")

        async def no_answer(info):
            raise LogUnavailable("no database server answers")

        with monkeypatch.context() as outage:
            outage.setattr(server.histories, "_start", no_answer)
            with pytest.raises(LogUnavailable):
                await reopening.open_due(server.histories)
        assert await reopening.open_due(server.histories) == ["day", "night"]
        assert not server.histories.alarms.is_due(server.histories.now())


async def test_alarm_follows_a_history_that_is_renamed():
    store, views = MemoryStore(), MemoryViewStore({})
    async with process(store, views) as server:
        night = await server.histories.create_cluster("night")
        night.leading["eviction"] = _Due(Instant(0))
        await server.histories.close("night")
        await server.histories.rename("night", "day")
        assert await reopening.open_due(server.histories) == ["day"]


async def test_processes_that_share_the_controllers_keep_alarms_of_their_own():
    store, views = MemoryStore(), MemoryViewStore({})
    async with process(store, views, ["eviction"]) as server:
        night = await server.histories.create_cluster("night")
        night.leading["eviction"] = _Due(Instant(0))
        await server.histories.close("night")
    async with process(store, views, ["scheduling"]) as server:
        await server.histories.open("night")
        await server.histories.close("night")
    assert await due_after_restart(store, views, ["scheduling"]) == []
    assert await due_after_restart(store, views, ["eviction"]) == ["night"]


class _Failing(Alarms):
    """Alarms whose store fails while a history is being opened."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(None)
        self.problem = problem

    async def note_open(self, info, revision):
        raise self.problem


@pytest.mark.parametrize(
    "problem",
    [NotFound("history 2 not found", resource="histories", name="2"), LogUnavailable("no answer")],
    ids=["it-was-deleted", "no-database"],
)
async def test_history_that_cannot_be_opened_for_a_moment_is_not_broken(problem):
    store = MemoryStore()
    async with serving(store=store) as server:
        await server.histories.create_cluster("night")
    async with serving(store=store) as server:
        working, server.histories.alarms = server.histories.alarms, _Failing(problem)
        with pytest.raises(type(problem)):
            await server.histories.open("night")
        assert server.histories.broken() == []
        server.histories.alarms = working
        assert (await server.histories.open("night")).info.name == "night"
