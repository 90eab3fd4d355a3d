"""Repairs of unusable pools: changes of what their driver publishes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from app.domain.allocation.reasons.changes import AllocationWorld
from app.domain.devices import pools
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Slice
from app.domain.values import counts, json_tree
from app.domain.values.fields import dra
from app.domain.values.identifiers import DeviceName, PoolId
from app.domain.values.json_tree import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameCounterSets:
    """Let the devices of a pool consume counter sets that the pool has.

    `renamed` are pairs of an unknown set name and the set of the pool that has all the counters
    which devices consume under that name.
    """

    pool: PoolId
    renamed: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The change in the imperative."""
        names = " and ".join(f"{new} instead of {old}" for old, new in self.renamed)
        return f"let the devices of pool {'/'.join(self.pool)} consume counter set {names}"

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world in which the pool is published with the renamed sets."""
        names = dict(self.renamed)

        def rename(tree: JsonObject) -> None:
            for entry in _consumed(tree):
                old = entry.get("counterSet")
                if old in names:
                    entry["counterSet"] = names[old]

        return _republished(world, self.pool, rename)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountSlices:
    """Let the newest slices of an incomplete pool state how many they are."""

    pool: PoolId
    count: int

    @property
    def text(self) -> str:
        """The change in the imperative."""
        return f"state {self.count} as resourceSliceCount in pool {'/'.join(self.pool)}"

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world in which the pool has all its slices."""

        def count(tree: JsonObject) -> None:
            tree["spec"]["pool"]["resourceSliceCount"] = self.count

        return _republished(world, self.pool, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOnce:
    """Let each device of a pool be in the first of the slices that have it.

    `keeping` are the slices that keep devices which the slices `losing` have, too.
    """

    pool: PoolId
    keeping: tuple[str, ...]
    losing: tuple[str, ...]

    @property
    def text(self) -> str:
        """The change in the imperative."""
        kept = f"{counts.plural(len(self.keeping), 'slice')} {' and '.join(self.keeping)}"
        lost = f"{counts.plural(len(self.losing), 'slice')} {' and '.join(self.losing)}"
        has = counts.verb(len(self.keeping), "has")
        return f"leave out of {lost} the devices that {kept} of pool {'/'.join(self.pool)} {has}"

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world in which no device of the pool is in two slices."""
        names: set[object] = set()

        def leave_out(tree: JsonObject) -> None:
            devices = [one for one in dra.devices(tree) if one.get("name") not in names]
            names.update(one.get("name") for one in devices)
            tree["spec"]["devices"] = devices

        return _republished(world, self.pool, leave_out)


def _republished(
    world: AllocationWorld, pool: PoolId, edit: Callable[[JsonObject], None]
) -> AllocationWorld:
    """The world in which the newest slices of a pool are published with a change."""
    inventory = world.inventory.copy()
    for published in pools.newest(world.inventory.slices_of(pool)):
        # Each slice and device needs entries of its own here; published ones are shared.
        tree: JsonObject = json_tree.copy(published.tree)
        edit(tree)
        inventory.put_slice(tree, key=published.key)
    return replace(world, inventory=inventory)


def of_slices(inventory: Inventory, pool: PoolId) -> CountSlices | None:
    """The repair of a pool whose slices state another number.

    None if they state their own, or if a number was not recorded.
    """
    slices = pools.newest(inventory.slices_of(pool))
    stated = {published.slice_count for published in slices}
    if stated <= {len(slices)} or 0 in stated:
        return None
    return CountSlices(pool=pool, count=len(slices))


def of_names(inventory: Inventory, pool: PoolId) -> PublishOnce | None:
    """The repair of a pool of which several slices have one device; None if none have."""
    first: dict[DeviceName, str] = {}
    keeping: dict[str, None] = {}
    losing: dict[str, None] = {}
    for published in pools.newest(inventory.slices_of(pool)):
        if not published.traits.unique:
            return None
        for device in published.devices:
            keeper = first.setdefault(device.id[2], published.name)
            if keeper != published.name:
                keeping[keeper] = losing[published.name] = None
    if not losing:
        return None
    return PublishOnce(pool=pool, keeping=tuple(keeping), losing=tuple(losing))


def of_counters(inventory: Inventory, pool: PoolId) -> RenameCounterSets | None:
    """The repair of a pool whose devices name missing counter sets; None if there is none."""
    slices = pools.newest(inventory.slices_of(pool))
    sets = {name: frozenset(counters) for each in slices for name, counters in each.counter_sets}
    renamed = {}
    for name, counters in _lacking(slices, sets).items():
        fitting = [known for known in sorted(sets) if counters <= sets[known]]
        if not fitting:
            return None
        renamed[name] = fitting[0]
    return RenameCounterSets(pool=pool, renamed=tuple(renamed.items())) if renamed else None


def _lacking(slices: list[Slice], sets: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """The missing sets that devices name, with all counters consumed under each name."""
    lacking: dict[str, frozenset[str]] = {}
    for published in slices:
        for device in published.devices:
            for name, counters in device.consumes:
                if name not in sets:
                    used = frozenset(counter for counter, _ in counters)
                    lacking[name] = lacking.get(name, frozenset()) | used
    return lacking


def _consumed(tree: JsonObject) -> Iterator[JsonObject]:
    """The entries of a slice that consume counters."""
    for device in dra.devices(tree):
        yield from device.get("consumesCounters") or ()
