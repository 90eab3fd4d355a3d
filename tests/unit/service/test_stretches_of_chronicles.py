"""Chronicles of long histories begin where an earlier program kept them, and say the same."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from app.adapters.memory import MemoryLog, MemoryViewStore
from app.adapters.telemetry import Telemetry
from app.analysis import lanes, starts
from app.analysis.chosen_spans import ChosenSpans
from app.analysis.chronicle import Chronicle
from app.analysis.lanes import Lanes, LanesRequest
from app.analysis.spans import Spans
from app.analysis.starts import StartPace
from app.domain.errors import LogUnavailable
from app.domain.log import Event, Head, HistoryInfo, ObjectKey, Revision
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.chronicles import Chronicles, keep_next
from app.service.folding import kept_chronicles
from app.service.runtime import HistoryRuntime
from app.workers import chronicling
from tests.patience import PATIENCE_SECONDS
from tests.unit.analysis.invariants.worlds import RandomWorld
from tests.unit.analysis.test_kept_chronicles import attributes, same_states, shown
from tests.unit.service.builders import ALICE, config_map, namespace, running_history
from tests.unit.service.test_replaying import history_of, resealed

STRETCH = 15
WHOLE = 10_000
LIVES = count()


class CountingLog(MemoryLog):
    """A log that counts the events that are read in pages."""

    pages = 0

    async def read(self, *args: Any, **options: Any) -> Any:
        events = await super().read(*args, **options)
        self.pages += len(events) if options.get("limit", 0) > 1 else 0
        return events


@dataclass
class Reader:
    """What chronicles read of a running history."""

    log: MemoryLog
    info: HistoryInfo
    revision: int
    kept_views: MemoryViewStore | None
    life: int = field(default_factory=lambda: next(LIVES))

    @property
    def views(self) -> SimpleNamespace:
        return SimpleNamespace(revision=Revision(self.revision))


def counting(log: MemoryLog) -> CountingLog:
    counted = CountingLog.__new__(CountingLog)
    counted.__dict__.update(log.__dict__)
    return counted


async def asked(
    log: MemoryLog,
    info: HistoryInfo,
    revision: int,
    store: MemoryViewStore | None,
    *,
    with_spans: bool = False,
) -> tuple[Chronicle, int]:
    """The chronicle of a program that has just started, and the events that it folded."""
    counted = counting(log)
    runtime = cast(HistoryRuntime, Reader(counted, info, revision, store))
    chronicles = Chronicles(kept_max=1, events_max=WHOLE, stretch=STRETCH)
    if with_spans:
        _, chronicle, _ = await chronicles.with_states(runtime, lambda each: each.states.gaps)
    else:
        chronicle, _ = await chronicles.of(runtime)
    assert chronicle.revision == revision
    return chronicle, counted.pages


async def compare(log: MemoryLog, info: HistoryInfo, revision: int, store: MemoryViewStore) -> int:
    """Compare with a chronicle that keeps nothing; returns the events that were folded."""
    whole, _ = await asked(log, info, revision, None)
    plain, folded = await asked(log, info, revision, store)
    assert shown(plain) == shown(whole)
    spanned, _ = await asked(log, info, revision, store, with_spans=True)
    same_states(spanned, whole)
    assert attributes(spanned.spans) == attributes(whole.spans)
    return folded


@pytest.fixture(name="events", scope="module")
def made_events() -> Sequence[Event]:
    return resealed(RandomWorld(3, 100).events, lambda *_: None)


@pytest.fixture(autouse=True)
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.service.chronicles.PAGE_MAX", 10)
    monkeypatch.setattr("app.service.chronicles.QUIET_PAGE_MAX", 10)
    monkeypatch.setattr(kept_chronicles, "BYTES_FOR_AN_EVENT", 2**20)


async def test_first_question_folds_a_stretch_at_most(events: Sequence[Event]) -> None:
    log, info = await history_of(events)
    store, last = MemoryViewStore({}), len(events)
    assert await compare(log, info, last, store) == last
    assert await compare(log, info, last, store) < 2 * STRETCH + 10


async def test_each_program_goes_on_from_the_one_before(events: Sequence[Event]) -> None:
    log, info = await history_of(events)
    store = MemoryViewStore({})
    for revision in range(20, len(events), 23):
        folded = await compare(log, info, revision, store)
        assert folded < 23 + 2 * STRETCH + 10


async def test_fork_goes_on_from_what_its_parent_kept(events: Sequence[Event]) -> None:
    log, info = await history_of(events)
    store, cut = MemoryViewStore({}), 3 * len(events) // 4
    for revision in range(20, len(events), 20):
        await asked(log, info, revision, store)
    end = Head(revision=Revision(cut), hash=events[cut - 1].hash)
    fork = await log.fork_history(
        "fork", parent=info, end=end, seed=2, settings={}, created=Instant(0)
    )

    def mark(event: Event, tree: JsonObject) -> None:
        if event.revision > cut:
            tree.setdefault("metadata", {})["generateName"] = "of-the-fork"

    more = resealed(events, mark)
    assert more[cut - 1].hash == events[cut - 1].hash
    await log.append(fork.id, expected=end, events=more[cut:])
    assert await compare(log, fork, len(events), store) < len(events) - cut + 2 * STRETCH + 20
    assert await compare(log, fork, len(events), store) < 2 * STRETCH + 10


async def test_log_that_was_restored_and_went_another_way_uses_nothing_of_the_old_one(
    events: Sequence[Event],
) -> None:
    """The kept states are those of before, also those beyond the head that was restored."""
    log, info = await history_of(events)
    store, last, cut = MemoryViewStore({}), len(events), len(events) // 2
    for revision in range(20, last, 20):
        await asked(log, info, revision, store)
    restored, again = await history_of(events[:cut])
    assert again.id == info.id
    assert await compare(restored, again, cut, store) < 2 * STRETCH + 10

    def mark(event: Event, tree: JsonObject) -> None:
        if event.revision > cut:
            tree.setdefault("metadata", {})["generateName"] = "after-the-restore"

    others = resealed(events, mark)
    await restored.append(
        again.id,
        expected=Head(revision=Revision(cut), hash=events[cut - 1].hash),
        events=others[cut:],
    )
    await compare(restored, again, last, store)
    assert await compare(restored, again, last, store) < 2 * STRETCH + 10


async def test_other_log_under_the_same_name_begins_anew(events: Sequence[Event]) -> None:
    log, info = await history_of(events)
    store, last = MemoryViewStore({}), len(events)
    await asked(log, info, last, store)
    others = resealed(RandomWorld(4, 100).events, lambda *_: None)
    restored, again = await history_of(others)
    assert again.id == info.id
    assert await compare(restored, again, len(others), store) == len(others)
    assert await compare(restored, again, len(others), store) < 2 * STRETCH + 10


def cut_state(states: dict[Any, bytes]) -> None:
    last = max(states)
    states[last] = states[last][:-5]


def alter_part(states: dict[Any, bytes]) -> None:
    first = min(states)
    states[first] = states[first][:-5] + b"xxxxx"


def remove_part(states: dict[Any, bytes]) -> None:
    del states[sorted(states)[len(states) // 2]]


@pytest.mark.parametrize("harm", [cut_state, alter_part, remove_part])
@pytest.mark.parametrize(
    "view", [kept_chronicles.STATE, kept_chronicles.ENTRIES, kept_chronicles.CHANGES]
)
async def test_state_that_was_harmed_is_not_used(
    events: Sequence[Event], view: str, harm: Callable[[dict[Any, bytes]], None]
) -> None:
    log, info = await history_of(events)
    store, last = MemoryViewStore({}), len(events)
    await asked(log, info, last, store)
    harm(store._snapshots[info.id, *kept_chronicles.place(view)])
    await compare(log, info, last, store)
    await compare(log, info, last, store)


async def test_state_of_another_program_is_not_used(
    events: Sequence[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, info = await history_of(events)
    store, last = MemoryViewStore({}), len(events)
    await asked(log, info, last, store)
    monkeypatch.setattr(kept_chronicles, "_program", lambda: b"another")
    assert await compare(log, info, last, store) == last


@pytest.mark.parametrize("view", [kept_chronicles.ENTRIES, kept_chronicles.CHANGES])
async def test_parts_of_another_program_are_not_joined_with_a_state(
    events: Sequence[Event], view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork has its own state, and the parts of its parent, which another release wrote anew."""
    log, info = await history_of(events)
    store, other, last = MemoryViewStore({}), MemoryViewStore({}), len(events)
    await asked(log, info, last, store)
    place = info.id, *kept_chronicles.place(view)
    with monkeypatch.context() as patched:
        patched.setattr(kept_chronicles, "_program", lambda: b"another")
        await asked(log, info, last, other)
        parts = other._snapshots[info.id, *kept_chronicles.place(view)]
    store._snapshots[place] = parts
    _, folded = await asked(log, info, last, store, with_spans=True)
    assert folded >= last


