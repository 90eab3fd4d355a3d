"""A history that cannot be opened or followed is shown with the cause; the others are served."""

import logging
import re

import anyio
import anyio.lowlevel
import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.views import LiveViews
from app.domain.errors import ChainBroken, HistoryBroken, NotFound
from app.domain.log import Draft, Revision
from app.domain.log.chain import seal
from app.service.runtime import HistoryRuntime
from app.workers import reopening
from tests.api.serving import CONFIG_MAPS, claim, config_map, serving
from tests.api.test_authentication import KNOWN, ROLES
from tests.contracts.restoring import restore_older
from tests.patience import PATIENCE_SECONDS

WORDS = "this cannot be folded"
CAUSE = f"TypeError: {WORDS}"
HISTORIES = "/redra/v1/histories"
NO_HEAD = "it has no head: the row was deleted from the database"


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, logger="redra")


@pytest.fixture
def poison(monkeypatch):
    """Folds of objects named `poison` go wrong, as those of a mistake of ours would."""
    fold = LiveViews.fold

    def broken(self, event):
        if event.key.name == "poison":
            raise TypeError(WORDS)
        fold(self, event)

    monkeypatch.setattr(LiveViews, "fold", broken)


async def _night_with(store, name):
    """A history `night` that holds a ConfigMap of that name."""
    async with serving(store=store) as server:
        await server.histories.create_cluster("night")
        await server.post(f"/h/night{CONFIG_MAPS}", config_map(name))


async def test_the_others_are_served_when_one_cannot_be_opened(request):
    store = MemoryStore()
    await _night_with(store, "poison")
    request.getfixturevalue("poison")
    async with serving(store=store) as server:
        with pytest.raises(HistoryBroken, match=WORDS):
            await server.histories.open("night")
        refused = await server.get(f"/h/night{CONFIG_MAPS}", 503)
        assert refused["reason"] == "ServiceUnavailable"
        assert CAUSE in refused["message"]
        await server.get(f"{HISTORIES}/night/views/claims", 503)
        await server.post(CONFIG_MAPS, config_map("fine"))
        listed = {item["name"]: item for item in (await server.get(HISTORIES))["items"]}
        assert listed["night"]["broken"] == CAUSE
        assert listed["default"]["broken"] == ""
        assert (await server.get(f"{HISTORIES}/night"))["broken"] == CAUSE
        health = await server.raw("GET", "/readyz")
        assert (health.status_code, health.text) == (200, f"ok\nnight: {CAUSE}\n")


async def test_health_names_histories_only_where_nobody_needs_credentials(request):
    """An answer that needs no credentials is for everybody who reaches the server."""
    store = MemoryStore()
    await _night_with(store, "poison")
    request.getfixturevalue("poison")
    for options in ({"credentials": KNOWN}, {"authorization": ROLES}):
        async with serving(store=store, **options) as server:
            with pytest.raises(HistoryBroken, match=WORDS):
                await server.histories.open("night")
            for path in ("/healthz", "/readyz", "/livez", "/readyz/log"):
                health = await server.raw("GET", path)
                assert (health.status_code, health.text) == (200, "ok")
            default = await server.histories.open("default")
            default.troubles["scheduler"] = "it read pods/secret-name"
            health = await server.raw("GET", "/readyz")
            assert health.status_code == 503
            assert health.text.startswith("not ready: reasons withheld, ")
            assert not {"night", "scheduler", "secret-name"} & {*re.findall(r"[\w-]+", health.text)}


@pytest.fixture
def headless(monkeypatch):
    """A function after which a history has no head, and one after which it is deleted unseen."""
    lost, gone = set(), set()
    head, find = MemoryLog.head, MemoryLog.find_history

    async def head_of(self, history):
        if history in lost | gone:
            raise NotFound(f"history {history} not found", resource="histories", name=str(history))
        return await head(self, history)

    async def find_history(self, name):
        stored = await find(self, name)
        return None if stored is not None and stored.id in gone else stored

    monkeypatch.setattr(MemoryLog, "head", head_of)
    monkeypatch.setattr(MemoryLog, "find_history", find_history)
    return lost.add, gone.add


async def test_history_without_a_head_is_shown_as_broken_and_the_others_are_served(headless):
    lose, _ = headless
    async with serving() as server:
        night = (await server.histories.create_cluster("night")).info
        await server.histories.close("night")
        lose(night.id)
        assert await reopening.open_active(server.histories, 3_600) == []
        listed = {item["name"]: item for item in (await server.get(HISTORIES))["items"]}
        assert listed["night"]["broken"] == NO_HEAD
        assert listed["night"]["revision"] == 0
        assert listed["default"]["broken"] == ""
        refused = await server.get(f"/h/night{CONFIG_MAPS}", 503)
        assert NO_HEAD in refused["message"]
        await server.post(CONFIG_MAPS, config_map("fine"))


async def test_history_that_is_deleted_while_all_are_listed_is_left_out(headless):
    _, delete = headless
    async with serving() as server:
        night = (await server.histories.create_cluster("night")).info
        await server.histories.close("night")
        delete(night.id)
        assert await reopening.open_active(server.histories, 3_600) == []
        assert [item["name"] for item in (await server.get(HISTORIES))["items"]] == ["default"]


