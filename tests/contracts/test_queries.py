"""Questions in SQL: what comes back, and that nothing else can be done by asking."""

import asyncio
import os
import secrets
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from app.adapters.postgres import migrating, queries, reader, schema
from app.adapters.postgres.database import DatabaseBounds
from app.adapters.postgres.queries import QueryBounds
from app.adapters.postgres.reader import reader_url
from app.domain.errors import InputError, LogUnavailable, WrongDatabase
from tests import draws
from tests.conftest import in_thread, new_database, say

pytestmark = pytest.mark.database

QUICK = DatabaseBounds(statement_seconds=0.3)


async def ask(
    url: str, text: str, *, rows_max: int = 100, bounds: DatabaseBounds = DatabaseBounds()
) -> queries.QueryRows:
    async with queries.open_reader(reader_url(url), bounds) as database:
        return await queries.ask(database, text, QueryBounds(rows_max=rows_max))


async def test_values_come_as_people_and_programs_read_them(module_database_url: str) -> None:
    found = await ask(
        module_database_url,
        "SELECT '2026-01-02T03:04:05.000006Z'::timestamptz AS at, '[{\"a\": 1}]'::json AS json, "
        "'[1e999]'::json AS huge, NULL AS none, 2.0::numeric AS whole, 2.5::numeric AS half, "
        "ARRAY['a'] AS list, '\\x0a'::bytea AS bytes, true AS yes",
    )
    assert dict(zip(found.columns, found.rows[0], strict=True)) == {
        "at": "2026-01-02T03:04:05.000006Z",
        "json": [{"a": 1}],
        "huge": "[1e999]",
        "none": None,
        "whole": 2,
        "half": "2.5",
        "list": ["a"],
        "bytes": "0a",
        "yes": True,
    }
    assert not found.cut


SPELLED = {
    "'infinity'::timestamptz": "infinity",
    "'-infinity'::timestamptz": "-infinity",
    "'294276-12-31T23:59:59.5Z'::timestamptz": "294276-12-31T23:59:59.500000Z",
    "'4713-01-01T00:00:00Z BC'::timestamptz": "4713-01-01T00:00:00.000000Z BC",
    "ARRAY['2026-01-02T03:04:05Z'::timestamptz]": ["2026-01-02T03:04:05.000000Z"],
    "'infinity'::timestamp": "infinity",
    "'4000-01-01 BC'::date": "4000-01-01 BC",
    "'24:00:00'::time": "24:00:00",
    "'1 mon 2 days 03:04:05.6'::interval": "1 mon 2 days 03:04:05.6",
    "'-178000000 years'::interval": "-178000000 years",
    "'NaN'::float8": "NaN",
    "'-infinity'::float8": "-Infinity",
    "1.1::float4": 1.1,
    "'infinity'::numeric": "Infinity",
    "10::numeric ^ 6000": "1" + "0" * 6000,
    "int4range(1, 5)": "[1,5)",
    "tstzrange('2026-01-02T03:04:05Z', NULL)": '["2026-01-02 03:04:05+00",)',
    "'{[1,3),[5,8)}'::int4multirange": "{[1,3),[5,8)}",
    "B'101'": "101",
    "path '[(0,0),(1,1)]'": "[(0,0),(1,1)]",
    "'a'::\"char\"": "a",
    "row(1, 'a', NULL)": "(1,a,)",
    "ARRAY[row(1, 2)]": '{"(1,2)"}',
    "ARRAY['1 day'::interval]": '{"1 day"}',
    "'x; --y'": "x; --y",
}
"""Values that Python has not, or says in other words, and their text in PostgreSQL."""


@pytest.mark.parametrize("end", ["", "; -- done", "-- x;"])
async def test_values_of_other_types_are_spelled_as_postgresql_does(
    module_database_url: str, end: str
) -> None:
    columns = ", ".join(SPELLED)
    answer = await ask(module_database_url, f"SELECT {columns} {end}")
    shown = dict(zip(SPELLED, answer.rows[0], strict=True))
    assert shown == SPELLED


