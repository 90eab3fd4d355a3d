"""The event log in memory."""

from bisect import bisect_right
from collections.abc import Callable, Sequence

import msgspec
from anyio import lowlevel

from app.adapters.memory.store import History, MemoryStore
from app.domain.errors import AlreadyExists, ChainBroken, HeadMoved, StaleLease
from app.domain.log import (
    ChainStart,
    Event,
    EventType,
    Head,
    HistoryId,
    HistoryInfo,
    LeaseToken,
    ObjectKey,
    Revision,
    Tombstone,
)
from app.domain.log.event import GENESIS, UNFINISHED, KeyFilter, LoggedChange
from app.domain.log.forks import has_forks
from app.domain.log.heads import SignedHead
from app.domain.log.upcasting import StoredRow, to_stored
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_LOOKED_AT_ONCE = 2_000
"""Keys that are looked at before the loop runs other tasks: most objects may be long gone."""


class MemoryLog:
    """An EventLog. It calls `grown` with the history and its revision after each append."""

    def __init__(
        self, store: MemoryStore, grown: Callable[[HistoryId, Revision], None] | None = None
    ) -> None:
        self._store = store
        self._grown = grown

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
        if name in self._store.by_name:
            raise _name_taken(name)
        if parent is not None:
            self._store.history(parent)
        info = HistoryInfo(
            id=self._next_id(),
            name=name,
            seed=seed,
            settings=settings,
            created=created,
            parent=parent,
            parent_revision=parent_revision,
            beginning=beginning,
        )
        history = History(info=info, head=Head(hash=hash))
        self._store.by_id[info.id] = self._store.by_name[name] = history
        return info

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
        info = await self.create_history(
            name,
            seed=seed,
            settings=settings,
            created=created,
            parent=parent.id,
            parent_revision=end.revision,
            hash=end.hash,
            beginning=parent.begun,
        )
        fork = self._store.history(info.id)
        base = self._store.history(parent.id)
        fork.info = msgspec.structs.replace(info, is_fork=True)
        fork.head = end
        fork.inherit(base, end.revision)
        return fork.info

    async def histories(self) -> list[HistoryInfo]:
        """All histories, sorted by name, except those that are still being created."""
        by_name = self._store.by_name
        return [by_name[name].info for name in sorted(by_name) if not name.startswith(UNFINISHED)]

    async def unfinished(self) -> list[HistoryInfo]:
        """The histories that are still being created."""
        by_name = self._store.by_name
        return [by_name[name].info for name in sorted(by_name) if name.startswith(UNFINISHED)]

    async def rename_history(self, history: HistoryId, name: str) -> None:
        """Rename a history. Raises AlreadyExists, NotFound."""
        renamed = self._store.history(history)
        other = self._store.by_name.get(name)
        if other is not None and other is not renamed:
            raise _name_taken(name)
        del self._store.by_name[renamed.info.name]
        renamed.info = msgspec.structs.replace(renamed.info, name=name)
        self._store.by_name[name] = renamed

    async def delete_history(self, history: HistoryId, *, at: Instant, by: str) -> Tombstone:
        """Delete a history. Raises NotFound, Conflict."""
        deleted = self._store.history(history)
        forks = [
            other.info.name
            for other in self._store.by_id.values()
            if other.info.parent == history and other.info.is_fork
        ]
        if forks:
            raise has_forks(deleted.info.name, forks)
        info, head = deleted.info, deleted.head
        tombstone = Tombstone(
            name=info.name,
            seed=info.seed,
            settings=info.settings,
            created=info.created,
            revision=head.revision,
            hash=head.hash,
            time=head.time,
            deleted=at,
            deleted_by=by,
        )
        del self._store.by_name[info.name]
        del self._store.by_id[history]
        for other in self._store.by_id.values():
            if other.info.parent == history:
                other.info = msgspec.structs.replace(other.info, parent=None)
        self._store.tombstones.append(tombstone)
        return tombstone

    async def tombstones(self) -> list[Tombstone]:
        """The deleted histories in the order of deletion."""
        return [each for each in self._store.tombstones if not each.name.startswith(UNFINISHED)]

    def _next_id(self) -> HistoryId:
        self._store.last += 1
        return HistoryId(self._store.last)

    async def find_history(self, name: str) -> HistoryInfo | None:
        """The history with that name; None when there is none."""
        stored = self._store.by_name.get(name)
        return None if stored is None else stored.info

    async def head(self, history: HistoryId) -> Head:
        """The head of the history."""
        return self._store.history(history).head

    async def keep_heads(self, history: HistoryId, heads: Sequence[SignedHead]) -> None:
        """Store heads that were signed elsewhere."""
        kept = self._store.history(history).signed
        for head in heads:
            kept.setdefault((head.revision, head.key), head)

    async def kept_heads(self, history: HistoryId) -> list[SignedHead]:
        """The signed heads of a history, sorted by revision and key."""
        kept = self._store.history(history).signed
        return [kept[place] for place in sorted(kept)]

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        """Append all events or none; see the port. Raises HeadMoved, StaleLease, ChainBroken."""
        stored = self._store.history(history)
        head = stored.head
        if head.revision != expected.revision:
            raise HeadMoved(expected.revision, head.revision)
        if head.hash != expected.hash:
            raise ChainBroken(head.revision, "the log has another event than this program read")
        for token in leases:
            lease = stored.leases.get(token.name)
            if lease is None or lease.token.epoch != token.epoch:
                raise StaleLease(token.name, token.epoch)
        if not events:
            return head
        first = expected.revision + 1
        assert all(event.revision == first + place for place, event in enumerate(events))
        clock = head.time
        for event in events:
            clock = max(clock, event.stamp.time)
            stored.add(event, clock)
        last = events[-1]
        stored.head = Head(revision=last.revision, epoch=head.epoch, hash=last.hash, time=clock)
        if self._grown is not None:
            self._grown(history, last.revision)
        return stored.head

    async def read(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[Event]:
        """Events above `after`, in order."""
        events = self._store.history(history).events
        end = len(events) if until is None else min(until, len(events))
        return events[after : min(after + limit, end)]

    async def changes(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[LoggedChange]:
        """The same without their content."""
        events = await self.read(history, after=after, limit=limit, until=until)
        return [LoggedChange(event.revision, event.type, event.key, event.uid) for event in events]

    async def read_stored(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[StoredRow]:
        """The events above `after` in the form in which a database stores them, in order."""
        clocks = self._store.history(history).clocks
        first = Revision(max(after, 0))
        events = await self.read(history, after=first, limit=limit, until=until)
        return [
            StoredRow(event=to_stored(event), time=event.stamp.time, clock=clocks[place])
            for place, event in enumerate(events, start=first)
        ]

    async def read_object(
        self, history: HistoryId, *keys: ObjectKey, until: Revision, limit: int
    ) -> list[Event]:
        """The newest events of each key, newest first."""
        newest: list[Event] = []
        for key in keys:
            events = self._store.history(history).by_key.get(key, [])
            end = bisect_right(events, until, key=_revision)
            newest += events[max(0, end - limit) : end][::-1]
        return newest

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
        last: dict[ObjectKey, Revision] = {}
        for key, events in self._store.history(history).by_key.items():
            end = bisect_right(events, until, key=_revision)
            if wanted.about:
                is_wanted = key.resource == "events" and any(
                    _warns_about(event, wanted.about) for event in events[:end]
                )
            else:
                is_wanted = wanted.takes(key)
            if end and is_wanted:
                last[key] = events[end - 1].revision
        order = sorted(last, key=lambda key: -last[key]) if newest_first else sorted(last)
        return order[:limit]

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
        stored = self._store.history(history)
        events: list[Event] = []
        for kind in sorted(stored.keys):
            if group not in (None, kind[0]) or resource not in (None, kind[1]):
                continue
            if after is not None and kind < after[:2]:
                continue
            # A copy, because others may append in between.
            keys = list(stored.keys[kind].all())
            # A page does not look at the keys of the pages before it.
            for place in range(0 if after is None else bisect_right(keys, after), len(keys)):
                if place % _LOOKED_AT_ONCE == _LOOKED_AT_ONCE - 1:
                    await lowlevel.checkpoint()
                last = _last_about_object(stored.by_key[keys[place]], revision)
                if last is not None and last.type is not EventType.OBJECT_DELETED:
                    events.append(last)
                    if len(events) == limit:
                        return events
        return events

    async def creations(self, history: HistoryId, last: Sequence[Event]) -> list[Revision]:
        """The revision at which the life of each object began that has one of these events."""
        by_key = self._store.history(history).by_key
        return [_creation(by_key[event.key], event) for event in last]

    async def revision_at(self, history: HistoryId, instant: Instant) -> Revision:
        """The last revision at which the cluster clock was at or before `instant`."""
        return Revision(bisect_right(self._store.history(history).clocks, instant))


def _name_taken(name: str) -> AlreadyExists:
    return AlreadyExists(f'histories "{name}" already exists', resource="histories", name=name)


def _revision(event: Event) -> Revision:
    return event.revision


def _warns_about(event: Event, name: str) -> bool:
    """Whether an event creates an Event object that warns about an object of a name."""
    if event.type is not EventType.OBJECT_CREATED or b'"Warning"' not in event.body:
        return False
    body = core.event_object(event.object)
    return (body.involved_object.name or body.regarding.name) == name


def _last_about_object(events: list[Event], revision: Revision) -> Event | None:
    last = events[-1]
    # Most events are older than the moments that people ask for.
    if last.revision <= revision and last.is_about_object:
        return last
    for event in reversed(events[: bisect_right(events, revision, key=_revision)]):
        if event.is_about_object:
            return event
    return None


def _creation(events: list[Event], last: Event) -> Revision:
    first = last.revision
    for event in reversed(events[: bisect_right(events, first, key=_revision)]):
        if event.type is EventType.OBJECT_DELETED:
            break
        if event.is_about_object:
            if event.uid != last.uid:
                break
            first = event.revision
    return first
