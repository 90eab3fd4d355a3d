"""Binding conditions: does a claim's status say that its devices are ready for the pod?

Parity: controllers.md 3.8. Claims and results are looked at in order; the first that is not ready
ends the look, so a failure behind it is not seen yet.
"""

from dataclasses import dataclass
from enum import Enum, auto

from app.domain.values import json_tree, timestamps
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant, TimestampError

TIMEOUT = 600 * SECOND
"""How long devices may take to be ready, where a history does not say otherwise."""

POLL = 5 * SECOND


class Readiness(Enum):
    """What a look at one claim found."""

    READY = auto()
    WAITING = auto()
    FAILED = auto()
    TIMED_OUT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look; `text` is upstream's for a failure or time-out."""

    readiness: Readiness
    text: str = ""


READY = Look(readiness=Readiness.READY)


def has_conditions(allocation: JsonView) -> bool:
    """True when some allocated device has to be made ready before the pod is bound."""
    return any(
        result.get("bindingConditions")
        for result in json_tree.objects(allocation, "devices", "results")
    )


def look(claim: JsonView, allocation: JsonView, now: Instant, timeout: int) -> Look:
    """The state of one allocated claim, whose devices may take `timeout` microseconds."""
    name = meta.name(claim)
    devices = dra.device_statuses(claim)
    for result in json_tree.objects(allocation, "devices", "results"):
        if not result.get("bindingConditions"):
            continue
        conditions = _conditions_of(devices, result)
        if conditions is None:
            return _waiting(name, allocation, now, timeout)
        for kind in json_tree.texts(result, "bindingFailureConditions"):
            found = conditions.get(kind)
            if found is not None and found.get("status") == "True":
                text = (
                    f"device binding failed: claim={name}, "
                    f"reason={json_tree.text(found, 'reason')}, "
                    f'message="{json_tree.text(found, "message")}"'
                )
                return Look(readiness=Readiness.FAILED, text=text)
        for kind in json_tree.texts(result, "bindingConditions"):
            found = conditions.get(kind)
            if found is None or found.get("status") != "True":
                return _waiting(name, allocation, now, timeout)
    return READY


def conditions_of(claim: JsonView, result: JsonObject) -> dict[str, JsonObject]:
    """What the driver has said of one allocated device, by type; nothing yet is empty."""
    return _conditions_of(dra.device_statuses(claim), result) or {}


def _waiting(name: str, allocation: JsonView, now: Instant, timeout: int) -> Look:
    try:
        since = timestamps.parse(json_tree.text(allocation, "allocationTimestamp"))
    except TimestampError:
        return Look(readiness=Readiness.WAITING)
    if since + timeout < now:
        return Look(readiness=Readiness.TIMED_OUT, text=f"device binding timeout: claim={name}")
    return Look(readiness=Readiness.WAITING)


def _conditions_of(devices: list[JsonObject], result: JsonObject) -> dict[str, JsonObject] | None:
    for device in devices:
        if all(device.get(part) == result.get(part) for part in ("driver", "pool", "device")):
            return {
                json_tree.text(condition, "type"): condition
                for condition in json_tree.objects(device, "conditions")
            }
    return None
