"""Pools as one node sees them: grouping, generation, completeness, validity, order.

Parity: allocator.md 2.2 to 2.6, with the differences of the `stable` variant (15).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

import msgspec

from app.domain.devices.model import CounterSets, Device, Slice
from app.domain.devices.nodes import Node, NodeSelectionError
from app.domain.values.identifiers import PoolId


class HasGeneration(Protocol):
    """Any representation of a slice."""

    @property
    def generation(self) -> int:
        """The generation of the pool that the slice belongs to."""


_T = TypeVar("_T", bound=HasGeneration)


class PoolState(StrEnum):
    """The state of a pool; only the devices of a usable pool are considered."""

    USABLE = "usable"
    INCOMPLETE = "incomplete"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """A pool as one node sees it. A pool that is not usable has neither slices nor devices.

    `slices` are the device slices in search order; `others` are the slices that are not for this
    node and matter only for counters. `problem` is the reason why the pool is not usable.
    """

    id: PoolId
    generation: int
    state: PoolState
    problem: str = ""
    slices: tuple[Slice, ...] = ()
    others: tuple[Slice, ...] = ()
    counters: CounterSets
    has_binding_conditions: bool = False

    @property
    def text(self) -> str:
        """The text `driver/pool`, as used in error texts."""
        return "/".join(self.id)

    @property
    def usable(self) -> bool:
        """True when devices of the pool can be allocated."""
        return self.state is PoolState.USABLE

    def devices(self) -> Iterable[tuple[Slice, Device]]:
        """The devices with their slices, in search order."""
        for resource_slice in self.slices:
            for device in resource_slice.devices:
                yield resource_slice, device


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The gates and the variant that decide how slices are read.

    `partitionable` is the PartitionableDevices feature; `counter_slices_everywhere` is true for
    the stable variant, in which a slice with counters is relevant on every node. The last three
    fields are quirks q12, q13 and q15.
    """

    partitionable: bool
    counter_slices_everywhere: bool = False
    newer_unnoticed: bool = True
    obsolete_disappear: bool = True
    binding_pools_last: bool = True


SlicesOfPool = Callable[[PoolId], Sequence[Slice]]


def gather(
    node: Node, candidates: Iterable[Slice], all_of: SlicesOfPool, reading: Reading
) -> tuple[Pool, ...]:
    """The pools of a node in search order.

    `candidates` are the node's own slices followed by the shared ones; `all_of` returns all slices
    of a pool, for any node. Raises NodeSelectionError with the whole text of the API.
    """
    grouped: dict[PoolId, list[Slice]] = {}
    for resource_slice in candidates:
        try:
            relevant = is_relevant(resource_slice, node, reading)
        except NodeSelectionError as problem:
            raise NodeSelectionError(f"gather pool information: {problem}") from problem
        if not relevant:
            continue
        kept = grouped.setdefault(resource_slice.pool, [])
        if not kept or kept[0].generation == resource_slice.generation:
            kept.append(resource_slice)
        elif kept[0].generation < resource_slice.generation:
            grouped[resource_slice.pool] = [resource_slice]
    made: list[Pool] = []
    for pool_id, kept in grouped.items():
        pool = build(pool_id, kept, all_of, reading)
        if pool is not None:
            made.append(pool)
    return in_search_order(made, reading) if len(made) > 1 else tuple(made)


def in_search_order(pools: Iterable[Pool], reading: Reading) -> tuple[Pool, ...]:
    """Pools without binding conditions first (quirk q15), then by driver and name."""
    last = reading.binding_pools_last
    return tuple(sorted(pools, key=lambda pool: (last and pool.has_binding_conditions, pool.id)))


def is_relevant(resource_slice: Slice, node: Node, reading: Reading) -> bool:
    """Whether the slice is for the node. Raises NodeSelectionError."""
    if resource_slice.counter_sets or resource_slice.mentions_per_device:
        if not reading.partitionable:
            return False
        if (
            resource_slice.counter_sets
            and not resource_slice.devices
            and reading.counter_slices_everywhere
        ):
            return True
    if resource_slice.node.is_set:
        try:
            return resource_slice.node.matches(node)
        except NodeSelectionError as problem:
            raise NodeSelectionError(
                f"failed to perform node selection for slice {resource_slice.name}: {problem}"
            ) from problem
    if not resource_slice.per_device:
        return False
    for device in resource_slice.devices:
        try:
            if device.node.matches(node):
                return True
        except NodeSelectionError as problem:
            raise NodeSelectionError(
                f"failed to perform node selection for device {device.id[2]} "
                f"in slice {resource_slice.name}: {problem}"
            ) from problem
    return False


