"""Server-side apply: merges a configuration into the object unless other managers own the fields.

Parity: api.md 9. A field that the manager applied before and now leaves out is removed, unless
another manager owns it too. A change of a field of another manager is a conflict; `force` takes the
field over.

A configuration with unknown fields is refused. Other writes drop unknown fields; an apply would
then own fields that do not exist. Lists with duplicate keys or with an item without keys are
refused too. Parity: api.md 9; the typed converter of the API server, whose messages these are; it
answers 500, redra 400.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from app.domain.errors import BadRequest, Conflict, Invalid, StatusCause
from app.domain.log import Stamp
from app.domain.log.chain import canonical_json
from app.domain.objects import defaulting, field_errors, registry, rejections
from app.domain.objects.kinds import secret_values
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.schema import conversion, prune, structural
from app.domain.objects.schema.corrections import UNKNOWN
from app.domain.objects.schema.structural import SchemaNode, SchemaShape
from app.domain.objects.write import (
    admission,
    creation,
    field_sets,
    managed_fields,
    metadata,
    patching,
    updating,
)
from app.domain.objects.write.commands import FieldValidation, PatchObject, WriteOptions
from app.domain.objects.write.context import WriteContext
from app.domain.objects.write.decided import Decided
from app.domain.objects.write.field_sets import FieldSet
from app.domain.objects.write.managed_fields import Manager
from app.domain.values import api_groups, json_tree, timestamps, well_known
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.texts import go_text

KUBECTL = "kubectl"
SCHEMA_ERRORS_MAX = 50

_EXPECTED: Mapping[SchemaShape, tuple[tuple[type, ...], str]] = {
    SchemaShape.BOOLEAN: ((bool,), "boolean"),
    SchemaShape.BYTES: ((str,), "string"),
    SchemaShape.INTEGER: ((int, float), "numeric (int or float)"),
    SchemaShape.LIST: ((list,), "list"),
    SchemaShape.MAP: ((dict,), "map"),
    SchemaShape.NUMBER: ((int, float), "numeric (int or float)"),
    SchemaShape.OBJECT: ((dict,), "map"),
    SchemaShape.STRING: ((str,), "string"),
}


def decide_apply(
    reader: ObjectsReader, command: PatchObject, stamp: Stamp, rules: Rules
) -> Decided:
    """Returns the object after the apply, which creates it if it does not exist.

    Raises Conflict with one cause for each field that another manager owns, Invalid without a
    manager, BadRequest for a configuration that cannot be read.
    """
    kind = admission.find_kind(reader, command.key, command.version, rules)
    key = admission.storage_key(kind, command.key)
    if not command.options.field_manager:
        raise _no_manager()
    write = WriteContext.of_change(command, reader, rules, stamp, kind=kind, key=key)
    api_version = write.api_version
    config, warnings = _config(kind, command, rules)
    updating.check_identity(kind, key, config)
    node = structural.storage_node(rules.schemas, kind)
    writer = Manager(
        name=command.options.field_manager,
        operation=managed_fields.APPLY,
        api_version=api_version,
        subresource=command.subresource,
        time=timestamps.seconds_text(stamp.time),
        fields=managed_fields.tracked(
            field_sets.applied(_owned_part(config, command.subresource, kind), node),
            command.subresource,
            has_status=kind.has_status,
        ),
    )
    old = reader.get(key)
    if old is None:
        if command.subresource:
            raise rejections.not_found(kind, key.name)
        wanted = config["metadata"].get("uid")
        if wanted:
            raise rejections.uid_without_object(kind, key.name, wanted)
        config["metadata"]["name"] = key.name
        # Parity: api.md 9; there is no object to compare with.
        config["metadata"].pop("resourceVersion", None)
        tree = _completed(kind, config, node, command, stamp)
        return creation.create(write, tree, warnings=warnings, managers=[writer])
    patching.check_uid(kind, key, str(config["metadata"].get("uid", "")), old)
    if rules.secrets is not None and secret_values.is_secret(key):
        secret_values.recognise(key, config, old, rules.secrets)
    yielded = _yielded(kind, old, node, command, rules)
    merged, managers = _merge(
        kind, old, config, node, writer, yielded=yielded, force=command.options.force
    )
    if command.subresource == "status":
        merged = admission.of_status(kind, api_version, merged, old)
    tree = _completed(kind, merged, node, command, stamp)
    _remember(tree, old, command)
    for name in ("resourceVersion", "uid"):
        tree["metadata"][name] = config["metadata"].get(name, "")
    return updating.replace(write, old, tree, warnings=warnings, managers=managers)


def _no_manager() -> Invalid:
    error = field_errors.required("fieldManager", "is required for apply patch")
    return field_errors.rejection("PatchOptions", api_groups.META, "", [error])


def _check_type(kind: Kind, expected: str, body: JsonObject) -> None:
    """Raises BadRequest unless the configuration has the expected apiVersion and kind.

    Parity: api.md 9; upstream's message.
    """
    version, name = body.get("apiVersion"), body.get("kind")
    if version == expected and name == kind.kind:
        return
    applied_version = version if isinstance(version, str) else ""
    named = name if isinstance(name, str) else ""
    shown = (
        applied_version if "/" in applied_version or not applied_version else f"/{applied_version}"
    )
    raise BadRequest(f"invalid object type: {shown or '/'}, Kind={named}")


def _config(kind: Kind, command: PatchObject, rules: Rules) -> tuple[JsonObject, tuple[str, ...]]:
    """Returns the configuration, pruned, in the storage version, without defaults, and warnings."""
    body = command.body
    if not isinstance(body, dict):
        raise BadRequest("an applied configuration must be an object")
    expected = registry.api_version(command.key.group, command.version)
    _check_type(kind, expected, body)
    written = body.get("metadata")
    named = written if isinstance(written, dict) else {}
    if not named.get("name"):
        raise rejections.nameless(command.key.name)
    if named.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    node = rules.schemas.node(kind, command.key.group, command.version)
    _check_schema(kind, command.key.group, command.version, body, node)
    try:
        if kind.custom is not None:
            config, problems = admission.clean_custom(
                kind, command.version, body, node, is_partial=True
            )
        else:
            config, problems = prune.clean_partial(node, body)
    except prune.WrongType as wrong:
        raise rejections.undecodable(kind, kind.kind, command.version, str(wrong)) from wrong
    warnings = admission.report(
        kind, command.version, [*problems, *command.options.decoding_problems], command.options
    )
    config.setdefault("metadata", {})
    if expected != kind.storage_api_version:
        config = conversion.convert(config, kind, expected, kind.storage_api_version)
    return config, warnings


def _completed(
    kind: Kind, tree: JsonObject, node: SchemaNode, command: PatchObject, stamp: Stamp
) -> JsonObject:
    """A new tree with the fields that are always shown and with defaults."""
    completed: JsonObject
    if kind.custom is not None:
        completed = json_tree.copy(tree)
        completed["metadata"] = prune.clean_value(
            node.fields["metadata"], completed.get("metadata", {})
        )
        admission.fill(kind, command.version, completed)
    else:
        completed = prune.clean_value(node, tree)
    completed["apiVersion"] = kind.storage_api_version
    completed["kind"] = kind.kind
    completed.setdefault("metadata", {})
    defaulting.apply(kind, completed, now=stamp.time, from_beta=command.version == "v1beta1")
    return completed


def _merge(
    kind: Kind,
    old: JsonObject,
    config: JsonObject,
    node: SchemaNode,
    writer: Manager,
    *,
    yielded: FieldSet,
    force: bool,
) -> tuple[JsonObject, list[Manager]]:
    """Returns the merged object and its managers after the apply. Raises Conflict.

    Fields of `yielded` change owner without a conflict.
    """
    managers = managed_fields.load(metadata.of(old)) or [
        _before_first_apply(kind, old, node, writer)
    ]
    own = next((row for row in managers if row.is_same_writer(writer)), None)
    others = [row for row in managers if not row.is_same_writer(writer)]
    merged = field_sets.merged(old, _owned_part(config, writer.subresource, kind), node)
    if own is not None:
        owned = writer.fields
        for row in others:
            owned = field_sets.union(owned, row.fields)
        merged = field_sets.without(merged, own.fields, owned, node)
    changed, removed = field_sets.changes(old, merged, node)
    has_status = kind.has_status
    changed = managed_fields.tracked(changed, writer.subresource, has_status=has_status)
    removed = managed_fields.tracked(removed, writer.subresource, has_status=has_status)
    contested = field_sets.difference(changed, yielded)
    conflicts = [
        (row, both) for row in others if (both := field_sets.intersection(row.fields, contested))
    ]
    if conflicts and not force:
        raise _conflict(conflicts)
    kept = [
        replace(
            row, fields=field_sets.difference(field_sets.difference(row.fields, changed), removed)
        )
        for row in others
    ]
    if own is not None and own.fields == writer.fields and not changed and not removed:
        writer = own
    return merged, [*kept, writer]


def _yielded(
    kind: Kind, old: JsonObject, node: SchemaNode, command: PatchObject, rules: Rules
) -> FieldSet:
    """The fields of a client-side `kubectl apply` that kubectl may take over by server-side apply.

    These are the fields in the annotation whose values in the object are still the applied ones.
    Only kubectl's own manager gets them; another manager name opts out. Parity: api.md 15, row 8.
    """
    if command.options.field_manager != KUBECTL or command.subresource:
        return {}
    text = meta.annotations_of(metadata.of(old)).get(well_known.LAST_APPLIED)
    if not text:
        return {}
    try:
        tree = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    options = WriteOptions(field_validation=FieldValidation.IGNORE)
    body: JsonObject | list[JsonObject] = tree if isinstance(tree, dict) else []
    written = replace(command, body=body, options=options)
    try:
        config, _ = _config(kind, written, rules)
    except BadRequest:
        return {}
    applied = _owned_part(config, "", kind)
    now, _ = field_sets.changes(old, field_sets.merged(old, applied, node), node)
    return field_sets.difference(field_sets.applied(applied, node), now)


def _remember(tree: JsonObject, old: JsonObject, command: PatchObject) -> None:
    """Updates the annotation of `kubectl apply` in place, so that client-side apply still works.

    Only for kubectl's own manager, and only if the object has the annotation. The annotation is
    removed if it exceeds the size limit of annotations.
    """
    if command.options.field_manager != KUBECTL or command.subresource:
        return
    if well_known.LAST_APPLIED not in meta.annotations_of(metadata.of(old)):
        return
    assert isinstance(command.body, dict), "an applied configuration is an object"
    applied = dict(command.body)
    written = dict(meta.metadata(applied))
    if meta.annotations_of(written):
        written["annotations"] = dict(written["annotations"])
        written["annotations"].pop(well_known.LAST_APPLIED, None)
    applied["metadata"] = written
    annotations = meta.annotations_of(tree["metadata"])
    annotations[well_known.LAST_APPLIED] = canonical_json(applied).decode() + "\n"
    if metadata.annotations_size(annotations) > metadata.ANNOTATIONS_MAX:
        del annotations[well_known.LAST_APPLIED]
    tree["metadata"]["annotations"] = annotations


def _owned_part(config: JsonObject, subresource: str, kind: Kind) -> JsonObject:
    """The part of the configuration to apply: the status, or everything except the status."""
    if subresource == "status":
        return {"status": config["status"]} if "status" in config else {}
    return {name: value for name, value in config.items() if not _is_left_out(name, kind)}


def _is_left_out(name: str, kind: Kind) -> bool:
    return name in ("apiVersion", "kind") or (name == "status" and kind.has_status)


def _before_first_apply(kind: Kind, old: JsonObject, node: SchemaNode, writer: Manager) -> Manager:
    """The manager of all fields that existed before the first apply."""
    present, _ = field_sets.changes(field_sets.zero(node), old, node)
    return replace(
        writer,
        name=managed_fields.BEFORE_FIRST_APPLY,
        operation=managed_fields.UPDATE,
        subresource="",
        fields=managed_fields.tracked(present, "", has_status=kind.has_status),
    )


def _conflict(conflicts: list[tuple[Manager, FieldSet]]) -> Conflict:
    """The conflict with one cause for each field; the message lists the fields by manager."""
    by_manager = {_manager_text(row): sorted(field_sets.paths(fields)) for row, fields in conflicts}
    causes = [
        StatusCause(reason="FieldManagerConflict", message=f"conflict with {name}", field=path)
        for name, paths in by_manager.items()
        for path in paths
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lines = [
            line
            for name in sorted(by_manager)
            for line in (f"conflicts with {name}:", *(f"- {path}" for path in by_manager[name]))
        ]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return Conflict(message, causes=tuple(causes))


def _manager_text(manager: Manager) -> str:
    text = f'"{manager.name}"'
    if manager.subresource:
        text += f' with subresource "{manager.subresource}"'
    if manager.operation == managed_fields.UPDATE:
        text += f" using {manager.api_version}"
    return text


def _check_schema(
    kind: Kind, group: str, version: str, config: JsonObject, node: SchemaNode
) -> None:
    """Raises BadRequest naming the fields that are not declared or have a wrong value.

    Parity: api.md 9; the object is named as the configuration names it.
    """
    errors = []
    for text in _schema_errors(config, node, ""):
        errors.append(text)
        if len(errors) >= SCHEMA_ERRORS_MAX:
            break
    if not errors:
        return
    message = errors[0] if len(errors) == 1 else "errors:\n  " + "\n  ".join(errors)
    namespace, name = (json_tree.text(config, "metadata", field) for field in ("namespace", "name"))
    raise BadRequest(
        f"failed to create typed patch object ({namespace}/{name}; "
        f"{group}/{version}, Kind={kind.kind}): {message}"
    )


def _schema_errors(value: Any, node: SchemaNode, path: str) -> Iterator[str]:
    if isinstance(value, dict) and node.shape is SchemaShape.OBJECT:
        fields = node.fields
        for name, item in value.items():
            child = fields.get(name)
            if child is not None:
                yield from _schema_errors(item, child, f"{path}.{name}")
            elif not node.is_open:
                yield f"{path}.{name}: field not declared in schema"
    elif isinstance(value, dict) and node.shape is SchemaShape.MAP:
        for name, item in value.items():
            yield from _schema_errors(item, node.items, f"{path}.{name}")
    elif isinstance(value, list) and node.shape is SchemaShape.LIST:
        yield from _list_errors(value, node, path)
    elif (
        value is not None and (expected := _EXPECTED.get(node.shape)) and node.definition != UNKNOWN
    ):
        types, name = expected
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            shown = f"&value.valueUnstructured{{Value:{go_text.syntax(value)}}}"
            yield f"{path}: expected {name}, got {shown}"


def _list_errors(value: list[Any], node: SchemaNode, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if node.list_type == "map" and isinstance(item, dict) and not _has_key(item, node):
            keys = " ".join(f'"{key}"' for key in node.list_keys)
            yield (
                f"{path}: element {index}: associative list with keys has an element that omits "
                f"all key fields [{keys}] (and doesn't have default values for any key fields)"
            )
            continue
        if node.is_granular:
            place = f"{path}{field_sets.item_text(item, node)}"
            if place in seen:
                yield f"{path}: duplicate entries for key {place[len(path) :]}"
            seen.add(place)
        yield from _schema_errors(item, node.items, place)


def _has_key(item: JsonObject, node: SchemaNode) -> bool:
    """Whether an item of a keyed list has at least one key, or a key with a default."""
    return any(
        item.get(key) is not None
        or ((field := node.items.fields.get(key)) is not None and field.default is not None)
        for key in node.list_keys
    )
