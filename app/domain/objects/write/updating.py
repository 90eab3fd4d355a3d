"""Updates of objects, and the removal of terminating objects without finalizers.

Each change is decided against the complete current object. Parity:
api.md 5 and 8, controllers.md 6.
"""

from collections.abc import Sequence
from typing import Any

from app.domain.errors import BadRequest, Rejected
from app.domain.log import Draft, EventType, ObjectKey, Stamp
from app.domain.objects import field_errors, registry, rejections
from app.domain.objects.custom import checking, naming
from app.domain.objects.field_errors import FieldError
from app.domain.objects.kinds import (
    claim_rights,
    ignored_fields,
    pods,
    pool_warnings,
    priorities,
    secret_values,
    secret_warnings,
    services,
    workloads,
)
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.schema import equality, gates, prune, structural
from app.domain.objects.schema.structural import SchemaNode
from app.domain.objects.write import (
    admission,
    creation,
    managed_fields,
    metadata,
    review_calls,
    subresources,
)
from app.domain.objects.write.commands import (
    CreateObject,
    UpdateObject,
)
from app.domain.objects.write.context import WriteContext
from app.domain.objects.write.decided import Decided
from app.domain.objects.write.managed_fields import Manager
from app.domain.values import api_groups, json_tree, timestamps
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject

_WRITER = ("operation", "manager", "apiVersion", "subresource")
"""The fields that identify a manager of an object."""


def decide_update(
    reader: ObjectsReader, command: UpdateObject, stamp: Stamp, rules: Rules
) -> Decided:
    """Replaces an object or a part of it. Raises NotFound, Conflict, Invalid, BadRequest."""
    kind = admission.find_kind(reader, command.key, command.version, rules)
    key = admission.storage_key(kind, command.key)
    old = reader.get(key)
    if old is None:
        if kind.created_by_update and not command.subresource:
            return _create(reader, command, stamp, rules)
        raise rejections.not_found(admission.in_group(kind, command.key.group), key.name)
    write = WriteContext.of_change(command, reader, rules, stamp, kind=kind, key=key)
    if command.subresource == subresources.SCALE:
        tree = subresources.with_scale(kind, old, clean_scale(kind, command.tree, rules))
        return replace(write, old, tree, is_scale=True)
    written = command.tree
    if command.subresource == "status":
        written = admission.of_status(kind, write.api_version, written, old)
    tree, warnings = admission.admit(
        kind,
        command.key.group,
        command.version,
        written,
        options=command.options,
        rules=rules,
        now=stamp.time,
    )
    check_identity(kind, key, tree)
    if tree["metadata"].get("resourceVersion", "") in ("", "0"):
        _check_unconditional(kind, command.key.group, command.version, key.name)
    return replace(write, old, tree, warnings=warnings)


def _create(reader: ObjectsReader, command: UpdateObject, stamp: Stamp, rules: Rules) -> Decided:
    """Creates the object of a PUT. Raises NotFound for a resourceVersion, Conflict for a uid."""
    written = metadata.of(command.tree)
    version, uid = written.get("resourceVersion") or "0", written.get("uid")
    kind = admission.find_kind(reader, command.key, command.version, rules)
    if version != "0":
        raise rejections.not_found(admission.in_group(kind, command.key.group), command.key.name)
    if uid:
        raise rejections.uid_without_object(kind, command.key.name, uid)
    made = CreateObject(
        key=command.key, version=command.version, tree=command.tree, options=command.options
    )
    return creation.decide_create(reader, made, stamp, rules)


def clean_scale(kind: Kind, scale: JsonObject, rules: Rules) -> JsonObject:
    """Returns the pruned Scale. Raises BadRequest for a value of a wrong type."""
    node = rules.schemas.find(api_groups.AUTOSCALING, "v1", "Scale")
    assert node is not None, "every release publishes Scale"
    try:
        scale_kept, _unknown = prune.clean(node, scale)
    except prune.WrongType as wrong:
        raise rejections.undecodable(kind, "Scale", "v1", str(wrong)) from wrong
    return scale_kept


