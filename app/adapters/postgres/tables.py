"""The declared schema: the log and the tables beside it.

Every key begins with the history, so that the rows of one history are stored together and the
schema can be distributed by history. The log is hash-partitioned by history. SQLAlchemy cannot
express the partitions, the guard against changes and the readable view; they are in the migrations.
A test compares the migrated schema with this declaration.

| table | one row is | key |
|---|---|---|
| histories | one cluster's timeline | history |
| log_heads | the end of a history; an append locks it | history |
| log_events | one event | history, revision |
| signed_heads | a head that came with a bundle | history, revision, key |
| tombstones | a deleted history | history |
| leases | the holder of a lease | history, name |
| checkpoints | the progress of a materialised projection | history, projection, version |
| snapshots | a stored state of a fold | history, projection, version, revision |
| view_… | rows of projections, see `views.py` | history, … |
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import TypeAlias

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSON

from app.adapters.postgres.names import view_name
from app.domain.log import projection
from projections.tables import ALL as VIEW_TABLES

PARTITIONS = 8
"""Partitions of log_events. A history is stored in one of them."""

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_name)s_key",
    }
)


def _key_text(name: str) -> Column[str]:
    """A text column that sorts by code point, as Python does; pages by key depend on it."""
    return Column(name, Text(collation="C"), nullable=False)


def _history(*, primary_key: bool = True) -> Column[int]:
    return Column(
        "history",
        BigInteger,
        ForeignKey("histories.history"),
        primary_key=primary_key,
        autoincrement=False,
    )


histories = Table(
    "histories",
    metadata,
    Column("history", BigInteger, Identity(always=True), primary_key=True),
    Column("name", Text(collation="C"), nullable=False, unique=True),
    Column("seed", Numeric(40, 0), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("created", DateTime(timezone=True), nullable=False),
    Column("parent", BigInteger, ForeignKey("histories.history", ondelete="SET NULL")),
    Column("parent_revision", BigInteger, nullable=False),
    Column("beginning", JSON),
    Column("is_fork", Boolean, nullable=False, server_default=text("false")),
)

log_heads = Table(
    "log_heads",
    metadata,
    _history(),
    Column("revision", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("time", DateTime(timezone=True), nullable=False),
)

log_events = Table(
    "log_events",
    metadata,
    # No foreign key: the head row, which has one, is locked by every append.
    Column("history", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("time", DateTime(timezone=True), nullable=False),
    Column("clock", DateTime(timezone=True), nullable=False),
    Column("type", Text(collation="C"), nullable=False),
    _key_text("group"),
    _key_text("resource"),
    _key_text("namespace"),
    _key_text("name"),
    Column("uid", Text(collation="C"), nullable=False),
    Column("stamp", JSON, nullable=False),
    Column("object", JSON, nullable=False),
    Column("format", SmallInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    postgresql_partition_by="HASH (history)",
)
Index(
    "log_events_object",
    *(log_events.c[name] for name in ("history", "group", "resource", "namespace", "name")),
    log_events.c.revision.desc(),
)
Index(
    "log_events_warned",
    log_events.c.history,
    text("log_warned(object::text)"),
    log_events.c.revision,
    postgresql_where=text(
        "resource = 'events' AND type = 'ObjectCreated'"
        """ AND strpos(object::text, '"Warning"') > 0"""
    ),
)

signed_heads = Table(
    "signed_heads",
    metadata,
    _history(),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("key", Text(collation="C"), primary_key=True),
    Column("head", JSON, nullable=False),
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("history", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text(collation="C"), nullable=False),
    Column("seed", Numeric(40, 0), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("created", DateTime(timezone=True), nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("time", DateTime(timezone=True), nullable=False),
    Column("deleted", DateTime(timezone=True), nullable=False),
    Column("deleted_by", Text, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    _history(),
    Column("name", Text(collation="C"), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),
    Column("until", DateTime(timezone=True), nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    _history(),
    Column("projection", Text(collation="C"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, nullable=False),
    Column("state_hash", Text, nullable=False),
)

snapshots = Table(
    "snapshots",
    metadata,
    _history(),
    Column("projection", Text(collation="C"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("state", LargeBinary, nullable=False),
)

_ColumnType: TypeAlias = Text | BigInteger | DateTime | Boolean | Numeric[Decimal] | JSON


def view_tables(
    declared: Iterable[projection.Table], metadata: MetaData = metadata
) -> dict[str, Table]:
    """The SQL tables `view_…` of declared projection tables, by declared name.

    The history comes first in the key. Declaring a table again returns the same SQL table.
    """
    tables: dict[str, Table] = {}
    for table in declared:
        name = view_name(table.name)
        known = metadata.tables.get(name)
        tables[table.name] = _view_table(table, name, metadata) if known is None else known
    return tables


def _view_table(declared: projection.Table, name: str, metadata: MetaData) -> Table:
    return Table(
        name,
        metadata,
        Column("history", BigInteger, primary_key=True, autoincrement=False),
        *(
            Column(
                column.name,
                _column_type(column),
                primary_key=column.name in declared.key,
                autoincrement=False,
                comment=column.description or None,
            )
            for column in _key_first(declared)
        ),
        comment=declared.description or None,
    )


def _key_first(declared: projection.Table) -> list[projection.Column]:
    """Key columns in the order of the key, then the others as declared."""
    by_name = {column.name: column for column in declared.columns}
    rest = [column for column in declared.columns if column.name not in declared.key]
    return [by_name[name] for name in declared.key] + rest


def _column_type(column: projection.Column) -> _ColumnType:
    match column.type:
        case "text":
            return Text(collation="C")
        case "integer":
            return BigInteger()
        case "instant":
            return DateTime(timezone=True)
        case "boolean":
            return Boolean()
        case "decimal":
            return Numeric()
        case "json":
            return JSON()
    raise AssertionError(f"{column.name}: no SQL type for {column.type!r}")


views = view_tables(VIEW_TABLES)
"""The view tables of this program's projections, by declared name."""