class Full(MemoryViewStore):
    """A store that keeps nothing."""

    async def save_snapshot(self, *_: object) -> None:
        raise LogUnavailable("the disk is full")


async def test_database_that_takes_nothing_fails_no_question(events: Sequence[Event]) -> None:
    log, info = await history_of(events)
    last = len(events)
    assert await compare(log, info, last, Full({})) == last
    store = MemoryViewStore({})
    await asked(log, info, last, store)
    assert await compare(log, info, last, store) < 2 * STRETCH + 10


async def kept_on(log: MemoryLog, info: HistoryInfo, revision: int, store: MemoryViewStore) -> int:
    """Keep stretches until none is due; returns the revision up to which is kept."""

    async def pause() -> None:
        await anyio.lowlevel.checkpoint()

    before = -1
    while True:
        runtime = cast(HistoryRuntime, Reader(log, info, revision, store))
        keeping = await keep_next(runtime, pause, STRETCH)
        assert keeping is not None
        if keeping.revision == before:
            return before
        before = keeping.revision


async def test_history_that_nobody_asked_about_is_kept(events: Sequence[Event]) -> None:
    log, info = await history_of(events)
    store = MemoryViewStore({})
    for revision in range(20, len(events), 33):
        kept = await kept_on(log, info, revision, store)
        assert revision - kept < 2 * STRETCH
    assert await compare(log, info, len(events), store) < len(events) - kept + 10


