"""Nodes that take no further pod, and nodes for which no driver has published anything."""

from collections.abc import Iterable, Iterator, Sequence

from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.devices.model import Slice
from app.domain.devices.nodes import Node, NodeChoice, NodeSelectionError
from app.domain.devices.pools import PoolState, newest
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, meta

TOO_MANY = "Too many pods"
"""The scheduler's words for a node that takes no further pod."""


def full(views: LiveViews, names: Sequence[str]) -> Iterator[Reason]:
    """How many pods each of these full nodes takes, and has."""
    if not names:
        return
    used: dict[str, int] = {}
    for key in views.objects.keys(*api_resources.PODS):
        tree = views.objects.get(key) or {}
        if not core.is_finished(tree):
            used[core.node_name(tree)] = used.get(core.node_name(tree), 0) + 1
    for name in names[:NAMES_MAX]:
        key = ObjectKey(*api_resources.NODES, "", name)
        most = str(core.allocatable(views.objects.get(key) or {}).get("pods") or "0")
        text = f"node {name} takes {most} pods at a time"
        has = counts.of(used.get(name, 0), "pod")
        yield Reason(text=f"{text} and has {has}", about=key, is_kept=True)


def without_driver(views: LiveViews, names: Sequence[str]) -> Iterator[Reason]:
    """The nodes among those without devices that have no slice, unlike others with such labels.

    Nodes of another make are left out: they lack a label that all nodes with slices have, or have
    one whose key none of those has. Where most nodes lack slices, nothing is said.
    """
    if not names:
        return
    choices = [*_choices(views.inventory.slices())]
    named = {one.name for one in choices if one.name}
    known = {
        key.name: meta.labels(views.objects.get(key) or {})
        for key in views.objects.keys(*api_resources.NODES)
    }
    served = {name: labels for name, labels in known.items() if name in named}
    # A label with the node's own name, such as its host name, says nothing of its make.
    items = [
        {item for item in labels.items() if item[1] != name} for name, labels in served.items()
    ]
    shared = set.intersection(*items) if items else set()
    keys = {key for labels in served.values() for key in labels}
    # Equal selectors of many slices are matched once.
    others_by_text = {repr(one): one for one in choices if not one.name}
    lacking = [
        name
        for name in dict.fromkeys(names)
        if name not in named
        and keys.issuperset(known.get(name, {}))
        and shared.issubset(known.get(name, {}).items())
        and not _is_chosen(others_by_text.values(), Node(name=name, labels=known.get(name, {})))
    ]
    others = len(served)
    if lacking and len(lacking) <= others:
        text = f"{counts.plural(len(lacking), 'node')} {listed(lacking, len(lacking))} "
        text += f"{counts.plural(len(lacking), 'has')} no slice of any driver, unlike "
        yield Reason(text=f"{text}{counts.of(others, 'other node')}", is_kept=True)


def renewed(views: LiveViews, names: Sequence[str]) -> Iterator[Reason]:
    """Slices for nodes that see no device, passed over because their pool has newer slices.

    The driver of such a pool has published a newer generation without devices for the node.
    """
    trees = [(name, views.objects.get(ObjectKey(*api_resources.NODES, "", name))) for name in names]
    nodes = [Node(name=name, labels=meta.labels(tree or {})) for name, tree in trees]
    count = 0
    for place in views.inventory.pool_ids() if nodes else ():
        pool = views.inventory.pool(place)
        if pool is None or pool.state is not PoolState.USABLE:
            continue  # said of the pool
        everywhere = views.inventory.slices_of(place)
        current = newest(everywhere)
        newer = [one.name for one in current]
        for one in everywhere:
            if one in current or not one.devices or not _is_for_any(one, nodes):
                continue
            count += 1
            if count > NAMES_MAX:
                return
            key = ObjectKey(*api_resources.RESOURCE_SLICES, "", one.name)
            event = views.objects.event(key)
            text = f"slice {one.name} of generation {one.generation} with "
            text += f"{counts.of(len(one.devices), 'device')} is passed over, because pool "
            text += f"{'/'.join(place)} has generation {pool.generation} "
            yield Reason(
                text=f"{text}({counts.plural(len(newer), 'slice')} {listed(newer, len(newer))})",
                revision=0 if event is None else event.revision,
                about=key,
                is_kept=True,
            )


def _choices(slices: Iterable[Slice]) -> Iterator[NodeChoice]:
    """The choices of nodes of slices, or of their devices where each device has its own."""
    for one in slices:
        if one.per_device:
            yield from (device.node for device in one.devices)
        else:
            yield one.node


def _is_chosen(choices: Iterable[NodeChoice], node: Node) -> bool:
    """Whether a choice includes the node, or may do: one that cannot be read may mean any."""
    try:
        return any(one.matches(node) for one in choices)
    except NodeSelectionError:
        return True


def _is_for_any(one: Slice, nodes: Sequence[Node]) -> bool:
    try:
        return one.node.is_set and any(map(one.node.matches, nodes))
    except NodeSelectionError:
        return False
