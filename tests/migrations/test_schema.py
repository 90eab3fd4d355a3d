"""Is the migrated schema what the code declares, in both directions and from every state?"""

import secrets
import socket
from urllib.parse import urlsplit, urlunsplit

import anyio
import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.adapters.postgres import migrating, schema, statements, tables
from app.adapters.postgres.database import DatabaseBounds, open_database
from app.bootstrap import stores
from app.domain.errors import InputError, LogUnavailable, WrongDatabase
from app.settings import read
from tests.conftest import say, with_database

pytestmark = pytest.mark.database

REVISIONS = [
    "base",
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
]


def test_revisions_by_file_are_those_by_content():
    config = Config()
    config.set_main_option("script_location", str(schema.migrations_folder()))
    config.set_main_option("path_separator", "os")
    walked = ScriptDirectory.from_config(config).walk_revisions()
    assert schema.revisions() == tuple(script.revision for script in walked)[::-1]
    assert ["base", *schema.revisions()] == REVISIONS


def test_tables_that_are_looked_for_are_the_declared_ones():
    assert schema.tables() == set(tables.metadata.tables)


def differences(connection: Connection) -> list[object]:
    partitions = set(
        connection.execute(text("SELECT relname FROM pg_class WHERE relispartition")).scalars()
    )

    def is_declared(thing: object, name: str, kind: str, reflected: bool, other: object) -> bool:
        return not (kind == "table" and (name in partitions or name == schema.VERSION_TABLE))

    context = MigrationContext.configure(
        connection,
        opts={
            "include_object": is_declared,
            "compare_type": True,
            "compare_server_default": True,
        },
    )
    return list(compare_metadata(context, tables.metadata))


async def inspect(url: str, question) -> object:
    address = make_url(url).set(drivername="postgresql+asyncpg")
    engine = create_async_engine(address, poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(question)
    finally:
        await engine.dispose()


async def test_migrated_schema_is_the_declared_one(database_url: str):
    assert await inspect(database_url, differences) == []


async def test_a_missing_column_would_be_noticed(database_url: str):
    await say(database_url, "ALTER TABLE leases DROP COLUMN holder")
    assert await inspect(database_url, differences) != []


async def test_every_revision_goes_up_and_down(empty_database_url: str):
    for revision in [*REVISIONS[1:], *REVISIONS[-2::-1], "head"]:
        stands = await migrating.migrate(empty_database_url, revision=revision)
        assert stands == (schema.newest() if revision == "head" else revision)
    assert await inspect(empty_database_url, differences) == []


async def test_downgrade_leaves_nothing_behind(empty_database_url: str):
    await migrating.migrate(empty_database_url)
    await migrating.migrate(empty_database_url, revision="base")
    connection = await asyncpg.connect(empty_database_url)
    left = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace "
        "UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
    )
    await connection.close()
    assert {row["relname"] for row in left} == {schema.VERSION_TABLE, "redra_schema_pkc"}


async def test_migrating_again_changes_nothing(database_url: str):
    assert await migrating.migrate(database_url) == schema.newest()


async def test_two_at_once_migrate_once(empty_database_url: str):
    answers: list[str] = []

    async def migrate() -> None:
        answers.append(await migrating.migrate(empty_database_url))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(migrate)
        tasks.start_soon(migrate)
    assert answers == [schema.newest()] * 2


async def test_warnings_about_a_name_are_read_by_their_index(database_url: str):
    connection = await asyncpg.connect(database_url)
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    await connection.execute(
        f"PREPARE warnings (bigint, bigint, bigint, text) AS {statements.WARNINGS}"
    )
    plan = await connection.fetch("EXPLAIN EXECUTE warnings(1, 100, 10, 'web')")
    await connection.close()
    (scan,) = (row[0] for row in plan if "log_events_p" in row[0])
    assert "_log_warned_revision_idx" in scan


async def test_log_lies_in_parts_by_history(database_url: str):
    connection = await asyncpg.connect(database_url)
    parts = await connection.fetchval(
        "SELECT count(*) FROM pg_inherits WHERE inhparent = 'log_events'::regclass"
    )
    await connection.close()
    assert parts == tables.PARTITIONS


@pytest.mark.parametrize("role", ["origin", "replica"])
async def test_log_refuses_change(database_url: str, role: str):
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(f"SET session_replication_role = {role}")
        for table in ("log_events", "log_events_p0", "log_events_p7"):
            for statement in ("UPDATE {} SET uid = ''", "DELETE FROM {}", "TRUNCATE {}"):
                with pytest.raises(asyncpg.RestrictViolationError, match="append-only"):
                    await connection.execute(statement.format(table))
    finally:
        await connection.close()


