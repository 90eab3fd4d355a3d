"""Validation of PriorityClasses, whose value is bounded and immutable."""

from app.domain.objects.field_errors import FieldError, forbidden, immutable, not_supported
from app.domain.objects.kinds.priorities import SYSTEM_PRIORITIES
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

SYSTEM_PREFIX = "system-"
USER_MAX = 1_000_000_000
POLICIES = ("Never", "PreemptLowerPriority")


def create(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new PriorityClass."""
    errors: list[FieldError] = []
    name = meta.name(tree)
    value = json_tree.integer(tree, "value") or 0
    if name.startswith(SYSTEM_PREFIX):
        problem = _system_problem(name, value, is_default=json_tree.flag(tree, "globalDefault"))
        if problem:
            text = (
                f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use "
                f"only. error: {problem}"
            )
            errors.append(forbidden("metadata.name", text))
    elif value > USER_MAX:
        text = f"maximum allowed value of a user defined priority is {USER_MAX}"
        errors.append(forbidden("value", text))
    policy = json_tree.text(tree, "preemptionPolicy")
    if policy not in POLICIES:
        errors.append(not_supported("preemptionPolicy", policy, POLICIES))
    return errors


def update(tree: JsonView, old: JsonView, _subresource: str, _context: Context) -> list[FieldError]:
    """Checks a changed PriorityClass: value and preemptionPolicy are immutable."""
    errors: list[FieldError] = []
    if (json_tree.integer(tree, "value") or 0) != (json_tree.integer(old, "value") or 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    policy = json_tree.text(tree, "preemptionPolicy")
    if policy != json_tree.text(old, "preemptionPolicy"):
        errors.append(immutable("preemptionPolicy", policy))
    return errors


def _system_problem(name: str, value: int, *, is_default: bool) -> str:
    known = SYSTEM_PRIORITIES.get(name)
    if known is None:
        return f"{name} is not a known system priority class"
    if value != known:
        return f"value of {name} PriorityClass must be {known}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""
