"""Questions in SQL: one statement, of a role that can only read, in a read-only transaction."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import asyncpg
import msgspec
from asyncpg import Record
from asyncpg.pool import PoolConnectionProxy

from app.adapters.postgres import reader
from app.adapters.postgres.database import Database, DatabaseBounds, open_database
from app.adapters.postgres.problems import REFUSED_ROLE
from app.domain.errors import InputError, WrongDatabase
from app.domain.log import HistoryInfo
from app.domain.values import timestamps

_BEGINNING = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
    r"(?:(?P<with>with\b)(?:\s+(?P<recursive>recursive)\b)?|(?=select\b|values\b|table\b|\())",
    re.IGNORECASE | re.DOTALL,
)
"""How a statement begins before which queries may stand."""

_BY_NAME = ("log", "losses")
"""Relations whose column `history` is its name, not its number."""

_OF_NO_HISTORY = ("redra_schema",)

_MISTAKES = ("22", "25001", "25006", "42", "0A", "21")
"""SQLSTATE of what the asker can mend: values, writes, names, syntax, cardinality."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The rows of a question; `cut` when there were more than were asked for.

    Instants are text as elsewhere (`2026-01-02T03:04:05.000006Z`), JSON is decoded, decimals are
    integers where they are whole, all else is as PostgreSQL spells it.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    cut: bool


def of_history(text: str, info: HistoryInfo, schema: str) -> str:
    """The statement over the rows of one history alone, whatever tables it names.

    Each name stands for a query of the same name before the statement; PostgreSQL leaves out those
    that are not used. Raises InputError for a statement that takes none.
    """
    begun = _BEGINNING.match(text)
    if begun is None:
        raise InputError(
            "a history can be named for SELECT, VALUES, TABLE and WITH alone",
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

    Raises WrongDatabase when there is no such role, or when it could do more than read the views.
    """
    session = {"default_transaction_read_only": "on"}
    try:
        async with open_database(url, bounds, session=session) as database:
            async with database.connection() as connection:
                await reader.check(connection)
            yield database
    except WrongDatabase as problem:
        if not isinstance(problem.__cause__, REFUSED_ROLE):
            raise
        raise WrongDatabase(
            f"{problem}: questions are asked as the role {reader.user_of(url)!r}, which "
            "`redra migrate` makes where it may; where not, see REDRA_READER_URL in "
            "docs/how-to/incident.md"
        ) from problem


async def ask(
    database: Database, text: str, *, rows_max: int, info: HistoryInfo | None = None
) -> Found:
    """The first `rows_max` rows, of one history or of all.

    Raises InputError with PostgreSQL's words for a wrong question.
    """
    async with database.connection() as connection:
        if info is not None:
            schema = await connection.fetchval("SELECT quote_ident(current_schema())")
            text = of_history(text, info, schema)
        try:
            return await _ask(connection, text, rows_max)
        except asyncpg.PostgresError as problem:
            if not (problem.sqlstate or "").startswith(_MISTAKES):
                raise
            hint = getattr(problem, "hint", None)
            raise InputError(
                str(problem).partition("\n")[0],
                place="SQL",
                cure=hint or "docs/reference/views.md has the tables and columns",
            ) from problem


async def _ask(connection: PoolConnectionProxy, text: str, rows_max: int) -> Found:
    async with connection.transaction(readonly=True):
        statement = await connection.prepare(text)
        columns = statement.get_attributes()
        if not columns:
            raise InputError(
                "the statement gives no rows, and only questions are asked",
                place="SQL",
                cure="begin it with SELECT, WITH, VALUES, TABLE, SHOW or EXPLAIN",
            )
        cursor = await statement.cursor()
        records = await cursor.fetch(rows_max + 1)
    is_json = [column.type.name in ("json", "jsonb") for column in columns]
    return Found(
        columns=tuple(column.name for column in columns),
        rows=tuple(_row(record, is_json) for record in records[:rows_max]),
        cut=len(records) > rows_max,
    )


def _row(record: Record, is_json: Sequence[bool]) -> tuple[object, ...]:
    return tuple(_value(value, json) for value, json in zip(record, is_json, strict=True))


def _value(value: object, is_json: bool) -> object:
    match value:
        case None | bool() | int() | float():
            return value
        case str() | bytes() if is_json:
            return msgspec.json.decode(value)
        case bytes():
            return value.hex()
        case datetime():
            if value.tzinfo is None:
                return value.isoformat()
            return timestamps.micro_text(timestamps.from_datetime(value))
        case Decimal():
            return int(value) if value == value.to_integral_value() else str(value)
        case list() | tuple():
            return [_value(item, is_json) for item in value]
        case _:
            return str(value)
