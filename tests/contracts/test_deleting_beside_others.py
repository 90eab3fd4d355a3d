"""A history is deleted while others write about it: all lock in one order, and nothing is left.

Each interleaving is forced: one side stops before its Nth statement, the other goes on until it
has ended or waits for a lock, then the first goes on. No session may be the victim of a deadlock.
"""

from typing import Any

import anyio
import asyncpg
import pytest

from app.adapters.postgres.database import Database, DatabaseBounds, open_database
from app.adapters.postgres.leases import PostgresLeases
from app.adapters.postgres.log import PostgresLog
from app.domain.errors import Conflict, LogUnavailable, NotFound
from app.domain.log import HistoryId
from tests import draws
from tests.contracts.building import claims
from tests.contracts.stepped import (
    ACTS,
    STATEMENTS_MAX,
    Act,
    Scene,
    Stepped,
    delete,
    outcome,
    scene,
    waiting,
)
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.database

STATEMENTS_BEFORE_REMOVAL = 8
"""Those of a deletion until its tombstone is written; what it locks is locked then."""


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
