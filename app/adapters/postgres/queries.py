"""SQL queries of users: one statement, as a role that can only read, in a read-only transaction."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
from asyncpg import Record
from asyncpg.pool import PoolConnectionProxy

from app.adapters.postgres import query_values, reader
from app.adapters.postgres.database import Database, DatabaseBounds, open_database
from app.adapters.postgres.measured import MeasuredConnection, measured
from app.adapters.postgres.problems import REFUSED_ROLE, Unreachable
from app.domain.errors import InputError, WrongDatabase
from app.domain.log import HistoryInfo

_BEGINNING = re.compile(
    query_values.BLANK
    + r"(?:(?P<with>with\b)(?:\s+(?P<recursive>recursive)\b)?|(?=select\b|values\b|table\b|\())",
    re.IGNORECASE | re.DOTALL,
)
"""The beginning of a statement before which common table expressions can be added."""

_BY_NAME = ("log", "losses")
"""Relations whose column `history` holds the name, not the number."""

_OF_NO_HISTORY = ("redra_schema",)

_HIDING = """
SELECT relname FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relname = ANY($1)
AND row_security_active(oid) ORDER BY relname
"""
"""The relations whose policies concern the rows that this role reads."""

_NO_MEMORY = ("53200", "54000")
"""SQLSTATEs of statements that need more memory than there is, or than PostgreSQL can use."""

_MISTAKES = ("22", "25001", "25006", "42", "0A", "21")
"""SQLSTATEs of errors that the user can fix: values, writes, names, syntax, cardinality."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRows:
    """The rows of a query; `cut` is set when there were more rows than the limit.

    Instants are text as elsewhere (`2026-01-02T03:04:05.000006Z`), JSON is decoded where that is
    possible, decimals are integers when they are whole; other values, infinite ones too, have
    PostgreSQL's spelling.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    cut: bool


def of_history(text: str, info: HistoryInfo, schema: str) -> str:
    """The statement restricted to the rows of one history, whatever tables it names.

    Each relation becomes a common table expression of the same name; PostgreSQL drops unused ones.
    Raises InputError for a statement that cannot have common table expressions, and for a table
    that is named with its schema.
    """
    begun = _BEGINNING.match(text)
    if begun is None:
        raise InputError(
            "--history works only with SELECT, VALUES, TABLE and WITH",
            place="--history",
            cure="leave it out, and compare the column history",
        )
    if re.search(rf'\b{schema}"?\s*\.', text, re.IGNORECASE):
        raise InputError(
            f"a table that is named with its schema ({schema}.…) has the rows of all histories",
            place="--history",
            cure=f"leave {schema} out",
        )
    name = "'" + info.name.replace("'", "''") + "'"
    parts = []
    for relation in reader.relations():
        if relation in _OF_NO_HISTORY:
            continue
        own = name if relation in _BY_NAME else int(info.id)
        rows = f"SELECT * FROM {schema}.{relation} WHERE history = {own}"  # noqa: S608 own names
        parts.append(f"{relation} AS ({rows})")
    rest = text[begun.end() :]
    is_recursive = " RECURSIVE" if begun["recursive"] else ""
    front = f"WITH{is_recursive} {', '.join(parts)}"
    return f"{front}, {rest}" if begun["with"] else f"{front} {rest}"


@asynccontextmanager
async def open_reader(url: str, bounds: DatabaseBounds) -> AsyncIterator[Database]:
    """The database at the reader's address.

    Raises WrongDatabase when the role does not exist, or when it can do more than read the views.
    """
    session = {"default_transaction_read_only": "on"}
    try:
        async with open_database(
            url, bounds, session=session, connections=MeasuredConnection
        ) as database:
            async with database.connection() as connection:
                await reader.check(connection)
            yield database
    except WrongDatabase as problem:
        if not isinstance(problem.__cause__, REFUSED_ROLE):
            raise
        raise WrongDatabase(
            f"{problem}: queries run as the role {reader.user_of(url)!r}, which `redra "
            "migrate` creates if it may; otherwise see REDRA_READER_URL in "
            "docs/how-to/incident.md"
        ) from problem


async def hiding_relations(database: Database) -> tuple[str, ...]:
    """The relations from which row security hides rows of this role, sorted; mostly none."""
    async with database.connection() as connection:
        rows = await connection.fetch(_HIDING, list(reader.relations()))
    return tuple(row["relname"] for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBounds:
    """The bounds of one query.

    `rows_max` rows are returned, and a result of more than `bytes_max` bytes, as PostgreSQL sends
    them, is refused. `memory_bytes_max` is the memory of the session in the server, where redra
    can set it (`MeasuredConnection.bound_memory`).
    """

    rows_max: int = 10_000
    bytes_max: int = 32_000_000
    memory_bytes_max: int = 512_000_000


async def ask(
    database: Database, text: str, bounds: QueryBounds, *, info: HistoryInfo | None = None
) -> QueryRows:
    """Run the query and return its first rows, from one history or from all.

    Raises InputError with PostgreSQL's message when the query is wrong, and when its result or the
    memory that it needs is beyond the bounds.
    """
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise InputError("the statement is not UTF-8", place="SQL") from problem
    async with database.connection() as connection:
        if info is not None:
            schema = await connection.fetchval("SELECT quote_ident(current_schema())")
            text = of_history(text, info, schema)
        own = measured(connection)
        own.bound_memory(bounds.memory_bytes_max)
        with own.result_of_at_most(bounds.bytes_max) as reception:
            try:
                return await _ask(connection, text, bounds.rows_max)
            except Unreachable as problem:
                if reception.is_over:
                    raise InputError(
                        f"the result has more than {bounds.bytes_max} bytes",
                        place="SQL",
                        cure="select fewer rows or columns, or raise REDRA_SQL_BYTES_MAX",
                    ) from problem
                if isinstance(problem, asyncpg.PostgresError):
                    raise _refusal(problem) from problem
                raise


def _refusal(problem: asyncpg.PostgresError) -> Exception:
    """The error to raise for an error of PostgreSQL: itself where the user cannot help it."""
    state = problem.sqlstate or ""
    if state in _NO_MEMORY:
        return InputError(
            "the statement needs more memory than it may have",
            place="SQL",
            cure="let it aggregate less at once, or raise REDRA_SQL_MEMORY_BYTES_MAX",
        )
    if not state.startswith(_MISTAKES):
        return problem
    return InputError(
        str(problem).partition("\n")[0],
        place="SQL",
        cure=getattr(problem, "hint", None)
        or "docs/reference/views.md lists the tables and columns",
    )


async def _ask(connection: PoolConnectionProxy, text: str, rows_max: int) -> QueryRows:
    async with _undone(connection):
        await query_values.read_instants(connection)
        statement = await connection.prepare(text)
        columns = statement.get_attributes()
        if not columns:
            raise InputError(
                "the statement returns no rows, and only queries are allowed",
                place="SQL",
                cure="begin it with SELECT, WITH, VALUES, TABLE, SHOW or EXPLAIN",
            )
        if statement.get_parameters():
            raise InputError(
                "the statement has a parameter, and nothing gives it a value",
                place="SQL",
                cure="write the value in the place of $1",
            )
        spelled = await query_values.spelled(connection, text, columns)
        cursor = await (spelled or statement).cursor()
        try:
            records = await cursor.fetch(rows_max + 1)
        except (ValueError, OverflowError) as problem:
            raise InputError(
                f"a value of the result cannot be shown: {problem}",
                place="SQL",
                cure="leave out the comments behind the statement, or cast its column to text",
            ) from problem
    is_json = [column.type.name in ("json", "jsonb") for column in columns]
    return QueryRows(
        columns=tuple(column.name for column in columns),
        rows=tuple(_row(record, is_json) for record in records[:rows_max]),
        cut=len(records) > rows_max,
    )


@asynccontextmanager
async def _undone(connection: PoolConnectionProxy) -> AsyncIterator[None]:
    """A read-only transaction that is always rolled back, so that nothing of it lasts.

    A commit would keep settings of the session (`set_config('statement_timeout', '0', false)`),
    and would send notifications. Advisory locks of the session outlast even the rollback.
    """
    transaction = connection.transaction(readonly=True)
    await transaction.start()
    try:
        yield
    finally:
        await transaction.rollback()
        await connection.execute("SELECT pg_advisory_unlock_all()")


def _row(record: Record, is_json: Sequence[bool]) -> tuple[object, ...]:
    return tuple(
        query_values.value(value, is_json=json) for value, json in zip(record, is_json, strict=True)
    )
