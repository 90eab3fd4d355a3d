"""Objects that explain why nodes refuse a pod: why devices are not available.

A node says which device is excluded, and by what. The background is in other objects: an
administrator's patch that failed on the device, a holder that nobody uses, a toleration that was
meant for its taint, or the nodes for which devices were published that no node sees.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from app.analysis import scheduler_messages
from app.analysis.explain import lives, sources, stuck, waits
from app.analysis.explain.nearby import (
    affinities,
    dropped,
    extended,
    ports,
    publishers,
    selector_errors,
    updates,
)
from app.analysis.explain.nearby import drivers as drivers_nearby
from app.analysis.explain.nearby import holders as holders_nearby
from app.analysis.explain.nearby import labels as labels_nearby
from app.analysis.explain.nearby import names as names_nearby
from app.analysis.explain.nearby import nodes as nearby_nodes
from app.analysis.explain.nearby.holders import HOLDERS_MAX
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.explain.tallies import devices_text
from app.analysis.views import LiveViews
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.allocation.reasons.explanation import Alike
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling.framework import filters
from app.domain.devices.model import Slice
from app.domain.devices.pools import newest
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts, identifiers, well_known
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonObject, JsonView

POOLS_MAX = 20
"""The number of unusable pools whose slices are examined."""

NO_SLICES = "no ResourceSlice is published"

_HELD = frozenset((CauseKind.ALLOCATED, CauseKind.COUNTERS, CauseKind.CAPACITY))


def of(views: LiveViews, pod: JsonObject, nodes: Sequence[NodeReason]) -> tuple[Reason, ...]:
    """The reasons that other objects add to the refusals."""
    older = tuple(_of_older_generations(views, nodes))
    named = {reason.about for reason in older}
    renewed = nearby_nodes.renewed(views, without_devices(nodes))
    without_driver = (
        *_for_no_node(views, nodes),
        *nearby_nodes.for_others(views, _seeing_nothing(nodes)),
        *(reason for reason in renewed if reason.about not in named),
        *nearby_nodes.without_driver(views, without_devices(nodes)),
    )
    pods_named = {child.about for reason in without_driver for child in reason.children}
    return (
        *_passed_over(views, nodes),
        *dropped.fields(views, pod, _pools(nodes)),
        *useless_holders(views, _holders(views, nodes)),
        *older,
        *selector_errors.failing(views, nodes),
        *drivers_nearby.unpublished(views, pod),
        *_declared_counters(views, nodes),
        *extended.served_by(views, pod, nodes),
        *extended.offered_by_nodes(views, pod, nodes),
        *_of_one_name(views, nodes),
        *names_nearby.tolerations(views, pod, _tainting(nodes)),
        *updates.held(views, pod, _holders(views, nodes)),
        *holders_nearby.users(views, _holders(views, nodes)),
        *_shares(views, nodes),
        *nearby_nodes.of_missing_nodes(views, _held_drivers(nodes)),
        *without_driver,
        *publishers.silent(views, without_devices(nodes), pods_named),
        *nearby_nodes.full(views, _full(nodes)),
        *labels_nearby.unmatched(views, pod, unmatched(nodes)),
        *affinities.keeping_away(views, pod, {one.node: one.text for one in nodes}),
        *ports.in_use(views, pod, {one.node: one.text for one in nodes}),
        *nearby_nodes.short(views, pod, _short(nodes)),
    )


def beside(views: LiveViews, pod: JsonObject, nodes: Sequence[NodeReason]) -> Iterator[Reason]:
    """The users of devices that are short of an amount, and tolerations that nearly fit a taint."""
    amounts = _holders(views, nodes, CauseKind.COUNTERS, CauseKind.CAPACITY)
    yield from names_nearby.tolerations(views, pod, _tainting(nodes))
    yield from holders_nearby.users(views, amounts)


def excluded(nodes: Sequence[NodeReason], *kinds: CauseKind) -> Iterator[Alike]:
    """The devices that causes of these kinds exclude, in groups with the same reason."""
    for reason in nodes:
        for _, request in reason.requests():
            for group in request.alike:
                cause = group.reason.cause
                if cause is not None and cause.kind in kinds:
                    yield group


def _pools(nodes: Sequence[NodeReason]) -> Iterator[PoolId]:
    """A pool of each group of excluded devices."""
    return (identifiers.parse_device(one.devices[0])[:2] for one in excluded(nodes, *CauseKind))


def _passed_over(views: LiveViews, nodes: Sequence[NodeReason]) -> Iterator[Reason]:
    """The patches that failed on devices which selectors exclude."""
    problems: dict[tuple[str, str], dict[str, None]] = {}
    failing = {problem.device: problem for problem in views.inventory.patch_problems()}
    if not failing:
        return
    for group in excluded(nodes, CauseKind.SELECTOR, CauseKind.SELECTOR_ERROR):
        for name in group.devices:
            if (problem := failing.get(identifiers.parse_device(name))) is not None:
                problems.setdefault((problem.patch, problem.problem), {})[name] = None
    for (patch, text), passed in problems.items():
        names = list(passed)
        key = ObjectKey(*api_resources.RESOURCE_SLICE_PATCHES, "", patch)
        subject = f"patch {patch} changes nothing on {devices_text(len(names))}"
        yield Reason(
            text=f"{subject} ({listed(names, len(names))}): {text}",
            count=len(names),
            revision=sources.revision_of(views.objects, key),
            about=key,
            is_kept=True,
        )


def useless_holders(views: LiveViews, holders: Iterable[str]) -> Iterator[Reason]:
    """The holders (`NAMESPACE/CLAIM`) that keep devices from a pod although nobody uses them.

    Those whose pods do not start, fail or do not end are told, too.
    """
    groups: dict[str, list[ObjectKey]] = {}
    ending: dict[ObjectKey, Reason] = {}
    said = cache(lambda place: lives.warnings(views.objects.unusual_events(place)))
    for holder in list(holders)[:HOLDERS_MAX]:
        namespace, _, name = holder.rpartition("/")
        key = claim_key(namespace, name)
        tree = views.objects.get(key)
        way = "" if tree is None else stuck.cause(views, key, tree)
        if tree is not None and meta.is_deleting(tree):
            ending[key] = _ending(views, key, tree)
        elif tree is not None:
            ending.update(_kept_in_vain(views, key, tree, said))
        if way in (stuck.CONSUMER_GONE, stuck.CONSUMER_ENDED, stuck.UNPROTECTED):
            groups.setdefault(way, []).append(key)
    useless = {key for keys in groups.values() for key in keys}
    yield from [line for key, line in ending.items() if key not in useless][:NAMES_MAX]
    for way, keys in groups.items():
        shown = [f"{key.namespace}/{key.name}" for key in keys]
        text = f"{counts.plural(len(keys), 'claim')} {listed(shown, len(shown))} "
        text += f"{counts.verb(len(keys), 'holds')} devices that nobody uses: {way}"
        yield Reason(
            text=text,
            count=len(keys),
            revision=0 if len(keys) > 1 else sources.revision_of(views.objects, keys[0]),
            about=keys[0] if len(keys) == 1 else None,
            children=tuple(ending[key] for key in keys if key in ending)[:NAMES_MAX],
            is_kept=True,
        )


def _ending(views: LiveViews, key: ObjectKey, tree: JsonView) -> Reason:
    """The finalizers and consumers that keep a deleted claim, and its devices with it."""
    finalizers, users = meta.finalizers(tree), [each.name for each in dra.consumers(tree)]
    text = f"claim {key.namespace}/{key.name} was deleted and waits for "
    text += f"{counts.plural(len(finalizers), 'finalizer')} {listed(finalizers, len(finalizers))}"
    text += f"; it is reserved for {listed(users, len(users))}" if users else ""
    return Reason(
        text=text,
        revision=sources.revision_of(views.objects, key),
        about=key,
        children=tuple(
            stuck.foreign(key, each) for each in finalizers if each != well_known.CLAIM_PROTECTION
        ),
        is_kept=True,
    )


def _kept_in_vain(
    views: LiveViews,
    key: ObjectKey,
    tree: JsonView,
    said: Callable[[str], Mapping[str, lives.KubeletWarning]],
) -> Iterator[tuple[ObjectKey, Reason]]:
    """The pods that do not end or do not start, for which a claim keeps its devices.

    `said` gives what kubelets said about the pods of a namespace.
    """
    for consumer in dra.consumers(tree):
        pod_key = ObjectKey(*api_resources.PODS, key.namespace, consumer.name)
        event = views.objects.event(pod_key)
        if event is None or consumer.uid not in ("", meta.uid(event.object)):
            continue
        pod = event.object
        text = f"claim {key.namespace}/{key.name} is reserved for pod {key.namespace}/"
        if meta.is_deleting(pod):
            until = meta.known_deletion_timestamp(pod)
            text += f"{consumer.name}, which was deleted"
            text += f" and is to end by {until}" if until else ""
            children = [*lives.awaited(views, pod, core.node_name(pod))]
            children += _ending_namespace(views, key.namespace)
            warning = lives.warning_of_end(said(key.namespace), pod)
        elif waits := _fails(pod):
            text += f"{consumer.name}, which {waits}"
            children = []
            warning = lives.warning_about(said(key.namespace), pod)
        else:
            continue
        if warning is not None:
            report = lives.warning_reason(warning, pod)
            children.append(replace(report, rests_on=(warning.event.key,)))
        yield (
            pod_key,
            Reason(
                text=text,
                revision=event.revision,
                about=pod_key,
                children=tuple(children),
                is_kept=True,
                holds=meta.is_deleting if meta.is_deleting(pod) else None,
                since="; deletion was asked for",
            ),
        )


def _fails(pod: JsonView) -> str:
    """The waits of the containers of a pod that does not start or fails; empty for another."""
    if not (is_starting := lives.is_starting(pod)) and not lives.is_failing(pod):
        return ""
    waits = [*lives.container_waits(pod)]
    state = "has not started on its node" if is_starting else "fails on its node"
    return f"{state}: {listed(waits, len(waits))}" if waits else ""


def _ending_namespace(views: LiveViews, name: str) -> Iterator[Reason]:
    """The reason that the namespace is being deleted, which waits for all its objects."""
    key = ObjectKey(*api_resources.NAMESPACES, "", name)
    if meta.is_deleting(views.objects.get(key) or {}):
        text = f"namespace {name} is being deleted, which goes on until this pod has ended"
        yield Reason(text=text, about=key, holds=meta.is_deleting, is_kept=True, rests_on=(key,))


def _of_older_generations(views: LiveViews, nodes: Sequence[NodeReason]) -> Iterator[Reason]:
    """The slices of unusable pools that are ignored because newer slices exist.

    A driver that restarts its generation count, for example after a reboot, publishes such slices.
    """
    places = {
        place: None for reason in nodes if reason.explained for place, _ in reason.explained.pools
    }
    for text in list(places)[:POOLS_MAX]:
        pool = identifiers.parse_pool(text)
        everywhere = views.inventory.slices_of(pool)
        current = newest(everywhere)
        pool_now = views.inventory.pool(pool)
        if pool_now is None:
            continue
        state = f"pool {text} of generation {pool_now.generation} is {pool_now.state.value}"
        if pool_now.problem:
            state += f": {pool_now.problem}"
        older = [one for one in everywhere if one not in current]
        for one in older[:NAMES_MAX]:
            key = ObjectKey(*api_resources.RESOURCE_SLICES, "", one.name)
            names = [other.name for other in current]
            yield Reason(
                text=f"slice {one.name} of generation {one.generation} is passed over, because it "
                f"is older: {state} (slice {listed(names, len(names))})",
                revision=sources.revision_of(views.objects, key),
                about=key,
                is_kept=True,
            )


def _declared_counters(views: LiveViews, nodes: Sequence[NodeReason]) -> Iterator[Reason]:
    """The counter sets of pools, on these nodes, in which a device uses one that is not there."""
    unusable = dict(pair for one in nodes if one.explained for pair in one.explained.pools)
    yield from declared_counters(views, unusable).values()


def declared_counters(views: LiveViews, unusable: Mapping[str, str]) -> dict[str, Reason]:
    """The counter sets of each pool in which a device uses one that is not there.

    `unusable` has the problem of each pool.
    """
    reasons: dict[str, Reason] = {}
    lacking = [
        place
        for place, problem in unusable.items()
        if problem.endswith(" not found") and "counter set " in problem
    ]
    for place in lacking[:NAMES_MAX]:
        slices = newest(views.inventory.slices_of(identifiers.parse_pool(place)))
        names = [str(each.get("name")) for one in slices for each in dra.shared_counters(one.tree)]
        noun = counts.plural(len(names), "counter set")
        text = f"{unusable[place].removeprefix('invalid: ')}: pool {place} has "
        text += f"{noun} {listed(names, len(names))}" if names else "no counter set"
        reasons[place] = Reason(text=text, is_kept=True)
    return reasons


def _of_one_name(views: LiveViews, nodes: Sequence[NodeReason]) -> Iterator[Reason]:
    """The devices in use whose name is published by several slices of a pool."""
    seen: set[DeviceId] = set()
    groups: dict[tuple[str, ...], list[DeviceId]] = {}
    for group in excluded(nodes, CauseKind.ALLOCATED):
        if len(seen) >= HOLDERS_MAX:
            break
        for name in group.devices:
            device = identifiers.parse_device(name)
            if device in seen:
                continue
            seen.add(device)
            slices = tuple(
                f"slice {one.name} for {where_of(one)}"
                for one in newest(views.inventory.slices_of(device[:2]))
                if any(each.id == device for each in one.devices)
            )
            if len(slices) > 1:
                groups.setdefault(slices, []).append(device)
    for slices, devices in groups.items():
        names = ["/".join(device) for device in devices]
        text = f"{counts.plural(len(names), 'device')} {listed(names, len(names))} "
        text += f"{counts.verb(len(names), 'is')} published more than once, and a claim that "
        text += f"holds one of a name keeps all of that name: {listed(slices, len(slices))}"
        yield Reason(text=text, count=len(names), is_kept=True)


def where_of(one: Slice) -> str:
    """The nodes that a slice is for, as text."""
    choice = one.node
    if choice.name:
        return f"node {choice.name}"
    if choice.all_nodes:
        return "all nodes"
    terms = [waits.term_text(term) for term in (choice.tree or {}).get("nodeSelectorTerms") or ()]
    return f"nodes with {' or '.join(terms)}" if terms else "nodes of its devices"


def _tainting(nodes: Sequence[NodeReason]) -> set[str]:
    """The taints that exclude devices."""
    causes = [group.reason.cause for group in excluded(nodes, CauseKind.TAINT)]
    return {cause.about for cause in causes if cause is not None}


def _full(nodes: Sequence[NodeReason]) -> list[str]:
    """The nodes that take no further pod."""
    return [one.node for one in nodes if nearby_nodes.TOO_MANY in one.text.split(", ")]


def unmatched(nodes: Sequence[NodeReason]) -> list[str]:
    """The nodes whose labels the pod does not choose."""
    return [one.node for one in nodes if one.text in filters.AFFINITY.reasons]


def _short(nodes: Sequence[NodeReason]) -> dict[str, list[str]]:
    """The nodes with too little of a resource, each with all such resources."""
    lacking = {reason.node: scheduler_messages.lacking(reason.text) for reason in nodes}
    return {node: names for node, names in lacking.items() if names}


def _holders(views: LiveViews, nodes: Sequence[NodeReason], *kinds: CauseKind) -> dict[str, None]:
    """The claims that hold excluded devices, or devices that use the counters that these need."""
    names: dict[str, None] = {}
    counters: set[tuple[PoolId, str]] = set()
    for group in excluded(nodes, *(kinds or _HELD)):
        if len(names) >= HOLDERS_MAX:
            break
        # The reason names the holders, so all devices of the group have the same ones.
        device, cause = identifiers.parse_device(group.devices[0]), group.reason.cause
        names.update(dict.fromkeys(views.allocated.holders(device)))
        if cause is None or cause.kind is not CauseKind.COUNTERS:
            continue
        if (counter := (device[:2], cause.text)) not in counters:
            counters.add(counter)
            names.update(dict.fromkeys(holders_nearby.of_counters(views, *counter)))
    return names


def _shares(views: LiveViews, nodes: Sequence[NodeReason]) -> Iterator[Reason]:
    """The shares of devices with too little capacity left, of the first few devices."""
    lacking: dict[tuple[DeviceId, str], None] = {}
    for group in excluded(nodes, CauseKind.CAPACITY):
        if (cause := group.reason.cause) is not None:
            lacking[identifiers.parse_device(group.devices[0]), cause.about] = None
    for device, about in [*lacking][:NAMES_MAX]:
        yield from holders_nearby.shares(views, device, about)


def for_no_node(views: LiveViews, nodes: Sequence[NodeReason]) -> list[Slice]:
    """The slices for nodes that do not exist, where a node sees no device for a request.

    Where all devices are in use, those with a free device of the same driver.
    """
    if without_devices(nodes):
        return [one for one, _ in _nowhere_at_all(views)]
    return nearby_nodes.left_behind(views, _held_drivers(nodes))


def _held_drivers(nodes: Sequence[NodeReason]) -> set[str]:
    """The drivers of devices that are in use."""
    return {identifiers.parse_device(one.devices[0])[0] for one in excluded(nodes, *_HELD)}


def without_devices(nodes: Sequence[NodeReason]) -> list[str]:
    """The nodes that see no device for at least one request."""
    return [
        reason.node
        for reason in nodes
        if any(not request.devices for _, request in reason.requests())
    ]


def _seeing_nothing(nodes: Sequence[NodeReason]) -> list[str]:
    """The nodes that see no device, where no other node looked at one; slices for no node apart."""
    if any(request.devices for reason in nodes for _, request in reason.requests()):
        return []
    return without_devices(nodes)


def _nowhere_at_all(views: LiveViews) -> Iterator[tuple[Slice, str]]:
    """The newest slices with devices for nodes that do not exist, and text naming the nodes."""
    known = nearby_nodes.all_nodes(views)
    for place in views.inventory.pool_ids():
        for one in newest(views.inventory.slices_of(place)):
            if one.devices and one.node.is_set and not nearby_nodes.is_for_any(one, known):
                yield one, nearby_nodes.nodes_text(one.node, known)


def _for_no_node(views: LiveViews, nodes: Sequence[NodeReason]) -> Iterator[Reason]:
    if not without_devices(nodes):
        yield from nearby_nodes.out_of_reach(for_no_node(views, nodes))
        return
    if not views.inventory.pool_ids():
        yield Reason(text=NO_SLICES, children=tuple(nearby_nodes.failing(views)), is_kept=True)
        return
    groups: dict[str, list[str]] = {}
    choices: dict[str, JsonView] = {}
    for one, where in _nowhere_at_all(views):
        groups.setdefault(where, []).append(one.name)
        choices[where] = one.node.tree or {}
    known = nearby_nodes.all_nodes(views)
    for number, (where, slices) in enumerate(groups.items()):
        if number == NAMES_MAX:
            left = counts.of(len(groups) - NAMES_MAX, "more choice")
            yield Reason(text=f"no node fits {left} of nodes in slices")
            return
        key = ObjectKey(*api_resources.RESOURCE_SLICES, "", slices[0])
        is_one = len(slices) == 1
        text = f"{counts.plural(len(slices), 'slice')} {listed(slices, len(slices))} "
        yield Reason(
            text=text + f"{'is' if is_one else 'are'} for {where}",
            count=len(slices),
            revision=sources.revision_of(views.objects, key) if is_one else 0,
            about=key if is_one else None,
            children=tuple(names_nearby.labels(choices[where], known)),
            is_kept=True,
        )
