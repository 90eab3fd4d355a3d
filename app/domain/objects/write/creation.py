"""Creating objects. Parity: api.md 5, controllers.md 5.1."""

import msgspec

from app.domain.errors import BadRequest, StatusCause
from app.domain.log import Draft, EventType, ObjectKey, Stamp
from app.domain.objects import field_errors, registry, rejections
from app.domain.objects.custom import checking, naming
from app.domain.objects.kinds import (
    api_services,
    ignored_fields,
    limit_ranges,
    pods,
    pool_warnings,
    priorities,
    secret_warnings,
    services,
    stored_defaults,
    volume_protection,
    workloads,
)
from app.domain.objects.prepared_creates import FormKey, PreparedObject, Twin
from app.domain.objects.quota import limits
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.schema import gates, prune, structural
from app.domain.objects.write import admission, managed_fields, metadata, review_calls
from app.domain.objects.write.commands import CreateObject
from app.domain.objects.write.context import WriteContext
from app.domain.objects.write.decided import Decided
from app.domain.objects.write.managed_fields import Manager
from app.domain.values import api_groups, names, timestamps, well_known
from app.domain.values.fields import core, dra
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject

GENERATE_ATTEMPTS_MAX = 8
"""The largest number of suffixes that are tried for a generateName."""

_KEEPS_STATUS = frozenset({"Node"})
"""Kinds whose status is kept on create: users describe nodes with it."""

_COUNTS_CHANGES_ONLY = frozenset({"CSIDriver"})
"""Kinds whose generation starts with the first change."""

NOT_READY_TAINT = {"effect": "NoSchedule", "key": well_known.NOT_READY}


def decide_create(
    reader: ObjectsReader, command: CreateObject, stamp: Stamp, rules: Rules
) -> Decided:
    """Returns the new object. Raises Rejected: unknown namespace, invalid object, name in use."""
    kind = admission.find_kind(reader, command.key, command.version, rules)
    write = WriteContext(
        reader=reader,
        rules=rules,
        stamp=stamp,
        kind=kind,
        key=command.key,
        group=command.key.group,
        version=command.version,
        options=command.options,
    )
    twin_key = _twin_key(write, command.tree)
    twin = None if twin_key is None else rules.forms.find_twin(twin_key)
    if twin is not None:
        return _create_twin(_placed(write, command.tree), twin)
    tree, warnings, form = _admitted(kind, command, stamp, rules)
    return create(_placed(write, tree), tree, warnings=warnings, form=form, twin_key=twin_key)


def _placed(write: WriteContext, tree: JsonObject) -> WriteContext:
    """The write with the key of the stored object. Raises BadRequest as `_check_identity` does."""
    key = _check_identity(write.kind, write.key, tree)
    return write if key == write.key else msgspec.structs.replace(write, key=key)


def _twin_key(write: WriteContext, tree: JsonObject) -> FormKey | None:
    """The key of the object's twin; None for an object that webhooks review or that has none."""
    options, rules = write.options, write.rules
    if not rules.tracks_managers or options.review is not None or options.decoding_problems:
        return None
    of_rules = (rules.profile, rules.schemas, rules.validate_create)
    return rules.forms.twin_key_of(
        write.kind, write.api_version, tree, options.field_validation, of_rules
    )


def _create_twin(write: WriteContext, twin: Twin) -> Decided:
    """Creates an object that differs from an earlier one in its name alone, as `create` does."""
    reader, kind, key, stamp, rules = write.reader, write.kind, write.key, write.stamp, write.rules
    written: JsonObject = {
        **twin.metadata,
        "name": key.name,
        "namespace": key.namespace,
        "creationTimestamp": timestamps.seconds_text(stamp.time),
        "uid": stamp.uid,
    }
    writer = managed_fields.updater(write.options, stamp, write.api_version, "")
    managed_fields.put_first(written, writer, twin.owned)
    check_namespace(reader, kind, key)
    tree = {**twin.rest, "metadata": written}
    errors = metadata.check_name(kind, written)
    if not twin.is_judged_alone:
        errors += rules.validate_create(kind, tree, rules.context(reader, stamp.time))
    if errors:
        raise field_errors.rejection(kind.kind, kind.group, key.name, errors)
    return _created(write, tree, twin.warnings)


