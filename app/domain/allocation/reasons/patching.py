"""Changes of ResourceSlicePatches that would help: removing a patch, or adding an attribute.

An administrator's patch can hide a value that a driver published, and can add one that a driver
left out. The suggested changes never override a published value, because a patch does not change
hardware. Parity: KEP-5027, objects.md 9.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from app.domain.allocation.reasons.changes import AllocationWorld, Change, FrozenObject
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Device, value_text
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject

DEVICES_MAX = 200
"""The most devices whose attributes are used as examples."""

VALUES_MAX = 3
"""The most values tried of one attribute, and the most attributes tried of one device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePatch:
    """Remove a ResourceSlicePatch."""

    patch: str

    @property
    def text(self) -> str:
        """The change in the imperative."""
        return f"remove ResourceSlicePatch {self.patch}"

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world in which only the drivers and the other patches define the devices."""
        inventory = world.inventory.copy()
        inventory.remove_patch(self.patch)
        return replace(world, inventory=inventory)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchAttribute:
    """Add a missing attribute to a device with a ResourceSlicePatch; `value` is the API value.

    `name` is qualified. Parity: KEP-5027, objects.md 9.
    """

    device: DeviceId
    name: str
    value: FrozenObject

    @property
    def text(self) -> str:
        """The change in the imperative."""
        shown = value_text(next(iter(self.value.values()), ""))
        return (
            f"set attribute {self.name} of device {'/'.join(self.device)} to {shown}, in its "
            "driver or by a ResourceSlicePatch"
        )

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world with such a patch."""
        driver, pool, device = self.device
        tree: JsonObject = {
            "metadata": {"name": f"redra:{'/'.join(self.device)}:{self.name}"},
            "spec": {
                "devices": {
                    "filter": {"driver": driver, "pool": pool, "device": device},
                    "attributes": {self.name: dict(self.value)},
                }
            },
        }
        inventory = world.inventory.copy()
        inventory.put_patch(tree)
        return replace(world, inventory=inventory)


class Patching:
    """The patches that may help, for the devices of one inventory."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._known: dict[str, dict[str, list[FrozenObject]]] = {}

    def removals(self, device: Device) -> Iterator[Change]:
        """The removal of each patch that applies to a device."""
        for patch in dict.fromkeys(applied.patch for applied in device.patches):
            yield RemovePatch(patch=patch)

    def additions(self, device: Device, text: str) -> Iterator[Change]:
        """The attributes that a text names, a device lacks and other devices have."""
        driver = device.id[0]
        own = {_qualified(name, driver) for name in device.attributes}
        lacking = (
            (name, values)
            for name, values in self._examples(driver).items()
            if name not in own and name.rpartition("/")[2] in text
        )
        for name, values in islice(lacking, VALUES_MAX):
            for value in values:
                yield PatchAttribute(device=device.id, name=name, value=value)

    def _examples(self, driver: str) -> dict[str, list[FrozenObject]]:
        """The attributes of the first devices with some of their values; the driver's own first."""
        known = self._known.get(driver)
        if known is not None:
            return known
        known = self._known[driver] = {}
        first = islice(self._first(driver), DEVICES_MAX)
        for device in first:
            for name, value in device.attributes.items():
                values = known.setdefault(_qualified(name, device.id[0]), [])
                if len(values) < VALUES_MAX and FrozenObject.of(dict(value)) not in values:
                    values.append(FrozenObject.of(dict(value)))
        return known

    def _first(self, driver: str) -> Iterator[Device]:
        """All devices, those of the driver first."""
        for is_own in (True, False):
            for each in self._inventory.slices():
                yield from (one for one in each.devices if (one.id[0] == driver) is is_own)


def _qualified(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"
