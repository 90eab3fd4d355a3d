"""The projector and the rebuild over the adapters in memory.

Seeds, and places at which a projector ends, come by day.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
import pytest

from app.adapters.memory import MemoryLog, MemoryStore, MemoryViewStore
from app.adapters.postgres.database import open_database
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.views import PostgresViewStore
from app.domain.errors import LogUnavailable
from app.domain.log import Event, Head, HistoryId, Revision, projection
from app.domain.log.projection import Projection, Row, RowKey, row_part
from app.domain.values.timestamps import Instant
from app.ports import EventLog, StoredRows, ViewStore
from app.service.folding.projecting import FoldingBounds, Projector
from app.service.folding.rebuild import Rebuilt, rebuild
from projections import all_projections, row_changes
from tests import draws
from tests.properties.event_worlds import world

TABLES = {view.name: view.tables() for view in all_projections()}
BOUNDS = FoldingBounds(page_max=7, snapshot_every=20, rebuild_tries_max=3)


class Store:
    """A log with one history, and its views."""

    def __init__(self, log: EventLog, views: ViewStore, history: HistoryId) -> None:
        self.log = log
        self.views = views
        self.history = history
        self.head = Head()

    async def append(self, events: Sequence[Event]) -> None:
        self.head = await self.log.append(self.history, expected=self.head, events=events)

    async def projector(
        self, make: Callable[[], Sequence[Projection]] = all_projections
    ) -> Projector:
        made = Projector(
            log=self.log, views=self.views, history=self.history, make=make, bounds=BOUNDS
        )
        await made.open()
        return made

    async def rebuild(
        self,
        names: Sequence[str] = (),
        make: Callable[[], Sequence[Projection]] = all_projections,
        *,
        check_rows: bool = True,
    ) -> list[Rebuilt]:
        return await rebuild(
            log=self.log,
            views=self.views,
            history=self.history,
            make=make,
            bounds=BOUNDS,
            names=names,
            check_rows=check_rows,
        )

    async def rows(self) -> dict[str, list[dict[str, object]]]:
        return {
            table.name: await self.views.rows(self.history, table.name)
            for view in all_projections()
            for table in view.tables()
        }

    async def check(self, events: Sequence[Event]) -> None:
        """Checks that the stored rows and hashes equal those of one fold of all events."""
        stored = await self.rows()
        for view in all_projections():
            for event in events:
                view.fold(event)
            expected = folded_rows(view)
            for table in view.tables():
                found = {tuple(row[name] for name in table.key): row for row in stored[table.name]}
                assert found == expected[table.name], table.name
            checkpoint = await self.views.checkpoint(self.history, view.name, view.version)
            assert checkpoint is not None
            assert checkpoint.revision == len(events)
            assert checkpoint.state_hash == view.state_hash()


def folded_rows(view: Projection) -> dict[str, dict[RowKey, Row]]:
    """The existing rows of a view, by table."""
    rows: dict[str, dict[RowKey, Row]] = {table.name: {} for table in view.tables()}
    for table, keys in view.take_changed().items():
        for key in keys:
            row = view.row(table, key)
            if row is not None:
                rows[table][key] = {name: decoded(value) for name, value in row.items()}
    return rows


def decoded(value: object) -> object:
    """The value that a reader of the table gets."""
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


@pytest.fixture
async def store() -> Store:
    """A store in memory."""
    return await opened(MemoryLog(MemoryStore()), MemoryViewStore(TABLES))


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.database)])
async def any_store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """A store in memory, then one in PostgreSQL."""
    if request.param == "memory":
        yield await opened(MemoryLog(MemoryStore()), MemoryViewStore(TABLES))
        return
    async with open_database(request.getfixturevalue("database_url")) as database:
        yield await opened(PostgresLog(database), PostgresViewStore(database, lambda: TABLES))


async def opened(log: EventLog, views: ViewStore) -> Store:
    info = await log.create_history("h", seed=1, settings={}, created=Instant(0))
    return Store(log, views, info.id)


def claims_version(number: int) -> Callable[[], Sequence[Projection]]:
    """All views, with another version of the claims view."""

    def make() -> Sequence[Projection]:
        views = all_projections()
        for view in views:
            if view.name == "claims":
                view.version = number  # type: ignore[misc]  # a version is a class constant
        return views

    return make


@draws.in_turn("ways")
@pytest.mark.parametrize("seed", draws.seeds(2))
async def test_rows_follow_the_log_in_pages(any_store: Store, seed: int) -> None:
    store = any_store
    events = world(seed, 90)
    projector = await store.projector()
    for start in range(0, 90, 15):
        await store.append(events[start : start + 15])
        await projector.catch_up()
        await store.check(events[: start + 15])


@draws.BY_DAY
@pytest.mark.parametrize("stop", [1, 5, 20, 33, 80])
async def test_a_restarted_projector_goes_on_where_the_last_one_ended(
    any_store: Store, stop: int
) -> None:
    store = any_store
    events = world(3, 90)
    await store.append(events[:stop])
    await (await store.projector()).catch_up()
    await store.append(events[stop:])
    await (await store.projector()).catch_up()
    await store.check(events)


async def test_projector_that_goes_on_hashes_the_rows_that_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = world(3, 90)
    hashed: list[tuple[str, RowKey]] = []

    def noted(table: str, key: RowKey, row: Row) -> int:
        hashed.append((table, key))
        return row_part(table, key, row)

    for module in (projection, row_changes):
        monkeypatch.setattr(module, "row_part", noted)
    by_case = []
    for ends in (False, True):
        store = await opened(MemoryLog(MemoryStore()), MemoryViewStore(TABLES))
        await store.append(events[:80])
        projector = await store.projector()
        await projector.catch_up()
        if ends:
            projector = await store.projector()
        await store.append(events[80:])
        hashed.clear()
        await projector.catch_up()
        by_case.append(sorted(hashed))
    assert by_case[0]
    assert by_case[1] == by_case[0]


async def test_a_projector_that_ended_between_two_views_catches_up(store: Store) -> None:
    events = world(4, 60)
    await store.append(events)
    await (await store.projector(lambda: all_projections()[:3])).catch_up()
    await (await store.projector()).catch_up()
    await store.check(events)


async def test_two_projectors_at_once_write_what_one_would_write(store: Store) -> None:
    events = world(5, 90)
    first, second = await store.projector(), await store.projector()
    for start in range(0, 90, 30):
        await store.append(events[start : start + 30])
        await first.step()
        await second.step()
        await second.step()
        await first.catch_up()
        await second.catch_up()
    await store.check(events)


async def test_a_follower_that_lost_its_place_reads_what_it_missed(store: Store) -> None:
    events = world(12, 60)
    slow, fast = await store.projector(), await store.projector()
    await store.append(events[:20])
    await slow.take(events[:20], at_head=True)
    await fast.take(events[:10], at_head=True)
    await store.append(events[20:])
    await fast.take(events[20:40], at_head=True)
    await slow.take(events[20:40], at_head=True)
    await slow.take(events[40:], at_head=True)
    await store.check(events)


async def test_nothing_is_written_when_nothing_happened(store: Store) -> None:
    projector = await store.projector()
    assert await projector.step() == 0
    assert await store.views.checkpoints(store.history) == []


async def test_old_rows_stay_until_a_new_version_has_reached_the_head(any_store: Store) -> None:
    store = any_store
    events = world(6, 60)
    await store.append(events)
    await (await store.projector()).catch_up()
    before = await store.rows()
    assert before["view_claims"]
    projector = await store.projector(claims_version(2))
    while True:
        folded = await projector.step()
        if projector.revisions()["claims"] > 0:
            break
        assert await store.rows() == before
    assert folded < BOUNDS.page_max
    assert await store.rows() == before
    versions = [
        found.version
        for found in await store.views.checkpoints(store.history)
        if found.projection == "claims"
    ]
    assert versions == [2]


async def test_a_checkpoint_with_another_hash_is_built_anew(store: Store) -> None:
    events = world(7, 60)
    await store.append(events)
    await (await store.projector()).catch_up()
    version = next(view.version for view in all_projections() if view.name == "claims")
    await store.views.clear(store.history, "claims", version)
    wrong = {"state_hash": "sha256:00", "upserts": {}, "deletes": {}}
    assert await store.views.write(
        store.history, "claims", version, after=Revision(0), revision=Revision(50), **wrong
    )
    await (await store.projector()).catch_up()
    await store.check(events)


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(4))
async def test_a_rebuild_finds_the_same_hashes(any_store: Store, seed: int) -> None:
    store = any_store
    events = world(seed, 70)
    await store.append(events[:50])
    await (await store.projector()).catch_up()
    await store.append(events[50:])
    found = await store.rebuild()
    assert [one.projection for one in found] == [view.name for view in all_projections()]
    for one in found:
        assert (one.revision_before, one.revision) == (50, 70)
        assert one.hash_before == one.hash_again
        assert one.same is True
        assert one.rows_same is True
    await store.check(events)


async def test_a_rebuild_of_one_view_leaves_the_others_alone(store: Store) -> None:
    await store.append(world(8, 40))
    await (await store.projector()).catch_up()
    found = await store.rebuild(["claims"])
    assert [one.projection for one in found] == ["claims"]
    assert len(await store.views.checkpoints(store.history)) == len(all_projections())


async def test_a_rebuild_without_a_checkpoint_compares_nothing(store: Store) -> None:
    events = world(9, 40)
    await store.append(events)
    assert {one.same for one in await store.rebuild()} == {None}
    await store.check(events)


async def test_a_rebuild_names_rows_that_were_changed_by_hand(store: Store) -> None:
    events = world(10, 60)
    await store.append(events)
    await (await store.projector()).catch_up()
    [checkpoint] = [
        found
        for found in await store.views.checkpoints(store.history)
        if found.projection == "claims"
    ]
    row = (await store.views.rows(store.history, "view_claims"))[0]
    assert await store.views.write(
        store.history,
        "claims",
        checkpoint.version,
        after=checkpoint.revision,
        revision=checkpoint.revision,
        state_hash=checkpoint.state_hash,
        upserts={"view_claims": [{**row, "state": "stolen"}]},
        deletes={},
    )
    [found] = await store.rebuild(["claims"])
    assert found.same is True
    assert found.rows_same is False
    await store.check(events)


class Rival(MemoryViewStore):
    """A store in which another projector writes `steps` times at the worst moment.

    With `before_write` it writes before each write of the test; otherwise it writes after the
    checkpoint and the rows were read.
    """

    def __init__(self, store: Store, steps: int, *, before_write: bool) -> None:
        super().__init__(TABLES)
        self.store, self.steps, self.before_write = store, steps, before_write
        self.rival: Projector | None = None

    async def step(self) -> None:
        rival, self.rival = self.rival, None
        if rival is not None and self.steps:
            self.steps -= 1
            await self.store.append(world(11, 41 + 10 * self.steps)[self.store.head.revision :])
            await rival.catch_up()
        self.rival = rival

    async def write(self, *arguments: Any, **named: Any) -> bool:
        if self.before_write:
            await self.step()
        return await super().write(*arguments, **named)

    async def hash_rows(self, *arguments: Any, **named: Any) -> StoredRows:
        stored = await super().hash_rows(*arguments, **named)
        if not self.before_write:
            await self.step()
        return stored


@pytest.mark.parametrize("before_write", [True, False])
async def test_a_rebuild_goes_on_when_another_writer_has_reached_the_head(
    store: Store, before_write: bool
) -> None:
    rival = Rival(store, 1, before_write=before_write)
    store.views = rival
    await store.append(world(11, 30))
    projector = await store.projector()
    await projector.catch_up()
    rival.rival = projector
    rebuilt = await store.rebuild()
    assert rival.steps == 0
    assert {(one.same, one.rows_same) for one in rebuilt} == {(True, True)}
    assert rebuilt[0].revision_before == 30
    await store.check(world(11, 41))


async def test_a_rebuild_gives_up_when_another_writer_never_rests(store: Store) -> None:
    await store.append(world(11, 40))

    class Intruder(MemoryViewStore):
        """A store in which another process always writes first."""

        writes = 0

        async def write(self, *arguments: object, **named: object) -> bool:
            self.writes += 1
            return False

    store.views = Intruder(TABLES)
    with pytest.raises(LogUnavailable, match="another process is writing the view 'objects'"):
        await store.rebuild(check_rows=False)
    assert store.views.writes == BOUNDS.rebuild_tries_max
