"""Request bodies: JSON, YAML and protobuf, bounded. Parity: api.md 3."""

from typing import Any

from app.api.server.messages import HttpRequest
from app.domain.errors import BadRequest, TooLarge, UnsupportedMediaType
from app.domain.objects import registry
from app.domain.objects.protobuf import fields
from app.domain.objects.schema import decode
from app.domain.objects.schema.decode import DecodeBounds, Decoded
from app.domain.objects.write.commands import PatchType
from app.domain.values import protobuf
from app.domain.values.json_tree import JsonObject
from app.domain.values.protobuf import ProtobufError

_JSON_TYPES = frozenset({"", "application/json", "*/*"})
_YAML_TYPES = frozenset({"application/yaml"})
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_PATCHES = {patch.value: patch for patch in PatchType}
_UNDECODABLE = "error decoding patch: "
_JSON_NOUNS = {
    str: "string",
    int: "number",
    float: "number",
    bool: "bool",
    list: "array",
    dict: "object",
}
"""The names of JSON values in messages of the server."""


def media_type(request: HttpRequest) -> str:
    """The Content-Type without its parameters, in lower case."""
    return request.header(b"content-type").partition(";")[0].strip().lower()


def decode_object(
    text: bytes, content_type: str, bounds: DecodeBounds, *, kind: str = "", is_custom: bool = False
) -> Decoded:
    """One object in the format of the content type; custom objects are not read as protobuf.

    `kind` is the kind of a protobuf body that does not state its kind. Raises BadRequest, TooLarge,
    UnsupportedMediaType.
    """
    if content_type in _JSON_TYPES and text.strip() == b"null":
        # Parity: api.md 5; null leaves the new object empty.
        return Decoded(value={})
    if content_type in _JSON_TYPES:
        return decode.decode(text, is_yaml=False, bounds=bounds)
    if content_type in _YAML_TYPES:
        return decode.decode(text, is_yaml=True, bounds=bounds)
    if content_type == _PROTOBUF and not is_custom:
        return Decoded(value=decode_protobuf(text, bounds, kind=kind))
    raise UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml" + ("" if is_custom else f", {_PROTOBUF}")
    )


def decode_protobuf(text: bytes, bounds: DecodeBounds, *, kind: str = "") -> JsonObject:
    """The JSON form of a protobuf body, with apiVersion and kind."""
    if len(text) > bounds.bytes_max:
        raise TooLarge(f"the body has {len(text)} bytes; at most {bounds.bytes_max} are accepted")
    try:
        envelope = protobuf.decode_envelope(text)
        group, version = registry.split_api_version(envelope.api_version)
        name = fields.message_name(group, version, envelope.kind or kind)
        if name is None:
            raise BadRequest(
                f'no kind "{envelope.kind[:64]}" is registered for version '
                f'"{envelope.api_version[:64]}" as protobuf; send it as JSON'
            )
        tree = protobuf.decode(fields.MESSAGES, name, envelope.raw)
    except ProtobufError as problem:
        raise BadRequest(f"the body is not a protobuf object: {problem}") from problem
    tree["apiVersion"], tree["kind"] = envelope.api_version, envelope.kind
    metadata = tree.get("metadata")
    if isinstance(metadata, dict) and not metadata.get("name"):
        metadata.pop("name", None)
    return tree


def patch_type(request: HttpRequest, *, is_custom: bool = False) -> PatchType:
    """The type of the patch in a request. Raises UnsupportedMediaType.

    Custom objects have no strategic merge patch.
    """
    patch_kind = _PATCHES.get(media_type(request))
    if patch_kind is None or (is_custom and patch_kind is PatchType.STRATEGIC):
        if patch_kind is None:
            raise UnsupportedMediaType("415: Unsupported Media Type", is_generic=True)
        offered = [name for name in _PATCHES if name != PatchType.STRATEGIC.value]
        listed = ", ".join(offered)
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            f"{listed}"
        )
    return patch_kind


def decode_patch(
    text: bytes, patch: PatchType, bounds: DecodeBounds, *, operations_max: int
) -> tuple[JsonObject | list[JsonObject], tuple[str, ...]]:
    """The body of a patch, and the problems with its keys. Raises BadRequest or TooLarge."""
    if patch is PatchType.JSON:
        operations = decode.decode_json(text, bounds).value
        return _operations(operations, operations_max), ()
    if patch is PatchType.APPLY:
        decoded = decode.decode(text, is_yaml=True, bounds=bounds)
    else:
        decoded = decode.decode_json(text, bounds)
        _check_object(decoded.value, patch)
    return decode.as_object(decoded), decoded.problems


def _check_object(value: object, patch: PatchType) -> None:
    """Raises BadRequest for a patch that is no object. Parity: api.md 8."""
    if isinstance(value, dict):
        return
    noun = _JSON_NOUNS.get(type(value))
    if noun is None:
        raise BadRequest("the body must be one object")
    before = _UNDECODABLE if patch is PatchType.MERGE else ""
    raise BadRequest(
        f"{before}json: cannot unmarshal {noun} into Go value of type map[string]interface {{}}"
    )


def _operations(patch: Any, operations_max: int) -> list[JsonObject]:
    if (noun := _JSON_NOUNS.get(type(patch))) and not isinstance(patch, list):
        raise BadRequest(
            f"{_UNDECODABLE}json: cannot unmarshal {noun} into Go value of type "
            "[]handlers.jsonPatchOp"
        )
    if not isinstance(patch, list) or not all(isinstance(item, dict) for item in patch):
        raise BadRequest("a JSON patch must be a list of operations")
    if len(patch) > operations_max:
        raise TooLarge(
            f"The allowed maximum operations in a JSON patch is {operations_max}, got {len(patch)}"
        )
    return patch
