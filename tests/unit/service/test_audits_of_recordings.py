"""The comparisons of a recording with its cluster cost a large cluster no more than a small one."""

import asyncio
from collections import Counter
from dataclasses import replace

import anyio
import pytest

from app.domain.errors import ClusterUnreachable
from app.domain.log.recorded_cluster import ObjectVersion, ServedKind
from app.domain.values.timestamps import Instant
from app.service.recording.audit_budget import AuditBudget
from app.service.recording.following import Follower, FollowingBounds
from app.service.recording.known import KnownObjects, Start
from app.service.recording.window import Window, WindowBounds
from tests.crash import virtual_loop

PAGE = 10
KIND = ServedKind(group="", version="v1", resource="", kind="Any", is_namespaced=False)


class Cluster:
    """Answers lists of versions; `pages` are the kind and the second of each."""

    name, clock_offset, clock_spread = "cluster", 0, 0

    def __init__(self, sizes, *, is_away=False):
        self.sizes = sizes
        self.is_away = is_away
        self.pages = []

    async def versions_page(self, kind, *, limit, version, token=""):
        self.pages.append((kind.resource, asyncio.get_running_loop().time(), token))
        if self.is_away:
            raise ClusterUnreachable("no answer in time")
        begin = int(token or 0)
        numbers = range(begin, min(begin + limit, self.sizes[kind.resource]))
        more = str(begin + limit) if begin + limit < self.sizes[kind.resource] else ""
        return [ObjectVersion("", f"o{n}", f"u{n}", "5") for n in numbers], more

    async def list_page(self, kind, *, limit, version="", token=""):
        raise ClusterUnreachable("no answer in time")


def compared(cluster, minutes, *, pages_per_minute=60.0):
    """The cluster after so many minutes with a recorder that has lost nothing."""
    bounds = FollowingBounds(page_max=PAGE, audit_pages_per_minute=pages_per_minute)

    async def run():
        clock = virtual_loop.LoopClock(asyncio.get_running_loop(), Instant(0))
        budget = AuditBudget(pages_per_minute=pages_per_minute, clock=clock)
        with anyio.move_on_after(minutes * 60):
            async with anyio.create_task_group() as tasks:
                for resource, size in cluster.sizes.items():
                    known = {("", f"o{n}"): (f"u{n}", "5") for n in range(size)}
                    follower = Follower(
                        cluster,
                        replace(KIND, resource=resource),
                        Window(clock, WindowBounds()),
                        start=Start(known=KnownObjects(objects=known), position="7"),
                        clock=clock,
                        last_of=None,
                        bounds=bounds,
                        audit_budget=budget,
                    )
                    tasks.start_soon(follower.audits)
        return cluster

    return virtual_loop.run(run())


def audits(cluster):
    return Counter(resource for resource, _, token in cluster.pages if not token)


def test_small_cluster_is_compared_each_minute():
    cluster = compared(Cluster({f"kind{n}": 3 for n in range(20)}), 30)
    # Each pause is between a half and all of the 60 s.
    assert all(30 <= count <= 60 for count in audits(cluster).values())
    assert len(audits(cluster)) == 20


def test_large_cluster_is_listed_no_faster_and_no_kind_is_left_out():
    sizes = {"pods": 1_000, "events": 600, "nodes": 50} | {f"kind{n}": 3 for n in range(20)}
    cluster = compared(Cluster(sizes), 60)
    # Beyond the budget there is at most the audit that is under way.
    assert len(cluster.pages) <= 60 * 60 + 100
    counts = audits(cluster)
    assert counts.keys() == sizes.keys()
    # One round of all kinds is 186 pages, so 186 s.
    assert all(15 <= count <= 25 for count in counts.values())


def test_cluster_that_does_not_answer_is_asked_within_the_budget():
    sizes = {f"kind{n}": 3 for n in range(20)}
    cluster = compared(Cluster(sizes, is_away=True), 60, pages_per_minute=5)
    assert len(cluster.pages) <= 5 * 60 + 1
    assert audits(cluster).keys() == sizes.keys()


def test_pages_that_nobody_expected_put_the_next_audit_off():
    async def run():
        loop = asyncio.get_running_loop()
        clock = virtual_loop.LoopClock(loop, Instant(0))
        budget = AuditBudget(pages_per_minute=60, clock=clock)
        times = []
        for expected, listed in ((1, 30), (5, 5), (1, 1)):
            await budget.wait(expected)
            times.append(loop.time())
            budget.settle(listed, expected=expected)
        return times

    assert virtual_loop.run(run()) == pytest.approx([0, 30, 35])
