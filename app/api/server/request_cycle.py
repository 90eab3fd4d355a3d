"""One request and its response on a connection; a complete response is sent in one step.

Nearly every request arrives whole and gets a whole response. For these the several ASGI messages of
each request have no use: an application that knows this class takes the body and sends the response
directly (`messages.Direct`). Streams, bodies that are still arriving and clients that do not read
their responses use the ASGI messages.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from app.api.server.messages import DIRECT, Header

_JOINED_BYTES_MAX = 64 * 1024
"""Above this size, copying costs more than a second system call."""


class Exchange(RequestResponseCycle):
    """The state of one request. A connection creates it."""

    flow: FlowControl

    def __init__(
        self, connection: HttpToolsProtocol, transport: asyncio.Transport, *, keep_alive: bool
    ) -> None:
        # Written out instead of calling the base class: this runs for each request.
        self.scope = connection.scope
        self.transport = transport
        self.flow = connection.flow
        self.logger = connection.logger
        self.access_logger = connection.access_logger
        self.access_log = connection.access_log
        self.default_headers = connection.server_state.default_headers
        self.message_event = asyncio.Event()
        self.on_response = connection.on_response_complete
        self.disconnected = False
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = connection.expect_100_continue
        self.body = bytearray()
        self.more_body = True
        self.response_started = False
        self.response_complete = False
        self.chunked_encoding: bool | None = None
        self.expected_content_length = 0
        cast(Any, self.scope)[DIRECT] = self

    def take_body(self) -> bytes | None:
        """The body if it has arrived whole and nothing has read it yet; else None."""
        if self.more_body or self.waiting_for_100_continue or self.disconnected:
            return None
        body, self.body = self.body, bytearray()
        self.message_event.clear()
        return bytes(body)

    def answer(self, status: int, headers: Sequence[Header], body: bytes) -> bool:
        """Send a whole response; False, with nothing sent, when it must use ASGI messages."""
        if self.response_started or self.disconnected or self.flow.write_paused or self.access_log:
            return False
        lines = [b"%b: %b\r\n" % header for header in (*self.default_headers, *headers)]
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or b"\0" in head:
            return False
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.chunked_encoding = False
        start = b"%b%b\r\n" % (STATUS_LINE[status], head)
        if len(body) > _JOINED_BYTES_MAX:
            self.transport.write(start)
            self.transport.write(body)
        else:
            self.transport.write(start + body)
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
        return True
