"""A recorder in virtual time: clocks that differ, who may record, and what a stop waits for."""

import asyncio
from contextlib import asynccontextmanager

import anyio
import pytest
from msgspec.structs import replace

from app.adapters.memory import MemoryLeases, MemoryLog, MemoryStore
from app.domain.errors import InputError
from app.domain.log import EventType, Revision
from app.domain.log.recorded_cluster import ObjectVersion, WatchItem
from app.domain.log.records import WATCH, Loss, Op
from app.domain.values.timestamps import SECOND
from app.service.recording import recorder
from app.service.recording.recorder import Recorder, RecordingPorts
from tests.crash import virtual_loop
from tests.unit.service.test_expired_lists import BEGUN, BOUNDS, NODES, PODS, Cluster

AHEAD = "the server's clock is {0} s ahead of the clock of this machine (to within {1} s)"
BEHIND = AHEAD.replace("ahead of", "behind")
AGREE = "the clocks of the server and of this machine agree again"


class Moving(Cluster):
    """A cluster whose clock is off from some seconds on, and whose watches follow scripts.

    Watches of nodes yield the items of the next script, which are names and versions of changes;
    those of pods begin late if they are `slow`, and create one at the versions in `pods`. `after`
    is changed before a stop.
    """

    def __init__(
        self, nodes, *, offsets=((0, 0.0),), spread=0.0, scripts=(), pods=(), slow=0.0, after=None
    ):
        super().__init__(nodes)
        self.offsets, self.clock_spread = offsets, int(spread * SECOND)
        self.scripts, self.pods, self.after = list(scripts), pods, after
        self.slow = slow
        self.past = [(self.version, self.nodes)]

    def change(self, changes):
        super().change(changes)
        self.past.append((self.version, self.nodes))

    @property
    def clock_offset(self):
        now = asyncio.get_running_loop().time()
        return int([seconds for at, seconds in self.offsets if at <= now][-1] * SECOND)

    @asynccontextmanager
    async def watch(self, kind, *, after, seconds):
        script = self.scripts.pop(0) if kind is NODES and self.scripts else ()
        if kind is PODS:
            await anyio.sleep(self.slow)  # waits: virtual time

        async def items():
            for name, version in script:
                self.change({name: int(version)})
                item = self.item(name)
                record = replace(item.record, op=Op.MODIFIED, position=WATCH)
                yield WatchItem(version=version, record=record)
            for version in self.pods if kind is PODS else ():
                record = replace(
                    self.item("a").record, op=Op.ADDED, position=WATCH, resource="pods", name="p",
                    resource_version=version,
                )  # fmt: skip
                yield WatchItem(version=version, record=record)
            await anyio.sleep_forever()

        yield items()

    async def versions_page(self, kind, *, limit, version, token=""):
        nodes = [nodes for at, nodes in self.past if at <= int(version)][-1]
        return [
            ObjectVersion("", name, f"uid-{name}", str(at))
            for name, at in (nodes if kind is NODES else {}).items()
        ], ""


def recorded(*clusters, seconds=120, stop_after=None, holder=""):
    """The events of a recording of a cluster that recorders of all clusters continue, and times.

    Each is killed after `seconds`, or told to stop. The `holder` of the lease does not give it up.
    """

    async def run():
        store, loop = MemoryStore(), asyncio.get_running_loop()
        clock = virtual_loop.LoopClock(loop, BEGUN)
        log, leases = MemoryLog(store), MemoryLeases(store, clock)
        ports = RecordingPorts(log=log, leases=leases, clock=clock, holder="me")
        info, lasted = None, []
        for cluster in clusters:
            first = await recorder.look(cluster, BOUNDS, note=lambda _: None)
            is_new = info is None
            if info is None:
                info = await recorder.begin(
                    ports, cluster, first, name="prod", settings={}, secrets=None, bounds=BOUNDS,
                    is_once=False, note=lambda _: None,
                )  # fmt: skip
            if holder:
                await leases.acquire(info.id, "recording", holder, seconds=1e6)
            going = Recorder(
                ports, cluster, first, info, secrets=None, bounds=BOUNDS, is_new=is_new
            )  # fmt: skip
            with anyio.move_on_after(seconds):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(going.run)
                    if stop_after is not None:
                        await anyio.sleep(stop_after)  # waits: virtual time
                        if cluster.after is not None:
                            cluster.change(cluster.after)
                            cluster.nodes.pop("of another kind", None)
                        begun = loop.time()
                        going.stop()
            if stop_after is not None:
                lasted.append(loop.time() - begun)
        return await log.read(info.id, after=Revision(0), limit=1_000), lasted

    return virtual_loop.run(run())


