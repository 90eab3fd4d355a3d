"""What a recorder says of lost changes: their first cause, and those of several kinds at once."""

import asyncio
from contextlib import asynccontextmanager

import anyio
import pytest

from app.bootstrap.recording.recorders import ScreenGaps
from app.domain.errors import Expired
from app.domain.log import ObjectKey
from app.domain.log.recorded_cluster import ListPage, ObjectVersion, ServedKind, WatchItem
from app.domain.log.records import WATCH, Op, Record
from app.domain.values.timestamps import Instant
from app.service.recording.audit_budget import AuditBudget
from app.service.recording.following import Audit, Follower, FollowingBounds, gap
from app.service.recording.journal import NewGaps
from app.service.recording.known import KnownObjects, Start
from app.service.recording.window import Window, WindowBounds
from tests.crash import virtual_loop

PODS = ServedKind(group="", version="v1", resource="pods", kind="Pod", is_namespaced=True)


class Cluster:
    """Refuses as many lists as expired, and then lists nothing; its watches are silent."""

    name, clock_offset = "cluster", 0

    def __init__(self, refusals):
        self.refusals = refusals

    async def list_page(self, kind, *, limit, token=""):
        if self.refusals:
            self.refusals -= 1
            raise Expired("refused with 410")
        return ListPage(items=(), token="", version="9")

    @asynccontextmanager
    async def watch(self, kind, *, after, seconds):
        await anyio.sleep_forever()
        yield


@pytest.mark.parametrize("refusals", [0, 1, 5])
@pytest.mark.parametrize("reason", ["the cluster went back", ""])
def test_lists_that_expire_are_not_the_cause_of_what_was_lost_before(refusals, reason):
    async def run():
        clock = virtual_loop.LoopClock(asyncio.get_running_loop(), Instant(0))
        window = Window(clock, WindowBounds())
        follower = Follower(
            Cluster(refusals),
            PODS,
            window,
            start=Start(known=KnownObjects(objects={}), reason=reason),
            clock=clock,
            last_of=None,
            bounds=FollowingBounds(),
            audit_budget=AuditBudget(pages_per_minute=60.0, clock=clock),
        )
        with anyio.move_on_after(600):
            await follower.run()
        entries = await window.take(10)
        return [entry.record.message for entry in entries if entry.record]

    (message,) = virtual_loop.run(run())
    cause = "refused with 410" if refusals else "the recording did not continue"
    assert message.startswith(reason or cause)


class Watched:
    """Shows one object `a` in some items of a watch, has it at a version, and lists it so."""

    name, clock_offset = "cluster", 0

    def __init__(self, version, *items):
        self.version, self.items = version, items

    async def versions_page(self, kind, *, limit, version, token=""):
        return [ObjectVersion("", "a", "u", self.version)], ""

    @asynccontextmanager
    async def watch(self, kind, *, after, seconds):
        async def items():
            for item in self.items:
                yield item
            await anyio.sleep_forever()

        yield items()


def unreadable(version):
    return WatchItem(version=version, key=ObjectKey("", "pods", "", "a"), problem="no name")


def readable(version, op=Op.MODIFIED):
    record = Record(
        source="cluster", position=WATCH, op=op, resource="pods", name="a", uid="u",
        resource_version=version,
    )  # fmt: skip
    return WatchItem(version=version, record=record)


@pytest.mark.parametrize(
    ("now", "items", "audit"),
    [
        ("4", (readable("4"),), Audit.AGREES),
        ("5", (readable("4"),), Audit.DIFFERS),
        ("4", (unreadable("4"),), Audit.AGREES),
        ("5", (unreadable("4"),), Audit.AGREES),
        ("5", (unreadable("4"), readable("5")), Audit.AGREES),
        ("6", (unreadable("4"), readable("5")), Audit.DIFFERS),
        ("6", (unreadable("4"), readable("5"), unreadable("6")), Audit.AGREES),
    ],
)
def test_object_that_can_be_read_again_is_compared_again(now, items, audit):
    start = Start(known=KnownObjects(objects={("", "a"): ("u", "3")}), position="3")
    assert audited(Watched(now, *items), start) is audit


