"""Events in the logs of components: client-go logs each Event that a component records.

    I0102 03:04:05.000006  222 event.go:389] "Event occurred" object="ns/a" kind="Pod"
        apiVersion="v1" type="Warning" reason="Failed" message="…"
    I0102 03:04:05.000006  222 event.go:221] Event(v1.ObjectReference{Kind:"Pod", Namespace:"ns",
        Name:"a", …}): type: 'Warning' reason: 'Failed' …
    {"level":"debug","logger":"events","msg":"…","type":"Warning","object":{…},"reason":"Failed"}

Each example is one line. A log shows neither the name of the Event nor who wrote it, so its name is
derived from its content. Equal Events are one, with the number of lines as its count.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from app.adapters.history.printouts import event_objects
from app.adapters.history.reading import object_record
from app.domain.log.records import Loss, Op, Quality, Record, TimeQuality
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

MESSAGE = "Event occurred"
_OLD = "Event(v1.ObjectReference{"
_MENTIONED = re.compile(
    rb"Event occurred|Event\(v1\.ObjectReference\{"
    rb'|"logger": ?"[\w.-]*events"|DEBUG\s+[\w.-]*events\s'
    rb"|\bobjectAPIversion\b|At \d{4}-\d\d-\d\d [^\n]{13,40} - event for "
)
_REFERENCE = re.compile(
    r"Event\(v1\.ObjectReference\{(?P<fields>[^{}]*(?:\{[^}]*\}[^}]*)?)\}\): "
    r"type: '(?P<type>[^']*)' reason: '(?P<reason>[^']*)' (?P<message>.*)"
)
_REFERENCE_FIELD = re.compile(r'\b(?P<name>\w+):"(?P<text>[^"]*)"')
_NAMES = {
    "Kind": "kind",
    "APIVersion": "apiVersion",
    "Namespace": "namespace",
    "Name": "name",
    "UID": "uid",
    "FieldPath": "fieldPath",
}
"""The fields of a reference by their names in Go."""

_FOR_PEOPLE = re.compile(r"(?P<stamp>\S+)[ \t]+DEBUG[ \t]+[\w.-]*events(?=[ \t])")
_FIELDS = re.compile(r'[ \t]\{"(?:object|type|reason)"')
"""The begin of a line of a manager for people, and that of the fields behind its message."""

_KUBELET = re.compile(r"(?:^|\s)kubelet\[\d+\]:\s*$")


class LoggedEvent(NamedTuple):
    """An Event as a component logged it; the subject of one without a namespace has none."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str
    field_path: str
    type: str
    reason: str
    message: str
    component: str = ""
    host: str = ""
    series: int = 0
    """How often the Event occurred, if its line says so; else 0."""
    is_unplaced: bool = False
    """Whether the line leaves out the namespace of a subject that has one."""

    def tree(self) -> JsonObject:
        """The Event object. Events about objects of the cluster are in `default`."""
        involved = {
            name: text
            for name, text in (
                ("apiVersion", self.api_version),
                ("kind", self.kind),
                ("namespace", self.namespace),
                ("name", self.name),
                ("uid", self.uid),
                ("fieldPath", self.field_path),
            )
            if text
        }
        place = self.namespace or ("" if self.is_unplaced else "default")
        tree = event_objects.event_about(involved, place, self.type, self.reason, self.message)
        source = {"component": self.component, "host": self.host}
        source = {name: text for name, text in source.items() if text}
        return {**tree, "source": source} if source else tree


class Occurrences:
    """The lines about one Event: the first, their number, and the first and last instant.

    Lines that repeat an earlier stretch of a log do not count again.
    """

    def __init__(self, position: str, index: int) -> None:
        self.position = position
        self.index = index
        self.count = 0
        self._series = 0
        self._clock = ""
        self._first: Instant | None = None
        self._last: Instant | None = None

    def add(self, clock: str, moment: Instant | None, series: int = 0) -> None:
        """Count a line with its time as written, and its instant if that is known.

        `series` is the count that the line itself gives.
        """
        self._series = max(self._series, series)
        if clock and clock <= self._clock:
            return
        self._clock = clock
        self.count += 1
        if moment is not None:
            self._first = moment if self._first is None else min(self._first, moment)
            self._last = moment if self._last is None else max(self._last, moment)

    def record(self, event: LoggedEvent, source: str, number: int) -> Record:
        """The record of the Event, of which a log shows a part."""
        tree = {**event.tree(), "count": self._series or self.count}
        if self._first is not None and self._last is not None:
            tree["firstTimestamp"] = timestamps.seconds_text(self._first)
            tree["lastTimestamp"] = timestamps.seconds_text(self._last)
        record = object_record(
            tree,
            Op.BASELINE,
            source=source,
            position=self.position,
            order=(number, self.index),
            observed_at=self._last,
            losses=(Loss.PRINTED, Loss.NO_MANAGED_FIELDS),
            quality=Quality.PARTIAL,
        )
        if self._last is None:
            return record
        return msgspec.structs.replace(record, time_quality=TimeQuality.DERIVED)


