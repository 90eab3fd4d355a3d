"""Writers of formats that other tools read: audit lines, watch streams, object dumps.

Each writer collects events in order and writes the file at the end. Content that a format cannot
represent is left out, as in a recording of that format (history-formats.md 18, 19): the reader of
the same format gives the same records up to those losses. The lossless native bundle has its own
module.
"""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

import msgspec

from app.adapters import whole_files
from app.adapters.history import kinds
from app.adapters.history.compression import CHUNK
from app.domain.errors import InputError
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.log.records import BASELINE_VERB
from app.domain.values import api_groups, identifiers, json_tree, timestamps, well_known
from app.domain.values.fields import meta, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.json_tree import JsonObject, JsonView

_VERBS = {
    EventType.OBJECT_CREATED: "create",
    EventType.OBJECT_UPDATED: "update",
    EventType.OBJECT_DELETED: "delete",
}
WATCH_TYPES = {
    EventType.OBJECT_CREATED: "ADDED",
    EventType.OBJECT_UPDATED: "MODIFIED",
    EventType.OBJECT_DELETED: "DELETED",
}


_REFUSED_FROM = 400
_IN_MEMORY_BYTES_MAX = 64 * 1024

LEFT_OUT = "leftOut"
"""The key in the result of `finish` for the number of events that the format cannot represent."""


class _IneffectiveRequest(FieldRecord, frozen=True):
    """A request that changed nothing."""

    verb: str = ""
    code: int = 0
    subresource: str = ""
    message: str = ""


_request = records.of_tree(_IneffectiveRequest)


class AuditWriter:
    """The writer of audit logs: one `ResponseComplete` event per change and per refused request.

    The first step of a removal (a grace period of 0 without finalizers) is left out, as the API
    server leaves it out. The format cannot represent gaps, decisions and successful requests that
    changed nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _PendingFile()
        self._left_out = 0

    def begin(self, hash: bytes) -> None:
        """Accept the hash that the first event follows, which this format cannot represent."""

    def write(self, events: Iterable[Event]) -> None:
        """Add events that follow the ones before."""
        for event in events:
            line = _audit_line(event)
            if line is None:
                self._left_out += 1
            else:
                self._file.write(canonical_json(line) + b"\n")

    def discard(self) -> None:
        """Discard the collected events; no file is written."""
        self._file.discard()

    def finish(self, details: JsonObject) -> JsonObject:
        """Write the file and return its number of lines and the number of events left out."""
        return {"lines": self._file.finish(self._path), LEFT_OUT: self._left_out}


class WatchWriter:
    """The writer of watch streams, one per resource; a bookmark ends the initial list."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[tuple[str, str], _PendingFile] = {}
        self._is_listing: dict[tuple[str, str], bool] = {}
        self._last: dict[tuple[str, str], Event] = {}
        self._left_out = 0

    def begin(self, hash: bytes) -> None:
        """Accept the hash that the first event follows, which this format cannot represent."""

    def write(self, events: Iterable[Event]) -> None:
        """Add events that follow the ones before."""
        for event in events:
            if not event.is_about_object:
                self._left_out += 1
                continue
            place = event.key[:2]
            file = self._files.get(place)
            if file is None:
                file = self._files[place] = _PendingFile()
                self._is_listing[place] = True
            if self._is_listing[place] and event.stamp.verb != BASELINE_VERB:
                self._is_listing[place] = False
                mark = {well_known.INITIAL_EVENTS_END: "true"}
                file.write(_bookmark(event, event.revision - 1, mark))
            kind = WATCH_TYPES[event.type].encode()
            file.write(b'{"object":%s,"type":"%s"}\n' % (event.body, kind))
            self._last[place] = event

    def discard(self) -> None:
        """Discard the collected events; no file is written."""
        for file in self._files.values():
            file.discard()

    def finish(self, details: JsonObject) -> JsonObject:
        """Write the files and return the numbers of files, of lines and of events left out."""
        lines = 0
        try:
            with whole_files.making(self._path) as folder:
                for place, file in sorted(self._files.items()):
                    last = self._last[place]
                    marks = {well_known.INITIAL_EVENTS_END: "true"}
                    is_listing = self._is_listing[place]
                    file.write(_bookmark(last, last.revision, marks if is_listing else {}))
                    group, resource = place
                    # Names of resources come from recordings and can be any text.
                    name = quote(identifiers.qualified_resource(group, resource), safe="")
                    lines += file.copy_to(folder / f"{name}.jsonl")
        except OSError as problem:
            raise unwritable(self._path, problem) from problem
        finally:
            self.discard()
        return {"files": len(self._files), "lines": lines, LEFT_OUT: self._left_out}


