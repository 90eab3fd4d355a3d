"""Writes protobuf as Go clients do, from a field table in the published form."""

import base64
import json
from datetime import datetime

from app.domain.values.protobuf import MAGIC

META = "k8s.io.apimachinery.pkg.apis.meta.v1."


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def tagged(number, wire, payload):
    return varint(number << 3 | wire) + payload


def sized(number, payload):
    return tagged(number, 2, varint(len(payload)) + payload)


def fields(message):
    """The fields of a message in their order: (number, value); texts and messages as bytes."""
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        value, place = _read_varint(message, place)
        if key & 7 == 2:
            value, place = message[place : place + value], place + value
        yield key >> 3, value


def _read_varint(message, place):
    number, shift = 0, 0
    while True:
        byte = message[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place


def envelope(api_version, kind, raw):
    names = sized(1, api_version.encode()) + sized(2, kind.encode())
    return MAGIC + sized(1, names) + sized(2, raw) + sized(3, b"") + sized(4, b"")


def encode_message(table, name, tree):
    """The bytes of `tree` as message `name`; `table` is the published field table."""
    out = b""
    for number, field in table[name].items():
        out += _field(table, int(number), field, tree)
    return out


def _field(table, number, field, tree):
    name = field["name"]
    if field.get("inline"):
        return sized(number, encode_message(table, field["type"], tree))
    if name not in tree:
        return _zero(table, number, field)
    value = tree[name]
    if "map" in field:
        kind = field["map"][1]
        return b"".join(
            sized(number, sized(1, key.encode()) + _value(table, 2, kind, item))
            for key, item in value.items()
        )
    if field.get("repeated"):
        return b"".join(_value(table, number, field["type"], item) for item in value)
    return _value(table, number, field["type"], value)


def _zero(table, number, field):
    """Scalars that are no pointers are on the wire even when they are zero, and so are structs."""
    if field.get("ptr") or field.get("repeated") or "map" in field:
        return b""
    kind = field["type"]
    if kind == "string":
        return sized(number, b"")
    if kind in ("int32", "int64", "bool"):
        return tagged(number, 0, b"\x00")
    if kind in table and kind.split(".")[-1] not in ("RawExtension", "Quantity", "IntOrString"):
        return sized(number, b"")
    return b""


def _value(table, number, kind, value):
    if kind == "string":
        return sized(number, value.encode())
    if kind == "bytes":
        return sized(number, base64.b64decode(value))
    if kind in ("int32", "int64"):
        return tagged(number, 0, varint(value))
    if kind == "bool":
        return tagged(number, 0, b"\x01" if value else b"\x00")
    short = kind.split(".")[-1]
    if short in ("Time", "MicroTime"):
        seconds = int(datetime.fromisoformat(value).timestamp())
        return sized(number, tagged(1, 0, varint(seconds)) + tagged(2, 0, b"\x00"))
    if short == "Quantity":
        return sized(number, sized(1, value.encode()))
    if short in ("RawExtension", "FieldsV1"):
        return sized(number, sized(1, json.dumps(value).encode()))
    if short == "ExtraValue":
        return sized(number, b"".join(sized(1, item.encode()) for item in value))
    if short == "IntOrString":
        if isinstance(value, str):
            return sized(number, tagged(1, 0, b"\x01") + sized(3, value.encode()))
        return sized(number, tagged(1, 0, b"\x00") + tagged(2, 0, varint(value)))
    return sized(number, encode_message(table, kind, value))
