"""Materialised views: the rows of projections in `view_…` tables, with their checkpoints.

Each table has one statement to write rows, one to delete them and one to read them. They are made
once, from the declaration of the table, and take whole columns as arrays.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import msgspec
from anyio import lowlevel
from asyncpg import Record
from asyncpg.pool import PoolConnectionProxy

from app.adapters.postgres import columns
from app.adapters.postgres.database import Database
from app.adapters.postgres.names import view_name
from app.adapters.postgres.problems import of_history
from app.adapters.postgres.statements import HOLD_VIEWS
from app.domain.log import HistoryId, Revision
from app.domain.log.chain import canonical_json
from app.domain.log.projection import Column, Table, row_part, storable, sum_text
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant
from app.ports import StoredRows

FIND = """
SELECT projection, version, revision, state_hash FROM checkpoints
WHERE history = $1 AND projection = $2 AND version = $3
"""
"""One checkpoint."""

ALL = """
SELECT projection, version, revision, state_hash FROM checkpoints
WHERE history = $1 ORDER BY projection, version
"""
"""The checkpoints of a history."""

ADVANCE = """
UPDATE checkpoints SET revision = $5, state_hash = $6
WHERE history = $1 AND projection = $2 AND version = $3 AND revision = $4
RETURNING revision
"""
"""Compare and advance; no row when the checkpoint is at another revision."""

BEGIN = """
INSERT INTO checkpoints (history, projection, version, revision, state_hash)
VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING
RETURNING revision
"""
"""Insert the first checkpoint of a version; no row when there is one."""

FORGET_OTHERS = "DELETE FROM checkpoints WHERE history = $1 AND projection = $2 AND version <> $3"
"""Delete the checkpoints of other versions, whose rows are replaced."""

FORGET = """
DELETE FROM checkpoints WHERE history = $1 AND projection = $2 AND version = $3
RETURNING revision
"""
"""Delete one checkpoint; no row when there was none."""

FORGET_SNAPSHOTS = """
DELETE FROM snapshots WHERE history = $1 AND projection = $2 AND version = $3
"""
"""Delete the snapshots of one version."""

SAVE_SNAPSHOT = """
INSERT INTO snapshots (history, projection, version, revision, state) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (history, projection, version, revision) DO UPDATE SET state = excluded.state
"""
"""Store a snapshot."""

LOAD_SNAPSHOT = """
SELECT revision, state FROM snapshots
WHERE history = $1 AND projection = $2 AND version = $3 AND revision <= $4
ORDER BY revision DESC LIMIT 1
"""
"""The newest snapshot at or before a revision."""

KEPT_VERSIONS = """
SELECT DISTINCT version FROM snapshots WHERE history = $1 AND projection = $2 ORDER BY version
"""
"""The versions of a projection of which there are snapshots."""


FETCHED = 1_000
"""Rows that are fetched at a time to hash them."""

UNREADABLE = "unreadable"
"""The hash of rows that no reader understands; it equals no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """The checkpoint of a projection: the revision up to which its rows are written."""

    projection: str
    version: int
    revision: Revision
    state_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _ColumnType:
    """The conversion of a declared type: its SQL type, and functions for both directions.

    `text` gives the value as a text that the server reads as the type, `encode` as the driver
    takes it. A value without a `text` is one.
    """

    sql: str
    text: Callable[[Any], str] | None  # Any: the JSON edge
    encode: Callable[[Any], object]
    decode: Callable[[Any], object]

    def joined(self, values: Sequence[Any]) -> str | None:
        """The values of a column as `columns.joined` gives them."""
        if (text := self.text) is not None:
            values = [None if value is None else text(value) for value in values]
        joined = columns.joined(values)
        return None if joined is None else storable(joined)


def _as_is(value: object) -> object:
    return value


def _moment(value: int) -> datetime:
    return timestamps.to_datetime(Instant(value))


def _json_text(value: object) -> str:
    return canonical_json(value).decode()


_KINDS: Mapping[str, _ColumnType] = {
    "text": _ColumnType(sql="text", text=None, encode=storable, decode=_as_is),
    "integer": _ColumnType(sql="bigint", text=str, encode=_as_is, decode=_as_is),
    "boolean": _ColumnType(sql="boolean", text=str, encode=_as_is, decode=_as_is),
    "instant": _ColumnType(
        sql="timestamptz", text=columns.moment, encode=_moment, decode=timestamps.from_datetime
    ),
    "decimal": _ColumnType(
        sql="numeric", text=None, encode=Decimal, decode=lambda value: f"{value:f}"
    ),
    "json": _ColumnType(
        sql="json", text=_json_text, encode=canonical_json, decode=msgspec.json.decode
    ),
}