def _admitted(
    kind: Kind, command: CreateObject, stamp: Stamp, rules: Rules
) -> tuple[JsonObject, tuple[str, ...], PreparedObject | FormKey | None]:
    """Returns the admitted tree, warnings, and the form it was made from or a new form's key."""
    group, version, tree = command.key.group, command.version, command.tree
    options = command.options
    key = None
    if rules.tracks_managers:
        api_version = registry.api_version(group, version)
        of_rules = (rules.profile, rules.schemas, rules.validate_create)
        key = rules.forms.key_of(kind, api_version, tree, options.field_validation, of_rules)
    form = None if key is None else rules.forms.find(key)
    if form is not None:
        parts = form.parts()
        parts["metadata"], warnings = admission.admit_metadata(
            kind, group, version, tree, options=options, rules=rules
        )
        return parts, warnings, form
    admitted, warnings = admission.admit(
        kind, group, version, tree, options=options, rules=rules, now=stamp.time
    )
    return admitted, warnings, None if warnings else key


def create(
    write: WriteContext,
    tree: JsonObject,
    *,
    warnings: tuple[str, ...] = (),
    managers: list[Manager] | None = None,
    form: PreparedObject | FormKey | None = None,
    twin_key: FormKey | None = None,
) -> Decided:
    """Creates an object from an admitted tree, which becomes part of the draft.

    An apply passes its own `managers`. A `form` is the one that the tree was made from; with a key
    of a form, the tree is kept as that form. With a `twin_key`, the object is kept as that twin.
    """
    reader, kind, stamp = write.reader, write.kind, write.stamp
    rules, options = write.rules, write.options
    key = _identified(reader, kind, write.key, tree, stamp)
    known = form if isinstance(form, PreparedObject) else None
    dropped = gates.drop_disabled(kind, tree, None, rules.profile) if known is None else ()
    warnings += dropped if known is None else known.warnings
    if managers is not None:
        managed_fields.put(tree["metadata"], managers)
    elif rules.tracks_managers:
        writer = managed_fields.updater(options, stamp, write.api_version, "")
        node = structural.storage_node(rules.schemas, kind)
        if known is not None:
            owned = known.owned
        else:
            whole = admission.as_owned(kind, tree)
            owned = managed_fields.owned(whole, node, has_status=kind.has_status)
            if isinstance(form, FormKey):
                rules.forms.keep(form, tree, owned, dropped)
        managed_fields.begin(tree["metadata"], owned, node, writer)
    if options.review is not None:
        tree = _changed(write, tree)
    _prepare(reader, kind, tree, stamp, rules)
    volume_protection.protect(kind, tree)
    errors = metadata.check(kind, tree)
    errors += rules.validate_create(kind, tree, rules.context(reader, stamp.time))
    if kind.custom is not None:
        errors += checking.check(kind.custom.versions[write.version].schema, tree)
    if errors:
        raise field_errors.rejection(kind.kind, kind.group, key.name, errors)
    admission.forget_empty(kind, tree)
    if twin_key is not None:
        rules.forms.keep_twin(twin_key, tree, _OF_ONE_OBJECT, warnings)
    named = write if key == write.key else msgspec.structs.replace(write, key=key)
    return _created(named, tree, warnings)


_OF_ONE_OBJECT = ("creationTimestamp", "name", "namespace", "uid")
"""The metadata by which two objects differ that were sent with different names alone."""


