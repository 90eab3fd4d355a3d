"""One drawn alteration of anything in the database: verification fails, or it means nothing."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio
import asyncpg
import pytest

from app.adapters.head_keys import open_head_key
from app.bootstrap import recordings, stores
from app.bootstrap.histories import open_histories, views_of
from app.domain.errors import InputError, LogError, Rejected
from app.domain.log import Actor, Head, Revision
from app.domain.log.pages import Page
from app.domain.values.timestamps import Instant
from app.service import copying
from app.service.folding.projecting import FoldingBounds, Projector
from app.service.forking import ForkRequest
from app.settings import Settings
from projections.objects import ObjectsProjection
from tests import draws
from tests.conftest import in_thread, new_database
from tests.contracts import drawn_tampering
from tests.contracts.test_tampering import untouched as of_two  # noqa: F401
from tests.contracts.test_tampering import verify

pytestmark = pytest.mark.database

USER = Actor(user="alice", groups=("system:masters",))


@pytest.fixture(scope="module")
def family(
    server_url: str,
    of_two: str,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The name of a database with a history, its fork, its copy, and what is kept of them."""
    folder = tmp_path_factory.mktemp("keys")

    async def prepare(url: str) -> None:
        settings = Settings(database_url=url)
        async with stores.open_store(settings) as store:
            victim = await stores.find_history(store, "victim")
            async with open_histories(store, settings) as histories:
                await histories.fork("victim", "fork", "20", wanted=ForkRequest(), actor=USER)
                runtime = await histories.open("victim")
                await runtime.save_snapshot()
                await copying.copy_history(store.log, victim, "copy", until=Revision(15))
                await copying.copy_history(store.log, victim, "gone", until=Revision(3))
                await histories.delete("gone", by="alice")
            (row,) = await store.log.read_stored(victim.id, after=Revision(4), limit=1)
            head = Head(revision=Revision(5), hash=row.event.hash, time=Instant(row.clock or 0))
            await store.log.keep_heads(victim.id, [open_head_key(folder).sign("victim", head)])
            await store.leases.acquire(victim.id, "scheduling", "me", seconds=60.0)
            for name in ("victim", "fork"):
                await recordings.rebuild(store, settings, name, lambda *_: None)

    with new_database(server_url, "family", of_two) as url:
        in_thread(lambda: anyio.run(prepare, url))
        yield urlsplit(url).path.removeprefix("/")


@asynccontextmanager
async def owner(url: str) -> AsyncIterator[asyncpg.Connection]:
    """The owner with all guards off."""
    connection = await asyncpg.connect(url)
    try:
        for row in await connection.fetch(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace "
            "AND relkind IN ('r', 'p')"
        ):
            await connection.execute(f"ALTER TABLE {row['relname']} DISABLE TRIGGER ALL")
        yield connection
    finally:
        await connection.close()


async def agrees(url: str, name: str) -> bool:
    """Whether verification takes the history as it is; False also where it is refused."""
    try:
        return (await verify(url, name=name)).agrees
    except (LogError, InputError, Rejected):
        return False


async def mends_itself(url: str, name: str) -> bool:
    """Whether what is kept beside the log has no effect: neither on what is served, nor on rows."""
    settings = Settings(database_url=url)
    async with stores.open_store(settings) as store:
        async with open_histories(store, settings) as histories:
            runtime = await histories.open(name)
            served, info = runtime.views.objects.dump(), runtime.info
        folded = ObjectsProjection(tells_changes=False)
        folded.fold_page(Page(await store.log.read(info.id, after=Revision(0), limit=10_000)))
        projector = Projector(
            log=store.log, views=store.views, history=info.id, make=views_of(info.settings),
            bounds=FoldingBounds(),
        )  # fmt: skip
        await projector.open()
        await projector.catch_up()
        rows = await recordings.rebuild(store, settings, name, lambda *_: None)
    return served == folded.dump() and all(row["same"] and row["compared"] for row in rows)


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(4))
async def test_drawn_alteration_is_noticed_or_has_no_effect(
    server_url: str, family: str, seed: int
) -> None:
    with new_database(server_url, template=family) as url:
        async with owner(url) as connection:
            altered = await drawn_tampering.alter(connection, seed)
            numbers = {
                row["history"]: row["name"]
                for row in await connection.fetch("SELECT history, name FROM histories")
            }
        for number in altered.histories:
            if number in numbers and await agrees(url, numbers[number]):
                assert altered.table in BESIDE_THE_LOG, altered.said
                assert await mends_itself(url, numbers[number]), altered.said


@pytest.mark.parametrize("revision", [20, 1, 0, -7])
async def test_event_below_the_own_ones_of_a_fork_is_noticed(
    server_url: str, family: str, revision: int
) -> None:
    """No reading of the fork comes there: the events up to its beginning are its parent's."""
    with new_database(server_url, template=family) as url:
        async with owner(url) as connection:
            await connection.execute(
                "CREATE TEMP TABLE stray AS SELECT * FROM log_events WHERE (history, revision) = "
                "(SELECT history, revision FROM histories JOIN log_heads USING (history) "
                "WHERE name = 'fork');"
                f"UPDATE stray SET revision = {revision};"
                "INSERT INTO log_events SELECT * FROM stray"
            )
        report = await verify(url, name="fork")
        assert not report.agrees
        assert f"there is an event at revision {revision}, and the" in report.chain.problem
        assert await agrees(url, "victim")


BESIDE_THE_LOG = ("checkpoints", "snapshots")
"""What makes servers quicker; they compare it with the log before they use it."""


async def test_untouched_family_agrees(server_url: str, family: str) -> None:
    with new_database(server_url, template=family) as url:
        for name in ("victim", "fork", "copy", "other"):
            assert await agrees(url, name), name
        assert await mends_itself(url, "fork")


async def test_tamperer_alters_every_table_and_column(server_url: str, family: str) -> None:
    """Nothing that is stored is out of its reach, but what it need not alter."""
    with new_database(server_url, template=family) as url:
        async with owner(url) as connection:
            tables = await drawn_tampering.tables_of(connection)
            drawn = [drawn_tampering.drawn(tables, seed) for seed in range(3_000)]
    places = {(one.table, one.column) for one in drawn if one is not None}
    for table in tables:
        if table.rows and not table.name.startswith("view_"):
            others = {name for name in table.columns if name not in table.key}
            assert {(table.name, name) for name in (*others, "*")} <= places