async def test_histories_cannot_be_emptied(database_url: str):
    for table in ("histories", "log_heads"):
        for statement in (f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"):
            with pytest.raises(asyncpg.RestrictViolationError, match="append-only"):
                await say(database_url, statement)


@pytest.mark.parametrize("role", ["origin", "replica"])
@pytest.mark.parametrize(
    "change",
    [
        'histories SET settings = \'{"profile": "1.36"}\'',
        "histories SET settings = ' {}'",
        "histories SET seed = 2",
        "histories SET created = created + interval '1 microsecond'",
        "histories SET parent = history",
        "histories SET parent_revision = 1",
        "histories SET beginning = '{}'",
        "log_heads SET revision = 4",
        "log_heads SET hash = '\\x00'",
        "log_heads SET time = time - interval '1 microsecond'",
        "log_heads SET epoch = 6",
    ],
)
async def test_settings_and_heads_refuse_change(database_url: str, role: str, change: str):
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(
            "INSERT INTO histories (name, seed, settings, created, parent_revision) "
            "VALUES ('h', 1, '{}', now(), 0);"
            "INSERT INTO log_heads SELECT history, 5, 7, '\\x01', now() FROM histories;"
            f"SET session_replication_role = {role}"
        )
        with pytest.raises(asyncpg.RestrictViolationError, match="append-only"):
            await connection.execute(f"UPDATE {change}")
        await connection.execute("UPDATE histories SET name = 'other'")
        await connection.execute("UPDATE log_heads SET revision = 6, hash = '\\x02', epoch = 8")
    finally:
        await connection.close()


async def test_owner_without_superuser_rights_lacks_even_the_privilege(empty_database_url: str):
    name = f"redra_test_{secrets.token_hex(4)}"
    await say(empty_database_url, f"CREATE ROLE {name} LOGIN PASSWORD '{name}'")
    try:
        await say(empty_database_url, f"GRANT ALL ON SCHEMA public TO {name}")
        parts = urlsplit(empty_database_url)
        place = parts.netloc.rpartition("@")[2]
        owner = urlunsplit(parts._replace(netloc=f"{name}:{name}@{place}"))
        await migrating.migrate(owner)
        for table in ("log_events", "log_events_p3"):
            for statement in ("UPDATE {} SET uid = ''", "DELETE FROM {}", "TRUNCATE {}"):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await say(owner, statement.format(table))
    finally:
        await say(empty_database_url, f"DROP OWNED BY {name}; DROP ROLE {name}")


async def test_empty_database_is_refused_in_words(empty_database_url: str):
    with pytest.raises(WrongDatabase, match="is empty; run `redra migrate`"):
        async with open_database(empty_database_url):
            pass


async def test_older_schema_is_refused_in_words(empty_database_url: str):
    await migrating.migrate(empty_database_url, revision="0001")
    with pytest.raises(
        WrongDatabase, match=f"at revision 0001, this program needs {REVISIONS[-1]}"
    ):
        async with open_database(empty_database_url):
            pass


async def test_newer_schema_is_refused_in_words(database_url: str):
    await say(database_url, "UPDATE redra_schema SET version_num = '9999'")
    with pytest.raises(WrongDatabase, match="a newer version of redra made it"):
        async with open_database(database_url):
            pass
    with pytest.raises(WrongDatabase, match="a newer version of redra made it"):
        await migrating.migrate(database_url)


async def test_schema_with_a_table_missing_is_refused_in_words(database_url: str):
    await say(database_url, "DROP TABLE leases")
    with pytest.raises(WrongDatabase, match="lacks the tables leases"):
        async with open_database(database_url):
            pass


async def test_database_of_something_else_is_refused_and_left_alone(empty_database_url: str):
    await say(empty_database_url, "CREATE TABLE alembic_version (version_num text)")
    await say(empty_database_url, "CREATE TABLE customers (name text)")
    with pytest.raises(WrongDatabase, match=r"belongs to another program .*customers"):
        async with open_database(empty_database_url):
            pass
    with pytest.raises(WrongDatabase, match="belongs to another program"):
        await migrating.migrate(empty_database_url)
    assert await inspect(empty_database_url, _table_names) == {"alembic_version", "customers"}


def _table_names(connection: Connection) -> set[str]:
    found = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))
    return set(found.scalars())


async def test_database_that_does_not_exist_is_refused_in_words(server_url: str):
    missing = with_database(server_url, "redra_test_missing")
    with pytest.raises(WrongDatabase, match="does not exist"):
        async with open_database(missing):
            pass
    with pytest.raises(WrongDatabase, match="does not exist"):
        await migrating.migrate(missing)


async def test_server_that_does_not_answer_is_named():
    # The path of a socket has at most 107 bytes, which that of `tmp_path` may pass.
    address = "postgresql://redra@/redra?host=/no-server-is-here"
    with pytest.raises(LogUnavailable, match="no database server answers"):
        async with open_database(address):
            pass
    with pytest.raises(LogUnavailable, match="no database server answers"):
        await migrating.migrate(address)


async def test_unknown_revision_is_refused_in_words(database_url: str):
    with pytest.raises(InputError, match="no schema revision '0042'"):
        await migrating.migrate(database_url, revision="0042")


async def test_database_that_does_not_answer_is_waited_for_as_the_settings_say():
    """It takes connections and says nothing, as a machine that hangs does."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://redra@127.0.0.1:{silent.getsockname()[1]}/redra"
        settings = read({}, environment={"REDRA_CONNECT_TIMEOUT_SECONDS": "0.05"})
        bounds = stores.database_bounds(settings)
        with anyio.fail_after(DatabaseBounds().connect_seconds):
            with pytest.raises(LogUnavailable):
                await migrating.migrate(url, bounds=bounds)
            with pytest.raises(LogUnavailable):
                async with open_database(url, bounds):
                    pass
