"""Validation of container resources: requests, limits and claims.

Parity: objects.md 15.1; the messages are upstream's.
"""

from collections.abc import Set
from typing import Any

from app.domain.objects.field_errors import (
    FieldError,
    FieldErrorType,
    duplicate,
    invalid,
    required,
)
from app.domain.objects.validation import shared
from app.domain.values import json_tree, names, quantity
from app.domain.values.fields import entries
from app.domain.values.json_tree import JsonView
from app.domain.values.quantity import Quantity, QuantityError

PAGES = "hugepages-"
OF_CONTAINERS = frozenset({"cpu", "ephemeral-storage", "memory"})
STANDARD = OF_CONTAINERS | {
    "configmaps",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
}
"""The names without a domain that have a meaning in Kubernetes, not all of them for containers."""

_ZERO = quantity.parse("0")
_NANOS = 10**9
_CLAIMS_TEXT = "must be one of the names in pod.spec.resourceClaims"


def check(resources: JsonView, path: str, claim_names: Set[str]) -> list[FieldError]:
    """Checks the `resources` of a container; `claim_names` are the claims of its pod."""
    errors: list[FieldError] = []
    limits = json_tree.mapping(resources, "limits")
    requests = json_tree.mapping(resources, "requests")
    for name in sorted(limits):
        errors += _amount(name, limits[name], f"{path}.limits[{name}]")
    for name in sorted(requests):
        errors += _amount(name, requests[name], f"{path}.requests[{name}]")
        errors += _beside_limit(name, requests[name], limits, path)
    if resources.get("claims"):
        errors += _claims(resources, f"{path}.claims", claim_names)
    return errors


def is_native(name: str) -> bool:
    """Whether a resource is one of Kubernetes itself, which can be overcommitted."""
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not names.label_name(f"requests.{name}")


def _amount(name: str, amount: Any, path: str) -> list[FieldError]:
    if name in OF_CONTAINERS:
        errors = []
    else:
        errors = _name(name, path)
    value = _quantity(amount)
    if value is None:
        return errors
    if quantity.compare(value, _ZERO) < 0:
        errors.append(invalid(path, str(value), "must be greater than or equal to 0"))
    elif value.nanos % _NANOS and _is_extended(name):
        errors.append(invalid(path, str(value), "must be an integer"))
    return errors


def _name(name: str, path: str) -> list[FieldError]:
    errors = [invalid(path, name, detail) for detail in names.label_name(name)]
    is_pages = name.startswith(PAGES)
    if "/" not in name:
        if not errors and name not in STANDARD and not is_pages:
            detail = "must be a standard resource type or fully qualified"
            errors.append(invalid(path, name, detail))
        if not is_pages:
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not _is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def _beside_limit(name: str, amount: Any, limits: JsonView, path: str) -> list[FieldError]:
    """Checks a request: at most its limit, or equal to it if it cannot be overcommitted."""
    is_exact = not is_native(name) or name.startswith(PAGES)
    if name not in limits:
        detail = "Limit must be set for non overcommitable resources"
        return [required(f"{path}.limits", detail)] if is_exact else []
    if amount == limits[name]:
        return []
    request, limit = _quantity(amount), _quantity(limits[name])
    if request is None or limit is None:
        return []
    order = quantity.compare(request, limit)
    if order and is_exact:
        detail = f"must be equal to {name} limit of {limit}"
        return [invalid(f"{path}.requests", str(request), detail)]
    if order > 0:
        detail = f"must be less than or equal to {name} limit of {limit}"
        return [invalid(f"{path}.requests", str(request), detail)]
    return []


def _claims(resources: JsonView, path: str, known: Set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    used: set[tuple[str, str]] = set()
    for index, claim in enumerate(json_tree.objects(resources, "claims")):
        at = f"{path}[{index}]"
        name, request = entries.name(claim), json_tree.text(claim, "request")
        if not name:
            errors.append(required(at))
            continue
        if request:
            errors += shared.formatted(request, f"{at}.request", names.label)
        if (name, "") in used:
            errors.append(duplicate(at, name))
        elif (name, request) in used:
            errors.append(duplicate(at, f"{name}/{request}"))
        used.add((name, request))
        if name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            errors.append(
                FieldError(
                    path=at,
                    type=FieldErrorType.NOT_FOUND,
                    value=name,
                    detail=_CLAIMS_TEXT + listed,
                )
            )
    return errors


def _quantity(value: Any) -> Quantity | None:
    try:
        return quantity.from_json(value)
    except QuantityError:
        return None
