"""Nodes that take no further pod, nodes without devices, and the nodes that devices are for."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from app.analysis.explain import lives, sources, waits
from app.analysis.explain.nearby import origins
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed, only_node
from app.analysis.views import LiveViews
from app.domain.controllers import daemon_nodes
from app.domain.devices import patches
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.devices.model import Slice
from app.domain.devices.nodes import Node, NodeChoice, NodeSelectionError
from app.domain.devices.pools import PoolState, newest
from app.domain.log import ObjectKey
from app.domain.objects.kinds import pod_resources
from app.domain.values import api_resources, counts, quantity
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.quantity import Quantity, QuantityError
from app.domain.values.texts import notation

SLICES_MAX = 20
"""The number of slices for nodes that do not exist whose devices are examined."""

TOO_MANY = "Too many pods"
"""The scheduler's words for a node that takes no further pod."""


def full(views: LiveViews, names: Sequence[str]) -> Iterator[Reason]:
    """The number of pods that each of these full nodes allows, and has."""
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
        text = f"node {name} takes {most} {'pod' if most == '1' else 'pods'} at a time"
        has = counts.of(used.get(name, 0), "pod")
        yield Reason(text=f"{text} and has {has}", about=key, is_kept=True)


def short(
    views: LiveViews, pod: JsonObject, lacking: Mapping[str, Sequence[str]]
) -> Iterator[Reason]:
    """The amount of a resource that each node has, the pods that request it, and the pod's request.

    `lacking` are nodes with the resources that each of them has too little of. Nodes that offer
    nothing of a resource are named together.
    """
    without: dict[str, list[str]] = {}
    having: dict[str, list[tuple[str, Quantity]]] = {}
    for name, resources in lacking.items():
        node = views.objects.get(ObjectKey(*api_resources.NODES, "", name)) or {}
        for resource in resources:
            try:
                amount = quantity.from_json(core.allocatable(node).get(resource, "0"))
            except QuantityError:
                continue
            if not amount.nanos:
                without.setdefault(resource, []).append(name)
            elif name in having or len(having) < NAMES_MAX:
                having.setdefault(name, []).append((resource, amount))
    users = _requesting(views, having)
    wanted = pod_resources.effective(meta.spec(pod), "requests")
    for name, amounts in having.items():
        for resource, amount in amounts:
            own = wanted.get(resource, quantity.ZERO), origins.of_request(pod, resource)
            yield _used(name, resource, amount, users[name], own)
    for resource, names in without.items():
        noun, offer = counts.plural(len(names), "node"), counts.verb(len(names), "offers")
        text = f"{noun} {listed(sorted(names), len(names))} {offer} no {resource}"
        requested = f"{wanted.get(resource, quantity.ZERO)}{origins.of_request(pod, resource)}"
        yield Reason(
            text=f"{text}; this pod requests {requested}",
            count=len(names),
            about=only_node(names),
            is_kept=True,
        )


_Users: TypeAlias = dict[str, list[tuple[int, str]]]
"""The pods that request a resource, with the nanos that each requests."""


def _requesting(views: LiveViews, nodes: Container[str]) -> dict[str, _Users]:
    """The pods that request each resource of these nodes, by node."""
    users: dict[str, _Users] = defaultdict(lambda: defaultdict(list))
    for key in views.objects.keys(*api_resources.PODS) if nodes else ():
        tree = views.objects.get(key) or {}
        name = core.node_name(tree)
        if name in nodes and not core.is_finished(tree):
            for resource, amount in pod_resources.effective(meta.spec(tree), "requests").items():
                if amount.nanos:
                    users[name][resource].append((amount.nanos, f"{key.namespace}/{key.name}"))
    return users


