"""Writes that the API refused for their content or their user, as an audit log shows.

A conflict, and a write of an object that is gone, are no refusals: clients try these again as a
rule, and so many of them say nothing about a cluster.
"""

from app.domain.log.event import Event, EventType
from app.domain.values.fields import records
from app.domain.values.fields.records import FieldRecord

CODES = (400, 403, 422)
"""Bad request, forbidden (also by quotas and admission), invalid."""

_REJECTED_FROM = 400

_CONFLICT = 409

_INTERNAL = 500

_UNREACHED = "failed calling webhook"
"""The words of a server that refuses a write because an admission webhook does not answer.

Its code is 500, as that of a failure of the server itself, which a client may try again.
"""

_MARKS = (*(f'"code":{code}'.encode() for code in CODES), _UNREACHED.encode())


class _RefusalRequest(FieldRecord, frozen=True):
    verb: str = ""
    subresource: str = ""
    code: int | None = None
    message: str = ""


_request = records.of_tree(_RefusalRequest)


def is_refusal(event: Event) -> bool:
    """Whether an event is a request that was refused."""
    if event.type is not EventType.REQUEST_OBSERVED:
        return False
    # An audit log holds many requests: others are not decoded.
    if not any(mark in event.body for mark in _MARKS):
        return False
    request = _request(event.object)
    return request.code in CODES or (request.code == _INTERNAL and _UNREACHED in request.message)


def is_rejected(event: Event) -> bool:
    """Whether an event is a request that failed for any reason, also a conflict.

    Such a one shows that its recording has requests that wrote nothing.
    """
    if event.type is not EventType.REQUEST_OBSERVED:
        return False
    return (_request(event.object).code or 0) >= _REJECTED_FROM


def is_unmade(event: Event) -> bool:
    """Whether an event is a creation that failed, other than for an object that is there."""
    if event.type is not EventType.REQUEST_OBSERVED:
        return False
    request = _request(event.object)
    code = request.code or 0
    is_creation = (request.verb, request.subresource) == ("create", "")
    return is_creation and code >= _REJECTED_FROM and code != _CONFLICT


def verb(event: Event) -> str:
    """The verb of a refused request with its subresource, `update of status`."""
    request = _request(event.object)
    name = request.verb or event.stamp.verb or "write"
    return f"{name} of {request.subresource}" if request.subresource else name


def message(event: Event) -> str:
    """The message of a refused request, or the code of the answer if no message was recorded."""
    request = _request(event.object)
    return request.message or f"code {request.code}"
