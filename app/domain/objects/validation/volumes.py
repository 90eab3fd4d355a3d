"""Validation of PersistentVolumeClaims, StorageClasses and VolumeAttributesClasses.

Parity: objects.md 15.1; the messages are upstream's.
"""

from typing import Any

from app.domain.objects.field_errors import (
    FieldError,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
)
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree, names, quantity
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import Quantity, QuantityError

MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
SPEC_TEXT = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)
SHRINK_TEXT = "field can not be less than status.capacity"
_PARAMETERS_MAX = 512
_PARAMETERS_BYTES_MAX = 256 * 1024
_FIXED = ("parameters", "provisioner", "reclaimPolicy")


def create_claim(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new PersistentVolumeClaim."""
    spec = meta.spec(tree)
    modes = json_tree.texts(spec, "accessModes")
    errors: list[FieldError] = []
    if not modes:
        errors.append(required("spec.accessModes", "at least 1 access mode is required"))
    errors += [
        not_supported("spec.accessModes", mode, MODES) for mode in modes if mode not in MODES
    ]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        errors.append(forbidden("spec.accessModes", detail))
    storage = json_tree.get(spec, "resources", "requests", "storage")
    amount = _quantity(storage)
    if storage is None:
        errors.append(required("spec.resources[storage]"))
    elif amount is not None and amount.nanos <= 0:
        detail = "must be greater than zero"
        errors.append(invalid("spec.resources[storage]", str(amount), detail))
    return errors


def update_claim(
    tree: JsonView, old: JsonView, subresource: str, context: Context
) -> list[FieldError]:
    """Checks a changed PersistentVolumeClaim: it may be bound, and a bound claim may grow."""
    if subresource:
        return []
    errors = create_claim(tree, context)
    is_bound = meta.phase(old) == "Bound"
    new, before = _fixed(tree, is_bound=is_bound), _fixed(old, is_bound=is_bound)
    for name in ("volumeName", "storageClassName"):
        if not before.get(name):
            new.pop(name, None)
            before.pop(name, None)
    if new != before:
        return [*errors, forbidden("spec", SPEC_TEXT)]
    size = json_tree.get(tree, "spec", "resources", "requests", "storage")
    wanted, held = _quantity(size), _quantity(json_tree.get(old, "status", "capacity", "storage"))
    if wanted is not None and held is not None and quantity.compare(wanted, held) < 0:
        errors.append(forbidden("spec.resources.requests.storage", SHRINK_TEXT))
    return errors


def create_class(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new StorageClass."""
    return [] if tree.get("provisioner") else [required("provisioner")]


def update_class(
    tree: JsonView, old: JsonView, _subresource: str, context: Context
) -> list[FieldError]:
    """Checks a changed StorageClass, whose `_FIXED` fields and binding mode are immutable."""
    errors = create_class(tree, context)
    errors += [
        forbidden(name, f"updates to {name} are forbidden.")
        for name in _FIXED
        if (tree.get(name) or None) != (old.get(name) or None)
    ]
    mode = tree.get("volumeBindingMode")
    if mode != old.get("volumeBindingMode"):
        errors.append(immutable("volumeBindingMode", mode))
    return errors


def create_attributes_class(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new VolumeAttributesClass."""
    driver = json_tree.text(tree, "driverName")
    parameters = json_tree.mapping(tree, "parameters")
    errors: list[FieldError] = [] if driver else [required("driverName")]
    if driver:
        details = names.label_name(driver.lower())
        errors += [invalid("driverName", driver, detail) for detail in details]
    if not parameters:
        errors.append(required("parameters", "must contain at least one key/value pair"))
    if len(parameters) > _PARAMETERS_MAX:
        errors.append(too_long("parameters", _PARAMETERS_MAX))
    if "" in parameters:
        errors.append(invalid("parameters", "", "field can not be empty."))
    size = sum(len(key.encode()) + len(str(text).encode()) for key, text in parameters.items())
    if size > _PARAMETERS_BYTES_MAX:
        errors.append(too_long("parameters", _PARAMETERS_BYTES_MAX))
    return errors


def update_attributes_class(
    tree: JsonView, old: JsonView, _subresource: str, context: Context
) -> list[FieldError]:
    """Checks a changed VolumeAttributesClass: driver and parameters are immutable."""
    return create_attributes_class(tree, context) + [
        forbidden(name, f"updates to {name} are forbidden.")
        for name in ("driverName", "parameters")
        if (tree.get(name) or None) != (old.get(name) or None)
    ]


def _fixed(tree: JsonView, *, is_bound: bool) -> JsonObject:
    """The immutable part of a claim's spec."""
    spec: JsonObject = dict(meta.spec(tree))
    if is_bound:
        spec.pop("volumeAttributesClassName", None)
        resources = dict(json_tree.mapping(spec, "resources"))
        resources.pop("requests", None)
        spec["resources"] = resources
    return spec


def _quantity(value: Any) -> Quantity | None:
    if value is None:
        return None
    try:
        return quantity.from_json(value)
    except QuantityError:
        return None
