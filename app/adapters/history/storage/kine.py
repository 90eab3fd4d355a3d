"""The reader of kine tables: one row per change, in SQLite, a dump of SQL, or an export.

Parity: history-formats.md 13.
"""

import base64
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.adapters.history import documents
from app.adapters.history.reading import Notes
from app.adapters.history.storage import etcd, kine_sql, shown_rows
from app.adapters.history.storage.kine_sql import KineRow
from app.adapters.history.storage.write_logs import EtcdEntry
from app.adapters.history.unpacking import ByteSource
from app.adapters.private_folders import PrivateFolder
from app.domain.errors import InputError
from app.domain.log.records import Op, Record
from app.domain.values.json_tree import JsonObject

COMPACT_KEY = "compact_rev_key"
FILLER = "gap-"
HEAD_BYTES = 8192
"""Bytes of a file that are searched for the statements of a dump."""

_TRUE = ("1", "t", "true")
_DIGITS = re.compile(
    r"(?:\\x|0x)((?:[0-9a-fA-F]{2})*)|[xX]'((?:[0-9a-fA-F]{2})*)'"
    r"|((?:6[bB]3873|7[bB])(?:[0-9a-fA-F]{2})*)"
)
"""Bytes as digits: with a mark before them, or beginning as stored values do (`k8s`, `{`), which
base64 of them never does."""


def read(
    source: ByteSource, number: int, notes: Notes, log: ByteSource | None = None
) -> Iterator[Record]:
    """The records of a table: the objects that existed at its compaction, then every change.

    `log` is the write-ahead log of a file of SQLite. The table is read several times, so that
    values need not be kept in memory. Raises InputError for a file without the table or with a
    damaged value.
    """
    with _table(source, notes, log) as rows:
        compacted = missing = last = 0
        latest: dict[str, int] = {}
        for row in rows():
            if row.name == COMPACT_KEY:
                compacted = max(compacted, row.previous)
        for row in rows():
            if row.id <= compacted:
                latest[row.name] = row.id
            elif last:
                missing += row.id - last - 1
            last = row.id
        if missing:
            notes.add(f"{source.name}: {missing} ids are missing after revision {compacted}")
        known: dict[str, Record] = {}
        for index, row in enumerate(rows(), start=1):
            op = _op(row, compacted, latest)
            if op is not None:
                yield from etcd.entry_records(
                    _entry(row, op), op, source, (number, index), known, notes
                )


def _op(row: KineRow, compacted: int, latest: dict[str, int]) -> Op | None:
    """The operation of a row; None for rows that are not about an object."""
    if row.name == COMPACT_KEY or row.name.startswith(FILLER):
        return None
    if row.id <= compacted:
        return None if row.deleted or latest[row.name] != row.id else Op.BASELINE
    if row.created:
        return Op.ADDED
    return Op.DELETED if row.deleted else Op.MODIFIED


def _entry(row: KineRow, op: Op) -> EtcdEntry:
    return EtcdEntry(
        main=row.id,
        sub=0,
        key=row.name,
        version=1 if row.created else 2,
        value=None if op is Op.DELETED else row.value,
    )


@contextmanager
def _table(
    source: ByteSource, notes: Notes, log: ByteSource | None
) -> Iterator[Callable[[], Iterator[KineRow]]]:
    """A function that reads the rows in order of their ids, each time it is called."""
    head = source.head(HEAD_BYTES)
    if kine_sql.is_dump(head):
        dumped = _dumped(source, notes)
        yield lambda: iter(dumped)
        return
    if not head.startswith(b"SQLite format 3\0"):
        # A query without an order gives rows in any.
        exported = sorted(_exported(source), key=lambda row: row.id)
        yield lambda: iter(exported)
        return
    # Copies are opened, and never the source files: SQLite joins a log with its database.
    with PrivateFolder() as folder:
        path = Path(folder, "state.db")
        for name, each in (("state.db", source), ("state.db-wal", log)):
            with Path(folder, name).open("wb") as target:
                for chunk in each.chunks() if each is not None else ():
                    target.write(chunk)
        try:
            mode = "mode=ro&immutable=1" if log is None else "mode=rw"
            database = sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True)
            try:
                yield lambda: _select(database)
            finally:
                database.close()
        except sqlite3.Error as problem:
            raise InputError(
                f"the table kine cannot be read: {problem}",
                place=source.name,
                cure="copy the file together with its -wal, after a checkpoint",
            ) from problem


def _select(database: sqlite3.Connection) -> Iterator[KineRow]:
    cursor = database.execute(
        "SELECT id, name, created, deleted, prev_revision, value FROM kine ORDER BY id"
    )
    for id_, name, created, deleted, previous, value in cursor:
        content = value if isinstance(value, bytes) else str(value or "").encode()
        yield KineRow(id_, str(name), bool(created), bool(deleted), previous or 0, content)


def _dumped(source: ByteSource, notes: Notes) -> list[KineRow]:
    """The rows of a dump of SQL in order of their ids; those behind damage are lost."""
    rows: list[KineRow] = []
    try:
        # What comes before damage is in the list when it is met.
        rows.extend(kine_sql.rows(source.whole()))
    except kine_sql.BrokenDump as problem:
        notes.lose(
            InputError(
                "the dump breaks off or is damaged in a row", place=f"{source.name}:{problem.line}"
            )
        )
    return sorted(rows, key=lambda row: row.id)


def _exported(source: ByteSource) -> Iterator[KineRow]:
    """The rows of a table as text, or in JSON as an array or one object a line."""
    if _is_json(source):
        rows = _json_rows(source)
    else:
        # The shells of databases write a text from Windows with its mark.
        rows = shown_rows.rows(source.whole().decode("utf-8-sig", "replace"), source.name)
    for line, row in rows:
        try:
            yield KineRow(
                int(row["id"]),
                str(row["name"]),
                str(row["created"]).lower() in _TRUE,
                str(row["deleted"]).lower() in _TRUE,
                int(row["prev_revision"] or 0),
                _bytes(row["value"] or ""),
            )
        except (KeyError, ValueError, TypeError, AttributeError) as problem:
            raise InputError(
                f"it is not a row of kine: {problem}", place=f"{source.name}:{line}"
            ) from problem


def _is_json(source: ByteSource) -> bool:
    return source.head(HEAD_BYTES).lstrip()[:1] in (b"{", b"[")


def _json_rows(source: ByteSource) -> Iterator[tuple[str, JsonObject]]:
    for line, tree in documents.read_documents(source):
        for row in tree if isinstance(tree, list) else [tree]:
            if not isinstance(row, dict):
                raise InputError("it is not a row of kine", place=f"{source.name}:{line}")
            yield line, row


def _bytes(text: str) -> bytes:
    """The bytes of a value: hexadecimal digits, base64, or JSON as it is. Raises ValueError.

    PostgreSQL writes `\\x` before the digits, quote() of SQLite `X'`, and hex() nothing.
    """
    if (digits := _DIGITS.fullmatch(text)) is not None:
        return bytes.fromhex(digits[1] or digits[2] or digits[3] or "")
    if not text or text.startswith("{"):
        return text.encode()
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError("its value is not in digits, as hex(value) gives them") from None
