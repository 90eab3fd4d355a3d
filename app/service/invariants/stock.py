"""What drivers and administrators publish: pools of slices, taint rules, patches."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.log import ObjectKey, Revision
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.invariants import amounts, reading
from app.service.invariants.reading import Device, Slice, Taint

DeviceId = tuple[str, str, str]
PoolId = tuple[str, str]
CounterId = tuple[str, str]

SINCE_EVER = Instant(-(2**62))
"""Since when something was there that was found when the recording began."""


@dataclass(slots=True, kw_only=True)
class Published:
    """A slice: its devices by name, and its body for those who want their attributes."""

    name: str
    pool: PoolId
    generation: int
    slice: Slice
    devices: Mapping[str, Device]
    body: bytes
    is_tainted: bool
    attributes: Mapping[str, Any] | None = None

    def attributes_of(self, device: str) -> JsonObject:
        """The attributes of a device; decoded at the first question."""
        if self.attributes is None:
            found: dict[str, Any] = {}
            for each in reading.objects(reading.get(reading.tree(self.body), "spec", "devices")):
                found.setdefault(reading.text(each, "name"), each.get("attributes"))
            self.attributes = found
        attributes = self.attributes.get(device)
        return attributes if isinstance(attributes, dict) else {}


@dataclass(slots=True)
class Pool:
    """The slices of a pool. What follows from them is made when it is asked for."""

    slices: dict[ObjectKey, Published] = field(default_factory=dict)
    taints: dict[str, dict[Taint, Instant]] = field(default_factory=dict)
    _places: dict[str, Published] | None = None
    _limits: dict[CounterId, int] | None = None

    def forget(self) -> None:
        """Some slice changed."""
        self._places = self._limits = None

    def newest(self) -> list[Published]:
        """The slices of the newest generation, by name."""
        generation = max((each.generation for each in self.slices.values()), default=0)
        newest = [each for each in self.slices.values() if each.generation == generation]
        return sorted(newest, key=lambda each: each.name) if len(newest) > 1 else newest

    def slice_of(self, device: str) -> Published | None:
        """Where a device of the newest generation is published."""
        if self._places is None:
            self._places = {}
            for each in reversed(self.newest()):
                self._places.update(dict.fromkeys(each.devices, each))
        return self._places.get(device)

    def device(self, name: str) -> Device | None:
        """A device of the newest generation."""
        place = self.slice_of(name)
        return None if place is None else place.devices[name]

    def has(self, device: str) -> bool:
        """Whether a device is published in whatever generation."""
        return any(device in each.devices for each in self.slices.values())

    @property
    def limits(self) -> Mapping[CounterId, int]:
        """The counters of the newest generation."""
        if self._limits is None:
            self._limits = {
                (counters.name, name): amounts.billionths(amount.value)
                for each in self.newest()
                for counters in each.slice.spec.shared_counters
                for name, amount in counters.counters.items()
            }
        return self._limits

    def note_taints(self, now: Instant) -> None:
        """Remember since when each device of the newest generation has each of its taints."""
        before, self.taints = self.taints, {}
        if not any(each.is_tainted for each in self.slices.values()):
            return
        for each in self.newest():
            for name, device in each.devices.items():
                if device.taints and self.slice_of(name) is each:
                    since = before.get(name, {})
                    self.taints[name] = {taint: since.get(taint, now) for taint in device.taints}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintRule:
    """A DeviceTaintRule; `wants` are driver, pool and device, None for any."""

    key: ObjectKey
    spec: Any
    selects: bool
    wants: tuple[Any, Any, Any]
    taint: Taint
    since: Instant

    def matches(self, device: DeviceId) -> bool:
        """Whether the rule taints the device; one without a selector taints none."""
        return self.selects and all(
            want is None or want == has for want, has in zip(self.wants, device, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A ResourceSlicePatch. Whether it `is_certain` depends on no CEL expression."""

    rank: tuple[int, str, Revision, str]
    names: tuple[str, str, str]
    is_certain: bool
    changes: Mapping[str, Mapping[str, Any]]

    def names_device(self, device: DeviceId) -> bool:
        """Whether the names in the filter allow the device."""
        return all(not want or want == has for want, has in zip(self.names, device, strict=True))


