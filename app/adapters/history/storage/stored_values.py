"""The decoder of stored values of an API server: protobuf, JSON, or unreadable.

Parity: history-formats.md 12.
"""

import base64

import msgspec

from app.adapters.history import json_text
from app.adapters.history.limits import ImportLimits
from app.domain.errors import InputError
from app.domain.log.records import Loss
from app.domain.objects import registry
from app.domain.objects.protobuf import fields
from app.domain.values import protobuf
from app.domain.values.json_tree import JsonObject
from app.domain.values.protobuf import Message, ProtobufError, ProtobufField

ENCRYPTED = b"k8s:enc:"
CBOR = b"\xd9\xd9\xf7"
_LIST = "list"


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded value: the object, or its known parts, and the losses."""

    tree: JsonObject
    losses: tuple[Loss, ...] = ()


def decode(value: bytes, place: str, limits: ImportLimits) -> Stored | None:
    """The object of a stored value; None for values that are not objects of the API.

    Raises InputError for a damaged value.
    """
    if value.startswith(protobuf.MAGIC):
        return _decode_protobuf(value, place)
    if value.startswith(b"{"):
        tree = json_text.decode(value, place, limits)
        return Stored(tree=tree) if isinstance(tree, dict) and "kind" in tree else None
    if value.startswith(ENCRYPTED):
        return Stored(tree={}, losses=(Loss.ENCRYPTED,))
    if value.startswith(CBOR):
        return Stored(tree={}, losses=(Loss.UNDECODABLE,))
    return None


def repeated_keys(value: bytes) -> tuple[str, ...]:
    """The paths of the keys that occur again in one object of a value that `decode` reads."""
    return json_text.repeated_keys(value, msgspec.json.decode(value)) if value[:1] == b"{" else ()


def _decode_protobuf(value: bytes, place: str) -> Stored:
    try:
        envelope = protobuf.decode_envelope(value)
        group, version = registry.split_api_version(envelope.api_version)
        name = fields.message_name(group, version, envelope.kind)
        identity = {"apiVersion": envelope.api_version, "kind": envelope.kind}
        item = fields.message_name(group, version, envelope.kind.removesuffix("List"))
        if name is None and item is not None:
            listed = protobuf.decode({**fields.MESSAGES, _LIST: _items(item)}, _LIST, envelope.raw)
            return Stored(tree={**identity, "metadata": {}, "items": [], **listed})
        if name is None:
            raw = base64.b64encode(envelope.raw).decode()
            return Stored(tree={**identity, "raw": raw}, losses=(Loss.UNDECODABLE,))
        return Stored(tree={**identity, **protobuf.decode(fields.MESSAGES, name, envelope.raw)})
    except ProtobufError as problem:
        raise InputError(f"the stored value is damaged: {problem}", place=place) from problem


def _items(item: str) -> Message:
    """The message of a list, which only answers of a server are: its items are its field 2."""
    return {2: ProtobufField(name="items", type=item, is_list=True)}
