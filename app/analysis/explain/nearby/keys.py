"""Names under which devices publish what a selector reads under a name that no device has.

A selector that guards its reads says nothing of a misspelled attribute, of a capacity that is read
as an attribute, or of another driver's domain; one that does not names the last part of the path.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from app.analysis import scope
from app.analysis.views import LiveViews
from app.domain.cel import DeviceInput
from app.domain.devices.model import Device
from app.domain.devices.pools import newest

DEVICES_MAX = 4096
"""The devices in which a name is looked for before it counts as one that none has."""

_STEP = r"""(?:\.?\??\[\??\s*['"]([^'"]+)['"]\s*\])"""
_PATH = re.compile(rf"device\.(attributes|capacity){_STEP}(?:\.\??(\w+)|{_STEP})")
"""A path to an attribute or a capacity: its field, its domain, and its name in one of two forms."""


class DeviceKey(NamedTuple):
    """The place of a value of a device, as an expression reads it."""

    field: str
    domain: str
    name: str

    @property
    def path(self) -> str:
        """The place as an expression writes it."""
        is_plain = self.name.isidentifier()
        last = f".{self.name}" if is_plain else f"['{self.name}']"
        return f"device.{self.field}['{self.domain}']{last}"


def keys_in(text: str) -> list[DeviceKey]:
    """The places that a text reads, each once."""
    named = (DeviceKey(one[1], one[2], one[3] or one[4]) for one in _PATH.finditer(text))
    return [*dict.fromkeys(named)]


def meant(views: LiveViews, key: DeviceKey, device: DeviceInput) -> str:
    """The places that may have been meant by one that no device has, as a question; else empty."""
    having = keys_of(device)
    if key in having or any(key in keys_of(one.cel_input) for one in first_devices(views)):
        return ""
    same = [one for one in having if one.name == key.name]
    own = {one.name: one for one in having if one.domain == key.domain}
    near = same or [own[name] for name in scope.alike(key.name, own)]
    return f"do you mean {' or '.join(one.path for one in near)}?" if near else ""


def keys_of(device: DeviceInput) -> list[DeviceKey]:
    """The places of all values of a device."""
    places: list[DeviceKey] = []
    for field, names in (("attributes", device.attributes), ("capacity", device.capacity)):
        for each in names:
            domain, separator, name = each.partition("/")
            owner = (domain, name) if separator else (device.driver, each)
            places.append(DeviceKey(field, *owner))
    return places


def first_devices(views: LiveViews) -> Iterator[Device]:
    """The first devices of all pools, at most DEVICES_MAX."""
    places = views.inventory.pool_ids()
    slices = (one for place in places for one in newest(views.inventory.slices_of(place)))
    yield from islice((device for one in slices for device in one.devices), DEVICES_MAX)
