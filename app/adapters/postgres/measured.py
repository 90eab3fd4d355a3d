"""Connections whose results are bounded in bytes, and whose statements are bounded in memory.

The number of rows alone bounds nothing: one value may have a gigabyte, and the driver holds
the whole message of a row before anything can look at it. So the bytes are counted as they arrive,
and a connection with more of them is closed; the server gives up what is left.

The server's own memory is bounded by the operating system. A process of PostgreSQL that is refused
memory ends the statement, and no other session notices.
"""

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy

_CREDENTIALS = struct.Struct("3i")
"""The credentials of the other end of a Unix socket, from the kernel: process, user and group."""


class MeasuredConnection(asyncpg.Connection):
    """A connection of the driver that counts the bytes that it receives."""

    __slots__ = ("_reception",)

    def __init__(
        self,
        protocol: asyncio.Protocol,
        transport: asyncio.Transport,
        *others: object,
    ) -> None:
        super().__init__(protocol, transport, *others)  # type: ignore[arg-type]  # as the driver
        self._reception = _Reception(protocol, transport)
        transport.set_protocol(self._reception)

    @contextmanager
    def result_of_at_most(self, bytes_max: int) -> Iterator["_Reception"]:
        """Close the connection when more than `bytes_max` bytes arrive within the context.

        Statements then fail as with any lost connection, and `is_over` of the value is set.
        """
        self._reception.left = bytes_max
        try:
            yield self._reception
        finally:
            self._reception.left = None

    def bound_memory(self, bytes_max: int) -> None:
        """Let the session's process have at most `bytes_max` bytes of its own memory.

        This works on Linux, for a server that is reached by a Unix socket and whose processes this
        one may change: above all for the embedded server. Elsewhere it does nothing.
        """
        if sys.platform == "linux" and self._reception.is_process_near(self.get_server_pid()):
            import resource

            with contextlib.suppress(OSError):
                resource.prlimit(
                    self.get_server_pid(), resource.RLIMIT_DATA, (bytes_max, bytes_max)
                )


def measured(connection: PoolConnectionProxy) -> MeasuredConnection:
    """The measured connection behind the pool's proxy, which passes on all attributes."""
    return cast(MeasuredConnection, connection)


class _Reception(asyncio.Protocol):
    """The driver's protocol, behind a count of the bytes; `left` is None where none are counted."""

    def __init__(self, protocol: asyncio.Protocol, transport: asyncio.Transport) -> None:
        self._protocol = protocol
        self._transport = transport
        self.left: int | None = None
        self.is_over = False

    def data_received(self, data: bytes) -> None:
        if self.is_over:
            return
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                self.is_over = True
                self._transport.abort()
                return
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def is_process_near(self, pid: int) -> bool:
        """Whether `pid` is, on this machine, a child of the server at the other end.

        A server in another namespace counts processes in its own way: its numbers mean other
        processes here.
        """
        here = self._transport.get_extra_info("socket")
        if here is None or here.family != socket.AF_UNIX:
            return False
        try:
            known = here.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        server: int = _CREDENTIALS.unpack(known)[0]
        return 0 < server != os.getpid() and int(fields[1]) == server