async def test_value_that_python_has_not_is_refused_where_it_is_not_asked_for_as_text(
    module_database_url: str,
) -> None:
    with pytest.raises(InputError, match="a value of the result cannot be shown"):
        await ask(module_database_url, "SELECT '4000-01-01 BC'::date; /* a /* nested */ one */")


async def test_comments_are_read_in_one_way(module_database_url: str) -> None:
    """A pattern that could read them in several ways would need years for this text."""
    text = f";{'/* */' * 60} x"
    answer = await ask(module_database_url, f"SELECT '4000-01-01 BC'::date, '{text}'")
    assert answer.rows == (("4000-01-01 BC", text),)


async def test_rows_of_other_types_keep_their_order_and_names(module_database_url: str) -> None:
    answer = await ask(
        module_database_url,
        'SELECT i AS n, make_date(i, 1, 1) AS n, i AS "a ""b" FROM generate_series(1, 9) AS i '
        "ORDER BY i % 3, i DESC",
    )
    assert answer.columns == ("n", "n", 'a "b')
    assert [row[0] for row in answer.rows] == [9, 6, 3, 7, 4, 1, 8, 5, 2]
    assert answer.rows[0] == (9, "0009-01-01", 9)


async def test_rows_are_bounded_and_what_is_left_out_is_told(module_database_url: str) -> None:
    found = await ask(module_database_url, "SELECT * FROM generate_series(1, 5) AS n", rows_max=3)
    assert found.rows == ((1,), (2,), (3,))
    assert found.cut
    found = await ask(module_database_url, "SELECT * FROM generate_series(1, 3) AS n", rows_max=3)
    assert not found.cut


@pytest.mark.parametrize("table", reader.relations())
async def test_everything_that_is_shown_can_be_read(module_database_url: str, table: str) -> None:
    assert (await ask(module_database_url, f"SELECT count(*) FROM {table}")).rows != ()


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT 1",
        "SHOW server_version",
        "VALUES (1)",
        "TABLE view_claims",
        "WITH one AS (SELECT 1) SELECT * FROM one",
    ],
)
async def test_other_questions_are_answered(module_database_url: str, text: str) -> None:
    assert (await ask(module_database_url, text)).columns


NO_ROWS = "the statement returns no rows, and only queries are allowed"
DENIED = "permission denied for "

