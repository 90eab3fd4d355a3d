"""The effect of a change on devices, pools and classes: counts, capacity and counters.

Only pools that the change touches are compared device by device. Classes are counted over the whole
cluster, because "2 of 40" is more informative than "2". The inventory decides which devices are
usable, and the allocator's own taint rule which ones are blocked.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.analysis.blast.radius import AmountChange, ClassFate, Counts, DeviceFate, PoolFate
from app.analysis.blast.world import Consequences
from app.domain.allocation import AllocatedState
from app.domain.devices import taints
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Device, Taint
from app.domain.devices.patches import ClassFilter
from app.domain.devices.pools import OldPool, Pool, PoolState
from app.domain.values import quantity
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.quantity import Quantity
from app.domain.values.texts import notation

ABSENT = "absent"

Reach: TypeAlias = frozenset[DeviceId] | None
"""The devices that new pods can reach; None for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSide:
    """A pool on one side: its survey, and its devices by name when it is usable."""

    pool: Pool | None
    devices: Mapping[DeviceId, Device]
    published: frozenset[DeviceId]

    @property
    def state(self) -> str:
        """The state, as named in `PoolFate`."""
        return ABSENT if self.pool is None else self.pool.state.value

    @property
    def problem(self) -> str:
        """The reason why the pool is not usable."""
        return "" if self.pool is None else self.pool.problem


def pool_side(inventory: Inventory, pool: PoolId) -> PoolSide:
    """The pool in the inventory, with the devices of the newest generation."""
    pool_state = inventory.pool(pool)
    if pool_state is None:
        return PoolSide(pool=None, devices={}, published=frozenset())
    devices = {device.id: device for _, device in pool_state.devices()}
    newest = {
        device.id
        for item in inventory.slices_of(pool)
        if item.generation == pool_state.generation
        for device in item.devices
    }
    return PoolSide(pool=pool_state, devices=devices, published=frozenset(newest))


def is_allocatable(device: Device) -> bool:
    """Whether a request without tolerations could get the device if it were free."""
    return taints.untolerated(device.taints, ()) is None


def device_fates(
    before: PoolSide, after: PoolSide, allocated: AllocatedState
) -> Iterable[DeviceFate]:
    """The devices of one pool that change, in order of name."""
    for name in sorted(before.published | after.published):
        old, new = before.devices.get(name), after.devices.get(name)
        change = _change(name, before, after, old, new)
        if not change:
            continue
        known = () if old is None else old.taints
        added = () if new is None else tuple(t for t in new.taints if t not in known)
        yield DeviceFate(
            device="/".join(name),
            change=change,
            allocatable_before=old is not None and is_allocatable(old),
            allocatable_after=new is not None and is_allocatable(new),
            taints=tuple(_taint_text(taint) for taint in added),
            holders=allocated.holders(name),
        )


def pool_fates(
    before: Consequences,
    after: Consequences,
    sides: Mapping[PoolId, tuple[PoolSide, PoolSide]],
    allocated: AllocatedState,
) -> list[PoolFate]:
    """The pools that differ afterwards."""
    fates = [pool_fate(pool, pair, (before, after), allocated) for pool, pair in sides.items()]
    return [fate for fate in fates if is_changed(fate)]


def pool_fate(
    pool: PoolId,
    sides: tuple[PoolSide, PoolSide],
    states: tuple[Consequences, Consequences],
    allocated: AllocatedState,
) -> PoolFate:
    """The pool's numbers on both sides."""
    before, after = sides
    return PoolFate(
        driver=pool[0],
        pool=pool[1],
        state_before=before.state,
        state_after=after.state,
        problem=after.problem,
        before=_counts(before.devices.values(), allocated, states[0].reach, states[0].short),
        after=_counts(after.devices.values(), allocated, states[1].reach, states[1].short),
        capacity=_amounts(_capacity(before), _capacity(after)),
        counters=_amounts(_counters(before), _counters(after)),
    )


def is_changed(fate: PoolFate) -> bool:
    """Whether the pool differs afterwards."""
    return (
        fate.state_before != fate.state_after
        or fate.before != fate.after
        or bool(fate.capacity or fate.counters)
    )


def class_fates(
    before: Consequences,
    after: Consequences,
    pools: Iterable[PoolId],
    named: Iterable[str],
    allocated: AllocatedState,
) -> list[ClassFate]:
    """The classes whose counts change, and those that the change names."""
    touched = frozenset(pools)
    named_classes = frozenset(named)
    left, right = usable(before.inventory), usable(after.inventory)
    fates = []
    for name in sorted(before.classes.keys() | after.classes.keys()):
        if name not in named_classes and not touched and before.reach == after.reach:
            continue
        sides = (before.classes.get(name), after.classes.get(name))
        old, _ = class_counts(sides[0], left, allocated, before.reach, before.short)
        new, problem = class_counts(sides[1], right, allocated, after.reach, after.short)
        if old != new or name in named_classes:
            fates.append(ClassFate(name=name, before=old, after=new, problem=problem))
    return fates