def _used(
    name: str, resource: str, has: Quantity, users: _Users, wanted: tuple[Quantity, str]
) -> Reason:
    """The amount of a resource that a node has, and the pods that request the most of it.

    `wanted` is the request of the pod that waits, and what in it is not of its containers.
    """
    used = sorted(users.get(resource, ()), reverse=True)
    amount, origin = wanted
    shown = used[:NAMES_MAX]
    parts = [sum(nanos for nanos, _ in used), amount.nanos, *(nanos for nanos, _ in shown)]
    offered, total, requested, *each = notation.alike([has.nanos, *parts], has.format)
    children = tuple(
        Reason(
            text=f"pod {user} requests {of_user}",
            about=ObjectKey(*api_resources.PODS, *user.split("/")),
        )
        for (_, user), of_user in zip(shown, each, strict=True)
    )
    text = f"node {name} has {offered} {resource}"
    if used:
        text += f", of which its {counts.plural(len(used), 'pod')} "
        text += f"request{'s' if len(used) == 1 else ''} {total}"
    text += f"; this pod requests {requested}{origin}"
    key = ObjectKey(*api_resources.NODES, "", name)
    return Reason(text=text, about=key, children=children, is_kept=True)


def without_driver(views: LiveViews, names: Sequence[str]) -> Iterator[Reason]:
    """The nodes among those without devices that have no slice, unlike others with such labels.

    Nodes of another make are left out: they lack a label that all nodes with slices have, or have
    one whose key none of those has. Where most nodes lack slices, nothing is returned.
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
    # A label with the node's own name, such as its host name, does not describe its hardware.
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
        text += f"{counts.verb(len(lacking), 'has')} no slice of any driver, unlike "
        left_out = tuple(_left_out(views, lacking, served))
        yield Reason(
            text=f"{text}{counts.of(others, 'other node')}", children=left_out, is_kept=True
        )


def _left_out(views: LiveViews, lacking: Sequence[str], served: Iterable[str]) -> Iterator[Reason]:
    """The DaemonSets with pods on all nodes with slices whose pods fail or lack on these nodes."""
    nodes: dict[str, dict[str, ObjectKey]] = {}
    for key in views.objects.keys(*api_resources.PODS):
        pod = views.objects.get(key) or {}
        owner = meta.controller(pod)
        if owner is not None and owner.kind == "DaemonSet" and core.node_name(pod):
            nodes.setdefault(owner.uid, {})[core.node_name(pod)] = key
    for key in views.objects.keys(*api_resources.DAEMON_SETS):
        tree = views.objects.get(key) or {}
        having = nodes.get(meta.uid(tree), {})
        if not having or not having.keys() >= set(served):
            continue
        text = f"DaemonSet {key.namespace}/{key.name} has a pod on each node with slices "
        for name in [name for name in lacking if name not in having][:NAMES_MAX]:
            node = views.objects.get(ObjectKey(*api_resources.NODES, "", name)) or {}
            if cause := daemon_nodes.refusal(core.template(tree), node):
                yield Reason(
                    text=f"{text}and wants none on {name}: {cause}",
                    about=key,
                    is_kept=True,
                    rests_on=(key,),
                )
        for name in [name for name in lacking if name in having][:NAMES_MAX]:
            own = having[name]
            if waiting := [*lives.container_waits(views.objects.get(own) or {})]:
                yield Reason(
                    text=f"{text}and on {name}, where {own.name} fails: {waiting[0]}",
                    about=own,
                    is_kept=True,
                    rests_on=(key, own),
                )


def failing(views: LiveViews) -> Iterator[Reason]:
    """The pods of DaemonSets whose containers fail, one of which may be the driver's."""
    count = 0
    for key in views.objects.keys(*api_resources.PODS):
        pod = views.objects.get(key) or {}
        owner = meta.controller(pod)
        if owner is None or owner.kind != "DaemonSet" or not core.node_name(pod):
            continue
        if waiting := [*lives.container_waits(pod)]:
            text = f"pod {key.namespace}/{key.name} of DaemonSet {owner.name} on node "
            text += f"{core.node_name(pod)} fails: {waiting[0]}"
            yield Reason(text=text, about=key, is_kept=True, rests_on=(key,))
            count += 1
        if count == NAMES_MAX:
            return


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
            if one in current or not one.devices or not is_for_any(one, nodes):
                continue
            count += 1
            if count > NAMES_MAX:
                return
            key = ObjectKey(*api_resources.RESOURCE_SLICES, "", one.name)
            text = f"slice {one.name} of generation {one.generation} with "
            text += f"{counts.of(len(one.devices), 'device')} is passed over, because pool "
            text += f"{'/'.join(place)} has generation {pool.generation} "
            yield Reason(
                text=f"{text}({counts.plural(len(newer), 'slice')} {listed(newer, len(newer))})",
                revision=sources.revision_of(views.objects, key),
                about=key,
                is_kept=True,
            )


