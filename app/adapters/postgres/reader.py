"""The role that runs SQL queries of users: it can read the views, and nothing else.

The user chooses the statement, so the rights of the session are the border, not the text: a
superuser's `COPY … TO PROGRAM` runs a program even in a read-only transaction. The role logs in by
itself, because a session that took it on by `SET ROLE` could reset it.

    migration ──▶ prepare ──▶ role exists? ──no──▶ CREATE ROLE ──refused──▶ `redra sql` says so
                                 │ yes, and it is ours or was named
                                 ▼
                              SELECT on views, nothing for everybody else

The password of the role is derived from the password in the database's address. A user who knows
the address can run queries, and there is no second secret to hand out. Where redra cannot create
roles, the administrator creates one and puts its address into a setting.
"""

import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import unquote, urlsplit, urlunsplit

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from app.adapters.postgres.database import DatabaseBounds
from app.adapters.postgres.names import view_name
from app.adapters.postgres.problems import translated
from app.domain.errors import WrongDatabase
from projections.tables import ALL as VIEW_TABLES

ROLE = "redra_reader"

SHARED = ("checkpoints", "histories", "log", "losses", "redra_schema")
"""Relations that the role may read beside the view tables: checkpoints, history names, the
readable log, losses of recordings, and the schema revision."""

_LOCK = 7_263_172_000_002
"""Advisory lock that lets one process prepare the role at a time."""

_ATTEMPTS_MAX = 20
"""Databases of one server that may prepare the role at the same time."""

READY = """
SELECT count(*) FROM pg_roles WHERE rolname = $1
AND NOT has_database_privilege(pg_roles.oid, current_database(), 'TEMP')
AND NOT EXISTS (
    SELECT FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relname = ANY($2)
      AND NOT has_table_privilege(pg_roles.oid, pg_class.oid, 'SELECT')
)
AND NOT EXISTS (
    SELECT FROM pg_proc, pg_roles AS mine
    WHERE mine.rolname = current_user AND mine.rolsuper
      AND pronamespace = 'pg_catalog'::regnamespace AND proname = 'pg_logical_emit_message'
      AND has_function_privilege(pg_roles.oid, pg_proc.oid, 'EXECUTE')
)
"""
"""1 when the role exists and has all the rights that it needs, and none that redra can revoke."""

IS_OURS = """
SELECT mine.rolsuper OR pg_has_role(mine.oid, reader.oid, 'MEMBER WITH ADMIN OPTION')
       OR (mine.rolcreaterole AND current_setting('server_version_num')::integer < 160000)
FROM pg_roles AS mine, pg_roles AS reader
WHERE mine.rolname = current_user AND reader.rolname = $1
"""
"""Whether the present role administers the reader; no row when the reader does not exist."""

POWERS = """
SELECT string_agg(power, ', ' ORDER BY place, power)
FROM pg_roles, current_schema() AS used, LATERAL (VALUES
    (1, CASE WHEN rolsuper THEN 'is a superuser' END),
    (2, CASE WHEN rolcreaterole THEN 'may make roles' END),
    (3, CASE WHEN rolcreatedb THEN 'may make databases' END),
    (4, CASE WHEN rolreplication THEN 'may replicate' END),
    (5, CASE WHEN rolname ~ '^pg_(read|write|execute)_' THEN 'belongs to ' || rolname END),
    (6, CASE WHEN has_schema_privilege(pg_roles.oid, used, 'CREATE') THEN 'may make tables' END),
    (7, CASE WHEN EXISTS (
        SELECT FROM pg_class
        WHERE relnamespace = used::regnamespace AND relkind IN ('r', 'p')
          AND has_table_privilege(pg_roles.oid, pg_class.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
    ) THEN 'may write' END),
    (8, CASE WHEN EXISTS (
        SELECT FROM pg_class
        WHERE relnamespace = used::regnamespace AND relkind IN ('r', 'p')
          AND (relname LIKE 'log\\_%' OR relname IN ('leases', 'signed_heads', 'snapshots'))
          AND has_table_privilege(pg_roles.oid, pg_class.oid, 'SELECT')
    ) THEN 'may read the raw log' END)
) AS powers (place, power)
WHERE pg_has_role(session_user, pg_roles.oid, 'MEMBER') AND power IS NOT NULL
"""
"""The powers of the session's role, or of roles it can take on, that a reader must not have."""

# Only a superuser can revoke these rights from PUBLIC. Without a superuser the read-only
# transaction must be enough; it refuses large objects, but not messages in the write-ahead log.
WRITING_FUNCTIONS = """
DO $$
DECLARE
    function regprocedure;
BEGIN
    FOR function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = 'pg_catalog'::regnamespace
          AND (proname LIKE 'lo\\_%' OR proname IN ('lowrite', 'loread', 'pg_logical_emit_message'))
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function);
    END LOOP;
END
$$
"""


