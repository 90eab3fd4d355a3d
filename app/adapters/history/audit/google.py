"""Conversion of Google's audit log of a cluster, which has its own format, to audit events.

The name of a resource is `group/version/namespaces/NAMESPACE/plural/NAME/subresource`, the name of
a method ends in the verb, and an object has a type instead of its kind and version.
"""

import json
import re
from typing import Any

import msgspec

from app.domain.values import api_groups
from app.domain.values.json_tree import JsonObject

TYPE = "type.googleapis.com/google.cloud.audit.AuditLog"

_HTTP_CODES = {
    0: 200,
    1: 499,
    2: 500,
    3: 400,
    4: 504,
    5: 404,
    6: 409,
    7: 403,
    8: 429,
    9: 400,
    10: 409,
    11: 400,
    12: 501,
    13: 500,
    14: 503,
    16: 401,
}
"""HTTP codes by the codes of `google.rpc.Status`."""

_TABLE = "protopayload_auditlog"
"""The column of BigQuery that holds the payload."""

_TIME = re.compile(r"(?P<day>\d{4}-\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?: UTC)?")
"""A time as BigQuery writes it, which is always UTC."""

_PLAIN_GROUPS = frozenset(
    {api_groups.APPS, api_groups.AUTOSCALING, api_groups.BATCH, api_groups.POLICY}
)
"""API groups without a domain, to whose names the log adds one."""


class _PayloadStatus(msgspec.Struct, kw_only=True):
    code: int = 0
    message: str = ""


class _Authentication(msgspec.Struct, kw_only=True, rename="camel"):
    principal_email: str = ""


class _PayloadRequest(msgspec.Struct, kw_only=True, rename="camel"):
    caller_supplied_user_agent: str = ""


class _LogPayload(msgspec.Struct, kw_only=True, rename="camel"):
    type: str = msgspec.field(default=TYPE, name="@type")
    service_name: str = "k8s.io"
    method_name: str = ""
    resource_name: str = ""
    status: _PayloadStatus | None = None
    authentication_info: _Authentication | None = None
    request_metadata: _PayloadRequest | None = None
    request: dict[str, Any] | None = None
    response: dict[str, Any] | None = None


class _Operation(msgspec.Struct, kw_only=True):
    id: str = ""


class _Entry(msgspec.Struct, kw_only=True, rename="camel"):
    proto_payload: _LogPayload
    insert_id: str = ""
    timestamp: str = ""
    operation: _Operation | None = None
    labels: dict[str, Any] | None = None


def event(tree: JsonObject) -> JsonObject | None:
    """The audit event of a log entry; None unless it is about a resource of a cluster."""
    if _TABLE in tree:
        tree = _entry_of(tree)
    if "protoPayload" not in tree:
        return None
    try:
        entry = msgspec.convert(tree, _Entry)
    except msgspec.ValidationError:
        return None
    payload = entry.proto_payload
    if payload.type != TYPE or payload.service_name != "k8s.io" or not payload.resource_name:
        return None
    verb = payload.method_name.rpartition(".")[2]
    status = payload.status or _PayloadStatus()
    code = _HTTP_CODES.get(status.code, status.code)
    operation = entry.operation or _Operation()
    bodies = {
        name: _object(body)
        for name, body in (
            ("requestObject", payload.request),
            ("responseObject", payload.response),
        )
        if body is not None
    }
    levels = {"responseObject": "RequestResponse", "requestObject": "Request"}
    return {
        "auditID": operation.id or entry.insert_id,
        "level": next((level for name, level in levels.items() if name in bodies), "Metadata"),
        "stage": "ResponseComplete",
        "verb": verb,
        "requestURI": f"/{payload.resource_name}",
        "user": {"username": (payload.authentication_info or _Authentication()).principal_email},
        "userAgent": (payload.request_metadata or _PayloadRequest()).caller_supplied_user_agent,
        "objectRef": _reference(payload.resource_name),
        "responseStatus": {
            "code": 201 if verb == "create" and code == 200 else code,
            "message": status.message,
        },
        "requestReceivedTimestamp": entry.timestamp,
        "stageTimestamp": entry.timestamp,
        "annotations": entry.labels,
        **bodies,
    }


def _entry_of(row: JsonObject) -> JsonObject:
    """The log entry of a row of BigQuery, where bodies are text and absent fields are null."""
    entry = _without_nulls({name: value for name, value in row.items() if name != _TABLE})
    payload = _without_nulls(row[_TABLE])
    if not isinstance(payload, dict) or not isinstance(entry, dict):
        return {}
    for name, field in (("requestJson", "request"), ("responseJson", "response")):
        text = payload.pop(name, None)
        if isinstance(text, str):
            try:
                payload[field] = json.loads(text)
            except (ValueError, RecursionError):
                # The service cut it off; the body is lost and the write is not.
                continue
    status = payload.get("status")
    if isinstance(status, dict) and str(status.get("code", "")).isdecimal():
        payload["status"] = {**status, "code": int(status["code"])}
    written = _TIME.fullmatch(str(entry.get("timestamp", "")))
    if written is not None:
        entry["timestamp"] = f"{written['day']}T{written['clock']}Z"
    return {**entry, "protoPayload": payload}


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(part) for name, part in value.items() if part is not None}


def _reference(name: str) -> JsonObject:
    group, _, rest = name.partition("/")
    version, _, rest = rest.partition("/")
    steps = rest.split("/")
    namespace = ""
    if steps[0] == "namespaces" and len(steps) > 2:
        namespace, steps = steps[1], steps[2:]
    resource, own_name, subresource = [*steps, "", "", ""][:3]
    return {
        "apiGroup": "" if group == "core" else group,
        "apiVersion": version,
        "resource": resource,
        "namespace": namespace,
        "name": own_name,
        "subresource": subresource,
    }


def _object(body: JsonObject) -> JsonObject:
    """The object with its kind and apiVersion from its `@type`. Example: `core.k8s.io/v1.Pod`."""
    tree = {name: value for name, value in body.items() if name != "@type"}
    group, _, rest = str(body.get("@type", "")).partition("/")
    version, _, kind = rest.partition(".")
    if not kind or "kind" in tree:
        return tree
    plain = group.removesuffix(".k8s.io")
    if plain == "core":
        group = ""
    elif plain in _PLAIN_GROUPS:
        group = plain
    return {"apiVersion": f"{group}/{version}" if group else version, "kind": kind, **tree}
