"""Extraction of audit events from the output of log services, which wrap, rename or flatten them.

An event is found by its own fields at any position in a line: in a message of CloudWatch, in
`properties.log` of Azure, in `_source` of Elasticsearch, in `_raw` of Splunk, as text or as an
object. Azure's tables rename its fields, SIEMs flatten them, OpenTelemetry names their types, and
Google's audit log has a format of its own. Where fields that a service took out of an event stand
beside the event itself, the event counts. Bodies that a service cut off are marked as truncated.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.adapters.history.audit import falco, google, otlp
from app.domain.values import api_groups
from app.domain.values.json_tree import JsonObject

GROUP = "audit.k8s.io/"
DEPTH_MAX = 8
"""Levels of an envelope that are searched."""

TRUNCATED = "audit.k8s.io/truncated"

CUT = "cut"
"""The id of an event that breaks off in a text with others, of which nothing else is known."""

UNANSWERED = "redra.dev/unanswered"
"""The annotation of an event whose source does not tell what came of the request, with why."""

_COLUMNS = {
    "AuditId": "auditID",
    "Level": "level",
    "Stage": "stage",
    "RequestUri": "requestURI",
    "Verb": "verb",
    "User": "user",
    "ImpersonatedUser": "impersonatedUser",
    "SourceIps": "sourceIPs",
    "UserAgent": "userAgent",
    "ObjectRef": "objectRef",
    "ResponseStatus": "responseStatus",
    "RequestObject": "requestObject",
    "ResponseObject": "responseObject",
    "RequestReceivedTime": "requestReceivedTimestamp",
    "StageReceivedTime": "stageTimestamp",
    "Annotations": "annotations",
}
"""Fields of an event by the columns of Azure's tables AKSAudit and AKSAuditAdmin."""

_PARTS = (
    *("user", "impersonatedUser", "objectRef", "responseStatus", "annotations", "sourceIPs"),
    *("requestObject", "responseObject"),
)
"""Fields of an event with fields of their own, which stores with flat records keep as texts."""

_ID = "auditID"
_PATHS = tuple(f"{name}." for name in _PARTS)
_BODY_PATHS = ("requestObject.", "responseObject.")
_LISTS = ("sourceIPs", "groups")
"""Fields of an event that are lists of texts."""

_MARKS = (_ID, GROUP, falco.MARK)
"""A text has one of these if there is an event in it."""

_NEXT = ("nextToken", "nextPageToken", "nextLink", "@odata.nextLink")
"""Fields of a page that name the next one."""

_PAGED = ("events", "entries", "tables", "value", "items")
"""Fields that hold the content of such a page."""

_CODE = re.compile(r"[1-9][0-9]{2}")
_RELATED = frozenset({"stage", "objectRef", "requestURI"})
"""Fields of which an event has one, beside its id and its verb."""


def events(value: Any) -> list[JsonObject]:
    """The audit events in a decoded value, in order; empty without any."""
    return list(_found(value, 0))


