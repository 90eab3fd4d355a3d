"""Kept states of views, each with the hash of the event that it was folded up to.

A database may be restored, or another copy of it may take over: a state that was folded from events
which are not in the log any more must not be taken for a beginning. The hash chain says so: the
event at the state's revision has the same hash only if all events up to there are the same.
"""

from app.domain.log import HistoryId, HistoryInfo, Revision
from app.ports import EventLog, ViewStore

_MARK = b"\xc1"
"""Begins a state that is kept with a hash; no MessagePack, which states are, begins so."""

_HASH_BYTES = 32


async def keep(
    store: ViewStore,
    history: HistoryId,
    view: tuple[str, int],
    revision: Revision,
    hash: bytes,
    state: bytes,
) -> None:
    """Keep the state of a view (name, version) that has folded the event of this hash last."""
    await store.save_snapshot(history, *view, revision, _MARK + hash + state)


async def load(
    store: ViewStore, log: EventLog, history: HistoryId, view: tuple[str, int], *, until: Revision
) -> tuple[Revision, bytes, bytes] | None:
    """The newest kept state that is not after `until` and was folded from this very log.

    Returns its revision, the hash there, and the state. None when there is none: also when a newer
    one is of another log, since those before it are seldom of use.
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
    """The same for a history that may be a fork: else of those with whose events it begins."""
    loaded = await load(store, log, info.id, view, until=until)
    while loaded is None and info.is_fork:
        until = min(until, info.parent_revision)
        info = next(each for each in await log.histories() if each.id == info.parent)
        loaded = await load(store, log, info.id, view, until=until)
    return loaded


def parts_of(kept: bytes) -> tuple[bytes, bytes] | None:
    """The hash and the state in what is kept; None for what an older program kept."""
    last = kept[1 : 1 + _HASH_BYTES]
    if kept[:1] != _MARK or len(last) < _HASH_BYTES:
        return None
    return last, kept[1 + _HASH_BYTES :]
