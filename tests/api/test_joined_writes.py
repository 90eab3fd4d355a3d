"""The head of an answer and the first part of its body leave in one write."""

import asyncio

from app.api.server.connections import JoinedWrites

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Wire(asyncio.Transport):
    """What reached the other side, a piece for each call of the system."""

    def __init__(self):
        super().__init__()
        self.pieces = []
        self.is_closed = False

    def write(self, data):
        assert not self.is_closed, "written after closing"
        self.pieces.append(bytes(data))

    def close(self):
        self.is_closed = True

    def is_closing(self):
        return self.is_closed


async def test_head_and_body_are_one_piece():
    wire = Wire()
    joined = JoinedWrites(wire, asyncio.get_running_loop())
    joined.write(HEAD)
    assert wire.pieces == []
    joined.write(b"ok")
    await asyncio.sleep(0)  # one turn of the loop, no time
    assert wire.pieces == [HEAD + b"ok"]


async def test_head_without_body_goes_with_the_next_turn():
    wire = Wire()
    joined = JoinedWrites(wire, asyncio.get_running_loop())
    joined.write(HEAD)
    await asyncio.sleep(0)  # one turn of the loop, no time
    assert wire.pieces == [HEAD]
    joined.write(b"later")
    assert wire.pieces == [HEAD, b"later"]


async def test_large_body_is_not_copied():
    wire = Wire()
    joined = JoinedWrites(wire, asyncio.get_running_loop())
    body = b"x" * 100_000
    joined.write(HEAD)
    joined.write(body)
    assert wire.pieces == [HEAD, body]


async def test_closing_sends_what_was_held_back():
    wire = Wire()
    joined = JoinedWrites(wire, asyncio.get_running_loop())
    joined.write(HEAD)
    joined.close()
    assert wire.pieces == [HEAD]
    assert joined.is_closing()


async def test_head_held_for_a_client_that_is_gone_is_dropped():
    wire = Wire()
    joined = JoinedWrites(wire, asyncio.get_running_loop())
    joined.write(HEAD)
    wire.close()
    await asyncio.sleep(0)  # one turn of the loop, no time
    assert wire.pieces == []


async def test_interim_answer_is_not_lost_before_the_real_one():
    wire = Wire()
    joined = JoinedWrites(wire, asyncio.get_running_loop())
    joined.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    joined.write(HEAD)
    joined.write(b"ok")
    await asyncio.sleep(0)  # one turn of the loop, no time
    assert b"".join(wire.pieces) == b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"ok"