def _created(write: WriteContext, tree: JsonObject, warnings: tuple[str, ...]) -> Decided:
    """The decision to store a valid new object, if nothing else forbids it."""
    reader, kind, key, stamp = write.reader, write.kind, write.key, write.stamp
    options, rules = write.options, write.rules
    warnings += review_calls.ask(write, review_calls.CREATE, tree=tree, old=None)
    if kind.namespaced:
        limit_ranges.check(reader, key, tree)
        limits.check_create(reader, kind, key, tree)
    present = reader.get(key)
    if present is not None:
        ends = metadata.is_terminating(present)
        raise rejections.already_exists(admission.in_group(kind, write.group), key.name, ends=ends)
    warnings += _warnings(reader, kind, key, tree) + ignored_fields.warnings(
        kind, tree, webhooks=rules.webhooks
    )
    if options.dry_run:
        return Decided(tree=tree, warnings=warnings, created=True)
    draft = Draft(type=EventType.OBJECT_CREATED, key=key, uid=stamp.uid, tree=tree, stamp=stamp)
    return Decided(drafts=(draft,), tree=tree, warnings=warnings, created=True)


def _identified(
    reader: ObjectsReader, kind: Kind, key: ObjectKey, tree: JsonObject, stamp: Stamp
) -> ObjectKey:
    """Sets the server's metadata of a new object in place; returns its key with a name.

    Raises BadRequest, and Rejected if its kind or namespace accepts no new objects.
    """
    written = tree["metadata"]
    if kind.custom is not None and kind.custom.is_terminating:
        raise rejections.definition_ends(kind, "create")
    revision = written.get("resourceVersion", "")
    if revision.isascii() and revision.isdecimal() and revision.strip("0"):
        # Parity: api.md 5; a value that is not a number is ignored. Upstream answers an unexplained
        # 500.
        raise BadRequest("resourceVersion should not be set on objects to be created")
    tree["metadata"] = metadata.initial(
        written,
        time=timestamps.seconds_text(stamp.time),
        uid=stamp.uid,
        generation=1 if kind.has_generation and kind.kind not in _COUNTS_CHANGES_ONLY else 0,
    )
    if not key.name and written.get("generateName"):
        key = key._replace(name=_generated(reader, key, written["generateName"], stamp.uid))
        tree["metadata"]["name"] = key.name
    if kind.namespaced:
        tree["metadata"]["namespace"] = key.namespace
        check_namespace(reader, kind, key)
    else:
        tree["metadata"].pop("namespace", None)
    return key


def _changed(write: WriteContext, tree: JsonObject) -> JsonObject:
    """The object with webhooks' changes and with the metadata that the server set."""
    changed = review_calls.changed(write, review_calls.CREATE, tree=tree, old=None)
    given = tree["metadata"]
    written = metadata.initial(
        metadata.of(changed),
        time=given["creationTimestamp"],
        uid=given["uid"],
        generation=given.get("generation", 0),
    )
    kept = ("managedFields", "name", "namespace")
    written |= {name: given[name] for name in kept if name in given}
    changed["metadata"] = written
    return changed


def check_namespace(reader: ObjectsReader, kind: Kind, key: ObjectKey) -> None:
    """Raises NotFound for a missing namespace of a new object, Forbidden for a terminating one."""
    namespace = reader.get(ObjectKey(api_groups.CORE, "namespaces", "", key.namespace))
    if namespace is None:
        raise rejections.not_found(_namespace_kind(), key.namespace)
    if metadata.is_terminating(namespace):
        name = key.namespace
        raise rejections.forbidden(
            kind,
            key.name,
            f"unable to create new content in namespace {name} because it is being terminated",
            StatusCause(
                reason="NamespaceTerminating",
                message=f"namespace {name} is being terminated",
                field="metadata.namespace",
            ),
        )


