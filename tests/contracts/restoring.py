"""A restore of an older copy of a history in memory."""

from app.adapters.memory.store import History
from app.domain.log import Head


def restore_older(history: History, keep: int) -> None:
    """Take a history back to its first `keep` events."""
    kept = list(zip(history.events[:keep], history.clocks[:keep], strict=True))
    for each in (history.events, history.clocks, history.by_key, history.keys):
        each.clear()
    for event, clock in kept:
        history.add(event, clock)
    last, clock = kept[-1]
    history.head = Head(revision=last.revision, hash=last.hash, time=clock)
