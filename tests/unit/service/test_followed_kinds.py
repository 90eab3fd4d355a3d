"""The follower of one kind: what it records of a watch, and what it asks the cluster for next."""

import asyncio
import itertools
from contextlib import asynccontextmanager

import anyio
import pytest

from app.domain.errors import (
    ClusterUnreachable,
    Expired,
    Forbidden,
    RevisionTooLarge,
    TooManyRequests,
)
from app.domain.log import ObjectKey
from app.domain.log.recorded_cluster import ListPage, ObjectVersion, ServedKind, WatchItem
from app.domain.log.records import LIST, WATCH, Loss, Op, Record, TimeQuality
from app.domain.values.timestamps import SECOND, Instant
from app.service.recording.audit_budget import AuditBudget
from app.service.recording.following import Audit, Follower, FollowingBounds, Start
from app.service.recording.known import KnownObjects
from app.service.recording.window import Window, WindowBounds
from tests.crash import virtual_loop

PODS = ServedKind(group="", version="v1", resource="pods", kind="Pod", is_namespaced=True)
BOUNDS = FollowingBounds(pause_seconds=1.0, pause_seconds_max=8.0, denied_seconds=100.0)
BEGUN = Instant(1_700_000_000 * SECOND)
OLD, DENIED = Expired("refused with 410"), Forbidden("refused with 403")
AWAY, TO_COME = ClusterUnreachable("no answer"), RevisionTooLarge("too large resource version")


def change(op, name, version, uid="", **facts):
    record = Record(
        source="cluster", position=WATCH, op=op, resource="pods", name=name,
        uid=uid or f"uid-{name}", resource_version=version, observed_at=BEGUN,
    )  # fmt: skip
    return WatchItem(version=version, record=record, **facts)


def made(name, version, **facts):
    return change(Op.ADDED, name, version, **facts)


def changed(name, version, **facts):
    return change(Op.MODIFIED, name, version, **facts)


def gone(name, version, **facts):
    return change(Op.DELETED, name, version, **facts)


def bookmark(version):
    return WatchItem(version=version)


def unreadable(name, version):
    return WatchItem(version=version, key=ObjectKey("", "pods", "", name), problem="odd")


class Cluster:
    """Answers each watch with a script: items, seconds without any, and a problem that ends it.

    After the last script watches are silent. Lists have the objects of `listed` at its version.
    """

    name, clock_offset = "cluster", 0

    def __init__(self, scripts, listed=("20", {})):
        self.scripts = list(scripts)
        self.version, self.objects = listed
        self.watches, self.lists = [], 0

    @asynccontextmanager
    async def watch(self, kind, *, after, seconds):
        assert 1 <= seconds <= BOUNDS.watch_seconds
        self.watches.append((after, asyncio.get_running_loop().time()))
        script = self.scripts.pop(0) if self.scripts else [1e9]

        async def items():
            for step in script:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, WatchItem):
                    yield step
                else:
                    await anyio.sleep(step)  # waits: virtual time

        yield items()

    async def list_page(self, kind, *, limit, version="", token=""):
        self.lists += 1
        items = tuple(
            WatchItem(
                version=at,
                record=Record(
                    source="cluster", position=LIST, op=Op.BASELINE, resource="pods", name=name,
                    uid=f"uid-{name}", resource_version=at,
                ),
            )
            for name, at in self.objects.items()
        )  # fmt: skip
        return ListPage(items=items, version=self.version)

    async def versions_page(self, kind, *, limit, version, token=""):
        problem = self.scripts.pop(0)
        if problem is not None:
            raise problem
        return [ObjectVersion("", name, f"uid-{name}", at) for name, at in self.objects.items()], ""


def followed(cluster, *, seconds=1_000, window=None, **start):
    """What a follower puts into its window: lines, and the entries."""
    entries = []

    async def run():
        clock = virtual_loop.LoopClock(asyncio.get_running_loop(), BEGUN)
        window = Window(clock, WindowBounds())

        async def store():
            while taken := await window.take(10):
                entries.extend(taken)
                window.stored(taken)

        known = start.pop("known", {"a": "3"})
        follower = Follower(
            cluster,
            PODS,
            window,
            start=Start(
                known=KnownObjects(
                    objects={("", name): (f"uid-{name}", at) for name, at in known.items()}
                ),
                **{"position": "3", **start},
            ),
            clock=clock,
            last_of=last_of,
            bounds=BOUNDS,
            audit_budget=AuditBudget(pages_per_minute=60.0, clock=clock),
        )
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store)
                tasks.start_soon(follower.run)

    async def last_of(key):
        return changed(key.name, "1").record

    virtual_loop.run(run())
    return [line(entry) for entry in entries]


