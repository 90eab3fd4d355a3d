"""What the next recorder knows of a recording is what the one before it knew when it ended."""

import msgspec
import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.log import CLOCKS, EventType, ObjectKey, Revision, chain
from app.domain.log.records import LIST, WATCH, Loss, Op, Record
from app.domain.values.timestamps import SECOND, Instant
from app.service.recording import resuming
from app.service.recording.following import gap
from app.service.recording.journal import (
    RECORDING,
    Journal,
    JournalBounds,
    NewGaps,
    RecordingProgress,
)
from app.service.recording.window import WindowEntry
from tests.virtual_clock import VirtualClock

BEGUN = Instant(1_700_000_000 * SECOND)
BOUNDS = JournalBounds(report_seconds=60.0)

CLAIMS = "resourceclaims.resource.k8s.io"


def change(kind, name, version, *, op=Op.MODIFIED, position=WATCH, losses=(), uid=""):
    resource, _, group = kind.partition(".")
    uid = uid or f"uid-{name}"
    tree = {
        "apiVersion": f"{group}/v1" if group else "v1",
        "kind": resource.title(),
        "metadata": {"name": name, "uid": uid, "resourceVersion": version},
    }
    record = Record(
        source="cluster", position=position, op=op, group=group, resource=resource, name=name,
        uid=uid, resource_version=version, object=tree, observed_at=BEGUN, losses=losses,
    )  # fmt: skip
    return WindowEntry(kind=kind, record=record, version=version if position == WATCH else "")


def bookmark(kind, version):
    return WindowEntry(kind=kind, version=version)


def lost(kind, **facts):
    resource, _, group = kind.partition(".")
    record = gap("cluster", ObjectKey(group, resource, "", ""), "lost", BEGUN)
    return WindowEntry(kind=kind, record=record, is_lost=True, **facts)


def unreadable(kind, name, version):
    resource, _, group = kind.partition(".")
    record = gap("cluster", ObjectKey(group, resource, "", name), "odd", BEGUN)
    return WindowEntry(kind=kind, record=record, version=version)


def listed(kind, version):
    return WindowEntry(kind=kind, version=version, is_listed=True)


CLOCK = WindowEntry(kind="", record=gap("cluster", CLOCKS, "the clock is off", BEGUN))
SOON, LATER = 1.0, 61.0

COURSES = {
    "nothing": ([], {"pods": "5"}, "5"),
    "change": ([change("pods", "a", "7")], {"pods": "7"}, "7"),
    "change of another kind": (
        [change(CLAIMS, "a", "9")], {"pods": "5", CLAIMS: "9"}, "9"),
    "change below the newest": (
        [change(CLAIMS, "a", "12"), change("pods", "a", "7")], {"pods": "7", CLAIMS: "12"}, "12"),
    "version of more digits": (
        [change("pods", "a", "9"), change(CLAIMS, "a", "10")], {"pods": "9", CLAIMS: "10"}, "10"),
    "version of another counter": (
        [change("events", "a", "99", losses=(Loss.NO_RV,))], {"pods": "5", "events": "99"}, "5"),
    "object of a list": ([change("pods", "a", "8", position=LIST)], {"pods": "5"}, "5"),
    "bookmark before a report": ([bookmark("pods", "8"), LATER, change("nodes", "a", "9")],
        {"pods": "8", "nodes": "9"}, "9"),
    "bookmark without a report": ([bookmark("pods", "8"), SOON, change("nodes", "a", "9")],
        {"pods": "5", "nodes": "9"}, "9"),
    "bookmark alone, however late": ([bookmark("pods", "8"), LATER, bookmark("pods", "9")],
        {"pods": "5"}, "5"),
    "gap of a kind": ([lost("pods")], {}, "5"),
    "gap of another kind": ([lost(CLAIMS)], {"pods": "5"}, "5"),
    "gap and its list": ([lost("pods"), listed("pods", "11")], {"pods": "11"}, "5"),
    "gap of an object": ([unreadable("pods", "a", "8")], {"pods": "8"}, "5"),
    "gap of an object, then a change": (
        [unreadable("pods", "a", "8"), change("pods", "b", "9")], {"pods": "9"}, "9"),
    "change, then a gap": ([change("pods", "a", "7"), lost("pods")], {}, "7"),
    "gap, then a change of another kind": (
        [lost("pods"), change(CLAIMS, "a", "9")], {CLAIMS: "9"}, "9"),
    "gap of the clock": ([CLOCK], {"pods": "5"}, "5"),
    "restored cluster": (
        [change("pods", "a", "70"), lost("pods", is_restored=True), listed("pods", "3"),
         change("pods", "a", "4")], {"pods": "4"}, "4"),
}  # fmt: skip
"""What a recorder stores or waits for, and the positions and the newest version afterwards."""


def journal_of(log, info, clock, head, progress):
    return Journal(
        log, info, head=head, progress=progress, clock=clock, secrets=None, bounds=BOUNDS
    )


async def history():
    log = MemoryLog(MemoryStore())
    info = await log.create_history(
        "prod", seed=0, settings={}, created=BEGUN,
        hash=chain.genesis(seed=0, settings={}, created=BEGUN),
    )  # fmt: skip
    return log, info


