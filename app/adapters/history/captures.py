"""The writer of k8shark captures: lists at the beginning and the end, and watched changes.

k8shark can serve such a capture, and redra can import it again. Parity: history-formats.md 14, 19.
"""

import hashlib
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import msgspec
import zstandard

from app.adapters import whole_files
from app.adapters.history import kinds, writers
from app.adapters.history.compression import CHUNK
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.log.records import BASELINE_VERB
from app.domain.values import json_tree, timestamps
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

FORMAT_VERSION = 2
ROOT = "k8shark-capture"

_ENTRY_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(slots=True)
class _PathRecords:
    """The records of one API path. `objects` is shared by all versions of the resource."""

    api_version: str
    kind: str
    objects: dict[ObjectKey, bytes]
    seqs: list[int] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    watched_seqs: list[int] = field(default_factory=list)
    watched_times: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)


class CaptureWriter:
    """Collects events in order and writes one zip file; equal content gives equal bytes.

    The objects of the baseline form a list for each path, each later change is a watch event, and
    each path is listed again at the end. A deletion carries the last state of the object. A capture
    cannot hold requests that changed nothing, decisions, gaps, or the actor of a change.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records: IO[bytes] = TemporaryFile()  # noqa: SIM115  closed by `finish`
        self._archive = zipfile.ZipFile(self._records, "w", allowZip64=True)
        self._compress = zstandard.ZstdCompressor().compress
        self._collections: dict[str, _PathRecords] = {}
        self._objects: dict[tuple[str, str], dict[ObjectKey, bytes]] = {}
        self._digest = b""
        self._count = self._left_out = 0
        self._is_listing = True
        self._first = Instant(0)
        self._last = Instant(0)

    def begin(self, hash: bytes) -> None:
        """Set the hash that the first event follows; it is part of the identity of the capture."""
        self._digest = hash

    def write(self, events: Iterable[Event]) -> None:
        """Add events that follow the ones before."""
        for event in events:
            self._digest = event.hash
            time = event.stamp.time
            self._first = self._first or time
            if not event.is_about_object:
                self._left_out += 1
                self._last = time
                continue
            is_baseline = event.stamp.verb == BASELINE_VERB
            if self._is_listing and not is_baseline:
                self._is_listing = False
                self._list_all(self._last or time)
            self._last = time
            self._take(event)

    def _take(self, event: Event) -> None:
        path, collection = self._collection(event)
        if event.type is EventType.OBJECT_DELETED:
            collection.objects.pop(event.key, None)
        else:
            collection.objects[event.key] = event.body
        if self._is_listing:
            return
        type_ = writers.WATCH_TYPES[event.type]
        moment = timestamps.micro_text(event.stamp.time)
        number = len(collection.seqs) + len(collection.watched_seqs)
        self._put(path, number, moment, event.body, type_)
        collection.watched_seqs.append(number)
        collection.watched_times.append(moment)
        collection.types.append(type_)

    def _collection(self, event: Event) -> tuple[str, _PathRecords]:
        tree = event.object
        api_version = meta.api_version(tree)
        _, version = kinds.split_version(api_version)
        group, resource = event.key.group, event.key.resource
        path = f"/apis/{group}/{version}/{resource}" if group else f"/api/{version}/{resource}"
        collection = self._collections.get(path)
        if collection is None:
            objects = self._objects.setdefault((group, resource), {})
            collection = _PathRecords(api_version, meta.kind(tree), objects)
            self._collections[path] = collection
        return path, collection

    def _list_all(self, time: Instant) -> None:
        """Write a list for each path, with the objects that exist at this point."""
        moment = timestamps.micro_text(time)
        for path, collection in sorted(self._collections.items()):
            # An object is listed once, at the path of the version that it was last written with.
            bodies = [
                body
                for _, body in sorted(collection.objects.items())
                if _api_version(body) == collection.api_version
            ]
            body: JsonObject = {
                "apiVersion": collection.api_version,
                "kind": f"{collection.kind}List",
                "metadata": {},
                "items": [msgspec.Raw(body) for body in bodies],
            }
            number = len(collection.seqs) + len(collection.watched_seqs)
            self._put(path, number, moment, msgspec.json.encode(body))
            collection.seqs.append(number)
            collection.times.append(moment)
            collection.counts.append(len(bodies))

    def _put(self, path: str, number: int, moment: str, body: bytes, type_: str = "") -> None:
        """Write one record."""
        record: JsonObject = {
            "id": f"{self._count:08d}",
            "captured_at": moment,
            "api_path": path,
            "http_method": "GET",
            "response_code": 200,
            "response_body": msgspec.Raw(body),
            **({"event_type": type_} if type_ else {}),
        }
        self._count += 1
        folder = hashlib.sha256(path.encode()).hexdigest()[:16]
        content = self._compress(msgspec.json.encode(record))
        self._store(f"records/{folder}/{number}.json.zst", content)

    def _store(self, name: str, content: bytes) -> None:
        entry = zipfile.ZipInfo(f"{ROOT}/{name}", _ENTRY_TIME)
        self._archive.writestr(entry, content)

    def discard(self) -> None:
        """Discard the collected events; no file is written."""
        self._archive.close()
        self._records.close()

    def finish(self, details: JsonObject) -> JsonObject:
        """Write the file and return its number of records and the number of events left out.

        Raises InputError.
        """
        self._list_all(self._last)
        release = json_tree.text(details, "settings", "profile")
        lists = {
            path: {"api_path": path, "seqs": of.seqs, "times": of.times, "counts": of.counts}
            for path, of in self._collections.items()
        }
        watched = {
            path: {
                "api_path": path,
                "seqs": of.watched_seqs,
                "times": of.watched_times,
                "event_types": of.types,
            }
            for path, of in self._collections.items()
            if of.watched_seqs
        }
        self._store("index.json.zst", self._compress(canonical_json({"entries": lists})))
        self._store("watch-index.json.zst", self._compress(canonical_json({"entries": watched})))
        metadata: JsonObject = {
            "format_version": FORMAT_VERSION,
            "capture_id": self._digest.hex()[:32],
            "captured_at": timestamps.micro_text(self._first),
            "captured_until": timestamps.micro_text(self._last),
            "kubernetes_version": f"v{release}.0" if release else "",
            "server_address": "",
            "record_count": self._count,
        }
        self._store("metadata.json", canonical_json(metadata))
        self._archive.close()
        try:
            self._records.seek(0)
            with whole_files.replacing(self._path) as partial, partial.open("wb") as target:
                while chunk := self._records.read(CHUNK):
                    target.write(chunk)
        except OSError as problem:
            raise writers.unwritable(self._path, problem) from problem
        finally:
            self._records.close()
        return {"records": self._count, writers.LEFT_OUT: self._left_out}


class _Head(msgspec.Struct, frozen=True):
    api_version: str = msgspec.field(name="apiVersion", default="")


_head = msgspec.json.Decoder(_Head)


def _api_version(body: bytes) -> str:
    return _head.decode(body).api_version
