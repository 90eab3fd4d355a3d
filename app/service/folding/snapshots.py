"""Kept states of views, each with the hash of the last event it was folded from, and a digest.

A database may be restored, or another copy of it may take over. A state that was folded from events
which are no longer in the log must not be used as a start. The hash chain detects this: the event
at the state's revision has the same hash only if all events up to it are the same.

A state that was altered or damaged must not be used either, nor one of another view: the digest,
which covers the name and version of the view, detects this. A person who writes the database can
compute the digest, too; `redra verify` folds the log and compares.
"""

from dataclasses import dataclass
from hashlib import sha256

from app.domain.log import HistoryId, HistoryInfo, Revision
from app.ports import EventLog, ViewStore

_MARK = b"\xc1redra3"
"""The first bytes of a state that is kept with a hash and a digest.

No MessagePack state begins with its first byte. Older programs kept a hash without a digest behind
that byte alone, or a digest that did not cover the view.
"""

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
    kept = _MARK + hash + _digest(view, hash, state) + state
    await store.save_snapshot(history, *view, revision, kept)


async def load(
    store: ViewStore, log: EventLog, history: HistoryId, view: tuple[str, int], *, until: Revision
) -> tuple[Revision, bytes, bytes] | None:
    """The newest kept state that is not after `until`, if it was folded from this log.

    Returns its revision, the hash there, and the state. None when there is no such state: also when
    the newest one is of another log or altered, because older ones are seldom of use.
    """
    stored = await store.load_snapshot(history, *view, until=until)
    if stored is None:
        return None
    revision, kept = stored
    parts = parts_of(kept, view)
    if parts is None or parts.is_altered:
        return None
    events = await log.read(history, after=Revision(revision - 1), limit=1, until=revision)
    if not events or events[0].hash != parts.hash:
        return None
    return revision, parts.hash, parts.state


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


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a kept value: the hash of the last folded event, the state, a digest of both.

    `view` is the name and version of the view as which the value was kept.
    """

    view: tuple[str, int]
    hash: bytes
    digest: bytes
    state: bytes

    @property
    def is_altered(self) -> bool:
        """Whether hash or state are not those that were kept for the view."""
        return self.digest != _digest(self.view, self.hash, self.state)


def parts_of(kept: bytes, view: tuple[str, int]) -> Parts | None:
    """Split a kept value of a view.

    None for values that an older program kept, or that are no state.
    """
    ends = [len(_MARK), len(_MARK) + _HASH_BYTES, len(_MARK) + 2 * _HASH_BYTES]
    if not kept.startswith(_MARK) or len(kept) < ends[-1]:
        return None
    return Parts(view, kept[ends[0] : ends[1]], kept[ends[1] : ends[2]], kept[ends[2] :])


def _digest(view: tuple[str, int], hash: bytes, state: bytes) -> bytes:
    name, version = view
    return sha256(f"{name} {version} ".encode() + hash + state).digest()
