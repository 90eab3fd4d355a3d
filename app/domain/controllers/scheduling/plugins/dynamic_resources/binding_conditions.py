"""Binding conditions: whether the status of a claim says that its devices are ready for the pod.

Parity: controllers.md 3.8. Claims and results are checked in order. The first that is not ready
ends the check, so a failure of a later one is not seen yet.
"""

from dataclasses import dataclass
from enum import Enum, auto

from app.domain.values import timestamps
from app.domain.values.fields import dra, meta
from app.domain.values.fields.dra import DeviceResult, DeviceStatus
from app.domain.values.fields.meta import Condition
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import SECOND, Instant, TimestampError

TIMEOUT = 600 * SECOND
"""The default time in microseconds that devices may take to become ready."""

POLL = 5 * SECOND


class BindingReadiness(Enum):
    """The readiness of the devices of one claim."""

    READY = auto()
    WAITING = auto()
    FAILED = auto()
    TIMED_OUT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The result of checking one claim; `text` is upstream's message for a failure or time-out."""

    readiness: BindingReadiness
    text: str = ""


READY = Look(readiness=BindingReadiness.READY)


def has_conditions(allocation: JsonView) -> bool:
    """True when an allocated device has binding conditions, which the pod waits for."""
    return any(result.binding_conditions for result in dra.results_of(allocation))


def look(claim: JsonView, allocation: JsonView, now: Instant, timeout: int) -> Look:
    """Checks one allocated claim, whose devices may take `timeout` microseconds."""
    name = meta.name(claim)
    devices = dra.device_statuses(claim)
    for result in dra.results_of(allocation):
        if not result.binding_conditions:
            continue
        conditions = _conditions_of(devices, result)
        if conditions is None:
            return _waiting(name, allocation, now, timeout)
        for kind in result.binding_failure_conditions:
            condition = conditions.get(kind)
            if condition is not None and condition.status == "True":
                text = (
                    f"device binding failed: claim={name}, "
                    f'reason={condition.reason}, message="{condition.message}"'
                )
                return Look(readiness=BindingReadiness.FAILED, text=text)
        for kind in result.binding_conditions:
            condition = conditions.get(kind)
            if condition is None or condition.status != "True":
                return _waiting(name, allocation, now, timeout)
    return READY


def conditions_of(claim: JsonView, result: DeviceResult) -> dict[str, Condition]:
    """The conditions of one allocated device by type; empty when its driver has reported none."""
    return _conditions_of(dra.device_statuses(claim), result) or {}


def _waiting(name: str, allocation: JsonView, now: Instant, timeout: int) -> Look:
    try:
        since = timestamps.parse(dra.allocation_time(allocation))
    except TimestampError:
        return Look(readiness=BindingReadiness.WAITING)
    # A clock is always a little past the microsecond that it shows.
    if since + timeout <= now:
        return Look(
            readiness=BindingReadiness.TIMED_OUT, text=f"device binding timeout: claim={name}"
        )
    return Look(readiness=BindingReadiness.WAITING)


def _conditions_of(
    devices: list[DeviceStatus], result: DeviceResult
) -> dict[str, Condition] | None:
    for device in devices:
        if device.id == result.id:
            return {condition.type: condition for condition in device.conditions}
    return None
