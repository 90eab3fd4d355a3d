"""The match between a toleration and a taint, the same for nodes and for devices.

An empty effect of a toleration means every effect to schedulers, and none to the eviction of pods
(controllers.md C2), so `fits` leaves the effects to its callers.
"""

from app.domain.values.json_tree import JsonView


def tolerates(toleration: JsonView, taint: JsonView) -> bool:
    """Whether a pod's toleration fits a node's taint, effect included."""
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
    """True when key, operator and value of a toleration fit a taint.

    An empty key fits every key, an empty operator is `Equal`. Operators that compare numbers fit
    nothing: their gate is off in all releases that are emulated.
    """
    if key and key != taint_key:
        return False
    if operator == "Exists":
        return True
    return operator in ("", "Equal") and value == taint_value
