"""A cluster that is not reachable is reported in one plain sentence for all recorded kinds."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from app.adapters.clock import SystemClock
from app.adapters.cluster import discovery
from app.adapters.cluster.cluster import ClusterReader
from app.adapters.cluster.credentials import ClusterCredentials
from app.adapters.cluster.requests import Requests
from app.bootstrap.recording.recorders import request_bounds
from app.bootstrap.rules import rules_for
from app.domain.errors import ClusterUnreachable, TooManyRequests
from app.domain.log.recorded_cluster import ServedKind
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND
from app.service.recording.recorder import together
from app.settings import Settings
from tests.virtual_clock import VirtualClock

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""
HALF = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"


@asynccontextmanager
async def asking(folder, port, *, clock=SystemClock(), **settings):
    path = folder / "kubeconfig"
    path.write_text(KUBECONFIG.format(port=port))
    credentials = ClusterCredentials(str(path), "", clock, seconds=60)
    bounds = request_bounds(Settings(**settings))
    try:
        yield Requests(credentials, clock, bounds)
    finally:
        await credentials.close()


async def refusal(folder, port):
    async with asking(folder, port) as requests:
        with pytest.raises(ClusterUnreachable) as raised:
            await requests.get("/api/v1/pods")
    return str(raised.value)


@asynccontextmanager
async def answering(*answers):
    """A server with these answers, one a request and the last one again; gives its port."""
    left, silent = [*answers], []

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        status, headers, body = left.pop(0) if len(left) > 1 else left[0]
        if not status:
            silent.append(writer)
            return
        head = f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}{headers}\r\n{body}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for writer in silent:
            writer.close()
            await writer.wait_closed()


async def test_server_that_ends_in_the_middle_and_one_that_is_gone(tmp_path):
    async def cut(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HALF)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(cut, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        text = await refusal(tmp_path, port)
    assert text == "/api/v1/pods: the connection ended in the middle of an answer"
    assert await refusal(tmp_path, port) == f"no connection to 127.0.0.1:{port}: Connection refused"


JSON = "Content-Type: application/json\r\n"
BUSY = ("429 Too Many Requests", f"{JSON}Retry-After: 2\r\n", '{"message": "later"}')
DOWN = ("503 Service Unavailable", f"{JSON}Retry-After: 0\r\n", '{"message": "starts"}')
DONE = ("200 OK", JSON, "{}")
SILENCE = ("", "", "")


@pytest.fixture
def pauses(monkeypatch):
    """The seconds for which requests wait; they do not wait in truth."""
    seconds = []

    async def note(pause):
        seconds.append(pause)

    monkeypatch.setattr("app.adapters.cluster.requests.asyncio.sleep", note)
    return seconds


async def test_request_that_is_put_off_is_repeated_when_the_server_says(tmp_path, pauses):
    async with answering(BUSY, DOWN, DONE) as port, asking(tmp_path, port) as requests:
        assert await requests.get("/version") == b"{}"
    assert pauses == [2.0, 1.0]


async def test_request_is_not_put_off_for_ever(tmp_path, pauses):
    bound = {"record_retry_seconds_max": 5.0}
    async with answering(BUSY) as port, asking(tmp_path, port, **bound) as requests:
        with pytest.raises(TooManyRequests, match="later"):
            await requests.get("/version")
    assert pauses == [2.0, 2.0]


class SlowServersClock(VirtualClock):
    """A clock by which each request takes three seconds: one look before it, one after it."""

    def __init__(self):
        super().__init__()
        self.looks = 0

    def steady(self):
        self.looks += 1
        return self.looks * 3 * SECOND


async def test_time_that_a_busy_server_takes_counts_as_well(tmp_path, pauses):
    """Six pauses of two seconds and answers after three each are the 30 s."""
    bound = {"record_retry_seconds_max": 30.0}
    async with (
        answering(BUSY) as port,
        asking(tmp_path, port, clock=SlowServersClock(), **bound) as requests,
    ):
        with pytest.raises(TooManyRequests, match="later"):
            await requests.get("/version")
    assert pauses == [2.0] * 6


async def test_repeated_request_that_is_not_answered_ends_with_the_time_for_repeating(
    tmp_path, pauses
):
    bound = {"record_retry_seconds_max": 2.1}
    async with answering(BUSY, SILENCE) as port, asking(tmp_path, port, **bound) as requests:
        with pytest.raises(ClusterUnreachable, match="/version: no answer in time"):
            await requests.get("/version")


@pytest.mark.parametrize("retry", ["", "Retry-After: soon\r\n", "Retry-After: 86400\r\n"])
async def test_refusal_is_told_at_once_where_the_server_names_no_near_time(tmp_path, pauses, retry):
    busy = ("429 Too Many Requests", retry, "{}")
    async with answering(busy) as port, asking(tmp_path, port) as requests:
        with pytest.raises(TooManyRequests):
            await requests.get("/version")
    assert pauses == []


async def test_page_for_people_is_no_answer_and_no_watch(tmp_path):
    page = ("200 OK", "Content-Type: text/html; charset=utf-8\r\n", "<html>Sign in</html>")
    async with answering(page) as port, asking(tmp_path, port) as requests:
        with pytest.raises(ClusterUnreachable, match="/version: a web page answers"):
            await requests.get("/version")
        with pytest.raises(ClusterUnreachable, match="/pods: a web page answers"):
            async with requests.stream("/pods"):
                pass


async def test_answer_without_a_version_is_no_empty_list(tmp_path):
    async with answering(DONE) as port, asking(tmp_path, port) as requests:
        cluster = ClusterReader(
            requests,
            clock=SystemClock(),
            choice=discovery.choose(),
            rules=rules_for(Profile()),
            namespace="",
            name="c",
        )
        kind = ServedKind(group="", version="v1", resource="pods", kind="Pod", is_namespaced=True)
        with pytest.raises(ClusterUnreachable, match="/pods: the answer is not a list of objects"):
            await cluster.list_page(kind, limit=5)


def test_cause_of_several_kinds_is_told_once():
    gone = "no connection to c:6443: Connection refused"
    assert together({"pods": gone, "nodes": gone, "jobs.batch": gone}) == [gone]
    # The last of them to come back says nothing new.
    assert together({"pods": gone}) == [gone]


def test_path_of_each_kind_makes_no_cause_of_its_own():
    cut = "the connection ended in the middle of an answer"
    denied = "/api/v1/events: events is forbidden"
    problems = {"pods": f"/api/v1/pods: {cut}", "nodes": f"/api/v1/nodes: {cut}", "events": denied}
    assert together(problems) == [f"several kinds: {cut}", f"events: {denied}"]


def test_nothing_is_told_of_kinds_without_a_problem():
    assert together({}) == []
