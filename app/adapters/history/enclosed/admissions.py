"""Requests to admission webhooks, which the server had not carried out yet.

    {"kind": "AdmissionReview", "request": {"operation": "DELETE", "object": null, "oldObject": …}}

`oldObject` is the object as it is stored. `object` is what was asked for, which no server need have
stored: another webhook may change or refuse it. So a review tells a write whose outcome is missing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.adapters.history import kinds
from app.adapters.history.audit import envelopes
from app.domain.values import api_groups
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

DEPTH_MAX = 12
"""Levels of a document that are searched for reviews."""

_VERBS = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete"}
ODD = "a request to an admission webhook that cannot be read"
_ASKED = "a webhook was asked to admit it, and what the server did is not recorded"


class _RequestedResource(msgspec.Struct, kw_only=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class _AdmissionRequest(msgspec.Struct, kw_only=True, rename="camel"):
    operation: str
    resource: _RequestedResource
    user_info: dict[str, Any]
    uid: str | None = None
    name: str | None = None
    namespace: str | None = None
    sub_resource: str | None = None
    dry_run: bool | None = None
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class _AdmissionStatus(msgspec.Struct, kw_only=True):
    message: str | None = None


class _Response(msgspec.Struct, kw_only=True):
    allowed: bool = True
    status: _AdmissionStatus | None = None


@dataclass(frozen=True, slots=True)
class ReviewedRequests:
    """The requests of a document, as audit events without bodies, and what is odd in them."""

    events: list[JsonObject] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def requests(value: Any) -> ReviewedRequests:
    """The requests below the fields of a document."""
    reviewed = ReviewedRequests()
    for request, response in _within(value, DEPTH_MAX):
        try:
            wanted = msgspec.convert(request, _AdmissionRequest)
            answer = msgspec.convert(response or {}, _Response)
        except msgspec.ValidationError as problem:
            reviewed.problems.append(f"{ODD}: {problem}")
            continue
        if wanted.operation in _VERBS:
            reviewed.events.append(_event(wanted, answer))
        elif wanted.operation != "CONNECT":
            reviewed.problems.append(f"{ODD}: the operation is {wanted.operation[:80]!r}")
    return reviewed


def _within(value: Any, depth: int) -> Iterator[tuple[JsonObject, Any]]:
    """The requests in a value, each with the answer beside it."""
    if depth == 0:
        return
    if isinstance(value, list):
        for item in value:
            yield from _within(item, depth - 1)
    elif isinstance(value, dict):
        request = value.get("request")
        if kinds.is_admission(value):
            yield value, None
        elif isinstance(request, dict) and kinds.is_admission(request):
            yield request, value.get("response")
        else:
            for part in value.values():
                yield from _within(part, depth - 1)


def _event(request: _AdmissionRequest, response: _Response) -> JsonObject:
    tree = request.old_object or request.object or {}
    message = "dry run" if request.dry_run else ""
    if not response.allowed:
        said = response.status.message if response.status else None
        message = f"a webhook refused it: {said or 'without a reason'}"
    return {
        "kind": "Event",
        "apiVersion": f"{api_groups.AUDIT}/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "auditID": request.uid or "",
        "verb": _VERBS[request.operation],
        "user": request.user_info,
        "objectRef": {
            "resource": request.resource.resource,
            "apiGroup": request.resource.group,
            "apiVersion": request.resource.version,
            "subresource": request.sub_resource or "",
            "namespace": request.namespace or "",
            "name": request.name or meta.name(tree),
            "uid": meta.uid(tree),
            "resourceVersion": meta.resource_version(tree),
        },
        "responseStatus": {"code": 0, "message": message},
        "annotations": {} if message else {envelopes.UNANSWERED: _ASKED},
    }
