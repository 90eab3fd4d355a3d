"""What admission webhooks are asked: requests that a server had not carried out yet.

    {"kind": "AdmissionReview", "request": {"operation": "DELETE", "object": null, "oldObject": …}}

`oldObject` is the object as it is stored. `object` is what was asked for, which no server need have
stored: another webhook may change or refuse it. So a review tells a write whose outcome is missing.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from app.adapters.history import kinds
from app.adapters.history.audit import envelopes
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

DEPTH_MAX = 12
"""Levels of a document that are searched for reviews."""

_VERBS = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete"}
_ASKED = "a webhook was asked to admit it, and what the server did is not recorded"


class _Resource(msgspec.Struct, kw_only=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class _Request(msgspec.Struct, kw_only=True, rename="camel"):
    operation: str
    resource: _Resource
    user_info: dict[str, Any]
    uid: str | None = None
    name: str | None = None
    namespace: str | None = None
    sub_resource: str | None = None
    dry_run: bool | None = None
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class _Status(msgspec.Struct, kw_only=True):
    message: str | None = None


class _Response(msgspec.Struct, kw_only=True):
    allowed: bool = True
    status: _Status | None = None


def requests(value: Any, depth: int = DEPTH_MAX) -> Iterator[JsonObject]:
    """The requests below the fields of a document, as audit events without bodies."""
    if depth == 0:
        return
    if isinstance(value, list):
        for item in value:
            yield from requests(item, depth - 1)
    elif isinstance(value, dict):
        if kinds.is_admission(value):
            yield from _events(value, None)
            return
        if isinstance(request := value.get("request"), dict) and kinds.is_admission(request):
            yield from _events(request, value.get("response"))
            return
        for part in value.values():
            yield from requests(part, depth - 1)


def _events(request: JsonObject, response: Any) -> Iterator[JsonObject]:
    """The event of a request; none for a connection and for a request with odd fields."""
    try:
        wanted = msgspec.convert(request, _Request)
        answer = msgspec.convert(response or {}, _Response)
    except msgspec.ValidationError:
        return
    if wanted.operation in _VERBS:
        yield _event(wanted, answer)


def _event(request: _Request, response: _Response) -> JsonObject:
    tree = request.old_object or request.object or {}
    message = "dry run" if request.dry_run else ""
    if not response.allowed:
        said = response.status.message if response.status else None
        message = f"a webhook refused it: {said or 'without a reason'}"
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
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
