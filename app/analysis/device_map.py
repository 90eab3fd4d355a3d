"""The device map: pools by node, their devices with holders and taints, and their counters.

A device is `held` by a claim, `blocked` when a counter that it consumes has less left than it
needs, `tainted` when a taint excludes claims that do not tolerate it, otherwise `free`. Devices of
an unusable pool are `unusable`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.analysis import scope
from app.analysis.map_answers import DeviceMap, Gauge, MappedDevice, MappedPool
from app.analysis.views import LiveViews
from app.domain.devices.model import Device
from app.domain.devices.pools import Pool
from app.domain.devices.taints import BLOCKING_EFFECTS
from app.domain.errors import InputError, NotFound
from app.domain.log import ObjectKey
from app.domain.values import api_resources, quantity, selectors
from app.domain.values.fields import meta
from app.domain.values.identifiers import DeviceId
from app.domain.values.quantity import QuantityFormat
from app.domain.values.selectors import LabelSelector, SelectorError


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


def of(history: str, views: LiveViews, wanted: DeviceMapRequest, bounds: MapBounds) -> DeviceMap:
    """The map as of the views.

    Raises InputError for an invalid label selector, NotFound for an unknown node or driver.
    """
    try:
        labels = selectors.parse_labels(wanted.labels)
    except SelectorError as problem:
        raise InputError(str(problem), place=f"label selector {wanted.labels!r}") from problem
    inventory = views.inventory
    places = []
    for place in inventory.pool_ids():
        nodes = sorted({one.node.name for one in inventory.slices_of(place)})
        node = nodes[0] if len(nodes) == 1 else ""
        if _is_wanted(wanted, place, node) and (not wanted.labels or _has(views, node, labels)):
            places.append((node == "", node, place))
    if not places:
        _check_known(views, wanted)
    mapped: list[MappedPool] = []
    devices = omitted = 0
    for _, node, place in sorted(places):
        size = sum(len(one.devices) for one in inventory.slices_of(place))
        if mapped and devices + size > bounds.devices_max:
            omitted += 1
            continue
        pool = inventory.pool(place)
        if pool is not None:
            mapped.append(_mapped(views, pool, node, bounds.devices_max))
            devices += size
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


def device_at(views: LiveViews, place: DeviceId) -> tuple[MappedPool, MappedDevice] | None:
    """One device of the newest generation of its pool, and the pool; None for any other."""
    pool = views.inventory.pool(place[:2])
    if pool is None:
        return None
    mapped = _mapped(views, pool, "", len(_members(views, pool)))
    device = next((one for one in mapped.devices if one.name == place[2]), None)
    return None if device is None else (mapped, device)


def _mapped(views: LiveViews, pool: Pool, node: str, devices_max: int) -> MappedPool:
    members = _members(views, pool)
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
        devices=tuple(_device(views, pool, one, left) for one in members[:devices_max]),
        counters=tuple(_gauges(pool, used)),
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
    if not is_taken:
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
            yield Gauge(
                set=name,
                counter=counter,
                total=str(quantity.from_nanos(total, _form(total))),
                used=str(quantity.from_nanos(amount, _form(total))),
                share=round(amount / total, 4) if total else float(amount > 0),
            )


def _form(total: int) -> QuantityFormat:
    """The notation: powers of two for bytes, as drivers publish them, plain for other amounts."""
    mebibyte = 1024 * 1024 * 10**9
    return (
        QuantityFormat.BINARY_SI if total and total % mebibyte == 0 else QuantityFormat.DECIMAL_SI
    )
