"""A tamperer that draws one alteration of anything that a database of redra holds.

It knows the tables only from the catalogue of the database, so that a new column or table is
altered, too. What it may alter without a verdict stands in `WITHOUT_MEANING`, with the reason.
"""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import asyncpg

WITHOUT_MEANING = {
    ("log_heads", "epoch"): "the number of take-overs of leases",
    ("histories", "name"): "an owner may rename a history; a head keeps the old name",
    ("signed_heads", "revision"): "the head itself says it, and is what is compared",
    ("signed_heads", "*"): "an owner may lose a head; those kept elsewhere count",
}
"""Columns whose alteration no verification has to notice, and why; `*` is a row as a whole."""

WHOLE_TABLES = {
    "leases": "leases say who works, and nothing about what happened",
    "tombstones": "a tombstone is about a history whose log is gone",
}


@dataclass(kw_only=True)
class Alteration:
    """One change: its statement, its values, and the histories that it concerns."""

    table: str
    column: str
    said: str
    statement: str
    values: tuple[object, ...]
    histories: tuple[int, ...]
    is_of_nothing: bool = False
    """Whether it is the revision of a source in a history without one, as in a copy whose source
    was deleted, or the same JSON in another text outside of the log."""

    @property
    def is_free(self) -> bool:
        if self.is_of_nothing:
            return True
        whole = self.table in WHOLE_TABLES
        return whole or (self.table, self.column) in WITHOUT_MEANING


@dataclass(kw_only=True)
class Table:
    """A table: the types of its columns, the columns of its key, and its rows."""

    name: str
    columns: dict[str, str] = field(default_factory=dict)
    key: list[str] = field(default_factory=list)
    rows: list[asyncpg.Record] = field(default_factory=list)


async def tables_of(connection: asyncpg.Connection) -> list[Table]:
    """The tables with a column `history`, with the types of their columns and their keys."""
    columns = await connection.fetch(
        "SELECT c.relname, a.attname, format_type(a.atttypid, NULL) AS type "
        "FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') "
        "AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped "
        "ORDER BY c.relname, a.attnum"
    )
    keys = await connection.fetch(
        "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) "
        "WHERE i.indisprimary AND c.relnamespace = 'public'::regnamespace ORDER BY 1, 2"
    )
    tables = {}
    for row in columns:
        table = tables.setdefault(row["relname"], Table(name=row["relname"]))
        table.columns[row["attname"]] = row["type"]
    for row in keys:
        if row["relname"] in tables:
            tables[row["relname"]].key.append(row["attname"])
    found = [table for table in tables.values() if "history" in table.columns]
    for table in found:
        order = ", ".join(f'"{name}"' for name in table.key)
        table.rows = await connection.fetch(f"SELECT * FROM {table.name} ORDER BY {order}")
    return found


async def alter(connection: asyncpg.Connection, seed: int) -> Alteration:
    """Make the first drawn alteration that has a meaning, and that the tables take."""
    tables = await tables_of(connection)
    for number in range(1_000):
        alteration = drawn(tables, seed * 1_000 + number)
        if alteration is None or alteration.is_free:
            continue
        with suppress(asyncpg.IntegrityConstraintViolationError, asyncpg.DataError):
            await connection.execute(alteration.statement, *alteration.values)
            return alteration
    raise AssertionError("nothing can be altered")


def drawn(tables: list[Table], seed: int) -> Alteration | None:
    """One alteration; None when the drawn place holds nothing that can be altered so."""
    source = random.Random(seed)
    weights = [40 if table.name.startswith("log_events") else 6 if "view_" not in table.name else 1
               for table in tables]  # fmt: skip
    (table,) = source.choices(tables, weights)
    if not table.rows:
        return None
    row = source.choice(table.rows)
    make = source.choice((_column, _column, _column, _column, _row_gone, _row_moved, _row_swapped))
    return make(source, table, row)


def _where(table: Table, start: int = 1) -> str:
    return " AND ".join(f'"{name}" = ${number}' for number, name in enumerate(table.key, start))


def _key(table: Table, row: asyncpg.Record) -> list[object]:
    return [row[name] for name in table.key]


def _row_gone(source: random.Random, table: Table, row: asyncpg.Record) -> Alteration:
    return Alteration(
        table=table.name, column="*", said=f"{table.name} {_key(table, row)} is gone",
        statement=f"DELETE FROM {table.name} WHERE {_where(table)}",
        values=tuple(_key(table, row)), histories=(row["history"],),
    )  # fmt: skip


def _row_moved(source: random.Random, table: Table, row: asyncpg.Record) -> Alteration | None:
    """A copy of the row in another history, or at another place of its own."""
    number = "revision" if "revision" in table.key else "history"
    others = sorted({other[number] for other in table.rows} | {row[number] + 1})
    values = dict(row) | {number: source.choice(others)}
    if any(_key(table, other) == [values[name] for name in table.key] for other in table.rows):
        return None
    names = ", ".join(f'"{name}"' for name in values)
    places = ", ".join(f"${place}" for place in range(1, len(values) + 1))
    over = "OVERRIDING SYSTEM VALUE " if table.name == "histories" else ""
    return Alteration(
        table=table.name, column="*",
        said=f"{table.name} {_key(table, row)} also at {values[number]}",
        statement=f"INSERT INTO {table.name} ({names}) {over}VALUES ({places})",
        values=tuple(values.values()), histories=(values["history"],),
    )  # fmt: skip


