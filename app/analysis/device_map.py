"""The device map: pools by node, their devices with holders and taints, and their counters.

A device is `held` by a claim, `blocked` when a counter that it consumes has less left than it
needs, `tainted` when a taint excludes claims that do not tolerate it, otherwise `free`. Devices of
an unusable pool are `unusable`. What a claim holds but the slices in use do not have is
`unpublished`, as is a pool without any slice of which claims hold devices.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from app.analysis import scope
from app.analysis.explain.reasons import listed
from app.analysis.map_answers import DeviceMap, Gauge, MappedDevice, MappedPool
from app.analysis.views import LiveViews
from app.domain.allocation.quirks import UPSTREAM, Quirks
from app.domain.devices.model import Device
from app.domain.devices.pools import OldPool, Pool, newest
from app.domain.devices.taints import BLOCKING_EFFECTS
from app.domain.errors import InputError, NotFound
from app.domain.log import ObjectKey
from app.domain.values import api_resources, selectors
from app.domain.values.fields import meta
from app.domain.values.identifiers import DeviceId, DeviceName, PoolId
from app.domain.values.selectors import LabelSelector, SelectorError
from app.domain.values.texts import notation


@dataclass(frozen=True, slots=True, kw_only=True)
class MapBounds:
    """An answer has at most `devices_max` devices."""

    devices_max: int = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMapRequest:
    """The pools wanted: of a driver, with `pool` in their name, on a node; empty values match all.

    `labels` is a label selector of nodes.
    """

    driver: str = ""
    pool: str = ""
    node: str = ""
    labels: str = ""

    @property
    def is_filtered(self) -> bool:
        """Whether some pools may be left out."""
        return bool(self.driver or self.pool or self.node or self.labels)


def of(
    history: str,
    views: LiveViews,
    wanted: DeviceMapRequest,
    bounds: MapBounds,
    quirks: Quirks = UPSTREAM,
) -> DeviceMap:
    """The map as of the views. Older generations that nodes still use are pools of their own.

    Raises InputError for an invalid label selector, NotFound for an unknown node or driver.
    """
    try:
        labels = selectors.parse_labels(wanted.labels)
    except SelectorError as problem:
        raise InputError(str(problem), place=f"label selector {wanted.labels!r}") from problem
    inventory = views.inventory
    held = _held(views)
    places = []
    for place in inventory.pool_ids():
        sides: list[tuple[str, OldPool | None]] = [
            (_node_of({one.node.name for one in newest(inventory.slices_of(place))}), None)
        ]
        sides += [(_node_of(old.nodes), old) for old in views.old_pools(place, quirks)]
        for node, old in sides:
            if _is_wanted(wanted, place, node) and (not wanted.labels or _has(views, node, labels)):
                places.append((node == "", node, place, old))
    known = {*inventory.pool_ids()}
    others = () if wanted.labels else (place for place in held if place not in known)
    places += [(True, "", place, None) for place in others if _is_wanted(wanted, place, "")]
    if not places:
        _check_known(views, wanted)
    mapped: list[MappedPool] = []
    devices = omitted = 0
    for _, node, place, old in sorted(places, key=lambda each: each[:3]):
        pool = inventory.pool(place)
        names = held.get(place, set()) if old is None else set()
        members: list[Device] = []
        if old is not None:
            members = list(old.devices())
        elif pool is not None:
            members = _members(views, pool)
            names = _not_in_slices(views, pool, names, quirks)
        size = len(members) + len(names)
        if mapped and devices + size > bounds.devices_max:
            omitted += 1
            continue
        if pool is not None:
            one = _mapped(views, pool if old is None else old.pool, node, members)
        else:
            one = _without_slices(place)
        devices += size
        shown = (*one.devices, *_unpublished(views, place, names))
        one = replace(one, devices=shown[: bounds.devices_max])
        mapped.append(one if old is None else replace(one, problem=unnoticed_text(old)))
    return DeviceMap(history=history, revision=views.revision, pools=tuple(mapped), omitted=omitted)


def _check_known(views: LiveViews, wanted: DeviceMapRequest) -> None:
    """Raises NotFound for a node or driver that does not exist, with the nearest names."""
    nodes = {key.name for key in views.objects.keys(*api_resources.NODES)}
    nodes |= {one.node.name for one in views.inventory.slices()}
    drivers = {driver for driver, _ in views.inventory.pool_ids()}
    for noun, name, known in (("node", wanted.node, nodes), ("driver", wanted.driver, drivers)):
        if name and name not in known:
            near = scope.nearest(name, sorted(known - {""}))
            text = f"{noun} {name!r} does not exist at revision {views.revision}"
            raise NotFound(f"{text}; {near}" if near else text)


def _is_wanted(wanted: DeviceMapRequest, place: tuple[str, str], node: str) -> bool:
    driver, pool = place
    return wanted.driver in ("", driver) and wanted.pool in pool and wanted.node in ("", node)


def _has(views: LiveViews, node: str, labels: LabelSelector) -> bool:
    """Whether a node exists and has the labels."""
    tree = views.objects.get(ObjectKey(*api_resources.NODES, "", node))
    return tree is not None and labels.matches(meta.labels(tree))


def device_at(
    views: LiveViews, place: DeviceId, quirks: Quirks = UPSTREAM
) -> tuple[MappedPool, MappedDevice] | None:
    """One device of the newest generation of its pool, or of an older one that nodes still use,
    and the pool; None for any other.
    """
    pool = views.inventory.pool(place[:2])
    if pool is None:
        return None
    sides = [_mapped(views, pool, "", _members(views, pool))]
    sides += [
        replace(_mapped(views, old.pool, "", list(old.devices())), problem=unnoticed_text(old))
        for old in views.old_pools(place[:2], quirks)
    ]
    for mapped in sides:
        for device in mapped.devices:
            if device.name == place[2]:
                return mapped, device
    return None


def unnoticed_text(old: OldPool) -> str:
    """The reason why devices of an older generation can still be allocated, and where."""
    some = listed(old.nodes, len(old.nodes))
    return f"generation {old.newest} is there, which goes unnoticed on {some}"


def _node_of(names: Collection[str]) -> str:
    """The only node; empty if there are several, or if a slice is for more than one."""
    return next(iter(names)) if len(names) == 1 else ""


def _mapped(views: LiveViews, pool: Pool, node: str, members: list[Device]) -> MappedPool:
    used = _used(views, members)
    left = {
        (name, counter): amount - used.get((name, counter), 0)
        for name, counters in pool.counters.items()
        for counter, amount in counters.items()
    }
    driver, name = pool.id
    return MappedPool(
        driver=driver,
        pool=name,
        node=node,
        generation=pool.generation,
        state=pool.state.value,
        problem=pool.problem,
        devices=tuple(_device(views, pool, one, left) for one in members),
        counters=tuple(_gauges(pool, used)),
    )


def _held(views: LiveViews) -> dict[PoolId, set[DeviceName]]:
    """The names of the devices that claims hold, by pool."""
    held: dict[PoolId, set[DeviceName]] = {}
    for driver, pool, name in views.allocated.held_devices():
        held.setdefault((driver, pool), set()).add(name)
    return held


def _not_in_slices(
    views: LiveViews, pool: Pool, held: set[DeviceName], quirks: Quirks
) -> set[DeviceName]:
    """The held devices that neither the newest generation has nor an older one in use."""
    names = held.difference(device.id[2] for device in _members(views, pool))
    if names:
        for old in views.old_pools(pool.id, quirks):
            names.difference_update(device.id[2] for device in old.devices())
    return names


def _unpublished(
    views: LiveViews, place: PoolId, names: Collection[DeviceName]
) -> Iterator[MappedDevice]:
    for name in sorted(names):
        holders = views.allocated.holders((*place, name))
        yield MappedDevice(name=name, state="unpublished", holders=holders)


def _without_slices(place: PoolId) -> MappedPool:
    driver, name = place
    return MappedPool(
        driver=driver,
        pool=name,
        node="",
        generation=0,
        state="unpublished",
        problem="",
        devices=(),
        counters=(),
    )


def _members(views: LiveViews, pool: Pool) -> list[Device]:
    """The devices of the newest generation, even if the pool is unusable."""
    return [
        device
        for one in views.inventory.slices_of(pool.id)
        if one.generation == pool.generation
        for device in one.devices
    ]


def _used(views: LiveViews, devices: list[Device]) -> dict[tuple[str, str], int]:
    """The amount of each counter that devices in use consume; each device counts once."""
    used: dict[tuple[str, str], int] = {}
    for device in devices:
        if device.consumes and views.allocated.is_allocated(device.id):
            for name, counters in device.consumes:
                for counter, amount in counters:
                    used[name, counter] = used.get((name, counter), 0) + amount
    return used


def _device(
    views: LiveViews, pool: Pool, device: Device, left: Mapping[tuple[str, str], int]
) -> MappedDevice:
    holders = views.allocated.holders(device.id)
    is_taken = views.allocated.is_allocated(device.id)
    taints = tuple(taint.text for taint in device.taints)
    lacks: tuple[str, ...] = ()
    if not is_taken and pool.usable:
        lacks = tuple(
            f"{name}/{counter}"
            for name, counters in device.consumes
            for counter, amount in counters
            if amount > left.get((name, counter), 0)
        )
    if is_taken:
        state = "held"
    elif not pool.usable:
        state = "unusable"
    elif any(taint.effect in BLOCKING_EFFECTS for taint in device.taints):
        state = "tainted"
    else:
        state = "blocked" if lacks else "free"
    return MappedDevice(
        name=device.id[2],
        state=state,
        holders=holders,
        taints=taints,
        sets=tuple(name for name, _ in device.consumes),
        lacks=lacks,
        is_shared=device.allow_multiple,
    )


def _gauges(pool: Pool, used: Mapping[tuple[str, str], int]) -> Iterator[Gauge]:
    for name in sorted(pool.counters):
        for counter in sorted(pool.counters[name]):
            total, amount = pool.counters[name][counter], used.get((name, counter), 0)
            of_total, in_use = notation.exactly_alike((total, amount))
            yield Gauge(
                set=name,
                counter=counter,
                total=of_total,
                used=in_use,
                share=round(amount / total, 4) if total else float(amount > 0),
            )