async def recorded(steps, *, together=False, alone=()):
    """A log after steps, and its journal; `together` in one append as far as no time passes."""
    log, info = await history()
    clock = VirtualClock(BEGUN)
    progress = RecordingProgress(
        positions={"pods": "5"}, newest="5", alone=frozenset(alone), notes=("a note",)
    )
    journal = journal_of(log, info, clock, await log.head(info.id), progress)
    await journal.begin({"format": resuming.FORMAT, "sources": [{"uid": "", "server": "s"}]})
    await journal.report(RECORDING)
    entries = []
    for step in (*steps, 0.0):
        if isinstance(step, float) or not together:
            await journal.write([*entries, *([] if isinstance(step, float) else [step])])
            entries = []
        else:
            entries.append(step)
        if isinstance(step, float):
            clock.advance_to(Instant(clock.now() + int(step * SECOND)))
    return log, info, journal


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("name", COURSES)
async def test_next_recorder_goes_on_where_the_one_before_it_ended(name, together):
    steps, positions, newest = COURSES[name]
    log, info, journal = await recorded(steps, together=together)
    resumed = await resuming.resume(log, info)
    assert resumed.progress.positions == positions
    assert resumed.progress.newest == newest
    assert resumed.head == journal.head
    assert resumed.progress.collector.counted() == journal.progress.collector.counted()


@pytest.mark.parametrize("name", COURSES)
async def test_gap_is_never_without_its_report(name):
    steps, _, _ = COURSES[name]
    log, info, journal = await recorded(steps)
    events = await log.read(info.id, after=Revision(2), limit=1_000)
    kinds = [event.type for event in events]
    gaps = kinds.count(EventType.GAP_OBSERVED)
    for number, kind in enumerate(kinds):
        if kind is EventType.GAP_OBSERVED:
            assert kinds[number + 1] is EventType.HISTORY_IMPORTED
    assert journal.new_gaps().count == gaps
    assert journal.new_gaps().count == 0


async def test_records_of_a_first_list_have_no_report():
    log, info, journal = await recorded([])
    await journal.add([change("pods", "a", "3", op=Op.BASELINE, position=LIST).record])
    await journal.add([lost("pods").record])
    events = await log.read(info.id, after=Revision(2), limit=10)
    assert [event.type for event in events] == [EventType.OBJECT_CREATED, EventType.GAP_OBSERVED]


async def test_gap_of_a_kind_without_a_report_takes_its_position():
    log, info, journal = await recorded([])
    await journal.add([unreadable("pods", "a", "8").record, CLOCK.record, lost(CLAIMS).record])
    assert (await resuming.resume(log, info)).progress.positions == {"pods": "5"}
    await journal.add([lost("pods").record])
    assert (await resuming.resume(log, info)).progress.positions == {}


async def test_kinds_of_their_own_counter_are_known_to_the_next_recorder():
    log, info, _ = await recorded([change("pods", "a", "7")], alone=["events", "leases"])
    resumed = await resuming.resume(log, info)
    assert resumed.progress.alone == {"events", "leases"}


async def test_objects_are_known_to_the_next_recorder_as_they_were_recorded_last():
    steps = [
        change("pods", "a", "6", op=Op.ADDED),
        change("pods", "b", "7", op=Op.ADDED),
        change(CLAIMS, "a", "8", op=Op.ADDED),
        change("pods", "a", "9"),
        change("pods", "b", "10", op=Op.DELETED),
        change("pods", "c", "11", op=Op.ADDED),
        change("pods", "c", "12", op=Op.DELETED),
        change("pods", "c", "13", op=Op.ADDED, uid="other"),
    ]
    log, info, _ = await recorded(steps)
    resumed = await resuming.resume(log, info)
    assert {kind: known.objects for kind, known in resumed.known.items()} == {
        ("", "pods"): {("", "a"): ("uid-a", "9"), ("", "c"): ("other", "13")},
        ("resource.k8s.io", "resourceclaims"): {("", "a"): ("uid-a", "8")},
    }


async def test_kinds_count_as_listed_from_the_end_of_their_list_on():
    log, info, _ = await recorded([lost("pods"), listed(CLAIMS, "11")])
    assert await resuming.listed_kinds(log, info) == {CLAIMS}
    resumed = await resuming.resume(log, info)
    assert resumed.progress.collector.is_listed("resource.k8s.io", "resourceclaims")
    assert not resumed.progress.collector.is_listed("", "pods")


GAPS = {
    "object of a namespace": (
        ("", "pods", "default", "a"), "cannot be read", "pods default/a: cannot be read", []),
    "object of the cluster": (
        ("", "nodes", "", "a"), "cannot be read", "nodes a: cannot be read", []),
    "kind": (("", "pods", "", ""), "/api/v1/pods: gone", "/api/v1/pods: gone", ["pods"]),
    "kind of a group": (
        ("batch", "jobs", "", ""), "/apis/batch/v1/jobs: gone", "/apis/batch/v1/jobs: gone",
        ["jobs.batch"]),
    "anything": (("", "", "", ""), "gone", "gone", []),
}  # fmt: skip


@pytest.mark.parametrize("name", GAPS)
def test_gap_names_what_it_is_about(name):
    key, message, text, kinds = GAPS[name]
    gaps = NewGaps()
    gaps.note(gap("cluster", ObjectKey(*key), message, BEGUN))
    (alike,) = gaps.alike.values()
    assert (alike.text, alike.count, alike.kinds) == (text, 1, kinds)


async def test_report_has_the_notes_and_the_phase():
    log, info, journal = await recorded([])
    await journal.report("stopped")
    report = (await log.read(info.id, after=Revision(2), limit=1))[0].object
    assert report["phase"] == "stopped"
    assert report["report"]["notes"] == ["a note"]
    assert msgspec.json.encode(report["positions"]) == b'{"pods":"5"}'
