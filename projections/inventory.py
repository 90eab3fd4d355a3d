"""The inventory: pools with their state, and their devices with everything that acts on them.

A fold only notes an event about a slice, rule, patch or class. The objects are compiled when rows
or the inventory are read, so that a slice published ten times between two reads is compiled once.
An object that cannot be read counts as absent and is listed in `unreadable`.
"""

from typing import Any, cast

import msgspec

from app.domain.devices import pools
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.devices.inventory import Inventory, SliceChange
from app.domain.devices.model import Device, Slice
from app.domain.devices.nodes import NodeChoice
from app.domain.devices.pools import PoolState
from app.domain.devices.taints import BLOCKING_EFFECTS
from app.domain.errors import InputError
from app.domain.log import EventType, Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Row, RowKey, Table
from app.domain.values import api_groups, api_resources, json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonObject
from projections.row_changes import LateRows, PagedView, RowChanges
from projections.tables import DEVICES, POOLS

INTEGER_MAX = 2**63 - 1
"""The largest integer that a column holds; an imported object may have any number."""


_Place = tuple[str, str]
"""Resource and name of a cluster-scoped object."""

_Placed = dict[str, tuple[Slice, Device]]
"""Device name to the slice that holds it and the device."""


class InventoryProjection(LateRows, PagedView):
    """Folds ResourceSlices, DeviceTaintRules, ResourceSlicePatches and DeviceClasses.

    `compiler` reads the CEL of patches; without it patches are ignored. Example: slice `a` of pool
    `d/p` (1 of 2 slices) makes the row `d/p` with complete false, and the rows of its devices;
    slice `b` touches the row of the pool and adds its own devices; the rows of `a` stay untouched.
    """

    name = "inventory"
    version = 2

    def __init__(
        self,
        *,
        compiler: SelectorCompiler | None = None,
        with_rules: bool = True,
        with_patches: bool = True,
        rules_without_selector_match: bool = True,
    ) -> None:
        self.revision = Revision(0)
        self.unreadable: dict[_Place, str] = {}
        self._bodies: dict[_Place, bytes] = {}
        self._created: dict[str, Revision] = {}
        self._pending: dict[_Place, bytes | None] = {}
        self._has_compiler = compiler is not None
        self._inventory = Inventory(
            compiler=compiler,
            with_rules=with_rules,
            with_patches=with_patches,
            rules_without_selector_match=rules_without_selector_match,
        )
        self._placed: dict[PoolId, _Placed] = {}
        self._changes = RowChanges((POOLS, DEVICES), self._compute)
        self._touched_pools = self._changes.touched(POOLS.name)
        self._touched_devices = self._changes.touched(DEVICES.name)

    def _take(self, page: Page) -> None:
        """Note the present state of the objects."""
        bodies, pending = self._bodies, self._pending
        for event, _ in page.of(api_resources.RESOURCE_SLICE_PATCHES):
            if event.type is EventType.OBJECT_CREATED:
                self._created[event.key.name] = event.revision
            elif event.type is EventType.OBJECT_DELETED:
                self._created.pop(event.key.name, None)
            else:
                self._created.setdefault(event.key.name, event.revision)
        for resource in _RESOURCES:
            for event, _ in page.of((api_groups.RESOURCE, resource)):
                place = (resource, event.key.name)
                if event.type is EventType.OBJECT_DELETED:
                    bodies.pop(place, None)
                    pending[place] = None
                else:
                    bodies[place] = pending[place] = event.body

    @property
    def inventory(self) -> Inventory:
        """The devices at `revision`. Shared: do not change it."""
        self._catch_up()
        return self._inventory

    def tables(self) -> tuple[Table, ...]:
        """Pools and devices."""
        return (POOLS, DEVICES)

    def dump(self) -> bytes:
        """The present objects and the revisions at which patches were created, sorted.

        The rest of the state follows from them.
        """
        bodies, created = sorted(self._bodies.items()), sorted(self._created.items())
        return _encoder.encode((self.revision, bodies, created))

    def load(self, state: bytes) -> None:
        """Restore a dumped state; the view must be empty."""
        self.revision, bodies, created = _snapshot.decode(state)
        self._created = dict(created)
        self._bodies = dict(bodies)
        self._pending = dict(bodies)

    def _catch_up(self) -> None:
        """Apply the noted objects to the inventory and touch the rows that change with them."""
        if not self._pending:
            return
        pending, self._pending = self._pending, {}
        pools: set[PoolId] = set()
        for place, body in pending.items():
            for change in self._take_over(place, body):
                pools.update(side.pool for side in (change.old, change.new) if side is not None)
        for pool in pools:
            self._touch_pool(pool)

    def _take_over(self, place: _Place, body: bytes | None) -> tuple[SliceChange, ...]:
        resource, name = place
        self.unreadable.pop(place, None)
        if body is not None:
            tree: JsonObject = _decoder.decode(body)
            # The key decides, even when an imported object has another name in its metadata.
            tree["metadata"] = {**meta.metadata(tree), "name": name}
            try:
                return self._put(resource, tree)
            except (InputError, TypeError, ValueError, AttributeError) as problem:
                # The log holds every imported object, readable or not; folding must go on.
                self.unreadable[place] = str(problem)
        return self._remove(resource, name)

    def _put(self, resource: str, tree: JsonObject) -> tuple[SliceChange, ...]:
        match resource:
            case "resourceslices":
                return self._inventory.put_slice(tree)
            case "devicetaintrules":
                return self._inventory.put_rule(tree)
            case "deviceclasses":
                return self._inventory.put_class(tree)
            case _:
                if not self._has_compiler:
                    return ()
                created = self._created.get(meta.name(tree), Revision(0))
                return self._inventory.put_patch(tree, revision=created)

    def _remove(self, resource: str, name: str) -> tuple[SliceChange, ...]:
        match resource:
            case "resourceslices":
                return self._inventory.remove_slice(name)
            case "devicetaintrules":
                return self._inventory.remove_rule(name)
            case "deviceclasses":
                return self._inventory.remove_class(name)
            case _:
                return self._inventory.remove_patch(name)

    def _touch_pool(self, pool: PoolId) -> None:
        """Touch the row of the pool, and the rows of the devices whose value changed."""
        self._touched_pools.add(pool)
        before = self._placed.get(pool, {})
        after = _place_devices(pools.newest(self._inventory.slices_of(pool)))
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old is None or new is None or old[1] is not new[1] or _differs(old[0], new[0]):
                self._touched_devices.add((*pool, name))
        if after:
            self._placed[pool] = after
        else:
            self._placed.pop(pool, None)

    def _compute(self, table: str, key: RowKey) -> Row | None:
        pool = cast(PoolId, key[:2])
        if table == POOLS.name:
            return self._pool_row(pool)
        placed = self._placed.get(pool, {}).get(str(key[2]))
        return None if placed is None else _device_row(*placed)

    def _pool_row(self, pool: PoolId) -> Row | None:
        surveyed = self._inventory.pool(pool)
        if surveyed is None:
            return None
        newest = pools.newest(self._inventory.slices_of(pool))
        nodes = {resource_slice.node.name for resource_slice in newest}
        placements = {_placement(resource_slice) for resource_slice in newest}
        return {
            "driver": pool[0],
            "pool": pool[1],
            "generation": min(surveyed.generation, INTEGER_MAX),
            "slices_expected": min(newest[0].slice_count, INTEGER_MAX),
            "slices_present": len(newest),
            "slices_obsolete": len(self._inventory.slices_of(pool)) - len(newest),
            "state": surveyed.state.value,
            "complete": surveyed.state is not PoolState.INCOMPLETE,
            "valid": surveyed.state is not PoolState.INVALID,
            "problem": surveyed.problem,
            "placement": placements.pop() if len(placements) == 1 else "mixed",
            "node": nodes.pop() if len(nodes) == 1 else "",
            "devices": sum(len(resource_slice.devices) for resource_slice in newest),
            "counter_sets": sum(len(resource_slice.counter_sets) for resource_slice in newest),
            "slices": [resource_slice.name for resource_slice in newest],
        }


