"""Checks of manifests and of captured objects against the rules of an API server.

A manifest is admitted as by a server with strict field validation, defaulted and validated; what a
server refuses is refused with the same causes. A captured object is only surveyed: a field that the
release does not know is reported, because a person may have edited the text for another version.
"""

import msgspec

from app.adapters.history import kinds
from app.adapters.history.reading import Notes
from app.domain.errors import InputError, Rejected
from app.domain.log.records import Loss, Quality, Record, join_losses
from app.domain.objects import registry
from app.domain.objects.reader import UnknownCluster
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.schema import conversion
from app.domain.objects.write import admission, metadata
from app.domain.objects.write.commands import FieldValidation, WriteOptions
from app.domain.values import api_groups
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_STRICT = WriteOptions(field_validation=FieldValidation.STRICT)
_replace = msgspec.structs.replace


OLDER_FORMS = ("only one of `sharedCounters` or `devices` is allowed",)
"""Rules that releases before 1.35 do not have; a manifest that breaks only these is accepted."""

_CLEANED = ("metadata.ownerReferences", "metadata.namespace")
"""Fields of which people remove parts from a copied object, such as the uid of an owner, and what
kubectl sets or leaves out itself. Nothing is read from them that would have to be right."""


def admitted(
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


def surveyed(record: Record, tree: JsonObject, kind: Kind, rules: Rules, notes: Notes) -> Record:
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
