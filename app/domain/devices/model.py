"""Devices and slices as the allocator sees them: parsed once, frozen.

The published object is kept in `tree` and never changed (devices share equal parts); the additions
of rules and patches are in the compiled value. Amounts of counters are integers in units of 10**-9
(`Quantity.nanos`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from app.domain.cel import DeviceInput, is_plain
from app.domain.devices.nodes import NodeChoice
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import Quantity

CounterSets: TypeAlias = Mapping[str, Mapping[str, int]]
"""The amounts of counters in nanos, by counter set name and counter name."""

Consumption: TypeAlias = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""The consumption of a device: per counter set its counters with nanos, as published."""


_encode = msgspec.json.Encoder().encode


def value_text(value: object) -> str:
    """The value of a field of a slice as JSON, but a single text without its quotes."""
    return value if value and isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """One taint of a device; `rule` names the DeviceTaintRule it comes from, if any."""

    key: str
    value: str
    effect: str
    time_added: str = ""
    rule: str = ""

    @property
    def text(self) -> str:
        """The text `key=value:effect`, or `key:effect` without a value, as kubectl writes it."""
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """One toleration of a request; `tree` is copied to the result unchanged."""

    key: str
    operator: str
    value: str
    effect: str
    tree: JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPolicy:
    """The request policy of a capacity: the amounts that a request may consume.

    `ranged` is true when `validRange` is present; `valid_values` is None when it is absent.
    """

    default: Quantity | None
    ranged: bool
    minimum: Quantity | None
    maximum: Quantity | None
    step: Quantity | None
    valid_values: tuple[Quantity, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """One capacity of a device."""

    value: Quantity
    policy: CapacityPolicy | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedPatch:
    """One attribute or capacity that a ResourceSlicePatch changed, with the name of the patch."""

    patch: str
    field: str
    name: str
    removed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchProblem:
    """A patch that was skipped for one device because a selector failed on it."""

    patch: str
    device: DeviceId
    problem: str


def written_of(tree: JsonView) -> bytes:
    """The exact JSON of a published device, in its own order of keys.

    A comparison of trees is less exact: in Python 1, 1.0 and true are equal, and the order of maps
    does not count.
    """
    return _encode(tree)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Device:
    """One device with its effective attributes, capacity and taints.

    `attributes` and `capacity_tree` are API maps (patches merged in); `tree` is as published.
    `node` is the node choice of the device itself, used only when its slice selects nodes per
    device. Devices are compared by identity: a changed device is a new value.
    """

    id: DeviceId
    attributes: JsonView
    capacity_tree: JsonView
    capacity: Mapping[str, Capacity]
    allow_multiple: bool
    consumes: Consumption
    taints: tuple[Taint, ...]
    binding_conditions: tuple[str, ...]
    binding_failure_conditions: tuple[str, ...]
    binds_to_node: bool
    node: NodeChoice
    tree: JsonView
    patches: tuple[AppliedPatch, ...] = ()
    _cel: DeviceInput | None = field(default=None, init=False, repr=False)
    _is_plain: bool | None = field(default=None, init=False, repr=False)
    _written: bytes | None = field(default=None, init=False, repr=False)

    @property
    def written(self) -> bytes:
        """The exact JSON of the published device; computed when its slice is published again."""
        written = self._written
        if written is None:
            written = written_of(self.tree)
            object.__setattr__(self, "_written", written)
        return written

    @property
    def cel_input(self) -> DeviceInput:
        """The device as CEL expressions see it; computed on first use."""
        cel_input = self._cel
        if cel_input is None:
            cel_input = DeviceInput(
                driver=self.id[0],
                attributes=self.attributes,
                capacity=self.capacity_tree,
                allow_multiple_allocations=self.allow_multiple,
            )
            object.__setattr__(self, "_cel", cel_input)
        return cel_input

    @property
    def is_plain(self) -> bool:
        """Whether the device certainly converts to CEL, because every attribute is one scalar.

        Capacities are already checked when the device is compiled.
        """
        plain = self._is_plain
        if plain is None:
            plain = is_plain(self.attributes)
            object.__setattr__(self, "_is_plain", plain)
        return plain

    @property
    def text(self) -> str:
        """The text `driver/pool/device`, as used in error texts."""
        return "/".join(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The features that devices of a slice or view have, so that code can skip absent features.

    `unique` means that no two devices of a slice have the same name, `plain` that all devices
    certainly convert to CEL, `policies` that a capacity has a request policy.
    """

    unique: bool
    plain: bool
    consuming: bool
    multiple: bool
    capacity: bool
    policies: bool
    taints: bool
    binding: bool


def traits_of(devices: Sequence[Device]) -> Traits:
    """The traits of a slice with these devices."""
    consuming = multiple = capacity = policies = tainted = binding = False
    before: Mapping[str, Capacity] = {}
    for device in devices:
        consuming = consuming or bool(device.consumes)
        multiple = multiple or device.allow_multiple
        # Devices of a kind share their capacities.
        if device.capacity is not before:
            before = device.capacity
            capacity = capacity or bool(before)
            policies = policies or any(each.policy is not None for each in before.values())
        tainted = tainted or bool(device.taints)
        binding = binding or bool(device.binding_conditions)
    return Traits(
        unique=len({device.id[2] for device in devices}) == len(devices),
        plain=all(device.is_plain for device in devices),
        consuming=consuming,
        multiple=multiple,
        capacity=capacity,
        policies=policies,
        taints=tainted,
        binding=binding,
    )


def merged_traits(parts: Sequence[Traits]) -> Traits:
    """The combined traits of several slices; names are not compared across slices."""
    if len(parts) == 1:
        return parts[0]
    return Traits(
        unique=all(each.unique for each in parts),
        plain=all(each.plain for each in parts),
        consuming=any(each.consuming for each in parts),
        multiple=any(each.multiple for each in parts),
        capacity=any(each.capacity for each in parts),
        policies=any(each.policies for each in parts),
        taints=any(each.taints for each in parts),
        binding=any(each.binding for each in parts),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slice:
    """One ResourceSlice, compiled.

    `per_device` is true when nodes are selected per device, `mentions_per_device` when the field is
    present. `counter_sets` keeps duplicates, which make the pool invalid. `tree` is the published
    object without its managed fields; its parts are shared with other slices.
    """

    key: str
    name: str
    pool: PoolId
    generation: int
    slice_count: int
    node: NodeChoice
    per_device: bool
    mentions_per_device: bool
    devices: tuple[Device, ...]
    counter_sets: tuple[tuple[str, Mapping[str, int]], ...]
    tree: JsonObject
    patch_problems: tuple[PatchProblem, ...] = ()
    _traits: Traits | None = field(default=None, init=False, repr=False)

    @property
    def traits(self) -> Traits:
        """The traits of the slice's devices; computed on first use."""
        traits = self._traits
        if traits is None:
            traits = traits_of(self.devices)
            object.__setattr__(self, "_traits", traits)
        return traits
