"""A temporary, sorted store of records, for imports in bounded memory.

An import is read, joined and checked completely before the log is written. Records are stored in a
SQLite file that is removed at the end: identity and position in columns, the record without its
object in `head`, the object in `body`. Records of Secrets are encrypted with a key that exists only
in memory. No code outside this package reads the file.
"""

import errno
import hashlib
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.adapters.history import json_text, times
from app.adapters.history.joining.patched_parts import Part, parts_of
from app.adapters.history.limits import BoundReached, ImportLimits
from app.adapters.private_folders import PrivateFolder
from app.domain.log import ObjectKey
from app.domain.log.records import (
    Loss,
    Op,
    Record,
    TimeQuality,
    comparable_version,
    join_losses,
)
from app.domain.objects.kinds import secret_values
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_head_encoder = msgspec.msgpack.Encoder()
_head_decoder = msgspec.msgpack.Decoder(Record)
_body_encoder = msgspec.msgpack.Encoder()
_body_decoder = msgspec.msgpack.Decoder()

_CREATE = """
CREATE TABLE record (
  row INTEGER PRIMARY KEY,
  epoch INTEGER, version TEXT, sub INTEGER, source INTEGER, position INTEGER,
  key TEXT, uid TEXT, own TEXT, op TEXT, actor INTEGER, time INTEGER, exact INTEGER,
  who TEXT, account TEXT, asked INTEGER, made INTEGER, head BLOB, body BLOB
)
"""
_CREATE_TOLD = (
    "CREATE TABLE told (digest BLOB PRIMARY KEY, row INTEGER, time INTEGER) WITHOUT ROWID"
)
_REMEMBER = "INSERT OR IGNORE INTO told VALUES (?,?,?)"
_TOLD = "SELECT row, time FROM told WHERE digest = ?"
_REMEMBER_EARLIER = "UPDATE told SET time = ? WHERE digest = ?"
_INSERT = "INSERT INTO record VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_SELECT = "SELECT row, epoch, version, sub, own, op, actor, head, body FROM record "
_SELECT_TIMES = "SELECT time, exact FROM record ORDER BY "
_SELECT_REQUESTS = (
    "SELECT CASE WHEN own <> '' AND exact THEN asked END, "
    "CASE WHEN own <> '' AND exact THEN time END FROM record ORDER BY "
)
_SELECT_CREATIONS = "SELECT key, made FROM record ORDER BY "
_BATCH = 2_000
_HIDDEN = b"\xc1"
"""The first byte of an encrypted column, which MessagePack never uses."""
_NONCE_BYTES = 12
_DIGEST_BYTES = 20
_KEY_BYTES = 32

ORDER_BY_REVISION = (
    "epoch, version, sub, CASE WHEN sub = 0 THEN 0 ELSE coalesce(time, 0) END, actor DESC, "
    "op <> 'ADDED', source, position"
)
ORDER_BY_TIME = "coalesce(time, 0), source, position"
ORDER_BY_SOURCE = "source, position"


@dataclass(slots=True)
class Row:
    """One stored record; `own` is its own comparable version, empty when it has none."""

    row: int
    epoch: int
    version: str
    sub: int
    own: str
    op: str
    has_actor: bool
    record: Record
    body: bytes | None

    def tree(self) -> JsonObject | None:
        """The object, decoded again at each call."""
        return None if self.body is None else _decode_body(self.body)


