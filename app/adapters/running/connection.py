"""Requests to a redra server, with whole or streamed responses.

A refusal raises the error of its Status. Any other failure raises ServerUnreachable.
"""

import http.client
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from app.adapters.running.credentials import ServerLogin
from app.domain.errors import (
    Conflict,
    Forbidden,
    InputError,
    NotFound,
    Rejected,
    ServerUnreachable,
    TooLarge,
    TooManyRequests,
    Unauthorized,
)

_REFUSALS: Mapping[int, type[Rejected]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    429: TooManyRequests,
}
_ANSWERS: Mapping[str, tuple[int, ...]] = {"POST": (200, 201, 202)}
"""The status codes of answers, by method; 202 is the start of a job."""
_JSON = "application/json"
_AGENT = "redra"
_STATUS_BYTES_MAX = 64 * 1024
_MESSAGE_MAX = 2_000
_PART_BYTES = 64 * 1024
_NOT_YET = 503
_PAUSE_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingBounds:
    """The bounds of a request: timeouts of the connection and the response, and the response size.

    A followed stream has no response timeout, because it is silent while nothing happens.
    """

    connect_seconds: float = 5.0
    answer_seconds: float = 120.0
    answer_bytes_max: int = 256 * 1024 * 1024


class ServerConnection:
    """Sends requests to one server, with one TCP connection per request."""

    def __init__(self, credentials: ServerLogin, bounds: AskingBounds = AskingBounds()) -> None:
        self._credentials = credentials
        self._bounds = bounds
        place = urlsplit(credentials.url)
        self._host, self._port = place.hostname or "", place.port
        self._front = place.path.rstrip("/")

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._credentials.url

    def get(self, path: str, parameters: Mapping[str, str]) -> bytes:
        """The body of the response to a GET. Raises Rejected, InputError, ServerUnreachable."""
        return self._whole("GET", path, parameters, None)

    def post(self, path: str, parameters: Mapping[str, str], body: object) -> bytes:
        """The body of the response to a POST with a JSON body. Raises the same errors as `get`."""
        return self._whole("POST", path, parameters, json.dumps(body).encode())

    def post_patiently(self, path: str, body: object) -> bytes:
        """The same for a request whose response has no timeout: the work may take minutes."""
        return self._whole("POST", path, {}, json.dumps(body).encode(), is_patient=True)

    def delete(self, path: str) -> bytes:
        """The body of the response to a DELETE. Raises the same errors as `get`."""
        return self._whole("DELETE", path, {}, None)

    def lines(self, path: str, parameters: Mapping[str, str]) -> Iterator[bytes]:
        """The lines of a response, each as soon as it arrives."""
        seconds = None if "follow" in parameters else self._bounds.answer_seconds
        with self._answer("GET", path, parameters, None, seconds=seconds) as answer:
            yield from _lines(answer, self.url, self._bounds.answer_bytes_max)

    def _whole(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        body: bytes | None,
        *,
        is_patient: bool = False,
    ) -> bytes:
        seconds = None if is_patient else self._bounds.answer_seconds
        with self._answer(method, path, parameters, body, seconds=seconds) as answer:
            most = self._bounds.answer_bytes_max
            text = answer.read(most + 1)
            if len(text) > most:
                raise ServerUnreachable(f"{self.url}: an answer of more than {most} bytes")
            _check_whole(answer, self.url)
            return text

    @contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        body: bytes | None,
        *,
        seconds: float | None,
    ) -> Iterator[http.client.HTTPResponse]:
        present = {name: value for name, value in parameters.items() if value}
        query = f"?{urlencode(present)}" if present else ""
        headers = {"accept": _JSON, "user-agent": _AGENT, **self._credentials.headers}
        if body is not None:
            headers["content-type"] = _JSON
        target = f"{self._front}{path}{query}"
        waited = 0
        connection = self._connection()
        try:
            while True:
                connection.connect()
                connection.sock.settimeout(seconds)
                connection.request(method, target, body, headers)
                answer = connection.getresponse()
                if answer.status in _ANSWERS.get(method, (200,)):
                    break
                body_read = answer.read(_STATUS_BYTES_MAX)
                pause = _pause(answer.status, body_read)
                if pause is None or waited + max(pause, 1) > self._bounds.answer_seconds:
                    raise _refusal(answer.status, body_read, self.url)
                connection.close()
                time.sleep(pause)  # waits: the server is opening the history, and says how long
                waited += max(pause, 1)
            yield answer
        except ssl.SSLError as problem:
            raise ServerUnreachable(
                f"{self.url}: the connection is not trusted: {problem}; name a --context, or the "
                "certificate of the server's authority in REDRA_SERVER_AUTHORITY_FILE"
            ) from problem
        except TimeoutError as problem:
            raise ServerUnreachable(f"{self.url}: no answer in time") from problem
        except (OSError, http.client.HTTPException) as problem:
            text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
            raise ServerUnreachable(f"{self.url}: {text}") from problem
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        seconds = self._bounds.connect_seconds
        tls = self._credentials.tls
        if tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        name = self._credentials.server_name
        return _Encrypted(self._host, self._port, timeout=seconds, context=tls, server_name=name)


class _Encrypted(http.client.HTTPSConnection):
    """A connection to a server whose certificate may be for another name than its address."""

    def __init__(
        self,
        host: str,
        port: int | None,
        *,
        timeout: float,
        context: ssl.SSLContext,
        server_name: str,
    ) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._tls = context
        self._server_name = server_name or host

    def connect(self) -> None:
        """Connect, and check the certificate for the name of the server."""
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._server_name)


def _lines(answer: http.client.HTTPResponse, url: str, most: int) -> Iterator[bytes]:
    """The lines of a response; `most` bounds a line.

    Raises ServerUnreachable for an incomplete response.
    """
    if answer.length is None and not answer.chunked:
        raise ServerUnreachable(f"{url}: an answer that does not say where it ends")
    rest = b""
    # Other read methods take the end of the connection between two chunks for the end of the
    # response.
    while part := answer.read1(_PART_BYTES):
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > most:
            raise ServerUnreachable(f"{url}: a line of more than {most} bytes")
        yield from lines
    _check_whole(answer, url)
    if rest:
        yield rest


def _pause(code: int, body: bytes) -> int | None:
    """The seconds after which a server that opens the history is asked again; else None."""
    if code != _NOT_YET:
        return None
    try:
        details = json.loads(body)["details"]
        seconds = details["retryAfterSeconds"] if details["kind"] == "histories" else None
    except (ValueError, LookupError, TypeError):
        return None
    return seconds if isinstance(seconds, int) and 0 <= seconds <= _PAUSE_SECONDS_MAX else None


def _check_whole(answer: http.client.HTTPResponse, url: str) -> None:
    if answer.length:
        raise ServerUnreachable(f"{url}: the answer is incomplete")


def _refusal(code: int, body: bytes, url: str) -> Exception:
    """The error for a status code and a Status body."""
    try:
        tree = json.loads(body)
        message = str(tree["message"])[:_MESSAGE_MAX]
        kind = str((tree.get("details") or {}).get("kind", ""))
    except (ValueError, LookupError, TypeError, AttributeError):
        message, kind = "", ""
    if not message:
        return ServerUnreachable(
            f"{url}: the server answers {code}, and its answer is not one of redra"
        )
    if code in (400, 422):
        return InputError(message)
    return _REFUSALS.get(code, Rejected)(message, resource=kind)