def audited(cluster, start):
    """The audit of a kind after a minute."""

    async def run():
        clock = virtual_loop.LoopClock(asyncio.get_running_loop(), Instant(0))
        window = Window(clock, WindowBounds())

        async def store():
            while entries := await window.take(10):
                window.stored(entries)

        follower = Follower(
            cluster,
            PODS,
            window,
            start=start,
            clock=clock,
            last_of=None,
            bounds=FollowingBounds(),
            audit_budget=AuditBudget(pages_per_minute=60.0, clock=clock),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store)
            tasks.start_soon(follower.run)
            await anyio.sleep(60)  # waits: a minute of the virtual loop
            report = await follower.audit()
            tasks.cancel_scope.cancel()
        return report

    return virtual_loop.run(run())


class Listed(Watched):
    """Shows `a` in lists, in turn, and ends its first watches with 410."""

    def __init__(self, version, *items):
        super().__init__(version)
        self.lists, self.ends = [*items], 2 * len(items) - 2

    async def list_page(self, kind, *, limit, version="", token=""):
        item = self.lists.pop(0)
        return ListPage(items=(item,), token="", version=item.version)

    @asynccontextmanager
    async def watch(self, kind, *, after, seconds):
        if self.ends:
            self.ends -= 1
            raise Expired("refused with 410")
        async with super().watch(kind, after=after, seconds=seconds) as items:
            yield items


@pytest.mark.parametrize(
    ("now", "items", "audit"),
    [
        ("6", (unreadable("4"),), Audit.AGREES),
        ("5", (unreadable("4"), readable("5", Op.BASELINE)), Audit.AGREES),
        ("6", (unreadable("4"), readable("5", Op.BASELINE)), Audit.DIFFERS),
        ("6", (readable("4", Op.BASELINE), unreadable("5")), Audit.AGREES),
    ],
)
def test_object_that_a_list_shows_is_compared_again(now, items, audit):
    assert audited(Listed(now, *items), Start(known=KnownObjects(), is_listed=False)) is audit


def gaps_of(*kinds, at="7", why="refused with 410"):
    gaps = NewGaps()
    for kind in kinds:
        resource, _, group = kind.partition(".")
        message = (
            f"/apis/v1/{resource}: {why}; changes of {kind} up to resource version {at} are not "
            "recorded"
        )
        gaps.note(gap("", ObjectKey(group, resource, "", ""), message, Instant(0)))
    return gaps


def test_gaps_of_several_kinds_for_one_cause_are_one_line():
    screen = ScreenGaps()
    text = (
        "/apis/v1/{0}: refused with 410; changes of {0} up to resource version {1} are not recorded"
    )
    assert screen.lines(gaps_of("nodes"), 0.0) == [f"gap: {text.format('nodes', 7)}"]
    assert screen.lines(gaps_of("pods", "jobs.batch"), 1.0) == []
    assert screen.lines(gaps_of("events", "leases", "pods", at="9"), 2.0) == []
    assert screen.lines(gaps_of("jobs.batch", why="a watch lost changes"), 3.0) == [
        "gap: "
        + text.format("jobs", 7)
        .replace("refused with 410", "a watch lost changes")
        .replace("of jobs", "of jobs.batch")
    ]
    assert screen.lines(gaps_of(), 61.0) == [
        "gap, 5 more like it, of 4 kinds (pods, jobs.batch, events and 1 more), the last: "
        + text.format("pods", 9)
    ]
    others = ScreenGaps()
    assert others.lines(gaps_of("nodes", "pods", "pods"), 0.0) == [
        f"gap of 2 kinds (nodes, pods), the last: {text.format('pods', 7)}"
    ]
    assert others.rest() == [f"gap, 1 more like it, the last: {text.format('pods', 7)}"]