def replace(
    write: WriteContext,
    old: JsonObject,
    tree: JsonObject,
    *,
    warnings: tuple[str, ...] = (),
    managers: list[Manager] | None = None,
    is_scale: bool = False,
) -> Decided:
    """Replaces `old` by an admitted tree, or the part of it that the subresource names.

    This function owns the tree. An apply passes its own `managers`. With `is_scale` a Scale was
    written, and `tree` is the scaled object. A result without drafts means that nothing changes.
    """
    reader, kind, key, stamp = write.reader, write.kind, write.key, write.stamp
    rules, options = write.rules, write.options
    subresource = "" if is_scale else write.subresource
    api_version = kind.storage_api_version if is_scale else write.api_version
    _check_preconditions(kind, key, metadata.of(tree), metadata.of(old))
    immutable = metadata.check_kept(metadata.of(tree), metadata.of(old))
    if not subresources.exists(kind, subresource):
        raise rejections.unknown_resource()
    new, dropped = _successor(kind, key, old, tree, subresource, rules)
    warnings += dropped
    node = structural.storage_node(rules.schemas, kind)
    if managers is not None:
        managed_fields.put(new["metadata"], managers)
    elif rules.tracks_managers:
        writer = managed_fields.updater(options, stamp, api_version, write.subresource)
        owned = admission.as_owned(kind, new)
        managed_fields.track(new["metadata"], owned, old, node, writer, has_status=kind.has_status)
    if options.review is not None:
        new = _changed(write, new, old)
    _prepare(reader, kind, new, old, stamp, subresource, rules)
    _keep_times(kind, new, old, node)
    if kind.has_generation and subresource != "status":
        _count_generation(kind, new, old, node)
    is_same = equality.same_object(new, old, node, is_custom=kind.custom is not None)
    if immutable or not is_same:
        errors = _errors(kind, new, old, subresource, api_version, immutable)
        context = rules.context(reader, stamp.time)
        errors += rules.validate_update(kind, new, old, subresource, context)
        if isinstance(options.rights, claim_rights.ClaimRights) and subresource == "status":
            errors += claim_rights.check(old, new, options.rights)
        if errors:
            raise field_errors.rejection(kind.kind, kind.group, key.name, errors)
    warnings += _policy_warnings(write, new, old)
    if is_same and not _is_finished(kind, new):
        return Decided(tree=old, warnings=warnings)
    admission.forget_empty(kind, new)
    if not subresource:
        warnings += _warnings(reader, kind, key, new, old, rules)
    if options.dry_run:
        return Decided(tree=new, warnings=warnings)
    return Decided(drafts=(_draft(kind, key, new, old, stamp),), tree=new, warnings=warnings)


def _draft(kind: Kind, key: ObjectKey, new: JsonObject, old: JsonObject, stamp: Stamp) -> Draft:
    """The draft of the change, or of the removal of a terminating object without finalizers."""
    before = metadata.of(old)
    uid: Uid = before.get("uid") or NO_UID
    if _is_finished(kind, new):
        # Watchers see the state before this write; the writer sees the new one with the old
        # resourceVersion. Parity: controllers.md 6.5.
        last = {**old, "metadata": dict(before)}
        return Draft(type=EventType.OBJECT_DELETED, key=key, uid=uid, tree=last, stamp=stamp)
    return Draft(type=EventType.OBJECT_UPDATED, key=key, uid=uid, tree=new, stamp=stamp)


def _changed(write: WriteContext, new: JsonObject, old: JsonObject) -> JsonObject:
    """The object with webhooks' changes to the part that the write is about."""
    kind, subresource = write.kind, write.subresource
    is_scale = subresource == subresources.SCALE
    changed_tree = review_calls.changed(
        write,
        review_calls.UPDATE,
        tree=subresources.scale_of(kind, new) if is_scale else new,
        old=subresources.scale_of(kind, old) if is_scale else old,
    )
    if changed_tree is new or is_scale:
        return new
    changed = subresources.merged(kind, new, changed_tree, subresource)
    if subresource == "status":
        return changed
    written = metadata.changed(metadata.of(changed_tree), metadata.of(old))
    written.pop("managedFields", None)
    kept = ("managedFields", "name", "namespace")
    before = metadata.of(new)
    changed["metadata"] = written | {name: before[name] for name in kept if name in before}
    return changed


def _policy_warnings(write: WriteContext, new: JsonObject, old: JsonObject) -> tuple[str, ...]:
    """Returns the policies' warnings about the change. Raises the refusal of a policy."""
    if write.subresource == subresources.SCALE:
        new, old = subresources.scale_of(write.kind, new), subresources.scale_of(write.kind, old)
    return review_calls.ask(write, review_calls.UPDATE, tree=new, old=old)


def _warnings(
    reader: ObjectsReader,
    kind: Kind,
    key: ObjectKey,
    new: JsonObject,
    old: JsonObject,
    rules: Rules,
) -> tuple[str, ...]:
    """The warnings for the author of a changed object."""
    warnings = ignored_fields.warnings(kind, new, old, webhooks=rules.webhooks)
    if kind.kind == "Secret" and kind.custom is None:
        warnings += secret_warnings.warnings(new)
    if kind.group == api_groups.RESOURCE and kind.kind == "ResourceSlice":
        warnings += pool_warnings.of_write(reader, key, new)
    return warnings


