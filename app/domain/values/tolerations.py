"""The match between a toleration and a taint, the same for nodes and for devices.

An empty effect of a toleration matches every effect in scheduling, and none in the eviction of pods
(controllers.md C2), so `fits` leaves the comparison of effects to its callers.
"""

from app.domain.values.json_tree import JsonView


def tolerates(toleration: JsonView, taint: JsonView) -> bool:
    """Whether a pod's toleration matches a node's taint, including the effect."""
    effect = toleration.get("effect")
    if effect and effect != taint.get("effect"):
        return False
    return fits(
        toleration.get("key") or "",
        toleration.get("operator") or "",
        toleration.get("value") or "",
        taint_key=taint.get("key") or "",
        taint_value=taint.get("value") or "",
    )


def fits(key: str, operator: str, value: str, *, taint_key: str, taint_value: str) -> bool:
    """True when the key, operator and value of a toleration match a taint.

    An empty key matches every key; an empty operator means `Equal`. Operators that compare numbers
    match nothing, because their feature gate is off in all emulated releases.
    """
    if key and key != taint_key:
        return False
    if operator == "Exists":
        return True
    return operator in ("", "Equal") and value == taint_value
