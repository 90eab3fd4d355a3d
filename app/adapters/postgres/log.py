"""The event log in PostgreSQL."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NoReturn, TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from app.adapters.postgres import columns, deletion, statements
from app.adapters.postgres import rows as rows_of
from app.adapters.postgres.database import Database
from app.adapters.postgres.names import channel
from app.adapters.postgres.problems import KEPT_OUT, no_history, of_history
from app.adapters.postgres.statements import Range
from app.domain.errors import AlreadyExists, ChainBroken, HeadMoved, LogUnavailable, StaleLease
from app.domain.log import (
    Event,
    Head,
    HistoryId,
    HistoryInfo,
    LeaseToken,
    ObjectKey,
    Revision,
    Tombstone,
)
from app.domain.log.chain import canonical_json
from app.domain.log.event import FORMAT_VERSION, GENESIS, ChainStart, KeyFilter, LoggedChange
from app.domain.log.heads import SignedHead
from app.domain.log.upcasting import StoredRow
from app.domain.values import timestamps
from app.domain.values.bounded import Bounded
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

COPY_MIN = 256
"""From this many events on, COPY in a transaction is faster than one statement with arrays."""

_COPY_COLUMNS = (
    "history", "revision", "time", "clock", "type", "group", "resource", "namespace", "name", "uid",
    "stamp", "object", "format", "hash",
)  # fmt: skip

_FIRST_KEY = ObjectKey("", "", "", "")
_LAST_REVISION = Revision((1 << 63) - 1)
_LAST_CHARACTER = "\U0010ffff"
"""Comes after each character of a name, as the database sorts them: by their bytes."""

LINES_MAX = 4_096
"""Histories whose line (the histories with whose events they begin) is cached."""

_Row: TypeAlias = tuple[object, ...]


class PostgresLog:
    """An EventLog in a database that `open_database` has checked."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lines: Bounded[HistoryId, Sequence[Range]] = Bounded(LINES_MAX)
        self._created: Bounded[HistoryId, Instant] = Bounded(LINES_MAX)

    async def create_history(
        self,
        name: str,
        *,
        seed: int,
        settings: JsonObject,
        created: Instant,
        parent: HistoryId | None = None,
        parent_revision: Revision = Revision(0),
        hash: bytes = GENESIS,
        beginning: ChainStart | None = None,
    ) -> HistoryInfo:
        """Create an empty history. Raises AlreadyExists; NotFound for an unknown parent."""
        async with self._database.connection() as connection:
            with of_history(HistoryId(parent or 0)):
                history = await connection.fetchval(
                    statements.CREATE_HISTORY,
                    name,
                    Decimal(seed),
                    canonical_json(settings),
                    timestamps.to_datetime(created),
                    parent,
                    parent_revision,
                    hash,
                    None if beginning is None else canonical_json(beginning),
                )
        if history is None:
            raise _name_taken(name)
        self._lines.pop(HistoryId(history), None)
        return HistoryInfo(
            id=HistoryId(history),
            name=name,
            seed=seed,
            settings=settings,
            created=created,
            parent=parent,
            parent_revision=parent_revision,
            beginning=beginning,
        )

    async def fork_history(
        self,
        name: str,
        *,
        parent: HistoryInfo,
        end: Head,
        seed: int,
        settings: JsonObject,
        created: Instant,
    ) -> HistoryInfo:
        """Create a history that continues after an event of another one; see the port."""
        async with self._database.connection() as connection:
            with of_history(parent.id):
                history = await connection.fetchval(
                    statements.FORK_HISTORY,
                    name,
                    Decimal(seed),
                    canonical_json(settings),
                    timestamps.to_datetime(created),
                    parent.id,
                    end.revision,
                    end.hash,
                    timestamps.to_datetime(end.time),
                    canonical_json(parent.begun),
                )
        if history is None:
            raise _name_taken(name)
        self._lines.pop(HistoryId(history), None)
        return HistoryInfo(
            id=HistoryId(history),
            name=name,
            seed=seed,
            settings=settings,
            created=created,
            parent=parent.id,
            parent_revision=end.revision,
            beginning=parent.begun,
            is_fork=True,
        )

    async def histories(self) -> list[HistoryInfo]:
        """All histories, sorted by name, except those that are still being created."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(statements.HISTORIES)
        return [self._noted(rows_of.history_info(row)) for row in rows]

    async def unfinished(self) -> list[HistoryInfo]:
        """The histories that are still being created."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(statements.UNFINISHED)
        return [rows_of.history_info(row) for row in rows]

    async def rename_history(self, history: HistoryId, name: str) -> None:
        """Rename a history. Raises AlreadyExists, NotFound."""
        async with self._database.transaction() as connection:
            await connection.execute(statements.HOLD_NAMES, history, name)
            try:
                renamed = await connection.fetchval(statements.RENAME, history, name)
            except asyncpg.UniqueViolationError as problem:
                raise _name_taken(name) from problem
        if renamed is None:
            raise no_history(history)

    async def delete_history(self, history: HistoryId, *, at: Instant, by: str) -> Tombstone:
        """Delete a history and all that belongs to it; see the port. Raises NotFound, Conflict."""
        return await deletion.delete(self._database, history, at=at, by=by)

    async def tombstones(self) -> list[Tombstone]:
        """The deleted histories in the order of deletion."""
        async with self._database.connection() as connection:
            return [rows_of.tombstone(row) for row in await connection.fetch(statements.TOMBSTONES)]

    async def find_history(self, name: str) -> HistoryInfo | None:
        """The history with that name; None when there is none."""
        async with self._database.connection() as connection:
            row = await connection.fetchrow(statements.HISTORY_BY_NAME, name)
        return None if row is None else self._noted(rows_of.history_info(row))

    def _noted(self, info: HistoryInfo) -> HistoryInfo:
        """The same history. A restored database gives numbers again: a former line is forgotten."""
        if self._created.get(info.id) != info.created:
            self._lines.pop(info.id, None)
            self._created[info.id] = info.created
        return info

    async def head(self, history: HistoryId) -> Head:
        """The committed head of the history."""
        async with self._database.connection() as connection:
            return await _head(connection, history)

    async def keep_heads(self, history: HistoryId, heads: Sequence[SignedHead]) -> None:
        """Store heads that were signed elsewhere, in one order: each waits for one like it."""
        ordered = sorted(heads, key=lambda head: (head.revision, head.key))
        rows = [(history, one.revision, one.key, canonical_json(one.to_json())) for one in ordered]
        async with self._database.connection() as connection:
            with of_history(history):
                await connection.executemany(statements.KEEP_HEAD, rows)

    async def kept_heads(self, history: HistoryId) -> list[SignedHead]:
        """The signed heads of a history, sorted by revision and key."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(statements.KEPT_HEADS, history)
        return rows_of.signed_heads(rows)

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        """Append all events or none; see the port. Raises HeadMoved, StaleLease, ChainBroken."""
        if not events:
            return await self._check_head(history, expected, leases)
        first = expected.revision + 1
        assert all(event.revision == first + place for place, event in enumerate(events))
        assert all(event.format == FORMAT_VERSION for event in events)
        clock = max(expected.time, max(event.stamp.time for event in events))
        advance = (
            history,
            expected.revision,
            expected.hash,
            events[-1].revision,
            events[-1].hash,
            timestamps.to_datetime(clock),
            [lease.name for lease in leases],
            [lease.epoch for lease in leases],
        )
        async with self._database.connection() as connection:
            fixed = (FORMAT_VERSION, channel(history))
            if len(events) == 1:
                (given,) = columns.of_events(events, expected.time)
                row = await connection.fetchrow(statements.APPEND_ONE, *advance, *given, *fixed)
            elif len(events) < COPY_MIN and (
                joined := columns.joined_events(events, expected.time)
            ):
                row = await connection.fetchrow(statements.APPEND, *advance, *joined, *fixed)
            else:
                rows = columns.of_events(events, expected.time)
                row = await _copy(connection, history, advance, rows)
            if row is None:
                await _refuse(connection, history, expected, leases)
        return rows_of.head_of(row)

    async def read(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[Event]:
        """Events above `after`, in order."""
        rows = await self._read(statements.READ, history, after, limit, until)
        return [rows_of.event(row) for row in rows]

    async def changes(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[LoggedChange]:
        """The same without their content."""
        rows = await self._read(statements.CHANGES, history, after, limit, until)
        if all(row["format"] == FORMAT_VERSION for row in rows):
            return [rows_of.change(row) for row in rows]
        events = await self.read(history, after=after, limit=limit, until=until)
        return [LoggedChange(event.revision, event.type, event.key, event.uid) for event in events]

    async def read_stored(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[StoredRow]:
        """The events above `after` in their stored form, in order."""
        if until == 0:  # where nothing stands, unless the tables were altered
            async with self._database.connection() as connection:
                own = (await self._line(connection, history))[-1]
                place = (own.history, after, own.after, limit)
                rows = await connection.fetch(statements.READ_STORED, *place)
        else:
            rows = await self._read(statements.READ_STORED, history, after, limit, until)
        return [rows_of.stored_row(row) for row in rows]

    async def read_object(
        self, history: HistoryId, *keys: ObjectKey, until: Revision, limit: int
    ) -> list[Event]:
        """The newest events of each key, newest first."""
        events: dict[ObjectKey, list[Event]] = {key: [] for key in keys}
        async with self._database.connection() as connection:
            for part in reversed(await self._line(connection, history)):
                wanted = [*zip(*(key for key in keys if len(events[key]) < limit), strict=True)]
                if wanted and until > part.after:
                    arguments = (part.history, *wanted, min(until, part.until), limit)
                    for row in await connection.fetch(statements.READ_OBJECTS, *arguments):
                        event = rows_of.event(row)
                        events[event.key].append(event)
        return [event for key in keys for event in events[key][:limit]]

    async def keys(
        self,
        history: HistoryId,
        wanted: KeyFilter,
        *,
        until: Revision,
        limit: int,
        newest_first: bool = False,
    ) -> list[ObjectKey]:
        """The first wanted keys, sorted, or those with the latest events."""
        async with self._database.connection() as connection:
            line = await self._line(connection, history)
            if wanted.about:
                most, about = None if newest_first else limit, wanted.about
                given = [(part.history, min(until, part.until), most, about) for part in line]
                statement = statements.WARNINGS
                rows = [row for one in given for row in await connection.fetch(statement, *one)]
                return rows_of.keys(rows, newest_first=newest_first)[:limit]
            name = wanted.name or wanted.prefix
            last = wanted.name or wanted.prefix + _LAST_CHARACTER
            kind = (limit, wanted.group, wanted.resource, name, last, wanted.prefix)
            place = (wanted.namespace,) if wanted.namespace else ()
            spans = statements.KEY_SPANS if newest_first and not name else ()
            keys: list[ObjectKey] = []
            for statement, after, ends_if_few in statements.ways_to_keys(
                *(bool(place), newest_first, [limit * span for span in spans], until)
            ):
                of = [(part.history, min(until, part.until), *kind, after, *place) for part in line]
                rows = [row for one in of for row in await connection.fetch(statement, *one)]
                keys = rows_of.keys(rows, newest_first=newest_first)[:limit]
                if (len(keys) < limit) is ends_if_few:
                    break
        return keys

    async def objects_at(
        self,
        history: HistoryId,
        revision: Revision,
        *,
        group: str | None = None,
        resource: str | None = None,
        after: ObjectKey | None = None,
        limit: int,
    ) -> list[Event]:
        """The last event of each object that existed at `revision`, sorted by key."""
        by = {"by_group": group is not None, "by_resource": resource is not None}
        kind = [name for name in (group, resource) if name is not None]
        arguments = (*(after or _FIRST_KEY), limit, *kind)
        async with self._database.connection() as connection:
            line = await self._line(connection, history)
            parts = [part for part in line if part.after < revision]
            if len(parts) > 1:
                statement = statements.objects_of_line(parts, **by)
                rows = await connection.fetch(statement, revision, *arguments)
            else:
                history = parts[0].history if parts else history
                statement = statements.objects_at(**by)
                rows = await connection.fetch(statement, history, revision, *arguments)
        return [rows_of.event(row) for row in rows]

    async def creations(self, history: HistoryId, last: Sequence[Event]) -> list[Revision]:
        """The revision at which the life of each object began that has one of these events."""
        first = [event.revision for event in last]
        wanted = [(*event.key, event.uid, event.revision, n) for n, event in enumerate(last)]
        async with self._database.connection() as connection:
            for part in reversed(await self._line(connection, history)):
                arguments = (part.history, part.until, *zip(*wanted, strict=True))
                rows = await connection.fetch(statements.CREATIONS, *arguments) if wanted else []
                for row in rows:
                    first[row["place"]] = Revision(row["first"] or first[row["place"]])
                whole = {row["place"] for row in rows if row["is_whole"]}
                wanted = [each for each in wanted if each[-1] not in whole]
        return first

    async def revision_at(self, history: HistoryId, instant: Instant) -> Revision:
        """The last revision at which the cluster clock was at or before `instant`."""
        moment = timestamps.to_datetime(instant)
        async with self._database.connection() as connection:
            for part in reversed(await self._line(connection, history)):
                revision = await connection.fetchval(
                    statements.REVISION_AT, part.history, moment, part.after, part.until
                )
                if revision is None:
                    raise no_history(history)
                if revision > part.after:
                    return Revision(revision)
        return Revision(0)

    async def _read(
        self,
        statement: str,
        history: HistoryId,
        after: Revision,
        limit: int,
        until: Revision | None,
    ) -> list[asyncpg.Record]:
        """The rows above `after`, from the history and from those with whose events it begins."""
        last = _LAST_REVISION if until is None else until
        rows: list[asyncpg.Record] = []
        async with self._database.connection() as connection:
            for part in await self._line(connection, history):
                if part.until <= after or len(rows) >= limit:
                    continue
                if part.after and last <= part.after:
                    break
                rows += await connection.fetch(
                    statement,
                    part.history,
                    max(after, part.after) if part.after else after,
                    min(last, part.until),
                    limit - len(rows),
                )
        return rows

    async def _line(self, connection: PoolConnectionProxy, history: HistoryId) -> Sequence[Range]:
        """The parts of a history in order, each with the history that stores it; constant."""
        known = self._lines.get(history)
        if known is None:
            rows = await connection.fetch(statements.LINE, history)
            if not rows:
                return (Range(history, Revision(0), _LAST_REVISION),)
            known = self._lines[history] = rows_of.line(rows, _LAST_REVISION)
        return known

    async def _check_head(
        self, history: HistoryId, expected: Head, leases: Sequence[LeaseToken]
    ) -> Head:
        """Check the head and the leases, as an append without events does; return the head."""
        async with self._database.connection() as connection:
            head = await _head(connection, history)
            _check_same(expected, head)
            stale = await _stale_lease(connection, history, leases)
        if stale is not None:
            raise stale
        return head


async def _copy(
    connection: PoolConnectionProxy, history: HistoryId, advance: _Row, rows: list[_Row]
) -> asyncpg.Record | None:
    """Advance the head, then copy the rows; None, and no change, when the head cannot advance."""
    async with connection.transaction():
        head = await connection.fetchrow(statements.ADVANCE, *advance)
        if head is None:
            return None
        before = head["before"]
        first = head["revision"] - len(rows) + 1
        copied = await connection.copy_records_to_table(
            "log_events",
            columns=_COPY_COLUMNS,
            records=(
                (
                    *(history, first + place, row[0], max(row[1], before)),
                    *(*row[2:-1], FORMAT_VERSION, row[-1]),
                )
                for place, row in enumerate(rows)
            ),
        )
        if copied != f"COPY {len(rows)}":
            raise LogUnavailable(KEPT_OUT)
        await connection.execute(statements.NOTIFY, channel(history), str(head["revision"]))
        return head


async def _refuse(
    connection: PoolConnectionProxy,
    history: HistoryId,
    expected: Head,
    leases: Sequence[LeaseToken],
) -> NoReturn:
    """Find out why the append was refused, and raise the error."""
    stored = await _head(connection, history)
    _check_same(expected, stored)
    stale = await _stale_lease(connection, history, leases)
    if stale is not None:
        raise stale
    # The revision never comes back; a lease may have been released and acquired again meanwhile.
    raise HeadMoved(expected.revision, stored.revision)


def _check_same(expected: Head, stored: Head) -> None:
    if stored.revision != expected.revision:
        raise HeadMoved(expected.revision, stored.revision)
    if stored.hash != expected.hash:
        raise ChainBroken(stored.revision, "the log has another event than this program read")


async def _stale_lease(
    connection: PoolConnectionProxy, history: HistoryId, leases: Sequence[LeaseToken]
) -> StaleLease | None:
    if not leases:
        return None
    names = [lease.name for lease in leases]
    epochs = [lease.epoch for lease in leases]
    row = await connection.fetchrow(statements.STALE_LEASE, history, names, epochs)
    return None if row is None else StaleLease(row["name"], row["epoch"])


async def _head(connection: PoolConnectionProxy, history: HistoryId) -> Head:
    row = await connection.fetchrow(statements.HEAD, history)
    if row is None:
        raise no_history(history)
    return rows_of.head_of(row)


def _name_taken(name: str) -> AlreadyExists:
    return AlreadyExists(f'histories "{name}" already exists', resource="histories", name=name)