class Spool:
    """A store that takes records and then returns them in order.

    Use as a context manager: leaving removes the file. Raises OSError when the disk is full.
    """

    def __init__(self, limits: ImportLimits) -> None:
        self._limits = limits
        self._folder = PrivateFolder()
        path = Path(self._folder.name) / "records.db"
        # Records may be read in a different thread from the adding one, but never in two at once.
        self.database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-16384"):
                self.database.execute(f"PRAGMA {pragma}")
            self.database.execute(_CREATE)
            self.database.execute(_CREATE_TOLD)
        except sqlite3.OperationalError as problem:
            self.close_after(problem)
        self._cipher = AESGCM(AESGCM.generate_key(bit_length=256))
        # Keyed, so that a digest reveals nothing about the value of a Secret.
        self._digest_key = os.urandom(_KEY_BYTES)
        self._waiting: list[tuple[object, ...]] = []
        self.count = 0
        self.subresources: set[tuple[str, str]] = set()
        # The resources and their subresources that records name: exported logs name none.
        self.patched: set[tuple[str, Part]] = set()
        # The resources, and the parts of them that some recorded patch names.
        self.order = ORDER_BY_REVISION
        self.is_coarse = False
        # Whether no request has a time between two seconds.

    @property
    def names_subresources(self) -> bool:
        """Whether any record names a subresource."""
        return bool(self.subresources)

    def __enter__(self) -> "Spool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close_after(problem)

    def close_after(self, problem: BaseException | None) -> None:
        """Remove the file after an error, if any. Raises OSError when the disk was full."""
        self.close()
        if isinstance(problem, sqlite3.OperationalError):
            # The file is new and used by nobody else: only the disk can be at fault.
            raise OSError(errno.ENOSPC, str(problem), self._folder.name) from problem

    def close(self) -> None:
        """Remove the file; nothing can be read afterwards."""
        self.database.close()
        self._folder.cleanup()

    def add(self, record: Record) -> bool:
        """Store one record; False for a request that is stored already.

        A request has one audit ID. A second record with the same ID and response is the same line
        of a log, read again from an overlapping or duplicate file. When its times are others, the
        earliest are kept, marked as contradicting: a line cannot arrive before its request; but
        a client may send one ID twice (`_is_of_another_request`). Raises BoundReached when a bound
        is reached.
        """
        tree = record.object
        if record.subresource:
            self.subresources.add((record.resource, record.subresource))
        if record.sent is not None:
            self.patched.update((record.resource, part) for part in parts_of(record.sent))
        body = None if tree is None else self._encode_body(tree, record)
        if record.request_id and not self._is_first(record, body):
            return False
        self.count += 1
        if self.count > self._limits.records_max:
            raise BoundReached(
                f"more than {self._limits.records_max} records",
                place=record.place,
                cure="split the import or raise records_max",
            )
        self._waiting.append((self.count, *self._columns(record, body)))
        if len(self._waiting) >= _BATCH:
            self.flush()
        return True

    def put(self, record: Record) -> None:
        """Store a record that was derived from others; it does not count as read."""
        body = None if record.object is None else self._encode_body(record.object, record)
        self.database.execute(_INSERT, (None, *self._columns(record, body)))

    def _columns(self, record: Record, body: bytes | None) -> tuple[object, ...]:
        epoch, version, sub, source, position = record.order_key
        tree = record.object
        bare = msgspec.structs.replace(record, object=None) if tree is not None else record
        if body is not None and secret_values.is_secret(record.key):
            body = self._hidden(body)
        return (
            epoch,
            version,
            sub,
            source,
            position,
            "\0".join(record.key),
            record.uid,
            comparable_version(record.resource_version) if sub == 0 else "",
            record.op.value,
            record.actor is not None,
            record.observed_at,
            record.time_quality is TimeQuality.EXACT,
            "" if record.actor is None else record.actor.user,
            record.account,
            record.asked_at,
            times.creation(tree or {}) if record.op is Op.ADDED else None,
            self.column_of(bare),
            body,
        )

    def _is_first(self, record: Record, body: bytes | None) -> bool:
        """False if an equal record of the same request is stored, from any position."""
        without_place = msgspec.structs.replace(
            record,
            object=None,
            source="",
            position="",
            order_key=(0, "", 0, 0, 0),
            observed_at=None,
            asked_at=None,
        )
        digest = hashlib.blake2b(
            _head_encoder.encode(without_place), digest_size=_DIGEST_BYTES, key=self._digest_key
        )
        digest.update(body or b"")
        # One transaction for a batch: alone, each digest would be written and locked for.
        if not self.database.in_transaction:
            self.database.execute("BEGIN")
        values = (digest.digest(), self.count + 1, record.observed_at)
        if self.database.execute(_REMEMBER, values).rowcount:
            return True
        row, time = self.database.execute(_TOLD, values[:1]).fetchone()
        if time == record.observed_at:
            return False
        self.flush()
        if _is_of_another_request(self.row(row).record, record):
            digest.update(f"{record.asked_at} {record.observed_at}".encode())
            self.database.execute("BEGIN")
            again = (digest.digest(), *values[1:])
            return self.database.execute(_REMEMBER, again).rowcount > 0
        self._keep_the_earlier(row, time, record, values[0], body)
        return False

    def _keep_the_earlier(
        self, number: int, time: int | None, record: Record, digest: bytes, body: bytes | None
    ) -> None:
        """Keep the earlier of two records of one request, in the row of the first, and mark it."""
        row = self.row(number)
        if time is None or (record.observed_at is not None and record.observed_at < time):
            row.record, row.body = record, body
            self.database.execute(_REMEMBER_EARLIER, (record.observed_at, digest))
        losses = join_losses(row.record.losses, (Loss.TIMES_CONTRADICT,))
        record = msgspec.structs.replace(row.record, losses=losses)
        self._put_in_place(number, record, row.body)

    def flush(self) -> None:
        """Write the waiting records, and end their transaction."""
        if self._waiting:
            if not self.database.in_transaction:
                self.database.execute("BEGIN")
            self.database.executemany(_INSERT, self._waiting)
            self._waiting.clear()
        if self.database.in_transaction:
            self.database.execute("COMMIT")

    def shown(self, keys: Collection[ObjectKey]) -> dict[ObjectKey, tuple[int, bool]]:
        """The last row with an object of each given key that has one.

        The flag is true when each such row of the key says that the object was added.
        """
        rows = self._of_keys(
            "SELECT key, max(row), min(op = 'ADDED') FROM record NATURAL JOIN wanted "
            "WHERE body IS NOT NULL GROUP BY key",
            keys,
        )
        return {key_of(text): (row, bool(is_new)) for text, row, is_new in rows}

    def rows_of_keys(self, keys: Collection[ObjectKey]) -> Iterator[Row]:
        """All records of the keys, in no order."""
        columns = _SELECT.replace(" record", " record NATURAL JOIN wanted")
        yield from map(self._row, self._of_keys(columns, keys))

    def _of_keys(self, query: str, keys: Collection[ObjectKey]) -> list[tuple[Any, ...]]:
        self.flush()
        self.database.execute("CREATE TEMP TABLE wanted (key TEXT PRIMARY KEY)")
        self.database.executemany(
            "INSERT INTO wanted VALUES (?)", (("\0".join(key),) for key in keys)
        )
        rows = self.database.execute(query).fetchall()
        self.database.execute("DROP TABLE wanted")
        return rows

    def keys(self) -> Iterator[ObjectKey]:
        """The keys of all stored records with an object."""
        self.flush()
        rows = self.database.execute("SELECT DISTINCT key FROM record WHERE body IS NOT NULL")
        yield from (key_of(text) for (text,) in rows)

    def trees(self, group: str, resource: str) -> Iterator[JsonObject]:
        """The stored objects of a resource, in all their states."""
        self.flush()
        kind = f"{group}\0{resource}"
        rows = self.database.execute(
            "SELECT body FROM record WHERE body IS NOT NULL AND key > ? AND key < ?",
            (f"{kind}\0", f"{kind}\1"),
        )
        yield from (_decode_body(self._shown(body)) for (body,) in rows)

    def replace(self, row: Row, record: Record) -> None:
        """Store another record of the same object in the place of one."""
        tree = record.object or {}
        self._put_in_place(row.row, record, self._encode_body(tree, record))

    def _put_in_place(self, number: int, record: Record, body: bytes | None) -> None:
        self.database.execute("DELETE FROM record WHERE row = ?", (number,))
        self.database.execute(_INSERT, (number, *self._columns(record, body)))

    def index(self) -> None:
        """Create the index by key. Call this after the last `add`."""
        self.flush()
        self.database.execute("CREATE INDEX by_key ON record (key, own)")

    def rows(self) -> Iterator[Row]:
        """All records in order."""
        cursor = self.database.cursor()
        cursor.arraysize = 1_000
        cursor.execute(f"{_SELECT}ORDER BY {self.order}")
        while page := cursor.fetchmany():
            yield from map(self._row, page)

    def rows_of(self, group: str, resource: str) -> Iterator[Row]:
        """The records of a resource that have an object, those of each object by version."""
        kind = f"{group}\0{resource}"
        cursor = self.database.execute(
            f"{_SELECT}WHERE body IS NOT NULL AND key > ? AND key < ? ORDER BY key, {self.order}",
            (f"{kind}\0", f"{kind}\1"),
        )
        yield from map(self._row, cursor)

    def row(self, number: int) -> Row:
        """One stored record, by its row number."""
        return self._row(self.database.execute(f"{_SELECT}WHERE row = ?", (number,)).fetchone())

    def _row(self, columns: tuple[Any, ...]) -> Row:
        row, epoch, version, sub, own, op, actor, head, body = columns
        body = None if body is None else self._shown(body)
        return Row(row, epoch, version, sub, own, op, bool(actor), self.record_in(head), body)

    def tree(self, row: int) -> JsonObject | None:
        """The object of one stored record."""
        row_found = self.database.execute(
            "SELECT body FROM record WHERE row = ?", (row,)
        ).fetchone()
        return None if row_found is None else self.tree_in(row_found[0])

    def record_in(self, head: bytes) -> Record:
        """The record in a `head` column."""
        return _head_decoder.decode(self._shown(head))

    def tree_in(self, body: bytes | None) -> JsonObject | None:
        """The object in a `body` column; None without one."""
        return None if body is None else _decode_body(self._shown(body))

    def column_of(self, record: Record) -> bytes:
        """A record as a `head` column."""
        head = _head_encoder.encode(record)
        return self._hidden(head) if secret_values.is_secret(record.key) else head

    def _hidden(self, content: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return _HIDDEN + nonce + self._cipher.encrypt(nonce, content, None)

    def _shown(self, content: bytes) -> bytes:
        if not content.startswith(_HIDDEN):
            return content
        begin = len(_HIDDEN) + _NONCE_BYTES
        return self._cipher.decrypt(content[len(_HIDDEN) : begin], content[begin:], None)

    def times(self) -> Iterator[tuple[int | None, bool]]:
        """The time of each record, in order, and whether it is exact."""
        cursor = self.database.execute(_SELECT_TIMES + self.order)
        for time, exact in cursor:
            yield time, bool(exact)

    def requests(self) -> Iterator[tuple[int | None, int | None]]:
        """The times at which each request came and was answered; None if no version places it."""
        yield from self.database.execute(_SELECT_REQUESTS + self.order)

    def creations(self) -> Iterator[tuple[str, int | None]]:
        """The key of each record, in order, and when its object was created, if it shows that."""
        yield from self.database.execute(_SELECT_CREATIONS + self.order)

    def _encode_body(self, tree: JsonObject, record: Record) -> bytes:
        try:
            body = _body_encoder.encode(tree)
        except OverflowError:
            body = _body_encoder.encode(json_text.fit_integers(tree))
        if len(body) > self._limits.object_bytes_max:
            raise BoundReached(
                f"the {record.kind} {record.name!r} takes {len(body)} bytes, more than "
                f"{self._limits.object_bytes_max}",
                place=record.place,
                cure="raise object_bytes_max",
            )
        return body


def key_of(text: str) -> ObjectKey:
    """The key in the text form of a row."""
    return ObjectKey(*text.split("\0"))


def replace_times(rows: Iterable[tuple[int | None, bool]]) -> list[Instant | None]:
    """Instants that never decrease along the order, as close as possible to the recorded times.

    An exact time is that of a response: the change precedes it, and also precedes the responses to
    all later changes. So an exact time is lowered to the least exact time that follows; a derived
    time is raised to the previous instant. Example: exact 5, exact 3, derived 1 → 3, 3, 3.
    """
    times = list(rows)
    settled: list[Instant | None] = [None] * len(times)
    least: int | None = None
    for index in range(len(times) - 1, -1, -1):
        time, exact = times[index]
        if exact and time is not None:
            least = time if least is None else min(least, time)
            settled[index] = Instant(least)
        elif time is not None:
            settled[index] = Instant(time if least is None else min(time, least))
    newest: int | None = None
    for index, settled_time in enumerate(settled):
        if settled_time is not None and (newest is None or settled_time > newest):
            newest = settled_time
        settled[index] = None if newest is None else Instant(newest)
    return settled


def _decode_body(body: bytes) -> JsonObject:
    tree: JsonObject = _body_decoder.decode(body)
    return tree


def _is_of_another_request(first: Record, record: Record) -> bool:
    """True for a request that changed nothing, beside one with the same ID and answer.

    A client sends the ID, and may send it again: then the one is asked after the other is answered,
    and they do not take equally long. A copy whose times were moved takes as long as its line.
    """
    may_repeat = record.op in (Op.MODIFIED, Op.CONTEXT) and record.effect is None
    begin, end = first.asked_at, first.observed_at
    again, end_again = record.asked_at, record.observed_at
    if begin is None or end is None or again is None or end_again is None:
        return False
    is_apart = end <= again or end_again <= begin
    return may_repeat and is_apart and end - begin != end_again - again