def line(entry):
    record = entry.record
    if record is None:
        return f"listed {entry.version}" if entry.is_listed else f"reached {entry.version}"
    if record.op is Op.GAP:
        about = f"gap of {record.name}: " if record.name else "gap: "
        about = f"restored, {about}" if entry.is_restored else about
        return about + record.message.partition("; changes of")[0]
    return f"{record.op.value.lower()} {record.name} {record.resource_version}".strip()


GAP = ["gap: refused with 410", "listed 20"]
LOST = "gap: a watch lost changes: "

COURSES = {
    "changes": (
        [[made("b", "5"), changed("a", "6"), gone("b", "7")]],
        ["added b 5", "modified a 6", "deleted b 7"], ["3", "7"]),
    "object that is made again": (
        [[gone("a", "5"), made("a", "6", uid="new"), changed("a", "7", uid="new")]],
        ["deleted a 5", "added a 6", "modified a 7"], ["3", "7"]),
    "bookmark": ([[bookmark("5")]], ["reached 5"], ["3", "5"]),
    "bookmark without a version": ([[bookmark("")]], [], ["3", "3"]),
    "change that was shown before": (
        [[changed("a", "5"), 9], [changed("a", "5"), changed("a", "6")]],
        ["modified a 5", "modified a 6"], ["3", "5", "6"]),
    "change below the position": (
        [[changed("a", "5"), changed("a", "4"), changed("a", "6")]],
        ["modified a 5", "modified a 6"], ["3", "6"]),
    "change with more digits": (
        [[changed("a", "9"), changed("a", "10")]],
        ["modified a 9", "modified a 10"], ["3", "10"]),
    "object that cannot be read": (
        [[unreadable("b", "5"), changed("a", "6")]],
        ["gap of b: odd", "modified a 6"], ["3", "6"]),
    "watch that ends with 410 once": (
        [[changed("a", "5"), OLD], [changed("a", "6")]],
        ["modified a 5", "modified a 6"], ["3", "5", "6"]),
    "watch that ends with 410 twice": (
        [[changed("a", "5"), OLD], [OLD]],
        ["modified a 5", GAP[0], "deleted a", GAP[1]], ["3", "5", "20"]),
    "watch that ends with 410 again after a change": (
        [[OLD], [changed("a", "5"), OLD], [changed("a", "6")]],
        ["modified a 5", "modified a 6"], ["3", "3", "5", "6"]),
    "watch that ends with 410 again after a repeated change": (
        [[changed("a", "5"), OLD], [changed("a", "5"), OLD]],
        ["modified a 5", GAP[0], "deleted a", GAP[1]], ["3", "5", "20"]),
    "version that is yet to come": (
        [[TO_COME], [TO_COME], [TO_COME], [changed("a", "6")]],
        ["modified a 6"], ["3", "3", "3", "3", "6"]),
    "connection that breaks": (
        [[AWAY], [changed("a", "5"), AWAY], [AWAY]],
        ["modified a 5"], ["3", "3", "5", "5"]),
    "change of an unknown object": (
        [[changed("b", "5")]],
        [f"{LOST}pods/b was changed, but it was never created", "deleted a", GAP[1]], ["3", "20"]),
    "end of an unknown object": (
        [[gone("b", "5")]],
        [f"{LOST}pods/b was deleted, but it was never created", "deleted a", GAP[1]], ["3", "20"]),
    "creation of a known object": (
        [[made("a", "5")]],
        [f"{LOST}pods/a was created, but it already existed", "deleted a", GAP[1]], ["3", "20"]),
    "change of another object of a name": (
        [[changed("a", "5", uid="new")]],
        [f"{LOST}pods/a is a new object, but the one before it was never deleted", "deleted a",
         GAP[1]], ["3", "20"]),
    "denied watch": (
        [[DENIED]],
        ["gap: refused with 403", "gap: refused with 403", "deleted a", GAP[1]], ["3", "20"]),
}  # fmt: skip
"""Scripts of watches; the lines that are recorded, and from where each watch began. The cluster
lists nothing at version 20."""


