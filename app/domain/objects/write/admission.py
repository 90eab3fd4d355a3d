"""Admission of a tree: from the form that a client sent to the form to store.

Admission checks the type of the tree, prunes it, reports unknown fields, converts it to the storage
version and sets defaults. The result is a new tree that the caller owns.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from app.domain.errors import BadRequest
from app.domain.log import ObjectKey
from app.domain.objects import defaulting, history_kinds, registry, rejections
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.schema import conversion, corrections, definition_schemas, prune
from app.domain.objects.schema.structural import SchemaNode
from app.domain.objects.write.commands import FieldValidation, WriteOptions
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant


def find_kind(reader: ObjectsReader, key: ObjectKey, version: str, rules: Rules) -> Kind:
    """Returns the kind of a command's object. Raises NotFound if the kind is not served."""
    kind = history_kinds.find(reader, key.group, key.resource)
    if kind is not None and kind.custom is not None and version == kind.storage_version:
        return kind  # even if not served: controllers may use it, the API refuses it separately
    if kind is None or not registry.is_served(kind, key.group, version, rules.profile):
        raise rejections.unknown_resource()
    return kind


@lru_cache(maxsize=64)
def in_group(kind: Kind, group: str) -> Kind:
    """The kind as messages name it, with the group of the request."""
    return kind if group == kind.group else dataclasses.replace(kind, group=group)


def storage_key(kind: Kind, key: ObjectKey) -> ObjectKey:
    """The key of the object in the log."""
    return key if key.group == kind.group else key._replace(group=kind.group)


def admit(
    kind: Kind,
    group: str,
    version: str,
    tree: JsonObject,
    *,
    options: WriteOptions,
    rules: Rules,
    now: Instant,
) -> tuple[JsonObject, tuple[str, ...]]:
    """Returns the stored form of `tree`, which is in `group`/`version`, and warnings.

    Raises BadRequest for a body of another kind or version, for a value of a wrong type, and in
    strict mode for unknown or duplicate fields.
    """
    expected = registry.api_version(group, version)
    check_type(kind, expected, tree)
    cleaned, problems = pruned(kind, group, version, tree, rules)
    problems = [*problems, *options.decoding_problems]
    warnings = report(kind, version, problems, options)
    cleaned["apiVersion"] = expected
    cleaned["kind"] = kind.kind
    cleaned.setdefault("metadata", {})
    if expected != kind.storage_api_version:
        cleaned = conversion.convert(cleaned, kind, expected, kind.storage_api_version)
    defaulting.apply(kind, cleaned, now=now, from_beta=version == "v1beta1")
    fill(kind, version, cleaned)
    return cleaned, warnings


def of_status(kind: Kind, api_version: str, tree: JsonObject, stored: JsonView) -> JsonObject:
    """The parts of a tree that a write of the status has to admit.

    Parts that are identical to stored ones are left out: admission has already processed them, and
    only the status and metadata of the tree are used.
    """
    if kind.custom is not None or api_version != kind.storage_api_version:
        return tree
    return {
        key: part
        for key, part in tree.items()
        if key in _TAKEN_FOR_STATUS or part is not stored.get(key)
    }


_TAKEN_FOR_STATUS = frozenset(("apiVersion", "kind", "metadata", "status"))


def fill(kind: Kind, version: str, tree: JsonObject) -> None:
    """Sets the defaults of a custom kind in place, of the request's and the storage version."""
    if kind.custom is None:
        return
    for name in dict.fromkeys((version, kind.storage_version)):
        definition_schemas.fill(kind.custom.versions[name].schema, tree)


def forget_empty(kind: Kind, tree: JsonObject) -> None:
    """Changes empty lists in place to the form that the API server stores: absent, or null."""
    for *parents, name in corrections.STORED_EMPTY.get((kind.group, kind.kind), ()):
        holder = json_tree.mapping(tree, *parents)
        if holder.get(name) == [] and isinstance(holder, dict):
            holder[name] = None
    if is_slice(kind):
        for name in _SLICE_LISTS:
            if tree["spec"].get(name) == []:
                del tree["spec"][name]


def as_owned(kind: Kind, tree: JsonObject) -> JsonObject:
    """The tree whose fields its writer owns: without empty lists that only validation needs."""
    spec = meta.spec(tree)
    if not is_slice(kind) or all(spec.get(name) != [] for name in _SLICE_LISTS):
        return tree
    return {**tree, "spec": {key: part for key, part in spec.items() if part != []}}


def is_slice(kind: Kind) -> bool:
    """Whether the kind is ResourceSlice."""
    return kind.group == api_groups.RESOURCE and kind.kind == "ResourceSlice"