class _Statements:
    """The statements of one view table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        by_name = {column.name: column for column in table.columns}
        self.keys = tuple(by_name[name] for name in table.key)
        self.columns = table.columns
        name = view_name(table.name)
        names = ", ".join(_quoted(column) for column in table.columns)
        keys = ", ".join(_quoted(column) for column in self.keys)
        others = ", ".join(
            f"{_quoted(column)} = excluded.{_quoted(column)}"
            for column in table.columns
            if column.name not in table.key
        )
        change = f"DO UPDATE SET {others}" if others else "DO NOTHING"
        same = " AND ".join(
            f"{name}.{_quoted(column)} = gone.{_quoted(column)}" for column in self.keys
        )
        insert = f"INSERT INTO {name} (history, {names})"
        conflict = f"ON CONFLICT (history, {keys}) {change}"
        delete = f"DELETE FROM {name} USING"  # noqa: S608 (declared names only)
        gone = f"AS gone ({keys}) WHERE {name}.history = $1 AND {same}"
        rows = f"SELECT $1, * FROM unnest({_joined(table.columns)})"  # noqa: S608 (as above)
        self.upsert = f"{insert} {rows} {conflict}"
        self.upsert_one = f"{insert} VALUES ($1, {_single(table.columns)}) {conflict}"
        self.delete = f"{delete} unnest({_joined(self.keys)}) {gone}"
        self.delete_one = f"{delete} (VALUES ({_single(self.keys)})) {gone}"
        self.empty = f"DELETE FROM {name} WHERE history = $1"  # noqa: S608
        self.read = f"SELECT {names} FROM {name} WHERE history = $1 ORDER BY {keys}"  # noqa: S608
        self.count = f"SELECT count(*) FROM (SELECT FROM {name} WHERE history = $1 LIMIT $2) AS one"  # noqa: S608
        decoders = [(column.name, _KINDS[column.type].decode) for column in table.columns]
        # Most columns are as they are read.
        self._decoders = [(name, decode) for name, decode in decoders if decode is not _as_is]

    def row(self, record: Record) -> dict[str, object]:
        """The stored row by the names of its columns."""
        row: dict[str, object] = dict(record.items())
        for name, decode in self._decoders:
            value = row[name]
            if value is not None:
                row[name] = decode(value)
        return row


class PostgresViewStore:
    """A ViewStore for the tables of projections.

    `declared` returns the tables by the name of the projection. It is called only when rows are
    written or read, so that other commands need not load the projections.
    """

    def __init__(
        self, database: Database, declared: Callable[[], Mapping[str, Sequence[Table]]]
    ) -> None:
        self._database = database
        self._declared = declared

    @cached_property
    def _tables(self) -> dict[str, list[str]]:
        return {name: [table.name for table in each] for name, each in self._declared().items()}

    @cached_property
    def _statements(self) -> dict[str, _Statements]:
        return {
            table.name: _Statements(table) for each in self._declared().values() for table in each
        }

    async def checkpoint(
        self, history: HistoryId, projection: str, version: int
    ) -> StoredCheckpoint | None:
        """The checkpoint of this version of a projection."""
        async with self._database.connection() as connection:
            row = await connection.fetchrow(FIND, history, projection, version)
        return None if row is None else StoredCheckpoint(**row)

    async def checkpoints(self, history: HistoryId) -> list[StoredCheckpoint]:
        """All checkpoints of a history, sorted by projection and version."""
        async with self._database.connection() as connection:
            return [StoredCheckpoint(**row) for row in await connection.fetch(ALL, history)]

    async def write(
        self,
        history: HistoryId,
        projection: str,
        version: int,
        *,
        after: Revision,
        revision: Revision,
        state_hash: str,
        upserts: Mapping[str, Sequence[Mapping[str, object]]],
        deletes: Mapping[str, Sequence[tuple[object, ...]]],
    ) -> bool:
        """Write rows and advance the checkpoint; False when it is not at `after`.

        The first write of a version (`after` 0) replaces the rows of other versions, and holds the
        history, so that no other version begins meanwhile. The checkpoint is locked before any
        row, as in a deletion of the history.
        """
        async with self._database.transaction() as connection:
            place = (history, projection, version)
            moved = await connection.fetchval(ADVANCE, *place, after, revision, state_hash)
            if moved is None:
                if after != 0:
                    return False
                await connection.execute(HOLD_VIEWS, history)
                with of_history(history):
                    began = await connection.fetchval(BEGIN, *place, revision, state_hash)
                if began is None:
                    return False
                await connection.execute(FORGET_OTHERS, *place)
                await self._remove_rows(connection, history, projection)
            for name, keys in deletes.items():
                if keys:
                    table = self._statements[name]
                    change, one, given = table.delete, table.delete_one, table.keys
                    values = list(map(list, zip(*keys, strict=True)))
                    await _send(connection, history, change, one, given, values)
            for name, rows in upserts.items():
                if rows:
                    table = self._statements[name]
                    change, one, given = table.upsert, table.upsert_one, table.columns
                    values = _by_column(table, rows)
                    await _send(connection, history, change, one, given, values)
        return True

    async def clear(self, history: HistoryId, projection: str, version: int) -> None:
        """Remove the checkpoint and snapshots of this version, and the rows if it wrote them.

        It holds the history: deletions lock snapshots in another order with another plan.
        """
        async with self._database.transaction() as connection:
            await connection.execute(HOLD_VIEWS, history)
            await connection.execute(FORGET_SNAPSHOTS, history, projection, version)
            if await connection.fetchval(FORGET, history, projection, version) is not None:
                await self._remove_rows(connection, history, projection)

    async def rows(self, history: HistoryId, table: str) -> list[dict[str, object]]:
        """All rows of one view table, sorted by key."""
        statements = self._statements[table]
        async with self._database.connection() as connection:
            records = await connection.fetch(statements.read, history)
        return [statements.row(record) for record in records]

    async def hash_rows(
        self, history: HistoryId, projection: str, version: int, *, rows_max: int
    ) -> StoredRows:
        """The hash of all stored rows of a projection, with the checkpoint of this version."""
        each = [self._statements[name] for name in self._tables[projection]]
        async with (
            self._database.connection() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            kept = await connection.fetchrow(FIND, history, projection, version)
            checkpoint = None if kept is None else StoredCheckpoint(**kept)
            count = sum(
                [await connection.fetchval(one.count, history, rows_max + 1) for one in each]
            )
            if count > rows_max:
                return StoredRows(checkpoint=checkpoint, hash=None, count=count)
            try:
                total = sum([await _sum(connection, statements, history) for statements in each])
            except (TypeError, ValueError, OverflowError, msgspec.DecodeError):
                # A value that redra cannot have written, such as the time `infinity`.
                return StoredRows(checkpoint=checkpoint, hash=UNREADABLE, count=count)
        return StoredRows(checkpoint=checkpoint, hash=sum_text(total), count=count)

    async def save_snapshot(
        self, history: HistoryId, projection: str, version: int, revision: Revision, state: bytes
    ) -> None:
        """Store a snapshot of a folded state. Raises NotFound."""
        async with self._database.connection() as connection:
            with of_history(history):
                place = (history, projection, version, revision)
                await connection.execute(SAVE_SNAPSHOT, *place, state)

    async def load_snapshot(
        self, history: HistoryId, projection: str, version: int, *, until: Revision
    ) -> tuple[Revision, bytes] | None:
        """The newest snapshot at or before `until`."""
        async with self._database.connection() as connection:
            row = await connection.fetchrow(LOAD_SNAPSHOT, history, projection, version, until)
        return None if row is None else (Revision(row["revision"]), row["state"])

    async def kept_versions(self, history: HistoryId, projection: str) -> list[int]:
        """The versions of a projection of which snapshots are kept, sorted."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(KEPT_VERSIONS, history, projection)
        return [row["version"] for row in rows]

    async def _remove_rows(
        self, connection: PoolConnectionProxy, history: HistoryId, projection: str
    ) -> None:
        for name in self._tables.get(projection, ()):
            await connection.execute(self._statements[name].empty, history)


