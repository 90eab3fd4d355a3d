"""GET requests to a cluster: whole answers and streams of lines; what goes wrong, in our errors.

An answer that is no success raises what its Status says (`Forbidden`, `Expired`, …), whatever keeps
an answer from coming raises ClusterUnreachable. Refused credentials are read again once before
they count as refused.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import urlencode

import aiohttp
import aiohttp_socks
import msgspec

from app.adapters.cluster.credentials import ClusterCredentials, Login
from app.domain.errors import (
    ClusterUnreachable,
    Expired,
    Forbidden,
    NotFound,
    Rejected,
    RevisionTooLarge,
    TooManyRequests,
    Unauthorized,
)
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant
from app.ports import Clock

AGENT = "redra-record"

JSON = "application/json"

NAMES_ONLY = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
"""The media type of lists without specs and statuses; old servers return whole objects instead."""

_REFUSALS: Mapping[int, type[Rejected]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    429: TooManyRequests,
}
_PAGE = "text/html"
"""The content type of an answer by a proxy or a login page instead of the API server."""

_SECONDS_DIGITS = 6
"""The number of digits from which on the text of `Retry-After` is ignored."""

_MESSAGE_MAX = 500
_STATUS_BYTES_MAX = 64 * 1024

_COARSENESS = 2 * SECOND

CONTRADICTIONS_MAX = 4
"""Contradicting answers in a row that are ignored before a further one is believed."""


class ServerClock:
    """Collects the dates of answers; our instants plus `offset` are the server's instants.

    A date has whole seconds, and some servers refresh it once a second. So one answer bounds the
    offset to two seconds plus the time of its round trip; several answers narrow the bounds. A busy
    server may refresh its date late, but a date is never ahead of its clock, so that a later answer
    corrects it.
    """

    def __init__(self) -> None:
        self._low: int | None = None
        self._high = 0
        self._contradictions = 0

    def note(self, date: str, sent: Instant, received: Instant) -> None:
        """Use the `Date` header of an answer; a header that is not a date is ignored."""
        try:
            instant = timestamps.from_datetime(parsedate_to_datetime(date))
        except (TypeError, ValueError):
            return
        low, high = instant - received, instant + _COARSENESS - sent
        if self._low is not None:
            if max(low, self._low) <= min(high, self._high):
                low, high = max(low, self._low), min(high, self._high)
            elif high < self._low and self._contradictions < CONTRADICTIONS_MAX:
                # A busy server may be late with its date.
                self._contradictions += 1
                return
            # Otherwise the earlier dates were late or one of the clocks was set: the earlier
            # bounds are no longer valid.
        self._low, self._high, self._contradictions = low, high, 0

    @property
    def offset(self) -> int:
        """Microseconds by which the server's clock is certainly ahead (negative: behind).

        0 while a zero offset is possible; otherwise the middle of the possible range.
        """
        if self._low is None or self._low <= 0 <= self._high:
            return 0
        return (self._low + self._high) // 2

    @property
    def spread(self) -> int:
        """Microseconds by which the offset may be wrong, if no date was older than one second."""
        return 0 if self._low is None else (self._high - self._low + 1) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBounds:
    """Bounds of requests.

    `connect_seconds`, `answer_seconds` and `silence_seconds` are the times to wait for a
    connection, for an answer, and for the next part of a stream. `retry_seconds_max` bounds the
    repetitions of a request that the server puts off, including the time of its answers, and
    `login_seconds` an exec plug-in.
    """

    connect_seconds: float = 10.0
    answer_seconds: float = 60.0
    silence_seconds: float = 120.0
    page_bytes_max: int = 512 * 1024 * 1024
    line_bytes_max: int = 16 * 1024 * 1024
    retry_seconds_max: float = 30.0
    login_seconds: float = 300.0


class Requests:
    """Requests to one cluster. There is only GET, so users of this class cannot change anything."""

    def __init__(
        self, credentials: ClusterCredentials, clock: Clock, bounds: RequestBounds
    ) -> None:
        self._credentials = credentials
        self._clock = clock
        self._bounds = bounds
        self.server_clock = ServerClock()

    @property
    def place(self) -> str:
        """Kubeconfig and context, for messages."""
        return self._credentials.place

    async def server(self) -> str:
        """The address of the server."""
        return (await self._credentials.login()).server

    async def get(self, path: str, *, accept: str = JSON, **parameters: str) -> bytes:
        """The body of an answer. Raises Rejected, ClusterUnreachable, InputError."""
        timeouts = aiohttp.ClientTimeout(
            sock_connect=self._bounds.connect_seconds, sock_read=self._bounds.answer_seconds
        )
        async with self._answer(path, parameters, timeouts, accept) as answer:
            parts: list[bytes] = []
            size = 0
            async for part in answer.content.iter_any():
                size += len(part)
                if size > self._bounds.page_bytes_max:
                    raise ClusterUnreachable(f"{path}: an answer of more than {size} bytes")
                parts.append(part)
            return b"".join(parts)

    @asynccontextmanager
    async def stream(self, path: str, **parameters: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of an answer as they come; a part of a line at the end is left out.

        Iterating raises ClusterUnreachable when the stream breaks off or is silent for too long.
        """
        timeouts = aiohttp.ClientTimeout(
            sock_connect=self._bounds.connect_seconds, sock_read=self._bounds.silence_seconds
        )
        async with self._answer(path, parameters, timeouts, JSON) as answer:
            yield self._lines(answer, path)

    async def _lines(self, answer: aiohttp.ClientResponse, path: str) -> AsyncIterator[bytes]:
        rest = b""
        with _translated(path):
            async for part in answer.content.iter_any():
                *lines, last = (rest + part).split(b"\n") if b"\n" in part else (rest + part,)
                for line in lines:
                    if line:
                        yield line
                rest = last
                if len(rest) > self._bounds.line_bytes_max:
                    raise ClusterUnreachable(
                        f"{path}: a line of more than {self._bounds.line_bytes_max} bytes"
                    )

    @asynccontextmanager
    async def _answer(
        self,
        path: str,
        parameters: Mapping[str, str],
        timeouts: aiohttp.ClientTimeout,
        accept: str,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        async with AsyncExitStack() as held:
            login, answer = await self._first(held, path, parameters, timeouts, accept)
            if answer.status != Unauthorized.code:
                self._credentials.accept(login)
            left = self._bounds.retry_seconds_max
            while (pause := _retry_pause(answer)) and pause <= left:
                answer.close()
                await asyncio.sleep(pause)
                left -= pause
                sent = self._clock.steady()
                # The time of the server counts as well as the pauses: a busy one answers late, too.
                with _translated(path):
                    async with asyncio.timeout(left):
                        answer = await self._ask(login, path, parameters, timeouts, accept)
                left -= (self._clock.steady() - sent) / SECOND
            try:
                if answer.status != 200:
                    raise await _refusal(answer, path)
                if answer.content_type == _PAGE:
                    raise ClusterUnreachable(f"{path}: a web page answers, not an API server")
                with _translated(path):
                    yield answer
            finally:
                # A stream that is left is not read to its end.
                answer.close()

    async def _first(
        self,
        held: AsyncExitStack,
        path: str,
        parameters: Mapping[str, str],
        timeouts: aiohttp.ClientTimeout,
        accept: str,
    ) -> tuple[Login, aiohttp.ClientResponse]:
        """The first answer, and the credentials with which it came.

        They are read again once where one side refuses the other's: also certificates may have been
        renewed in their files, or the authority that both trust.
        """
        login = await self._credentials.login()
        await held.enter_async_context(self._credentials.held(login))
        try:
            answer = await self._ask(login, path, parameters, timeouts, accept)
            if answer.status != Unauthorized.code:
                return login, answer
        except ClusterUnreachable as problem:
            fresh = login
            if _is_about_certificates(problem, login):
                fresh = await self._credentials.login(refused=login)
            if fresh.number == login.number:
                raise
        else:
            fresh = await self._credentials.login(refused=login)
            if fresh.number == login.number:
                return login, answer
            answer.close()
        await held.aclose()
        await held.enter_async_context(self._credentials.held(fresh))
        return fresh, await self._ask(fresh, path, parameters, timeouts, accept)

    async def _ask(
        self,
        login: Login,
        path: str,
        parameters: Mapping[str, str],
        timeouts: aiohttp.ClientTimeout,
        accept: str,
    ) -> aiohttp.ClientResponse:
        query = f"?{urlencode(parameters)}" if parameters else ""
        headers = {"accept": accept, "user-agent": AGENT, **login.headers}
        sent = self._clock.now()
        with _translated(login.server):
            answer: aiohttp.ClientResponse = await login.rest.GET(
                f"{login.server}{path}{query}",
                headers=headers,
                _preload_content=False,
                _request_timeout=timeouts,
            )
        self.server_clock.note(answer.headers.get("date", ""), sent, self._clock.now())
        return answer


def _retry_pause(answer: aiohttp.ClientResponse) -> float:
    """The seconds after which a refused request is repeated, at least one; 0 for other answers."""
    seconds = answer.headers.get("retry-after", "")
    is_busy = answer.status == TooManyRequests.code or answer.status >= 500
    if not is_busy or not seconds.isdecimal() or len(seconds) >= _SECONDS_DIGITS:
        return 0.0
    return max(1.0, float(seconds))


class _translated:  # noqa: N801 - a context manager, called like a function
    """Turns the driver's errors into ours."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        match problem:
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
                text = f"{self._place}: the connection is not trusted: {problem}"
                raise ClusterUnreachable(text, is_refused=True) from problem
            case aiohttp.ClientHttpProxyError():
                proxy, words = problem.request_info.real_url, f"{problem.status} {problem.message}"
                text = f"the proxy {proxy.host}:{proxy.port} refuses the connection to "
                text += f"{self._place}: {words.strip()}"
                is_broken = problem.status >= 500
                raise ClusterUnreachable(
                    text, is_refused=not is_broken, is_broken=is_broken
                ) from problem
            case aiohttp.ClientProxyConnectionError():
                server, reason = f"{problem.host}:{problem.port}", _reason(problem.os_error)
                text = f"no connection to the proxy {server}: {reason}"
                raise ClusterUnreachable(text) from problem
            case aiohttp.ClientConnectorError():
                server, reason = f"{problem.host}:{problem.port}", _reason(problem.os_error)
                raise ClusterUnreachable(f"no connection to {server}: {reason}") from problem
            case aiohttp.ClientOSError(__cause__=ssl.SSLCertVerificationError() as cause):
                # Behind a SOCKS proxy the driver has no class of its own for it.
                text = f"{self._place}: the connection is not trusted: {cause}"
                raise ClusterUnreachable(text, is_refused=True) from problem
            case aiohttp_socks.ProxyConnectionError() | aiohttp_socks.ProxyTimeoutError():
                text = f"no connection to the proxy: {problem}"
                raise ClusterUnreachable(text) from problem
            case aiohttp_socks.ProxyError():
                text = f"the proxy refuses the connection to {self._place}: {problem}"
                raise ClusterUnreachable(text, is_refused=True) from problem
            case TimeoutError():
                # Before OSError and ClientError, of which times-out are kinds.
                raise ClusterUnreachable(f"{self._place}: no answer in time") from problem
            case aiohttp.ClientPayloadError():
                text = f"{self._place}: the connection ended in the middle of an answer"
                raise ClusterUnreachable(text, is_broken=True) from problem
            case aiohttp.ClientError() | OSError():
                text = f"{self._place}: {str(problem) or type(problem).__name__}"
                is_broken = isinstance(problem, aiohttp.ServerDisconnectedError | OSError)
                raise ClusterUnreachable(text, is_broken=is_broken) from problem


def _is_about_certificates(problem: BaseException | None, login: Login) -> bool:
    """True where one side of a connection does not trust the other, or may not.

    Some servers close the connection without a word to a client whose certificate they refuse. A
    plug-in, which may open a browser, does not run for that.
    """
    while problem is not None and not isinstance(problem, ssl.SSLError):
        if isinstance(problem, aiohttp.ServerDisconnectedError | ConnectionResetError):
            return login.configuration.cert_file is not None and not login.is_of_plugin
        problem = problem.__cause__
    return problem is not None


def _reason(problem: OSError) -> str:
    """The reason why a connection failed, as the operating system words it."""
    number = problem.errno
    return os.strerror(number) if number is not None and number > 0 else str(problem)


class _ApiStatus(msgspec.Struct):
    message: str = ""


async def _refusal(answer: aiohttp.ClientResponse, path: str) -> Exception:
    """The error for an unsuccessful answer."""
    with _translated(path):
        body = await answer.content.read(_STATUS_BYTES_MAX)
    return refusal(answer.status, body, path, answer.headers.get("retry-after", ""))


def refusal(code: int, status: bytes, path: str, retry_after: str = "") -> Exception:
    """The error for a status code and a Status."""
    try:
        text = msgspec.json.decode(status, type=_ApiStatus).message
    except (msgspec.DecodeError, RecursionError):
        text = status.decode(errors="replace")
    text = text.strip()[:_MESSAGE_MAX] or f"the server answers {code}"
    is_number = retry_after.isdecimal() and len(retry_after) < _SECONDS_DIGITS
    seconds = int(retry_after) if is_number else 0
    message = f"{path}: {text}"
    if code == Expired.code:
        return Expired(message)
    if code in _REFUSALS:
        return _REFUSALS[code](message, retry_after_seconds=seconds)
    if "Too large resource version" in text:
        return RevisionTooLarge(message)
    return ClusterUnreachable(f"{message} ({code})", is_broken=code >= 500)
