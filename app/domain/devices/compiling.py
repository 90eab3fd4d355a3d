"""The compilation of a ResourceSlice object into a Slice.

Only quantities are validated: objects come from an API that has validated them, or from test
vectors that violate its rules on purpose. An unreadable quantity raises InputError with its path.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from sys import intern

import msgspec

from app.domain.devices import nodes, taints
from app.domain.devices.model import (
    Capacity,
    CapacityPolicy,
    Consumption,
    Device,
    Slice,
    Taint,
    written_of,
)
from app.domain.devices.nodes import NodeChoice
from app.domain.errors import InputError
from app.domain.values import json_tree, quantity
from app.domain.values.fields import dra, entries, meta
from app.domain.values.identifiers import DeviceName, DriverName, PoolId, PoolName
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import Quantity, QuantityError


def slice_of(tree: JsonObject, key: str | None = None, before: Slice | None = None) -> Slice:
    """The compiled slice, as published: without rules and patches.

    `key` identifies and orders slices; it defaults to the object's name. `before` is the slice that
    was published under the key until now: unchanged devices are taken from it.
    """
    name = meta.name(tree)
    spec = meta.spec(tree)
    pool = (DriverName(intern(dra.driver(tree))), PoolName(intern(dra.pool_name(tree))))
    place = f"ResourceSlice {name}: spec"
    devices = _devices_of(pool, spec, place, before)
    return Slice(
        key=name if key is None else key,
        name=name,
        pool=pool,
        generation=json_tree.integer(spec, "pool", "generation") or 0,
        slice_count=json_tree.integer(spec, "pool", "resourceSliceCount") or 0,
        node=nodes.choice_of(spec),
        per_device=json_tree.flag(spec, "perDeviceNodeSelection"),
        mentions_per_device=spec.get("perDeviceNodeSelection") is not None,
        devices=devices,
        counter_sets=tuple(
            (
                entries.name(counter_set),
                counters_of(counter_set, f"{place}.sharedCounters[{index}]"),
            )
            for index, counter_set in enumerate(json_tree.objects(spec, "sharedCounters"))
        ),
        tree=_with_devices(tree, devices),
    )


def _with_devices(tree: JsonObject, devices: tuple[Device, ...]) -> JsonObject:
    """The slice with the trees of its devices, which share what is equal.

    It has no managed fields, which take more memory than the rest and which no reader of slices
    needs.
    """
    kept = dict(tree)
    if isinstance(tree.get("metadata"), dict) and "managedFields" in tree["metadata"]:
        kept["metadata"] = {k: v for k, v in tree["metadata"].items() if k != "managedFields"}
    if devices:
        kept["spec"] = {**tree["spec"], "devices": [device.tree for device in devices]}
    return kept


def _devices_of(
    pool: PoolId, spec: JsonView, place: str, before: Slice | None
) -> tuple[Device, ...]:
    """The devices of a slice; devices that are published unchanged are taken from `before`."""
    known: dict[str, Device] = {}
    if before is not None and before.pool == pool:
        known = {device.id[2]: device for device in before.devices}
    devices = []
    for index, tree in enumerate(json_tree.objects(spec, "devices")):
        name = tree.get("name")
        device = known.get(name) if isinstance(name, str) else None
        if device is None or device.tree != tree or device.written != written_of(tree):
            device = device_of(pool, tree, f"{place}.devices[{index}]")
        devices.append(device)
    return tuple(devices)


def device_of(pool: PoolId, tree: JsonView, place: str) -> Device:
    """The compiled device, as published."""
    kind = _kind_of(tree, place)
    attributes = dra.attributes(tree)
    # The order of the fields remains that of the published device.
    shared = {**tree, **kind.common}
    if attributes:
        attributes = {name: _shared_value(value) for name, value in attributes.items()}
        shared["attributes"] = attributes
    return Device(
        id=(*pool, DeviceName(intern(dra.published_name(tree)))),
        attributes=attributes,
        capacity_tree=kind.capacity_tree,
        capacity=kind.capacity,
        allow_multiple=kind.allow_multiple,
        consumes=kind.consumes,
        taints=kind.taints,
        binding_conditions=kind.binding_conditions,
        binding_failure_conditions=kind.binding_failure_conditions,
        binds_to_node=kind.binds_to_node,
        node=kind.node,
        tree=shared,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _DeviceKind:
    """The common part of devices that differ only in their names and attributes.

    `common` are the published fields, as they were read.
    """

    common: JsonView
    capacity_tree: JsonView
    capacity: Mapping[str, Capacity]
    allow_multiple: bool
    consumes: Consumption
    taints: tuple[Taint, ...]
    binding_conditions: tuple[str, ...]
    binding_failure_conditions: tuple[str, ...]
    binds_to_node: bool
    node: NodeChoice


KINDS_MAX = 16_384
"""The kinds of devices that are kept for the next device of the kind."""

VALUES_MAX = 4_096
"""The values of attributes that are kept for the next device with the same value."""

_OF_ONE_DEVICE = frozenset(("name", "attributes"))


def _kind_of(tree: JsonView, place: str) -> _DeviceKind:
    """The part that the device has in common with others. Raises InputError, naming the place."""
    common = {name: value for name, value in tree.items() if name not in _OF_ONE_DEVICE}
    try:
        return _kind_written(written_of(common))
    except InputError:
        return _compiled_kind(common, place)


@lru_cache(KINDS_MAX)
def _kind_written(written: bytes) -> _DeviceKind:
    """The kind with this exact JSON: with equal trees the number 1 would be the same as true."""
    return _compiled_kind(msgspec.json.decode(written), "")


def _compiled_kind(tree: JsonView, place: str) -> _DeviceKind:
    capacity_tree = dra.capacity(tree)
    return _DeviceKind(
        common=tree,
        capacity_tree=capacity_tree,
        capacity=capacity_of(capacity_tree, f"{place}.capacity"),
        allow_multiple=json_tree.flag(tree, "allowMultipleAllocations"),
        consumes=_consumption(tree, place),
        taints=tuple(taints.taint_of(taint) for taint in dra.device_taints(tree)),
        binding_conditions=tuple(json_tree.texts(tree, "bindingConditions")),
        binding_failure_conditions=tuple(json_tree.texts(tree, "bindingFailureConditions")),
        binds_to_node=json_tree.flag(tree, "bindsToNode"),
        node=nodes.choice_of(tree),
    )


def _shared_value(published: object) -> object:
    """The value of an attribute, which devices with the same value share."""
    if isinstance(published, dict) and len(published) == 1:
        ((kind, value),) = published.items()
        if isinstance(value, str | bool | int):
            return _value_of(kind, value)
    return published


@lru_cache(VALUES_MAX, typed=True)  # (1 is not true)
def _value_of(kind: str, value: str | bool | int) -> JsonView:
    return {kind: value}


def capacity_of(tree: JsonView, place: str) -> Mapping[str, Capacity]:
    """The capacities by name, sorted by name so that all later steps have a fixed order."""
    return {
        name: Capacity(
            value=read_quantity(json_tree.get(tree, name, "value"), f"{place}[{name}].value"),
            policy=policy_of(tree[name], f"{place}[{name}].requestPolicy"),
        )
        for name in sorted(tree)
    }


def policy_of(capacity: JsonView, place: str) -> CapacityPolicy | None:
    """The request policy of a capacity, or None."""
    if not isinstance(json_tree.get(capacity, "requestPolicy"), Mapping):
        return None
    policy = json_tree.mapping(capacity, "requestPolicy")
    within = json_tree.mapping(policy, "validRange")
    values = policy.get("validValues")

    def optional(tree: JsonView, field: str) -> Quantity | None:
        raw = tree.get(field)
        return None if raw is None else read_quantity(raw, f"{place}.{field}")

    return CapacityPolicy(
        default=optional(policy, "default"),
        ranged=isinstance(policy.get("validRange"), Mapping),
        minimum=optional(within, "min"),
        maximum=optional(within, "max"),
        step=optional(within, "step"),
        valid_values=tuple(read_quantity(value, f"{place}.validValues") for value in values)
        if isinstance(values, list)
        else None,
    )


def counters_of(tree: JsonView, place: str) -> Mapping[str, int]:
    """The counters of a set or of a device's consumption, in nanos."""
    return {
        name: read_quantity(counter.get("value"), f"{place}.counters[{name}].value").nanos
        for name, counter in dra.counters(tree).items()
        if isinstance(counter, Mapping)
    }


def read_quantity(value: object, place: str) -> Quantity:
    """The quantity at `place`. Raises InputError when the value is not a quantity."""
    try:
        return quantity.from_json(value)
    except QuantityError as problem:
        raise InputError(str(problem), place=place) from problem


def _consumption(tree: JsonView, place: str) -> Consumption:
    return tuple(
        (
            dra.counter_set(consumption),
            tuple(counters_of(consumption, f"{place}.consumesCounters[{index}]").items()),
        )
        for index, consumption in enumerate(dra.consumptions(tree))
    )
