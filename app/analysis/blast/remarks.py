"""Warnings about effects that a proposal does not have although a user may expect them."""

from collections.abc import Iterator

from app.analysis import device_selectors
from app.analysis.blast.world import World
from app.domain.devices import nodes, pools
from app.domain.devices.model import Slice
from app.domain.devices.nodes import Node, NodeSelectionError
from app.domain.devices.pools import Reading
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import dra

_GATE = "DRADeviceTaintRules"
_NAMES_MAX = 3

NO_DEVICE = "it selects no device"
"""The remark on a rule that names nothing and selects nothing."""

UNSEEN = (
    "the scheduler of this release does not see DeviceTaintRules (C24): the rule can evict pods, "
    "and keeps none away from its devices"
)
"""The remark on a rule whose taints are in no count of devices. Parity: controllers.md C24."""


def on(world: World, key: ObjectKey) -> Iterator[str]:
    """Remarks on one change, for the hypothetical cluster after all changes."""
    place = (key.group, key.resource)
    if place == api_resources.DEVICE_TAINT_RULES:
        yield from _on_rule(world, key)
    elif place == api_resources.NODES and world.objects.get(key) is None:
        yield from _on_gone_node(world, key.name)
    elif place == api_resources.RESOURCE_SLICES and world.objects.get(key) is not None:
        yield from _on_slice(world, key.name)


def _on_rule(world: World, key: ObjectKey) -> Iterator[str]:
    if not world.profile.enabled(_GATE):
        yield f"the gate {_GATE} is off: the rule does nothing"
        return
    if world.profile.ignores_rules:
        yield UNSEEN
    rule = world.taints.rules.get(key.name)
    if rule is None:
        return
    devices = [
        device.id
        for pool in world.inventory.pool_ids()
        for item in world.inventory.slices_of(pool)
        for device in item.devices
    ]
    if any(world.taints.selects(rule, *device) for device in devices):
        return
    yield device_selectors.unmatched(rule.spec.get("deviceSelector"), devices) or NO_DEVICE


def _on_slice(world: World, name: str) -> Iterator[str]:
    """The remark on a slice that is for no node. Without any recorded node, none is missed."""
    trees = [event.object for event in world.objects.events(*api_resources.NODES)]
    published = [each for each in world.inventory.slices() if each.name == name and each.devices]
    for each in published if trees else ():
        if any(_is_for(each, nodes.node_of(tree)) for tree in trees):
            continue
        lacks = "no node is one of its nodes"
        if each.node.name:
            lacks = f"node {each.node.name} does not exist"
        yield f"{lacks}: no pod can get its devices"


def _is_for(one: Slice, node: Node) -> bool:
    try:
        return pools.is_relevant(one, node, Reading(partitionable=True))
    except NodeSelectionError:
        return False


def _on_gone_node(world: World, node: str) -> Iterator[str]:
    kept = [
        event.key.name
        for event in world.objects.events(*api_resources.RESOURCE_SLICES)
        if dra.node_name(event.object) == node
    ]
    if not kept:
        return
    shown = ", ".join(kept[:_NAMES_MAX])
    more = f" and {len(kept) - _NAMES_MAX} more" if len(kept) > _NAMES_MAX else ""
    yield f"ResourceSlices of the node stay, and no pod can get their devices: {shown}{more}"