def for_others(views: LiveViews, names: Sequence[str]) -> Iterator[Reason]:
    """The nodes that published devices are for which these nodes do not see.

    A device that is for one of these nodes, and is not seen for another reason, is left out.
    """
    if not names:
        return
    known = all_nodes(views)
    blind = [node for node in known if node.name in set(names)]
    left = 0
    for place in views.inventory.pool_ids():
        groups: dict[str, list[str]] = {}
        for one in newest(views.inventory.slices_of(place)):
            if not one.per_device and not is_for_any(one, known):
                continue  # said of the slice
            for device in one.devices:
                choice = device.node if one.per_device else one.node
                if any(_is_chosen([choice], node) for node in blind):
                    continue  # said of its pool
                groups.setdefault(nodes_text(choice, known), []).append(device.id[2])
        if not groups:
            continue
        left += 1
        if left > NAMES_MAX:
            continue
        parts = [f"{listed(sorted(of), len(of))} for {where}" for where, of in groups.items()]
        count = sum(map(len, groups.values()))
        text = f"{counts.of(count, 'device')} of pool {'/'.join(place)} {counts.verb(count, 'is')} "
        shown = "; ".join(parts[:NAMES_MAX])
        rest = len(parts) - NAMES_MAX
        more = f"; {counts.of(rest, 'more choice')}" if rest > 0 else ""
        yield Reason(text=f"{text}for other nodes: {shown}{more}", count=count, is_kept=True)
    if left > NAMES_MAX:
        text = f"the devices of {counts.of(left - NAMES_MAX, 'more pool')} are for other nodes"
        yield Reason(text=text, count=left - NAMES_MAX)


def of_class_elsewhere(
    views: LiveViews, compiler: SelectorCompiler, names: Iterable[str]
) -> Iterator[Reason]:
    """The slices for nodes that do not exist with devices of these classes, which no node has."""
    known = all_nodes(views)
    lost = [
        one
        for place in views.inventory.pool_ids()
        for one in newest(views.inventory.slices_of(place))
        if one.devices and one.node.is_set and not is_for_any(one, known)
    ][:SLICES_MAX]
    for name in names if lost else ():
        tree = views.objects.get(ObjectKey(*api_resources.DEVICE_CLASSES, "", name)) or {}
        chosen = patches.class_filter_of(tree, compiler)
        for one in lost if not chosen.problem else ():
            selected = list(one.devices)
            for selector in chosen.selectors:
                verdicts = selector.judge(selected)
                pairs = zip(selected, verdicts, strict=True)
                selected = [device for device, verdict in pairs if verdict.match]
            if selected:
                text = (
                    f"slice {one.name} has {counts.of(len(selected), 'device')} of class {name}, "
                )
                yield Reason(
                    text=f"{text}for {nodes_text(one.node, known)}",
                    count=len(selected),
                    about=ObjectKey(*api_resources.RESOURCE_SLICES, "", one.name),
                    is_kept=True,
                )


def all_nodes(views: LiveViews) -> list[Node]:
    """The nodes that exist, with their labels."""
    return [
        Node(name=key.name, labels=meta.labels(views.objects.get(key) or {}))
        for key in views.objects.keys(*api_resources.NODES)
    ]