def mentioned_in(content: bytes) -> bool:
    """True for a text that contains the words of a logged Event."""
    return _MENTIONED.search(content) is not None


def begins(rest: str) -> bool:
    """True for the text of a line of klog that logs an Event, whole or cut."""
    return rest.startswith((f'"{MESSAGE}"', _OLD))


def of_fields(fields: Mapping[str, str], component: str = "") -> LoggedEvent | None:
    """The Event of a line of klog with these fields; None when one that it needs is missing."""
    namespace, slash, name = fields.get("object", "").partition("/")
    if not slash:
        namespace, name = "", namespace
    message = fields.get("message", fields.get("note"))
    if message is None:
        return None
    subject = {**fields, "namespace": namespace, "name": name, "uid": ""}
    event = _about(subject, fields.get("type", ""), fields.get("reason", ""), message)
    return None if event is None else event._replace(component=component)


def of_reference(rest: str, component: str = "") -> LoggedEvent | None:
    """The Event of a line of klog in the form with a reference; None for other lines."""
    match = _REFERENCE.match(rest)
    if match is None:
        return None
    about = {
        _NAMES.get(each["name"], each["name"]): each["text"]
        for each in _REFERENCE_FIELD.finditer(match["fields"])
    }
    event = _about(about, match["type"], match["reason"], match["message"])
    return None if event is None else event._replace(component=component)


def of_tree(tree: Mapping[str, Any]) -> LoggedEvent | None:
    """The Event of a line in JSON: klog's own form, or that of a manager; None for other trees."""
    about, text = tree.get("object"), tree.get("msg")
    if not isinstance(about, dict) or not isinstance(text, str):
        return None
    fields, subject = _texts(tree), _texts(about)
    if text == MESSAGE:
        name = f"{subject.get('namespace', '')}/{subject.get('name', '')}"
        return of_fields({**fields, "object": name})
    if not fields.get("logger", "").endswith("events"):
        return None
    return _about(subject, fields.get("type", ""), fields.get("reason", ""), text)


def for_people(line: str) -> tuple[str, LoggedEvent] | None:
    """The time as written and the Event of a manager's line in its form for people."""
    match = _FOR_PEOPLE.match(line)
    fields_at = None if match is None else _FIELDS.search(line, match.end() + 1)
    if match is None or fields_at is None:
        return None
    try:
        tree = msgspec.json.decode(line[fields_at.start() + 1 :])
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(tree, dict) or not isinstance(about := tree.get("object"), dict):
        return None
    fields = _texts(tree)
    message = line[match.end() : fields_at.start()].strip(" \t")
    event = _about(_texts(about), fields.get("type", ""), fields.get("reason", ""), message)
    return None if event is None else (match["stamp"], event)


def component_before(text: str) -> str:
    """The component that a journal names before a line, if its Events have the same name."""
    return "kubelet" if _KUBELET.search(text) else ""


def _texts(tree: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in tree.items() if isinstance(value, str)}


def _about(subject: Mapping[str, str], type_: str, reason: str, message: str) -> LoggedEvent | None:
    """The Event about a referenced object; None without its kind, its name or the reason."""
    if not subject.get("kind") or not subject.get("name") or not reason:
        return None
    return LoggedEvent(
        kind=subject["kind"],
        api_version=subject.get("apiVersion", ""),
        namespace=subject.get("namespace", ""),
        name=subject["name"],
        uid=subject.get("uid", ""),
        field_path=subject.get("fieldPath", ""),
        type=type_,
        reason=reason,
        message=message,
    )
