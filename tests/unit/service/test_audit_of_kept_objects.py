"""Audit of kept objects: compressed ones, too, are compared with the log, in all that is kept."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
import pytest

from app.adapters.memory import MemoryLog, MemoryViewStore
from app.domain.log import Event, HistoryInfo, Revision
from app.domain.log.pages import Page
from app.service import chronicles
from app.service.folding import snapshots
from app.service.folding.kept_chronicles import ChronicleStore
from app.service.replays.chronicle_audit import ChronicleAudit
from app.service.replays.snapshot_audit import SnapshotAudit
from app.service.runtime import HistoryRuntime
from projections.objects import ObjectsProjection
from tests.unit.analysis.invariants.worlds import RandomWorld
from tests.unit.service.test_replaying import history_of, resealed
from tests.unit.service.test_stretches_of_chronicles import Reader

VIEW = (ObjectsProjection.name, ObjectsProjection.version)

Entry = list[Any]
"""A compressed object as it is kept: created, group, resource, namespace, name, uid, revision,
marks, sample, data."""


def small() -> ObjectsProjection:
    """A view that compresses all objects but one."""
    return ObjectsProjection(1, plain_max=1)


async def kept(
    events: Sequence[Event], at: int, alter: Callable[[Entry], object] | None
) -> tuple[MemoryLog, HistoryInfo, MemoryViewStore, list[Entry]]:
    """A log with the state of its objects at a revision, one of which was altered."""
    log, info = await history_of(events)
    view = small()
    for event in events[:at]:
        view.fold(msgspec.structs.replace(event))
    revision, count, samples, parts, plain = msgspec.msgpack.decode(b"".join(view.dump_parts()))
    entries = [entry for part in parts for entry in msgspec.msgpack.decode(part)]
    if alter is not None:
        alter(entries[len(entries) // 2])
    part = msgspec.msgpack.encode(entries)
    state = msgspec.msgpack.encode((revision, count, samples, [part], plain))
    store = MemoryViewStore({})
    await snapshots.keep(store, info.id, VIEW, revision, events[at - 1].hash, (state,))
    return log, info, store, entries


async def audited(log: MemoryLog, info: HistoryInfo, store: MemoryViewStore) -> list[str]:
    """The problems that an audit has with what is kept."""
    head = (await log.head(info.id)).revision
    begin = (await chronicles._beginning(cast(HistoryRuntime, Reader(log, info, head, store)))).make
    chronicle = ChronicleAudit(ChronicleStore(views=store, log=log, info=info), begin)
    audit = SnapshotAudit(store, info.id, lambda: [small()], chronicle)
    await audit.begin(log, head)
    await audit.take(Page(await log.read(info.id, after=Revision(0), limit=head)))
    await audit.finish(None, to_end=False)
    return audit.problems


def world(seed: int) -> Sequence[Event]:
    return resealed(RandomWorld(seed, 100).events, lambda *_: None)


@pytest.mark.parametrize("seed", range(3))
async def test_kept_objects_of_the_log_are_agreed_with(seed: int) -> None:
    log, info, store, entries = await kept(world(seed), 40 + 20 * seed, None)
    assert len(entries) > 3
    assert await audited(log, info, store) == []


ALTERED: dict[str, Callable[[Entry], object]] = {
    "created": lambda entry: entry.__setitem__(0, entry[0] + 1),
    "resource": lambda entry: entry.__setitem__(2, "others"),
    "name": lambda entry: entry.__setitem__(4, "other"),
    "uid": lambda entry: entry.__setitem__(5, "other"),
    "revision": lambda entry: entry.__setitem__(6, entry[6] + 1),
    "owners": lambda entry: entry[7].__setitem__(0, not entry[7][0]),
    "warning": lambda entry: entry[7].__setitem__(1, not entry[7][1]),
    "sample": lambda entry: entry.__setitem__(8, 10_000),
    "data": lambda entry: entry.__setitem__(9, entry[9][: len(entry[9]) // 2]),
}


@pytest.mark.parametrize("what", ALTERED)
async def test_altered_object_is_named_although_the_digest_fits(what: str) -> None:
    log, info, store, _ = await kept(world(1), 80, ALTERED[what])
    assert await audited(log, info, store) == [
        "the stored state at revision 80 of the view objects is not that of the log; "
        "`redra rebuild` makes it again"
    ]
