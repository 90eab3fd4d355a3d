"""Definitions of custom kinds as typed Go clients send them."""

import json
import struct

from app.api.kubernetes import bodies
from app.domain.objects.protobuf.fields import MESSAGES
from app.domain.objects.schema.decode import DecodeBounds
from tests.api.custom import CRDS, WIDGETS, definition, version, widget
from tests.api.serving import serving
from tests.unit.protobuf.wire import envelope, sized, tagged, varint

RICH = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 2.5, "maxLength": 3},
        "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "open": {"type": "object", "additionalProperties": True},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
        "port": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
        },
    },
}
"""Every form that a part of a schema can take on the wire."""


def message(name, tree):
    """The bytes of a tree as a message of our own table."""
    fields = MESSAGES[name]
    if next(iter(fields.values())).is_choice:
        return choice(fields, tree)
    return b"".join(
        field(number, found, tree[found.name])
        for number, found in fields.items()
        if found.name in tree
    )


def choice(fields, tree):
    wanted = "allows" if isinstance(tree, bool) else "schema"
    out = b""
    for number, found in fields.items():
        if found.name == wanted:
            out += field(number, found, tree)
        elif found.name == "allows":
            out += tagged(number, 0, b"\x01")
    return out


def field(number, found, value):
    if found.is_map:
        return b"".join(
            sized(number, sized(1, key.encode()) + sized(2, message(found.type, item)))
            for key, item in value.items()
        )
    if found.is_list:
        return b"".join(scalar(number, found.type, item) for item in value)
    return scalar(number, found.type, value)


def scalar(number, kind, value):
    if kind == "string":
        return sized(number, value.encode())
    if kind in ("bool", "int32", "int64"):
        return tagged(number, 0, varint(int(value)))
    if kind == "double":
        return tagged(number, 1, struct.pack("<d", value))
    if kind == "JSON":
        return sized(number, sized(1, json.dumps(value).encode()))
    return sized(number, message(kind, value))


def encoded(tree):
    name = "apiextensions.v1.CustomResourceDefinition"
    return envelope(tree["apiVersion"], tree["kind"], message(name, tree))


def test_every_part_of_a_schema_is_read():
    tree = definition(version(spec=RICH))
    found = bodies.decode_protobuf(encoded(tree), DecodeBounds())
    assert found["spec"] == tree["spec"]


async def test_definition_sent_as_protobuf_is_served():
    async with serving() as server:
        kind = "application/vnd.kubernetes.protobuf"
        made = await server.raw("POST", CRDS, encoded(definition()), content_type=kind)
        assert made.status_code == 201, made.text
        await server.post(WIDGETS, widget())
