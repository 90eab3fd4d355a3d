"""Each pair of transactions of the adapters, of one history and of two: no deadlock breaks one.

One stops before each of its statements while the other goes on until it has ended or waits. What
several sessions do within one statement is stopped by a gate: a trigger that waits for a lock.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import asyncpg
import pytest

from app.adapters.postgres import reader
from app.adapters.postgres.database import Database, DatabaseBounds, open_database
from app.adapters.postgres.leases import PostgresLeases
from app.adapters.postgres.log import PostgresLog
from app.domain.errors import RedraError
from app.domain.log import Head, HistoryId, Revision
from tests import draws
from tests.conftest import new_database
from tests.contracts.building import START, claims
from tests.contracts.stepped import (
    ACTS,
    STATEMENTS_MAX,
    TABLE,
    VIEW,
    Act,
    Scene,
    Stepped,
    delete,
    scene,
    signed,
    views_of,
    waiting,
    write,
)
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.database

GATE = 77
"""The number of the advisory lock for which the triggers wait."""


async def refused_or_done(act: Act, database: Any, at: Scene) -> str:
    try:
        await act(database, at)
    except RedraError as problem:
        return f"{type(problem).__name__}: {problem}"
    return "done"


async def fork(database: Any, at: Scene) -> None:
    log = PostgresLog(database)
    for parent in await log.histories():
        if parent.id == at.history:
            name = f"fork-{at.history}"
            await log.fork_history(
                name, parent=parent, end=at.head, seed=1, settings={}, created=START
            )


async def copy(database: Any, at: Scene) -> HistoryId:
    made = await PostgresLog(database).create_history(
        f"copy-{at.history}", seed=1, settings={}, created=START, parent=at.history
    )
    await PostgresLog(database).append(made.id, expected=Head(), events=claims(Head(), 2))
    return made.id


OTHERS: dict[str, Act] = {
    **ACTS,
    "many events": lambda db, at: PostgresLog(db).append(
        at.history, expected=at.head, events=claims(at.head, 300), leases=at.tokens
    ),
    "a renewed lease": lambda db, at: PostgresLeases(db).renew(
        at.history, at.tokens[0], seconds=60.0
    ),
    "a released lease": lambda db, at: PostgresLeases(db).release(at.history, at.tokens[0]),
    "a name": lambda db, at: PostgresLog(db).rename_history(at.history, f"other-{at.history}"),
    "a fork": fork,
    "a copy": copy,
    "deletion": delete,
}  # fmt: skip


@dataclass(kw_only=True)
class Play:
    """A database on which two transactions are played against each other, a watcher beside it."""

    database: Database
    watcher: asyncpg.Connection
    count: int = 0
    failures: list[str] = field(default_factory=list)

    async def each_stop(self, first: str, second: str, *, of_two: bool) -> None:
        """Let the first stop before each of its statements while the second goes on."""
        every = 6 if OTHERS[first] is delete else 1
        for stop in draws.part(range(STATEMENTS_MAX), every):
            self.count += 1
            one = await scene(self.database, 2 * self.count)
            other = await scene(self.database, 2 * self.count + 1) if of_two else one
            stepped = Stepped(database=self.database, stop=stop)
            outcomes: dict[str, str] = {}

            async def run(name: str, act: Act, through: Any, at: Scene, into: dict) -> None:
                into[name] = await refused_or_done(act, through, at)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run, "1", OTHERS[first], stepped, one, outcomes)
                with anyio.fail_after(PATIENCE_SECONDS):
                    while not stepped.reached.is_set() and not outcomes:
                        await anyio.lowlevel.checkpoint()
                    if outcomes:
                        return
                    tasks.start_soon(run, "2", OTHERS[second], self.database, other, outcomes)
                    while not outcomes and await waiting(self.watcher) < 1:
                        pass
                stepped.onward.set()
            if any("Unavailable" in each or "Wrong" in each for each in outcomes.values()):
                self.failures.append(f"{first} before its statement {stop}, {second}: {outcomes}")


@asynccontextmanager
async def play(url: str) -> AsyncIterator[Play]:
    async with open_database(url, DatabaseBounds(connections_max=20)) as database:
        watcher = await asyncpg.connect(url)
        try:
            yield Play(database=database, watcher=watcher)
        finally:
            await watcher.close()


@draws.BY_DAY
@pytest.mark.parametrize("of_two", [False, True])
@pytest.mark.parametrize("first", OTHERS)
async def test_no_pair_is_a_deadlock(database_url: str, first: str, of_two: bool) -> None:
    async with play(database_url) as played:
        for second in OTHERS:
            await played.each_stop(first, second, of_two=of_two)
        assert played.failures == []
        assert played.count > len(OTHERS)


GATED = """
CREATE FUNCTION pass_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({gate});
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END
$$;
CREATE TRIGGER gate {when} FOR EACH ROW EXECUTE FUNCTION pass_gate();
"""


async def gated(played: Play, *sides: tuple[Any, Act, Scene], when: str = "") -> list[str]:
    """The outcomes of transactions that all wait at a gate, or for each other, before it opens."""
    outcomes: dict[int, str] = {}
    if when:
        await played.watcher.execute(GATED.format(gate=GATE, when=when))
    await played.watcher.execute(f"SELECT pg_advisory_lock({GATE})")

    async def run(number: int, database: Any, act: Act, at: Scene) -> None:
        outcomes[number] = await refused_or_done(act, database, at)

    async with anyio.create_task_group() as tasks:
        for number, (database, act, at) in enumerate(sides, start=1):
            tasks.start_soon(run, number, database, act, at)
            with anyio.fail_after(PATIENCE_SECONDS):
                while len(outcomes) + await waiting(played.watcher) < number:
                    pass
        await played.watcher.execute(f"SELECT pg_advisory_unlock({GATE})")
    return [outcomes[number] for number in sorted(outcomes)]


def renamed(name: str) -> Act:
    return lambda db, at: PostgresLog(db).rename_history(at.history, name)


NAMES_CHECKED_LAST = """
ALTER TABLE histories DROP CONSTRAINT histories_name_key;
CREATE FUNCTION pass_by(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared({gate}); RETURN $1; END
$$;
CREATE INDEX gate ON histories (pass_by(name));
ALTER TABLE histories ADD CONSTRAINT histories_name_key UNIQUE (name);
"""
"""A gate between the change of a row and the check of its name: an index that is written before."""


async def test_two_histories_that_take_each_others_name_are_both_refused(database_url: str) -> None:
    async with play(database_url) as played:
        one, other = [await scene(played.database, number) for number in (1, 2)]
        await played.watcher.execute(NAMES_CHECKED_LAST.format(gate=GATE))
        outcomes = await gated(
            played,
            (played.database, renamed("h-2"), one),
            (played.database, renamed("h-1"), other),
        )
        assert outcomes == [
            'AlreadyExists: histories "h-2" already exists',
            'AlreadyExists: histories "h-1" already exists',
        ]


async def test_copy_takes_the_name_of_its_original_while_that_is_deleted(database_url: str) -> None:
    async with play(database_url) as played:
        one = await scene(played.database, 1)
        made = Scene(history=await copy(played.database, one), head=Head(), tokens=[])
        outcomes = await gated(
            played,
            (played.database, renamed("h-1"), made),
            (played.database, delete, one),
            when="BEFORE UPDATE OF name ON histories",
        )
        assert outcomes[1] == "done"
        assert outcomes[0] in ("done", 'AlreadyExists: histories "h-1" already exists')


async def test_signed_heads_are_kept_in_one_order(database_url: str) -> None:
    def keep(*revisions: int) -> Act:
        return lambda db, at: PostgresLog(db).keep_heads(at.history, [signed(n) for n in revisions])

    async with play(database_url) as played:
        at = await scene(played.database, 1)
        outcomes = await gated(
            played,
            (played.database, keep(2, 3), at),
            (played.database, keep(3, 2), at),
            when="AFTER INSERT ON signed_heads",
        )
        assert outcomes == ["done", "done"]
        assert [
            head.revision for head in await PostgresLog(played.database).kept_heads(at.history)
        ] == [1, 2, 3]


@pytest.mark.parametrize("other", ["deletion", "a rebuild"])
async def test_snapshots_are_removed_whatever_the_plans(database_url: str, other: str) -> None:
    """The planner may read the snapshots along the index or as they lie in the table."""
    plans = [
        {"enable_seqscan": "off", "enable_bitmapscan": "off"},
        {"enable_indexscan": "off", "enable_bitmapscan": "off"},
    ]
    async with (
        play(database_url) as played,
        open_database(database_url, session=plans[0]) as along_the_index,
        open_database(database_url, session=plans[1]) as as_they_lie,
    ):
        at = await scene(played.database, 1)
        views = views_of(played.database)
        for revision in (2, 1):
            await views.save_snapshot(at.history, VIEW, 1, Revision(revision), b"state" * 2)
        outcomes = await gated(
            played,
            (along_the_index, OTHERS["a rebuild"], at),
            (as_they_lie, OTHERS[other], at),
            when="BEFORE DELETE ON snapshots",
        )
        assert outcomes == ["done", "done"]


async def test_first_writes_of_two_versions_leave_one_of_them(database_url: str) -> None:
    """Whichever stops where: the rows are those of the one version that has a checkpoint."""

    def begin(version: int, row: str) -> Act:
        return lambda db, at: write(views_of(db), at.history, version=version, after=0, rows=row)

    async with play(database_url) as played:
        for stop in range(STATEMENTS_MAX):
            at = await scene(played.database, stop)
            stepped = Stepped(database=played.database, stop=stop)
            async with anyio.create_task_group() as tasks:
                outcomes: dict[int, str] = {}

                async def run(number: int, database: Any, act: Act, at: Scene, into: dict) -> None:
                    into[number] = await refused_or_done(act, database, at)

                tasks.start_soon(run, 2, stepped, begin(2, "two"), at, outcomes)
                with anyio.fail_after(PATIENCE_SECONDS):
                    while not stepped.reached.is_set() and not outcomes:
                        await anyio.lowlevel.checkpoint()
                    if outcomes:
                        break
                    tasks.start_soon(run, 3, played.database, begin(3, "three"), at, outcomes)
                    while not outcomes and await waiting(played.watcher) < 1:
                        pass
                stepped.onward.set()
            views = views_of(played.database)
            (left,) = [each.version for each in await views.checkpoints(at.history)]
            rows = await views.rows(at.history, TABLE)
            assert {row["name"] for row in rows} == {{2: "two", 3: "three"}[left]}, stop
        assert stop > 3


async def test_readers_are_prepared_in_two_databases_at_once(
    server_url: str, template: str
) -> None:
    """A role belongs to the server, so preparing it in one database meets that in another."""
    with (
        new_database(server_url, template=template) as one,
        new_database(server_url, template=template) as other,
    ):
        for _ in range(20):
            for url in (one, other):
                connection = await asyncpg.connect(url)
                await connection.execute("REVOKE SELECT ON checkpoints FROM redra_reader")
                await connection.close()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(reader.prepare, one)
                tasks.start_soon(reader.prepare, other)
