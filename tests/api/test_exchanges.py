"""Complete answers leave in one step, and everything else goes the usual way."""

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from app.api.server.connections import ConnectionBounds, connection_class

KEEP_ALIVE = 120


class Wire(asyncio.Transport):
    """What reached the other side."""

    def __init__(self):
        super().__init__()
        self.sent = b""
        self.is_closed = False

    def get_extra_info(self, name, default=None):
        return default

    def write(self, data):
        self.sent += data

    def close(self):
        self.is_closed = True

    def is_closing(self):
        return self.is_closed

    def pause_reading(self):
        """Whoever sends on is not looked at here."""

    def resume_reading(self):
        """Nothing was held back."""


class Timers:
    """A loop whose time stands still, and its timers."""

    def __init__(self):
        self.now = 0.0
        self.due = []

    def time(self):
        return self.now

    def call_soon(self, call, *arguments):
        return asyncio.get_running_loop().call_soon(call, *arguments)

    def create_task(self, coroutine):
        return asyncio.get_running_loop().create_task(coroutine)

    def call_later(self, seconds, call):
        handle = asyncio.get_running_loop().call_later(3600, call)
        self.due.append((self.now + seconds, call, handle))
        return handle

    def pass_to(self, now):
        """Call what is due by then."""
        while found := [row for row in self.due if row[0] <= now and not row[2].cancelled()]:
            self.due.remove(found[0])
            found[0][2].cancel()
            self.now = found[0][0]
            found[0][1]()
        self.now = now


class Peer:
    """A connection with an application that does what the test says."""

    def __init__(self, application):
        config = uvicorn.Config(
            application,
            http=connection_class(ConnectionBounds()),
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE,
        )
        config.load()
        self.timers = Timers()
        self.wire = Wire()
        self.connection = config.http_protocol_class(
            config=config, server_state=ServerState(), app_state={}, _loop=self.timers
        )
        self.connection.connection_made(self.wire)

    async def ask(self, text=b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nok"):
        """What is sent within some turns of the loop."""
        before = len(self.wire.sent)
        self.connection.data_received(text)
        for _ in range(5):
            await asyncio.sleep(0)  # waits: for the task of the answer to run
        return self.wire.sent[before:]


def answering(*headers, body=b"done"):
    async def application(scope, receive, send):
        direct = scope["redra.direct"]
        assert direct.take_body() == b"ok"
        if not direct.answer(200, headers, body):
            await send({"type": "http.response.start", "status": 418, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return application


async def test_whole_answer_is_head_and_body():
    peer = Peer(answering((b"content-length", b"4")))
    assert await peer.ask() == b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone"
    assert await peer.ask() == b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone"


async def test_client_that_wants_to_close_is_told_and_closed():
    peer = Peer(answering((b"content-length", b"4")))
    found = await peer.ask(
        b"POST /x HTTP/1.1\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
    )
    assert b"\r\nconnection: close\r\n" in found
    assert peer.wire.is_closed


@pytest.mark.parametrize("value", [b"a\r\nx: y", b"a\nx: y", b"a\rb", b"a\0b"])
async def test_header_that_would_be_two_is_not_sent(value):
    peer = Peer(answering((b"content-length", b"4"), (b"warning", value)))
    assert (await peer.ask()).startswith(b"HTTP/1.1 418 ")


async def test_answers_keep_their_order_when_requests_do_not_wait():
    bodies = []

    async def application(scope, receive, send):
        direct = scope["redra.direct"]
        bodies.append(direct.take_body())
        await asyncio.sleep(0)  # waits: for others, so that later answers could overtake
        assert direct.answer(200, ((b"content-length", b"2"),), bodies[-1])

    peer = Peer(application)
    one = b"POST /x HTTP/1.1\r\ncontent-length: 2\r\n\r\n"
    await peer.ask(one + b"11" + one + b"22" + one + b"33")
    for _ in range(5):
        await asyncio.sleep(0)  # waits: for the answers that stand in line
    assert bodies == [b"11", b"22", b"33"]
    assert [part[:2] for part in peer.wire.sent.split(b"\r\n\r\n")[1:]] == bodies


async def test_body_in_parts_is_not_taken_whole():
    async def application(scope, receive, send):
        assert scope["redra.direct"].take_body() is None
        first = await receive()
        second = await receive()
        assert (first["body"] + second["body"], second["more_body"]) == (b"ok", False)
        assert scope["redra.direct"].answer(200, ((b"content-length", b"0"),), b"")

    peer = Peer(application)
    assert await peer.ask(b"POST /x HTTP/1.1\r\ncontent-length: 2\r\n\r\no") == b""
    assert (await peer.ask(b"k")).startswith(b"HTTP/1.1 200 ")


async def test_idle_connection_is_closed_when_nothing_came_for_long_enough():
    peer = Peer(answering((b"content-length", b"4")))
    await peer.ask()
    peer.timers.pass_to(100.0)
    await peer.ask()
    peer.timers.pass_to(100.0 + KEEP_ALIVE - 1)
    assert not peer.wire.is_closed, "the second request was not so long ago"
    peer.timers.pass_to(100.0 + KEEP_ALIVE)
    assert peer.wire.is_closed


async def test_connection_with_a_request_under_way_is_not_idle():
    go = asyncio.Event()

    async def application(scope, receive, send):
        if scope["path"] == "/slow":
            await go.wait()
        assert scope["redra.direct"].answer(200, ((b"content-length", b"0"),), b"")

    peer = Peer(application)
    await peer.ask(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n")
    peer.timers.pass_to(1.0)
    await peer.ask(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n")
    peer.timers.pass_to(10.0 * KEEP_ALIVE)
    assert not peer.wire.is_closed
    go.set()
    for _ in range(5):
        await asyncio.sleep(0)  # waits: for the slow answer to be sent
    peer.timers.pass_to(11.0 * KEEP_ALIVE)
    assert peer.wire.is_closed


async def test_headers_that_never_end_are_given_up():
    peer = Peer(answering((b"content-length", b"4")))
    await peer.ask()
    await peer.ask(b"POST /x HTTP/1.1\r\nhost: ")
    peer.timers.pass_to(ConnectionBounds().header_seconds_max)
    assert peer.wire.sent.endswith(b"the request did not arrive in time\n")
    assert peer.wire.is_closed
