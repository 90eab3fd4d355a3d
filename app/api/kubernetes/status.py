"""Translates redra's errors to Kubernetes Status objects; no other module does so.

Parity: api.md 10.
"""

import logging

import msgspec

from app.api.server.messages import Header, Response, warning
from app.domain.errors import (
    Expired,
    HistoryBroken,
    HistoryOpening,
    InputError,
    LogError,
    LogUnavailable,
    NotStorable,
    RedraError,
    Rejected,
)
from app.domain.values.json_tree import JsonObject

_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("redra.api")


def failure(
    code: int, reason: str, message: str, *, details: JsonObject | None = None
) -> JsonObject:
    """A Status of a failure. Empty details are included, absent details are left out."""
    tree: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        tree["reason"] = reason
    if details is not None:
        tree["details"] = details
    tree["code"] = code
    return tree


def success(*, name: str, group: str, resource: str, uid: str) -> JsonObject:
    """The Status that answers a delete which took effect at once."""
    details: JsonObject = {"name": name}
    if group:
        details["group"] = group
    details["kind"] = resource
    if uid:
        details["uid"] = uid
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


def status_of(problem: RedraError) -> JsonObject:
    """The Status for an error of redra."""
    match problem:
        case Expired(continue_token=token) if token:
            tree = failure(problem.code, problem.reason, problem.message)
            return tree | {"metadata": {"continue": token}}
        case Rejected():
            details = _details(problem)
            shown = details if details or problem.is_generic else None
            return failure(problem.code, problem.reason, problem.message, details=shown)
        case InputError(problem=text, place=place, cure=cure):
            message = str(InputError(text, place=field_of(place), cure=cure))
            return failure(400, "BadRequest", message)
        case NotStorable():
            return failure(400, "BadRequest", str(problem))
        case LogUnavailable():
            return failure(
                503, "ServiceUnavailable", str(problem), details={"retryAfterSeconds": 1}
            )
        case HistoryOpening(name=name, retry_seconds=seconds):
            details = {"name": name, "kind": "histories", "retryAfterSeconds": seconds}
            return failure(503, "ServiceUnavailable", str(problem), details=details)
        case HistoryBroken():
            return failure(503, "ServiceUnavailable", str(problem))
        case LogError():
            return failure(500, "InternalError", f"Internal error occurred: {problem}")
    return failure(500, "InternalError", f"Internal error occurred: {problem}")


def field_of(place: str) -> str:
    """The name of a field for that of an option: a request has no options."""
    return place.removeprefix("--")


def answer(problem: RedraError) -> Response:
    """The response for an error of redra."""
    tree = status_of(problem)
    retry = tree.get("details", {}).get("retryAfterSeconds")
    headers: tuple[Header, ...] = ()
    if retry:
        headers = ((b"retry-after", b"%d" % retry),)
    if isinstance(problem, Rejected):
        headers += tuple(warning(text) for text in problem.warnings)
    return Response(_encode(tree), status=tree["code"], headers=headers)


def unexpected(problem: Exception) -> Response:
    """The response for a mistake in redra; the log has the trace, the response has not."""
    _log.error("a request failed unexpectedly", exc_info=problem)
    text = f"Internal error occurred: {type(problem).__name__}"
    return Response(_encode(failure(500, "InternalError", text)), status=500)


def page_not_found() -> Response:
    """The response for a path outside of the API."""
    return Response(b"404 page not found\n", status=404, content_type=b"text/plain; charset=utf-8")


def _details(problem: Rejected) -> JsonObject:
    details: JsonObject = {}
    if problem.name:
        details["name"] = problem.name
    if problem.group:
        details["group"] = problem.group
    if problem.resource:
        details["kind"] = problem.resource
    if problem.uid:
        details["uid"] = problem.uid
    if problem.causes:
        details["causes"] = [
            ({"reason": cause.reason} if cause.reason else {})
            | {"message": cause.message}
            | ({"field": cause.field} if cause.field else {})
            for cause in problem.causes
        ]
    if problem.retry_after_seconds:
        details["retryAfterSeconds"] = problem.retry_after_seconds
    return details
