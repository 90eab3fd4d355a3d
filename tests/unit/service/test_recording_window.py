"""The window that makes one order of what the watches of a cluster show."""

import anyio
import pytest

from app.domain.log.records import Loss, Op, Record
from app.domain.values.timestamps import SECOND, Instant
from app.service.recording.window import Window, WindowBounds, WindowEntry
from tests.virtual_clock import VirtualClock


class Watches:
    """A window over virtual time; entries are named by kind and version."""

    def __init__(self, **bounds):
        self.clock = VirtualClock(Instant(1_000 * SECOND))
        self.window = Window(self.clock, WindowBounds(seconds=1.0, **bounds))

    def wait(self, seconds):
        """Time passes while all watches are read."""
        for _ in range(int(seconds * 10)):
            self.clock.advance_to(Instant(self.clock.now() + SECOND // 10))
            self.window._tick()

    async def show(self, kind, version, *, is_ordered=True):
        record = Record(source="c", position="watch", op=Op.ADDED, resource=kind,
                        resource_version=str(version))  # fmt: skip
        entry = WindowEntry(kind=kind, record=record, version=str(version))
        await self.window.put(entry, version=str(version) if is_ordered else "")

    def out(self):
        """What is given out now; what comes late is marked."""
        return [f"{entry.kind} {told(entry)}" for entry in self.window._due(100)]


def told(entry):
    """The version of an entry, and whether it is late, no record, or a new beginning."""
    if entry.record is None:
        return "restored" if entry.is_restored else f"{entry.version} bookmark"
    return entry.version + " late" * (Loss.LATE in entry.record.losses)


def follows(watches, *kinds):
    for kind in kinds:
        watches.window.follow(kind, "1")


async def test_changes_of_two_kinds_come_out_by_version():
    watches = Watches()
    follows(watches, "pods", "nodes")
    await watches.show("pods", 12)
    await watches.show("nodes", 11)
    # Of pods nothing before 12 is to come, so 11 need not wait; 12 may have earlier nodes.
    assert watches.out() == ["nodes 11"]
    watches.wait(0.9)
    assert watches.out() == []
    watches.wait(0.2)
    assert watches.out() == ["pods 12"]


async def test_change_that_every_watch_is_beyond_does_not_wait():
    watches = Watches()
    follows(watches, "pods", "nodes")
    await watches.show("pods", 9)
    await watches.show("nodes", 10)
    assert watches.out() == ["pods 9"]


async def test_change_that_comes_after_a_later_one_was_given_out_is_marked():
    watches = Watches()
    follows(watches, "pods", "nodes")
    await watches.show("pods", 12)
    watches.wait(1.1)
    assert watches.out() == ["pods 12"]
    await watches.show("nodes", 11)
    assert watches.out() == ["nodes 11 late"]


async def test_what_came_before_the_recorder_started_counts_for_the_order():
    watches = Watches()
    watches.window = Window(watches.clock, WindowBounds(seconds=1.0), given="20")
    follows(watches, "pods")
    await watches.show("pods", 19)
    assert watches.out() == ["pods 19 late"]


async def test_time_in_which_nothing_is_read_does_not_count():
    watches = Watches()
    follows(watches, "pods", "nodes")
    await watches.show("pods", 12)
    watches.clock.advance_to(Instant(watches.clock.now() + 60 * SECOND))
    assert watches.out() == []


async def test_kind_whose_watch_is_about_to_go_on_is_waited_for():
    watches = Watches(away_seconds=30.0)
    follows(watches, "pods", "nodes")
    watches.wait(2)
    watches.window.wait_for("nodes")
    await watches.show("pods", 12)
    watches.wait(10)
    assert watches.out() == []
    watches.window.follow("nodes", "1")
    await watches.show("nodes", 11)
    watches.wait(1.1)
    assert watches.out() == ["nodes 11", "pods 12"]


async def test_kind_that_does_not_come_back_holds_nothing_up_for_ever():
    watches = Watches(away_seconds=5.0)
    follows(watches, "pods")
    watches.window.wait_for("nodes")
    await watches.show("pods", 12)
    watches.wait(6)
    assert watches.out() == ["pods 12"]


async def test_watches_that_end_again_and_again_hold_nothing_up_for_ever():
    watches = Watches(away_seconds=5.0)
    follows(watches, "pods", "nodes")
    await watches.show("pods", 12)
    given = []
    for _ in range(12):
        watches.wait(0.5)
        watches.window.wait_for("nodes")
        watches.window.follow("nodes", "1")
        given += watches.out()
    assert given == ["pods 12"]


async def test_kind_with_a_counter_of_its_own_stands_where_it_arrives():
    watches = Watches()
    follows(watches, "pods")
    await watches.show("pods", 12)
    await watches.show("events", 9_000_000, is_ordered=False)
    await watches.show("pods", 13)
    assert watches.out() == ["pods 12", "events 9000000", "pods 13"]


async def test_full_window_keeps_its_watches_waiting():
    watches = Watches(entries_max=2)
    follows(watches, "pods", "nodes")
    await watches.show("pods", 2)
    await watches.show("pods", 3)
    with anyio.move_on_after(0) as full:
        await watches.show("pods", 4)
    assert full.cancelled_caught
    watches.wait(1.1)
    assert watches.out() == ["pods 2", "pods 3"]
    await watches.show("pods", 4)


STEPS = {
    "change of the only kind": ("follow pods 1, put pods 9", ["pods 9"]),
    "change below what another kind has reached": (
        "follow pods 1, follow nodes 10, put pods 9", ["pods 9"]),
    "change at what another kind has reached": (
        "follow pods 1, follow nodes 9, put pods 9", ["pods 9"]),
    "change beyond what another kind has reached": (
        "follow pods 1, follow nodes 8, put pods 9", []),
    "other kind that is left": (
        "follow pods 1, follow nodes 8, put pods 9, leave nodes", ["pods 9"]),
    "bookmark of another kind": (
        "follow pods 1, follow nodes 8, put pods 9, mark nodes 9", ["pods 9", "nodes 9 bookmark"]),
    "kinds that are all away, below what they have reached": (
        "follow pods 1, follow nodes 10, put pods 9, away pods, away nodes", ["pods 9"]),
    "kinds that are all away, beyond what they have reached": (
        "follow pods 1, follow nodes 8, put pods 9, away pods, away nodes", []),
    "kind that is away and was never followed": (
        "follow pods 1, follow nodes 10, away claims, put pods 9", []),
    "kind that is away and comes": (
        "follow pods 1, follow nodes 10, away claims, put pods 9, follow claims 12", ["pods 9"]),
    "kind that is away and comes with less": (
        "follow pods 1, follow nodes 10, away claims, put pods 9, follow claims 8", []),
    "kind that is away and is left": (
        "follow pods 1, follow nodes 10, away claims, put pods 9, leave claims", ["pods 9"]),
    "kind that is away again for long": (
        "follow pods 1, follow nodes 5, put pods 9, away nodes, pass 4, away nodes, pass 2",
        ["pods 9"]),
    "kind that is away, comes back, and is away": (
        "follow pods 1, follow nodes 5, put pods 9, away nodes, pass 4, follow nodes 5, "
        "away nodes, pass 0.5", []),
    "versions of another length": (
        "follow pods 1, follow nodes 10, put pods 9, put nodes 11", ["pods 9"]),
    "version that is given out again": (
        "follow pods 1, put pods 9, out, put pods 9", ["pods 9"]),
    "version below one that was given out": (
        "follow pods 1, put pods 9, out, put pods 8", ["pods 8 late"]),
    "bookmark below one that was given out": (
        "follow pods 1, put pods 9, out, mark pods 8", ["pods 8 bookmark"]),
    "change below a bookmark that was given out": (
        "follow pods 1, follow nodes 9, mark pods 9, out, put nodes 8", ["nodes 8"]),
    "restored cluster": (
        "follow pods 1, put pods 9, out, leave pods, restore pods, follow pods 3, put pods 4",
        ["pods restored", "pods 4"]),
    "other kinds of a restored cluster": (
        "follow pods 1, put pods 9, out, leave pods, restore pods, follow nodes 3, put nodes 4",
        ["pods restored", "nodes 4"]),
    "change soon after one that went out long ago": (
        "follow pods 1, follow nodes 10, put pods 9, out, pass 2, put pods 12", []),
    "change without an order behind one that waits": (
        "follow pods 1, follow nodes 8, put pods 9, add events 2", []),
    "change without an order before one that waits": (
        "follow pods 1, follow nodes 8, add events 2, put pods 9", ["events 2"]),
    "change without an order is never late": (
        "follow pods 1, put pods 9, out, add events 2", ["events 2"]),
    "change without an order makes none late": (
        "follow pods 1, add events 2000, out, put pods 9", ["pods 9"]),
}  # fmt: skip
"""What comes out at the end, without more time, after steps; `pass` takes seconds."""


@pytest.mark.parametrize("name", STEPS)
async def test_change_comes_out_once_no_kind_can_have_an_earlier_one(name):
    steps, out = STEPS[name]
    watches = Watches(away_seconds=5.0)
    for step in steps.split(", "):
        what, *parts = step.split()
        if what == "follow":
            watches.window.follow(*parts)
        elif what == "away":
            watches.window.wait_for(*parts)
        elif what == "leave":
            watches.window.leave(*parts)
        elif what == "pass":
            watches.wait(float(parts[0]))
        elif what == "out":
            assert watches.out()
        elif what in ("put", "add"):
            await watches.show(*parts, is_ordered=what == "put")
        elif what == "mark":
            entry = WindowEntry(kind=parts[0], version=parts[1])
            await watches.window.put(entry, version=parts[1])
        else:
            assert what == "restore"
            await watches.window.put(WindowEntry(kind=parts[0], is_lost=True, is_restored=True))
    assert watches.out() == out


async def test_no_more_come_out_than_are_wanted():
    watches = Watches()
    follows(watches, "pods")
    for version in (2, 3, 4):
        await watches.show("pods", version)
    assert [entry.version for entry in await watches.window.take(2)] == ["2", "3"]
    assert [entry.version for entry in await watches.window.take(2)] == ["4"]
    assert watches.window.waiting == 0
    watches.window.close()
    await watches.show("pods", 5)
    assert await watches.window.take(2) == []


@pytest.mark.parametrize("stored", [0, 1, 2])
async def test_flush_waits_for_all_that_is_in_the_window_to_be_stored(stored):
    watches = Watches()
    follows(watches, "pods")
    await watches.show("pods", 2)
    await watches.show("pods", 3)
    entries = await watches.window.take(10)
    watches.window.stored(entries[:stored])
    with anyio.move_on_after(0) as waiting:
        await watches.window.flush()
    assert waiting.cancelled_caught is (stored < 2)
