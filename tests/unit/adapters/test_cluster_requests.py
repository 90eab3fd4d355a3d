"""A cluster that goes away says so in words of people, once for all that is recorded of it."""

import asyncio

import pytest

from app.adapters.clock import SystemClock
from app.adapters.cluster.credentials import ClusterCredentials
from app.adapters.cluster.requests import Requests
from app.bootstrap.recording.recorders import request_bounds
from app.domain.errors import ClusterUnreachable
from app.service.recording.recorder import together
from app.settings import Settings

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""
HALF = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"


async def refusal(folder, port):
    path = folder / "kubeconfig"
    path.write_text(KUBECONFIG.format(port=port))
    credentials = ClusterCredentials(str(path), "")
    requests = Requests(credentials, SystemClock(), request_bounds(Settings()))
    try:
        with pytest.raises(ClusterUnreachable) as raised:
            await requests.get("/api/v1/pods")
    finally:
        await credentials.close()
    return str(raised.value)


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
