"""How one condition of a pod is patched, and the condition of those that are evicted.

Upstream's clients make strategic merge patches from the object before and after. Of a list that is
not new such a patch tells the order, so a condition that is added comes last; without it the API
would put it first. Parity: controllers.md 1.5 and 4.3.
"""

from app.domain.values import condition_types, json_tree, timestamps
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

DISRUPTION = condition_types.DISRUPTION_TARGET
"""The condition of a pod that something else than its own work ends."""


def patch_of(pod: JsonView, condition: JsonObject) -> JsonObject:
    """The part of a status patch that writes the condition; it may hold changed fields only."""
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
    """What to write before the pod is deleted; None when it says so already.

    The time of the transition stays while the status does. `generation` is written by those who
    say which one they saw.
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
