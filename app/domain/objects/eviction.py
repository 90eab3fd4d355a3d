"""May this pod be evicted? Disruption budgets, judged from the pods that exist.

The real server trusts numbers that a controller keeps in each budget's status. Here they are
computed from the same pods at the moment of asking, so no stale number can be trusted: a budget
expects as many pods as it selects. Parity: api-surface.md 10 (429) and 15.12.
"""

from app.domain.errors import Cause, NotFound, Rejected, TooManyRequests
from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.values import json_tree, selectors
from app.domain.values.json_tree import JsonObject
from app.domain.values.selectors import SelectorError

_VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."
_RETRY_SECONDS = 5


def check(reader: ObjectsReader, key: ObjectKey) -> None:
    """Raise TooManyRequests when a budget forbids the eviction, NotFound without the pod."""
    pod = reader.get(key)
    if pod is None:
        raise NotFound(f'pods "{key.name}" not found', group="", resource="pods", name=key.name)
    phase = json_tree.text(pod, "status", "phase")
    if phase in ("Pending", "Succeeded", "Failed") or _is_leaving(pod):
        return
    budgets = [
        budget
        for place in reader.keys("policy", "poddisruptionbudgets", key.namespace)
        if (budget := reader.get(place)) is not None and _selects(budget, pod)
    ]
    if len(budgets) > 1:
        raise Rejected(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
    for budget in budgets:
        _check_budget(reader, budget, pod)


def disruptions_allowed(reader: ObjectsReader, budget: JsonObject) -> int:
    """How many of its pods the budget lets be disturbed now, counted from the pods."""
    healthy, needed = _count(reader, budget)
    return max(0, healthy - needed)


def _check_budget(reader: ObjectsReader, budget: JsonObject, pod: JsonObject) -> None:
    healthy, needed = _count(reader, budget)
    if not _is_ready(pod):
        policy = json_tree.text(budget, "spec", "unhealthyPodEvictionPolicy")
        if policy == "AlwaysAllow" or healthy >= needed > 0:
            return
    if healthy - 1 >= needed:
        return
    name = json_tree.text(budget, "metadata", "name")
    cause = Cause(
        reason="DisruptionBudget",
        message=f"The disruption budget {name} needs {needed} healthy pods and has {healthy} "
        "currently",
    )
    raise TooManyRequests(_VIOLATION, causes=(cause,), retry_after_seconds=_RETRY_SECONDS)


def _count(reader: ObjectsReader, budget: JsonObject) -> tuple[int, int]:
    """How many healthy pods the budget has, and how many it needs."""
    namespace = json_tree.text(budget, "metadata", "namespace")
    selected = [
        found
        for place in reader.keys("", "pods", namespace)
        if (found := reader.get(place)) is not None and _selects(budget, found)
    ]
    healthy = sum(1 for found in selected if _is_ready(found) and not _is_leaving(found))
    return healthy, _needed(budget, len(selected))


def _selects(budget: JsonObject, pod: JsonObject) -> bool:
    """An empty selector selects every pod, an absent one none."""
    selector = json_tree.get(budget, "spec", "selector")
    if not isinstance(selector, dict):
        return False
    try:
        compiled = selectors.label_selector_of(selector)
    except SelectorError:
        return False
    return compiled.matches(json_tree.labels(pod, "metadata", "labels"))


def _needed(budget: JsonObject, expected: int) -> int:
    """How many healthy pods the budget wants; percentages are rounded up."""
    spec = json_tree.mapping(budget, "spec")
    most = spec.get("maxUnavailable")
    if most is not None:
        return max(0, expected - _amount(most, expected))
    least = spec.get("minAvailable")
    return _amount(1 if least is None else least, expected)


def _amount(value: object, expected: int) -> int:
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdigit():
        return -(-int(value[:-1]) * expected // 100)
    return value if isinstance(value, int) else 0


def _is_ready(pod: JsonObject) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in json_tree.objects(pod, "status", "conditions")
    )


def _is_leaving(pod: JsonObject) -> bool:
    return bool(json_tree.text(pod, "metadata", "deletionTimestamp"))
