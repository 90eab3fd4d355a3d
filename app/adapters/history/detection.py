"""Which format a source has: bytes first, names second. Parity: history-formats.md 2."""

import zipfile
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from app.adapters.history import documents
from app.adapters.history.limits import BoundReached
from app.adapters.history.unpacking import ZIP_MAGIC, ByteSource
from app.domain.errors import InputError

AUDIT_GROUP = "audit.k8s.io/"
BBOLT_MAGIC = b"\xed\xda\x0c\xed"
SQLITE_MAGIC = b"SQLite format 3\0"
SIMULATOR_EXPORT_KEYS = frozenset({"pods", "nodes", "schedulerConfig"})
KWOK_GROUP = "action.kwok.x-k8s.io/"
KINE_HEADER = b"id,name,created,deleted,"
HEAD_BYTES = 8192
DOCUMENTS_SEEN_MAX = 2000
"""Documents that are looked at before a YAML file without a mark is called a dump."""


class Format(StrEnum):
    """The formats that are told apart; `--format` accepts the values of `NAMED`."""

    AUDIT = "audit"
    WATCH = "watch"
    DUMP = "dump"
    BUNDLE = "bundle"
    KWOK = "kwok"
    SIMKUBE = "simkube"
    SIMULATOR_RECORD = "simulator-record"
    SIMULATOR_EXPORT = "simulator-export"
    SCHEDULER_SNAPSHOT = "scheduler-snapshot"
    ETCD = "etcd"
    KINE = "kine"
    KSHRK = "kshrk"
    TAR = "tar"
    EMPTY = "empty"
    UNKNOWN = "unknown"


NAMED = tuple(
    str(found)
    for found in Format
    if found not in (Format.KSHRK, Format.TAR, Format.EMPTY, Format.UNKNOWN)
)
"""Formats that a file can be said to have."""


def detect(source: ByteSource) -> Format:
    """The format of one file that is not a zip archive. Raises InputError for damaged packing."""
    head = source.head(HEAD_BYTES)
    if not head.strip():
        return Format.EMPTY
    binary = _detect_binary(head)
    if binary is not None:
        return binary
    if b"\0" in head:
        return Format.UNKNOWN
    return _detect_text(source, head)


def detect_zip(path: Path, name: str) -> Format:
    """The format of a zip archive, by its entries."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (OSError, zipfile.BadZipFile) as problem:
        raise InputError(f"the zip archive cannot be read: {problem}", place=name) from problem
    if "manifest.json" in names and "events.jsonl" in names:
        return Format.BUNDLE
    if "snapshot.json" in names:
        return Format.SCHEDULER_SNAPSHOT
    if any(entry.endswith("metadata.json") for entry in names) and any(
        "index.json" in entry for entry in names
    ):
        return Format.KSHRK
    return Format.UNKNOWN


def is_zip(source: ByteSource) -> bool:
    """True when the file begins like a zip archive."""
    with source.raw() as stream:
        return stream.read(len(ZIP_MAGIC)) == ZIP_MAGIC


def _detect_binary(head: bytes) -> Format | None:
    if head[16:20] == BBOLT_MAGIC or head[4112:4116] == BBOLT_MAGIC:
        return Format.ETCD
    if head.startswith(SQLITE_MAGIC):
        return Format.KINE
    if head[257:262] == b"ustar":
        return Format.TAR
    if (0x80 <= head[0] <= 0x8F or head[0] in (0xDE, 0xDF)) and b"version" in head[:64]:
        return Format.SIMKUBE
    return None


def _detect_text(source: ByteSource, head: bytes) -> Format:
    first = head.split(b"\n", 1)[0]
    if (b"prev_revision" in first and b"create_revision" in first) or first.startswith(KINE_HEADER):
        return Format.KINE
    if head.startswith(b"AUDIT: id="):
        raise InputError(
            "audit lines in the old text form carry no objects",
            place=source.name,
            cure="record with the JSON form (--audit-log-format=json)",
        )
    seen = Format.UNKNOWN
    try:
        for _, value in islice(documents.read_documents(source), DOCUMENTS_SEEN_MAX):
            found = classify(value)
            if found not in (Format.DUMP, Format.UNKNOWN):
                return found
            if found is Format.DUMP:
                seen = found
                if not _may_be_kwok(source, head):
                    return found
    except BoundReached:
        raise
    except InputError:
        # Only a file that looks like YAML or JSON is worth the exact message of its reader.
        if head.lstrip()[:1] in (b"{", b"[") or b"apiVersion" in head or b"kind:" in head:
            raise
        return Format.UNKNOWN
    return seen


def classify(value: Any) -> Format:
    """The format that one decoded document belongs to."""
    if isinstance(value, list):
        first = next((item for item in value if isinstance(item, dict)), None)
        return Format.UNKNOWN if first is None else classify(first)
    if not isinstance(value, dict):
        return Format.UNKNOWN
    version = value.get("apiVersion")
    kind = value.get("kind")
    if isinstance(version, str) and version.startswith(AUDIT_GROUP):
        return Format.AUDIT if kind in ("Event", "EventList") else Format.UNKNOWN
    if isinstance(version, str) and version.startswith(KWOK_GROUP) and kind == "ResourcePatch":
        return Format.KWOK
    if value.keys() == {"type", "object"}:
        return Format.WATCH
    if {"time", "event", "resource"} <= value.keys():
        return Format.SIMULATOR_RECORD
    if {"version", "events", "config"} <= value.keys():
        return Format.SIMKUBE
    if value.keys() >= SIMULATOR_EXPORT_KEYS:
        return Format.SIMULATOR_EXPORT
    if isinstance(value.get("items"), list) and (kind is None or str(kind).endswith("List")):
        return Format.DUMP
    if isinstance(kind, str) and ("metadata" in value or version):
        return Format.DUMP
    return Format.UNKNOWN


def _may_be_kwok(source: ByteSource, head: bytes) -> bool:
    """YAML objects may be followed by kwok patches; the name of their group gives them away."""
    if b"items:" in head[:200] or head.lstrip()[:1] in (b"{", b"["):
        return False
    if KWOK_GROUP.encode() in head:
        return True
    return any(KWOK_GROUP.encode() in chunk for chunk in source.chunks())
