"""Validation of PodDisruptionBudgets, HorizontalPodAutoscalers and Leases.

Parity: objects.md 15.1; the messages are upstream's; a budget's spec is printed with upstream's
names.
"""

from app.domain.objects.field_errors import FieldError, invalid, not_supported, required
from app.domain.objects.validation import label_selectors
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

_EVICTIONS = ("AlwaysAllow", "IfHealthyBudget")


def create_budget(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new PodDisruptionBudget."""
    spec = meta.spec(tree)
    kept, away = spec.get("minAvailable"), spec.get("maxUnavailable")
    policy = spec.get("unhealthyPodEvictionPolicy")
    errors: list[FieldError] = []
    if kept is not None and away is not None:
        shown = {
            "MinAvailable": kept,
            "Selector": spec.get("selector"),
            "MaxUnavailable": away,
            "UnhealthyPodEvictionPolicy": policy,
        }
        detail = "minAvailable and maxUnavailable cannot be both set"
        errors.append(invalid("spec", shown, detail))
    for name, value in (("minAvailable", kept), ("maxUnavailable", away)):
        errors += label_selectors.amount(value, f"spec.{name}")
        errors += label_selectors.at_most_all(value, f"spec.{name}")
    errors += label_selectors.check(json_tree.mapping(spec, "selector"), "spec.selector")
    if policy is not None and policy not in _EVICTIONS:
        errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTIONS))
    return errors


def create_autoscaler(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new HorizontalPodAutoscaler."""
    spec = meta.spec(tree)
    errors: list[FieldError] = []
    least = json_tree.integer(spec, "minReplicas")
    most = json_tree.integer(spec, "maxReplicas") or 0
    if least is not None and least < 1:
        detail = "must be greater than or equal to 1"
        errors.append(invalid("spec.minReplicas", least, detail))
    if most < 1:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    if least is not None and most < least:
        detail = "must be greater than or equal to `minReplicas`"
        errors.append(invalid("spec.maxReplicas", most, detail))
    target = json_tree.mapping(spec, "scaleTargetRef")
    errors += [
        required(f"spec.scaleTargetRef.{name}") for name in ("kind", "name") if not target.get(name)
    ]
    return errors


def create_lease(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new Lease."""
    spec = meta.spec(tree)
    seconds = json_tree.integer(spec, "leaseDurationSeconds")
    errors: list[FieldError] = []
    if seconds is not None and seconds <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    transitions = json_tree.integer(spec, "leaseTransitions")
    if transitions is not None and transitions < 0:
        detail = "must be greater than or equal to 0"
        errors.append(invalid("spec.leaseTransitions", transitions, detail))
    return errors