@pytest.mark.parametrize("name", COURSES)
def test_follower_records_each_change_once_or_a_gap(name):
    scripts, lines, begun = COURSES[name]
    cluster = Cluster(scripts)
    assert followed(cluster) == lines
    assert [after for after, _ in cluster.watches] == begun


RETURNS = {
    "below where the recording went on": ([[TO_COME]], "2", f"restored, gap: {TO_COME}"),
    "below a change": ([[changed("a", "9")], [TO_COME]], "5", f"restored, gap: {TO_COME}"),
    "below a bookmark": ([[bookmark("9")], [TO_COME]], "8", f"restored, gap: {TO_COME}"),
    "above all that was seen": ([[changed("a", "9")], [OLD], [OLD]], "12", f"gap: {OLD}"),
    "at what was seen last": ([[changed("a", "9")], [OLD], [OLD]], "9", f"gap: {OLD}"),
}  # fmt: skip
"""Watches, the version at which the cluster is listed then, and the gap."""


@pytest.mark.parametrize("name", RETURNS)
def test_cluster_that_went_back_begins_its_versions_anew(name):
    scripts, version, text = RETURNS[name]
    lines = followed(Cluster(scripts, listed=(version, {"a": "2"})))
    assert lines[-3:] == [text, "modified a 2", f"listed {version}"]


LISTS = {
    "nothing new": ({"a": "3"}, []),
    "changed object": ({"a": "7"}, ["modified a 7"]),
    "new object": ({"a": "3", "b": "8"}, ["added b 8"]),
    "object that is gone": ({}, ["deleted a"]),
    "all of these": (
        {"b": "8", "c": "9"}, ["added b 8", "added c 9", "deleted a"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_list_after_a_gap_shows_what_is_different(name):
    objects, lines = LISTS[name]
    cluster = Cluster([], listed=("20", objects))
    (first, *rest) = followed(cluster, position="", reason="lost")
    assert first == "gap: lost"
    assert rest == [*lines, "listed 20"]
    assert [after for after, _ in cluster.watches] == ["20"]


@pytest.mark.parametrize("shares_counter", [True, False])
def test_kind_of_its_own_counter_has_no_place_by_version(shares_counter):
    cluster, entries = Cluster([[changed("a", "5"), changed("a", "6")]]), []
    put = Window.put

    async def note(window, entry, *, version=""):
        entries.append((version, Loss.NO_RV in entry.record.losses))
        await put(window, entry, version=version)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Window, "put", note)
        followed(cluster, shares_counter=shares_counter)
    assert entries == ([("5", False), ("6", False)] if shares_counter else [("", True), ("", True)])


PAUSES = {
    "watch that lasts": ([[10], [10], [10]], [(10, 10), (10, 10), (10, 10)]),
    "watch that ends at once": ([[], [], []], [(1, 1), (2, 2), (4, 4)]),
    "watch that ends at once, up to the longest pause": (
        [[]] * 6, [(1, 1), (2, 2), (4, 4), (8, 8), (8, 8), (8, 8)]),
    "change between": (
        [[], [], [changed("a", "5"), 10], []], [(1, 1), (2, 2), (10, 10), (1, 1)]),
    "silence of the cluster": ([[AWAY], [AWAY], [AWAY]], [(0.5, 1), (1, 2), (2, 4)]),
    "busy server": ([[TooManyRequests("busy", retry_after_seconds=60)]], [(30, 60)]),
    "busy server that comes back soon": (
        [[TooManyRequests("busy", retry_after_seconds=0)]], [(0.5, 1)]),
    "denied": ([[DENIED]], [(50, 100)]),
}  # fmt: skip
"""The least and the longest time from one watch to the next."""


@pytest.mark.parametrize("name", PAUSES)
def test_next_watch_begins_after_a_pause(name):
    scripts, pauses = PAUSES[name]
    cluster = Cluster(scripts)
    followed(cluster)
    times = [at for _, at in cluster.watches]
    assert len(times) == len(pauses) + 1
    for (least, longest), (one, other) in zip(pauses, itertools.pairwise(times), strict=True):
        assert least - 1e-6 <= other - one <= longest + 1e-6


EARLIER, NOW, AFTER = Instant(BEGUN - 9 * SECOND), BEGUN, Instant(BEGUN + SECOND)

TIMES = {
    "older than the first watch": ([changed("a", "5", written=EARLIER)], EARLIER),
    "without a time of its own": ([changed("a", "5")], BEGUN),
    "with the time at which it arrives": ([changed("a", "5", written=NOW)], BEGUN),
    "from a clock that is ahead": ([changed("a", "5", written=AFTER)], BEGUN),
    "creation": ([made("b", "5", written=EARLIER)], EARLIER),
    "end, which has no time": ([gone("a", "5", written=EARLIER)], BEGUN),
    "just before the backlog is over": ([2.0, changed("a", "5", written=EARLIER)], EARLIER),
    "when the backlog is over": ([2.1, changed("a", "5", written=EARLIER)], BEGUN),
}
"""The first items of a watch, and the time of the last one."""


@pytest.mark.parametrize("name", TIMES)
def test_change_that_is_older_than_its_watch_has_the_time_that_it_states(name):
    script, at = TIMES[name]
    entries, put = [], Window.put

    async def note(window, entry, *, version=""):
        entries.append(entry.record)
        await put(window, entry, version=version)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Window, "put", note)
        followed(Cluster([script]))
    record = entries[-1]
    assert record.observed_at == at
    assert (record.time_quality is TimeQuality.DERIVED) is (at == EARLIER)


@pytest.mark.parametrize(("silence", "is_old"), [(0.0, False), (4.0, False), (6.0, True)], ids=str)
def test_watch_after_a_silence_begins_with_old_changes(silence, is_old):
    first = [3.0, changed("a", "5", written=EARLIER), silence]
    cluster = Cluster([first, [changed("a", "6", written=EARLIER)]])
    entries, put = [], Window.put

    async def note(window, entry, *, version=""):
        entries.append(entry.record)
        await put(window, entry, version=version)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Window, "put", note)
        followed(cluster)
    assert [record.observed_at for record in entries] == [BEGUN, EARLIER if is_old else BEGUN]


