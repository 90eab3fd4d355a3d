"""The devices that some node sees, those short of counters, and the nodes that take pods."""

from collections import Counter
from collections.abc import Iterable, Sequence

from app.domain.allocation import AllocatedState, Features
from app.domain.allocation.allocator import reading_of
from app.domain.allocation.counters import available_of
from app.domain.allocation.quirks import Quirks
from app.domain.devices import nodes, pools
from app.domain.devices.inventory import Inventory
from app.domain.devices.nodes import Node, NodeChoice, NodeSelectionError
from app.domain.devices.pools import OldPool, PoolState
from app.domain.values.fields import core, meta
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject

_NODE_TAINTS = "node.kubernetes.io/"
"""The prefix of Kubernetes' own taints, which mean that a node currently takes no pods."""


def takes_pods(node: JsonObject) -> bool:
    """Whether the node is neither cordoned nor tainted by Kubernetes itself."""
    return not core.unschedulable(node) and not any(
        str(taint.get("key")).startswith(_NODE_TAINTS) for taint in core.taints(node)
    )


def reachable(inventory: Inventory, trees: Iterable[JsonObject]) -> frozenset[DeviceId]:
    """The devices of usable pools that at least one of these nodes sees."""
    takers = {meta.name(tree): nodes.node_of(tree) for tree in trees}
    seen: set[DeviceId] = set()
    for pool_id in inventory.pool_ids():
        pool = inventory.pool(pool_id)
        if pool is None or pool.state is not PoolState.USABLE:
            continue
        for item in pool.slices:
            is_near = not item.per_device and _is_for_one(item.node, takers)
            seen.update(
                device.id
                for device in item.devices
                if is_near or (item.per_device and _is_for_one(device.node, takers))
            )
    return frozenset(seen)


def old_pools(
    inventory: Inventory, trees: Sequence[JsonObject], features: Features, quirks: Quirks
) -> tuple[OldPool, ...]:
    """The older generations of all pools whose devices some of these nodes can still be given."""
    reading = reading_of(features, quirks)
    return tuple(
        old
        for place in inventory.pool_ids()
        for old in pools.old_pools(inventory.slices_of(place), map(nodes.node_of, trees), reading)
    )


def short_of_counters(inventory: Inventory, allocated: AllocatedState) -> frozenset[DeviceId]:
    """The devices of usable pools that no claim holds and whose counters do not suffice."""
    short = []
    for pool_id in inventory.pool_ids():
        pool = inventory.pool(pool_id)
        if pool is None or pool.state is not PoolState.USABLE or not pool.counters:
            continue
        left = available_of(pool, allocated)
        for _, device in pool.devices():
            drawn = Counter[tuple[str, str]]()
            for name, used in device.consumes:
                for counter, amount in used:
                    drawn[name, counter] += amount
            is_short = any(left.get(place, amount) < amount for place, amount in drawn.items())
            if is_short and not allocated.is_allocated(device.id):
                short.append(device.id)
    return frozenset(short)


def _is_for_one(choice: NodeChoice, takers: dict[str, Node]) -> bool:
    if choice.name:
        return choice.name in takers
    try:
        return any(choice.matches(node) for node in takers.values())
    except NodeSelectionError:
        return False
