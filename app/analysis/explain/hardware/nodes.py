"""Nodes: whether they accept pods, which pods run there, how much of their devices is allocated."""

from collections.abc import Iterator, Sequence
from functools import partial

from app.analysis.explain import lives, sources
from app.analysis.explain.hardware import pools as pool_reasons
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.workloads import budgets
from app.analysis.views import LiveViews
from app.domain.allocation.quirks import Quirks
from app.domain.devices import pools
from app.domain.devices.model import Slice
from app.domain.devices.nodes import Node, NodeChoice, NodeSelectionError, node_of
from app.domain.devices.taints import taint_of
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources, condition_types, counts, well_known
from app.domain.values.fields import core, meta
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonView

POOLS_MAX = 8
"""The number of pools of a node shown one by one."""


def state_of(tree: JsonView) -> str:
    """`Ready` or `NotReady`, with `SchedulingDisabled` for a cordoned node, as in kubectl."""
    ready = "Ready" if meta.is_true(tree, condition_types.READY) else "NotReady"
    return f"{ready},SchedulingDisabled" if core.unschedulable(tree) else ready


def reasons(
    views: LiveViews,
    events: Sequence[Event],
    name: str,
    tree: JsonView,
    quirks: Quirks,
    kept_out: Sequence[Reason] = (),
) -> Iterator[Reason]:
    """The node's readiness, taints, devices by pool, and pods.

    `kept_out` are the reasons about pods that wait for it to be uncordoned.
    """
    if core.unschedulable(tree):
        since = sources.since(events, core.unschedulable)
        yield sources.made(since, "cordoned: no new pod is placed on it", *kept_out)
    ready = meta.condition(tree, condition_types.READY)
    if ready is not None and ready.status != "True":
        since = sources.since(events, lambda state: not meta.is_true(state, condition_types.READY))
        why = ": ".join(part for part in (ready.reason, ready.message) if part)
        yield sources.made(since, f"not ready{f' ({why})' if why else ''}")
    for taint in core.taints(tree):
        if taint.get("key") == well_known.UNSCHEDULABLE:
            continue
        since = sources.since(events, partial(_has_taint, taint))
        yield sources.made(since, f"tainted {taint_of(taint).text}")
    if lost := meta.annotation(tree, well_known.LOST_DRIVERS):
        yield Reason(text=f"drivers {lost} do not answer")
    yield from lives.ending(events, tree)
    yield from _devices(views, name, quirks)
    yield _pods(views, name)
    if core.unschedulable(tree):
        yield from budgets.on_node(views, name)
    yield from lives.origin(events)


def _has_taint(taint: JsonView, tree: JsonView) -> bool:
    return taint in core.taints(tree)


def _devices(views: LiveViews, name: str, quirks: Quirks) -> Iterator[Reason]:
    by_pool: dict[PoolId, list[Slice]] = {}
    for resource_slice in views.inventory.slices():
        if resource_slice.node.name == name:
            by_pool.setdefault(resource_slice.pool, []).append(resource_slice)
    shared = [*_shared(views, name)]
    if not by_pool and not shared:
        yield Reason(text="no driver publishes devices for it", denies=("resourceslices",))
    for place, slices in list(by_pool.items())[:POOLS_MAX]:
        current = pools.newest(slices)
        children = tuple(pool_reasons.used(views, current))
        _, text = pool_reasons.state_of(views, place)
        generation = pools.newest(views.inventory.slices_of(place))[0].generation
        if current[0].generation < generation:
            text = f"pool {'/'.join(place)} has generation {generation}, which is not for this node"
            olds = [one for one in views.old_pools(place, quirks) if name in one.nodes]
            children = tuple(
                pool_reasons.not_noticed(one, pool_reasons.used(views, one.pool.slices))
                for one in olds
            )
        yield Reason(text=text, children=children, count=sum(len(one.devices) for one in slices))
    if (rest := len(by_pool) - POOLS_MAX) > 0:
        yield Reason(text=counts.of(rest, "more pool"), count=rest)
    yield from shared[:POOLS_MAX]
    if (rest := len(shared) - POOLS_MAX) > 0:
        yield Reason(text=f"{counts.of(rest, 'more pool')} of several nodes", count=rest)


def _shared(views: LiveViews, name: str) -> Iterator[Reason]:
    """The devices for the node in slices that are not for it alone, by pool."""
    tree = views.objects.get(ObjectKey(*api_resources.NODES, "", name))
    if tree is None:
        return
    node = node_of(tree)
    by_pool: dict[PoolId, list[bool]] = {}
    for place in views.inventory.pool_ids():
        for one in pools.newest(views.inventory.slices_of(place)):
            if not one.node.name:
                choices = [device.node if one.per_device else one.node for device in one.devices]
                by_pool.setdefault(place, []).extend(_includes(each, node) for each in choices)
    for place, included in by_pool.items():
        if count := sum(included):
            text = f"{count} of {counts.of(len(included), 'device')} of pool {'/'.join(place)} "
            yield Reason(text=f"{text}{counts.verb(count, 'is')} for it", count=count)


def _includes(choice: NodeChoice, node: Node) -> bool:
    try:
        return choice.is_set and choice.matches(node)
    except NodeSelectionError:
        return False


def _pods(views: LiveViews, name: str) -> Reason:
    bound = [
        key
        for key in views.objects.keys(*api_resources.PODS)
        if core.node_name(views.objects.get(key) or {}) == name
    ]
    finished = sum(core.is_finished(views.objects.get(key) or {}) for key in bound)
    names = [f"{key.namespace}/{key.name}" for key in bound]
    if not names:
        return Reason(text="no pod is on it", denies=("pods",))
    text = f"{'1 pod is' if len(names) == 1 else f'{len(names)} pods are'} on it"
    text += f", {finished} of them finished" if finished else ""
    return Reason(text=f"{text}: {listed(names, len(names))}", count=len(names))