async def test_two_that_keep_the_same_history_do_not_spoil_it(events: Sequence[Event]) -> None:
    log, info = await history_of(events)
    store = MemoryViewStore({})
    chronicles = Chronicles(kept_max=1, events_max=7, stretch=STRETCH)
    asking = Reader(log, info, len(events), store)
    whole, _ = await asked(log, info, len(events), None)
    for revision in range(20, len(events), 9):
        await chronicles.of(cast(HistoryRuntime, asking))
        await kept_on(log, info, revision, store)
        await compare(log, info, revision, store)
    chronicle, _ = await chronicles.of(cast(HistoryRuntime, asking))
    while chronicle.revision < len(events):
        chronicle, _ = await chronicles.of(cast(HistoryRuntime, asking))
    assert shown(chronicle) == shown(whole)


async def test_server_that_is_behind_another_one_folds_no_more_than_a_stretch(
    events: Sequence[Event],
) -> None:
    log, info = await history_of(events)
    store, last, counted = MemoryViewStore({}), len(events), counting(log)
    kept: list[int] = []

    async def overtaken() -> None:
        if not kept:
            kept.append(await kept_on(log, info, last, store))

    runtime = cast(HistoryRuntime, Reader(counted, info, last, store))
    keeping = await keep_next(runtime, overtaken, STRETCH)
    assert keeping is not None
    assert [keeping.revision] == kept
    assert counted.pages <= STRETCH + 10
    await compare(log, info, last, store)


