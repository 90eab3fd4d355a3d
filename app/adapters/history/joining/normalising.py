"""Conversion of records to the storage versions of the emulator.

The recorded version stays in `version`; the object is converted. Objects of unreleased or
unsupported versions are refused with a message.

Parity: history-formats.md 3.7 (Secrets), 4.5 (Events), 17.

A manifest is admitted as by a server with strict field validation, defaulted and validated; what a
server refuses is refused with the same causes. A captured object is only surveyed: a field that the
release does not know is reported, because a person may have edited the text for another version.
"""

import msgspec

from app.adapters.history import kinds
from app.adapters.history.formats import served_fields
from app.adapters.history.reading import Notes, ReadOptions
from app.domain.errors import InputError, Rejected
from app.domain.log.records import CHANGES, Loss, Op, Quality, Record, join_losses
from app.domain.objects import registry
from app.domain.objects.reader import UnknownCluster
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.schema import conversion
from app.domain.objects.schema.structural import Schemas
from app.domain.objects.write import admission, intake, metadata
from app.domain.objects.write.commands import FieldValidation, WriteOptions
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_replace = msgspec.structs.replace

_QUESTIONS = frozenset({api_groups.AUTHENTICATION, api_groups.AUTHORIZATION})
"""Groups of review objects, which a server answers and does not store. Some hold tokens."""
CODE_MAX = 1_000
"""Exclusive upper bound of HTTP codes."""

_STRICT = WriteOptions(field_validation=FieldValidation.STRICT)

OLDER_FORMS = ("only one of `sharedCounters` or `devices` is allowed",)
"""Rules that releases before 1.35 do not have; a manifest that breaks only these is accepted."""

_CLEANED = ("metadata.ownerReferences", "metadata.namespace")
"""Fields of which people remove parts from a copied object, such as the uid of an owner, and what
kubectl sets or leaves out itself. Nothing is read from them that would have to be right."""


def normalise(record: Record, options: ReadOptions, notes: Notes) -> Record | None:
    """The record in the storage version; None when it is left out.

    Raises InputError, naming the field, for a record that cannot be read or folded.
    """
    if record.object is not None and served_fields.are_in(record.object):
        record = _replace(record, object=served_fields.stored(record.object))
    normal = _normal(record, options, notes)
    if normal is not None:
        _check(normal, options)
    return normal


def _check(record: Record, options: ReadOptions) -> None:
    """Raise InputError unless the log accepts the record and every view can fold it."""
    place = record.place
    intake.check_key(record.key, record.uid, place)
    intake.check_texts((("verb", record.verb), ("auditID", record.request_id)), place)
    if record.actor is not None:
        intake.check_actor(record.actor, place)
    for instant in (record.observed_at, record.asked_at):
        if instant is not None:
            intake.check_time(instant, "its time", place)
    if not 0 <= record.code < CODE_MAX:
        raise InputError(f"the code of its answer is {record.code}", place=place)
    if record.op in CHANGES:
        if record.object is not None and record.effect is None and options.rules is not None:
            check_object(record, record.object, options.rules.schemas)
        intake.check_named(record.key, place)


def check_object(record: Record, tree: JsonObject, schemas: Schemas) -> None:
    """Raise InputError, naming the field, unless every view can fold the record's object."""
    whole = intake.identified(tree, record.key, record.uid)
    uid = record.uid or meta.uid(whole)
    intake.check_object(whole, record.key, uid, schemas, record.place)


def _normal(record: Record, options: ReadOptions, notes: Notes) -> Record | None:
    if record.group in _QUESTIONS:
        notes.count(f"requests left out that no server stores: {record.key.qualified_resource}")
        return None
    if record.group == "" and record.resource in ("secrets", "configmaps"):
        return _guarded(record, options, notes)
    kind = registry.find(record.group, record.resource)
    if kind is None:
        if record.group == api_groups.RESOURCE and record.op in CHANGES:
            name = f"{record.group}/{record.version} {record.kind or record.resource}"
            raise InputError(
                f"{name} is not a kind of any release",
                place=record.place,
                cure="leave it out, or rewrite it as a released kind",
            )
        if record.op in CHANGES:
            notes.count(
                f"kept as it is, because the kind is not known: {record.key.qualified_resource}"
            )
        return record
    if kind.group != record.group or (record.namespace and not kind.namespaced):
        namespace = record.namespace if kind.namespaced else ""
        record = _replace(record, group=kind.group, namespace=namespace)
    if record.object is None or (record.effect is not None and record.kind != kind.kind):
        return record
    if options.rules is not None and Loss.NO_MANAGED_FIELDS in record.losses:
        if record.op is Op.ADDED:
            return _admitted(record, record.object, kind, options.rules, options.now)
        record = _surveyed(record, record.object, kind, options.rules, notes)
    return _converted(record, record.object or {}, kind)