def _check_identity(kind: Kind, key: ObjectKey, tree: JsonObject) -> ObjectKey:
    """Returns the key of the new object. Raises BadRequest if tree and request disagree."""
    written = tree["metadata"]
    namespace = written.get("namespace", "")
    if kind.namespaced and namespace and namespace != key.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    name = written.get("name", "")
    if key.name and name and name != key.name:
        raise BadRequest(
            f"the name of the object ({name}) does not match the name on the URL ({key.name})"
        )
    if key.name and not name:
        written["name"] = key.name
    stored = admission.storage_key(kind, key)
    return stored if stored.name or not name else stored._replace(name=name)


def _generated(reader: ObjectsReader, key: ObjectKey, base: str, uid: Uid) -> str:
    """Returns an unused name, or the last name tried, for which the create is then refused."""
    name = ""
    for attempt in range(GENERATE_ATTEMPTS_MAX):
        name = names.generated(base, uid, attempt)
        if reader.get(key._replace(name=name)) is None:
            break
    return name


def _prepare(
    reader: ObjectsReader, kind: Kind, tree: JsonObject, stamp: Stamp, rules: Rules
) -> None:
    """Sets the fields that the strategy of each kind sets on create, in place."""
    if kind.custom is not None:
        if kind.has_status and tree.pop("status", None) is not None:
            admission.fill(kind, kind.storage_version, tree)
        return
    if kind.has_status and kind.kind not in _KEEPS_STATUS and "status" in tree:
        fields = structural.storage_node(rules.schemas, kind).fields
        tree["status"] = prune.clean_value(fields["status"], {})
    match (kind.group, kind.kind):
        case (_, "ResourcePoolStatusRequest"):
            tree.pop("status", None)
        case ("", "Pod"):
            pods.prepare_create(tree, reader, stamp.time)
        case ("", "Service"):
            services.prepare_create(tree, reader, rules.services)
        case (api_groups.SCHEDULING, "PriorityClass"):
            priorities.check_class(tree, reader)
        case ("", "Namespace"):
            finalizers = core.namespace_finalizers(tree)
            tree["spec"] = {"finalizers": list(dict.fromkeys([*finalizers, "kubernetes"]))}
            tree["status"] = {"phase": "Active"}
        case ("", "Node"):
            taints = core.taints(tree)
            if all(taint.get("key") != NOT_READY_TAINT["key"] for taint in taints):
                tree["spec"]["taints"] = [*taints, dict(NOT_READY_TAINT)]
        case ("", "PersistentVolumeClaim"):
            tree["status"] = {"phase": "Pending"}
        case ("", "PersistentVolume"):
            now = timestamps.seconds_text(stamp.time)
            tree["status"] = {"lastPhaseTransitionTime": now, "phase": "Pending"}
        case (api_groups.APPS, "DaemonSet"):
            workloads.count_template(tree)
        case (api_groups.API_EXTENSIONS, "CustomResourceDefinition"):
            tree["status"] = naming.status(reader, tree, stamp.time)
        case (api_groups.API_REGISTRATION, "APIService"):
            api_services.prepare_create(tree, stamp.time)
        case (api_groups.CERTIFICATES, _):
            stored_defaults.prepare_signing_request(tree, stamp.actor)
        case (api_groups.BATCH, "Job"):
            workloads.prepare_job(tree)
        case _:
            pass


def _warnings(
    reader: ObjectsReader, kind: Kind, key: ObjectKey, tree: JsonObject
) -> tuple[str, ...]:
    if kind.custom is not None:
        return ()
    if kind.kind == "CustomResourceDefinition":
        return naming.warnings(tree)
    if kind.kind == "Secret":
        return secret_warnings.warnings(tree)
    if kind.kind != "ResourceSlice":
        return ()
    driver = dra.driver(tree)
    warnings = pool_warnings.of_write(reader, key, tree)
    if driver != driver.lower():
        text = (
            f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase '
            "characters"
        )
        return (text, *warnings)
    return warnings


def _namespace_kind() -> Kind:
    kind = registry.find(api_groups.CORE, "namespaces")
    assert kind is not None
    return kind