REFUSED: tuple[tuple[str, str], ...] = (
    ("selct 1", 'syntax error at or near "selct"'),
    ("SELECT nope FROM view_claims", 'column "nope" does not exist'),
    ("SELECT 1 FROM nope", 'relation "nope" does not exist'),
    ("SELECT 1/0", "division by zero"),
    ("SELECT $1", "the statement has a parameter"),
    ("SELECT * FROM view_claims WHERE name = $2 AND uid = $1", "the statement has a parameter"),
    ("SELECT 1; SELECT 2", "cannot insert multiple commands"),
    ("DELETE FROM histories", NO_ROWS),
    ("DELETE FROM histories RETURNING name", "cannot execute DELETE in a read-only"),
    ("UPDATE view_claims SET name = '' RETURNING name", "cannot execute UPDATE in a read-only"),
    ("DROP TABLE view_claims", NO_ROWS),
    ("COPY (SELECT 1) TO PROGRAM 'touch /tmp/redra-was-here'", NO_ROWS),
    ("COPY (SELECT 1) TO '/tmp/redra-was-here'", NO_ROWS),
    ("COPY view_claims FROM PROGRAM 'id'", NO_ROWS),
    ("SELECT pg_read_file('/etc/passwd')", DENIED),
    ("SELECT pg_read_binary_file('/etc/passwd')", DENIED),
    ("SELECT pg_ls_dir('/')", DENIED),
    ("SELECT pg_stat_file('/etc/passwd')", DENIED),
    ("SELECT lo_import('/etc/passwd')", DENIED),
    ("SELECT lo_export(1, '/tmp/redra-was-here')", DENIED),
    ("SELECT lo_create(0)", DENIED),
    ("SELECT lo_from_bytea(0, 'x')", DENIED),
    ("SELECT pg_reload_conf()", DENIED),
    ("SELECT pg_rotate_logfile()", DENIED),
    ("SELECT * FROM dblink('dbname=postgres', 'SELECT 1') AS t (n int)", "does not exist"),
    ("CREATE EXTENSION dblink", NO_ROWS),
    ("SET ROLE redra", NO_ROWS),
    ("RESET ROLE", NO_ROWS),
    ("SET SESSION AUTHORIZATION redra", NO_ROWS),
    ("SET default_transaction_read_only = off", NO_ROWS),
    ("SELECT set_config('role', 'redra', false)", "permission denied to set role"),
    ("SELECT set_config('session_authorization', 'redra', false)", "permission denied to set"),
    ("SELECT set_config('transaction_read_only', 'off', true)", "must be set before any query"),
    ("SELECT set_config('log_statement', 'none', false)", "permission denied to set"),
    ("DO $$ BEGIN RAISE NOTICE 'x'; END $$", NO_ROWS),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", NO_ROWS),
    ("CREATE TEMP TABLE t (n int)", NO_ROWS),
    ("CREATE TEMP TABLE t AS SELECT 1", NO_ROWS),
    ("SELECT 1 AS n INTO TEMP t", NO_ROWS),
    ("LOCK TABLE view_claims", NO_ROWS),
    ("NOTIFY redra_log_1", NO_ROWS),
    ("ALTER ROLE redra_reader SUPERUSER", NO_ROWS),
    ("ALTER SYSTEM SET fsync = off", NO_ROWS),
    ("SELECT * FROM view_claims FOR UPDATE", "cannot execute SELECT FOR UPDATE in a read-only"),
    ("SELECT * FROM log_events", DENIED),
    ("SELECT * FROM log_events_p0", DENIED),
    ("SELECT * FROM log_heads", DENIED),
    ("SELECT * FROM snapshots", DENIED),
    ("SELECT * FROM leases", DENIED),
    ("SELECT * FROM signed_heads", DENIED),
    ("SELECT * FROM pg_authid", DENIED),
    ("SELECT query_to_xml('SELECT * FROM log_events', true, true, '')", DENIED),
    ("SELECT pg_relation_filepath('log_events'), pg_read_file('x')", DENIED),
    ("SELECT nextval('histories_history_seq')", DENIED),
    ("SELECT setval('histories_history_seq', 9)", DENIED),
    ("SELECT lo_put(1, 0, 'x')", DENIED),
    ("SELECT pg_switch_wal()", DENIED),
    ("SELECT pg_promote()", DENIED),
    ("SELECT pg_create_physical_replication_slot('x')", "permission denied to use"),
    ("SELECT pg_drop_replication_slot('x')", "permission denied to use"),
    ("SELECT pg_logical_emit_message(false, 'a', 'b')", DENIED),
    ("PREPARE TRANSACTION 'x'", NO_ROWS),
    ("PREPARE p AS DELETE FROM histories", NO_ROWS),
    ("LISTEN redra_log_1", NO_ROWS),
    ("\\copy view_claims to '/tmp/redra-was-here'", 'syntax error at or near "\\"'),
    ("\\! id", 'syntax error at or near "\\"'),
    ("/* SELECT 1; */ DELETE FROM histories", NO_ROWS),
    ("SELECT 1 /* ; */; DROP TABLE view_claims -- SELECT 2", "cannot insert multiple commands"),
    ("-- SELECT 1", NO_ROWS),
    ("WITH gone AS (DELETE FROM histories RETURNING 1) SELECT * FROM gone", "cannot execute"),
    ("EXPLAIN ANALYZE DELETE FROM histories", "cannot execute DELETE in a read-only"),
    ("SELECT * FROM pg_read_file('postgresql.conf')", DENIED),
)  # fmt: skip


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize(("text", "words"), REFUSED)
async def test_everything_else_is_refused_in_words(
    module_database_url: str, text: str, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        await ask(module_database_url, text)
    assert words in str(caught.value)


LASTING = (
    "set_config('statement_timeout', '0', false)",
    "set_config('default_transaction_read_only', 'off', false)",
    "set_config('search_path', 'pg_catalog', false)",
    "set_config('timezone', 'Asia/Tokyo', false)",
    "pg_advisory_lock(7)",
    "pg_notify('redra_log_1', '1')",
)
"""Calls whose effect outlives a statement that is committed."""

SESSION = """
SELECT current_setting('statement_timeout'), current_setting('default_transaction_read_only'),
       current_setting('search_path'), current_setting('timezone'),
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
       pg_backend_pid()
"""


@pytest.mark.parametrize("end", ["1", "1 / (n - 1)"])
async def test_statement_leaves_nothing_to_the_next_one(module_database_url: str, end: str) -> None:
    """Also when it ends with an error, after its calls."""
    hints: list[object] = []
    text = f"SELECT {', '.join(LASTING)}, {end} FROM generate_series(1, 1) AS n"
    listener = await asyncpg.connect(module_database_url)
    try:
        await listener.add_listener("redra_log_1", lambda *hint: hints.append(hint))
        async with queries.open_reader(reader_url(module_database_url), QUICK) as database:
            before = await queries.ask(database, SESSION, QueryBounds())
            with suppress(InputError):
                await queries.ask(database, text, QueryBounds())
            assert await queries.ask(database, SESSION, QueryBounds()) == before
            with pytest.raises(LogUnavailable, match="took longer than allowed"):
                await queries.ask(database, ENDLESS, QueryBounds())
        await listener.execute("SELECT")
    finally:
        await listener.close()
    assert hints == []


ENDLESS = "SELECT count(*) FROM generate_series(1, 1e11)"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_sleep(60)",
        ENDLESS,
        "SELECT set_config('statement_timeout', '0', false), pg_sleep(60)",
        "SELECT query_to_xml('SELECT set_config(''statement_timeout'', ''0'', false), "
        "pg_sleep(60)', true, true, '')",
    ],
)
async def test_long_question_is_given_up(module_database_url: str, text: str) -> None:
    started = time.monotonic()
    with pytest.raises(LogUnavailable, match="took longer than allowed"):
        await ask(module_database_url, text, bounds=QUICK)
    assert time.monotonic() - started < QUICK.statement_seconds + 4


