"""Event objects from what tools print and components log about them.

Neither shows the name of an Event, so it is derived from the content: the same Event has the same
name in a table, in a description and in a log.
"""

import hashlib

from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView


def event_about(
    involved: JsonObject, namespace: str, type_: str, reason: str, message: str
) -> JsonObject:
    """The Event object about an object; without a namespace its place is guessed later."""
    name = _name(involved["kind"], involved["name"], namespace, reason, message)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "involvedObject": involved,
        "type": type_,
        "reason": reason,
        "message": message,
    }


def content_key(event: JsonView) -> str:
    """The name that an Event with this content gets when it is printed or logged."""
    said = core.event_object(event)
    subject = said.subject
    return _name(subject.kind, subject.name, meta.namespace(event), said.reason, said.text)


def with_span(event: JsonObject, other: JsonView) -> JsonObject:
    """The Event with the first and last time, and the larger count, of two sightings of it."""
    joined = dict(event)
    for name, choose in (("firstTimestamp", min), ("lastTimestamp", max), ("count", max)):
        values = [each[name] for each in (event, other) if each.get(name)]
        if values:
            joined[name] = choose(values)
    return joined


def _name(kind: str, subject: str, namespace: str, reason: str, message: str) -> str:
    text = "\0".join((namespace or "default", kind, subject, reason, message))
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{subject}.{digest}"