async def test_pages_are_short_while_the_history_is_written(
    events: Sequence[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write waits for a part of a page."""
    monkeypatch.setattr("app.service.chronicles.BUSY_PAGE_MAX", 3)
    log, info = await history_of(events)
    counted, pages = counting(log), [0]
    reader = Reader(counted, info, len(events) - 10, MemoryViewStore({}))
    grown = {2, 3, 5}

    async def pause() -> None:
        pages.append(counted.pages)
        reader.revision += len(pages) - 1 in grown

    await keep_next(cast(HistoryRuntime, reader), pause, 35)
    assert [end - begin for begin, end in pairwise(pages)] == [10, 10, 3, 3, 10]


async def forked(
    log: MemoryLog, info: HistoryInfo, events: Sequence[Event], cut: int
) -> HistoryInfo:
    """A fork after so many events, with the same events as its parent."""
    end = Head(revision=Revision(cut), hash=events[cut - 1].hash)
    fork = await log.fork_history(
        "fork", parent=info, end=end, seed=2, settings={}, created=Instant(0)
    )
    await log.append(fork.id, expected=end, events=events[cut:])
    return fork


async def test_fork_of_an_older_program_goes_on_from_what_its_parent_kept_since(
    events: Sequence[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, info = await history_of(events)
    store, last, cut = MemoryViewStore({}), len(events), 3 * len(events) // 4
    fork = await forked(log, info, events, cut)
    await kept_on(log, info, last, store)
    await kept_on(log, fork, last, store)
    monkeypatch.setattr(kept_chronicles, "_program", lambda: b"another")
    await kept_on(log, info, cut, store)
    assert await compare(log, fork, last, store) < last - cut + 2 * STRETCH + 20
    kept = await kept_on(log, fork, last, store)
    assert kept > cut
    assert await compare(log, fork, last, store) <= last - kept


async def test_programs_of_two_versions_keep_a_chronicle_each(
    events: Sequence[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In turns on one database; a third one takes the place of the one that began first."""
    log, info = await history_of(events)
    store, last = MemoryViewStore({}), len(events)

    async def ask(program: bytes, revision: int) -> int:
        with monkeypatch.context() as patched:
            patched.setattr(kept_chronicles, "_program", lambda: program)
            return await compare(log, info, revision, store)

    for revision in (last // 2, 3 * last // 4):
        for program in (b"older", b"newer"):
            folded = await ask(program, revision)
            assert (folded < last // 2) == (revision > last // 2)
    assert await ask(b"third", last) == last
    for program in (b"newer", b"third"):
        assert await ask(program, last) < 2 * STRETCH + 30
    assert await ask(b"older", last) == last
    versions = {version for _, name, version in store._snapshots if name == kept_chronicles.STATE}
    assert len(versions) == kept_chronicles.PROGRAMS_MAX


async def test_what_a_program_kept_that_is_not_listed_is_removed(
    events: Sequence[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two that began at once, one overwrote the list of the other."""
    log, info = await history_of(events)
    store, last = MemoryViewStore({}), len(events)

    async def ask(program: bytes) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(kept_chronicles, "_program", lambda: program)
            await kept_on(log, info, last, store)

    await ask(b"older")
    listed = dict(store._snapshots[info.id, *kept_chronicles.PROGRAMS])
    await ask(b"newer")
    store._snapshots[info.id, *kept_chronicles.PROGRAMS] = listed
    await ask(b"third")
    for name in (kept_chronicles.STATE, kept_chronicles.ENTRIES, kept_chronicles.CHANGES):
        assert len(await store.kept_versions(info.id, name)) == kept_chronicles.PROGRAMS_MAX


async def test_list_of_programs_that_was_harmed_is_written_anew(
    events: Sequence[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, info = await history_of(events)
    store, last = MemoryViewStore({}), len(events)
    monkeypatch.setattr(kept_chronicles, "_program", lambda: b"newer")
    place = info.id, *kept_chronicles.PROGRAMS
    store._snapshots[place] = {Revision(0): b"\xff 9999999999 x -1 " + b"9" * 5_000}
    await compare(log, info, last, store)
    assert await compare(log, info, last, store) < 2 * STRETCH + 10
    _, version = kept_chronicles.place(kept_chronicles.STATE)
    assert store._snapshots[place] == {0: str(version).encode()}


async def test_program_that_another_one_has_displaced_adds_nothing(
    events: Sequence[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, info = await history_of(events)
    store, last = MemoryViewStore({}), len(events)
    older = Chronicles(kept_max=1, events_max=20, stretch=STRETCH)
    reader = cast(HistoryRuntime, Reader(log, info, last, store))
    await older.of(reader)
    for program in (b"newer", b"third"):
        with monkeypatch.context() as patched:
            patched.setattr(kept_chronicles, "_program", lambda program=program: program)
            await asked(log, info, last, store)
    for _ in range(last):
        await older.of(reader)
    assert (info.id, *kept_chronicles.place(kept_chronicles.STATE)) not in store._snapshots


async def test_fork_is_kept_on_from_its_parent(events: Sequence[Event]) -> None:
    log, info = await history_of(events)
    store, cut = MemoryViewStore({}), 3 * len(events) // 4
    await kept_on(log, info, len(events), store)
    fork = await forked(log, info, events, cut)
    assert await kept_on(log, fork, len(events), store) > cut
    assert min(store._snapshots[fork.id, *kept_chronicles.place(kept_chronicles.STATE)]) > cut
    await compare(log, fork, len(events), store)


@pytest.mark.parametrize("has_own", [False, True])
async def test_fork_whose_parent_is_deleted_meanwhile_begins_anew(
    events: Sequence[Event], has_own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fork was deleted before, while a question about it reads what is kept."""
    log, info = await history_of(events)
    store, last, cut = MemoryViewStore({}), len(events), 3 * len(events) // 4
    await kept_on(log, info, cut, store)
    fork = await forked(log, info, events, cut)
    if has_own:
        assert await kept_on(log, fork, last, store) > cut

    async def none() -> list[HistoryInfo]:
        return []

    monkeypatch.setattr(CountingLog, "histories", lambda _: none())
    assert await compare(log, fork, last, store) == last


@pytest.mark.parametrize("in_steps", [False, True])
async def test_answer_about_very_many_objects_is_that_from_all_states(
    events: Sequence[Event], in_steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, info = await history_of(events)
    store, last = MemoryViewStore({}), Revision(len(events))
    await asked(log, info, last, store)

    def pace_of(chronicle: Chronicle) -> StartPace:
        return starts.of("h", chronicle, last, Instant(2**51))

    def steps(chronicle: Chronicle) -> Iterator[None]:
        return starts.in_steps(chronicle, last, Instant(2**51))

    reader = cast(HistoryRuntime, Reader(log, info, last, store))
    chronicles = Chronicles(kept_max=1, events_max=WHOLE, stretch=STRETCH)
    preparing = (steps,) if in_steps else ()
    with monkeypatch.context() as few:
        few.setattr("app.analysis.chosen_spans.CHOSEN_MAX", 1)
        few.setattr("app.analysis.chosen_spans.STEPPED_MAX", 1)
        answer, chronicle, _ = await chronicles.with_states(reader, pace_of, *preparing)
    assert isinstance(chronicle.states, Spans)
    folded = Chronicle()
    folded.fold(events)
    assert answer == pace_of(folded)
    assert answer.count > 1


@pytest.mark.parametrize(
    "wanted",
    [
        LanesRequest(namespace="ns"),
        LanesRequest(namespace="other"),
        LanesRequest(name="1"),
        LanesRequest(since=Instant(0)),
        LanesRequest(namespace="ns", name="p", until=Instant(2**51)),
    ],
    ids=str,
)
async def test_objects_of_a_filter_of_lanes_are_worked_out_in_steps(
    events: Sequence[Event], wanted: LanesRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other requests are answered between the steps, which work out a few objects each."""
    log, info = await history_of(events)
    store, last = MemoryViewStore({}), Revision(len(events))
    await asked(log, info, last, store)
    worked_out: list[int] = [0]
    work_out = ChosenSpans._worked_out

    def counted(chosen: ChosenSpans, kept: Any, key: ObjectKey, fold: Any) -> Spans:
        worked_out[-1] += kept.recent(key) is None
        return work_out(chosen, kept, key, fold)

    def lanes_of(chronicle: Chronicle) -> Lanes:
        return lanes.of("h", chronicle, last, Instant(2**51), wanted, lambda _: True)

    def steps(chronicle: Chronicle) -> Iterator[None]:
        for _ in lanes.in_steps(chronicle, last, Instant(2**51), wanted):
            worked_out.append(0)
            yield

    monkeypatch.setattr(ChosenSpans, "_worked_out", counted)
    reader = cast(HistoryRuntime, Reader(log, info, last, store))
    chronicles = Chronicles(kept_max=1, events_max=WHOLE, stretch=STRETCH)
    answer, chronicle, _ = await chronicles.with_states(reader, lanes_of, steps)
    assert isinstance(chronicle.states, ChosenSpans)
    folded = Chronicle()
    folded.fold(events)
    for _ in folded.spans_in_steps():
        pass
    assert answer == lanes_of(folded)
    assert len(worked_out) > 4
    # The most for one object: a claim of which a device was found, what it belongs to, its pods.
    claims = {event.key for event in events if event.key[:2] == api_resources.RESOURCE_CLAIMS}
    assert max(worked_out[:-1]) <= 2 + max(len(folded.states.pods_of(c, last)) for c in claims)
    is_none = wanted.namespace == "other"
    assert (not answer.lanes) == (sum(worked_out) == 0) == is_none


class Noting(MemoryViewStore):
    """A store that tells when a state of a chronicle is kept."""

    def __init__(self) -> None:
        super().__init__({})
        self.kept = anyio.Event()

    async def save_snapshot(self, *place: Any) -> None:
        await super().save_snapshot(*place)
        if place[1] == kept_chronicles.STATE:
            self.kept.set()


async def test_server_keeps_a_chronicle_when_a_history_has_grown() -> None:
    store, meter = Noting(), Telemetry()
    async with running_history(views=store) as history, anyio.create_task_group() as tasks:
        tasks.start_soon(chronicling.run, history, meter, 5, 0.01)
        with anyio.fail_after(PATIENCE_SECONDS):
            await history.submit(namespace("default"), actor=ALICE)
            assert not store.kept.is_set()
            for number in range(4):
                await history.submit(config_map(f"m{number}"), actor=ALICE)
            await store.kept.wait()
            name = history.info.name
            while meter.value("redra_chronicle_revision", history=name) != 5:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


async def test_server_keeps_none_while_answers_are_worked_out() -> None:
    """An answer that reads the whole log keeps the chronicle itself."""
    store, answered, polled = Noting(), anyio.Event(), anyio.Event()
    async with running_history(views=store) as history, anyio.create_task_group() as tasks:
        with anyio.fail_after(PATIENCE_SECONDS):
            for number in range(4):
                await history.submit(namespace(f"n{number}"), actor=ALICE)
            history.errands.begin("answer", answered.wait)
            tasks.start_soon(chronicling.run, history, None, 2, 0.0)
            tasks.start_soon(looks, polled)
            await polled.wait()
            assert not store.kept.is_set()
            answered.set()
            await store.kept.wait()
        tasks.cancel_scope.cancel()


async def looks(done: anyio.Event) -> None:
    """Let the other tasks look a hundred times."""
    for _ in range(100):
        await anyio.lowlevel.checkpoint()
    done.set()
