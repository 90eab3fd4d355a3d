"""The reader of `etcdctl get --prefix` output: the current values of a store, with their revisions.

    -w json     {"header": {…}, "kvs": [{"key": base64, "mod_revision": 7, "value": base64}]}
    -w fields   "Key" : "/registry/pods/shop/a"   a line for each field, texts quoted as Go does
    -w simple   /registry/pods/shop/a             the bytes of the value follow, without a revision

Parity: history-formats.md 11.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from app.adapters.history import documents
from app.adapters.history.limits import BoundReached
from app.adapters.history.reading import Notes
from app.adapters.history.storage import etcd, stored_values
from app.adapters.history.storage.etcd import EtcdEntry
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log.records import Op, Record
from app.domain.values import protobuf

FIELDS_BEGIN = b'"ClusterID" : '
_FIELD = re.compile(rb'^"(?P<name>\w+)" : (?P<value>.*)$')
_ESCAPED = re.compile(rb"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)
_VALUES = (protobuf.MAGIC, stored_values.ENCRYPTED, stored_values.CBOR, b"{")
_KEY = re.compile(
    rb"^(?P<key>(?:%b)\S+)\n(?=%b)"
    % tuple(b"|".join(map(re.escape, each)) for each in (map(str.encode, etcd.PREFIXES), _VALUES)),
    re.MULTILINE,
)
"""A line with a key, before a value. Only a text that is such output itself has one in a value."""

_KEY_BYTES_MAX = 2_048
"""More than the names of group, resource, namespace and object have together."""

_LETTERS = {b"a": 7, b"b": 8, b"f": 12, b"n": 10, b"r": 13, b"t": 9, b"v": 11}

_Pair = tuple[str, dict[str, Any]]
"""The place and the fields of one key: Key, ModRevision, Version, Value."""


def is_answer(value: Any) -> bool:
    """True for the output of etcdctl in JSON: an object with `header` and `kvs`."""
    if not isinstance(value, dict) or not isinstance(value.get("header"), dict):
        return False
    pairs = value.get("kvs")
    return isinstance(pairs, list) and all(isinstance(each, dict) for each in pairs)


def begins_simple(head: bytes) -> bool:
    """True for the output of etcdctl in its simple form: a key, and a value as it is stored."""
    return _KEY.match(head) is not None


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
    for index, (place, pair) in enumerate(pairs, start=1):
        try:
            entry = _entry(pair, place, seen)
        except InputError as problem:
            notes.refuse(problem)
            continue
        yield from etcd.entry_records(entry, Op.BASELINE, source, (number, index), known, notes)


def _of_simple(source: ByteSource, number: int, notes: Notes) -> Iterator[Record]:
    known: dict[str, Record] = {}
    for index, (key, value) in enumerate(_simple_pairs(source), start=1):
        entry = EtcdEntry(
            main=0, sub=index, key=key.decode("utf-8", "replace"), version=1, value=value
        )
        yield from etcd.entry_records(entry, Op.BASELINE, source, (number, index), known, notes)


def _simple_pairs(source: ByteSource) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values; a value ends before the line of the next key."""
    limit = source.limits.line_bytes_max
    rest, key, at = b"", b"", 0
    for chunk in source.chunks():
        rest += chunk
        begin = 0
        for match in _KEY.finditer(rest, at):
            if key:
                yield key, rest[begin : match.start() - 1]
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
        yield key, rest.removesuffix(b"\n")


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
        for index, pair in enumerate(value["kvs"]):
            place = f"{source.name}:{position}[{index}]"
            texts = {name: _decoded(pair[name], place) for name in ("key", "value") if name in pair}
            yield place, {**pair, **texts}


def _decoded(text: Any, place: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as problem:
        raise InputError(f"it is not base64: {problem}", place=place) from problem


_NAMES = {b"ModRevision": "mod_revision", b"Version": "version", b"Value": "value"}


def _of_fields(source: ByteSource) -> Iterator[_Pair]:
    place, pair = source.name, dict[str, Any]()
    for number, line in source.lines():
        match = _FIELD.match(line.rstrip(b"\r"))
        if match is None:
            raise InputError(
                "it is not a field as etcdctl prints them", place=f"{source.name}:{number}"
            )
        if match["name"] == b"Key":
            if pair:
                yield place, pair
            place, pair = f"{source.name}:{number}", {"key": _unquoted(match["value"])}
        elif pair and match["name"] in _NAMES:
            text = match["value"]
            pair[_NAMES[match["name"]]] = _unquoted(text) if text.startswith(b'"') else text
    if pair:
        yield place, pair


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
