"""Metadata of objects: fields that the server sets or keeps, and validation.

Parity: api.md 5, controllers.md 6.5. Trees are in the storage version.
"""

from app.domain.objects import field_errors
from app.domain.objects.field_errors import FieldError
from app.domain.objects.registry import Kind
from app.domain.objects.write import managed_fields
from app.domain.values import json_tree, names
from app.domain.values.fields import meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView

ANNOTATIONS_MAX = 256 * 1024
"""The largest total size of an object's annotation keys and values in bytes."""

_SERVER_FIELDS = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""The fields that a client cannot set: dropped on create, kept from the old object on update."""

_FOREIGN_FINALIZERS = frozenset({"foregroundDeletion", "orphan", "kubernetes"})
"""The finalizers that have no domain."""


def of(tree: JsonView) -> JsonObject:
    """The metadata of a tree, or an empty object."""
    metadata = tree.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def initial(metadata: JsonView, *, time: str, uid: Uid, generation: int) -> JsonObject:
    """The metadata of a new object; generation 0 is left out.

    Parity: controllers.md 6.1; for kinds without a generation the client's is kept.
    """
    generation = generation or written_generation(metadata)
    kept = {key: value for key, value in metadata.items() if key not in _SERVER_FIELDS}
    kept.pop("managedFields", None)
    kept["creationTimestamp"] = time
    kept["uid"] = uid
    if generation:
        kept["generation"] = generation
    return kept


def written_generation(metadata: JsonView) -> int:
    """The generation that a client sent; 0 if there is none."""
    return json_tree.integer(metadata, "generation") or 0


def changed(metadata: JsonView, old: JsonView) -> JsonObject:
    """The metadata of a changed object: the client's fields, and the server's fields of `old`.

    Absent or invalid managedFields of the client are replaced by the old ones; the list `[{}]`
    clears them.
    """
    kept = {key: value for key, value in metadata.items() if key not in _SERVER_FIELDS}
    for key in _SERVER_FIELDS:
        if key in old:
            kept[key] = old[key]
    fields = kept.pop("managedFields", None)
    before = old.get("managedFields")
    if fields not in (before, [{}]) and not managed_fields.are_readable(fields):
        fields = before
    if fields and fields != [{}]:
        kept["managedFields"] = fields
    return kept


def finalizers(tree: JsonView) -> list[str]:
    """The finalizers of an object."""
    return meta.finalizers_of(of(tree))


def is_terminating(tree: JsonView) -> bool:
    """Whether the object has a deletionTimestamp."""
    return "deletionTimestamp" in of(tree)


def check(kind: Kind, tree: JsonView) -> list[FieldError]:
    """Returns the errors of an object's metadata: name, labels, annotations, owners, finalizers."""
    metadata = of(tree)
    errors = check_name(kind, metadata)
    if not kind.namespaced and metadata.get("namespace"):
        errors.append(field_errors.forbidden("metadata.namespace", "not allowed on this type"))
    for key, value in metadata.get("labels", {}).items():
        errors += [_invalid("metadata.labels", key, text) for text in names.label_name(key)]
        errors += [_invalid("metadata.labels", value, text) for text in names.label_value(value)]
    annotations = metadata.get("annotations")
    if annotations:
        errors += _check_annotations(annotations)
    if "ownerReferences" in metadata:
        errors += _check_owners(metadata["ownerReferences"])
    for index, finalizer in enumerate(metadata.get("finalizers", ())):
        errors += check_finalizer(f"metadata.finalizers[{index}]", finalizer)
    return errors


def check_name(kind: Kind, metadata: JsonView) -> list[FieldError]:
    """Returns the errors of an object's name and generateName."""
    check_format = _FORMATS.get(kind.name_format, names.subdomain)
    base = metadata.get("generateName", "")
    name = metadata.get("name", "")
    errors = []
    if base:
        # The base may end in a hyphen, because a suffix follows.
        probe = base[:-1] + "a" if base.endswith("-") else base
        errors += [_invalid("metadata.generateName", base, text) for text in check_format(probe)]
    if not name:
        if not base:
            errors.append(
                field_errors.required("metadata.name", "name or generateName is required")
            )
        return errors
    return errors + [_invalid("metadata.name", name, text) for text in check_format(name)]


def check_change(metadata: JsonView, old: JsonView) -> list[FieldError]:
    """Returns an error if a change adds finalizers to an object that is being deleted."""
    if "deletionTimestamp" not in old:
        return []
    before = meta.finalizers_of(old)
    added = [item for item in metadata.get("finalizers", ()) if item not in before]
    if not added:
        return []
    listed = ", ".join(f'"{item}"' for item in added)
    return [
        field_errors.forbidden(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{listed}}}",
        )
    ]


def check_kept(metadata: JsonView, old: JsonView) -> list[FieldError]:
    """Returns errors of an update that sets a deletionTimestamp or changes the grace period.

    Parity: api.md 5; a changed creationTimestamp, or a changed deletionTimestamp of a terminating
    object, is ignored.
    """
    errors = []
    time, seconds = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if time is not None and "deletionTimestamp" not in old:
        errors.append(field_errors.immutable("metadata.deletionTimestamp", time))
    if seconds is not None and seconds != old.get("deletionGracePeriodSeconds"):
        errors.append(field_errors.immutable("metadata.deletionGracePeriodSeconds", seconds))
    return errors


def annotations_size(annotations: JsonView) -> int:
    """The total size of annotation keys and values in bytes."""
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


_FORMATS = {"address": names.address, "label": names.label, "path": names.path_segment}
"""The check of each name format other than the default."""


def _check_annotations(annotations: JsonView) -> list[FieldError]:
    errors = []
    for key in annotations:
        errors += [
            _invalid("metadata.annotations", key, text) for text in names.label_name(key.lower())
        ]
    if annotations_size(annotations) > ANNOTATIONS_MAX:
        errors.append(field_errors.too_long("metadata.annotations", ANNOTATIONS_MAX))
    return errors


def _check_owners(owners: list[JsonObject]) -> list[FieldError]:
    errors = []
    controller = ""
    path = "metadata.ownerReferences"  # Parity: objects.md 3; without the index.
    for owner in owners:
        if not owner.get("apiVersion"):
            errors.append(_invalid(f"{path}.apiVersion", "", "version must not be empty"))
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                errors.append(_invalid(f"{path}.{field}", "", "must not be empty"))
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            detail = "/v1, Kind=Event is disallowed from being an owner"
            errors.append(_invalid(path, owner, detail))
        if owner.get("controller"):
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. Found "
                    f'"true" in references for {controller} and {_owner_name(owner)}'
                )
                errors.append(_invalid("metadata.ownerReferences", owners, detail))
            controller = _owner_name(owner)
    return errors


def _owner_name(owner: JsonView) -> str:
    return f"{owner.get('kind', '')}/{owner.get('name', '')}"


def check_finalizer(path: str, finalizer: str) -> list[FieldError]:
    """Returns the errors of a finalizer's name."""
    errors = [_invalid(path, finalizer, text) for text in names.label_name(finalizer)]
    if not errors and "/" not in finalizer and finalizer not in _FOREIGN_FINALIZERS:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(_invalid(path, finalizer, detail))
    return errors


def _invalid(path: str, value: object, detail: str) -> FieldError:
    return field_errors.invalid(path, value, detail)