_SLICE_LISTS = ("devices", "sharedCounters")


def pruned(
    kind: Kind, group: str, version: str, tree: JsonObject, rules: Rules
) -> tuple[JsonObject, list[str]]:
    """Returns the pruned copy of a tree, and problems. Raises BadRequest for a wrong type."""
    node = rules.schemas.node(kind, group, version)
    try:
        if kind.custom is not None:
            return clean_custom(kind, version, tree, node)
        return prune.clean(node, tree)
    except prune.WrongType as wrong:
        raise rejections.undecodable(kind, kind.kind, version, str(wrong)) from wrong


def clean_custom(
    kind: Kind, version: str, tree: JsonObject, node: SchemaNode, *, is_partial: bool = False
) -> tuple[JsonObject, list[str]]:
    """Prunes an object of a custom kind: metadata as for all kinds, the rest by its own schema.

    Raises prune.WrongType for metadata that cannot be read.
    """
    assert kind.custom is not None, "asked for custom kinds only"
    kept, unknown = definition_schemas.pruned(kind.custom.versions[version].schema, tree)
    problems = [f'unknown field "{path}"' for path in unknown]
    if kept.get("metadata", {}) is None:
        del kept["metadata"]
    if "metadata" in kept:
        clean = prune.clean_partial if is_partial else prune.clean
        kept["metadata"], more = _clean_metadata(kind, node, kept["metadata"], clean)
        problems += more
    return kept, problems


def admit_metadata(
    kind: Kind, group: str, version: str, tree: JsonView, *, options: WriteOptions, rules: Rules
) -> tuple[JsonObject, tuple[str, ...]]:
    """Returns the stored form of a tree's metadata, and warnings about the metadata.

    Raises BadRequest as `admit` does.
    """
    node = rules.schemas.node(kind, group, version)
    try:
        cleaned, problems = _clean_metadata(kind, node, tree["metadata"], prune.clean)
    except prune.WrongType as wrong:
        raise rejections.undecodable(kind, kind.kind, version, str(wrong)) from wrong
    return cleaned, report(kind, version, [*problems, *options.decoding_problems], options)


_Clean: TypeAlias = Callable[[SchemaNode, JsonObject], tuple[JsonObject, list[str]]]


def _clean_metadata(
    kind: Kind, node: SchemaNode, written: JsonObject, clean: _Clean
) -> tuple[JsonObject, list[str]]:
    """Prunes metadata; problems name it as a part of the object."""
    try:
        cleaned, problems = clean(node.fields["metadata"], written)
    except prune.WrongType as wrong:
        wrong.fields.insert(0, "metadata")
        wrong.struct = wrong.struct or kind.kind
        raise
    return cleaned, [text.replace('"', '"metadata.', 1) for text in problems]


def report(
    kind: Kind, version: str, problems: Sequence[str], options: WriteOptions
) -> tuple[str, ...]:
    """Returns warnings about unknown and duplicate fields. Raises BadRequest in strict mode."""
    if not problems or options.field_validation is FieldValidation.IGNORE:
        return ()
    if options.field_validation is FieldValidation.STRICT:
        listed = ", ".join(problems)
        raise rejections.undecodable(kind, kind.kind, version, f"strict decoding error: {listed}")
    return tuple(problems)


def check_type(kind: Kind, expected: str, tree: JsonObject) -> None:
    """Raises BadRequest for a tree of another kind or version; both may be absent."""
    found_version = tree.get("apiVersion") or expected
    found_kind = tree.get("kind") or kind.kind
    if found_kind == kind.kind and found_version == expected:
        return
    if not isinstance(found_version, str) or not isinstance(found_kind, str):
        raise BadRequest("apiVersion and kind must be text")
    group, version = registry.split_api_version(found_version)
    if found_kind == kind.kind and group == kind.group and version in kind.versions:
        raise BadRequest(
            f"the API version in the data ({found_version}) does not match the expected API "
            f"version ({expected})"
        )
    if found_kind == kind.kind and kind.group == api_groups.RESOURCE:
        # Beyond upstream: drivers exist that use versions that were never released.
        conversion.check_version(kind, group, version)
    known = registry.find_kind(group, version, found_kind)
    if known is None:
        scheme = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"
        detail = (
            f'no kind "{found_kind}" is registered for version "{found_version}" in scheme '
            f'"{scheme}"'
        )
    else:
        package = kind.group.partition(".")[0] or "core"
        detail = (
            f"converting ({version}.{found_kind}) to ({package}.{kind.kind}): unknown conversion"
        )
    raise rejections.undecodable(kind, found_kind, version, detail)
