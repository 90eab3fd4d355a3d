"""Shared counters: the capacity of each pool, the amount used, and the claims that use it.

Only slices that publish or consume counters are read. A device that a claim holds consumes its
counters once, however many shares of it exist; administrative access consumes nothing. Only the
newest generation of a pool counts. Parity: allocator.md 1.1 and 7.
"""

from typing import cast

import msgspec

from app.domain.devices.inventory import Inventory, SliceChange
from app.domain.devices.model import Device
from app.domain.errors import InputError
from app.domain.log import ObjectKey, Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Row, RowKey, Table
from app.domain.values import api_resources
from app.domain.values.identifiers import DeviceId, DriverName, PoolId, PoolName
from app.domain.values.json_tree import JsonObject
from app.domain.values.multimap import Multimap
from projections import outlines
from projections.loading import shared
from projections.row_changes import NOTED_MAX, LateRows, PagedView, RowChanges
from projections.tables import COUNTERS

_Claim = tuple[str, str]
_SliceName = str
_Place = tuple[DriverName, PoolName, int]
"""Driver, pool and the pool's generation, as published in a slice."""


class CountersProjection(LateRows, PagedView):
    """Folds ResourceSlices and the allocations of ResourceClaims.

    Example: set `gpu-0` has 80 units; claim `a` holds a partition of 40: capacity 80, used 40, free
    40, holders `[{"device": "mig-1", "amount": "40", "claims": ["default/a"]}]`.
    """

    name = "counters"
    version = 1

    def __init__(self) -> None:
        self.revision = Revision(0)
        self._slices: dict[_SliceName, bytes] = {}
        self._pending: dict[_SliceName, bytes | None] = {}
        self._places: dict[_SliceName, _Place] = {}
        self._generations: dict[PoolId, dict[_SliceName, int]] = {}
        self._noted: dict[ObjectKey, tuple[outlines.Held, ...] | None] = {}
        self._claims: dict[_Claim, tuple[DeviceId, ...]] = {}
        self._holders: dict[PoolId, Multimap[str, _Claim]] = {}
        self._dirty: set[PoolId] = set()
        self._inventory = Inventory(with_rules=False, with_patches=False)
        self._rows: dict[PoolId, dict[RowKey, Row]] = {}
        self._changes = RowChanges((COUNTERS,), self._compute)
        self._touched = self._changes.touched(COUNTERS.name)

    def _take(self, page: Page) -> None:
        """Note slices, and the devices that claims hold."""
        noted = self._noted
        for event, claim in page.read(api_resources.RESOURCE_CLAIMS, outlines.seen_claim):
            noted[event.key] = None if claim is None else claim.held
        if len(noted) > NOTED_MAX:
            self._take_noted()
        for event, outline in page.read(api_resources.RESOURCE_SLICES, outlines.slice):
            self._note_slice(event.key.name, event.body, None if outline is None else outline.spec)

    def tables(self) -> tuple[Table, ...]:
        """Counters."""
        return (COUNTERS,)

    def dump(self) -> bytes:
        """Slices with counters, the pool of every slice, and devices by claim; each sorted."""
        self._take_noted()
        parts = (self._slices, self._places, self._claims)
        return _encoder.encode((self.revision, *(sorted(part.items()) for part in parts)))

    def load(self, state: bytes) -> None:
        """Restore a dumped state; the view must be empty."""
        self.revision, slices, places, claims = _snapshot.decode(state)
        self._slices = dict(slices)
        self._pending = dict(slices)
        for name, place in places:
            self._set_place(name, shared(place))
        for each in claims:
            self._set_claim(*shared(_decode_claim(each)))

    def _take_noted(self) -> None:
        """Apply the noted claims."""
        for key, held in self._noted.items():
            place, devices = key[2:], _counted(held) if held else ()
            if devices != self._claims.get(place, ()):
                self._set_claim(place, devices)
        self._noted.clear()

    def _note_slice(
        self, name: _SliceName, body: bytes, spec: outlines.SliceSpecOutline | None
    ) -> None:
        place = None if spec is None else (spec.driver, spec.pool.name, spec.pool.generation)
        if place != self._places.get(name):
            self._set_place(name, place)
        if place is not None and _has_counters(body):
            self._slices[name] = self._pending[name] = body
        elif self._slices.pop(name, None) is not None:
            self._pending[name] = None

    def _set_place(self, name: _SliceName, place: _Place | None) -> None:
        """Set the pool of a slice; every slice counts for the newest generation of its pool."""
        old = self._places.pop(name, None)
        if old is not None:
            generations = self._generations[old[:2]]
            del generations[name]
            if not generations:
                del self._generations[old[:2]]
            self._dirty.add(old[:2])
        if place is not None:
            self._places[name] = place
            self._generations.setdefault(place[:2], {})[name] = place[2]
            self._dirty.add(place[:2])

    def _set_claim(self, claim: _Claim, held: tuple[DeviceId, ...]) -> None:
        for driver, pool, device in self._claims.pop(claim, ()):
            devices = self._holders[(driver, pool)]
            devices.discard(device, claim)
            if not devices:
                del self._holders[(driver, pool)]
            self._dirty.add((driver, pool))
        if held:
            self._claims[claim] = held
        for driver, pool, device in held:
            if (driver, pool) not in self._holders:
                self._holders[(driver, pool)] = Multimap()
            self._holders[(driver, pool)].add(device, claim)
            self._dirty.add((driver, pool))

    def _catch_up(self) -> None:
        """Compute the rows of all pools for which something was noted."""
        self._take_noted()
        pending, self._pending = self._pending, {}
        for name, body in pending.items():
            changes = self._inventory.remove_slice(name) if body is None else self._put(name, body)
            for change in changes:
                self._dirty.update(
                    side.pool for side in (change.old, change.new) if side is not None
                )
        dirty, self._dirty = self._dirty, set()
        for pool in dirty:
            before = self._rows.pop(pool, {})
            after = self._pool_rows(pool)
            if after:
                self._rows[pool] = after
            for key in before.keys() | after.keys():
                if before.get(key) != after.get(key):
                    self._touched.add(key)

    def _put(self, name: _SliceName, body: bytes) -> tuple[SliceChange, ...]:
        tree: JsonObject = _decoder.decode(body)
        try:
            return self._inventory.put_slice(tree, key=name)
        except (InputError, TypeError, ValueError, AttributeError):
            # An unreadable slice counts as absent; the inventory view lists it.
            return self._inventory.remove_slice(name)

    def _pool_rows(self, pool: PoolId) -> dict[RowKey, Row]:
        newest = max(self._generations.get(pool, {}).values(), default=0)
        slices = self._inventory.slices_of(pool)
        current = [
            resource_slice for resource_slice in slices if resource_slice.generation == newest
        ]
        capacity = {
            (set_name, counter): amount
            for resource_slice in current
            for set_name, counters in resource_slice.counter_sets
            for counter, amount in counters.items()
        }
        if not capacity:
            return {}
        devices: dict[str, Device] = {}
        for resource_slice in current:
            for device in resource_slice.devices:
                devices.setdefault(device.id[2], device)
        used = dict.fromkeys(capacity, 0)
        holders: dict[tuple[str, str], list[JsonObject]] = {place: [] for place in capacity}
        held = self._holders.get(pool, Multimap())
        for name in sorted(held):
            claims = sorted(held.of(name))
            known = devices.get(name)
            for set_name, counters in known.consumes if known is not None else ():
                for counter, amount in counters:
                    place = (set_name, counter)
                    if place in used:
                        used[place] += amount
                        named = [f"{namespace}/{claim}" for namespace, claim in claims]
                        holders[place].append(
                            {"device": name, "amount": decimal_text(amount), "claims": named}
                        )
        return {
            (*pool, *place): {
                "driver": pool[0],
                "pool": pool[1],
                "counter_set": place[0],
                "counter": place[1],
                "capacity": decimal_text(amount),
                "used": decimal_text(used[place]),
                "free": decimal_text(amount - used[place]),
                "holders": holders[place],
            }
            for place, amount in capacity.items()
        }

    def _compute(self, table: str, key: RowKey) -> Row | None:
        if table != COUNTERS.name:
            return None
        return self._rows.get(cast(PoolId, key[:2]), {}).get(key)


def decimal_text(nanos: int) -> str:
    """An amount in units of 10**-9 as a decimal number: 1500000000 is `1.5`."""
    sign = "-" if nanos < 0 else ""
    whole, part = divmod(abs(nanos), 10**9)
    return f"{sign}{whole}.{part:09d}".rstrip("0") if part else f"{sign}{whole}"


def _counted(held: tuple[outlines.Held, ...]) -> tuple[DeviceId, ...]:
    """The devices of an allocation, without devices for administrative access."""
    devices = {(each.driver, each.pool, each.device) for each in held if not each.admin_access}
    return tuple(sorted(devices))


def _has_counters(body: bytes) -> bool:
    """Whether the slice may publish or consume counters; a false positive is possible."""
    return b'"sharedCounters"' in body or b'"consumesCounters"' in body


_decoder = msgspec.json.Decoder()
_encoder = msgspec.msgpack.Encoder()
_decode_claim = msgspec.msgpack.Decoder(tuple[_Claim, tuple[DeviceId, ...]]).decode
_snapshot = msgspec.msgpack.Decoder(
    tuple[
        Revision,
        list[tuple[_SliceName, bytes]],
        list[tuple[_SliceName, _Place]],
        list[msgspec.Raw],
    ]
)