class DumpWriter:
    """The writer of object dumps: a List of the final objects, sorted by key."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._objects: dict[ObjectKey, bytes] = {}

    def begin(self, hash: bytes) -> None:
        """Accept the hash that the first event follows, which this format cannot represent."""

    def write(self, events: Iterable[Event]) -> None:
        """Add events that follow the ones before."""
        for event in events:
            if event.type is EventType.OBJECT_DELETED:
                self._objects.pop(event.key, None)
            elif event.is_about_object:
                self._objects[event.key] = event.body

    def discard(self) -> None:
        """Discard the collected events; no file is written."""
        self._objects.clear()

    def finish(self, details: JsonObject) -> JsonObject:
        """Write the file and return its number of objects."""
        file = _PendingFile()
        file.write(b'{"apiVersion":"v1","items":[')
        for index, key in enumerate(sorted(self._objects)):
            file.write((b",\n" if index else b"\n") + self._objects[key])
        file.write(b'],\n"kind":"List","metadata":{"resourceVersion":""}}\n')
        file.finish(self._path)
        return {"objects": len(self._objects)}


class _PendingFile:
    """A temporary file that becomes the final file completely or not at all."""

    def __init__(self) -> None:
        # In memory while it is small: a recording may have more kinds than a process has files.
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES_MAX)  # noqa: SIM115  see finish
        self._lines = 0

    def write(self, content: bytes) -> None:
        self._file.write(content)
        self._lines += 1

    def discard(self) -> None:
        self._file.close()

    def finish(self, path: Path) -> int:
        """Write the file and return its number of lines. Raises InputError."""
        try:
            return self.copy_to(path)
        except OSError as problem:
            raise unwritable(path, problem) from problem
        finally:
            self._file.close()

    def copy_to(self, path: Path) -> int:
        """Write the file and return its number of lines. Raises OSError.

        A file of a folder is written under a temporary name, which no message may name.
        """
        self._file.seek(0)
        with whole_files.replacing(path) as partial, partial.open("wb") as target:
            while chunk := self._file.read(CHUNK):
                target.write(chunk)
        return self._lines


def unwritable(path: Path, problem: OSError) -> InputError:
    """The error for a path that cannot be written."""
    return InputError(
        f"it cannot be written: {problem.strerror}", place=str(path), cure="choose another place"
    )


def _bookmark(event: Event, version: int, annotations: dict[str, str]) -> bytes:
    tree = event.object
    metadata: JsonObject = {"resourceVersion": str(version)}
    if annotations:
        metadata["annotations"] = annotations
    mark = {"apiVersion": tree.get("apiVersion"), "kind": tree.get("kind"), "metadata": metadata}
    return canonical_json({"object": mark, "type": "BOOKMARK"}) + b"\n"


def _audit_line(event: Event) -> JsonObject | None:
    if event.type is EventType.REQUEST_OBSERVED:
        request = _request(event.object)
        if request.code < _REFUSED_FROM:
            # It changed nothing; the object that it was answered with is not in the event.
            return None
        line = _audit_event(event, request.verb, request.code)
        line["objectRef"]["subresource"] = request.subresource
        line["responseStatus"]["message"] = request.message
        return line
    if not event.is_about_object:
        return None
    tree = event.object
    if event.stamp.verb == BASELINE_VERB and event.type is EventType.OBJECT_CREATED:
        line = _audit_event(event, "list", 200)
        line["objectRef"]["name"] = ""
        line["responseObject"] = {
            "kind": f"{tree.get('kind')}List",
            "apiVersion": tree.get("apiVersion"),
            "metadata": {},
            "items": [msgspec.Raw(event.body)],
        }
        return line
    if event.type is EventType.OBJECT_UPDATED and _is_first_step(tree):
        return None
    code = 201 if event.type is EventType.OBJECT_CREATED else 200
    line = _audit_event(event, _VERBS[event.type], code)
    if event.type is EventType.OBJECT_DELETED and _was_terminating(tree):
        details = {"name": event.key.name, "uid": event.uid}
        line["responseObject"] = {"kind": "Status", "apiVersion": "v1", "details": details}
    else:
        line["responseObject"] = msgspec.Raw(event.body)
    return line


def _is_first_step(tree: JsonView) -> bool:
    """True for the state before a removal, in which nothing holds the object any more."""
    metadata = meta.metadata(tree)
    return (
        bool(metadata.get("deletionTimestamp"))
        and not metadata.get("finalizers")
        and not json_tree.get(tree, "spec", "finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def _was_terminating(tree: JsonView) -> bool:
    return bool(meta.deletion_timestamp(tree))


def _audit_event(event: Event, verb: str, code: int | None) -> JsonObject:
    key, stamp = event.key, event.stamp
    version = ""
    if event.is_about_object:
        _, version = kinds.split_version(meta.api_version(event.object))
    time = timestamps.micro_text(stamp.time)
    body: JsonObject = {
        "kind": "Event",
        "apiVersion": f"{api_groups.AUDIT}/v1",
        "level": "RequestResponse",
        "auditID": stamp.request_id or f"revision-{event.revision}",
        "stage": "ResponseComplete",
        "requestURI": _path(key, version),
        "verb": verb,
        "user": {"username": stamp.actor.user, "groups": list(stamp.actor.groups)},
        "userAgent": stamp.actor.agent,
        "objectRef": {
            "resource": key.resource,
            "namespace": key.namespace,
            "name": key.name,
            "uid": event.uid,
            "apiGroup": key.group,
            "apiVersion": version,
            "subresource": "",
        },
        "responseStatus": {"metadata": {}, "code": code or 0},
        "requestReceivedTimestamp": time,
        "stageTimestamp": time,
    }
    if stamp.actor.impersonated_by:
        body["impersonatedUser"] = body["user"]
        body["user"] = {"username": stamp.actor.impersonated_by}
    return body


def _path(key: ObjectKey, version: str) -> str:
    parts = ["/apis", key.group] if key.group else ["/api"]
    parts.append(version or "v1")
    if key.namespace:
        parts += ["namespaces", key.namespace]
    parts += [key.resource, key.name]
    return "/".join(part for part in parts if part)