def _place_devices(slices: list[Slice]) -> _Placed:
    """Devices by name; when several slices have a name (an invalid pool), the first one counts."""
    placed: _Placed = {}
    for resource_slice in slices:
        for device in resource_slice.devices:
            placed.setdefault(device.id[2], (resource_slice, device))
    return placed


def _differs(old: Slice, new: Slice) -> bool:
    """Whether two versions of a slice differ in the fields that the row of a device shows."""
    return old is not new and (
        old.name != new.name
        or old.generation != new.generation
        or old.per_device != new.per_device
        or old.node != new.node
        or old.patch_problems != new.patch_problems
    )


def _device_row(resource_slice: Slice, device: Device) -> Row:
    chosen = device.node if resource_slice.per_device else resource_slice.node
    return {
        "driver": device.id[0],
        "pool": device.id[1],
        "device": device.id[2],
        "slice": resource_slice.name,
        "generation": min(resource_slice.generation, INTEGER_MAX),
        "node": chosen.name,
        "attributes": {name: _value(held) for name, held in device.attributes.items()},
        "capacity": {
            name: json_tree.get(held, "value") for name, held in device.capacity_tree.items()
        },
        "counters": dra.consumptions(device.tree),
        "shared": device.allow_multiple,
        "binding_conditions": list(device.binding_conditions),
        "taints": [
            {
                "key": taint.key,
                "value": taint.value,
                "effect": taint.effect,
                "time_added": taint.time_added,
                "rule": taint.rule,
            }
            for taint in device.taints
        ],
        "blocked": any(taint.effect in BLOCKING_EFFECTS for taint in device.taints),
        "patches": [
            {
                "patch": applied.patch,
                "field": applied.field,
                "name": applied.name,
                "removed": applied.removed,
            }
            for applied in device.patches
        ],
        "patch_problems": [
            {"patch": failed.patch, "problem": failed.problem}
            for failed in resource_slice.patch_problems
            if failed.device == device.id
        ],
    }


def _value(held: Any) -> Any:
    """The value of an attribute without its type: `{"string": "a"}` is `a`."""
    if isinstance(held, dict) and len(held) == 1:
        return next(iter(held.values()))
    return held


def _placement(resource_slice: Slice) -> str:
    if resource_slice.per_device:
        return "device"
    choice: NodeChoice = resource_slice.node
    if choice.name:
        return "node"
    if choice.all_nodes:
        return "all"
    return "selector" if choice.tree is not None else "none"


_RESOURCES = ("resourceslices", "devicetaintrules", "resourceslicepatches", "deviceclasses")
_decoder = msgspec.json.Decoder()
_encoder = msgspec.msgpack.Encoder()
_snapshot = msgspec.msgpack.Decoder(
    tuple[Revision, list[tuple[_Place, bytes]], list[tuple[str, Revision]]]
)
