"""Evictions of pods: whether disruption budgets allow them, and the update of the budgets.

The disruption controller keeps the numbers in the status of each budget. An eviction that a budget
allows is first written to this status, so the next eviction finds one disruption less even if the
controller has not seen the pod's deletion yet. Parity: api.md 10 (429) and 15.12, upstream's
eviction subresource.
"""

from dataclasses import dataclass

from app.domain.errors import Forbidden, NotFound, Rejected, StatusCause, TooManyRequests
from app.domain.log import ObjectKey
from app.domain.objects.kinds import disruption_budgets
from app.domain.objects.kinds.disruption_budgets import is_leaving, is_ready
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import UpdateObject
from app.domain.values import api_groups, api_resources, decimals, json_tree, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

DISRUPTED_MAX = 2_000
"""The largest number of `disruptedPods` in one budget."""

CONFLICTS_MAX = 20
"""The largest number of retries of an eviction after a conflicting write."""

_VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."
_UNSEEN_RETRY_SECONDS = 10
"""The pause that a client is asked to make before it repeats an eviction whose budget is being
counted. Without it, as for a budget that allows no disruption, each client makes a pause of its
own: `kubectl drain` one of 5 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """The permission to evict a pod, with the write that must precede the deletion, or None.

    With a `resource_version`, only that version of the pod may be deleted, which is not ready or
    not started. `budget` names the budget that allows it for that reason.
    """

    write: UpdateObject | None = None
    resource_version: str = ""
    budget: str = ""


def judge(reader: ObjectsReader, key: ObjectKey, now: Instant) -> Permission:
    """Returns the permission to evict the pod.

    Raises TooManyRequests if a budget forbids it or was not counted yet, NotFound without the pod,
    Forbidden for a budget with a negative number or too many disruptedPods, Rejected for two
    budgets.
    """
    pod = reader.get(key)
    if pod is None:
        raise NotFound(f'pods "{key.name}" not found', group="", resource="pods", name=key.name)
    version = meta.resource_version(pod)
    phase = meta.phase(pod)
    if phase in core.FINISHED or is_leaving(pod):
        return Permission()
    if phase == "Pending":
        return Permission(resource_version=version)
    budgets = [
        (place, budget)
        for place in reader.keys(*api_resources.POD_DISRUPTION_BUDGETS, key.namespace)
        if (budget := reader.get(place)) is not None and _selects(budget, pod)
    ]
    if len(budgets) > 1:
        raise Rejected(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
    for place, budget in budgets:
        if not is_ready(pod) and _lets_unready_go(budget):
            return Permission(resource_version=version, budget=place.name)
        return Permission(write=_with_disruption(place, budget, key.name, now))
    return Permission()


def changed_meanwhile(name: str) -> TooManyRequests:
    """The refusal of an eviction if the pod or its budget changed since the budget was counted."""
    return _too_many(
        f"The disruption budget {name} is still being processed by the server.",
        _UNSEEN_RETRY_SECONDS,
    )


def disruptions_allowed(reader: ObjectsReader, budget: JsonObject) -> int:
    """The disruptions that a budget allows, counted from its pods without a controller."""
    healthy, needed = _count(reader, budget)
    return max(0, healthy - needed)


def _lets_unready_go(budget: JsonView) -> bool:
    """Whether the budget allows evictions of pods that are not ready without counting them."""
    if (
        json_tree.text(budget, "spec", "unhealthyPodEvictionPolicy")
        == disruption_budgets.ALWAYS_ALLOW
    ):
        return True
    healthy, wanted = _numbers(meta.status(budget))
    return healthy >= wanted > 0


def _with_disruption(place: ObjectKey, budget: JsonObject, pod: str, now: Instant) -> UpdateObject:
    """The update of the budget with one disruption less and with the pod in `disruptedPods`."""
    status = meta.status(budget)
    seen = json_tree.integer(status, "observedGeneration") or 0
    if seen < (meta.generation(budget) or 0):
        raise changed_meanwhile(place.name)
    allowed = json_tree.integer(status, "disruptionsAllowed") or 0
    announced = json_tree.mapping(status, "disruptedPods")
    if allowed < 0:
        raise _broken(place.name, "pdb disruptions allowed is negative")
    if len(announced) > DISRUPTED_MAX:
        raise _broken(
            place.name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )
    if allowed == 0:
        raise _too_many(_reason(place.name, status))
    after: JsonObject = {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**announced, pod: timestamps.seconds_text(now)},
    }
    return UpdateObject(
        key=place,
        version="v1",
        tree={
            **budget,
            "status": disruption_budgets.with_own_condition(after, now) if allowed == 1 else after,
        },
        subresource="status",
    )


def _reason(name: str, status: JsonView) -> str:
    """The message why no disruption is allowed: a failed sync, the numbers, or the condition."""
    condition = disruption_budgets.condition_of(status)
    message = json_tree.text(condition, "message")
    has_message = condition.get("status") == "False" and bool(message)
    reason = json_tree.text(condition, "reason")
    place = f"The disruption budget {name} does not allow evicting pods currently"
    if has_message and reason == disruption_budgets.SYNC_FAILED:
        return f"{place} because it failed sync: {message}"
    healthy, wanted = _numbers(status)
    if healthy <= wanted:
        return (
            f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        )
    return f"{place} ({reason}): {message}" if has_message else place


def _numbers(status: JsonView) -> tuple[int, int]:
    """The healthy pods of the budget and the required ones, from its status."""
    healthy = json_tree.integer(status, "currentHealthy") or 0
    return healthy, json_tree.integer(status, "desiredHealthy") or 0


def _too_many(message: str, retry_seconds: int = 0) -> TooManyRequests:
    cause = StatusCause(reason="DisruptionBudget", message=message)
    return TooManyRequests(_VIOLATION, causes=(cause,), retry_after_seconds=retry_seconds)


def _broken(name: str, detail: str) -> Forbidden:
    return Forbidden(
        f'poddisruptionbudget.policy "{name}" is forbidden: {detail}',
        group=api_groups.POLICY,
        resource="poddisruptionbudget",
        name=name,
    )


def _count(reader: ObjectsReader, budget: JsonObject) -> tuple[int, int]:
    """The healthy pods of the budget and the required ones, counted from the pods."""
    namespace = meta.namespace(budget)
    selected = [
        pod
        for place in reader.keys("", "pods", namespace)
        if (pod := reader.get(place)) is not None and _selects(budget, pod)
    ]
    healthy = sum(1 for pod in selected if is_ready(pod) and not is_leaving(pod))
    return healthy, _needed(budget, len(selected))


def _selects(budget: JsonObject, pod: JsonObject) -> bool:
    """Whether the budget selects the pod; an empty selector selects all, an absent one none."""
    selector = disruption_budgets.selector_of(budget)
    if selector is None:
        return False
    return selector.matches(meta.labels(pod))


def _needed(budget: JsonObject, expected: int) -> int:
    """The number of healthy pods that the budget requires; percentages are rounded up."""
    spec = meta.spec(budget)
    most = spec.get("maxUnavailable")
    if most is not None:
        return max(0, expected - decimals.share(most, expected))
    least = spec.get("minAvailable")
    return decimals.share(1 if least is None else least, expected)