LARGE = (
    "SELECT repeat('x', 3000000)",
    "SELECT repeat('x', 300000) FROM generate_series(1, 9)",
    "SELECT to_json(repeat('x', 3000000))",
    "VALUES (repeat('x', 3000000), 1)",
    "WITH one AS (SELECT array_agg(n) AS all_n FROM generate_series(1, 500000) n) TABLE one",
    "EXPLAIN VERBOSE SELECT repeat('x', 3000000)",
    "SELECT set_config('application_name', '', true), repeat('x', 3000000)",
)
"""Statements of fewer rows than the limit, whose rows have more than 2 MB."""


@pytest.mark.parametrize("text", LARGE)
async def test_result_is_bounded_in_bytes(module_database_url: str, text: str) -> None:
    bounds = QueryBounds(bytes_max=2_000_000)
    async with queries.open_reader(reader_url(module_database_url), DatabaseBounds()) as database:
        with pytest.raises(InputError, match=r"^SQL: the result has more than 2000000 bytes;.*"):
            await queries.ask(database, text, bounds)
        # The count of the next statement begins anew.
        for _ in range(2):
            rows = await queries.ask(database, "SELECT repeat('x', 1500000)", bounds)
            assert len(str(rows.rows[0][0])) == 1_500_000


async def test_large_result_is_not_received_to_its_end(module_database_url: str) -> None:
    bounds = QueryBounds(bytes_max=1_000_000)
    async with queries.open_reader(reader_url(module_database_url), DatabaseBounds()) as database:
        tracemalloc.start()
        try:
            with pytest.raises(InputError, match="more than 1000000 bytes"):
                await queries.ask(database, "SELECT repeat('x', 60000000)", bounds)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < 5_000_000


