"""Answers of redra's own API, made in this process, the same as a page or a client gets.

The application runs without a socket over the histories of the store. A user who can open the data
folder may see everything in it.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import urlencode

import msgspec

from app.adapters import schemas
from app.adapters.telemetry import Telemetry
from app.analysis.lint.linting import LintReport
from app.api.application import Application, create_app
from app.api.redra.server_parts import Beside
from app.api.server.messages import Message
from app.bootstrap.answers import relative
from app.bootstrap.answers.limits import api_limits
from app.bootstrap.asking.queries import ServedQuery, refusal
from app.bootstrap.gallery import incident_files
from app.bootstrap.histories import open_histories
from app.bootstrap.stores import Store, find_end, find_history, find_revision
from app.domain.errors import Forbidden, InputError, NotFound, Rejected
from app.domain.log import HistoryInfo, Revision
from app.ports import EventLog
from app.service import moments
from app.settings import Settings

_JSON = b"application/json"


async def ask(store: Store, settings: Settings, query: ServedQuery) -> bytes:
    """The answer to a query, made in this process. Raises InputError, Rejected."""
    answer = await _answer(store, settings, query)
    return await relative.with_meanings(store, query, _body(answer, query))


_Answer = tuple[int, bytes]
"""Status and body."""


def _body(answer: _Answer, query: ServedQuery) -> bytes:
    """The body of an answer that is not a refusal. Raises Rejected, InputError."""
    status, body = answer
    if status < 400:
        return body
    problem = _problem(status, body)
    if isinstance(problem, Rejected):
        raise refusal(problem, query.at) from problem
    raise problem


async def _answer(store: Store, settings: Settings, query: ServedQuery) -> _Answer:
    info = await find_history(store, query.history)
    at = await _moment(store, info, query.at)
    async with open_histories(store, settings) as histories:
        # No other request waits for this process, so answers may take any amount of work.
        usual = api_limits(settings)
        limits = replace(
            usual,
            report_events_max=sys.maxsize,
            scan_events_max=sys.maxsize,
            lint_events_max=sys.maxsize,
            findings_wait_seconds=math.inf,
            body_bytes_max=settings.blast_bytes_max,
            capacity=replace(usual.capacity, at_once_max=usual.capacity.moments_max),
        )
        application = create_app(
            histories,
            schemas=schemas.load,
            meter=Telemetry(),
            limits=limits,
            beside=Beside(
                incident=incident_files.incident,
                gallery=incident_files,
                lint=partial(_lint, settings),
            ),
        )
        return await _call(application, query, at)


async def _lint(
    settings: Settings,
    log: EventLog,
    info: HistoryInfo,
    until: Revision,
    *,
    profile: str,
    ignored: Sequence[str],
) -> LintReport:
    from app.bootstrap.linting import sources  # heavy: it loads the readers of all formats

    return await sources.lint_log(settings, log, info, until, profile=profile, ignored=ignored)


async def _moment(store: Store, info: HistoryInfo, at: str) -> str:
    """A moment as a revision or an instant that stays the same when the history grows."""
    revision = await find_revision(store, info, at, option="--at")
    if not at or moments.is_revision(at):
        return str(revision)
    return moments.absolute(at, await find_end(store, info))


async def _call(application: Application, query: ServedQuery, at: str) -> tuple[int, bytes]:
    """Status and body of the answer to a request."""
    parameters = {name: value for name, value in query.query(at).items() if value}
    sent = b"" if query.body is None else msgspec.json.encode(query.body)
    scope = {
        "type": "http",
        "method": "GET" if query.body is None else "POST",
        "path": query.path(at),
        "query_string": urlencode(parameters).encode(),
        "headers": [(b"accept", _JSON), (b"content-type", _JSON)],
    }
    status, parts = 0, []

    async def receive() -> Message:
        return {"type": "http.request", "body": sent, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            parts.append(message.get("body", b""))

    await application(scope, receive, send)
    return status, b"".join(parts)


def _problem(status: int, body: bytes) -> Exception:
    """The error for a refused request, with the message of the answer."""
    kind = ""
    try:
        tree = msgspec.json.decode(body)
        message = str(tree["message"])
        kind = str((tree.get("details") or {}).get("kind", ""))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        message = f"the server answered {status}"
    match status:
        case 400 | 413 | 422:
            return InputError(message)
        case 403:
            return Forbidden(message)
        case 404:
            return NotFound(message, resource=kind)
        case _:
            return Rejected(message)
