"""The client of admission webhooks, over HTTPS.

Each call has its own connection, which is closed afterwards. The response is bounded in bytes and
time. Redirects are not followed.
"""

import os
import ssl
from functools import lru_cache

import anyio
import httptools

from app.domain.objects.review.hooks import WebhookFailed
from app.domain.objects.webhook_targets import WebhookTarget

AUTHORITIES_KEPT_MAX = 64
_CHUNK = 64 * 1024
_TEXT_SHOWN_MAX = 1024
_OK = 200
_NOT_FOUND = 404


class HttpsWebhooks:
    """Calls webhooks; refuses responses of more than `bytes_max` bytes."""

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max

    async def call(self, target: WebhookTarget, body: bytes, *, seconds: int) -> bytes:
        """The body of the response. Raises WebhookFailed with the reason."""
        shown = f"{target.shown}?timeout={seconds}s"
        try:
            with anyio.fail_after(seconds):
                answer = await self._exchange(target, body, seconds)
        except TimeoutError as problem:
            raise _failed(shown, "context deadline exceeded") from problem
        except (OSError, ssl.SSLError, anyio.BrokenResourceError) as problem:
            raise _failed(shown, _reason(target, problem)) from problem
        except anyio.EndOfStream as problem:
            raise _failed(shown, "EOF") from problem
        except httptools.HttpParserError as problem:
            raise _failed(shown, f"malformed HTTP response: {problem}") from problem
        return _accepted(answer)

    async def _exchange(
        self, target: WebhookTarget, body: bytes, seconds: int
    ) -> "_ArrivingResponse":
        context = _context(target.authority)
        stream = await anyio.connect_tcp(
            target.host,
            target.port,
            tls=True,
            ssl_context=context,
            tls_hostname=target.server_name,
            tls_standard_compatible=False,
        )
        async with stream:
            await stream.send(_head(target, len(body), seconds) + body)
            answer = _ArrivingResponse(self._bytes_max)
            while not answer.is_complete:
                try:
                    answer.take(await stream.receive(_CHUNK))
                except anyio.EndOfStream:
                    if not answer.ends_with_connection:
                        raise
                    break
        return answer


class _ArrivingResponse:
    """An HTTP response while it arrives."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._has_length = False
        self.is_complete = False
        self._has_head = False

    @property
    def status(self) -> int:
        """The status code."""
        return int(self._parser.get_status_code())

    @property
    def body(self) -> bytes:
        """The part of the body that has arrived."""
        return b"".join(self._parts)

    @property
    def ends_with_connection(self) -> bool:
        """True if the end of the connection is the end of the body."""
        return self._has_head and not self._has_length

    def take(self, data: bytes) -> None:
        """Parse received bytes. Raises WebhookFailed when there are too many."""
        self._left -= len(data)
        if self._left < 0:
            raise WebhookFailed("failed to call webhook: the response is too large")
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header that defines the end of the body."""
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._has_length = True

    def on_headers_complete(self) -> None:
        """Note the end of the headers."""
        self._has_head = True

    def on_body(self, part: bytes) -> None:
        """Append a part of the body."""
        self._parts.append(part)

    def on_message_complete(self) -> None:
        """Note the end of the response."""
        self.is_complete = True


def _head(target: WebhookTarget, length: int, seconds: int) -> bytes:
    host = target.server_name
    return (
        f"POST {target.path}?timeout={seconds}s HTTP/1.1\r\n"
        f"Host: {host}\r\n"
        "User-Agent: kube-apiserver-admission\r\n"
        "Accept: application/json, */*\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {length}\r\n"
        "Connection: close\r\n\r\n"
    ).encode("ascii")


@lru_cache(maxsize=AUTHORITIES_KEPT_MAX)
def _context(authority: str) -> ssl.SSLContext:
    """The TLS context: trusts the given authority, or this machine's authorities if it is empty."""
    if not authority:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, ValueError) as problem:
        text = "could not get REST client: unable to load root certificates: no PEM certificate"
        raise WebhookFailed(text) from problem


def _accepted(answer: _ArrivingResponse) -> bytes:
    """The body of a successful response. Raises WebhookFailed for another status.

    Parity: objects.md 15.4; texts of client-go.
    """
    if answer.status == _OK:
        return answer.body
    if answer.status == _NOT_FOUND:
        raise WebhookFailed(
            "failed to call webhook: the server could not find the requested resource"
        )
    reply = answer.body[:_TEXT_SHOWN_MAX].decode(errors="replace").strip() or "unknown"
    raise WebhookFailed(
        f'failed to call webhook: an error on the server ("{reply}") '
        "has prevented the request from succeeding"
    )


def _failed(shown: str, reason: str) -> WebhookFailed:
    return WebhookFailed(f'failed to call webhook: Post "{shown}": {reason}')


def _reason(target: WebhookTarget, problem: BaseException) -> str:
    """The reason of a failure in short: refused, reset, an untrusted certificate."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {problem.verify_message}"
    inner = problem.__cause__ or problem
    if isinstance(inner, ExceptionGroup) and inner.exceptions:
        inner = inner.exceptions[0]
    if isinstance(inner, ConnectionRefusedError):
        return f"dial tcp {target.host}:{target.port}: connect: connection refused"
    if isinstance(inner, OSError) and inner.errno and not isinstance(inner, ssl.SSLError):
        return os.strerror(inner.errno).lower() if inner.errno > 0 else str(inner.strerror)
    return str(inner) or type(inner).__name__