def _converted(record: Record, tree: JsonObject, kind: Kind) -> Record:
    """The record with its object in the storage version. Raises InputError for other versions."""
    recorded = meta.api_version(tree) or registry.api_version(record.group, record.version)
    if recorded == kind.storage_api_version:
        if "kind" not in tree or "apiVersion" not in tree:
            tree = {"apiVersion": recorded, "kind": kind.kind, **tree}
        return _replace(record, object=tree, kind=kind.kind)
    try:
        converted = conversion.convert(tree, kind, recorded, kind.storage_api_version)
    except Rejected as problem:
        raise InputError(
            problem.message, place=record.place, cure="convert it with tools of its release"
        ) from problem
    losses = _conversion_losses(tree)
    if not losses:
        return _replace(record, object=converted, kind=kind.kind)
    quality = Quality.PARTIAL if record.object_quality is Quality.FULL else record.object_quality
    return _replace(
        record,
        object=converted,
        kind=kind.kind,
        object_quality=quality,
        losses=join_losses(record.losses, losses),
    )


def _conversion_losses(tree: JsonObject) -> tuple[Loss, ...]:
    """The losses of fields without a successor, in early taint rules and in 1.36 slices."""
    selector = json_tree.mapping(tree, "spec", "deviceSelector")
    if selector.get("deviceClassName") or selector.get("selectors"):
        return (Loss.VERSION_GUESS,)
    for device in dra.devices(tree):
        inner = json_tree.mapping(device, "basic") or device
        if inner.get("nodeAllocatableResourceMappings"):
            return (Loss.VERSION_GUESS,)
    return ()


def _guarded(record: Record, options: ReadOptions, notes: Notes) -> Record | None:
    """Leave out Secrets and the data of ConfigMaps, unless `with_secrets` is set."""
    if options.with_secrets:
        return record
    if record.resource == "secrets":
        notes.count("Secrets left out")
        return None
    if record.object is None:
        return record
    kept = {name: v for name, v in record.object.items() if name not in ("data", "binaryData")}
    losses = join_losses(record.losses, (Loss.REDACTED,))
    quality = Quality.PARTIAL if record.object_quality is Quality.FULL else record.object_quality
    return _replace(record, object=kept, losses=losses, object_quality=quality)


def _admitted(
    record: Record, tree: JsonObject, kind: Kind, rules: Rules, present: Instant
) -> Record:
    """The record with its object as a server would store it. Raises InputError with the causes."""
    group, version = kinds.split_version(meta.api_version(tree))
    now = record.observed_at or present
    try:
        if (group, version) not in kind.group_versions:
            # Versions that the release does not serve are converted first: it does not know their
            # fields.
            tree = conversion.convert(tree, kind, f"{group}/{version}", kind.storage_api_version)
            group, version = kind.group, kind.storage_version
        stored, _ = admission.admit(
            kind, group, version, tree, options=_STRICT, rules=rules, now=now
        )
    except Rejected as problem:
        raise InputError(problem.message, place=record.place, cure="correct the manifest") from (
            problem
        )
    refused = [
        error for error in metadata.check(kind, stored) if not error.path.startswith(_CLEANED)
    ]
    refused += rules.validate_create(kind, stored, rules.context(UnknownCluster(), now))
    errors = [error for error in refused if error.detail not in OLDER_FORMS]
    if errors:
        text = "; ".join(str(error) for error in errors[:3])
        more = f" and {len(errors) - 3} more" if len(errors) > 3 else ""
        raise InputError(
            f"{kind.kind} {record.name!r} is invalid: {text}{more}",
            place=record.place,
            cure="correct the manifest",
        )
    return _replace(record, object=stored, kind=kind.kind)


def _surveyed(record: Record, tree: JsonObject, kind: Kind, rules: Rules, notes: Notes) -> Record:
    """The record, marked as partial if its object has fields unknown to its API version."""
    group, version = kinds.split_version(meta.api_version(tree))
    if kind.group != api_groups.RESOURCE or not registry.find_kind(group, version, kind.kind):
        return record
    try:
        _, problems = admission.pruned(kind, group, version, tree, rules)
    except Rejected as problem:
        problems = [problem.message]
    if not problems:
        return record
    notes.add(f"{record.place}: {kind.kind} {record.name!r}: {', '.join(problems[:3])}")
    return _replace(
        record,
        object_quality=Quality.PARTIAL,
        losses=join_losses(record.losses, (Loss.UNDECODABLE,)),
    )
