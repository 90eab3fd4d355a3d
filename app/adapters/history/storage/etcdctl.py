"""The reader of what etcdctl prints of a store: its current values, or writes as they come.

    -w json     {"header": {…}, "kvs": [{"key": base64, "mod_revision": 7, "value": base64}]}
    -w fields   "Key" : "/registry/pods/shop/a"   a line for each field, texts quoted as Go does
    -w simple   /registry/pods/shop/a             the bytes of the value follow, without a revision

`etcdctl watch --prefix` prints writes in the same forms: answers with `Events` instead of `kvs`, a
field `Type`, or a line `PUT` or `DELETE` before the key. What was replaced stands there, too, where
it was asked for (`--prev-kv`).

Parity: history-formats.md 11.
"""

import base64
import binascii
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from app.adapters.history import documents
from app.adapters.history.limits import BoundReached
from app.adapters.history.reading import Notes
from app.adapters.history.storage import etcd, stored_values
from app.adapters.history.storage.write_logs import EtcdEntry
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log.records import Op, Record
from app.domain.values import protobuf

FIELDS_BEGIN = b'"ClusterID" : '
_ANSWER = re.compile(rb'\s*\{\s*"[hH]eader"\s*:\s*\{\s*"(?:cluster_id|revision)"')
_FIELD = re.compile(rb'^"(?P<name>\w+)" : (?P<value>.*)$')
_ESCAPED = re.compile(rb"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)
_VALUES = (protobuf.MAGIC, stored_values.ENCRYPTED, stored_values.CBOR, b"{")
_KEY_LINE = rb"(?P<key>(?:%b)\S+)\r?\n" % b"|".join(
    re.escape(each.encode()) for each in etcd.PREFIXES
)
_VALUE = b"|".join(map(re.escape, _VALUES))
_KEY = re.compile(rb"^(?P<type>)%b(?=%b)" % (_KEY_LINE, _VALUE), re.MULTILINE)
"""A line with a key, before a value. Only a text that is such output itself has one in a value."""

_WRITE = re.compile(
    rb"^(?:(?P<type>PUT|DELETE)\r?\n)?%b(?=%b|\r?\n)" % (_KEY_LINE, _VALUE), re.MULTILINE
)
"""The same in the output of a watch: of the keys of one write, the last one is what is now."""

WRITES = re.compile(
    rb"^(?:PUT\r?\n%b(?=%b)|DELETE\r?\n%b(?=\r?\n))"
    % (_KEY_LINE, _VALUE, _KEY_LINE.replace(b"<key>", b"<gone>")),
    re.MULTILINE,
)
"""A write in the output of a watch, above which the command may stand."""

_END_OF_WATCH = b"\n\n"
"""Ends a deletion in the last line, behind which the empty value may have been cut off."""

_OPS = {b"": Op.BASELINE, b"PUT": Op.MODIFIED, b"DELETE": Op.DELETED}

_KEY_BYTES_MAX = 2_048
"""More than the names of group, resource, namespace and object have together."""

_LETTERS = {b"a": 7, b"b": 8, b"f": 12, b"n": 10, b"r": 13, b"t": 9, b"v": 11}

_Pair = tuple[str, Op, dict[str, Any]]
"""The place of one key, what happened to it, and its fields: key, mod_revision, version, value."""


def is_answer(value: Any) -> bool:
    """True for the output of etcdctl in JSON: an object with `header` and `kvs`, or `Events`."""
    if not isinstance(value, dict):
        return False
    header, items = value.get("header", value.get("Header")), value.get("kvs", value.get("Events"))
    if not isinstance(header, dict) or not isinstance(items, list):
        return False
    return all(isinstance(each, dict) for each in items)


def begins_printed(head: bytes) -> bool:
    """True for the beginning of an answer in JSON or in fields."""
    return head.startswith(FIELDS_BEGIN) or _ANSWER.match(head) is not None


def begins_simple(head: bytes) -> bool:
    """True for the output of etcdctl in its simple form: a key, and a value as it is stored."""
    return _KEY.match(head) is not None or _is_watch(head)


def _is_watch(head: bytes) -> bool:
    return WRITES.search(head[:_KEY_BYTES_MAX]) is not None


def read(source: ByteSource, number: int, notes: Notes) -> Iterator[Record]:
    """The records of the objects in the output.

    Raises InputError for a value that etcdctl does not print.
    """
    if begins_simple(source.head(_KEY_BYTES_MAX)):
        yield from _of_simple(source, number, notes)
        return
    is_fields = source.head(len(FIELDS_BEGIN)) == FIELDS_BEGIN
    seen: dict[int, int] = {}
    known: dict[str, Record] = {}
    pairs = _of_fields(source) if is_fields else _of_json(source, notes)
    for index, (place, op, pair) in enumerate(pairs, start=1):
        try:
            entry = _entry(pair, place, seen)
        except InputError as problem:
            notes.refuse(problem)
            continue
        if op is Op.DELETED:
            entry = replace(entry, value=None)
        elif op is Op.MODIFIED and entry.version == 1:
            op = Op.ADDED
        yield from _records(entry, op, source, (number, index), known, notes)


def _of_simple(source: ByteSource, number: int, notes: Notes) -> Iterator[Record]:
    known: dict[str, Record] = {}
    gone: set[bytes] = set()
    for index, (kind, key, value) in enumerate(_simple_pairs(source), start=1):
        op = _OPS[kind]
        if op is Op.DELETED:
            gone.add(key)
        elif op is Op.MODIFIED and key in gone:
            gone.remove(key)
            op = Op.ADDED
        entry = EtcdEntry(
            main=0,
            sub=index,
            key=key.decode("utf-8", "replace"),
            version=1,
            value=None if op is Op.DELETED else value,
        )
        yield from _records(entry, op, source, (number, index), known, notes)


def _records(
    entry: EtcdEntry,
    op: Op,
    source: ByteSource,
    order: tuple[int, int],
    known: dict[str, Record],
    notes: Notes,
) -> Iterator[Record]:
    if op is Op.BASELINE and entry.key in known:
        return  # what a write replaced, and an earlier one shows
    yield from etcd.entry_records(entry, op, source, order, known, notes)


def _simple_pairs(source: ByteSource) -> Iterator[tuple[bytes, bytes, bytes]]:
    """The change (empty if none), the key and the value; a value ends before the next key's line.

    Of the keys of one write the last one has what happened; the one before it is what was replaced.
    """
    limit = source.limits.line_bytes_max
    is_watch = _is_watch(source.head(_KEY_BYTES_MAX))
    pattern, end = (_WRITE, _END_OF_WATCH) if is_watch else (_KEY, b"")
    rest, kind, key, at = b"", b"", b"", 0
    for chunk in itertools.chain(source.chunks(), (end,)):
        rest += chunk
        begin = 0
        for match in pattern.finditer(rest, at):
            is_next = match["type"] is not None
            if key:
                yield kind if is_next else b"", key, rest[begin : match.start() - 1]
            kind = match["type"] if is_next else kind
            key, begin = match["key"], match.end()
        rest = rest[begin:]
        at = max(0, rest.rfind(b"\n", 0, max(0, len(rest) - _KEY_BYTES_MAX)))
        if len(rest) > limit:
            raise BoundReached(
                f"the value of {key.decode('utf-8', 'replace')} is longer than {limit} bytes",
                place=source.name,
                cure="raise line_bytes_max if the file is sound",
            )
    if key:
        yield kind, key, rest.removesuffix(end).removesuffix(b"\n")


def _entry(pair: dict[str, Any], place: str, seen: dict[int, int]) -> EtcdEntry:
    try:
        main, version = int(pair["mod_revision"]), int(pair.get("version", 1))
        key, value = pair["key"].decode("utf-8", "replace"), pair["value"]
    except (KeyError, ValueError, TypeError, AttributeError) as problem:
        raise InputError(
            f"a key without its revision or value ({problem})",
            place=place,
            cure="print it again, without --keys-only",
        ) from problem
    seen[main] = seen.get(main, -1) + 1
    return EtcdEntry(main=main, sub=seen[main], key=key, version=version, value=value)


def _of_json(source: ByteSource, notes: Notes) -> Iterator[_Pair]:
    for position, value in documents.read_documents(source, notes):
        if not is_answer(value):
            continue
        for index, item in enumerate(value.get("kvs", value.get("Events"))):
            place = f"{source.name}:{position}[{index}]"
            if "kvs" in value:
                yield place, Op.BASELINE, _with_bytes(item, place)
                continue
            if isinstance(before := item.get("prev_kv"), dict):
                yield place, Op.BASELINE, _with_bytes(before, place)
            if isinstance(pair := item.get("kv"), dict):
                op = Op.DELETED if item.get("type") in (1, "DELETE") else Op.MODIFIED
                yield place, op, {"value": b"", **_with_bytes(pair, place)}


def _with_bytes(pair: dict[str, Any], place: str) -> dict[str, Any]:
    """The fields with key and value decoded."""
    names = [name for name in ("key", "value") if name in pair]
    return {**pair, **{name: _decoded(pair[name], place) for name in names}}


def _decoded(text: Any, place: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as problem:
        raise InputError(f"it is not base64: {problem}", place=place) from problem


_NAMES = {b"ModRevision": "mod_revision", b"Version": "version", b"Value": "value"}
_BEFORE = b"Prev"


def _of_fields(source: ByteSource) -> Iterator[_Pair]:
    place, pair = source.name, dict[str, Any]()
    kind, op = b"", Op.BASELINE
    for number, line in source.lines():
        match = _FIELD.match(line.rstrip(b"\r"))
        if match is None:
            raise InputError(
                "it is not a field as etcdctl prints them", place=f"{source.name}:{number}"
            )
        name, text = match["name"], match["value"]
        is_before = name.startswith(_BEFORE)
        name = name.removeprefix(_BEFORE)
        if name == b"Type":
            kind = text.strip(b' "')
        elif name == b"Key":
            if pair:
                yield place, op, pair
            place, pair = f"{source.name}:{number}", {"key": _unquoted(text)}
            op = Op.BASELINE if is_before else _OPS.get(kind, Op.BASELINE)
        elif pair and name in _NAMES:
            pair[_NAMES[name]] = _unquoted(text) if text.startswith(b'"') else text
    if pair:
        yield place, op, pair


def _unquoted(text: bytes) -> bytes:
    """The bytes of a text in the quoted form of Go."""
    return _ESCAPED.sub(_byte, text.strip()[1:-1])


def _byte(match: re.Match[bytes]) -> bytes:
    escape = match.group(1)
    if escape[:1] == b"x":
        return bytes((int(escape[1:], 16),))
    if escape[:1] in (b"u", b"U") and len(escape) > 1:
        return chr(int(escape[1:], 16)).encode("utf-8", "replace")
    if len(escape) == 3:
        return bytes((int(escape, 8) & 0xFF,))
    return bytes((_LETTERS[escape],)) if escape in _LETTERS else escape