IS_ELSEWHERE = sys.platform != "linux" or "REDRA_DATABASE_URL" in os.environ


@pytest.mark.skipif(IS_ELSEWHERE, reason="memory is bounded in redra's own server, on Linux")
async def test_statement_of_the_embedded_server_is_bounded_in_memory(
    module_database_url: str,
) -> None:
    bounds = QueryBounds(memory_bytes_max=150_000_000)
    text = "SELECT cardinality(array_agg(repeat('x', 90000) || n)) FROM generate_series(1, {}) n"
    async with queries.open_reader(reader_url(module_database_url), DatabaseBounds()) as database:
        with pytest.raises(InputError, match="REDRA_SQL_MEMORY_BYTES_MAX"):
            await queries.ask(database, text.format(3_000), bounds)
        small = await queries.ask(database, text.format(300), bounds)
        assert small.rows == ((300,),)


@pytest.fixture(scope="module")
def handed_out_url(server_url: str) -> Iterator[str]:
    """A database that was migrated in its place: a role of its own can read it."""
    with new_database(server_url) as url:
        in_thread(lambda: asyncio.run(migrating.migrate(url)))
        yield url


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TEMP TABLE t (n int)",
        "CREATE TABLE t (n int)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE ROLE mine",
        "CREATE DATABASE mine",
        "SET ROLE redra",
        "SET SESSION AUTHORIZATION redra",
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "COPY (SELECT 1) TO '/tmp/redra-was-here'",
        "SELECT lo_create(0)",
        "SELECT lo_export(1, '/tmp/redra-was-here')",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_logical_emit_message(false, 'a', 'b')",
        "TRUNCATE view_claims",
        "INSERT INTO checkpoints VALUES (1, 'a', 1, 1, 'b')",
        "UPDATE histories SET name = 'x'",
        "DELETE FROM view_claims",
        "TABLE log_events",
        "TABLE snapshots",
        "ALTER ROLE redra_reader SUPERUSER",
        "GRANT SELECT ON log_events TO redra_reader",
        "DO $$ BEGIN EXECUTE 'TABLE log_events'; END $$",
        "DO $$ BEGIN PERFORM set_config('role', 'redra', false); END $$",
    ],
)
async def test_address_that_is_handed_out_can_only_read(handed_out_url: str, text: str) -> None:
    """Another client is not held to one question in a transaction that only reads."""
    connection = await asyncpg.connect(reader_url(handed_out_url))
    try:
        assert await connection.fetchval("SHOW default_transaction_read_only") == "on"
        assert await connection.fetchval("SHOW statement_timeout") == "1min"
        await connection.execute("SET default_transaction_read_only = off")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(text)
    finally:
        await connection.close()


async def test_right_that_an_older_redra_left_is_revoked(handed_out_url: str) -> None:
    signatures = "SELECT oid::regprocedure FROM pg_proc WHERE proname = 'pg_logical_emit_message'"
    owner = await asyncpg.connect(handed_out_url)
    connection = await asyncpg.connect(reader_url(handed_out_url))
    try:
        for (signature,) in await owner.fetch(f"SELECT s::text FROM ({signatures}) AS f (s)"):
            await owner.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO PUBLIC")
        await connection.execute("SELECT pg_logical_emit_message(false, 'a', 'b')")
        await migrating.migrate(handed_out_url)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("SELECT pg_logical_emit_message(false, 'a', 'b')")
    finally:
        await connection.close()
        await owner.close()


