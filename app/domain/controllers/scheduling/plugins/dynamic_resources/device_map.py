"""The nodes that see each pool, and the pools that each allocated claim uses.

The map has only the fields that tell which nodes an event changes. A pool with a slice that is not
bound to one node may be visible from every node, so a change of the pool concerns all nodes.
"""

from collections.abc import Iterable

import msgspec

from app.domain.controllers import claim_readings
from app.domain.controllers.scheduling.framework.nodes import NodeIndex
from app.domain.log import Event, EventType
from app.domain.values.fields import dra
from app.domain.values.identifiers import NamespacedName
from app.domain.values.json_tree import JsonView

Pool = tuple[str, str]


class AllocationChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change of a claim's allocation by an event: whether it was set before, and is set now."""

    was_set: bool
    is_set: bool

    @property
    def was_freed(self) -> bool:
        """True when the allocation went from set to unset."""
        return self.was_set and not self.is_set


class DeviceIndex:
    """Folds slices and claims, and marks the nodes that they concern as changed."""

    def __init__(self, nodes: NodeIndex) -> None:
        self._nodes = nodes
        self._pools: dict[Pool, dict[str, str]] = {}
        self._slices: dict[str, Pool] = {}
        self._claims: dict[NamespacedName, tuple[str, tuple[Pool, ...]]] = {}

    def fold_slice(self, event: Event) -> None:
        """Folds an event on a slice."""
        name = event.key.name
        before = self._slices.pop(name, None)
        if before is not None:
            self._touch((before,))
            held = self._pools[before]
            held.pop(name, None)
            if not held:
                del self._pools[before]
        if event.type is EventType.OBJECT_DELETED:
            return
        pool = (dra.driver(event.object), dra.pool_name(event.object))
        self._slices[name] = pool
        self._pools.setdefault(pool, {})[name] = dra.node_name(event.object)
        self._touch((pool,))

    def fold_claim(self, event: Event) -> AllocationChange:
        """Folds an event on a claim and returns the change of its allocation."""
        place = (event.key.namespace, event.key.name)
        before = self._claims.get(place)
        tree = event.object
        allocation = dra.allocation(tree)
        is_set = isinstance(allocation, dict) and event.type is not EventType.OBJECT_DELETED
        if is_set and before is not None and before[0] == event.uid:
            return AllocationChange(was_set=True, is_set=True)
        if before is not None:
            del self._claims[place]
            self._touch(before[1])
        if is_set:
            results = claim_readings.of_event(event).results
            pools = tuple(dict.fromkeys((each.driver, each.pool) for each in results))
            self._claims[place] = (event.uid, pools)
            self._touch(pools)
        return AllocationChange(was_set=before is not None, is_set=is_set)

    def touch_pools_of(self, allocation: JsonView) -> None:
        """Marks the nodes that see the pools of an allocation as changed."""
        self._touch(dict.fromkeys(_pools_of(allocation)))

    def _touch(self, pools: Iterable[Pool]) -> None:
        for pool in pools:
            names = self._pools.get(pool, {}).values()
            if "" in names:
                self._nodes.touch_all()
                return
            for name in dict.fromkeys(names):
                self._nodes.touch(name)


def _pools_of(allocation: JsonView) -> Iterable[Pool]:
    for result in dra.results_of(allocation):
        yield (result.driver, result.pool)
