"""Requests and responses as handlers see them; a thin layer over ASGI."""

import asyncio
import zlib
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    MutableMapping,
    Sequence,
)
from contextlib import aclosing
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeAlias
from urllib.parse import parse_qsl

import anyio
import msgspec

from app.domain.errors import BadRequest, TooLarge

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"

_CACHE_CONTROL: Header = (b"cache-control", b"no-cache, private")
_PARAMETERS_MAX = 1_000
_PLAIN_QUERY_MAX = 2_000


DIRECT = "redra.direct"
"""The key in the ASGI scope under which a connection of redra puts itself as `Direct`."""

PEER = "redra.peer"
"""The key in the ASGI scope for the name and groups of a client certificate."""

PUSH = "redra.push"
"""The key in the ASGI scope of a watch for the push to its connection, if there is one."""


class Direct(Protocol):
    """The connection of a request, without the messages of ASGI (`request_cycle`)."""

    def take_body(self) -> bytes | None:
        """The whole body; None when it has not arrived completely."""
        ...

    def answer(self, status: int, headers: Sequence[Header], body: bytes) -> bool:
        """Send a whole response; False when nothing was sent."""
        ...


class RequestLabels(NamedTuple):
    """The labels of a request in the metrics of API servers. Empty for other pages."""

    history: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""


NO_SUBJECT = RequestLabels()


class ClientGone(Exception):
    """The client closed the connection before its request was complete; no response is sent."""


class HttpRequest:
    """One HTTP request. Headers and query are parsed on first use.

    `subject` is the resource of the request, once it is known to be served; it labels the metrics.
    """

    __slots__ = ("_headers", "_query", "method", "path", "receive", "scope", "subject")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._headers: dict[bytes, bytes] | None = None
        self._query: dict[str, list[str]] | None = None
        self.subject: RequestLabels = NO_SUBJECT

    def header(self, name: bytes) -> str:
        """The value of a header (lower-case name); empty when it is absent."""
        headers = self._headers
        if headers is None:
            headers = self._headers = dict(self.scope["headers"])
        return headers.get(name, b"").decode("latin-1")

    def header_list(self, name: bytes) -> list[str]:
        """All values of a header that may be repeated."""
        return [value.decode("latin-1") for key, value in self.scope["headers"] if key == name]

    @property
    def query(self) -> dict[str, list[str]]:
        """The query parameters; a parameter without `=` is an empty text."""
        query = self._query
        if query is None:
            query = self._query = _parse_query(self.scope["query_string"])
        return query

    def parameter(self, name: str) -> str:
        """The first value of a query parameter; empty when it is absent."""
        values = self.query.get(name)
        return values[0] if values else ""

    def flag(self, name: str) -> bool:
        """A boolean parameter: absent, `0` and `false` are false, other values are true."""
        values = self.query.get(name)
        return values is not None and values[0].lower() not in ("0", "false")

    async def body(self, *, bytes_max: int, seconds_max: float) -> bytes:
        """The whole body, within `seconds_max`. Raises TooLarge, BadRequest (slow), ClientGone."""
        declared = self.header(b"content-length")
        if declared.isdigit() and int(declared) > bytes_max:
            raise _too_large(bytes_max)
        direct: Direct | None = self.scope.get(DIRECT)
        whole = direct.take_body() if direct is not None else None
        if whole is not None:
            return _bounded(whole, bytes_max)
        message = await self._receive_part(seconds_max)
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            return _bounded(body, bytes_max)
        parts, size = [body], len(body)
        deadline = anyio.current_time() + seconds_max
        while message.get("more_body", False):
            message = await self._receive_part(deadline - anyio.current_time())
            part: bytes = message.get("body", b"")
            parts.append(part)
            size += len(part)
            if size > bytes_max:
                raise _too_large(bytes_max)
        return b"".join(parts)

    async def _receive_part(self, seconds_max: float) -> Message:
        begun = _StartedReceive(self.receive())
        if begun.is_done:
            # Nearly always the body has already arrived, and no timeout is needed.
            message = begun.message
        else:
            try:
                async with asyncio.timeout(seconds_max):
                    message = await begun
            except TimeoutError:
                raise BadRequest("the body did not arrive in time") from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message


