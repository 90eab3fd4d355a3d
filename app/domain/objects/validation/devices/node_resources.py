"""Validation of `nodeAllocatableResources` of devices. Parity: objects.md 7.9.

The rules are those of the contract; the messages are our own, because no recording shows them.
"""

from typing import Any

from app.domain.objects.field_errors import FieldError, invalid, required
from app.domain.objects.validation.devices.device_values import quantity_errors
from app.domain.values import json_tree, quantity
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonView

NAMES = frozenset({"cpu", "memory", "ephemeral-storage"})
PAGES = "hugepages-"
ZERO = quantity.parse("0")


def check(device: JsonView, path: str) -> list[FieldError]:
    """Checks the `nodeAllocatableResources` of a device."""
    resources = json_tree.mapping(device, "nodeAllocatableResources")
    capacities = dra.capacity(device)
    errors: list[FieldError] = []
    for name in sorted(resources):
        place = f"{path}.nodeAllocatableResources[{name}]"
        if name not in NAMES and not name.startswith(PAGES):
            detail = f"must be cpu, memory, ephemeral-storage or begin with {PAGES}"
            errors.append(invalid(place, name, detail))
        mapping = json_tree.get(resources[name], "mapping")
        overhead = json_tree.get(resources[name], "overhead")
        if mapping is None and overhead is None:
            errors.append(required(place, "at least one of `mapping` and `overhead` is required"))
        if mapping is not None:
            errors += _mapping(mapping, f"{place}.mapping", capacities)
        if overhead is not None:
            errors += _overhead(overhead, f"{place}.overhead")
    return errors


def _mapping(tree: JsonView, path: str, capacities: JsonView) -> list[FieldError]:
    key, multiplier = tree.get("capacityKey"), tree.get("capacityMultiplier")
    by_device = tree.get("deviceMultiplier")
    text = "exactly one of `capacityKey` and `deviceMultiplier` is required"
    if key is None and by_device is None:
        return [required(path, text)]
    if by_device is not None:
        if key is not None or multiplier is not None:
            return [invalid(path, tree, f"{text}, but multiple fields are set")]
        return _amount(by_device, f"{path}.deviceMultiplier", is_positive=True)
    errors: list[FieldError] = []
    if key not in capacities:
        detail = "must be the name of a capacity of the device"
        errors.append(invalid(f"{path}.capacityKey", key, detail))
    if multiplier is None:
        detail = "required when `capacityKey` is set"
        return [*errors, required(f"{path}.capacityMultiplier", detail)]
    return errors + _amount(multiplier, f"{path}.capacityMultiplier", is_positive=True)


def _overhead(tree: JsonView, path: str) -> list[FieldError]:
    amounts = [name for name in ("perPod", "perContainer") if tree.get(name) is not None]
    if not amounts:
        return [required(path, "at least one of `perPod` and `perContainer` is required")]
    return [
        error
        for name in amounts
        for error in _amount(tree[name], f"{path}.{name}", is_positive=False)
    ]


def _amount(value: Any, path: str, *, is_positive: bool) -> list[FieldError]:
    errors = quantity_errors(value, path)
    if errors:
        return errors
    order = quantity.compare(quantity.from_json(value), ZERO)
    if is_positive and order <= 0:
        return [invalid(path, value, "must be greater than zero")]
    if order < 0:
        return [invalid(path, value, "must be greater than or equal to zero")]
    return []