async def test_values_of_secrets_are_not_in_the_readable_log(database_url: str) -> None:
    await say(
        database_url,
        "INSERT INTO histories (name, seed, settings, created, parent_revision) "
        "VALUES ('h', 1, '{}', now(), 0);"
        'INSERT INTO log_events (history, revision, time, clock, type, "group", resource, '
        "namespace, name, uid, stamp, object, format, hash) SELECT history, n, now(), now(), "
        "'ObjectCreated', g, 'secrets', 'default', 's', 'u', '{}', "
        '\'{"data": {"key": "aHVudGVyMg=="}}\', 1, \'\' '
        "FROM histories, (VALUES (1, ''), (2, 'other.example.com')) AS v (n, g)",
    )
    found = await ask(database_url, 'SELECT "group", object FROM log ORDER BY revision')
    assert found.rows == (
        (
            "",
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": "s",
                    "namespace": "default",
                    "uid": "u",
                    "resourceVersion": "1",
                },
            },
        ),
        ("other.example.com", {"data": {"key": "aHVudGVyMg=="}}),
    )


def as_role(url: str, role: str) -> str:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{role}@{place}"))


async def test_role_that_could_do_more_is_not_asked_as(database_url: str) -> None:
    with pytest.raises(WrongDatabase, match=r"'redra' is a superuser"):
        async with queries.open_reader(database_url, DatabaseBounds()):
            pass
    name = f"redra_test_{secrets.token_hex(4)}"
    await say(database_url, f"CREATE ROLE {name} LOGIN PASSWORD '{name}'")
    url = as_role(database_url, name)
    try:
        await reader.prepare(database_url, named=url)
        async with queries.open_reader(url, DatabaseBounds()) as database:
            assert (await queries.ask(database, "TABLE histories", QueryBounds())).rows == ()
        for grant, words in (
            ("GRANT SELECT ON log_events TO {}", "may read the raw log"),
            ("GRANT INSERT ON view_claims TO {}", "may write"),
            ("GRANT pg_read_server_files TO {}", "belongs to pg_read_server_files"),
        ):
            await say(database_url, grant.format(name))
            with pytest.raises(WrongDatabase, match=words):
                async with queries.open_reader(url, DatabaseBounds()):
                    pass
    finally:
        await say(database_url, f"DROP OWNED BY {name}; DROP ROLE {name}")


async def test_owner_who_may_not_make_roles_is_told_what_to_do(empty_database_url: str) -> None:
    """As on a managed database; a role that is there already, and is not his, is left alone."""
    owner = f"redra_test_{secrets.token_hex(4)}"
    await say(empty_database_url, f"CREATE ROLE {owner} LOGIN PASSWORD '{owner}'")
    url = as_role(empty_database_url, owner)
    try:
        await say(empty_database_url, f"GRANT ALL ON SCHEMA public TO {owner}")
        assert await migrating.migrate(url) == schema.newest()
        with pytest.raises(WrongDatabase, match=r"'redra_reader'.*see REDRA_READER_URL"):
            async with queries.open_reader(reader_url(url), DatabaseBounds()):
                pass
    finally:
        await say(empty_database_url, f"DROP OWNED BY {owner}; DROP ROLE {owner}")


def test_password_of_the_reader_comes_from_that_of_the_owner() -> None:
    made = reader_url("postgresql://owner:s%40cret@db.example.com:5433/redra?sslmode=require")
    other = reader_url("postgresql://owner:other@db.example.com:5433/redra?sslmode=require")
    parts = urlsplit(made)
    assert (parts.username, parts.hostname, parts.port) == ("redra_reader", "db.example.com", 5433)
    assert (parts.path, parts.query) == ("/redra", "sslmode=require")
    assert parts.password is not None
    assert len(parts.password) == 64
    assert "cret" not in made
    assert parts.password != urlsplit(other).password
    assert reader_url("postgresql://owner@/redra?host=/run") == (
        "postgresql://redra_reader@/redra?host=/run"
    )
