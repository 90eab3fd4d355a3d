"""Validation of ResourcePoolStatusRequests. Parity: objects.md 15."""

from app.domain.objects.field_errors import FieldError, immutable, invalid
from app.domain.objects.validation import conditions, shared
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

LIMIT_MAX = 1000


def create(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new ResourcePoolStatusRequest."""
    spec = meta.spec(tree)
    errors = shared.driver_name(spec.get("driver"), "spec.driver")
    if spec.get("poolName") is not None:
        errors += shared.pool_name(spec["poolName"], "spec.poolName")
    limit = json_tree.integer(spec, "limit")
    if limit is not None and not 1 <= limit <= LIMIT_MAX:
        errors.append(invalid("spec.limit", limit, f"must be between 1 and {LIMIT_MAX}, inclusive"))
    return errors


def update(tree: JsonView, old: JsonView, _subresource: str, _context: Context) -> list[FieldError]:
    """Checks a changed ResourcePoolStatusRequest: spec and an existing status are immutable."""
    errors = conditions.check(json_tree.get(tree, "status", "conditions"), "status.conditions")
    if tree.get("spec") != old.get("spec"):
        errors.append(immutable("spec", tree.get("spec")))
    if old.get("status") and tree.get("status") != old.get("status"):
        errors.append(immutable("status", tree.get("status")))
    return errors
