"""The view of one node on the inventory."""

from dataclasses import dataclass, field
from typing import TypeVar

from app.domain.devices.model import Device, Slice, Traits, merged_traits
from app.domain.devices.nodes import Node
from app.domain.devices.pools import Pool

PartT = TypeVar("PartT")


@dataclass(slots=True, kw_only=True, eq=False)
class NodeView:
    """The pools of one node in search order, and its devices flattened in the same order.

    `is_uniform` means that all devices have the same driver and certainly convert to CEL.
    `pool_index[i]` is the position in `usable` of the pool of device i, `slices[i]` its slice.
    Views are compared by identity: the inventory returns the same view until it changes.
    """

    node: Node
    pools: tuple[Pool, ...]
    usable: tuple[Pool, ...]
    devices: tuple[Device, ...]
    slices: tuple[Slice, ...]
    pool_index: tuple[int, ...]
    traits: Traits
    is_uniform: bool = False
    _parts: dict[type[object], object] = field(default_factory=dict)

    def part(self, kind: type[PartT]) -> PartT:
        """The data that a reader of views keeps with this view; created on first use.

        Each reader uses a class of its own, so that readers do not share data.
        """
        held = self._parts.get(kind)
        if held is None:
            held = self._parts[kind] = kind()
        assert isinstance(held, kind)
        return held


def view_of(node: Node, gathered: tuple[Pool, ...]) -> NodeView:
    """The view of a node with these pools, in this order."""
    if len(gathered) == 1 and len(gathered[0].slices) == 1:
        return _view_of_slice(node, gathered, gathered[0].slices[0])
    usable = tuple([pool for pool in gathered if pool.usable])
    devices: list[Device] = []
    slices: list[Slice] = []
    pool_index: list[int] = []
    drivers: set[str] = set()
    traits: list[Traits] = []
    for index, pool in enumerate(usable):
        for resource_slice in pool.slices:
            size = len(resource_slice.devices)
            devices.extend(resource_slice.devices)
            slices.extend([resource_slice] * size)
            pool_index.extend([index] * size)
            drivers.add(resource_slice.pool[0])
            traits.append(resource_slice.traits)
    together = merged_traits(traits)
    return NodeView(
        node=node,
        pools=gathered,
        usable=usable,
        devices=tuple(devices),
        slices=tuple(slices),
        pool_index=tuple(pool_index),
        traits=together,
        is_uniform=together.plain and len(drivers) == 1,
    )


def _view_of_slice(node: Node, gathered: tuple[Pool, ...], only: Slice) -> NodeView:
    """The view of a node with one pool of one slice, as most nodes have."""
    size = len(only.devices)
    return NodeView(
        node=node,
        pools=gathered,
        usable=gathered,
        devices=only.devices,
        slices=(only,) * size,
        pool_index=(0,) * size,
        traits=only.traits,
        is_uniform=only.traits.plain,
    )
