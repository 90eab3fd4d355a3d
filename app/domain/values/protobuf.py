"""Protobuf wire format to JSON, by a table of field numbers.

This module only reads, and supports only what Kubernetes objects use. The table (`parse_table`)
defines the JSON form of each field; unknown fields are skipped. Parity: api.md 3.

Example: with `Pair: 1:name, 2:count=int32?` the bytes `0a 01 61 10 00` give `{"name": "a"}`:
the zero count is left out because of the `?`.
"""

import base64
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

MAGIC = b"k8s\x00"
"""The first bytes of every protobuf body."""

DEPTH_MAX = 64
"""The greatest nesting of messages; deeper ones are refused."""

SCALARS = frozenset({"string", "bytes", "bool", "double", "int32", "int64"})

SPECIAL = frozenset(
    {
        "ExtraValue",
        "FieldsV1",
        "IntOrString",
        "JSON",
        "MicroTime",
        "Quantity",
        "RawExtension",
        "Time",
    }
)
"""The messages that have a special JSON form."""

_FIELD = re.compile(r"(\d+):([A-Za-z0-9$-]+)(?:=([A-Za-z0-9.]+))?(\[\]|\{\}|\+|\*|\?|\|)?")

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class ProtobufError(ValueError):
    """Bytes that are not a valid message of the expected type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufField:
    """The JSON form of one field number; `type` is a scalar, a special type or a message.

    A message whose first field has `is_choice` takes the form of the last of its fields present.
    """

    name: str
    type: str
    is_list: bool = False
    is_map: bool = False
    is_inline: bool = False
    omits_zero: bool = False
    is_pointer: bool = False
    is_choice: bool = False


Message: TypeAlias = Mapping[int, ProtobufField]
"""The fields of a message by number."""

Messages: TypeAlias = Mapping[str, Message]
"""Messages by their full name, such as `core.v1.Pod`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The envelope of every body: the stated API version and kind, and the object's bytes."""

    api_version: str
    kind: str
    raw: bytes


_TYPE_META: Message = {
    1: ProtobufField(name="apiVersion", type="string"),
    2: ProtobufField(name="kind", type="string"),
}
_ITEMS: Message = {1: ProtobufField(name="items", type="string", is_list=True)}
_TIME: Message = {
    1: ProtobufField(name="seconds", type="int64"),
    2: ProtobufField(name="nanos", type="int32"),
}
_TEXT: Message = {1: ProtobufField(name="text", type="string")}
_INT_OR_TEXT: Message = {
    1: ProtobufField(name="type", type="int64"),
    2: ProtobufField(name="number", type="int32"),
    3: ProtobufField(name="text", type="string"),
}
_BUILT_IN: dict[str, Message] = {
    "TypeMeta": _TYPE_META,
}


def parse_table(package: str, text: str) -> dict[str, Message]:
    """Reads lines `Message: number:field=type…`; prefixes the names of messages with `package`."""
    messages: dict[str, Message] = {}
    joined = text.replace("\n  ", " ")
    for line in filter(None, joined.splitlines()):
        name, _, fields = line.partition(": ")
        message: dict[int, ProtobufField] = {}
        for item in fields.split(", "):
            matched = _FIELD.fullmatch(item)
            assert matched is not None, item
            number, field, type_name, mark = matched.groups()
            message[int(number)] = ProtobufField(
                name=field,
                type=_full_type(package, type_name or "string"),
                is_list=mark == "[]",
                is_map=mark == "{}",
                is_inline=mark == "+",
                omits_zero=mark == "?",
                is_pointer=mark == "*",
                is_choice=mark == "|",
            )
        messages[f"{package}.{name}"] = message
    return messages


def decode_envelope(body: bytes) -> Envelope:
    """Decodes an envelope. Raises ProtobufError when the body is not one."""
    if body[:4] != MAGIC:
        raise ProtobufError("the body does not begin with the bytes of a Kubernetes object")
    raw = b""
    api_version = kind = ""
    for number, wire, value in message_fields(body[4:]):
        if wire != _BYTES or not isinstance(value, bytes):
            continue
        if number == 1:
            names = _decode(_BUILT_IN, _TYPE_META, value, 0)
            api_version, kind = names.get("apiVersion", ""), names.get("kind", "")
        elif number == 2:
            raw = value
        elif number == 3 and value:
            raise ProtobufError("encoded contents are not read")
    return Envelope(api_version=api_version, kind=kind, raw=raw)


def decode(messages: Messages, name: str, raw: bytes) -> JsonObject:
    """The JSON form of a message. Raises ProtobufError, never anything else, for bad bytes."""
    return _decode(messages, messages[name], raw, 0)


def _full_type(package: str, name: str) -> str:
    if name in SCALARS or name in SPECIAL or "." in name:
        return name
    return f"{package}.{name}"


def _decode(messages: Messages, message: Message, raw: bytes, depth: int) -> JsonObject:
    if depth > DEPTH_MAX:
        raise ProtobufError(f"messages are nested deeper than {DEPTH_MAX}")
    decoded: JsonObject = {}
    for number, wire, value in message_fields(raw):
        field = message.get(number)
        if field is None:
            continue
        if field.is_map:
            if not isinstance(value, bytes):
                raise ProtobufError(f"field {field.name} is not a map entry")
            entry = decoded.setdefault(field.name, {})
            key, item = _map_entry(messages, field, value, depth)
            entry[key] = item
            continue
        if field.is_list:
            _extend(messages, field, wire, value, decoded.setdefault(field.name, []), depth)
            continue
        item = _value(messages, field, wire, value, depth)
        if field.is_inline:
            decoded.update(item)
        elif item is None or (field.omits_zero and not item):
            decoded.pop(field.name, None)
        else:
            decoded[field.name] = item
    return decoded