class _StartedReceive:
    """A `receive` that has run up to its first wait, if any; `await` continues it."""

    __slots__ = ("_coroutine", "_waits_for", "is_done", "message")

    def __init__(self, awaitable: Awaitable[Message]) -> None:
        self._coroutine = awaitable.__await__()
        self.message: Message = {}
        try:
            self._waits_for = next(self._coroutine)
        except StopIteration as end:
            self.is_done = True
            self.message = end.value
        else:
            self.is_done = False

    def __await__(self) -> Generator[Any, Any, Message]:
        try:
            while True:
                try:
                    yield self._waits_for
                except BaseException as thrown:
                    # A cancellation belongs to the inner wait.
                    self._waits_for = self._coroutine.throw(thrown)
                else:
                    self._waits_for = next(self._coroutine)
        except StopIteration as end:
            message: Message = end.value
            return message


class Response(msgspec.Struct, frozen=True):
    """A complete response."""

    body: bytes
    status: int = 200
    content_type: bytes = JSON
    headers: tuple[Header, ...] = ()


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """A response sent in chunks; it ends when the iterator ends or the client disconnects."""

    chunks: AsyncGenerator[bytes, None]
    content_type: bytes = JSON
    headers: tuple[Header, ...] = ()


def warning(text: str) -> Header:
    """A Warning header that kubectl prints. Parity: api.md 1."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    safe = "".join(letter if letter.isprintable() else " " for letter in escaped)
    return (b"warning", f'299 - "{safe}"'.encode("utf-8", "replace"))


async def send_answer(
    answer: Response, request: HttpRequest, send: Send, *, compress_from: int
) -> None:
    """Send a complete response, compressed when it is large and the client accepts it.

    Parity: api.md 1; JSON ends with a line feed.
    """
    body = answer.body
    if answer.content_type is JSON and body and not body.endswith(b"\n"):
        body += b"\n"
    headers = [
        (b"content-type", answer.content_type),
        *answer.headers,
    ]
    if not answer.headers or all(name != b"cache-control" for name, _ in answer.headers):
        headers.append(_CACHE_CONTROL)
    if answer.status >= 400:
        headers.append((b"x-content-type-options", b"nosniff"))
    if 0 < compress_from <= len(body) and "gzip" in request.header(b"accept-encoding"):
        body = await anyio.to_thread.run_sync(_gzip, body)
        headers.append((b"content-encoding", b"gzip"))
    if answer.status not in (204, 304):
        headers.append((b"content-length", b"%d" % len(body)))
    if request.method == "HEAD":
        body = b""
    direct: Direct | None = request.scope.get(DIRECT)
    if direct is not None and direct.answer(answer.status, headers, body):
        return
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_stream(
    stream: Stream, request: HttpRequest, send: Send, *, seconds_max: float
) -> None:
    """Send chunks until they end, the client disconnects, or a chunk exceeds `seconds_max`.

    One task watches the connection, so that a chunk needs no timer of its own.
    """
    headers = [(b"content-type", stream.content_type), _CACHE_CONTROL, *stream.headers]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    sending_since = 0.0

    async def guard() -> None:
        while True:
            with anyio.move_on_after(seconds_max / 2):
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    break
            if sending_since and perf_counter() - sending_since > seconds_max:
                break
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(guard)
        async with aclosing(stream.chunks) as chunks:
            async for chunk in chunks:
                sending_since = perf_counter()
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                sending_since = 0.0
        await send({"type": "http.response.body", "body": b""})
        tasks.cancel_scope.cancel()


def _parse_query(raw: bytes) -> dict[str, list[str]]:
    query: dict[str, list[str]] = {}
    for name, value in _pairs(raw.decode("latin-1")) if raw else ():
        query.setdefault(name, []).append(value)
    return query


def _pairs(text: str) -> list[tuple[str, str]]:
    """Names and values of a query; most queries are short and have no escapes."""
    if "%" not in text and "+" not in text and len(text) <= _PLAIN_QUERY_MAX:
        parts = [part.partition("=") for part in text.split("&")]
        return [(name, value) for name, _, value in parts if name]
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=_PARAMETERS_MAX)
    except ValueError as problem:
        raise BadRequest("the query has too many parameters") from problem


def _bounded(body: bytes, bytes_max: int) -> bytes:
    if len(body) > bytes_max:
        raise _too_large(bytes_max)
    return body


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(f"Request entity too large: limit is {bytes_max}")


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()