async def _sum(connection: PoolConnectionProxy, statements: _Statements, history: HistoryId) -> int:
    """The amount of the rows of one table; the connection is in a transaction."""
    table, total = statements.table, 0
    cursor = await connection.cursor(statements.read, history)
    while records := await cursor.fetch(FETCHED):
        for record in records:
            row = statements.row(record)
            total += row_part(table.name, table.key_of(row), row)
        await lowlevel.checkpoint()
    return total


def _quoted(column: Column) -> str:
    return f'"{column.name}"'


def _joined(given: Sequence[Column]) -> str:
    return ", ".join(
        columns.split(f"${number}", _KINDS[column.type].sql)
        for number, column in enumerate(given, start=2)
    )


def _single(given: Sequence[Column]) -> str:
    return ", ".join(
        f"${number}::{_KINDS[column.type].sql}" for number, column in enumerate(given, start=2)
    )


async def _send(
    connection: PoolConnectionProxy,
    history: HistoryId,
    statement: str,
    one: str,
    given: Sequence[Column],
    values: Sequence[Sequence[object]],
) -> None:
    """Execute the statement for all rows, or the statement of one row for each.

    `values` are those of each column in `given`.
    """
    joined = [_KINDS[column.type].joined(each) for column, each in zip(given, values, strict=True)]
    if None not in joined:
        await connection.execute(statement, history, *joined)
        return
    encoded = [
        [_encoded(column, value) for value in each]
        for column, each in zip(given, values, strict=True)
    ]
    await connection.executemany(one, [(history, *row) for row in zip(*encoded, strict=True)])


def _by_column(statements: _Statements, rows: Sequence[Mapping[str, object]]) -> list[list[object]]:
    """The values by columns; when two rows have one key, the later one counts."""
    names = [column.name for column in statements.keys]
    last = {tuple(row[name] for name in names): row for row in rows}.values()
    return [[row.get(column.name) for row in last] for column in statements.columns]


def _encoded(column: Column, value: object) -> object:
    return None if value is None else _KINDS[column.type].encode(value)
