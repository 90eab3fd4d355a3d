"""Clients that misbehave are refused, and the server goes on serving others."""

import re
import socket
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import anyio
import msgspec
import pytest

from app.api.server.connections import ConnectionBounds
from app.api.server.limits import ApiLimits
from tests.api.listening import PATIENT, running
from tests.api.serving import CONFIG_MAPS, config_map
from tests.patience import PATIENCE_SECONDS

GET = b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n"


@asynccontextmanager
async def listening(bounds=PATIENT, limits=None):
    """A real server on a port of its own; yields the port."""
    async with running(bounds, limits) as server:
        yield server.port


@asynccontextmanager
async def connected(port):
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        yield stream


async def read_all(stream):
    """What comes until the server ends the connection."""
    found = b""
    with anyio.fail_after(PATIENCE_SECONDS):
        try:
            while True:
                found += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return found


async def read_answer(stream):
    """One answer with a content length: status and body."""
    found = b""
    with anyio.fail_after(PATIENCE_SECONDS):
        while b"\r\n\r\n" not in found:
            found += await stream.receive()
        head, _, body = found.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head)[1])
        while len(body) < length:
            body += await stream.receive()
    return int(found[9:12]), body


async def check_serves(port):
    """Raise unless a well-behaved client is served."""
    async with connected(port) as stream:
        await stream.send(GET)
        status, _ = await read_answer(stream)
        assert status == 200


def post(path, length, body=b""):
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return head.encode() + b"content-length: %d\r\n\r\n" % length + body


PATHS = [
    ("/api/v1/../../etc/passwd", 400),
    ("/api/v1/namespaces/%2e%2e/pods", 400),
    ("/api/v1/namespaces/./pods", 400),
    ("/..", 400),
    ("/api/v1/namespaces/a%00b/pods", 400),
    ("/api/v1/namespaces/a%0d%0ab/pods", 400),
    ("//api/v1/pods", 404),
    ("/api//v1/pods", 404),
    ("/api/v1//pods", 404),
    ("/api/v1/namespaces/default%2Fpods%2Fp%2Flog", 404),
    ("/api/v1/namespaces/a/pods/p/../../secrets", 400),
    ("/h/..%2f..%2fdefault/api", 400),
    ("/h//api/v1/pods", 404),
    ("/h/default@/api/v1/pods", 404),
    ("/h/default@-1/api/v1/pods", 400),
    ("/h/default@%00/api/v1/pods", 400),
    ("/h/" + "x" * 5_000 + "/api", 404),
    ("/redra/v1/../../api", 400),
    ("/%ff%fe", 404),
]