class Stock:
    """All that is published. Each `put` and `remove` returns the pools that it touched."""

    def __init__(self) -> None:
        self.pools: dict[PoolId, Pool] = {}
        self.rules: dict[ObjectKey, TaintRule] = {}
        self.patches: dict[ObjectKey, Patch] = {}
        self.gone: dict[DeviceId, Instant] = {}
        self.has_seen_slices = False
        self._pool_of: dict[ObjectKey, PoolId] = {}

    def pool(self, device: DeviceId) -> Pool:
        """The pool of a device; an empty one when nothing of it is published."""
        return self.pools.get(device[:2]) or _NOTHING

    def device(self, device: DeviceId) -> Device | None:
        """A device of the newest generation of its pool."""
        pool = self.pools.get(device[:2])
        return None if pool is None else pool.device(device[2])

    def put_slice(self, key: ObjectKey, body: bytes, since: Instant, now: Instant) -> set[PoolId]:
        """A slice was written; what is new in it is there `since` an instant."""
        self.has_seen_slices = True
        read = reading.slice_(body)
        spec = read.spec
        pool_id = (spec.driver, spec.pool.name)
        devices: dict[str, Device] = {}
        for device in spec.devices:
            devices.setdefault(device.name, device)
        place = Published(
            name=key.name,
            pool=pool_id,
            generation=spec.pool.generation,
            slice=read,
            devices=devices,
            body=body,
            is_tainted=any(device.taints for device in spec.devices),
        )
        touched = {pool_id}
        earlier = self._pool_of.get(key)
        old = None if earlier is None else self.pools[earlier].slices.pop(key)
        self._pool_of[key] = pool_id
        self.pools.setdefault(pool_id, Pool()).slices[key] = place
        if earlier is not None:
            touched.add(earlier)
        self._settle(touched, old, since, now)
        return touched

    def remove_slice(self, key: ObjectKey, now: Instant) -> set[PoolId]:
        """A slice was deleted."""
        pool_id = self._pool_of.pop(key, None)
        if pool_id is None:
            return set()
        old = self.pools[pool_id].slices.pop(key)
        self._settle({pool_id}, old, now, now)
        return {pool_id}

    def _settle(
        self, touched: Iterable[PoolId], old: Published | None, since: Instant, now: Instant
    ) -> None:
        for pool_id in touched:
            pool = self.pools[pool_id]
            pool.forget()
            if pool.taints or any(each.is_tainted for each in pool.slices.values()):
                pool.note_taints(since)
        for name in () if old is None else old.devices:
            assert old is not None, "there are no names without it"
            if not self.pools[old.pool].has(name):
                self.gone[(*old.pool, name)] = now

    def put_rule(self, key: ObjectKey, body: bytes, since: Instant) -> None:
        """A DeviceTaintRule was written; it is as it is `since` an instant, unless it was."""
        spec = reading.tree(body).get("spec")
        old = self.rules.get(key)
        selector = reading.get(spec, "deviceSelector")
        taint = reading.get(spec, "taint")
        self.rules[key] = TaintRule(
            key=key,
            spec=spec,
            selects=isinstance(selector, dict),
            wants=(
                reading.get(selector, "driver"),
                reading.get(selector, "pool"),
                reading.get(selector, "device"),
            ),
            taint=Taint(
                key=reading.text(taint, "key"),
                value=reading.text(taint, "value"),
                effect=reading.text(taint, "effect"),
            ),
            since=old.since if old is not None and old.spec == spec else since,
        )

    def put_patch(self, key: ObjectKey, body: bytes, revision: Revision, *, is_new: bool) -> None:
        """A ResourceSlicePatch was written."""
        tree = reading.tree(body)
        devices = reading.get(tree, "spec", "devices")
        chosen = reading.get(devices, "filter")
        priority = reading.get(devices, "priority")
        old = self.patches.get(key)
        self.patches[key] = Patch(
            rank=(
                -priority if isinstance(priority, int) and not isinstance(priority, bool) else 0,
                reading.text(reading.get(tree, "metadata"), "creationTimestamp"),
                revision if old is None or is_new else old.rank[2],
                key.name,
            ),
            names=(
                reading.text(chosen, "driver"),
                reading.text(chosen, "pool"),
                reading.text(chosen, "device"),
            ),
            is_certain=not (
                reading.objects(reading.get(chosen, "selectors"))
                or reading.text(chosen, "deviceClassName")
            ),
            changes={
                name: changes
                for name in ("attributes", "capacity")
                if isinstance(changes := reading.get(devices, name), dict)
            },
        )

    def capacity_of(self, device: DeviceId, name: str) -> tuple[int | None, bool]:
        """How much of a capacity a device has after patches, and whether that is certain."""
        published = self.device(device)
        if published is None:
            return None, True
        value, is_certain = self._patched(device, "capacity", name, published.capacity.get(name))
        return (
            amounts.billionths(value.get("value")) if isinstance(value, dict) else None
        ), is_certain

    def attribute_of(self, device: DeviceId, name: str) -> tuple[Any, bool]:
        """The value of an attribute after patches, and whether that is certain."""
        place = self.pool(device).slice_of(device[2])
        if place is None:
            return None, False
        attributes = place.attributes_of(device[2])
        domain, _, short = name.partition("/")
        spelt = short if name not in attributes and domain == device[0] else name
        return self._patched(device, "attributes", spelt, attributes.get(spelt))

    def _patched(
        self, device: DeviceId, field_name: str, name: str, value: Any
    ) -> tuple[Any, bool]:
        """Parity: objects.md 9. Of several patches the first in rank decides."""
        if not self.patches:
            return value, True
        qualified = name if "/" in name else f"{device[0]}/{name}"
        is_certain = True
        best: Patch | None = None
        for patch in self.patches.values():
            change = patch.changes.get(field_name, {}).get(qualified)
            if not isinstance(change, dict) or not patch.names_device(device):
                continue
            if not patch.is_certain:
                is_certain = False
            elif best is None or patch.rank < best.rank:
                best = patch
        if best is not None:
            change = best.changes[field_name][qualified]
            value = None if "null" in change else change
        return value, is_certain


_NOTHING = Pool()
