"""How one condition of a pod is patched.

Upstream's clients make strategic merge patches from the object before and after. Of a list that is
not new such a patch tells the order, so a condition that is added comes last; without it the API
would put it first. Parity: controllers.md 1.5 and 4.3.
"""

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView


def patch_of(pod: JsonView, condition: JsonObject) -> JsonObject:
    """The part of a status patch that writes the condition; it may hold changed fields only."""
    kinds = [json_tree.text(one, "type") for one in json_tree.objects(pod, "status", "conditions")]
    if not kinds:
        return {"conditions": [condition]}
    if condition["type"] not in kinds:
        kinds.append(condition["type"])
    return {
        "$setElementOrder/conditions": [{"type": kind} for kind in kinds],
        "conditions": [condition],
    }