def reader_url(url: str) -> str:
    """The address with which the reader logs in, derived from the owner's address."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    password = _password(url)
    user = f"{ROLE}:{password}" if password else ROLE
    return urlunsplit(parts._replace(netloc=f"{user}@{place}"))


def user_of(url: str) -> str:
    """The role in an address; empty when the address has none."""
    return unquote(urlsplit(url).username or "")


def relations() -> list[str]:
    """The names of all relations that the reader can read."""
    return sorted({*SHARED, *(view_name(table.name) for table in VIEW_TABLES)})


async def prepare(
    url: str,
    *,
    named: str = "",
    statement_seconds: float = 60.0,
    bounds: DatabaseBounds = DatabaseBounds(),
) -> None:
    """Give the reader its rights if they are missing; create the role where that is allowed.

    `url` is the owner's address. `named` is the address of a reader in the settings: this role is
    given the rights, but not created. A database that cannot create roles is left without a reader.
    """
    async with owner_connection(url, bounds) as connection:
        await prepare_on(connection, url, named=named, statement_seconds=statement_seconds)


@asynccontextmanager
async def owner_connection(url: str, bounds: DatabaseBounds) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the owner, closed after the block. Raises LogUnavailable."""
    with translated():
        connection = await asyncpg.connect(
            url, timeout=bounds.connect_seconds, command_timeout=bounds.statement_seconds
        )
        try:
            yield connection
        finally:
            await connection.close(timeout=bounds.close_seconds)


async def prepare_on(
    connection: asyncpg.Connection, url: str, *, named: str, statement_seconds: float
) -> None:
    """Do the work of `prepare` on a connection to `url`.

    The role belongs to the server, the lock to a database: when a process prepares the role in
    another database, a change of it is refused, as an internal error, after that process is done.
    """
    role = user_of(named) or ROLE
    for left in reversed(range(_ATTEMPTS_MAX)):
        if await connection.fetchval(READY, role, relations()):
            return
        try:
            await _prepare_alone(connection, url, role, named, statement_seconds)
        except asyncpg.InternalServerError:
            if not left:
                raise
        else:
            return


async def _prepare_alone(
    connection: asyncpg.Connection, url: str, role: str, named: str, statement_seconds: float
) -> None:
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        is_ours = not named and await _make(connection, url, statement_seconds)
        if is_ours or (named and await connection.fetchval(IS_OURS, role) is not None):
            await _give(connection, role)


async def check(connection: PoolConnectionProxy) -> None:
    """Raise WrongDatabase when the session can do more than read the views."""
    powers = await connection.fetchval(POWERS)
    if powers:
        user = await connection.fetchval("SELECT session_user")
        raise WrongDatabase(
            f"the role {user!r} {powers}; queries run only as a role that can do nothing but "
            "read the views (see REDRA_READER_URL in docs/how-to/incident.md)"
        )


async def _make(connection: asyncpg.Connection, url: str, statement_seconds: float) -> bool:
    """Create the role or renew its settings; False when it is not ours or cannot be created."""
    is_ours = await connection.fetchval(IS_OURS, ROLE)
    if is_ours is None:
        try:
            async with connection.transaction():
                await connection.execute(f"CREATE ROLE {ROLE} LOGIN")
        except asyncpg.InsufficientPrivilegeError:
            return False
        except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
            is_ours = await connection.fetchval(IS_OURS, ROLE)
        else:
            is_ours = True
    if not is_ours:
        return False
    password = _password(url)
    password_clause = f"PASSWORD '{password}'" if password else ""
    for statement in (
        f"ALTER ROLE {ROLE} LOGIN {password_clause}",
        f"ALTER ROLE {ROLE} SET default_transaction_read_only = on",
        f"ALTER ROLE {ROLE} SET statement_timeout = {round(statement_seconds * 1000)}",
    ):
        await connection.execute(statement)
    return True


async def _give(connection: asyncpg.Connection, role: str) -> None:
    """Grant the rights to read, and revoke the rights to create objects."""
    quoted = await connection.fetchval("SELECT quote_ident($1)", role)
    schema = await connection.fetchval("SELECT quote_ident(current_schema())")
    database = await connection.fetchval("SELECT quote_ident(current_database())")
    names = ", ".join(relations())
    await connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {quoted}")
    await connection.execute(f"GRANT SELECT ON {names} TO {quoted}")
    for statement in (
        f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC",
        f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC",
        WRITING_FUNCTIONS,
    ):
        with suppress(asyncpg.InsufficientPrivilegeError):
            async with connection.transaction():
                await connection.execute(statement)


def _password(url: str) -> str:
    """The reader's password; empty when the owner's address has no password."""
    password = urlsplit(url).password
    if not password:
        return ""
    return hmac.new(unquote(password).encode(), b"redra reader", hashlib.sha256).hexdigest()
