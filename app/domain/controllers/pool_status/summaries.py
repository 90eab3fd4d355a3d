"""The remaining resources of pools with partitions or shared devices. Parity: objects.md 15,
PoolStatus of 1.37.

`partitionSummary` counts, per grouping attribute and its value, the devices that draw on counters
and how many more of them fit into what is left; `shareableSummary` sums the capacity of devices
that several claims may hold.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from app.domain.allocation import AllocatedState
from app.domain.devices import taints
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Device, Slice
from app.domain.devices.pools import Pool
from app.domain.values import json_tree, quantity
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonObject
from app.domain.values.quantity import Quantity

_Left = dict[str, dict[str, int]]


def of_pool(
    inventory: Inventory, allocated: AllocatedState, pool: PoolId, attribute: str
) -> JsonObject:
    """The summaries that apply; empty for an unusable pool.

    `attribute` groups devices whose slice names no grouping attribute; if empty, they are left out.
    """
    survey = inventory.pool(pool)
    if survey is None or not survey.usable:
        return {}
    status: JsonObject = {}
    if partitions := _partitions(survey, allocated, attribute):
        status["partitionSummary"] = partitions
    shared = [device for _, device in survey.devices() if device.allow_multiple]
    if shared:
        status["shareableSummary"] = _shareable(shared, allocated)
    return status


@dataclass(slots=True, kw_only=True)
class _Partitions:
    """The devices of one type: their number, and the unused ones."""

    total: int = 0
    unused: list[Device] = field(default_factory=list)


def _partitions(pool: Pool, allocated: AllocatedState, attribute: str) -> list[JsonObject]:
    types: dict[tuple[str, str], _Partitions] = {}
    for resource_slice, device in pool.devices():
        grouping = (
            json_tree.text(resource_slice.tree, "spec", "partitionTypeAttribute") or attribute
        )
        kind = _type_of(device, grouping) if grouping and device.consumes else ""
        if not kind:
            continue
        held = types.setdefault((grouping, kind), _Partitions())
        held.total += 1
        is_tainted = taints.untolerated(device.taints, ()) is not None
        if not is_tainted and not allocated.is_allocated(device.id):
            held.unused.append(device)
    left = _counters_left(pool, allocated)
    return [
        {
            "attribute": grouping,
            "type": kind,
            "total": held.total,
            "allocatable": _fitting(held.unused, left),
        }
        for (grouping, kind), held in sorted(types.items())
    ]


def _type_of(device: Device, attribute: str) -> str:
    """The text value of the attribute; the driver's own domain may be left out of its name."""
    domain, _, short = attribute.partition("/")
    names = [attribute, short] if domain == device.id[0] else [attribute]
    for name in names:
        if text := json_tree.text(device.attributes, name, "string"):
            return text
    return ""


def _counters_left(pool: Pool, allocated: AllocatedState) -> _Left:
    left = {name: dict(counters) for name, counters in pool.counters.items()}
    for device in _drawing(pool):
        if allocated.is_allocated(device.id):
            _draw(left, device)
    return left


def _drawing(pool: Pool) -> Iterator[Device]:
    """The devices that draw on counters, including devices for other nodes."""
    for resource_slice in _slices(pool):
        yield from (device for device in resource_slice.devices if device.consumes)


def _slices(pool: Pool) -> Iterable[Slice]:
    return (*pool.slices, *pool.others)


def _fitting(devices: Iterable[Device], left: Mapping[str, Mapping[str, int]]) -> int:
    """The number of devices that can be taken one after the other."""
    remaining = {name: dict(counters) for name, counters in left.items()}
    count = 0
    for device in devices:
        if all(
            remaining[name].get(counter, 0) >= amount
            for name, counters in device.consumes
            for counter, amount in counters
        ):
            _draw(remaining, device)
            count += 1
    return count


def _draw(left: _Left, device: Device) -> None:
    for name, counters in device.consumes:
        for counter, amount in counters:
            left[name][counter] = left[name].get(counter, 0) - amount


def _shareable(devices: list[Device], allocated: AllocatedState) -> JsonObject:
    fully = partially = 0
    totals: dict[str, Quantity] = {}
    consumed: dict[str, int] = {}
    for device in devices:
        amounts = allocated.aggregated(device.id) or {}
        for name, capacity in device.capacity.items():
            held = totals.get(name)
            totals[name] = capacity.value if held is None else quantity.add(held, capacity.value)
            consumed[name] = consumed.get(name, 0) + amounts.get(name, 0)
        if not any(amounts.values()):
            fully += 1
        elif any(amounts.get(n, 0) < c.value.nanos for n, c in device.capacity.items()):
            partially += 1
    summary: JsonObject = {
        "fullyAvailableDevices": fully,
        "partiallyAvailableDevices": partially,
    }
    if totals:
        summary["capacity"] = [
            _capacity(name, totals[name], consumed[name]) for name in sorted(totals)
        ]
    return summary


def _capacity(name: str, total: Quantity, consumed: int) -> JsonObject:
    form = total.format
    return {
        "name": name,
        "total": str(total),
        "consumed": str(quantity.from_nanos(consumed, form)),
        "available": str(quantity.from_nanos(max(0, total.nanos - consumed), form)),
    }
