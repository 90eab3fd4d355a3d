"""The objects that drivers and administrators publish: pools of slices, taint rules, patches."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.pools import (
    Began,
    DeviceId,
    Pool,
    PoolId,
    Published,
    billionths,
)
from app.analysis.verify.invariants.queues import WAIT_MAX
from app.analysis.verify.invariants.reading import Device, Taint
from app.analysis.verify.invariants.violations import IN_FLIGHT
from app.domain.log import ObjectKey, Revision
from app.domain.values.timestamps import Instant

_encode = msgspec.json.encode

SINCE_EVER = Instant(-(2**62))
"""The beginning of anything that existed when the recording began."""


class Evictor(NamedTuple):
    """A taint that evicts: of a DeviceTaintRule, or in a slice (`slice`) of a driver.

    `is_over` when it had ended just before the eviction was recorded. `written` is the revision of
    the write that brought the taint of a driver, 0 where it is not known.
    """

    rule: str = ""
    driver: str = ""
    slice: str = ""
    key: str = ""
    value: str = ""
    is_over: bool = False
    written: Revision = Revision(0)


@dataclass(frozen=True, slots=True)
class Ended:
    """A taint that was removed: from one device, or from the devices that a rule selected."""

    until: Instant
    taint: Taint
    device: DeviceId | None
    rule: "TaintRule | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintRule:
    """A DeviceTaintRule; `wants` is driver, pool and device, None for any."""

    key: ObjectKey
    spec: Any
    selects: bool
    wants: tuple[Any, Any, Any]
    taint: Taint
    since: Instant

    def matches(self, device: DeviceId) -> bool:
        """Whether the rule taints the device; a rule without a selector taints no device."""
        return self.selects and all(
            want is None or want == has for want, has in zip(self.wants, device, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A ResourceSlicePatch; `is_certain` when no CEL expression decides about its devices."""

    uid: str
    rank: tuple[int, str, Revision, str]
    names: tuple[str, str, str]
    is_certain: bool
    changes: Mapping[str, Mapping[str, Any]]

    def names_device(self, device: DeviceId) -> bool:
        """Whether the names in the filter allow the device."""
        return all(not want or want == has for want, has in zip(self.names, device, strict=True))


@dataclass(frozen=True, slots=True)
class _Change:
    """A write or deletion of a slice or patch, with the object as it was before, if it existed."""

    at: Instant
    key: ObjectKey
    before: Published | Patch | None


