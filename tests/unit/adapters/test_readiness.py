"""Waiting for a database that is starting up, told by a server that speaks just enough."""

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from app.adapters.postgres.readiness import ReadyBounds, wait_until_ready
from app.domain.errors import LogUnavailable, WrongDatabase

BOUNDS = ReadyBounds(seconds=60, pause_first_seconds=0.001, pause_max_seconds=0.001)
STARTING = ("57P03", "the database system is starting up")
WELCOME = (
    b"R" + struct.pack("!ii", 8, 0)
    + b"S" + struct.pack("!i", 4 + 20) + b"server_version\x0017.0\x00"
    + b"Z" + struct.pack("!i", 5) + b"I"
)  # fmt: skip


def refusal(state: str, text: str) -> bytes:
    parts = {"S": "FATAL", "V": "FATAL", "C": state, "M": text}
    body = b"".join(f"{key}{value}\0".encode() for key, value in parts.items()) + b"\0"
    return b"E" + struct.pack("!i", 4 + len(body)) + body


@asynccontextmanager
async def server(*answers: bytes) -> AsyncIterator[tuple[str, list[int]]]:
    """Answers one connection after the other, the last answer for ever; counts them."""
    asked: list[int] = []

    async def answer(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            asked.append(len(asked))
            reply = answers[min(len(asked), len(answers)) - 1]
            await stream.send(reply)
            if reply is WELCOME:
                assert (await stream.receive()).startswith(b"X"), "only a farewell is understood"

    listeners = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listeners.extra(SocketAttribute.local_port)
    async with listeners, anyio.create_task_group() as tasks:
        tasks.start_soon(listeners.serve, answer)
        yield f"postgresql://redra:x@127.0.0.1:{port}/redra?sslmode=disable", asked
        tasks.cancel_scope.cancel()


async def test_server_that_is_starting_up_is_waited_for_and_told_of_once() -> None:
    told: list[str] = []
    starting = refusal(*STARTING)
    async with server(starting, starting, starting, WELCOME) as (url, asked):
        await wait_until_ready(url, BOUNDS, note=told.append)
    assert len(asked) == 4
    assert told == ["waiting up to 60 s for the database: the database system is starting up"]


async def test_server_that_is_ready_is_not_told_of() -> None:
    told: list[str] = []
    async with server(WELCOME) as (url, _):
        await wait_until_ready(url, BOUNDS, note=told.append)
    assert told == []


async def test_waiting_ends_with_the_state_of_the_server() -> None:
    bounds = ReadyBounds(seconds=1, pause_first_seconds=0.3, pause_max_seconds=0.3)
    async with server(refusal(*STARTING)) as (url, _):
        with pytest.raises(LogUnavailable, match="the database server is starting or stopping"):
            await wait_until_ready(url, bounds, note=lambda _text: None)


async def test_wrong_password_is_not_waited_for() -> None:
    told: list[str] = []
    async with server(refusal("28P01", "password authentication failed")) as (url, asked):
        with pytest.raises(WrongDatabase, match="refused the password"):
            await wait_until_ready(url, BOUNDS, note=told.append)
    assert (len(asked), told) == (1, [])