CLOCKS = {
    "clocks that agree": ([((0, 0.0),)], 0.0, []),
    "difference below the bound": ([((0, 1.9),)], 0.0, []),
    "server ahead from the start": ([((0, 2.0),)], 0.0, [AHEAD.format("2.0", "0.1")]),
    "server behind from the start": ([((0, -90.0),)], 0.0, [BEHIND.format("90.0", "0.1")]),
    "inexact difference": ([((0, 5.0),)], 0.32, [AHEAD.format("5.0", "0.4")]),
    "server that gets ahead": (
        [((0, 0.0), (30, 5.0))], 0.0, [AHEAD.format("5.0", "0.1")]),
    "difference that changes little": (
        [((0, 5.0), (30, 6.9))], 0.0, [AHEAD.format("5.0", "0.1")]),
    "difference that grows": (
        [((0, 5.0), (30, 7.5))], 0.0, [AHEAD.format("5.0", "0.1"), AHEAD.format("7.5", "0.1")]),
    "clock that is set right": (
        [((0, 5.0), (30, 0.0))], 0.0, [AHEAD.format("5.0", "0.1"), AGREE]),
    "difference over two recorders, ahead": (
        [((0, 5.0),)] * 2, 0.0, [AHEAD.format("5.0", "0.1")]),
    "difference over two recorders, behind": (
        [((0, -5.0),)] * 2, 0.0, [BEHIND.format("5.0", "0.1")]),
    "other way with the next recorder": (
        [((0, -5.0),), ((0, 5.0),)], 0.0,
        [BEHIND.format("5.0", "0.1"), AHEAD.format("5.0", "0.1")]),
}  # fmt: skip
"""The offsets that recorders see, how exactly, and the gaps of the clock."""


@pytest.mark.parametrize("name", CLOCKS)
def test_clock_that_differs_is_one_gap_as_long_as_it_does(name):
    all_offsets, spread, texts = CLOCKS[name]
    clusters = [Moving({"a": 4}, offsets=each, spread=spread) for each in all_offsets]
    events, _ = recorded(*clusters)
    gaps = [each.object["message"] for each in events if each.type is EventType.GAP_OBSERVED]
    assert [text.partition(";")[0] for text in gaps] == texts
    offset = clusters[0].offsets[0][1] * SECOND
    assert events[0].stamp.time == BEGUN + offset


@pytest.mark.parametrize(("version", "is_late"), [("8", True), ("9", False), ("11", False)])
def test_change_below_what_an_earlier_recorder_gave_out_is_late(version, is_late):
    first = Moving({"a": 4, "b": 5}, scripts=[[("a", "9")]])
    then = Moving({"a": 9, "b": 5}, pods=[version])
    events, _ = recorded(first, then)
    shown = [event for event in events if event.is_about_object][2:]
    assert [(event.key.resource, event.key.name) for event in shown] == [
        ("nodes", "a"),
        ("pods", "p"),
    ]
    assert [Loss.LATE in event.stamp.origin.losses for event in shown] == [False, is_late]


@pytest.mark.parametrize("slow", [0.0, 1.0, 15.0])
def test_next_recorder_waits_for_the_first_watch_of_each_kind(slow):
    then = Moving({"a": 4, "b": 5}, scripts=[[("a", "30")]], pods=["20"], slow=slow)
    events, _ = recorded(Moving({"a": 4, "b": 5}), then)
    shown = [event for event in events if event.is_about_object][2:]
    assert [event.stamp.origin.resource_version for event in shown] == ["20", "30"]
    assert not any(Loss.LATE in event.stamp.origin.losses for event in shown)


def test_history_that_another_process_records_is_refused():
    with pytest.raises(ExceptionGroup) as problems:
        recorded(Moving({"a": 4}), holder="other")
    (problem,) = problems.value.exceptions
    assert isinstance(problem, InputError)
    assert problem.place == "--history"
    assert "another process records 'prod'" in str(problem)


STOPS = {
    "nothing is missing": (None, [], ["a 4", "b 5"], False, (0, 0.5)),
    "other kinds have changed": ({"of another kind": 50}, [], ["a 4", "b 5"], False, (0, 0.5)),
    "change that a new watch brings": (
        {"a": 9}, [[], [("a", "9")]], ["a 4", "b 5", "a 9"], False, (0.9, 3)),
    "change that no watch brings": ({"a": 9}, [], ["a 4", "b 5"], True, (9.9, 12)),
}  # fmt: skip
"""What changes before the stop, the watches, the objects, whether a note says that not all was
compared, and how long the stop may last."""


@pytest.mark.parametrize("name", STOPS)
def test_stop_waits_for_what_the_cluster_has(name):
    after, scripts, objects, is_noted, (least, longest) = STOPS[name]
    cluster = Moving({"a": 4, "b": 5}, scripts=scripts, after=after)
    events, (lasted,) = recorded(cluster, stop_after=60)
    shown = [event for event in events if event.is_about_object]
    assert [f"{e.key.name} {e.stamp.origin.resource_version}" for e in shown] == objects
    report = events[-1].object
    assert report["phase"] == "stopped"
    notes = [note for note in report["report"]["notes"] if "before the last comparison" in note]
    assert bool(notes) is is_noted
    assert least <= lasted <= longest
    assert Loss.LATE not in {loss for event in shown for loss in event.stamp.origin.losses}
