"""The window that makes one order of what the watches of a cluster show."""

import anyio

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
        return [
            f"{entry.kind} {entry.version}" + (" late" * (Loss.LATE in entry.record.losses))
            for entry in self.window._due(100)
        ]


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
