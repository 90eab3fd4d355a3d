"""Protobuf bodies of trees, whole or damaged on the level of the wire format."""

import base64
import json

from app.domain.objects import registry
from app.domain.objects.protobuf import fields
from app.domain.values.protobuf import SCALARS, SPECIAL
from tests.unit.protobuf.wire import envelope, sized, tagged, varint

_MESSAGES = fields.MESSAGES


def protobuf_body(rng, tree):
    """A protobuf body for `tree`; None when its kind has no message."""
    api_version, kind = tree.get("apiVersion"), tree.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    group, version = registry.split_api_version(api_version)
    name = fields.message_name(group, version, kind)
    if name is None:
        return None
    raw = _message(rng, name, tree, 0)
    damage = rng.random()
    if damage < 0.5:
        raw = _damaged(rng, raw)
    if damage < 0.05:
        kind = rng.choice(("", "Pod", "List", "x" * 3_000, "DeleteOptions"))
    body = envelope(api_version, kind, raw)
    if damage > 0.9:
        body = _damaged(rng, body)
    return body


def _message(rng, name, tree, depth):
    out = b""
    for number, field in _MESSAGES[name].items():
        if field.is_inline:
            out += sized(number, _message(rng, field.type, tree, depth + 1))
        elif isinstance(tree, dict) and field.name in tree:
            out += _field(rng, number, field, tree[field.name], depth)
    return out


def _field(rng, number, field, value, depth):
    if field.is_map and isinstance(value, dict):
        return b"".join(
            sized(number, sized(1, _text(key)) + _value(rng, 2, field.type, item, depth))
            for key, item in value.items()
        )
    if field.is_list and isinstance(value, list):
        return b"".join(_value(rng, number, field.type, item, depth) for item in value)
    return _value(rng, number, field.type, value, depth)


def _value(rng, number, kind, value, depth):
    """The value encoded as the type of its field, or as its own type if that differs."""
    if kind in ("int32", "int64", "bool") and isinstance(value, bool | int):
        return tagged(number, 0, varint(value))
    if kind == "bytes" and isinstance(value, str):
        try:
            return sized(number, base64.b64decode(value))
        except ValueError:
            return sized(number, _text(value))
    if kind in SPECIAL:
        return sized(number, _special(kind, value))
    if kind not in SCALARS and isinstance(value, dict) and depth < 40:
        return sized(number, _message(rng, kind, value, depth + 1))
    if isinstance(value, int | bool):
        return tagged(number, 0, varint(int(value)))
    return sized(number, _text(value))


def _special(kind, value):
    if kind in ("RawExtension", "FieldsV1"):
        return sized(1, json.dumps(value).encode())
    if kind in ("Time", "MicroTime") and isinstance(value, int):
        return tagged(1, 0, varint(value)) + tagged(2, 0, varint(value))
    if kind == "IntOrString" and isinstance(value, int):
        return tagged(2, 0, varint(value))
    if kind == "IntOrString":
        return tagged(1, 0, b"\x01") + sized(3, _text(value))
    return sized(1, _text(value))


def _text(value):
    return str(value).encode("utf-8", "surrogatepass")


def _damaged(rng, raw):
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        raw = rng.choice(
            (_cut, _flipped, _unknown, _overlong, _other_wire, _repeated, _huge_length, _nested)
        )(rng, raw)
    return raw


def _cut(rng, raw):
    return raw[: rng.randint(0, len(raw))]


def _flipped(rng, raw):
    found = bytearray(raw)
    for _ in range(rng.choice((1, 1, 3, 10))):
        if found:
            found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)


def _place(rng, raw):
    return rng.randint(0, len(raw)) if rng.random() < 0.5 else rng.choice((0, len(raw)))


def _insert(rng, raw, piece):
    place = _place(rng, raw)
    return raw[:place] + piece + raw[place:]


def _unknown(rng, raw):
    number = rng.choice((15, 99, 2**28, 2**29 - 1, 2**40))
    piece = rng.choice(
        (tagged(number, 0, varint(5)), tagged(number, 1, bytes(8)), tagged(number, 5, bytes(4)),
         sized(number, b"x" * 300), tagged(number, 3, b"") + tagged(number, 4, b""))
    )  # fmt: skip
    return _insert(rng, raw, piece)


def _overlong(rng, raw):
    number = rng.randint(1, 15)
    piece = rng.choice(
        (
            b"\x80" * 9 + b"\x01",
            b"\xff" * 10 + b"\x01",
            b"\x80" * 4 + b"\x00",
            b"\xff" * 9 + b"\x7f",
        )
    )
    return _insert(rng, raw, tagged(number, 0, piece))


def _other_wire(rng, raw):
    number, wire = rng.randint(0, 16), rng.randrange(8)
    return _insert(rng, raw, tagged(number, wire, rng.randbytes(rng.choice((0, 1, 4, 8)))))


def _repeated(rng, raw):
    return raw * rng.choice((2, 2, 3, 20))


def _huge_length(rng, raw):
    size = rng.choice((2**31, 2**63, 2**64 - 1, len(raw) + 1))
    return _insert(rng, raw, varint(rng.randint(1, 15) << 3 | 2) + varint(size))


def _nested(rng, raw):
    number = rng.randint(1, 6)
    for _ in range(rng.choice((3, 63, 65, 200))):
        raw = sized(number, raw)
    return raw
