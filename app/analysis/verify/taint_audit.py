"""The audit of placements: allocations onto devices whose taints the request does not tolerate.

A scheduler never allocates a device with an untolerated NoSchedule or NoExecute taint, from a slice
or from a DeviceTaintRule. Released 1.36 schedulers do, because they do not see rules
(controllers.md C24). Such placements are reported, never refused: they happened.
"""

from dataclasses import dataclass

from app.analysis.views import LiveViews
from app.domain.devices import taints
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Device
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_groups, json_tree
from app.domain.values.identifiers import DriverName, PoolName
from app.domain.values.json_tree import JsonObject, JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class ForbiddenPlacement:
    """An allocation despite a taint; `objects` are the claim and, if any, the tainting rule."""

    objects: tuple[ObjectKey, ...]
    message: str


class TaintAudit:
    """Checks each allocation while a log is folded; the views are as of before the event."""

    def __init__(self, views: LiveViews) -> None:
        self._views = views
        self.found: list[tuple[Event, ForbiddenPlacement]] = []

    def before(self, event: Event) -> None:
        """Check the event when it allocates a claim."""
        key = event.key
        if key.resource != "resourceclaims" or event.type is not EventType.OBJECT_UPDATED:
            return
        if b'"allocation"' not in event.body:
            return
        old = self._views.objects.get(key)
        if old is None or json_tree.get(old, "status", "allocation") is not None:
            return
        for result in json_tree.objects(event.object, "status", "allocation", "devices", "results"):
            violation = violation_of(self._views.inventory, key, result)
            if violation is not None:
                self.found.append((event, violation))


def violation_of(
    inventory: Inventory, claim: ObjectKey, result: JsonObject
) -> ForbiddenPlacement | None:
    """The violation by one allocation result, if any. Administrative access never violates."""
    if json_tree.flag(result, "adminAccess"):
        return None
    device = _device(inventory, result)
    if device is None:
        return None
    tolerations = [taints.toleration_of(tree) for tree in json_tree.objects(result, "tolerations")]
    taint = taints.untolerated(device.taints, tolerations)
    if taint is None:
        return None
    objects = [claim]
    source = "its slice"
    if taint.rule:
        source = f"DeviceTaintRule {taint.rule}"
        objects.append(ObjectKey(api_groups.RESOURCE, "devicetaintrules", "", taint.rule))
    return ForbiddenPlacement(
        objects=tuple(objects),
        message=f"device {'/'.join(device.id)} was allocated to claim {claim.namespace}/"
        f"{claim.name} although {source} taints it {taint.key}:{taint.effect}",
    )


def _device(inventory: Inventory, result: JsonView) -> Device | None:
    driver, pool = json_tree.text(result, "driver"), json_tree.text(result, "pool")
    name = json_tree.text(result, "device")
    slices = inventory.slices_of((DriverName(driver), PoolName(pool)))
    newest = max((each.generation for each in slices), default=0)
    for each in slices:
        if each.generation == newest:
            for device in each.devices:
                if device.id == (driver, pool, name):
                    return device
    return None
