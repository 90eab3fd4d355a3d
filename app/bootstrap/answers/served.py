"""Answers of redra's own API, asked for in this process: what a page or a client gets, no less.

The application runs without a socket over the histories of the store; whoever may open the data
folder may see everything in it.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote, urlencode

import msgspec

from app.adapters import schemas
from app.adapters.telemetry import Telemetry
from app.api.application import Application, create_app
from app.api.server.messages import Message
from app.bootstrap.answers.limits import api_limits
from app.bootstrap.histories import open_histories
from app.bootstrap.stores import Store, find_history, find_revision
from app.domain.errors import Forbidden, InputError, NotFound, Rejected
from app.settings import Settings

_JSON = b"application/json"


async def get(
    store: Store,
    settings: Settings,
    history: str,
    part: str,
    at: str = "",
    **parameters: str,
) -> bytes:
    """`/redra/v1/histories/HISTORY/PART` as of a moment. Raises InputError, Rejected."""
    info = await find_history(store, history)
    revision = await find_revision(store, info, at, option="--at")
    path = f"/redra/v1/histories/{quote(history)}/{part}"
    return await _asked(store, settings, path, {**parameters, "at": str(revision)})


async def post(
    store: Store,
    settings: Settings,
    history: str,
    part: str,
    body: bytes,
    at: str = "",
    **parameters: str,
) -> bytes:
    """The answer to a body that is posted there, as of a moment. Raises InputError, Rejected."""
    info = await find_history(store, history)
    revision = await find_revision(store, info, at, option="--at")
    path = f"/redra/v1/histories/{quote(history)}/{part}"
    return await _asked(store, settings, path, {**parameters, "at": str(revision)}, body)


async def page(store: Store, settings: Settings, history: str, part: str, at: str = "") -> bytes:
    """The page of a history as of a moment. Raises InputError, Rejected."""
    info = await find_history(store, history)
    revision = await find_revision(store, info, at, option="--at")
    return await _asked(store, settings, f"/ui/h/{quote(history)}@{revision}/{part}", {})


async def _asked(
    store: Store,
    settings: Settings,
    path: str,
    parameters: Mapping[str, str],
    sent: bytes | None = None,
) -> bytes:
    async with open_histories(store, settings) as histories:
        # Nobody else waits for this process, so what is taken away may be of any length.
        usual = api_limits(settings)
        limits = replace(
            usual,
            report_events_max=sys.maxsize,
            body_bytes_max=settings.blast_bytes_max,
            capacity=replace(usual.capacity, at_once_max=usual.capacity.moments_max),
        )
        application = create_app(histories, schemas=schemas.load, meter=Telemetry(), limits=limits)
        status, body = await _call(application, path, parameters, sent)
    if status >= 400:
        raise _problem(status, body)
    return body


async def _call(
    application: Application,
    path: str,
    parameters: Mapping[str, str],
    sent: bytes | None,
) -> tuple[int, bytes]:
    """Status and body of a request: GET, or POST where something is sent."""
    given = {name: value for name, value in parameters.items() if value}
    scope = {
        "type": "http",
        "method": "GET" if sent is None else "POST",
        "path": path,
        "query_string": urlencode(given).encode(),
        "headers": [(b"accept", _JSON), (b"content-type", _JSON)],
    }
    status, parts = 0, []

    async def receive() -> Message:
        return {"type": "http.request", "body": sent or b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            parts.append(message.get("body", b""))

    await application(scope, receive, send)
    return status, b"".join(parts)


def _problem(status: int, body: bytes) -> Exception:
    """The refusal that an answer tells of, in its words."""
    try:
        message = str(msgspec.json.decode(body)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        message = f"the server answered {status}"
    match status:
        case 400 | 413 | 422:
            return InputError(message)
        case 403:
            return Forbidden(message)
        case 404:
            return NotFound(message)
        case _:
            return Rejected(message)