def _extend(
    messages: Messages,
    field: ProtobufField,
    wire: int,
    value: int | bytes,
    items: list[Any],
    depth: int,
) -> None:
    if field.type in ("int32", "int64", "bool") and isinstance(value, bytes):
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            items.append(_value(messages, field, _VARINT, number, depth))
    else:
        items.append(_value(messages, field, wire, value, depth))


def _map_entry(messages: Messages, field: ProtobufField, raw: bytes, depth: int) -> tuple[str, Any]:
    key = ""
    wire, content = _BYTES, b""
    for number, found_wire, value in message_fields(raw):
        if number == 1 and isinstance(value, bytes):
            key = _utf8(value)
        elif number == 2:
            wire, content = found_wire, value  # type: ignore[assignment]  # checked by _value
    return key, _value(messages, field, wire, content, depth)


def _value(
    messages: Messages, field: ProtobufField, wire: int, value: int | bytes, depth: int
) -> Any:
    kind = field.type
    if kind == "double":
        if wire != _FIXED64 or isinstance(value, int):
            raise ProtobufError(f"field {field.name} has another type on the wire")
        return _number(value)
    if isinstance(value, int):
        if wire != _VARINT or kind not in ("bool", "int32", "int64"):
            raise ProtobufError(f"field {field.name} has another type on the wire")
        if kind == "bool":
            return value != 0
        return value - (1 << 64) if value >= 1 << 63 else value
    if kind == "string":
        return _utf8(value)
    if kind == "bytes":
        return base64.b64encode(value).decode()
    if kind in SPECIAL:
        return _special(kind, value)
    if kind in SCALARS:
        raise ProtobufError(f"field {field.name} has another type on the wire")
    return _shown(messages[kind], _decode(messages, messages[kind], value, depth + 1))


def _shown(message: Message, content: JsonObject) -> Any:
    """The JSON form of a message: an object, or for a choice the chosen field."""
    if not next(iter(message.values())).is_choice:
        return content
    present = [content[field.name] for field in message.values() if field.name in content]
    return present[-1] if present else None


def _special(kind: str, raw: bytes) -> Any:
    if kind == "Quantity":
        return _decode(_BUILT_IN, _TEXT, raw, 0).get("text", "0") or "0"
    if kind in ("RawExtension", "FieldsV1", "JSON"):
        return _raw_json(raw)
    if kind == "ExtraValue":
        return _decode(_BUILT_IN, _ITEMS, raw, 0).get("items", [])
    if kind == "IntOrString":
        both = _decode(_BUILT_IN, _INT_OR_TEXT, raw, 0)
        return both.get("text", "") if both.get("type") == 1 else both.get("number", 0)
    return _time(kind, raw)


def _raw_json(raw: bytes) -> Any:
    content = b""
    for number, _, value in message_fields(raw):
        if number == 1 and isinstance(value, bytes):
            content = value
    if not content:
        return None
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise ProtobufError("an embedded object is not JSON") from problem


def _time(kind: str, raw: bytes) -> str | None:
    """The RFC 3339 text of a time; None for the zero time."""
    parts = _decode(_BUILT_IN, _TIME, raw, 0)
    seconds, nanos = parts.get("seconds", 0), parts.get("nanos", 0)
    if seconds == 0 and nanos == 0:
        return None
    instant = Instant(seconds * timestamps.SECOND + nanos // 1000)
    try:
        if kind == "MicroTime":
            return timestamps.micro_text(instant)
        return timestamps.seconds_text(instant)
    except (OverflowError, ValueError) as problem:
        raise ProtobufError("a time is out of range") from problem


def message_fields(raw: bytes) -> list[tuple[int, int, int | bytes]]:
    """The number, wire type and value of every field of a message, in order.

    Raises ProtobufError for a damaged one.
    """
    fields: list[tuple[int, int, int | bytes]] = []
    at, end = 0, len(raw)
    while at < end:
        tag, at = _varint(raw, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise ProtobufError("field number 0")
        value: int | bytes
        if wire == _VARINT:
            value, at = _varint(raw, at)
        else:
            if wire == _BYTES:
                size, at = _varint(raw, at)
            elif wire == _FIXED64:
                size = 8
            elif wire == _FIXED32:
                size = 4
            else:
                raise ProtobufError(f"wire type {wire} is not used by Kubernetes")
            if at + size > end:
                raise ProtobufError("the message ends in the middle of a field")
            value = raw[at : at + size]
            at += size
        fields.append((number, wire, value))
    return fields


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """The number at `at` and the position after it."""
    result = shift = 0
    while True:
        if at >= len(raw) or shift > 63:
            raise ProtobufError("the message ends in the middle of a number")
        byte = raw[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7


def _number(raw: bytes) -> float:
    """A number as JSON writes it: whole numbers without a decimal point."""
    number: float = struct.unpack("<d", raw)[0]
    if not math.isfinite(number):
        raise ProtobufError("a number has no JSON form")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as problem:
        raise ProtobufError("a text is not UTF-8") from problem