def _successor(
    kind: Kind,
    key: ObjectKey,
    old: JsonObject,
    tree: JsonObject,
    subresource: str,
    rules: Rules,
) -> tuple[JsonObject, tuple[str, ...]]:
    """Returns the object after the write, with all other parts from `old`, and warnings."""
    new = subresources.merged(kind, old, tree, subresource)
    if subresource == "status":
        new["metadata"] = dict(new["metadata"])
    else:
        new["metadata"] = metadata.changed(metadata.of(tree), metadata.of(old))
        new["metadata"]["name"] = key.name
        if kind.namespaced:
            new["metadata"]["namespace"] = key.namespace
        else:
            new["metadata"].pop("namespace", None)
    dropped = gates.drop_disabled(kind, new, old, rules.profile)
    if rules.secrets is not None and secret_values.is_secret(key):
        secret_values.recognise(key, new, old, rules.secrets)
    return new, dropped


def _errors(
    kind: Kind,
    new: JsonObject,
    old: JsonObject,
    subresource: str,
    api_version: str,
    immutable: Sequence[FieldError],
) -> list[FieldError]:
    """The errors of the metadata, and of a custom object by its schema."""
    errors = list(immutable)
    errors += metadata.check_change(new["metadata"], metadata.of(old))
    if subresource != "status":
        errors += metadata.check(kind, new)
    # Parity: api.md 5; the registry and the strategy of a kind check the metadata of a change
    # alike.
    errors *= 2
    if kind.custom is not None:
        _, version = registry.split_api_version(api_version)
        version_row = kind.custom.versions.get(version, kind.custom.versions[kind.storage_version])
        errors += checking.check(version_row.schema, new, old)
    return errors


def check_identity(kind: Kind, key: ObjectKey, tree: JsonObject) -> None:
    """Raises BadRequest unless name and namespace of the tree are absent or those of the key."""
    written = tree["metadata"]
    name = written.get("name", "")
    if name and name != key.name:
        raise BadRequest(
            f"the name of the object ({name}) does not match the name on the URL ({key.name})"
        )
    namespace = written.get("namespace", "")
    if kind.namespaced and namespace and namespace != key.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _check_unconditional(kind: Kind, group: str, version: str, name: str) -> None:
    """Raises Invalid unless an update without resourceVersion is allowed."""
    strict = (
        kind.group == api_groups.RESOURCE and kind.kind == "DeviceTaintRule" and version == "v1"
    )
    if kind.unconditional_update and not strict:
        return
    error = field_errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
    raise field_errors.rejection(kind.kind, group, name, [error])


def _check_preconditions(
    kind: Kind, key: ObjectKey, written: JsonObject, before: JsonObject
) -> None:
    version = written.get("resourceVersion", "")
    if version not in ("", "0") and version != before.get("resourceVersion"):
        raise _stale(kind, key, version)
    uid = written.get("uid", "")
    if uid and uid != before.get("uid"):
        raise rejections.uid_conflict(kind, key, uid, str(before.get("uid", "")))


def _stale(kind: Kind, key: ObjectKey, version: str) -> Rejected:
    if version.isdecimal():
        return rejections.conflict(kind, key.name)
    error = field_errors.invalid(
        "metadata.resourceVersion", version, "must be a number in text form"
    )
    return field_errors.rejection(kind.kind, kind.group, key.name, [error])


def _keep_times(kind: Kind, new: JsonObject, old: JsonObject, node: SchemaNode) -> None:
    """Keeps the times of managers, in place, if a write changes nothing else.

    Managers are compared before defaults are set, so a list that is applied again without its
    defaults appears as a change of its owner. Parity: api.md 0, 9 step 5.
    """
    rows, before = (metadata.of(tree).get("managedFields") or [] for tree in (new, old))
    if not before or rows == before:
        return
    added = [row for row in rows if row not in before]
    gone = [row for row in before if row not in rows]
    if len(added) != len(gone) or _timeless(added) != _timeless(gone):
        return
    kept = {**new, "metadata": {**new["metadata"], "managedFields": before}}
    if equality.same_object(kept, old, node, is_custom=kind.custom is not None):
        new["metadata"] = kept["metadata"]


def _timeless(rows: list[Any]) -> list[JsonObject]:
    """The entries of managers without their times, in an order that does not depend on times."""
    timeless = [
        {name: value for name, value in row.items() if name != "time"}
        for row in rows
        if isinstance(row, dict)
    ]
    return sorted(timeless, key=lambda row: [str(row.get(name)) for name in _WRITER])