def matches(chosen: ClassFilter, device: Device) -> tuple[bool, str]:
    """Whether all selectors match the device, and the error when one fails."""
    if chosen.problem:
        return False, chosen.problem
    for selector in chosen.selectors:
        verdict = selector.judge((device,))[0]
        if verdict.error or not verdict.match:
            return False, verdict.error
    return True, ""


def usable(inventory: Inventory, olds: Iterable[OldPool] = ()) -> list[Device]:
    """The devices of all usable pools, and of older generations that nodes still use."""
    devices: list[Device] = []
    for pool in inventory.pool_ids():
        survey = inventory.pool(pool)
        if survey is not None and survey.state is PoolState.USABLE:
            devices += [device for _, device in survey.devices()]
    older = {device.id: device for old in olds for device in old.devices()}
    if older:
        known = {device.id for device in devices}
        devices += [device for name, device in older.items() if name not in known]
    return devices


def class_counts(
    chosen: ClassFilter | None,
    devices: Sequence[Device],
    allocated: AllocatedState,
    reach: Reach = None,
    short: Collection[DeviceId] = (),
) -> tuple[Counts, str]:
    """The number of devices that a class selects, and the first error of a selector.

    Devices `short` of counters are not free.
    """
    if chosen is None:
        return Counts(), ""
    left, problem = selected(chosen, devices)
    return _counts(left, allocated, reach, short), problem


def selected(chosen: ClassFilter, devices: Sequence[Device]) -> tuple[list[Device], str]:
    """The devices that a class selects, and the first error of a selector."""
    if chosen.problem:
        return [], chosen.problem
    problem = ""
    left = list(devices)
    for selector in chosen.selectors:
        kept = []
        for device, verdict in zip(left, selector.judge(left), strict=True):
            if verdict.error:
                problem = problem or f"{device.text}: {verdict.error}"
            elif verdict.match:
                kept.append(device)
        left = kept
    return left, problem


def _taint_text(taint: Taint) -> str:
    """The taint, and the rule that sets it."""
    rule = f" (rule {taint.rule})" if taint.rule else ""
    return f"{taint.text}{rule}"


def _change(
    name: DeviceId, before: PoolSide, after: PoolSide, old: Device | None, new: Device | None
) -> str:
    if name not in after.published:
        return "gone"
    if name not in before.published:
        return "new"
    if old is None or new is None:
        return "" if old is new else "pool"
    if old.taints != new.taints:
        return "tainted" if set(new.taints) - set(old.taints) else "untainted"
    same = (
        old.attributes == new.attributes
        and old.capacity_tree == new.capacity_tree
        and old.consumes == new.consumes
        and old.allow_multiple == new.allow_multiple
    )
    return "" if same else "changed"


def _counts(
    devices: Iterable[Device],
    allocated: AllocatedState,
    reach: Reach,
    short: Collection[DeviceId],
) -> Counts:
    total = allocatable = free = 0
    for device in devices:
        total += 1
        if is_allocatable(device):
            allocatable += 1
            is_near = reach is None or device.id in reach
            free += is_near and device.id not in short and is_free(device, allocated)
    return Counts(devices=total, allocatable=allocatable, free=free)


def is_free(device: Device, allocated: AllocatedState) -> bool:
    """Whether no claim holds the device; a shared one needs some of each capacity left."""
    if not device.allow_multiple:
        return not allocated.is_allocated(device.id)
    if allocated.is_dedicated(device.id):
        return False
    consumed = allocated.aggregated(device.id) or {}
    return not any(
        consumed.get(name, 0) >= capacity.value.nanos > 0
        for name, capacity in device.capacity.items()
    )


def _capacity(side: PoolSide) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for device in side.devices.values():
        if is_allocatable(device):
            for name, capacity in device.capacity.items():
                held = total.get(name)
                total[name] = capacity.value if held is None else quantity.add(held, capacity.value)
    return total


def _counters(side: PoolSide) -> dict[str, Quantity]:
    if side.pool is None:
        return {}
    drawn = {
        counters
        for device in side.devices.values()
        if is_allocatable(device)
        for counters, _ in device.consumes
    }
    return {
        f"{name}/{counter}": _of_nanos(nanos)
        for name, counters in side.pool.counters.items()
        if name in drawn
        for counter, nanos in counters.items()
    }


def _of_nanos(nanos: int) -> Quantity:
    """The quantity of a counter: binary form for large multiples of 2**20, else decimal form."""
    is_binary = nanos and nanos % (2**20 * 10**9) == 0
    form = quantity.QuantityFormat.BINARY_SI if is_binary else quantity.QuantityFormat.DECIMAL_SI
    return quantity.from_nanos(nanos, form)


def _amounts(
    before: Mapping[str, Quantity], after: Mapping[str, Quantity]
) -> dict[str, AmountChange]:
    zero = quantity.from_integer(0)
    amounts = {}
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, zero), after.get(name, zero)
        if quantity.compare(old, new):
            form = old.format if name in before else new.format
            was, now = notation.exactly_alike((old.nanos, new.nanos), form)
            amounts[name] = AmountChange(before=was, after=now)
    return amounts
