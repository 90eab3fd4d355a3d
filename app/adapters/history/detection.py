"""Detection of the format of a source, by its bytes first and by its name second.

Parity: history-formats.md 2.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from app.adapters.history import (
    documents,
    json_text,
    kinds,
    line_marks,
    path_kinds,
    python_values,
)
from app.adapters.history.audit import envelopes, tables
from app.adapters.history.enclosed import checkpoints, managed_states, texts, yaml_blocks
from app.adapters.history.formats import keyed, logged_events, simkube
from app.adapters.history.limits import BoundReached
from app.adapters.history.printouts import foreign
from app.adapters.history.storage import etcdctl, kine_sql, shown_rows
from app.adapters.history.unpacking import ZIP_MAGIC, ByteSource
from app.domain.errors import InputError

AUDIT_GROUP = "audit.k8s.io/"
BBOLT_MAGIC = b"\xed\xda\x0c\xed"
SQLITE_MAGIC = b"SQLite format 3\0"
KHI_MAGIC = b"KHI"
KWOK_GROUP = "action.kwok.x-k8s.io/"
KINE_KEYS = {"id", "name", "created", "deleted", "prev_revision"}
HEAD_BYTES = 8192
ZIP_NAME_AT = 30
_UNPACK = "unpack it, and import the files in it"
_AS_TEXT = "save what it shows as text, and import that"
_AS_JSON = "write its rows as JSON, one a line, and import that"
_PG_ARCHIVE = b"PGDMP"
_CLOSED = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"MSCF\0\0\0\0", "a cabinet archive", _UNPACK),
    (b"\x04\x22\x4d\x18", "a file packed with lz4", _UNPACK),
    (b"\x1f\x9d", "a file packed with compress", _UNPACK),
    (b"\x78\x01", "a stream of zlib", _UNPACK),
    (b"\x78\x9c", "a stream of zlib", _UNPACK),
    (b"\x78\xda", "a stream of zlib", _UNPACK),
    (b"%PDF-", "a PDF", _AS_TEXT),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document or letter of an office program", _AS_TEXT),
    (b"{\\rtf", "a document of an office program", _AS_TEXT),
    (b"LPKSHHRH", "a file of the journal", "export it (journalctl --file … -o export)"),
    (_PG_ARCHIVE, "an archive of pg_dump", "write it as SQL (pg_restore -f dump.sql FILE)"),
    (b"PGCOPY\n\xff\r\n\0", "a table of PostgreSQL in binary form", "write it as text (COPY … TO)"),
    (b"PAR1", "a file of Parquet", _AS_JSON),
    (b"Obj\x01", "a file of Avro", _AS_JSON),
    (b"\xd9\xd9\xf7", "an answer in CBOR", "ask for JSON (Accept: application/json)"),
    (b"age-encryption.org/", "a file encrypted with age", "decrypt it, and import what it holds"),
    (b"-----BEGIN PGP MESSAGE-----", "a file encrypted with PGP", "decrypt it"),
)
"""First bytes, names and cures of file types that may hold objects and that redra does not open."""

_CONTROLS = bytes({*range(32), 127} - set(b"\b\t\n\v\f\r\x1b"))
"""The bytes that no text holds, with those of terminals left out."""

_BINARY_SHARE = 30
"""A file is binary when at least one byte in so many is a control: packed data has one in ten."""

_PACKED_BEGIN = range(0x80, 0xA0)
"""First bytes of maps and arrays of MessagePack, which begin no character of UTF-8."""

_DQLITE = re.compile(r"metadata[12]|\d{16}-\d{16}|open-\d+|snapshot-\d+-\d+-\d+(?:\.meta)?")
"""The files of a database of dqlite, which all begin with the version of their form."""
_DQLITE_BEGIN = bytes((1, 0, 0, 0, 0, 0, 0, 0))

_FRAMES = re.compile(rb"\A\s*\{[^\0]*\}\0(?:\s*\{|\s*\Z)")
"""The end of a document in JSON, before the next one."""

_VERSION_FIELD = re.compile(rb"apiVersion\"?\s*:")

_BRACKET = re.compile(rb"\s*(?:\{|\[\s*(?:[\[{\"\]]|\Z))")
"""The beginning of JSON, rather than of a log whose lines begin with a time in brackets."""

_UTF_32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
"""The byte order marks of UTF-32, of which the first begins like that of UTF-16."""

_BUNDLE_LINE = (b'{"hash":"sha256:', b',"payload":{"format":')
"""The beginning of a line with an event of a bundle, and what follows its hash."""

LOG_LINES_SEEN_MAX = 50
"""Lines of a log that detection reads before it decides on a format."""
DOCUMENTS_SEEN_MAX = 2000
"""Documents that detection reads before it decides on a format."""


class Format(StrEnum):
    """The formats that detection distinguishes; `--format` accepts the values of `NAMED`."""

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
    ETCDCTL = "etcdctl"
    KINE = "kine"
    KSHRK = "kshrk"
    KHI = "khi"
    SCHEDULER_LOG = "scheduler-log"
    PRINTED = "printed"
    MIXTURE = "mixture"
    EMPTY = "empty"
    UNKNOWN = "unknown"


NAMED = tuple(
    str(each)
    for each in Format
    if each not in (Format.PRINTED, Format.MIXTURE, Format.EMPTY, Format.UNKNOWN)
)
"""The formats that `--format` accepts."""


@dataclass(frozen=True, slots=True)
class Detected:
    """The format of a file.

    For a mixture, `problem` is the reason why it is not a document of one format.
    """

    format: Format
    problem: InputError | None = None


def detect(source: ByteSource, head: bytes) -> Detected:
    """The format of one file that is not an archive; `head` is its first unpacked bytes.

    Raises BoundReached for a document that is too deep or expands too far.
    """
    if not head.strip():
        return Detected(Format.EMPTY)
    if etcdctl.begins_simple(head):
        return Detected(Format.ETCDCTL)
    binary = _detect_binary(head)
    if binary is not None:
        return Detected(binary)
    if head.startswith(_UTF_32):
        return Detected(Format.UNKNOWN)
    if line_marks.utf16(head):
        return Detected(Format.MIXTURE)
    if b"\0" in head:
        return Detected(Format.UNKNOWN)
    return _detect_text(source, head)


def is_bundle(names: Collection[str]) -> bool:
    """True when the names are those of the entries of a native bundle."""
    return "manifest.json" in names and "events.jsonl" in names


def begins_bundle(head: bytes) -> bool:
    """True when a zip archive begins with the first entry of a native bundle."""
    return head[ZIP_NAME_AT:].startswith(b"manifest.json")


def closed(name: str, head: bytes) -> tuple[str, str]:
    """The problem of a file that redra does not open, and the cure, mostly by its first bytes."""
    if _is_of_dqlite(name, head):
        problem = "it is of a database of dqlite, as MicroK8s has, which redra does not read"
        return problem, "give the objects (microk8s kubectl get pods,resourceclaims -A -o yaml)"
    for magic, name, cure in _CLOSED:
        if head.startswith(magic):
            return f"it is {name}, which redra does not open", cure
    if _FRAMES.search(head) is not None:
        problem = "it holds documents in JSON with a byte of zero between them, as GELF over TCP"
        return problem, "write a line break in place of each zero (tr '\\0' '\\n')"
    text = head.replace(b"\0", b"")
    if text != head and _VERSION_FIELD.search(text) is not None and not _has_controls(text):
        # It may be UTF-32, or the rest of a cut log.
        problem = "it looks like objects, and holds bytes of zero, which are no text"
        return problem, "take them out, or write the file again as UTF-8"
    return "", ""


def binary(source: ByteSource, head: bytes) -> tuple[str, str]:
    """The problem of a binary file that begins like none that is known, and the cure; or empty."""
    head = head[:HEAD_BYTES]
    is_packed = bool(head) and head[0] in _PACKED_BEGIN
    if is_packed and simkube.is_packed(source):
        return (
            "it is MessagePack without the names of its fields, which redra does not read",
            "for a trace of SimKube, write maps with the names of their fields, or JSON",
        )
    # A text of Windows may begin with a quotation mark of such a byte.
    if not _has_controls(head) and not (is_packed and _controls(head)):
        return "", ""
    return (
        "it is binary, and not of a form that redra reads",
        "copy it again if it is a part of a packed file, or give the objects "
        "(kubectl get pods -A -o yaml)",
    )


def _has_controls(head: bytes) -> bool:
    return _controls(head) * _BINARY_SHARE > len(head)


def _controls(head: bytes) -> int:
    return len(head) - len(head.translate(None, _CONTROLS))


def beside_others(name: str, head: bytes) -> str:
    """The reason to leave out a file that a program writes beside those with objects; or empty."""
    if head.startswith(_PG_ARCHIVE) and name.rpartition("/")[2] == "toc.dat":
        return "the list of the tables in an archive of pg_dump"
    if _is_of_dqlite(name, head) and not name.endswith("metadata1"):
        return "a further file of a database of dqlite"
    return ""


def _is_of_dqlite(name: str, head: bytes) -> bool:
    is_named = _DQLITE.fullmatch(name.rpartition("/")[2]) is not None
    return is_named and head.startswith(_DQLITE_BEGIN)


def is_wrapped_audit(source: ByteSource) -> bool:
    """True unless the first line of an audit log is an event itself.

    What a service delivers may hold the lines of other components of the control plane, too.
    """
    first = next(source.lines(), None)
    if first is None:
        return False
    try:
        value = json_text.decode(first[1], source.name, source.limits)
    except InputError:
        return True
    return not isinstance(value, dict) or not envelopes.is_event(value)


def is_zip(source: ByteSource) -> bool:
    """True when the file begins like a zip archive."""
    with source.raw() as stream:
        return stream.read(len(ZIP_MAGIC)) == ZIP_MAGIC


def _detect_binary(head: bytes) -> Format | None:
    if head[16:20] == BBOLT_MAGIC or head[4112:4116] == BBOLT_MAGIC:
        return Format.ETCD
    if head.startswith(SQLITE_MAGIC):
        return Format.KINE
    if head.startswith(KHI_MAGIC) and head[len(KHI_MAGIC) : len(KHI_MAGIC) + 1] < b" ":
        return Format.KHI
    if (0x80 <= head[0] <= 0x8F or head[0] in (0xDE, 0xDF)) and b"version" in head[:64]:
        return Format.SIMKUBE
    return Format.SIMKUBE if simkube.begins_packed_array(head) else None


def _detect_text(source: ByteSource, head: bytes) -> Detected:
    first = head.split(b"\n", 1)[0]
    if shown_rows.begins(head) or kine_sql.is_dump(head) or shown_rows.is_shown(head):
        return Detected(Format.KINE)
    if head.startswith(etcdctl.FIELDS_BEGIN):
        return Detected(Format.ETCDCTL)
    if head.startswith(b"AUDIT: id="):
        raise InputError(
            "audit lines in the old text form carry no objects",
            place=source.name,
            cure="record with the JSON form (--audit-log-format=json)",
        )
    if first.startswith(_BUNDLE_LINE[0]) and _BUNDLE_LINE[1] in first:
        # As a recording they would have neither their decisions nor their authors.
        raise InputError(
            "these are the events of a bundle, without the rest of it",
            place=source.name,
            cure="import the bundle as it was exported",
        )
    if b"," in first and tables.is_table(source):
        return Detected(Format.AUDIT)
    if (marked := foreign.marked(head))[0]:
        raise InputError(marked[0], place=source.name, cure=marked[1])
    if yaml_blocks.begins_in_node(head):
        return Detected(Format.MIXTURE)
    try:
        return Detected(_of_documents(source, head))
    except BoundReached:
        raise
    except InputError as problem:
        # The exact message of the reader helps only for a file that looks like YAML or JSON.
        is_document = _BRACKET.match(head) or b"apiVersion" in head or b"kind:" in head
        is_document = is_document and not foreign.is_commented(head)
        return Detected(Format.MIXTURE, problem if is_document else None)


def _of_documents(source: ByteSource, head: bytes) -> Format:
    """The format of a text that consists of documents only.

    A text is a mixture when its documents have several formats or none: output that was printed for
    people may be YAML by chance. A kwok recording may begin with more objects than detection reads;
    the name of its API group in the head identifies it.
    """
    if documents.is_json_lines(source):
        return _one(_of_lines(source))
    is_yaml = head.lstrip()[:1] not in (b"{", b"[")
    if is_yaml and (line_marks.TWICE_ENDED in head or line_marks.is_set(head)):
        return Format.MIXTURE
    if is_yaml and yaml_blocks.has_shown_comments(source.whole()):
        return Format.MIXTURE
    seen: set[Format] = set()
    is_block = True
    values = documents.read_documents(source, with_texts=is_yaml)
    for _, value in islice(values, DOCUMENTS_SEEN_MAX):
        if is_yaml and (_is_prose(value) or _is_cut(value)):
            return Format.MIXTURE
        is_block &= isinstance(value, list) or envelopes.is_page(value)
        seen.add(classify(value, source.name))
    if Format.AUDIT in seen and is_yaml and not is_block:
        # Lines of a log that begin with a word and a colon are YAML by chance.
        return Format.MIXTURE
    if seen >= {Format.DUMP} and KWOK_GROUP.encode() in head:
        seen.add(Format.KWOK)
    return _one(seen)


def _is_cut(value: Any) -> bool:
    """True for a document that ends in the middle, or has dots for what was left out."""
    return texts.is_cut_list(value) or yaml_blocks.has_dots(value)


def _is_prose(value: Any) -> bool:
    """True for words, or an object beside words with a colon, which are YAML by chance."""
    if isinstance(value, str):
        return True
    if not isinstance(value, dict):
        return False
    if "apiVersion" not in value:
        return any(str(name).endswith("]apiVersion") for name in value)
    return any(name[:1].isupper() or " " in name for name in value)


def _of_lines(source: ByteSource) -> set[Format]:
    """The formats of the lines of a text that begins with a line of JSON.

    The reader of a log refuses a damaged line; here it only ends the detection. A line that does
    not begin like JSON is text between documents and makes the file a mixture.
    """
    seen: set[Format] = set()
    for count, (number, line) in enumerate(_first_lines(source), start=1):
        content, _ = documents.split_stamp(line)
        if not content.startswith(b"{"):
            return {Format.MIXTURE}
        is_log = bool(seen - {Format.DUMP, Format.UNKNOWN})
        try:
            value = json_text.decode(content, f"{source.name}:{number}", source.limits)
        except InputError:
            if is_log:
                return seen
            raise
        seen.add(classify(value, source.name))
        if count >= (LOG_LINES_SEEN_MAX if is_log else DOCUMENTS_SEEN_MAX):
            break
    return seen


def _first_lines(source: ByteSource) -> Iterator[tuple[int, bytes]]:
    """The lines of a text; damage of a packed stream behind the first is left to its reader."""
    count = 0
    try:
        for count, line in enumerate(source.lines(), start=1):  # noqa: B007
            yield line
    except BoundReached:
        raise
    except InputError:
        if not count:
            raise


def _one(seen: set[Format]) -> Format:
    """The format of a file, from the formats of its documents."""
    formats = seen - {Format.UNKNOWN}
    if formats == {Format.KWOK, Format.DUMP}:
        return Format.KWOK
    return formats.pop() if len(formats) == 1 else Format.MIXTURE


def classify(value: Any, name: str = "") -> Format:
    """The format that one decoded document belongs to; `name` is the path of its file."""
    if isinstance(value, list):
        if simkube.is_trace(value):
            return Format.SIMKUBE
        first = next((item for item in value if isinstance(item, dict)), None)
        if first is None:
            is_audit = any(isinstance(item, str) and envelopes.events(item) for item in value)
            return Format.AUDIT if is_audit else Format.UNKNOWN
        return classify(first, name)
    if not isinstance(value, dict):
        return Format.UNKNOWN
    version = value.get("apiVersion")
    kind = value.get("kind")
    if value.get("msg") == logged_events.MESSAGE or _is_review(value):
        return Format.UNKNOWN
    if python_values.is_of_client(value) and "apiVersion" not in value:
        return Format.UNKNOWN
    if managed_states.is_answer(value) or checkpoints.is_checkpoint(value):
        return Format.UNKNOWN
    if isinstance(version, str) and version.startswith(AUDIT_GROUP):
        return Format.AUDIT if kind in ("Event", "EventList") else Format.UNKNOWN
    if version is None and envelopes.is_event(value):
        return Format.AUDIT
    if isinstance(version, str) and version.startswith(KWOK_GROUP) and kind == "ResourcePatch":
        return Format.KWOK
    if value.keys() == {"type", "object"}:
        return Format.WATCH
    if {"time", "event", "resource"} <= value.keys():
        return Format.SIMULATOR_RECORD
    if simkube.is_trace(value):
        return Format.SIMKUBE
    if {"api_path", "response_body"} <= value.keys():
        return Format.KSHRK
    if etcdctl.is_answer(value):
        return Format.ETCDCTL
    if value.keys() >= KINE_KEYS:
        return Format.KINE
    if kinds.is_list(value) or (isinstance(kind, str) and ("metadata" in value or version)):
        return Format.DUMP
    if kinds.is_reported(value):
        return Format.DUMP
    if isinstance(value.get("metadata"), dict) and not kind and path_kinds.kind_of(name):
        return Format.DUMP
    if envelopes.events(value):
        return Format.AUDIT
    if keyed.is_keyed(value):
        is_snapshot = keyed.RAW in value or "NodeList" in value
        return Format.SCHEDULER_SNAPSHOT if is_snapshot else Format.SIMULATOR_EXPORT
    return Format.UNKNOWN


def _is_review(value: Mapping[str, Any]) -> bool:
    """True for an admission request, which holds objects beside what is asked for."""
    request = value.get("request")
    return isinstance(request, dict) and kinds.is_admission(request)
