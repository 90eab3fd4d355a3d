"""Audit of kept chronicles: what a server would begin with is what the log gives."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
import pytest

from app.adapters.memory import MemoryLog, MemoryViewStore
from app.analysis.keeping import forms, graphs, kept_watch
from app.analysis.keeping.span_changes import SpanChange
from app.bootstrap.stores import view_tables
from app.domain.log import Event, HistoryInfo, Revision
from app.domain.objects.profile import Profile
from app.service import chronicles
from app.service.folding import kept_chronicles, snapshots
from app.service.folding.kept_chronicles import CHANGES, ENTRIES, STATE, ChronicleStore
from app.service.replays.chronicle_audit import ChronicleAudit
from app.service.replays.integrity import Attestation
from app.service.runtime import HistoryRuntime
from projections.packed import PackedList
from projections.timeline import Entry
from tests.unit.analysis.invariants.worlds import RandomWorld
from tests.unit.service.test_replaying import history_of, resealed, story, verify
from tests.unit.service.test_stretches_of_chronicles import STRETCH, Reader, kept_on

Alter = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.service.chronicles.QUIET_PAGE_MAX", 10)
    monkeypatch.setattr(kept_chronicles, "BYTES_FOR_AN_EVENT", 2**20)


def world(seed: int) -> Sequence[Event]:
    return resealed(RandomWorld(seed, 100).events, lambda *_: None)


async def audited(
    log: MemoryLog, info: HistoryInfo, store: MemoryViewStore, page: int
) -> list[str]:
    """The problems that an audit has with what is kept."""
    head = (await log.head(info.id)).revision
    reader = cast(HistoryRuntime, Reader(log, info, head, store))
    begin = (await chronicles._beginning(reader)).make
    audit = ChronicleAudit(ChronicleStore(views=store, log=log, info=info), begin)
    await audit.begin(head)
    assert audit.is_needed
    while events := await log.read(info.id, after=audit._anew.revision, limit=page):
        await audit.take(events)
    audit.finish()
    return audit.problems


@pytest.mark.parametrize("seed", range(4))
async def test_kept_chronicle_of_the_log_is_agreed_with(seed: int) -> None:
    events = world(seed)
    log, info = await history_of(events)
    store = MemoryViewStore({})
    for revision in range(20, len(events), 33 + seed):
        await kept_on(log, info, revision, store)
    assert await audited(log, info, store, 7 + 30 * seed) == []


def block(form: Any, blocks: Any, alter: Alter) -> list[Any]:
    """Blocks in which the first item that can be altered is."""
    items: PackedList[Any] = PackedList(form, 0)
    items.extend_packed(blocks)
    altered: PackedList[Any] = PackedList(form, 0)
    altered.extend([alter(items[0]), *items[1:]])
    altered.seal()
    return altered.blocks(0)


def later(numbers: bytes) -> bytes:
    """Packed numbers of which the last is one more."""
    unpacked = forms.unpacked("q", numbers)
    unpacked[-1] += 1
    return forms.packed(unpacked)


def other_text(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, text=f"{entry.text}!")


def other_state(change: SpanChange) -> SpanChange:
    return msgspec.structs.replace(change, state=f"{change.state}!")


def last_kind(kinds: dict[str, bytes]) -> dict[str, bytes]:
    return dict(sorted(kinds.items())[:-1])


replace = msgspec.structs.replace

ALTERED: dict[str, tuple[str, Alter]] = {
    "entry": (ENTRIES, lambda kept: replace(kept, entries=block(Entry, kept.entries, other_text))),
    "time": (ENTRIES, lambda kept: replace(kept, times=later(kept.times))),
    "revision": (ENTRIES, lambda kept: replace(kept, revisions=later(kept.revisions))),
    "kind": (ENTRIES, lambda kept: replace(kept, kinds=last_kind(kept.kinds))),
    "objects": (ENTRIES, lambda kept: replace(
        kept, subjects=replace(kept.subjects, numbers=kept.subjects.numbers[::-1]))),
    "state of an object": (CHANGES, lambda kept: replace(
        kept, changes=block(SpanChange, kept.changes, other_state))),
    "topic": (CHANGES, lambda kept: replace(
        kept, topics=replace(kept.topics, index=replace(
            kept.topics.index, numbers=kept.topics.index.numbers[::-1])))),
    "name": (CHANGES, lambda kept: replace(
        kept, topics=replace(kept.topics, names=[*kept.topics.names[:-1], ("", "x")]))),
    "lane": (CHANGES, lambda kept: replace(
        kept, topics=replace(kept.topics, revisions=kept.topics.revisions[::-1]))),
}  # fmt: skip

READ = {ENTRIES: forms.entries_of, CHANGES: forms.changes_of, STATE: forms.state_of}


async def kept_world(seed: int) -> tuple[MemoryLog, HistoryInfo, MemoryViewStore]:
    events = world(seed)
    log, info = await history_of(events)
    store = MemoryViewStore({})
    await kept_on(log, info, len(events) - STRETCH // 2, store)
    return log, info, store


async def alter(
    log: MemoryLog, info: HistoryInfo, store: MemoryViewStore, name: str, change: Alter
) -> None:
    """Alter the newest part of a name, with a digest that fits it."""
    place = kept_chronicles.place(name)
    revision = max(store._snapshots[info.id, *place])
    (event,) = await log.read(info.id, after=Revision(revision - 1), limit=1)
    kept = await snapshots.load_exact(store, info.id, place, revision, event.hash)
    assert kept is not None
    program, _, data = kept.partition(b"\n")
    altered = forms.dump(change(READ[name](data)))
    assert altered != data
    marked = (program + b"\n", altered)
    await snapshots.keep(store, info.id, place, revision, event.hash, marked)


async def state_at(
    log: MemoryLog, info: HistoryInfo, store: MemoryViewStore, number: int
) -> forms.KeptState:
    """One of the kept states, in their order."""
    place = kept_chronicles.place(STATE)
    revision = sorted(store._snapshots[info.id, *place])[number]
    (event,) = await log.read(info.id, after=Revision(revision - 1), limit=1)
    kept = await snapshots.load_exact(store, info.id, place, revision, event.hash)
    assert kept is not None
    return forms.state_of(kept.partition(b"\n")[2])


@pytest.mark.parametrize("what", ALTERED)
async def test_part_that_was_altered_with_its_digest_is_named(what: str) -> None:
    log, info, store = await kept_world(1)
    name, change = ALTERED[what]
    await alter(log, info, store, name, change)
    (problem,) = await audited(log, info, store, 50)
    assert "the kept chronicle up to revision" in problem


@pytest.mark.parametrize("seed", range(3))
async def test_state_of_an_earlier_moment_is_named(seed: int) -> None:
    """What was lost with it shows in what happens later."""
    log, info, store = await kept_world(seed)
    state = await state_at(log, info, store, 0)
    await alter(log, info, store, STATE, lambda newest: replace(newest, watch=state.watch))
    assert len(await audited(log, info, store, 50)) == 1


async def begun_with(log: MemoryLog, info: HistoryInfo, store: MemoryViewStore) -> int:
    """The revision at which a server begins that has just started."""
    head = (await log.head(info.id)).revision
    reader = cast(HistoryRuntime, Reader(log, info, head, store))
    begin = (await chronicles._beginning(reader)).make
    kept, _ = await ChronicleStore(views=store, log=log, info=info).restored(begin, head)
    return kept.revision


def of_later_timeline(newest: forms.KeptState, _: forms.KeptState) -> forms.KeptState:
    revision, *present = msgspec.msgpack.decode(newest.timeline)
    return replace(newest, timeline=msgspec.msgpack.encode([revision + 1, *present]))


def without_last_stretch(newest: forms.KeptState, before: forms.KeptState) -> forms.KeptState:
    return replace(newest, stretches=before.stretches, count=before.count)


@pytest.mark.parametrize("change", [without_last_stretch, of_later_timeline])
async def test_state_that_does_not_end_where_it_is_kept_is_not_begun_with(
    change: Callable[[forms.KeptState, forms.KeptState], forms.KeptState],
) -> None:
    """An audit would begin with another one than a server."""
    log, info, store = await kept_world(1)
    assert await begun_with(log, info, store) > 0
    before = await state_at(log, info, store, -2)
    await alter(log, info, store, STATE, lambda newest: change(newest, before))
    assert await begun_with(log, info, store) == 0


async def test_taints_that_evicted_pods_are_those_of_the_log() -> None:
    log, info, store = await kept_world(2)

    def by_others(state: forms.KeptState) -> forms.KeptState:
        watch = graphs.load(forms.decompressed(state.watch), kept_watch.FORMS)
        assert watch.evictors
        watch.evictors.pop(min(watch.evictors))
        return replace(state, watch=forms.compressed(graphs.dump(watch, kept_watch.FORMS)))

    await alter(log, info, store, STATE, by_others)
    assert len(await audited(log, info, store, 50)) == 1


async def test_verify_compares_the_kept_chronicle() -> None:
    cluster = story()
    events = cluster.line.events
    log, info = await history_of(events)
    store = MemoryViewStore(view_tables())
    await kept_on(log, info, len(events), store)
    attestation = Attestation(views=store)
    assert (await verify(log, info, Profile(), attestation=attestation)).agrees
    name, change = ALTERED["entry"]
    await alter(log, info, store, name, change)
    report = await verify(log, info, Profile(), attestation=attestation)
    assert not report.agrees
    assert "the kept chronicle up to revision" in report.chain.problem
    await kept_chronicles.remove(store, info.id)
    assert (await verify(log, info, Profile(), attestation=attestation)).agrees
