"""Validation of placement: scheduling gates, affinity and topology spread constraints.

Parity: objects.md 15.1; the messages are upstream's.
"""

from collections.abc import Sequence
from typing import Any

from app.domain.objects.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from app.domain.objects.validation import label_selectors, node_selectors, shared
from app.domain.values import json_tree, names
from app.domain.values.fields import core, entries
from app.domain.values.json_tree import JsonView

GATED_TEXT = "cannot be set until all schedulingGates have been cleared"
WEIGHT_MAX = 100
_WAYS = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSIONS = ("Honor", "Ignore")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def check(spec: JsonView, path: str) -> list[FieldError]:
    """Checks node name, affinity, topology spread constraints and scheduling gates of a spec."""
    errors: list[FieldError] = []
    if spec.get("nodeName"):
        errors += shared.formatted(spec["nodeName"], f"{path}.nodeName", names.subdomain)
    if spec.get("affinity"):
        errors += _affinity(spec["affinity"], f"{path}.affinity")
    if spec.get("topologySpreadConstraints"):
        constraints = json_tree.objects(spec, "topologySpreadConstraints")
        errors += _spreading(constraints, f"{path}.topologySpreadConstraints")
    if spec.get("schedulingGates"):
        errors += _gates(json_tree.objects(spec, "schedulingGates"), f"{path}.schedulingGates")
    return errors


def gated(spec: JsonView, path: str) -> list[FieldError]:
    """Checks that a new pod with scheduling gates has no node."""
    if spec.get("schedulingGates") and spec.get("nodeName"):
        return [forbidden(f"{path}.nodeName", GATED_TEXT)]
    return []


def _gates(gates: Sequence[JsonView], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = entries.name(gate)
        errors += shared.formatted(name, f"{path}[{index}]", names.label_name)
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors


def _spreading(constraints: Sequence[JsonView], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        skew = json_tree.integer(constraint, "maxSkew") or 0
        key = core.topology_key(constraint)
        way = json_tree.text(constraint, "whenUnsatisfiable")
        if skew <= 0:
            errors.append(invalid(f"{at}.maxSkew", skew, "must be greater than zero"))
        if not key:
            errors.append(required(f"{at}.topologyKey", "can not be empty"))
        if way not in _WAYS:
            errors.append(not_supported(f"{at}.whenUnsatisfiable", way, _WAYS))
        if (key, way) in seen:
            pair = f"{{{key}, {way}}}"
            errors.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", pair))
        seen.add((key, way))
        errors += _domains(constraint, way, at)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy is not None and policy not in _INCLUSIONS:
                errors.append(not_supported(f"{at}.{field}", policy, _INCLUSIONS))
        if constraint.get("labelSelector"):
            errors += label_selectors.check(constraint["labelSelector"], f"{at}.labelSelector")
    return errors


def _domains(constraint: JsonView, way: str, path: str) -> list[FieldError]:
    domains = json_tree.integer(constraint, "minDomains")
    if domains is None:
        return []
    errors: list[FieldError] = []
    if domains <= 0:
        errors.append(invalid(f"{path}.minDomains", domains, "must be greater than zero"))
    if way != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {way}"
        errors.append(invalid(f"{path}.minDomains", domains, detail))
    return errors


def _affinity(affinity: JsonView, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    nodes = json_tree.mapping(affinity, "nodeAffinity")
    if nodes.get(_REQUIRED) is not None:
        place = f"{path}.nodeAffinity.{_REQUIRED}"
        errors += node_selectors.node_selector(nodes[_REQUIRED], place)
    for index, term in enumerate(json_tree.objects(nodes, _PREFERRED)):
        at = f"{path}.nodeAffinity.{_PREFERRED}[{index}]"
        errors += _weight(term, at)
        preference = json_tree.mapping(term, "preference")
        errors += node_selectors.term(preference, f"{at}.preference")
    for name in ("podAffinity", "podAntiAffinity"):
        pods = json_tree.mapping(affinity, name)
        for index, required_term in enumerate(json_tree.objects(pods, _REQUIRED)):
            errors += _pod_term(required_term, f"{path}.{name}.{_REQUIRED}[{index}]")
        for index, weighted in enumerate(json_tree.objects(pods, _PREFERRED)):
            at = f"{path}.{name}.{_PREFERRED}[{index}]"
            errors += _weight(weighted, at)
            pod_term = json_tree.mapping(weighted, "podAffinityTerm")
            errors += _pod_term(pod_term, f"{at}.podAffinityTerm")
    return errors


def _weight(term: JsonView, path: str) -> list[FieldError]:
    weight: Any = term.get("weight") or 0
    if 1 <= weight <= WEIGHT_MAX:
        return []
    return [invalid(f"{path}.weight", weight, f"must be in the range 1-{WEIGHT_MAX}")]


def _pod_term(term: JsonView, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("labelSelector", "namespaceSelector"):
        if term.get(field):
            errors += label_selectors.check(term[field], f"{path}.{field}")
    for index, name in enumerate(json_tree.texts(term, "namespaces")):
        errors += shared.formatted(name, f"{path}.namespaces[{index}]", names.label)
    key = core.topology_key(term)
    if not key:
        return [*errors, required(f"{path}.topologyKey", "can not be empty")]
    return errors + shared.formatted(key, f"{path}.topologyKey", names.label_name)
