"""What a recorder says of lost changes: their first cause, and those of several kinds at once."""

import asyncio
from contextlib import asynccontextmanager

import anyio
import pytest

from app.bootstrap.recording.recorders import ScreenGaps
from app.domain.errors import Expired
from app.domain.log import ObjectKey
from app.domain.log.recorded_cluster import ListPage, ServedKind
from app.domain.values.timestamps import Instant
from app.service.recording.audit_budget import AuditBudget
from app.service.recording.following import Follower, FollowingBounds, Start, gap
from app.service.recording.journal import NewGaps
from app.service.recording.known import KnownObjects
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
