"""The patch of one condition of a pod, and the condition of evicted pods.

Upstream's clients compute strategic merge patches from the object before and after. For an existing
list such a patch includes the order, so that an added condition comes last; without the order the
API would put it first. Parity: controllers.md 1.5 and 4.3.
"""

from app.domain.values import condition_types, json_tree, timestamps
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

DISRUPTION = condition_types.DISRUPTION_TARGET
"""The condition of a pod that ends because of a disruption."""


def patch_of(pod: JsonView, condition: JsonObject) -> JsonObject:
    """The part of a status patch that writes the condition, which may have changed fields only."""
    kinds = [present.type for present in meta.conditions(pod)]
    if not kinds:
        return {"conditions": [condition]}
    if condition["type"] not in kinds:
        kinds.append(condition["type"])
    return {
        "$setElementOrder/conditions": [{"type": kind} for kind in kinds],
        "conditions": [condition],
    }


def disruption(
    pod: JsonView, *, reason: str, message: str, now: Instant, generation: int | None = None
) -> JsonObject | None:
    """The condition to write before the pod is deleted; None when it is set already.

    The transition time changes only with the status. `generation`, if given, is written as the
    observed generation.
    """
    wanted: JsonObject = {
        "type": DISRUPTION,
        "status": "True",
        "reason": reason,
        "message": message,
    }
    if generation is not None:
        wanted["observedGeneration"] = generation
    since = timestamps.seconds_text(now)
    for condition in meta.condition_trees(pod):
        if condition.get("type") == DISRUPTION:
            if all(condition.get(name) == value for name, value in wanted.items()):
                return None
            if condition.get("status") == "True":
                since = json_tree.text(condition, "lastTransitionTime") or since
    return {**wanted, "lastProbeTime": None, "lastTransitionTime": since}
