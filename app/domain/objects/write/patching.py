"""Patches of objects, and the errors of patches that cannot be applied.

Server-side apply is in `apply`; the replacement of the old object is in `updating`.
Parity: api.md 8. The error of a patched object that cannot be decoded shows it in the order in
which the API server prints it.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from app.domain.errors import BadRequest, Invalid, TooLarge, UnreadablePatch
from app.domain.log import ObjectKey, Stamp
from app.domain.objects import field_errors, rejections
from app.domain.objects.protobuf.fields import MESSAGES
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.schema import conversion
from app.domain.objects.schema.structural import SchemaNode, SchemaShape, short_name
from app.domain.objects.write import admission, metadata, subresources, updating
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.objects.write.context import WriteContext
from app.domain.objects.write.decided import Decided
from app.domain.values import json_tree, patches
from app.domain.values.json_tree import JsonObject
from app.domain.values.texts import go_text

APPLY_ERROR = "the server rejected our request due to an error in our request"

_Touched = Mapping[str, Any]
"""The paths of a patch: a tree of keys, with an empty tree after the last key."""


def decide_patch(
    reader: ObjectsReader, command: PatchObject, stamp: Stamp, rules: Rules
) -> Decided:
    """Returns the patched object. Raises NotFound, Conflict, Invalid, BadRequest, TooLarge."""
    kind = admission.find_kind(reader, command.key, command.version, rules)
    key = admission.storage_key(kind, command.key)
    old = reader.get(key)
    if old is None:
        raise rejections.not_found(admission.in_group(kind, command.key.group), key.name)
    write = WriteContext.of_change(command, reader, rules, stamp, kind=kind, key=key)
    if command.subresource == subresources.SCALE:
        shown = subresources.scale_of(kind, old)
        scaled = _apply(kind, shown, command, rules)
        tree = subresources.with_scale(kind, old, updating.clean_scale(kind, scaled, rules))
        return updating.replace(write, old, tree, is_scale=True)
    shown = conversion.convert(old, kind, kind.storage_api_version, write.api_version)
    patched = _apply(kind, shown, command, rules)
    if command.subresource == "status":
        patched = admission.of_status(kind, write.api_version, patched, old)
    tree, warnings = _admit_patched(kind, command, patched, stamp, rules)
    updating.check_identity(kind, key, tree)
    check_uid(kind, key, str(tree["metadata"].get("uid", "")), old)
    return updating.replace(write, old, tree, warnings=warnings)


def _admit_patched(
    kind: Kind, command: PatchObject, patched: JsonObject, stamp: Stamp, rules: Rules
) -> tuple[JsonObject, tuple[str, ...]]:
    """Admits a patched object.

    Parity: api.md 8; an object that cannot be decoded is Invalid in the field `patch`, whose value
    is the patched object (for a strategic merge patch: the patch). Custom objects are decoded in
    another way.
    """
    try:
        return admission.admit(
            kind,
            command.key.group,
            command.version,
            patched,
            options=command.options,
            rules=rules,
            now=stamp.time,
        )
    except BadRequest as problem:
        if kind.custom is not None or not problem.undecodable:
            raise
        node = rules.schemas.node(kind, command.key.group, command.version)
        raise _unreadable(command, patched, node, problem.undecodable) from problem


def _unreadable(
    command: PatchObject, patched: JsonObject, node: SchemaNode, detail: str
) -> Invalid:
    """The refusal of a patch whose result cannot be decoded, in the form that Go prints."""
    body = command.body
    if command.type is PatchType.STRATEGIC:
        shown, detail = go_text.plain(body), _restoring(detail)
    else:
        if isinstance(body, list):
            paths = [json_tree.text(operation, "path").split("/")[1:] for operation in body]
            touched = _paths_of_operations(paths)
        else:
            touched = _paths_of_merge(body)
        shown = msgspec.json.encode(_in_printed_order(patched, node, touched)).decode()
    error = field_errors.invalid("patch", shown, detail)
    refusal = field_errors.rejection("", "", "", [error])
    return UnreadablePatch(
        refusal.message, subject=str(command.key), detail=str(error), causes=refusal.causes
    )


def _restoring(detail: str) -> str:
    """The message about a wrong type in a strategic merge patch, for which Go decodes no JSON."""
    match = _WRONG_TYPE.fullmatch(detail)
    if match is None:
        return detail
    kind, go_type = _GO_KINDS.get(match[1], match[1]), match[2]
    if go_type.startswith("[]"):
        return f"cannot restore slice from {kind}"
    if go_type.startswith("map["):
        return f"cannot restore map from {kind}"
    return f"cannot restore struct from: {kind}" if "." in go_type else detail


_WRONG_TYPE = re.compile(
    r"json: cannot unmarshal (\w+)(?: \S+)? into Go struct field \S+ of type (.+)"
)
_GO_KINDS = {"array": "slice", "number": "int64", "object": "map"}


def check_uid(kind: Kind, key: ObjectKey, written: str, old: JsonObject) -> None:
    """Raises Invalid for a patch or an applied configuration that changes the uid.

    Parity: objects.md 3; the cause is listed twice, because strategy and registry both check it.
    """
    if written and written != metadata.of(old).get("uid"):
        errors = [field_errors.immutable("metadata.uid", written)] * 2
        raise field_errors.rejection(kind.kind, kind.group, key.name, errors)


def _apply(kind: Kind, shown: JsonObject, command: PatchObject, rules: Rules) -> JsonObject:
    body = command.body
    try:
        match command.type:
            case PatchType.JSON:
                return _apply_operations(shown, body, rules)
            case PatchType.MERGE:
                if not isinstance(body, dict):
                    raise BadRequest("a merge patch must be an object")
                merged: JsonObject = patches.apply_merge(shown, body)
                return merged
            case PatchType.STRATEGIC:
                if not isinstance(body, dict):
                    raise BadRequest("a strategic merge patch must be an object")
                node = rules.schemas.node(kind, command.key.group, command.version)
                return patches.apply_strategic(shown, body, node)
            case PatchType.APPLY:
                raise AssertionError("apply is decided elsewhere")
    except patches.PatchError as problem:
        if command.type is PatchType.JSON:
            raise Invalid(APPLY_ERROR, is_generic=True) from problem
        raise BadRequest(str(problem)) from problem


def _apply_operations(
    shown: JsonObject, body: JsonObject | list[JsonObject], rules: Rules
) -> JsonObject:
    if not isinstance(body, list):
        raise BadRequest("a JSON patch must be a list of operations")
    if len(body) > rules.patch_operations_max:
        raise TooLarge(
            f"The allowed maximum operations in a JSON patch is {rules.patch_operations_max}, "
            f"got {len(body)}"
        )
    return patches.apply_operations(shown, body)


def _paths_of_merge(patch: Any) -> _Touched:
    """The paths of a merge patch: the keys of its nested objects."""
    if not isinstance(patch, Mapping):
        return {}
    return {key: _paths_of_merge(value) for key, value in patch.items()}


def _paths_of_operations(paths: list[list[str]]) -> _Touched:
    """The paths of the operations of a JSON patch."""
    reached: dict[str, Any] = {}
    for path in paths:
        place = reached
        for part in path:
            place = place.setdefault(part, {})
    return reached


def _in_printed_order(value: Any, node: SchemaNode | None, touched: _Touched | None) -> Any:
    """A patched object in printed order: keys sorted along the patch's paths, else by type.

    Parity: api.md 8; a JSON or merge patch decodes only the parts on its paths, and leaves the
    others as they were written.
    """
    if isinstance(value, list):
        items = node.items if node is not None and node.shape is SchemaShape.LIST else None
        below = touched or {}
        return [_in_printed_order(item, items, below.get(str(at))) for at, item in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    is_map = node is not None and node.shape is SchemaShape.MAP
    names = sorted(value) if touched is not None else _in_type_order(value, node)
    pairs: JsonObject = {}
    for name in names:
        child = None if node is None else node.items if is_map else node.fields.get(name)
        pairs[name] = _in_printed_order(
            value[name], child, None if touched is None else touched.get(name)
        )
    return pairs


def _in_type_order(value: Mapping[str, Any], node: SchemaNode | None) -> list[str]:
    message = MESSAGES.get(short_name(node.definition)) if node is not None else None
    if message is None:
        return sorted(value)
    places = {field.name: number for number, field in message.items()}
    return sorted(value, key=lambda name: (places.get(name, 0), name))