class Stock:
    """All published objects. Putting or removing a slice returns the pools that it touched.

    `has_patched_devices` when the release lets ResourceSlicePatches change devices. A fork may have
    another release, so the patches are kept in any case. `shown` are the pools of which a slice
    was ever recorded; `may_lack_pools` when there may be others, older than the recording.
    """

    def __init__(self, *, has_patched_devices: bool = True) -> None:
        self.has_patched_devices = has_patched_devices
        self.pools: dict[PoolId, Pool] = {}
        self.rules: dict[ObjectKey, TaintRule] = {}
        self.patches: dict[ObjectKey, Patch] = {}
        self.gone: dict[DeviceId, Instant] = {}
        self.slices: dict[ObjectKey, Published] = {}
        self.shown: set[PoolId] = set()
        self.may_lack_pools = False
        self.has_seen_rules = False
        self.ended: deque[Ended] = deque()
        self._changes: deque[_Change] = deque()

    def pool(self, device: DeviceId) -> Pool:
        """The pool of a device; an empty one when nothing of it is published."""
        return self.pools.get(device[:2]) or _NOTHING

    def may_lack(self, pool: PoolId) -> bool:
        """Whether a pool may be published without a line that shows it."""
        return not self.shown or (self.may_lack_pools and pool not in self.shown)

    def device(self, device: DeviceId) -> Device | None:
        """A device of the newest generation of its pool."""
        pool = self.pools.get(device[:2])
        return None if pool is None else pool.devices.get(device[2])

    def pool_of(self, driver: str, name: str) -> Pool:
        """The pool, created if it is not known yet."""
        pool = self.pools.get((driver, name))
        if pool is None:
            pool = self.pools[driver, name] = Pool((driver, name))
        return pool

    def is_withdrawn(self, device: DeviceId) -> bool:
        """Whether a device was published and no longer is."""
        pool = self.pools.get(device[:2])
        if pool is not None and pool.publishes(device[2]):
            return False
        return device in self.gone or (pool is not None and pool.has(device[2]))

    def time_added(self, device: DeviceId, index: int) -> Any:
        """The `timeAdded` field of a taint of a published device."""
        place = self.pool(device).slice_of(device[2])
        taints = () if place is None else reading.objects(place.tree_of(device[2]).get("taints"))
        return taints[index].get("timeAdded") if index < len(taints) else None

    def forget_ended(self, now: Instant) -> None:
        """Drops the removed taints that did not end recently."""
        ended = self.ended
        while ended and now - ended[0].until > IN_FLIGHT:
            ended.popleft()

    def earlier(self, since: Instant, devices: Collection[DeviceId]) -> Iterator["Stock"]:
        """The published objects before each change since an instant, the newest first.

        Only states in which complete pools have all the devices, whose holders are those of now:
        from others nothing could be chosen. Only slices of their pools, and patches, are in them.
        """
        pools = {device[:2] for device in devices}
        known = [self.pools[pool] for pool in pools if pool in self.pools]
        slices = {key: each for pool in known for key, each in pool.slices.items()}
        patches = {**self.patches}
        for change in reversed(self._changes):
            if change.at < since:
                return
            key, before = change.key, change.before
            patches.pop(key, None)
            slices.pop(key, None)
            if isinstance(before, Patch):
                patches[key] = before
            elif before is not None and before.pool in pools:
                slices[key] = before
            state = self._with(slices, patches)
            if all(state.pool(each).is_complete and state.device(each) for each in devices):
                yield state

    def _with(
        self, slices: Mapping[ObjectKey, Published], patches: Mapping[ObjectKey, Patch]
    ) -> "Stock":
        """A stock of other slices and patches, of which claims hold the same devices."""
        other = Stock(has_patched_devices=self.has_patched_devices)
        other.patches = {**patches}
        for key, each in slices.items():
            other.pool_of(*each.pool).slices[key] = each
        for place, pool in other.pools.items():
            pool.holders = self.pools[place].holders
        return other

    def _note_change(self, key: ObjectKey, before: Published | Patch | None, now: Instant) -> None:
        """Remembers what a write replaces as long as an allocation chosen before it may come."""
        changes = self._changes
        while changes and now - changes[0].at > WAIT_MAX + IN_FLIGHT:
            changes.popleft()
        changes.append(_Change(now, key, before))

    def put_slice(
        self, key: ObjectKey, uid: str, body: bytes, since: Began, now: Instant
    ) -> Iterable[Pool]:
        """Applies a write of a slice; what is new in it exists since `since`."""
        read = reading.slice_(body)
        old = self.slices.get(key)
        if since[0] != SINCE_EVER:
            self._note_change(key, None if old is None else replace(old), now)
        if old is not None and _is_same(read, old.slice):
            # At most attributes changed, which are read on demand.
            old.uid, old.body, old.trees = uid, body, None
            return ()
        spec = read.spec
        pool = self.pool_of(spec.driver, spec.pool.name)
        self.shown.add(pool.id)
        devices: dict[str, Device] = {}
        for device in spec.devices:
            devices.setdefault(device.name, device)
        place = Published(
            name=key.name,
            uid=uid,
            pool=pool.id,
            node_name=spec.node_name,
            generation=spec.pool.generation,
            slice=read,
            devices=devices,
            body=body,
            is_tainted=any(device.taints for device in spec.devices),
        )
        touched = {pool}
        if old is not None:
            touched.add(self.pools[old.pool])
            del self.pools[old.pool].slices[key]
        self.slices[key] = pool.slices[key] = place
        self._settle(touched, old, since, now)
        return touched

    def remove_slice(self, key: ObjectKey, end: Began) -> Iterable[Pool]:
        """Applies the deletion of a slice, which may leave devices to another one."""
        old = self.slices.pop(key, None)
        if old is None:
            return ()
        self._note_change(key, old, end[0])
        pool = self.pools[old.pool]
        del pool.slices[key]
        self._settle((pool,), old, end, end[0])
        return (pool,)

    def _settle(
        self, touched: Iterable[Pool], old: Published | None, since: Began, now: Instant
    ) -> None:
        for pool in touched:
            pool.forget()
            if pool.taints or any(each.is_tainted for each in pool.slices.values()):
                for name, taint in pool.note_taints(since):
                    self.ended.append(Ended(now, taint, (*pool.id, name), None))
        if old is not None:
            pool = self.pools[old.pool]
            for name in old.devices:
                if not pool.has(name):
                    self.gone[(*old.pool, name)] = now

    def remove_rule(self, key: ObjectKey, now: Instant) -> None:
        """Applies the deletion of a DeviceTaintRule."""
        old = self.rules.pop(key, None)
        if old is not None:
            self.ended.append(Ended(now, old.taint, None, old))

    def put_rule(self, key: ObjectKey, body: bytes, since: Instant, now: Instant) -> None:
        """Applies a write of a DeviceTaintRule; a changed spec exists since the instant `since`."""
        self.has_seen_rules = True
        spec = reading.get(reading.value(body), "spec")
        old = self.rules.get(key)
        if old is not None and old.spec != spec:
            self.ended.append(Ended(now, old.taint, None, old))
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

    def put_patch(
        self, key: ObjectKey, uid: str, body: bytes, began: Began, *, is_new: bool
    ) -> None:
        """Applies a write of a ResourceSlicePatch."""
        since, revision = began
        tree = reading.value(body)
        devices = reading.get(tree, "spec", "devices")
        chosen = reading.get(devices, "filter")
        priority = reading.get(devices, "priority")
        old = self.patches.get(key)
        if since != SINCE_EVER:
            self._note_change(key, old, since)
        is_new = is_new or old is None or old.uid != uid
        self.patches[key] = Patch(
            uid=uid,
            rank=(
                -priority if isinstance(priority, int) and not isinstance(priority, bool) else 0,
                reading.text(reading.get(tree, "metadata"), "creationTimestamp"),
                revision if is_new or old is None else old.rank[2],
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

    def remove_patch(self, key: ObjectKey, now: Instant) -> None:
        """Applies the deletion of a ResourceSlicePatch."""
        old = self.patches.pop(key, None)
        if old is not None:
            self._note_change(key, old, now)

    def capacity_of(self, device: DeviceId, name: str) -> tuple[int | None, bool]:
        """The amount of a device's capacity after patches, and whether that is certain."""
        published = self.device(device)
        if published is None:
            return None, True
        value, is_certain = self._patched(device, "capacity", name, published.capacity.get(name))
        return (billionths(value.get("value")) if isinstance(value, dict) else None), is_certain

    def attribute_of(self, device: DeviceId, name: str) -> tuple[Any, bool]:
        """The value of an attribute after patches, and whether that is certain."""
        place = self.pool(device).slice_of(device[2])
        if place is None:
            return None, False
        attributes = place.tree_of(device[2]).get("attributes")
        attributes = attributes if isinstance(attributes, dict) else {}
        domain, _, short = name.partition("/")
        spelt = short if name not in attributes and domain == device[0] else name
        return self._patched(device, "attributes", spelt, attributes.get(spelt))

    def _patched(
        self, device: DeviceId, field_name: str, name: str, value: Any
    ) -> tuple[Any, bool]:
        """The value after patches; the patch first in rank decides. Parity: objects.md 9."""
        if not (self.patches and self.has_patched_devices):
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


def _is_same(one: reading.Slice, other: reading.Slice) -> bool:
    """Whether all parts that are read at once are the same; 1 and true are equal values only."""
    return one == other and _encode(one) == _encode(other)


_NOTHING = Pool(("", ""))
