"""Validation of DeviceTaintRules. Parity: objects.md 8."""

from app.domain.objects.field_errors import FieldError
from app.domain.objects.validation import conditions, shared
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree, names
from app.domain.values.json_tree import JsonView


def create(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new DeviceTaintRule."""
    return _spec(tree, "")


def update(tree: JsonView, old: JsonView, subresource: str, _context: Context) -> list[FieldError]:
    """Checks a changed DeviceTaintRule; an unknown effect is valid if it is already stored."""
    if subresource == "status":
        return conditions.check(json_tree.get(tree, "status", "conditions"), "status.conditions")
    return _spec(tree, json_tree.text(old, "spec", "taint", "effect"))


def _spec(tree: JsonView, accepted_effect: str) -> list[FieldError]:
    selector = json_tree.mapping(tree, "spec", "deviceSelector")
    path = "spec.deviceSelector"
    errors: list[FieldError] = []
    if selector.get("driver") is not None:
        errors += shared.driver_name(selector["driver"], f"{path}.driver")
    if selector.get("pool") is not None:
        errors += shared.pool_name(selector["pool"], f"{path}.pool")
    if selector.get("device") is not None:
        errors += shared.required_name(selector["device"], f"{path}.device", names.label)
    taint = json_tree.get(tree, "spec", "taint")
    return errors + shared.taint(taint, "spec.taint", accepted_effect=accepted_effect)