def _row_swapped(source: random.Random, table: Table, row: asyncpg.Record) -> Alteration | None:
    """All columns but the key of another row of the same history."""
    rest = [name for name in table.columns if name not in table.key]
    others = [other for other in table.rows if other["history"] == row["history"]]
    other = source.choice(others)
    if not rest or [other[name] for name in rest] == [row[name] for name in rest]:
        return None
    sets = ", ".join(f'"{name}" = ${place}' for place, name in enumerate(rest, 1))
    return Alteration(
        table=table.name, column="*",
        said=f"{table.name} {_key(table, row)} has what {_key(table, other)} has",
        statement=f"UPDATE {table.name} SET {sets} WHERE {_where(table, len(rest) + 1)}",
        values=(*(other[name] for name in rest), *_key(table, row)), histories=(row["history"],),
    )  # fmt: skip


def _column(source: random.Random, table: Table, row: asyncpg.Record) -> Alteration | None:
    """One column of one row, changed a little or much."""
    names = [name for name in table.columns if name not in table.key or name == "revision"]
    if not names:
        return None
    name = source.choice(names)
    value = _changed(source, table.columns[name], row[name], [other[name] for other in table.rows])
    if value is None or value == row[name]:
        return None
    return Alteration(
        table=table.name, column=name,
        said=f"{table.name} {_key(table, row)}: {name} {_short(row[name])} -> {_short(value)}",
        statement=f'UPDATE {table.name} SET "{name}" = $1 WHERE {_where(table, 2)}',
        values=(value, *_key(table, row)), histories=(row["history"],),
        is_of_nothing=(name == "parent_revision" and row["parent"] is None)
        or _is_same_json(table, name, row[name], value),
    )  # fmt: skip


def _is_same_json(table: Table, name: str, one: Any, other: Any) -> bool:
    """Whether the value stays the same; the hash covers the text of events, byte by byte."""
    if table.name == "log_events" or table.columns[name] != "json" or one is None or other is None:
        return False
    return bool(json.loads(one) == json.loads(other))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 160 else f"{text[:80]}…{text[-60:]}"


def _changed(source: random.Random, type: str, value: Any, others: list[Any]) -> Any:
    """Another value of the type; None for none that differs or that the type takes."""
    if source.random() < 0.2:
        return source.choice(others)
    match type:
        case "bigint" | "integer" | "smallint":
            return source.choice((0, -1, 1, (value or 0) + 1, (value or 0) - 1, 2**15 - 1))
        case "numeric":
            number = value or Decimal(0)
            return source.choice((number + 1, number - 1, Decimal(0), Decimal("NaN")))
        case "boolean":
            return not value
        case "timestamp with time zone":
            if value is None:
                return None
            micro = timedelta(microseconds=1)
            return source.choice((value + micro, value - micro, value + timedelta(days=1),
                                  datetime.max.replace(tzinfo=value.tzinfo)))  # fmt: skip
        case "bytea":
            return _bytes(source, bytes(value or b""))
        case "json":
            return _json(source, str(value or "null"))
        case "text":
            return _text(source, str(value or ""))
    return None


def _bytes(source: random.Random, value: bytes) -> bytes:
    if not value or source.random() < 0.1:
        return value + b"\0"
    place = source.randrange(len(value))
    kind = source.choice(("flip", "cut", "less"))
    if kind == "cut":
        return value[:place]
    if kind == "less":
        return value[:place] + value[place + 1 :]
    return value[:place] + bytes([value[place] ^ (1 << source.randrange(8))]) + value[place + 1 :]


def _text(source: random.Random, value: str) -> str:
    place = source.randrange(len(value) + 1)
    letter = source.choice("aZ0 -é/")
    return source.choice(
        ("", value + letter, value[:place] + letter + value[place + 1 :], value[:place],
         value.swapcase(), value + " ", value[:place] + value[place + 1 :])
    )  # fmt: skip


def _json(source: random.Random, value: str) -> str | None:
    """The text with a changed byte, or the same value in another text."""
    tree = json.loads(value)
    same: tuple[Callable[[], str], ...] = (
        lambda: value + " ",
        lambda: value.replace(":", ": ", 1),
        lambda: json.dumps(tree, ensure_ascii=True, separators=(",", ":")),
        lambda: json.dumps(_reversed(tree), ensure_ascii=False, separators=(",", ":")),
        lambda: _twice(value),
    )
    if source.random() < 0.3:
        return source.choice(same)()
    for _ in range(20):
        place = source.randrange(len(value))
        letter = source.choice('a0"{}[],:-9 truefalsnk')
        changed = source.choice(
            (value[:place] + letter + value[place + 1 :], value[:place] + value[place + 1 :])
        )
        try:
            json.loads(changed)
        except ValueError:
            continue
        return changed
    return None


def _twice(value: str) -> str:
    """The first name of an object given twice."""
    tree = json.loads(value)
    if not isinstance(tree, dict) or not tree:
        return value
    name, first = next(iter(tree.items()))
    return "{" + json.dumps(name) + ":" + json.dumps(first) + "," + value[1:]


def _reversed(tree: Any) -> Any:
    return dict(reversed(tree.items())) if isinstance(tree, dict) else tree