@pytest.mark.parametrize(("path", "status"), PATHS)
async def test_path_tricks_are_refused(path, status):
    async with listening() as port, connected(port) as stream:
        await stream.send(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        found, _ = await read_answer(stream)
        assert found == status


@pytest.mark.parametrize(
    "text",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"NONSENSE\r\n\r\n",
        b"GET /version HTTP/9.9\r\n\r\n",
        b"GET /version HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n",
        b"GET /version HTTP/1.1\r\nhost: a\r\nx: a\x00b\r\n\r\n",
        post("/api/v1/namespaces", 5).replace(b"content-length: 5", b"content-length: -5"),
        post("/api/v1/namespaces", 5).replace(b"content-length: 5", b"content-length: x"),
        post("/api/v1/namespaces", 5).replace(
            b"content-length: 5", b"content-length: 5\r\ncontent-length: 6"
        ),
        post("/api/v1/namespaces", 5).replace(
            b"content-length: 5", b"content-length: 5\r\ntransfer-encoding: chunked"
        ),
        b"POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_what_is_not_http_ends_the_connection(text):
    async with listening() as port:
        async with connected(port) as stream:
            await stream.send(text)
            found = await read_all(stream)
            assert found.startswith(b"HTTP/1.1 400 ")
        await check_serves(port)


@pytest.mark.parametrize("target", [b"*", b"http://other/version", b"version"])
async def test_odd_request_targets_are_answered(target):
    async with listening() as port:
        async with connected(port) as stream:
            await stream.send(b"OPTIONS %b HTTP/1.1\r\nhost: a\r\n\r\n" % target)
            with anyio.fail_after(PATIENCE_SECONDS):
                found = await stream.receive()
            assert found[:10] == b"HTTP/1.1 4", found
        await check_serves(port)


async def test_body_that_says_it_is_too_large_is_refused_unread():
    async with listening(limits=ApiLimits(body_bytes_max=1_000)) as port, connected(port) as stream:
        await stream.send(post(CONFIG_MAPS, 10**9))
        status, body = await read_answer(stream)
        assert status == 413
        assert msgspec.json.decode(body)["reason"] == "RequestEntityTooLarge"


async def test_body_without_a_length_is_refused_when_it_grows_too_large():
    head = post(CONFIG_MAPS, 0).replace(b"content-length: 0", b"transfer-encoding: chunked")
    async with (
        listening(limits=ApiLimits(body_bytes_max=10_000)) as port,
        connected(port) as stream,
    ):
        await stream.send(head)
        for _ in range(20):
            await stream.send(b"400\r\n" + b"x" * 1_024 + b"\r\n")
        status, _ = await read_answer(stream)
        assert status == 413


async def test_rest_of_a_refused_body_does_not_keep_the_connection():
    bounds = ConnectionBounds(linger_seconds=0.05)
    limits = ApiLimits(body_bytes_max=1_000)
    async with listening(bounds, limits) as port, connected(port) as stream:
        await stream.send(post(CONFIG_MAPS, 10**6, b"x" * 500))
        assert (await read_all(stream)).startswith(b"HTTP/1.1 413 ")


async def test_body_that_trickles_is_cut_off_as_a_whole():
    limits = ApiLimits(body_seconds_max=0.3)
    bounds = ConnectionBounds(linger_seconds=0.05)
    async with listening(bounds, limits) as port:
        async with connected(port) as stream, anyio.create_task_group() as tasks:
            await stream.send(post(CONFIG_MAPS, 10**6, b"{"))

            async def trickle():
                with suppress(anyio.BrokenResourceError):
                    while True:
                        await stream.send(b" ")

            tasks.start_soon(trickle)
            found = await read_all(stream)
            tasks.cancel_scope.cancel()
            assert found.startswith(b"HTTP/1.1 400 ")
            assert b"did not arrive in time" in found
        await check_serves(port)


async def test_body_shorter_than_its_length_is_not_taken():
    async with listening() as port:
        body = msgspec.json.encode(config_map("m"))
        async with connected(port) as stream:
            await stream.send(post(CONFIG_MAPS, len(body) + 10, body))
            await stream.send_eof()
            await read_all(stream)
        async with connected(port) as stream:
            await stream.send(f"GET {CONFIG_MAPS}/m HTTP/1.1\r\nhost: a\r\n\r\n".encode())
            status, _ = await read_answer(stream)
            assert status == 404


async def test_bytes_beyond_the_length_are_not_part_of_the_body():
    async with listening() as port, connected(port) as stream:
        body = msgspec.json.encode(config_map("m"))
        await stream.send(post(CONFIG_MAPS, len(body), body + b"junk junk\r\n\r\n"))
        found = await read_all(stream)
        assert found.startswith(b"HTTP/1.1 201 ") or b"HTTP/1.1 400 " in found


@pytest.mark.parametrize(
    "text",
    [
        b"GET /version HTTP/1.1\r\nx: " + b"a" * 200_000,
        b"GET /version HTTP/1.1\r\n" + b"x: a\r\n" * 30_000,
        b"GET /" + b"a" * 200_000,
        b"GET /version HTTP/1.1\r\nx: " + b"a" * 70_000 + b"\r\n\r\n",
    ],
)
async def test_huge_headers_are_refused(text):
    async with listening() as port:
        async with connected(port) as stream:
            await stream.send(text)
            assert b"HTTP/1.1 431 " in await read_all(stream)
        await check_serves(port)


async def test_headers_that_do_not_end_are_cut_off():
    async with listening(ConnectionBounds(header_seconds_max=0.1)) as port:
        async with connected(port) as stream:
            await stream.send(b"GET /version HTTP/1.1\r\nhost: a\r\n")
            assert (await read_all(stream)).startswith(b"HTTP/1.1 408 ")
        await check_serves(port)


async def test_second_request_has_a_time_of_its_own():
    async with listening(ConnectionBounds(header_seconds_max=0.1)) as port, connected(port) as s:
        await s.send(GET)
        assert (await read_answer(s))[0] == 200
        await s.send(b"GET /version HTTP/1.1\r\nhost: a\r\n")
        assert (await read_all(s)).startswith(b"HTTP/1.1 408 ")


async def test_connection_that_says_nothing_is_closed_without_a_word():
    async with listening(ConnectionBounds(header_seconds_max=0.1)) as port, connected(port) as s:
        assert await read_all(s) == b""


async def test_client_that_does_not_take_its_answer_is_cut_off():
    bounds = ConnectionBounds(send_seconds_max=0.2)
    async with running(bounds) as server:
        port, connections = server.port, server.connections
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            await anyio.to_thread.run_sync(slow.connect, ("127.0.0.1", port))
            document = b"GET /openapi/v3/apis/apps/v1 HTTP/1.1\r\nhost: a\r\n\r\n"
            slow.sendall(document * 200)  # far more than any socket buffers
            slow.settimeout(20)

            def read_until_cut():
                total = 0
                try:
                    while part := slow.recv(65_536):
                        total += len(part)
                except ConnectionResetError:
                    pass
                return total

            with anyio.fail_after(PATIENCE_SECONDS):
                while not connections:
                    await anyio.lowlevel.checkpoint()
                while connections:  # noqa: ASYNC110 - a set of uvicorn's
                    await anyio.sleep(0.01)  # waits: for the server to cut it off
            taken = await anyio.to_thread.run_sync(read_until_cut)
        async with connected(port) as stream:
            await stream.send(document)
            _, body = await read_answer(stream)
        assert taken < 200 * len(body)


async def test_thousand_half_open_connections_are_bounded_and_leave_the_server_well():
    bounds = ConnectionBounds(connections_max=200, header_seconds_max=3_600)
    async with listening(bounds) as port, AsyncExitStack() as stack:
        streams = []
        for _ in range(1_000):
            stream = await stack.enter_async_context(connected(port))
            streams.append(stream)
            with suppress(anyio.BrokenResourceError):
                await stream.send(b"GET /version HTTP/1.1\r\n")
        refused = [await read_all(stream) for stream in streams[200:]]
        assert all(answer.startswith(b"HTTP/1.1 503 ") or not answer for answer in refused)
        for stream in streams[:200]:
            await stream.send(b"host: a\r\n\r\n")
            assert (await read_answer(stream))[0] == 200
            await stream.aclose()
        await check_serves(port)
