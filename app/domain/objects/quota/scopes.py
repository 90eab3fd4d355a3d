"""Scopes of ResourceQuotas: a quota counts only the pods that match all its scopes.

A scope of `spec.scopes` is one of `spec.scopeSelector` with the operator Exists. Objects
other than pods match no scope. Parity: objects.md 15.3; the scopes of ResourceQuota v1.
"""

from collections.abc import Callable

from app.domain.objects.kinds import pod_defaults
from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView


def of(quota: JsonView) -> list[JsonObject]:
    """The requirements that a pod must meet; empty if the quota counts all objects."""
    plain: list[JsonObject] = [
        {"scopeName": name, "operator": "Exists"}
        for name in json_tree.texts(quota, "spec", "scopes")
    ]
    return [*plain, *json_tree.objects(quota, "spec", "scopeSelector", "matchExpressions")]


def match(requirements: list[JsonObject], pod: JsonView) -> bool:
    """Whether the pod meets all requirements; an unknown scope matches no pod."""
    spec = meta.spec(pod)
    return all(_meets(requirement, spec) for requirement in requirements)


def _meets(requirement: JsonObject, spec: JsonView) -> bool:
    scope = json_tree.text(requirement, "scopeName")
    if scope == "PriorityClass":
        return _has_class(requirement, json_tree.text(spec, "priorityClassName"))
    judge = _JUDGES.get(scope)
    return judge is not None and judge(spec)


def _has_class(requirement: JsonObject, name: str) -> bool:
    values = json_tree.texts(requirement, "values")
    match json_tree.text(requirement, "operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
    return False


def _ends(spec: JsonView) -> bool:
    """Whether a pod has activeDeadlineSeconds, and so ends by itself."""
    return json_tree.integer(spec, "activeDeadlineSeconds") is not None


def _is_best_effort(spec: JsonView) -> bool:
    return pod_defaults.quality_of_service(dict(spec)) == "BestEffort"


def _looks_across(spec: JsonView) -> bool:
    """Whether a term of pod affinity or anti-affinity can select pods of other namespaces."""
    for side in ("podAffinity", "podAntiAffinity"):
        affinity = json_tree.mapping(spec, "affinity", side)
        terms = [
            *json_tree.objects(affinity, "requiredDuringSchedulingIgnoredDuringExecution"),
            *(
                json_tree.mapping(weighted, "podAffinityTerm")
                for weighted in json_tree.objects(
                    affinity, "preferredDuringSchedulingIgnoredDuringExecution"
                )
            ),
        ]
        if any(term.get("namespaces") or "namespaceSelector" in term for term in terms):
            return True
    return False


_JUDGES: dict[str, Callable[[JsonView], bool]] = {
    "BestEffort": _is_best_effort,
    "CrossNamespacePodAffinity": _looks_across,
    "NotBestEffort": lambda spec: not _is_best_effort(spec),
    "NotTerminating": lambda spec: not _ends(spec),
    "Terminating": _ends,
}
