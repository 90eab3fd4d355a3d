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


@dataclass(slots=True, kw_only=True)
class Lease:
    """A lease: its token with holder and epoch, and its end."""

    token: LeaseToken
    until: Instant


@dataclass(slots=True, kw_only=True)
class History:
    """One history: its events by revision and by key, and the greatest time up to each event."""

    info: HistoryInfo
    head: Head = Head()
    events: list[Event] = field(default_factory=list)
    clocks: list[Instant] = field(default_factory=list)
    by_key: dict[ObjectKey, list[Event]] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    signed: dict[tuple[Revision, str], SignedHead] = field(default_factory=dict)

    def inherit(self, parent: "History", until: Revision) -> None:
        """Copy the events of another history up to a revision, as the beginning of this one."""
        self.events = parent.events[:until]
        self.clocks = parent.clocks[:until]
        for event in self.events:
            self.by_key.setdefault(event.key, []).append(event)


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
