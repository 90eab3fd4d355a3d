"""The selector and the status of PodDisruptionBudgets.

The status has two writers: the controller, which counts pods, and an eviction, which subtracts one
disruption before the controller sees the pod's deletion. Parity: policy/v1, controllers.md 11.2.
"""

from app.domain.values import condition_types, json_tree, selectors, timestamps
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import LabelSelector, SelectorError
from app.domain.values.timestamps import Instant

ALLOWED = condition_types.DISRUPTION_ALLOWED
"""The type of the only condition of a budget."""

SUFFICIENT = "SufficientPods"
INSUFFICIENT = "InsufficientPods"
SYNC_FAILED = "SyncFailed"

ALWAYS_ALLOW = "AlwaysAllow"
"""The policy under which pods that are not ready may always be evicted."""


def selector_of(budget: JsonView) -> LabelSelector | None:
    """The selector of a budget: an empty one selects every pod, an absent one (None) no pod."""
    wanted = json_tree.get(budget, "spec", "selector")
    if not isinstance(wanted, dict):
        return None
    try:
        return selectors.label_selector_of(wanted)
    except SelectorError:
        return None


def condition_of(status: JsonView) -> JsonView:
    """The condition of the budget; empty if the status was not counted yet."""
    for condition in meta.conditions_of(status):
        if condition.get("type") == ALLOWED:
            return condition
    return json_tree.EMPTY


def with_own_condition(status: JsonView, now: Instant) -> JsonObject:
    """The status with the condition that follows from its `disruptionsAllowed`."""
    if (json_tree.integer(status, "disruptionsAllowed") or 0) > 0:
        return with_condition(status, now, state="True", reason=SUFFICIENT)
    return with_condition(status, now, state="False", reason=INSUFFICIENT)


def agrees(status: JsonView) -> bool:
    """Whether the condition agrees with `disruptionsAllowed`."""
    condition = condition_of(status)
    wanted = ("False", INSUFFICIENT)
    if (json_tree.integer(status, "disruptionsAllowed") or 0) > 0:
        wanted = ("True", SUFFICIENT)
    return (condition.get("status"), condition.get("reason")) == wanted


def with_condition(
    status: JsonView,
    now: Instant,
    *,
    state: str,
    reason: str,
    message: str = "",
    generation: int | None = None,
) -> JsonObject:
    """The status with this condition; `lastTransitionTime` changes only with the status.

    `generation` is the budget's generation that the condition is about: by default the observed
    one.
    """
    known = condition_of(status)
    since = json_tree.text(known, "lastTransitionTime") if known.get("status") == state else ""
    seen = json_tree.integer(status, "observedGeneration") if generation is None else generation
    condition: JsonObject = {
        "type": ALLOWED,
        "status": state,
        **({"observedGeneration": seen} if seen else {}),
        "lastTransitionTime": since or timestamps.seconds_text(now),
        "reason": reason,
        "message": message,
    }
    conditions = meta.conditions_of(status)
    if known:
        conditions = [condition if other is known else other for other in conditions]
    else:
        conditions.append(condition)
    return {**status, "conditions": conditions}


def is_ready(pod: JsonView) -> bool:
    """Whether the pod is healthy in the sense of budgets: its condition Ready is True."""
    return meta.is_true(pod, condition_types.READY)


def is_leaving(pod: JsonView) -> bool:
    """Whether the pod is terminating."""
    return bool(meta.deletion_timestamp(pod))
