"""Questions in SQL: one statement in a transaction that can only read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import asyncpg
import msgspec
from asyncpg import Record
from asyncpg.pool import PoolConnectionProxy

from app.adapters.postgres.database import Database
from app.domain.errors import InputError
from app.domain.values import timestamps

_MISTAKES = ("22", "25006", "42", "0A", "21")
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


async def ask(database: Database, text: str, *, rows_max: int) -> Found:
    """The first `rows_max` rows. Raises InputError with PostgreSQL's words for a wrong question."""
    async with database.connection() as connection:
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
            await statement.fetch()
            return Found(columns=(), rows=(), cut=False)
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
