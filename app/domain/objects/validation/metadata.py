"""Rules of `metadata` that every kind shares."""

from collections.abc import Callable, Mapping
from typing import Any

from app.domain.objects.field_errors import (
    FieldError,
    forbidden,
    immutable,
    invalid,
    required,
    too_long,
)
from app.domain.objects.registry import Kind
from app.domain.objects.validation import formats
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView

ANNOTATIONS_BYTES_MAX = 256 * 1024


def _path_segment(text: str) -> list[str]:
    if text in (".", "..") or set(text) & {"/", "%"}:
        return ["may not be '.', '..' or contain '/' or '%'"]
    return []


_FORMATS: Mapping[str, Callable[[str], list[str]]] = {
    "subdomain": formats.subdomain,
    "label": formats.label,
    "path": _path_segment,
}


def check(kind: Kind, tree: JsonView) -> list[FieldError]:
    """Name, labels, annotations, owner references, finalizers."""
    metadata = json_tree.mapping(tree, "metadata")
    name = json_tree.text(metadata, "name")
    errors: list[FieldError] = []
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        check_name = _FORMATS.get(kind.name_format, formats.subdomain)
        errors += [invalid("metadata.name", name, detail) for detail in check_name(name)]
    errors += _labels(metadata.get("labels"))
    errors += _annotations(json_tree.mapping(metadata, "annotations"))
    errors += _owners(metadata.get("ownerReferences"))
    for index, finalizer in enumerate(json_tree.texts(metadata, "finalizers")):
        errors += [
            invalid(f"metadata.finalizers[{index}]", finalizer, detail)
            for detail in formats.label_name(finalizer)
        ]
    return errors


def check_update(tree: JsonView, old: JsonView) -> list[FieldError]:
    """What may not change, and finalizers that may not be added while terminating."""
    errors: list[FieldError] = []
    before, after = json_tree.mapping(old, "metadata"), json_tree.mapping(tree, "metadata")
    for name in ("name", "namespace", "uid", "creationTimestamp"):
        if after.get(name) != before.get(name):
            errors.append(immutable(f"metadata.{name}", after.get(name)))
    if before.get("deletionTimestamp"):
        added = set(json_tree.texts(after, "finalizers")) - set(
            json_tree.texts(before, "finalizers")
        )
        if added:
            listed = ", ".join(f'"{name}"' for name in sorted(added))
            errors.append(
                forbidden(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, found new "
                    f"finalizers []string{{{listed}}}",
                )
            )
    return errors


def labels(items: Any, path: str) -> list[FieldError]:
    """Label keys and values at any place."""
    if not isinstance(items, dict):
        return []
    errors: list[FieldError] = []
    for key in sorted(items):
        errors += [invalid(path, key, detail) for detail in formats.label_name(key)]
        value = items[key]
        text = value if isinstance(value, str) else ""
        errors += [invalid(path, text, detail) for detail in formats.label_value(text)]
    return errors


def _labels(items: Any) -> list[FieldError]:
    return labels(items, "metadata.labels")


def _annotations(items: JsonView) -> list[FieldError]:
    path = "metadata.annotations"
    errors: list[FieldError] = []
    size = 0
    for key in sorted(items):
        errors += [invalid(path, key, detail) for detail in formats.label_name(key.lower())]
        size += len(key.encode()) + len(str(items[key]).encode())
    if size > ANNOTATIONS_BYTES_MAX:
        errors.append(too_long(path, ANNOTATIONS_BYTES_MAX))
    return errors


def _owners(items: Any) -> list[FieldError]:
    if not isinstance(items, list):
        return []
    errors: list[FieldError] = []
    controllers = 0
    for index, owner in enumerate(items):
        path = f"metadata.ownerReferences[{index}]"
        tree = owner if isinstance(owner, dict) else {}
        for name, detail in (
            ("apiVersion", "version must not be empty"),
            ("kind", "kind must not be empty"),
            ("name", "name must not be empty"),
            ("uid", "uid must not be empty"),
        ):
            if not json_tree.text(tree, name):
                errors.append(invalid(f"{path}.{name}", json_tree.text(tree, name), detail))
        controllers += json_tree.flag(tree, "controller")
    if controllers > 1:
        errors.append(
            invalid(
                "metadata.ownerReferences",
                items,
                "Only one reference can have Controller set to true",
            )
        )
    return errors