async def test_history_that_is_deleted_while_it_is_read_is_not_broken(monkeypatch):
    """What is left of a fork are its parents' events, which do not fit to its settings."""
    async with serving() as server:
        await server.histories.create_cluster("night")
        await server.histories.close("night")

        async def load(runtime):
            await runtime.log.delete_history(runtime.info.id, at=runtime.info.created, by="alice")
            raise ChainBroken(Revision(2), "its settings are not those of its first event")

        monkeypatch.setattr(HistoryRuntime, "load", load)
        with pytest.raises(NotFound):
            await server.histories.open("night")
        assert list(server.histories.broken()) == []


async def test_broken_history_is_not_folded_again_before_its_log_changes(request, monkeypatch):
    store = MemoryStore()
    await _night_with(store, "poison")
    request.getfixturevalue("poison")
    async with serving(store=store) as server:
        with pytest.raises(HistoryBroken):
            await server.histories.open("night")
        monkeypatch.undo()
        with pytest.raises(HistoryBroken):
            await server.histories.open("night")
        info = await server.histories.info("night")
        log = server.histories._ports.log
        head = await log.head(info.id)
        last = (await log.read(info.id, after=head.revision - 1, limit=1))[0]
        await log.append(info.id, expected=head, events=[_next(last)])
        runtime = await server.histories.open("night")
        assert runtime.views.revision == head.revision + 1
        assert server.histories.broken() == []


def _next(event):
    tree = dict(event.object) | {"metadata": dict(event.object["metadata"])}
    draft = Draft(type=event.type, key=event.key, uid=event.uid, tree=tree, stamp=event.stamp)
    return seal(draft, event.revision + 1, event.hash)


async def test_mistake_while_following_ends_that_history_only(poison):
    async with serving() as server:
        await server.histories.create_cluster("night")
        await server.raw("POST", f"/h/night{CONFIG_MAPS}", config_map("poison"))
        with anyio.fail_after(PATIENCE_SECONDS):
            while not server.histories.broken():
                await anyio.lowlevel.checkpoint()
        await server.get(f"/h/night{CONFIG_MAPS}", 503)
        await server.post(CONFIG_MAPS, config_map("fine"))
        assert [found.info.name for found in server.histories.broken()] == ["night"]


async def test_log_that_was_replaced_is_named_and_nothing_of_the_lost_one_is_shown():
    store = MemoryStore()
    place = "/h/night/apis/resource.k8s.io/{}/namespaces/default/resourceclaims"
    old, stored = place.format("v1beta2"), place.format("v1")
    async with serving(store=store) as server:
        runtime = await server.histories.create_cluster("night")
        keep = runtime.head.revision
        lost = await server.post(stored, claim("c", labels={"is": "lost"}))
        revision = lost["metadata"]["resourceVersion"]
        assert (await server.get(f"{old}/c"))["metadata"]["labels"] == {"is": "lost"}
        assert len((await server.get(f"{old}?limit=1"))["items"]) == 1
        rows = await server.get(f"{HISTORIES}/night/views/claims")
        assert [row["name"] for row in rows["items"]] == ["c"]

        restore_older(store.history(runtime.info.id), keep)
        refused = await server.post(stored, claim("d"), 503)
        assert refused["reason"] == "ServiceUnavailable"
        with anyio.fail_after(PATIENCE_SECONDS):
            while await server.histories.open("night") is runtime:
                await anyio.lowlevel.checkpoint()
        health = await server.raw("GET", "/readyz")
        assert health.status_code == 200
        assert health.text.startswith("ok\nnight: read again because the hash chain breaks at")
        listed = {item["name"]: item for item in (await server.get(HISTORIES))["items"]}
        assert "the log ends there" in listed["night"]["replaced"]
        assert (listed["night"]["broken"], listed["default"]["replaced"]) == ("", "")

        await server.get(f"{old}/c", 404)
        assert (await server.get(f"{HISTORIES}/night/views/claims"))["items"] == []
        # The same revision is another event now.
        made = await server.post(stored, claim("c", labels={"is": "new"}))
        assert made["metadata"]["resourceVersion"] == revision
        assert (await server.get(f"{old}/c"))["metadata"]["labels"] == {"is": "new"}
        [item] = (await server.get(f"{old}?resourceVersion={revision}&limit=1"))["items"]
        assert item["metadata"]["labels"] == {"is": "new"}
        past = f"/h/night@{revision}{old.removeprefix('/h/night')}"
        assert (await server.get(f"{past}/c"))["metadata"]["labels"] == {"is": "new"}


async def test_history_whose_settings_cannot_be_read_is_broken():
    store = MemoryStore()
    async with serving(store=store) as server:
        log = server.histories._ports.log
        await log.create_history("odd", seed=0, settings={"profile": "0.1"}, created=0)
    async with serving(store=store) as server:
        listed = {item["name"]: item for item in (await server.get(HISTORIES))["items"]}
        assert "no profile '0.1'" in listed["odd"]["broken"]
        refused = await server.get(f"/h/odd{CONFIG_MAPS}", 503)
        assert "no profile '0.1'" in refused["message"]
        await server.get(CONFIG_MAPS)
