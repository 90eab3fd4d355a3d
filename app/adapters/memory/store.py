"""The state that log and leases share: the histories, their events and their leases."""

from dataclasses import dataclass, field

from app.domain.errors import NotFound
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
from app.domain.log.heads import SignedHead
from app.domain.values.timestamps import Instant
from projections.sorted_keys import SortedKeys


@dataclass(slots=True, kw_only=True)
class Lease:
    """A lease: its token with holder and epoch, and its end."""

    token: LeaseToken
    until: Instant


@dataclass(slots=True, kw_only=True)
class History:
    """One history: its events by revision and by key, and the greatest time up to each event.

    `keys` has the keys of each group and resource, which are sorted when they are read.
    """

    info: HistoryInfo
    head: Head = Head()
    events: list[Event] = field(default_factory=list)
    clocks: list[Instant] = field(default_factory=list)
    by_key: dict[ObjectKey, list[Event]] = field(default_factory=dict)
    keys: dict[tuple[str, str], SortedKeys] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    signed: dict[tuple[Revision, str], SignedHead] = field(default_factory=dict)

    def add(self, event: Event, clock: Instant) -> None:
        """Add the next event; `clock` is the greatest time up to it."""
        self.events.append(event)
        self.clocks.append(clock)
        events = self.by_key.get(event.key)
        if events is None:
            events = self.by_key[event.key] = []
            self.keys.setdefault(event.key[:2], SortedKeys()).add(event.key)
        events.append(event)

    def inherit(self, parent: "History", until: Revision) -> None:
        """Copy the events of another history up to a revision, as the beginning of this one."""
        for event, clock in zip(parent.events[:until], parent.clocks[:until], strict=True):
            self.add(event, clock)


class MemoryStore:
    """The shared state; pass one store to all adapters that must see the same histories."""

    def __init__(self) -> None:
        self.by_id: dict[HistoryId, History] = {}
        self.by_name: dict[str, History] = {}
        self.tombstones: list[Tombstone] = []
        self.last = 0

    def history(self, history: HistoryId) -> History:
        """The history with that number. Raises NotFound."""
        stored = self.by_id.get(history)
        if stored is None:
            raise NotFound(f"history {history} not found", resource="histories", name=str(history))
        return stored