def selecting(views: LiveViews) -> Iterator[Slice]:
    """The newest slices with devices that select their nodes by labels."""
    for place in views.inventory.pool_ids():
        for one in newest(views.inventory.slices_of(place)):
            if one.devices and one.node.tree is not None:
                yield one


def left_behind(views: LiveViews, drivers: Container[str]) -> list[Slice]:
    """The newest slices of drivers, with free devices, for single nodes that do not exist."""
    return [
        one
        for place in views.inventory.pool_ids()
        if place[0] in drivers
        for one in newest(views.inventory.slices_of(place))
        if one.node.name
        and views.objects.get(ObjectKey(*api_resources.NODES, "", one.node.name)) is None
        and not all(views.allocated.is_allocated(device.id) for device in one.devices)
    ]


def out_of_reach(slices: Sequence[Slice]) -> Iterator[Reason]:
    """The reason that no pod gets the devices of slices, because their nodes do not exist."""
    for one in slices[:NAMES_MAX]:
        text = f"slice {one.name} has free devices for node {one.node.name}, which is not there"
        key = ObjectKey(*api_resources.RESOURCE_SLICES, "", one.name)
        yield Reason(text=text, about=key, is_kept=True)
    if (more := len(slices) - NAMES_MAX) > 0:
        text = f"{counts.of(more, 'more slice')} {counts.verb(more, 'has')} free devices for "
        yield Reason(text=f"{text}nodes that are not there", count=more)


def of_missing_nodes(views: LiveViews, drivers: Container[str]) -> Iterator[Reason]:
    """The free devices of drivers that are for no node that exists, though others of a slice are.

    Only slices that choose the nodes of each device by itself have such.
    """
    known = all_nodes(views)
    groups: dict[tuple[str, str], list[str]] = {}
    for place in views.inventory.pool_ids():
        for one in newest(views.inventory.slices_of(place)) if place[0] in drivers else ():
            for device in one.devices if one.per_device else ():
                is_lost = device.node.is_set and not any(
                    _is_chosen([device.node], node) for node in known
                )
                if is_lost and not views.allocated.is_allocated(device.id):
                    where = nodes_text(device.node, known)
                    groups.setdefault((one.name, where), []).append(device.id[2])
    for (name, where), devices in [*groups.items()][:NAMES_MAX]:
        noun = counts.plural(len(devices), "device")
        yield Reason(
            text=f"slice {name} has free {noun} {listed(devices, len(devices))} for {where}",
            about=ObjectKey(*api_resources.RESOURCE_SLICES, "", name),
            count=len(devices),
            is_kept=True,
        )
    if (more := len(groups) - NAMES_MAX) > 0:
        text = f"{counts.of(more, 'more choice')} of nodes for free devices "
        yield Reason(text=f"{text}{counts.verb(more, 'fits')} no node", count=more)


DENIALS = (", which does not exist", ", and there is none")
"""The ends of `nodes_text` where no node is meant."""


def nodes_text(choice: NodeChoice, known: Sequence[Node]) -> str:
    """The nodes that a choice is for, as text: `node a`, `nodes with rack In r1 (a, b)`."""
    if choice.all_nodes:
        return "every node"
    if choice.name:
        is_there = any(node.name == choice.name for node in known)
        return f"node {choice.name}" + ("" if is_there else DENIALS[0])
    try:
        names = [node.name for node in known if choice.matches(node)]
    except NodeSelectionError as problem:
        return f"nodes that cannot be determined: {problem}"
    terms = [waits.term_text(term) for term in (choice.tree or {}).get("nodeSelectorTerms") or ()]
    if not terms:
        return "no node"
    text = f"nodes with {' or '.join(terms)}"
    return f"{text} ({listed(names, len(names))})" if names else f"{text}{DENIALS[1]}"


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


def is_for_any(one: Slice, nodes: Sequence[Node]) -> bool:
    """Whether a slice is for one of these nodes; not if its selector cannot be read."""
    choice = one.node
    if choice.all_nodes:
        return True
    try:
        return choice.is_set and any(map(choice.matches, nodes))
    except NodeSelectionError:
        return False