AUDITS = {
    "agreement": ([None], {"a": "3"}, [(Audit.AGREES, "")]),
    "one refusal": ([OLD], {"a": "3"}, [(Audit.NOT_MADE, "")]),
    "two refusals": ([OLD, OLD], {"a": "3"}, [(Audit.NOT_MADE, ""), (Audit.NOT_MADE, str(OLD))]),
    "refusals that end": (
        [OLD, AWAY, None, OLD], {"a": "3"},
        [(Audit.NOT_MADE, ""), (Audit.NOT_MADE, str(AWAY)), (Audit.AGREES, ""),
         (Audit.NOT_MADE, "")]),
    "object with another version": ([None], {"a": "2"}, [(Audit.DIFFERS, "")]),
    "object that is not listed": ([None], {}, [(Audit.DIFFERS, "")]),
    "object that is not known": ([None], {"a": "3", "b": "2"}, [(Audit.DIFFERS, "")]),
    "after a difference": (
        [None, None], {}, [(Audit.DIFFERS, ""), (Audit.AGREES, "")]),
}  # fmt: skip
"""Answers to lists of versions; what each audit says, and what is said to be uncompared."""


@pytest.mark.parametrize("name", AUDITS)
def test_audit_compares_what_is_known_with_the_cluster(name):
    answers, objects, reports = AUDITS[name]
    cluster = Cluster(answers, listed=("3", objects))

    async def run():
        clock = virtual_loop.LoopClock(asyncio.get_running_loop(), BEGUN)
        follower = Follower(
            cluster,
            PODS,
            Window(clock, WindowBounds()),
            start=Start(known=KnownObjects(objects={("", "a"): ("uid-a", "3")}), position="3"),
            clock=clock,
            last_of=None,
            bounds=BOUNDS,
            audit_budget=AuditBudget(pages_per_minute=60.0, clock=clock),
        )
        return [(await follower.audit(), follower.uncompared) for _ in answers]

    assert virtual_loop.run(run()) == reports
