"""Event objects from what tools print and components log about them.

Neither shows the name of an Event, so it is derived from the content: the same Event has the same
name in a table, in a description and in a log.
"""

import hashlib
import re

from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.values.fields import core, meta, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.json_tree import JsonObject, JsonView

_SERIES = re.compile(r"\(x(\d{1,9}) over ")
_COUNT = re.compile(r"([1-9][0-9]{0,8})(?:\.0{1,9})?")


def about_subject(
    subject: JsonObject, kind: Kind, type_: str, reason: str, message: str
) -> JsonObject:
    """The Event object about an object; about one without a namespace, it is in `default`."""
    metadata = subject["metadata"]
    namespace = metadata.get("namespace", "" if kind.namespaced else "default")
    involved = {
        "apiVersion": subject["apiVersion"],
        "kind": kind.kind,
        "name": metadata["name"],
        **{part: metadata[part] for part in ("namespace", "uid") if metadata.get(part)},
    }
    return event_about(involved, namespace, type_, reason, message)


def with_count(event: JsonObject, age: str) -> JsonObject:
    """The Event with the count of its series, which kubectl shows beside the age."""
    series = _SERIES.search(age)
    return {**event, "count": int(series[1])} if series and int(series[1]) else event


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


class _Row(FieldRecord, frozen=True, rename="pascal"):
    """A row of Azure's table KubeEvents: one Event at one moment, without its name."""

    object_kind: str = ""
    kube_event_type: str = ""
    name: str = ""
    namespace: str = ""
    reason: str = ""
    message: str = ""
    source_component: str = ""
    first_seen: str = ""
    last_seen: str = ""


_row = records.of_tree(_Row)


def of_row(tree: JsonView) -> JsonObject | None:
    """The Event in a row of Azure's table KubeEvents; None for other documents."""
    row = _row(tree)
    if not (row.object_kind and row.kube_event_type and row.name and row.reason):
        return None
    involved: JsonObject = {"kind": row.object_kind, "namespace": row.namespace, "name": row.name}
    involved = {name: text for name, text in involved.items() if text}
    event = event_about(
        involved, row.namespace or "default", row.kube_event_type, row.reason, row.message
    )
    if row.source_component:
        event["source"] = {"component": row.source_component}
    for name, time in (("firstTimestamp", row.first_seen), ("lastTimestamp", row.last_seen)):
        if time:
            event[name] = time
    if (count := _COUNT.fullmatch(str(tree.get("Count", "")))) is not None:
        event["count"] = int(count[1])
    return event


class _BeatSubject(FieldRecord, frozen=True, rename="lower"):
    """The object that an Event of Metricbeat is about, without its namespace."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class _BeatMetadata(FieldRecord, frozen=True, rename="lower"):
    """The name of an Event of Metricbeat."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


class _BeatSpan(FieldRecord, frozen=True, rename="lower"):
    """The first and the last time of an Event of Metricbeat."""

    first_occurrence: str = ""
    last_occurrence: str = ""


class _BeatEvent(FieldRecord, frozen=True, rename="lower"):
    """The `kubernetes.event` of a document of Metricbeat, whose names have underscores."""

    involved_object: _BeatSubject = _BeatSubject()
    metadata: _BeatMetadata = _BeatMetadata()
    timestamp: _BeatSpan = _BeatSpan()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0


class _Beat(FieldRecord, frozen=True, rename="lower"):
    """The part of a document of Metricbeat that holds an Event."""

    event: _BeatEvent = _BeatEvent()


class _BeatDocument(FieldRecord, frozen=True, rename="lower"):
    """A document of Metricbeat."""

    kubernetes: _Beat = _Beat()


_beat_document = records.of_tree(_BeatDocument)


def of_beat(tree: JsonView) -> JsonObject | None:
    """The Event in a document of Metricbeat, alone or as a hit of a search; None for others."""
    said = _beat_document(tree.get("_source", tree)).kubernetes.event
    subject, metadata = said.involved_object, said.metadata
    if not (subject.kind and subject.name and metadata.name and said.reason):
        return None
    kinds = registry.find_name(subject.kind)
    is_inside = not kinds or kinds[0].namespaced
    involved: JsonObject = {
        "kind": subject.kind,
        **({"namespace": metadata.namespace} if is_inside and metadata.namespace else {}),
        "name": subject.name,
        **({"uid": subject.uid} if subject.uid else {}),
    }
    event = event_about(involved, metadata.namespace, said.type, said.reason, said.message)
    event["metadata"] |= {"name": metadata.name, **({"uid": metadata.uid} if metadata.uid else {})}
    shown = {
        "firstTimestamp": said.timestamp.first_occurrence,
        "lastTimestamp": said.timestamp.last_occurrence,
        "count": said.count,
    }
    return event | {name: value for name, value in shown.items() if value}


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