def _prepare(
    reader: ObjectsReader,
    kind: Kind,
    new: JsonObject,
    old: JsonObject,
    stamp: Stamp,
    subresource: str,
    rules: Rules,
) -> None:
    """Applies the strategy of each kind to a changed object, in place."""
    if kind.custom is not None:
        return
    match (kind.kind, subresource):
        case ("CustomResourceDefinition", _):
            new["status"] = naming.status(reader, new, stamp.time)
        case ("ResourceClaim", ""):
            _keep_spec(new, old, structural.storage_node(rules.schemas, kind))
        case ("ResourceClaim", "status"):
            _drop_devices(new, old)
        case ("DeviceTaintRule", ""):
            _refresh_taint_time(new, old, stamp)
        case ("Namespace", ""):
            # The phase and the finalizers of a namespace change only by their subresources.
            new["spec"] = old.get("spec", {})
        case ("Pod", ""):
            pods.add_tolerations(new["spec"])
            priorities.keep(new, old)
        case ("DaemonSet", ""):
            workloads.count_template(new, old)
        case ("Service", ""):
            services.prepare_update(new, old, reader, rules.services)
        case ("PriorityClass", ""):
            priorities.check_class(new, reader)
        case ("Pod", "status"):
            new["status"].setdefault("qosClass", json_tree.text(old, "status", "qosClass"))
        case _:
            pass


def _keep_spec(new: JsonObject, old: JsonObject, node: SchemaNode) -> None:
    """Keeps fields of another release in the spec of a claim, which no write changes.

    A recorded claim may have them. They are lost where a request is read, and what is left is the
    same spec. A claim of which a part is left out may have no spec. Parity: objects.md 5.1.
    """
    if "spec" not in old or meta.spec(new) == meta.spec(old):
        return
    try:
        known, _unknown = prune.clean(node, old)
    except prune.WrongType:
        return  # It is none that a server stored.
    if meta.spec(new) == meta.spec(known):
        new["spec"] = old["spec"]


def _drop_devices(claim: JsonObject, old: JsonObject) -> None:
    """Removes the status of devices that this write deallocates, in place. Parity: objects.md
    5.4."""
    devices = claim["status"].get("devices")
    if not devices:
        return
    given_back = _held(old) - _held(claim)
    kept = [device for device in devices if _device(device) not in given_back]
    if kept:
        claim["status"]["devices"] = kept
    else:
        claim["status"].pop("devices")


def _held(claim: JsonObject) -> set[tuple[str, str, str, str]]:
    results = dra.result_trees(claim)
    return {_device(result) for result in results}


def _device(place: JsonObject) -> tuple[str, str, str, str]:
    return (
        place.get("driver", ""),
        place.get("pool", ""),
        place.get("device", ""),
        place.get("shareID", ""),
    )


def _refresh_taint_time(new: JsonObject, old: JsonObject, stamp: Stamp) -> None:
    """Sets `timeAdded` to now if the effect changed and the time did not. Parity: objects.md 8."""
    taint = dra.taint(new)
    before = dra.taint(old)
    if taint.get("effect") != before.get("effect") and (
        taint.get("timeAdded") == before.get("timeAdded")
    ):
        new["spec"]["taint"]["timeAdded"] = timestamps.seconds_text(stamp.time)


def _count_generation(
    kind: Kind, new: JsonObject, old: JsonObject, node: structural.SchemaNode
) -> None:
    """Increments the generation if the counted field changed, mostly the spec.

    For custom objects, every field except metadata and the status counts.
    """
    if kind.custom is not None:
        parts = (new.keys() | old.keys()) - {"apiVersion", "kind", "metadata"}
        parts -= {"status"} if kind.has_status else set()
        is_changed = any(not equality.equal_json(new.get(part), old.get(part)) for part in parts)
    else:
        is_changed = not equality.semantic_equal(
            new.get(kind.counted), old.get(kind.counted), node.fields.get(kind.counted)
        )
    if is_changed:
        new["metadata"]["generation"] = metadata.of(old).get("generation", 0) + 1


def _is_finished(kind: Kind, tree: JsonObject) -> bool:
    """Whether a terminating object has neither finalizers nor a grace period left."""
    own_metadata = metadata.of(tree)
    if "deletionTimestamp" not in own_metadata or own_metadata.get("finalizers"):
        return False
    if kind.qualified_kind == "Namespace" and core.namespace_finalizers(tree):
        return False
    return not own_metadata.get("deletionGracePeriodSeconds")
