"""Conversion of alerts of Falco about audited requests, in JSON, to audit events.

    {"rule": "Pod created", "time": "…", "output_fields": {"ka.verb": "create", …}}

A rule chooses the fields that its alerts have. One tells a request if its fields name the verb and
the resource; it never has a body.
"""

from typing import Any

from app.domain.values.json_tree import JsonObject

MARK = "ka.verb"
"""The field of an alert that names the verb of a request."""

_NOTHING = "<NA>"
_NO_CODE = "an alert tells the request, not its answer"


def event(tree: JsonObject, unanswered: str) -> JsonObject | None:
    """The audit event that an alert is about; None for alerts about others, and for other objects.

    `unanswered` is the annotation of an event without the code of its answer.
    """
    fields = tree.get("output_fields")
    if not isinstance(fields, dict):
        return None
    verb, resource = _field(fields, MARK), _field(fields, "ka.target.resource")
    if not verb or not resource:
        return None
    code = _field(fields, "ka.response.code")
    return {
        "level": "Metadata",
        "stage": "ResponseComplete",
        "auditID": _field(fields, "ka.auditid"),
        "verb": verb,
        "requestURI": _field(fields, "ka.uri"),
        "userAgent": _field(fields, "ka.useragent"),
        "user": {"username": _field(fields, "ka.user.name")},
        "objectRef": {
            "resource": resource,
            "apiGroup": _field(fields, "ka.target.apigroup"),
            "subresource": _field(fields, "ka.target.subresource"),
            "namespace": _field(fields, "ka.target.namespace"),
            "name": _field(fields, "ka.target.name") or _field(fields, "ka.resp.name"),
        },
        "responseStatus": {
            "code": code or 0,
            "reason": _field(fields, "ka.response.reason"),
        },
        "stageTimestamp": str(tree.get("time") or ""),
        "annotations": {} if code else {unanswered: _NO_CODE},
    }


def _field(fields: JsonObject, name: str) -> Any:
    value = fields.get(name)
    return "" if value is None or value == _NOTHING else str(value)
