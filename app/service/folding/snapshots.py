"""Kept states of views, each with the hash of the last event it was folded from, and a digest.

A database may be restored, or another copy of it may take over. A state that was folded from events
which are no longer in the log must not be used as a start. The hash chain detects this: the event
at the state's revision has the same hash only if all events up to it are the same.

A state that was altered or damaged must not be used either, nor one of another view: the digest,
which covers the name and version of the view, detects this. A person who writes the database can
compute the digest, too; `redra verify` folds the log and compares.

Large states are compressed: the objects of a large cluster are alike, PostgreSQL holds no value of
more than a gigabyte, and takes seconds for one of hundreds of megabytes.
"""

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256

import anyio.lowlevel
import anyio.to_thread

from app.domain.log import HistoryId, HistoryInfo, Revision
from app.ports import EventLog, ViewStore

_MARK = b"\xc1redra3"
"""The first bytes of a state that is kept with a hash and a digest.

No MessagePack state begins with its first byte, nor with that of `_COMPRESSED`. Older programs
kept a hash without a digest behind that byte alone, or a digest that did not cover the view.
"""

_COMPRESSED = b"\xc1redra4"
"""The first bytes of one whose state is compressed; its digest covers the compressed bytes."""

COMPRESSED_FROM = 1 << 20
"""The bytes of a state from which on it is compressed."""

_HASH_BYTES = 32


async def keep(
    store: ViewStore,
    history: HistoryId,
    view: tuple[str, int],
    revision: Revision,
    hash: bytes,
    state: Iterable[bytes],
) -> None:
    """Keep the state of a view (name, version) whose last folded event has this hash.

    `state` are the parts of the state in order. Other tasks run while they are compressed.
    """
    mark, data = await _written(state)
    kept = mark + hash + _digest(mark, view, hash, data) + data
    await store.save_snapshot(history, *view, revision, kept)


async def _written(state: Iterable[bytes]) -> tuple[bytes, bytes]:
    """The mark and the bytes under which a state is kept."""
    packer = zlib.compressobj(1)
    plain: list[bytes] = []
    packed: list[bytes] = []
    size = 0
    for part in state:
        plain.append(part)
        size += len(part)
        if size >= COMPRESSED_FROM:
            packed += await anyio.to_thread.run_sync(lambda: [*map(packer.compress, plain)])
            plain.clear()
        await anyio.lowlevel.checkpoint()
    if size < COMPRESSED_FROM:
        return _MARK, b"".join(plain)
    return _COMPRESSED, b"".join((*packed, packer.flush()))


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
    if not parts.is_compressed:
        return revision, parts.hash, parts.state
    try:
        return revision, parts.hash, await anyio.to_thread.run_sync(lambda: parts.state)
    except zlib.error:
        return None


async def load_exact(
    store: ViewStore, history: HistoryId, view: tuple[str, int], revision: Revision, hash: bytes
) -> bytes | None:
    """The state that was kept at a revision whose event has this hash; None without one."""
    stored = await store.load_snapshot(history, *view, until=revision)
    if stored is None or stored[0] != revision:
        return None
    parts = parts_of(stored[1], view)
    if parts is None or parts.hash != hash or parts.is_altered:
        return None
    try:
        return parts.state
    except zlib.error:
        return None


def _is_any(_: tuple[Revision, bytes, bytes]) -> bool:
    return True


async def load_of_line(
    store: ViewStore,
    log: EventLog,
    info: HistoryInfo,
    view: tuple[str, int],
    *,
    until: Revision,
    is_usable: Callable[[tuple[Revision, bytes, bytes]], bool] = _is_any,
) -> tuple[Revision, bytes, bytes] | None:
    """Like `load`; for a fork without a usable state, the state of a history that it continues."""
    loaded = await load(store, log, info.id, view, until=until)
    if loaded is not None and is_usable(loaded):
        return loaded
    for parent in await parents_of(log, info):
        until = min(until, info.parent_revision)
        info = parent
        loaded = await load(store, log, info.id, view, until=until)
        if loaded is not None and is_usable(loaded):
            return loaded
    return None


async def parents_of(log: EventLog, info: HistoryInfo) -> list[HistoryInfo]:
    """The histories that a fork continues, the nearest first; none of one that is no fork.

    They end before one that was deleted meanwhile, which is possible once the fork was deleted.
    """
    if not info.is_fork:
        return []
    histories = {each.id: each for each in await log.histories()}
    parents: list[HistoryInfo] = []
    child: HistoryInfo | None = info
    while child is not None and child.is_fork:
        child = None if child.parent is None else histories.get(child.parent)
        if child is not None:
            parents.append(child)
    return parents


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a kept value: the hash of the last folded event, the data, a digest of both.

    `view` is the name and version of the view as which the value was kept. `mark` says whether
    `data` is the state or the compressed state.
    """

    mark: bytes
    view: tuple[str, int]
    hash: bytes
    digest: bytes
    data: bytes

    @property
    def is_compressed(self) -> bool:
        """Whether the state is to be decompressed."""
        return self.mark == _COMPRESSED

    @property
    def is_altered(self) -> bool:
        """Whether hash or data are not those that were kept for the view."""
        return self.digest != _digest(self.mark, self.view, self.hash, self.data)

    @property
    def state(self) -> bytes:
        """The state. Raises zlib.error for data that are no compressed state."""
        return zlib.decompress(self.data) if self.is_compressed else self.data


def parts_of(kept: bytes, view: tuple[str, int]) -> Parts | None:
    """Split a kept value of a view.

    None for values that an older program kept, or that are no state.
    """
    mark = kept[: len(_MARK)]
    ends = [len(_MARK), len(_MARK) + _HASH_BYTES, len(_MARK) + 2 * _HASH_BYTES]
    if mark not in (_MARK, _COMPRESSED) or len(kept) < ends[-1]:
        return None
    last, digest = kept[ends[0] : ends[1]], kept[ends[1] : ends[2]]
    return Parts(mark, view, last, digest, kept[ends[2] :])


def _digest(mark: bytes, view: tuple[str, int], hash: bytes, data: bytes) -> bytes:
    name, version = view
    covered = sha256(f"{name} {version} ".encode() + hash)
    if mark == _COMPRESSED:
        covered.update(mark)
    covered.update(data)
    return covered.digest()
