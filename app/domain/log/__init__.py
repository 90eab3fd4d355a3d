"""The event of the log, and the hash chain over events.

Belongs here: the event, its stamp and key, canonical bytes, the hash chain, upcasting of older
formats. Does not belong here: where events are kept (adapters) and what they mean to a view
(projections). All of the domain above `values` may import it.
"""

from app.domain.log.event import (
    CLOCKS,
    DECISION,
    REPLAYS,
    Actor,
    ChainStart,
    Draft,
    Event,
    EventType,
    Head,
    HistoryId,
    HistoryInfo,
    LeaseToken,
    ObjectKey,
    Origin,
    Revision,
    Stamp,
    Tombstone,
)

__all__ = [
    "CLOCKS",
    "DECISION",
    "REPLAYS",
    "Actor",
    "ChainStart",
    "Draft",
    "Event",
    "EventType",
    "Head",
    "HistoryId",
    "HistoryInfo",
    "LeaseToken",
    "ObjectKey",
    "Origin",
    "Revision",
    "Stamp",
    "Tombstone",
]