def build(
    pool: PoolId, kept: Sequence[Slice], all_of: SlicesOfPool, reading: Reading
) -> Pool | None:
    """The pool of the relevant slices of its newest relevant generation; None when obsolete.

    Parity: allocator.md 2.4 and 2.5. When the number of relevant slices equals the count that the
    first one announces, newer generations elsewhere are not noticed (quirk Q12). When a newer one
    is noticed, the obsolete pool disappears (quirk Q13) or is incomplete.
    """
    first = kept[0]
    collected: Sequence[Slice] = ()
    if len(kept) != first.slice_count or not reading.newer_unnoticed:
        everywhere = all_of(pool)
        highest = max(resource_slice.generation for resource_slice in everywhere)
        if highest > first.generation:
            if reading.obsolete_disappear:
                return None
            return _incomplete(first, f"generation {highest} is already there for other nodes")
        collected = [
            resource_slice
            for resource_slice in everywhere
            if resource_slice.generation == first.generation
        ]
        if len(collected) != first.slice_count and len(kept) != first.slice_count:
            if not first.slice_count:
                return _incomplete(first, "how many slices it has was not recorded")
            # Decisions keep these words, and a verification compares them byte for byte.
            return _incomplete(first, f"{len(collected)} of {first.slice_count} slices are there")
    if len(kept) == 1 and not collected and is_valid_alone(first):
        return Pool(
            id=pool,
            generation=first.generation,
            state=PoolState.USABLE,
            slices=(first,),
            counters={},
            has_binding_conditions=first.traits.binding,
        )
    ordered = sorted(kept, key=lambda resource_slice: resource_slice.name)
    counter_slices = [s for s in ordered if s.counter_sets] if reading.partitionable else []
    # Up to 1.34 one slice may have both devices and counters (objects.md 7.1).
    slices = [s for s in ordered if s.devices or not (reading.partitionable and s.counter_sets)]
    others: list[Slice] = []
    if len(collected) > len(kept):
        names = {resource_slice.name for resource_slice in kept}
        for resource_slice in collected:
            if resource_slice.name not in names:
                counting = reading.partitionable and resource_slice.counter_sets
                if counting:
                    counter_slices.append(resource_slice)
                if resource_slice.devices or not counting:
                    others.append(resource_slice)
    problem = invalidity(slices, counter_slices, others, reading)
    if problem:
        return Pool(
            id=pool,
            generation=first.generation,
            state=PoolState.INVALID,
            problem=problem,
            counters={},
        )
    return Pool(
        id=pool,
        generation=first.generation,
        state=PoolState.USABLE,
        slices=tuple(slices),
        others=tuple(others),
        counters={name: counters for s in counter_slices for name, counters in s.counter_sets},
        has_binding_conditions=any(resource_slice.traits.binding for resource_slice in slices),
    )


def is_valid_alone(resource_slice: Slice) -> bool:
    """Whether a pool of this slice alone is valid: without counters and with unique names."""
    traits = resource_slice.traits
    return traits.unique and not traits.consuming and not resource_slice.counter_sets


def _incomplete(first: Slice, problem: str) -> Pool:
    return Pool(
        id=first.pool,
        generation=first.generation,
        state=PoolState.INCOMPLETE,
        problem=problem,
        counters={},
    )


def invalidity(
    slices: Iterable[Slice],
    counter_slices: Iterable[Slice],
    others: Iterable[Slice],
    reading: Reading,
) -> str:
    """The reason why a complete pool is invalid; empty if valid. Parity: allocator.md 2.5."""
    targeting = tuple(slices)
    alone = len(targeting) == 1 and targeting[0].traits.unique
    names: set[str] = set()
    for resource_slice in () if alone else targeting:
        for device in resource_slice.devices:
            if device.id[2] in names:
                return f"duplicate device name {device.id[2]}"
            names.add(device.id[2])
    if not reading.partitionable:
        return ""
    sets: dict[str, object] = {}
    known: dict[str, set[str]] = {}
    for resource_slice in counter_slices:
        for name, counters in resource_slice.counter_sets:
            if name in sets:
                return f"duplicate counter set name {name}"
            sets[name] = counters
            known[name] = set(counters)
    for resource_slice in (*targeting, *others):
        for device in resource_slice.devices if resource_slice.traits.consuming else ():
            for name, counters_used in device.consumes:
                if name not in known:
                    return f"counter set {name} not found"
                for counter, _ in counters_used:
                    if counter not in known[name]:
                        return f"counter {counter} not found in counter set {name}"
    return ""


def newest(slices: Collection[_T]) -> list[_T]:
    """The slices of a pool's newest generation, in their order."""
    generation = max((item.generation for item in slices), default=0)
    return [item for item in slices if item.generation == generation]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OldPool:
    """An older generation that these nodes take for a usable pool: they do not notice the newer."""

    pool: Pool
    newest: int
    nodes: tuple[str, ...]

    @property
    def slices(self) -> frozenset[str]:
        """The names of the slices whose devices can still be allocated."""
        return frozenset(one.name for one in self.pool.slices)

    def devices(self) -> Iterable[Device]:
        """The devices that can still be allocated, in search order."""
        return (device for _, device in self.pool.devices())


def old_pools(
    everywhere: Sequence[Slice], nodes: Iterable[Node], reading: Reading
) -> tuple[OldPool, ...]:
    """The older generations of a pool whose devices some of the nodes can still be given.

    `everywhere` are all slices of the pool. Parity: allocator.md 2.4, quirk Q12.
    """
    newest_generation = max((one.generation for one in everywhere), default=0)
    if not reading.newer_unnoticed or all(
        one.generation == newest_generation for one in everywhere
    ):
        return ()
    made: dict[tuple[str, ...], tuple[Pool, list[str]]] = {}
    for node in nodes:
        try:
            gathered = gather(node, everywhere, lambda _: everywhere, reading)
        except NodeSelectionError:
            continue
        for pool in gathered:
            if pool.usable and pool.generation < newest_generation:
                names = tuple(one.name for one in pool.slices)
                made.setdefault(names, (pool, []))[1].append(node.name)
    return tuple(
        OldPool(pool=pool, newest=newest_generation, nodes=tuple(names))
        for pool, names in made.values()
    )


def survey(pool: PoolId, everywhere: Sequence[Slice]) -> Pool:
    """The pool as the whole cluster sees it: its newest generation, for any node.

    Used by reports and projections; the allocator uses `gather`.
    """
    kept = newest(everywhere)
    made = build(pool, kept, lambda _: kept, Reading(partitionable=True))
    assert made is not None, "the newest generation cannot be obsolete"
    return made
