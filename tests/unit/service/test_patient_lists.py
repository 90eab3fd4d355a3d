"""Requests of a recorder that begins: which are repeated, how often, and after what pauses."""

import asyncio

import pytest

from app.domain.errors import (
    ClusterUnreachable,
    Expired,
    Forbidden,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from app.domain.log.recorded_cluster import ListPage, ServedKind
from app.service.recording import snapshot
from app.service.recording.snapshot import SnapshotBounds
from tests.crash import virtual_loop

PODS = ServedKind(group="", version="v1", resource="pods", kind="Pod", is_namespaced=True)
PAGE = ListPage(items=(), version="7", token="more")
BOUNDS = SnapshotBounds(tries_max=4, pause_seconds=0.5)

SILENT = ClusterUnreachable("no answer in time")
BROKEN = ClusterUnreachable("the connection broke", is_broken=True)
REFUSED = ClusterUnreachable("a certificate is not accepted", is_refused=True)
DENIED, GONE = Forbidden("no"), NotFound("no such kind", resource="pods", name="")
UNKNOWN, OLD = Unauthorized("who are you"), Expired("too old")


def busy(seconds):
    return TooManyRequests("come back later", retry_after_seconds=seconds)


class Cluster:
    """Answers each request with the next of some problems, and then with a page."""

    def __init__(self, problems):
        self.problems, self.times = list(problems), []

    async def list_page(self, kind, *, limit, version="", token=""):
        assert (kind, limit, version, token) == (PODS, 3, "5", "t")
        return await self.answer()

    async def answer(self):
        self.times.append(asyncio.get_running_loop().time())
        if self.problems:
            raise self.problems.pop(0)
        return PAGE


PAGES = {
    "answer": ([], [0], None),
    "one silence": ([SILENT], [0, 0.5], None),
    "silences double the pause": ([SILENT] * 3, [0, 0.5, 1.5, 3.5], None),
    "too many silences": ([SILENT] * 4, [0, 0.5, 1.5, 3.5], SILENT),
    "broken connections": ([BROKEN] * 2, [0, 0.5, 1.5], None),
    "refused certificate": ([REFUSED], [0], REFUSED),
    "refused certificate after a silence": ([SILENT, REFUSED], [0, 0.5], REFUSED),
    "busy server": ([busy(8)], [0, 8], None),
    "busy server that comes back soon": ([busy(0)], [0, 0.5], None),
    "busy server after a silence": ([SILENT, busy(3)], [0, 0.5, 3.5], None),
    "busy server doubles the pause": ([busy(2)] * 3, [0, 2, 6, 14], None),
    "server that is always busy": ([busy(1)] * 4, [0, 1, 3, 7], busy(1)),
    "denied": ([DENIED], [0], DENIED),
    "not served": ([GONE], [0], GONE),
    "unknown user": ([UNKNOWN], [0], UNKNOWN),
    "too old": ([OLD], [0], OLD),
}
"""Problems of a page, the seconds of the requests, and the problem that is raised."""

FIRST = {
    "answer": ([], [0], None, []),
    "broken connection": ([BROKEN], [0, 0.5], None, ["the connection broke; trying again"]),
    "broken connections double the pause": (
        [BROKEN] * 3, [0, 0.5, 1.5, 3.5], None, ["the connection broke; trying again"] * 3),
    "too many broken connections": (
        [BROKEN] * 4, [0, 0.5, 1.5, 3.5], "the connection broke; tried 4 times",
        ["the connection broke; trying again"] * 3),
    "silence": ([SILENT], [0], "no answer in time", []),
    "refused certificate": ([REFUSED], [0], "a certificate is not accepted", []),
    "broken connection, then another problem": (
        [BROKEN, UNKNOWN], [0, 0.5], "who are you", ["the connection broke; trying again"]),
    "unknown user": ([UNKNOWN], [0], "who are you", []),
    "busy server": ([busy(1)], [0], "come back later", []),
}  # fmt: skip
"""Problems of a first answer, the seconds of the requests, what is raised, and the notes."""


@pytest.mark.parametrize("name", PAGES)
def test_page_is_asked_for_again_as_long_as_that_may_help(name):
    problems, times, raised = PAGES[name]
    cluster = Cluster(problems)

    async def run():
        return await snapshot.patient_page(
            cluster, PODS, BOUNDS, limit=3, version="5", token="t"
        )  # fmt: skip

    check(cluster, run, times, None if raised is None else str(raised))


@pytest.mark.parametrize("name", FIRST)
def test_first_answer_is_asked_for_again_only_where_the_connection_broke(name):
    problems, times, raised, notes = FIRST[name]
    cluster, said = Cluster(problems), []

    async def run():
        return await snapshot.patiently(cluster.answer, BOUNDS, said.append)

    check(cluster, run, times, raised)
    assert said == notes


def check(cluster, run, times, raised):
    if raised is None:
        assert virtual_loop.run(run()) is PAGE
    else:
        with pytest.raises(Exception) as caught:
            virtual_loop.run(run())
        assert str(caught.value) == raised
    assert cluster.times == pytest.approx(times)
