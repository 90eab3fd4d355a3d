"""Kept states of views, each with the hash of the last event it was folded from.

A database may be restored, or another copy of it may take over. A state that was folded from events
which are no longer in the log must not be used as a start. The hash chain detects this: the event
at the state's revision has the same hash only if all events up to it are the same.
"""

from app.domain.log import HistoryId, HistoryInfo, Revision
from app.ports import EventLog, ViewStore

_MARK = b"\xc1"
"""The first byte of a state that is kept with a hash; no MessagePack state begins with it."""

_HASH_BYTES = 32


async def keep(
    store: ViewStore,
    history: HistoryId,
    view: tuple[str, int],
    revision: Revision,
    hash: bytes,
    state: bytes,
) -> None:
    """Keep the state of a view (name, version) whose last folded event has this hash."""
    await store.save_snapshot(history, *view, revision, _MARK + hash + state)


async def load(
    store: ViewStore, log: EventLog, history: HistoryId, view: tuple[str, int], *, until: Revision
) -> tuple[Revision, bytes, bytes] | None:
    """The newest kept state that is not after `until`, if it was folded from this log.

    Returns its revision, the hash there, and the state. None when there is no such state: also when
    the newest one is of another log, because older ones are seldom of use.
    """
    stored = await store.load_snapshot(history, *view, until=until)
    if stored is None:
        return None
    revision, kept = stored
    parts = parts_of(kept)
    if parts is None:
        return None
    last, state = parts
    events = await log.read(history, after=Revision(revision - 1), limit=1, until=revision)
    if not events or events[0].hash != last:
        return None
    return revision, last, state


async def load_of_line(
    store: ViewStore, log: EventLog, info: HistoryInfo, view: tuple[str, int], *, until: Revision
) -> tuple[Revision, bytes, bytes] | None:
    """Like `load`; for a fork without a state, the state of a history that it continues."""
    loaded = await load(store, log, info.id, view, until=until)
    while loaded is None and info.is_fork:
        until = min(until, info.parent_revision)
        info = next(each for each in await log.histories() if each.id == info.parent)
        loaded = await load(store, log, info.id, view, until=until)
    return loaded


def parts_of(kept: bytes) -> tuple[bytes, bytes] | None:
    """Split a kept value into hash and state; None for values that an older program kept."""
    last = kept[1 : 1 + _HASH_BYTES]
    if kept[:1] != _MARK or len(last) < _HASH_BYTES:
        return None
    return last, kept[1 + _HASH_BYTES :]
