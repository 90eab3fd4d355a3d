"""Validation of ResourceSlicePatches (KEP-5027). Parity: objects.md 9."""

from collections.abc import Callable
from typing import Any

from app.domain.objects.field_errors import FieldError, invalid, required, too_long
from app.domain.objects.validation import shared
from app.domain.objects.validation.context import Context
from app.domain.objects.validation.devices.device_values import quantity_errors
from app.domain.values import json_tree, names
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonView

TOGETHER_MAX = 32
TEXT_BYTES_MAX = 64
VALUES = ("int", "bool", "string", "version", "null")


def create(tree: JsonView, context: Context) -> list[FieldError]:
    """Checks a new ResourceSlicePatch."""
    return _devices(json_tree.mapping(tree, "spec", "devices"), context)


def update(tree: JsonView, _old: JsonView, _subresource: str, context: Context) -> list[FieldError]:
    """Checks a changed ResourceSlicePatch like a new one."""
    return create(tree, context)


def _devices(devices: JsonView, context: Context) -> list[FieldError]:
    path = "spec.devices"
    errors = _filter(json_tree.mapping(devices, "filter"), f"{path}.filter", context)
    attributes = dra.attributes(devices)
    capacity = dra.capacity(devices)
    if len(attributes) + len(capacity) > TOGETHER_MAX:
        count = len(attributes) + len(capacity)
        detail = "the total number of attributes and capacities must not exceed 32"
        return [*errors, invalid(path, count, detail)]
    for name in sorted(attributes):
        place = f"{path}.attributes[{shared.shortened(name)}]"
        errors += _key(name, place) + _value(attributes[name], place)
    for name in sorted(capacity):
        place = f"{path}.capacity[{shared.shortened(name)}]"
        errors += _key(name, place)
        errors += quantity_errors(json_tree.get(capacity[name], "value"), f"{place}.value")
    return errors


def _filter(tree: JsonView, path: str, context: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    checks: tuple[tuple[str, Callable[[Any, str], list[FieldError]]], ...] = (
        (
            "deviceClassName",
            lambda name, at: shared.required_name(name, at, names.subdomain),
        ),
        ("driver", shared.driver_name),
        ("pool", shared.pool_name),
        ("device", lambda name, at: shared.required_name(name, at, names.label)),
    )
    for name, check in checks:
        if tree.get(name) is not None:
            errors += check(tree[name], f"{path}.{name}")
    return errors + shared.selectors(tree.get("selectors"), f"{path}.selectors", context)


def _key(name: str, path: str) -> list[FieldError]:
    if "/" not in name:
        return [invalid(path, name, "must include a domain")]
    return shared.qualified_name(name, path)


def _value(value: Any, path: str) -> list[FieldError]:
    tree = value if isinstance(value, dict) else {}
    kinds = [name for name in VALUES if tree.get(name) is not None]
    if not kinds:
        return [required(path, "exactly one value must be specified")]
    if len(kinds) > 1:
        return [invalid(path, value, "exactly one value must be specified")]
    text = tree[kinds[0]]
    if kinds[0] in ("string", "version") and len(str(text).encode()) > TEXT_BYTES_MAX:
        return [too_long(f"{path}.{kinds[0]}", TEXT_BYTES_MAX)]
    return []
