"""One connection of the HTTP server: its client certificate and its time limits.

In addition to the base class: the scope of each request has the name in the client certificate;
connections above the limit are refused; a connection that does not finish its headers, or does not
read its response, is closed. None of this needs a task; each connection has a timer that is not set
again for each request.
"""

import asyncio
import urllib.parse
import weakref
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.api.server.messages import PEER, PUSH
from app.api.server.request_cycle import Exchange

_Subject = tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionBounds:
    """The bounds of one server: numbers of connections, bytes and seconds.

    `header_bytes_max` bounds the request line and headers. `header_seconds_max` is the time from
    the first byte of a request (or from the connect) to the end of its headers. A response of which
    the client reads nothing for `send_seconds_max` is given up. A body that is still arriving after
    the response is discarded for `linger_seconds`; then the connection ends.
    """

    connections_max: int = 10_000
    header_bytes_max: int = 64 * 1024
    header_seconds_max: float = 10.0
    send_seconds_max: float = 30.0
    linger_seconds: float = 2.0


class JoinedWrites:
    """A transport that sends the head and the first part of the body of a response together.

    Each separate write is a system call that wakes the client, here for a head without a body. A
    head waits for the rest of the same turn of the event loop; then it is sent alone, as for a
    watch.
    """

    __slots__ = ("_head", "_loop", "_timer", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self._timer: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:
        """Send the data after the held head; or hold the data when it is a head."""
        if self._head:
            self._send_held(data)
        elif data.startswith(_ANSWER) and data.endswith(_END_OF_HEAD):
            self._head = data
            self._timer = self._loop.call_soon(self._send_held)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Send the held head, then close."""
        if self._head:
            self._send_held()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the transport can send nothing more."""
        return self._transport.is_closing()

    def _send_held(self, data: bytes = b"") -> None:
        head, self._head = self._head, b""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport.is_closing():
            return
        if len(data) > _JOINED_BYTES_MAX:
            self._transport.write(head)
            self._transport.write(data)
        else:
            self._transport.write(head + data)


_ANSWER = b"HTTP/1.1 "
_END_OF_HEAD = b"\r\n\r\n"
_JOINED_BYTES_MAX = 64 * 1024
"""Above this size, copying costs more than a second system call."""


class Pushed:
    """Sends chunks of a response without its task (see `app.api.kubernetes.fanout`).

    It keeps no strong references: the connection and its response may end at any time.
    """

    __slots__ = ("_connection", "_cycle", "_joined")

    def __init__(
        self, connection: "Connection", cycle: RequestResponseCycle, joined: JoinedWrites
    ) -> None:
        self._connection = weakref.ref(connection)
        self._cycle = weakref.ref(cycle)
        self._joined = joined

    def is_ready(self) -> bool:
        """Whether the response has begun and not ended, and the client reads what it is sent."""
        connection, cycle = self._connection(), self._cycle()
        return (
            connection is not None
            and cycle is not None
            and cycle.response_started
            and cycle.chunked_encoding is True
            and not cycle.response_complete
            and not cycle.disconnected
            and not connection.flow.write_paused
        )

    def push(self, framed: bytes) -> bool:
        """Send a framed chunk; False when it cannot be sent now."""
        if not self.is_ready():
            return False
        self._joined.write(framed)
        return True


class Connection(HttpToolsProtocol):
    """A connection with bounds. `connection_class` sets the bounds."""

    bounds = ConnectionBounds()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._peer: tuple[str, tuple[str, ...]] | None = None
        self._header_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._header_bytes = 0
        self._segment = self._since_headers = 0
        self._in_headers = True
        self._joined: JoinedWrites | None = None
        self._quiet_since: float | None = None

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the request is answered as if it had not requested an upgrade."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the class above
        super().connection_made(transport)
        self._joined = JoinedWrites(transport, self.loop)
        if len(self.connections) > self.bounds.connections_max:
            self._refuse(b"503 Service Unavailable", b"too many connections\n")
            return
        certificate = transport.get_extra_info("peercert")
        if certificate:
            self._peer = _named(certificate.get("subject", ()))
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._segment = size = len(data)
        self._since_headers += size
        if self._in_headers:
            self._header_bytes += size
        super().data_received(data)
        if not self._in_headers or not self._header_bytes:
            return
        if self._header_bytes > self.bounds.header_bytes_max:
            self._refuse(b"431 Request Header Fields Too Large", b"the headers are too large\n")
        elif self._header_timer is None and not self.transport.is_closing():
            # Set only now, because the headers of nearly every request arrive in one piece.
            self._await_headers()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope: MutableMapping[str, Any] = cast(Any, self.scope)  # a key of our own
        scope[PEER] = self._peer

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._header_bytes = 0
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None
        # The next headers may begin in the segment that has just arrived.
        arrived, self._since_headers = self._since_headers, self._segment
        if arrived > self.bounds.header_bytes_max:
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if size > self.bounds.header_bytes_max:
                self._refuse(b"431 Request Header Fields Too Large", b"the headers are too large\n")
                return
        self._begin()

    def _begin(self) -> None:
        """Start a response, or queue it after earlier ones; like the base class, with Exchange."""
        parser = self.parser
        scope: MutableMapping[str, Any] = cast(Any, self.scope)  # keys of our own
        version = parser.get_http_version()
        scope["method"] = parser.get_method().decode("ascii")
        if version != "1.1":
            scope["http_version"] = version
        parsed = httptools.parse_url(self.url)
        path = parsed.path.decode("ascii")
        scope["path"] = urllib.parse.unquote(path) if "%" in path else path
        scope["raw_path"] = parsed.path
        scope["query_string"] = parsed.query or b""
        assert self._joined is not None, "made with the connection"
        before, joined = self.cycle, cast(asyncio.Transport, self._joined)
        keep_alive = version != "1.0" and parser.should_keep_alive()
        self.cycle = cycle = Exchange(self, joined, keep_alive=keep_alive)
        if b"watch" in self.url:
            scope[PUSH] = Pushed(self, cycle, self._joined)
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def on_message_complete(self) -> None:
        if self.cycle is not None:
            super().on_message_complete()
        self._in_headers = True
        if self._linger_timer is not None:
            self._linger_timer.cancel()
            self._linger_timer = None

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self._quiet_since = self.loop.time()
            if self.timeout_keep_alive_task is None:
                self._await_request(self.timeout_keep_alive)
        if not self._in_headers and not self.transport.is_closing():
            seconds = self.bounds.linger_seconds
            self._linger_timer = self.loop.call_later(seconds, self.transport.close)

    def _await_request(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def _unset_keepalive_if_required(self) -> None:
        """Note activity. The timer keeps running and checks the note when it fires."""
        self._quiet_since = None

    def timeout_keep_alive_handler(self) -> None:
        """Close after an idle time of `timeout_keep_alive`; otherwise wait for the rest of it."""
        self.timeout_keep_alive_task = None
        if self.transport.is_closing() or self._quiet_since is None:
            return  # being answered: the end of the answer sets the timer again
        left = self._quiet_since + self.timeout_keep_alive - self.loop.time()
        if left <= 0:
            self.transport.close()
        else:
            self._await_request(left)

    def on_body(self, body: bytes) -> None:
        if self.cycle is not None:
            super().on_body(body)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unsent = self.transport.get_write_buffer_size()
        self._watch_sending()

    def resume_writing(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None
        super().resume_writing()

    def _await_headers(self) -> None:
        self._header_timer = self.loop.call_later(self.bounds.header_seconds_max, self._give_up)

    def _give_up(self) -> None:
        self._header_timer = None
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering:
            self.transport.abort()
        elif self._header_bytes == 0:
            # Clients keep idle connections for later use; an unrequested response confuses them.
            self.transport.close()
        elif self._in_headers:
            self._refuse(b"408 Request Timeout", b"the request did not arrive in time\n")

    def _watch_sending(self) -> None:
        self._send_timer = self.loop.call_later(self.bounds.send_seconds_max, self._check_sending)

    def _check_sending(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent >= self._unsent:
            self.transport.abort()
            return
        self._unsent = unsent
        self._watch_sending()

    def _refuse(self, line: bytes, text: bytes) -> None:
        if not self.transport.is_closing():
            head = b"HTTP/1.1 %b\r\ncontent-type: text/plain; charset=utf-8\r\n" % line
            tail = b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(text), text)
            self.transport.write(head + tail)
            self.transport.close()

    def _stop_timers(self) -> None:
        for timer in (self._header_timer, self._send_timer, self._linger_timer):
            if timer is not None:
                timer.cancel()
        self._header_timer = self._send_timer = self._linger_timer = None


def connection_class(bounds: ConnectionBounds) -> type[Connection]:
    """The connection class with these bounds, for the server."""
    return type("BoundedConnection", (Connection,), {"bounds": bounds})


def _named(subject: _Subject) -> tuple[str, tuple[str, ...]] | None:
    """User and groups of a verified certificate: common name and organizations."""
    user = ""
    groups: list[str] = []
    for part in subject:
        for kind, value in part:
            if kind == "commonName":
                user = value
            elif kind == "organizationName":
                groups.append(value)
    return (user, tuple(groups)) if user else None