def texts(value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The JSON texts in a decoded value, also within each other, with their values."""
    if depth > DEPTH_MAX:
        return
    if isinstance(value, str):
        begin = value.find("{")
        if begin < 0:
            return
        try:
            inner, end = json.JSONDecoder().raw_decode(value, begin)
        except (ValueError, RecursionError):
            return
        yield value[begin:end], inner
        yield from texts(inner, depth + 1)
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part, depth + 1)


def is_event(tree: JsonObject) -> bool:
    """True for an audit event, with or without its kind and its stage."""
    if isinstance(version := tree.get("apiVersion"), str) and version.startswith(GROUP):
        return tree.get("kind") == "Event"
    return "auditID" in tree and "verb" in tree and bool(_RELATED & tree.keys())


@dataclass(slots=True)
class SearchPages:
    """The answers of a search in one source, of which each may be a page of the whole answer."""

    hits: int = 0
    total: int = 0
    goes_on: bool = False

    def note(self, value: Any) -> None:
        """Take note of a page: how many hits it has, of how many, and whether another follows."""
        if not isinstance(value, dict):
            return
        answer = value.get("hits")
        if isinstance(answer, dict) and isinstance(hits := answer.get("hits"), list):
            total = answer.get("total")
            number = total.get("value") if isinstance(total, dict) else total
            self.hits += len(hits)
            self.total = max(self.total, number if isinstance(number, int) else 0)
        if any(isinstance(value.get(name), list) for name in _PAGED):
            self.goes_on = any(value.get(name) for name in _NEXT)

    def problem(self) -> str:
        """The part that the source lacks; empty when nothing is missing."""
        if self.hits < self.total:
            return f"an answer of a search with {self.hits} of {self.total} hits"
        return "an answer that goes on in another page, which does not follow" * self.goes_on


def is_page(value: Any) -> bool:
    """True for an answer that holds a list, as services answer with events or rows."""
    return isinstance(value, dict) and any(isinstance(each, list) for each in value.values())


def answer_rows(value: Any) -> list[JsonObject]:
    """The rows of an answer of Azure's query API by their columns; empty for another value.

    Example: `{"tables": [{"columns": [{"name": "Verb"}], "rows": [["create"]]}]}`.
    """
    tables = value.get("tables") if isinstance(value, dict) else None
    rows: list[JsonObject] = []
    for table in tables if isinstance(tables, list) else []:
        if not isinstance(table, dict) or not isinstance(table.get("columns"), list):
            continue
        titles = [each.get("name") for each in table["columns"] if isinstance(each, dict)]
        for row in table["rows"] if isinstance(table.get("rows"), list) else []:
            if isinstance(row, list) and len(row) == len(titles):
                pairs = zip(titles, row, strict=True)
                rows.append({str(title): cell for title, cell in pairs if cell is not None})
    return rows


def _found(value: Any, depth: int) -> Iterator[JsonObject]:
    if depth > DEPTH_MAX:
        return
    if isinstance(value, list):
        for item in value:
            yield from _found(item, depth + 1)
    elif isinstance(value, str):
        yield from _in_text(value, depth)
    elif isinstance(value, dict):
        yield from _in_object(value, depth)


def _in_text(text: str, depth: int) -> Iterator[JsonObject]:
    """The events in a text, in which each line may have one, as where a log was pasted."""
    begin = text.find("{")
    if begin < 0 or not any(mark in text for mark in _MARKS):
        return
    is_first = True
    while begin >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(text, begin)
        except (ValueError, RecursionError):
            if is_first:
                return
            end = text.find("\n", begin)
            end = len(text) if end < 0 else end
            if any(mark in text[begin:end] for mark in _MARKS):
                yield {_ID: CUT}
        else:
            yield from _found(value, depth + 1)
        is_first = False
        line = text.find("\n", end)
        begin = text.find("{", line) if line >= 0 else -1


def _in_object(tree: JsonObject, depth: int) -> Iterator[JsonObject]:
    tree = otlp.plain(tree)
    flat = _unflattened(tree)
    if flat is not None or is_event(tree):
        yield _kept_whole(tree, depth) or _tidied(flat or tree)
    elif "AuditId" in tree and "Verb" in tree:
        renamed = {field: _decoded(tree[name]) for name, field in _COLUMNS.items() if name in tree}
        yield _tidied(renamed)
    elif (said := google.event(tree)) is not None:
        yield _tidied(said)
    elif (alert := falco.event(tree, UNANSWERED)) is not None:
        yield _tidied(alert)
    elif rows := answer_rows(tree):
        yield from _found(rows, depth + 1)
    else:
        yield from _once(tree, depth)


def _once(tree: JsonObject, depth: int) -> Iterator[JsonObject]:
    """The events in the fields of an object; of one that several fields have, the whole one."""
    events: dict[tuple[str, Any], JsonObject] = {}
    for part in tree.values():
        if isinstance(part, list):
            yield from _found(part, depth + 1)
            continue
        for event in _found(part, depth + 1):
            if not isinstance(event.get(_ID), str):
                yield event
                continue
            key = event[_ID], event.get("stage")
            if key not in events or TRUNCATED in events[key]["annotations"]:
                events[key] = event
    yield from events.values()


def _kept_whole(tree: JsonObject, depth: int) -> JsonObject | None:
    """The event of which the tree has fields, from what stands beside them; None without any."""
    ids = {part for name, part in tree.items() if name.endswith(_ID) and isinstance(part, str)}
    for name, part in tree.items():
        is_other = name not in _PARTS and isinstance(part, str | dict) and _ID in part
        for event in _found(part, depth + 1) if is_other else ():
            if event.get(_ID) in ids:
                return event
    return None


def part_texts(tree: JsonObject) -> Iterator[tuple[str, Any]]:
    """The parts of an event that it has as texts, each with its value."""
    for name in _PARTS:
        text = tree.get(name)
        if isinstance(text, str) and (part := _decoded(text)) is not text:
            yield text, part


def with_parts(tree: JsonObject) -> JsonObject:
    """The event, with the parts decoded that a store keeps as texts; a cut text stays one."""
    texts = {name: tree[name] for name in _PARTS if isinstance(tree.get(name), str)}
    return {**tree, **{name: _decoded(text) for name, text in texts.items()}} if texts else tree


def _decoded(value: Any) -> Any:
    """The value of a column or a part; text that holds JSON is decoded."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _tidied(tree: JsonObject) -> JsonObject:
    """The event with its kind.

    Bodies that are text were cut by the service and are marked as truncated. A code of the response
    may be text.
    """
    tree = with_parts(tree)
    event = {**tree, "kind": "Event", "apiVersion": f"{api_groups.AUDIT}/v1"}
    annotations = tree.get("annotations")
    kept = annotations if isinstance(annotations, dict) else {}
    event["annotations"] = {name: text for name, text in kept.items() if isinstance(text, str)}
    for body in ("requestObject", "responseObject"):
        if isinstance(tree.get(body), str):
            del event[body]
            event["annotations"][TRUNCATED] = "true"
    event.setdefault("stage", "ResponseComplete")
    status = tree.get("responseStatus")
    if isinstance(status, dict) and _CODE.fullmatch(str(status.get("code", ""))):
        event["responseStatus"] = {**status, "code": int(status["code"])}
    return event


def _unflattened(tree: JsonObject) -> JsonObject | None:
    """The event whose fields are flattened to paths; None for other trees.

    Example: `kubernetes.audit.verb`, `objectRef.name`, `_verb`.
    """
    place = next((name for name in tree if name.endswith((_ID, "audit_id"))), None)
    if place is None:
        return None
    prefix = place.removesuffix(_ID) if place.endswith(_ID) else place[: place.rfind(".") + 1]
    if not prefix and not any(name.startswith(_PATHS) for name in tree):
        return None
    parts = {name.removeprefix(prefix): tree[name] for name in tree if name.startswith(prefix)}
    if all(isinstance(value, list) for value in parts.values()):
        parts = _first_values(parts)
    nested: JsonObject = {}
    for name, value in parts.items():
        _set(nested, name.split("."), value)
    return nested if is_event(nested) else None


def _first_values(parts: JsonObject) -> JsonObject:
    """The fields of a search that gives each as a list, as Elasticsearch answers `fields`.

    Such lists do not tell which values of a body belong together: the body counts as cut off.
    """
    bodies = {name.split(".")[0] for name in parts if name.startswith(_BODY_PATHS)}
    kept = {
        name: values if name.endswith(_LISTS) else values[0]
        for name, values in parts.items()
        if values and not name.startswith(_BODY_PATHS)
    }
    return {**kept, **dict.fromkeys(bodies, "")}


def _set(tree: JsonObject, path: list[str], value: Any) -> None:
    """Set a value below a path; a path through a value that is not an object is ignored."""
    for step in path[:-1]:
        below = tree.setdefault(step, {})
        if not isinstance(below, dict):
            return
        tree = below
    tree[path[-1]] = value
