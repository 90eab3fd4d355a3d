"""Former states on which a waiting pod depends: node labels, device amounts, class names.

A refusal names what the pod lacks now. If something was lost within the history, the event that
removed it is about another object than the pod.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from app.analysis.explain import circumstances, lives, sources, waits
from app.analysis.explain.nearby import drivers as drivers_nearby
from app.analysis.explain.nearby import nodes as nodes_nearby
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.controllers import pods
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Slice
from app.domain.devices.nodes import Node, NodeSelectionError, node_of
from app.domain.devices.pools import newest
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.log.event import KeyFilter
from app.domain.values import api_resources, identifiers, quantity
from app.domain.values.fields import core, dra, meta, paths
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import Quantity, QuantityError
from app.domain.values.texts import notation
from app.service.explaining.evidence import ExplainedMoment

CAPACITY = "capacity "
COUNTER = "counter "
"""Prefixes of causes about an amount that a slice publishes."""

_NODE_WORKLOADS = frozenset(("DaemonSet", "Node"))
"""The controllers of pods that run once on each node: DaemonSets, and nodes for static pods."""

_value = paths.get("value")


async def reasons(
    evidence: ExplainedMoment, pod: JsonObject, nodes: Sequence[NodeReason]
) -> list[Reason]:
    """The changes of other objects that removed what the pod lacks according to the nodes."""
    return [
        *await _relabelled(evidence, circumstances.for_no_node(evidence.views, nodes)),
        *await _left(evidence, circumstances.without_devices(nodes)),
        *await unchosen(evidence, pod, circumstances.unmatched(nodes)),
        *await _withdrawn(evidence, pod, nodes),
        *await _shrunk(evidence, nodes),
    ]


def loss(events: Sequence[Event], had: Callable[[JsonView], bool]) -> tuple[Event, Event] | None:
    """The last state that had something and the event that removed it; events are newest first.

    None while the object still has it, or when no known state had it.
    """

    def has(event: Event) -> bool:
        return event.type is not EventType.OBJECT_DELETED and had(event.object)

    if not events or has(events[0]):
        return None
    return next(((before, after) for after, before in pairwise(events) if has(before)), None)


async def _left(evidence: ExplainedMoment, names: Sequence[str]) -> list[Reason]:
    """The nodes that see no device and matched the selectors of slices that are for others now."""
    if not names:
        return []
    known = nodes_nearby.all_nodes(evidence.views)
    chosen = {
        repr(one.node.tree): one
        for one in nodes_nearby.selecting(evidence.views)
        if nodes_nearby.is_for_any(one, known)
    }
    keys = [
        ObjectKey(*api_resources.NODES, "", name)
        for name in names[: evidence.bounds.cause_nodes_max]
    ]
    reasons = await _relabelled(evidence, [*chosen.values()], keys) if chosen else []
    return sorted(reasons, key=lambda one: -one.revision)[:NAMES_MAX]


async def _relabelled(
    evidence: ExplainedMoment, slices: Sequence[Slice], nodes: Sequence[ObjectKey] | None = None
) -> list[Reason]:
    """The nodes that matched the selectors of slices, and the changes since which they do not.

    Only `nodes` are looked at; None: any.
    """
    reasons: list[Reason] = []
    for one in slices[:NAMES_MAX]:
        keys = (
            await changed(evidence, api_resources.NODES, one.node.name) if nodes is None else nodes
        )
        for key in keys:
            lost = loss(await evidence.changes(key), partial(_is_for, one))
            if lost is None or not evidence.sight.sees(lost[1]):
                continue
            before, after = lost
            if after.type is EventType.OBJECT_DELETED:
                text = f"node {key.name}, which slice {one.name} is for, was deleted"
            else:
                names = waits.label_names(one.node.tree or {})
                labels = ", ".join(_labels_lost(names, before.object, after.object))
                text = f"slice {one.name} was for node {key.name}, which had {labels}"
            reasons.append(kept(after, text))
    return reasons


async def unchosen(
    evidence: ExplainedMoment, pod: JsonObject, names: Sequence[str]
) -> list[Reason]:
    """The nodes among `names` that had the labels a pod wants, until a write changed them."""
    spec = pod_spec.read(pod)
    return await unlabelled(evidence, names, partial(is_chosen, spec), label_names(spec))


def label_names(spec: PodSpec) -> list[str]:
    """The labels by which a pod's node selector and node affinity choose nodes."""
    terms = () if spec.node_affinity is None else spec.node_affinity.terms
    return [*dict(spec.node_selector), *(one.key for term in terms for one in term.labels)]


async def unlabelled(
    evidence: ExplainedMoment,
    names: Sequence[str],
    had: Callable[[JsonView], bool],
    wanted: Sequence[str],
) -> list[Reason]:
    """The writes since which nodes among `names` are not chosen by their labels `wanted` any more.

    `had` says whether a state of a node is chosen.
    """
    reasons: list[Reason] = []
    for name in names[: evidence.bounds.cause_nodes_max]:
        key = ObjectKey(*api_resources.NODES, "", name)
        lost = loss(await evidence.changes(key), had)
        present = evidence.views.objects.get(key)
        if lost is None or present is None or not evidence.sight.sees(lost[1]):
            continue
        before, after = lost
        labels = ", ".join(_labels_lost(dict.fromkeys(wanted), before.object, present))
        text = f"node {name} had {labels}"
        if after.type is EventType.OBJECT_DELETED:
            text += "; it was deleted and made anew"
        if labels:
            reasons.append(kept(after, text))
    return sorted(reasons, key=lambda one: -one.revision)[:NAMES_MAX]


def is_chosen(pod: PodSpec, node: JsonView) -> bool:
    """Whether the labels of a node are such as a pod's node selector and node affinity want."""
    labels, affinity = meta.labels(node), pod.node_affinity
    return all(labels.get(key) == value for key, value in pod.node_selector) and (
        affinity is None or affinity.matches(meta.name(node), labels)
    )


def _is_for(one: Slice, tree: JsonView) -> bool:
    try:
        return one.node.matches(node_of(tree))
    except NodeSelectionError:
        return False


def _labels_lost(names: Iterable[str], before: JsonView, after: JsonView) -> Iterator[str]:
    """The changes of the labels of a node that a selector names."""
    old, new = meta.labels(before), meta.labels(after)
    for name in names:
        if old.get(name) == new.get(name):
            continue
        if name not in old:
            yield f"no label {name} until it was given {new[name]}"
        elif name in new:
            yield f"{name}={old[name]} until that became {new[name]}"
        else:
            yield f"{name}={old[name]} until that was taken away"


async def _withdrawn(
    evidence: ExplainedMoment, pod: JsonObject, nodes: Sequence[NodeReason]
) -> list[Reason]:
    """Deleted slices of nodes that see no device, of pools that lack slices, or of lost drivers."""
    names = circumstances.without_devices(nodes)
    lacking = {pool for one in nodes if one.explained for pool, _ in one.explained.pools}
    excluding = any(circumstances.excluded(nodes, CauseKind.SELECTOR))
    lost = drivers_nearby.missing(evidence.views, pod) if excluding else set[str]()
    if not names and not lacking and not lost:
        return []
    inventory, objects = evidence.views.inventory, evidence.views.objects
    trees = [objects.get(ObjectKey(*api_resources.NODES, "", name)) for name in names]
    empty_nodes = [node_of(tree) for tree in trees if tree is not None]
    withdrawn: list[tuple[Slice, Sequence[Event]]] = []
    names = names[: evidence.bounds.cause_nodes_max]
    for key in await gone_of_kind(evidence, api_resources.RESOURCE_SLICES, names):
        events = await evidence.changes(key)
        if not events or events[0].type is not EventType.OBJECT_DELETED:
            continue
        deletion = events[0]
        tree = (events[1] if len(events) > 1 else deletion).object
        for one in Inventory.of_slices([tree]).slices():
            current = newest(inventory.slices_of(one.pool))
            pool = inventory.pool(one.pool)
            is_missed = (
                "/".join(one.pool) in lacking
                or one.pool[0] in lost
                or (pool is None and any(_is_seen_by(one, node) for node in empty_nodes))
            )
            is_replaced = bool(current) and current[0].generation > one.generation
            if is_missed and not is_replaced and evidence.sight.sees(deletion):
                withdrawn.append((one, events))
    withdrawn.sort(key=lambda each: -each[1][0].revision)
    # Only for the slices that are shown: the details need reads of the log and of every pod.
    return [await _withdrawal(evidence, one, events) for one, events in withdrawn[:NAMES_MAX]]


async def _withdrawal(evidence: ExplainedMoment, one: Slice, events: Sequence[Event]) -> Reason:
    """The deletion of a slice, with what happened to its node; its events are newest first."""
    deletion, born = events[0], sources.creation(events)
    text = f"slice {one.name} of pool {'/'.join(one.pool)}, for "
    text += f"{circumstances.where_of(one)}, was deleted"
    below = await ended_before(evidence, deletion.revision, one.node.name)
    since = Revision(0) if born is None else born.revision
    below += await _registered_anew(evidence, one.node.name, since)
    below += _failing_pods(evidence, one.node.name)
    return replace(kept(deletion, text), children=tuple(below))


def _is_seen_by(one: Slice, node: Node) -> bool:
    try:
        return bool(one.devices) and one.node.matches(node)
    except NodeSelectionError:
        return False


async def of_drivers(evidence: ExplainedMoment, revision: Revision, node: str) -> list[Reason]:
    """The pods on a node that may be drivers: deleted shortly before a revision, or failing."""
    return [*await ended_before(evidence, revision, node), *_failing_pods(evidence, node)]


async def ended_before(evidence: ExplainedMoment, revision: Revision, node: str) -> list[Reason]:
    """The pods of a node that were deleted shortly before a revision; empty without a node."""
    if not node:
        return []
    return [
        sources.made(
            event,
            f"before that, pod {event.key.namespace}/{event.key.name} was deleted{_unsaid(event)}",
        )
        for event in await evidence.before(revision, evidence.bounds.cause_pods_events_max)
        if event.type is EventType.OBJECT_DELETED
        and (event.key.group, event.key.resource) == api_resources.PODS
        and core.node_name(event.object) == node
        and evidence.sight.sees(event)
    ][-NAMES_MAX:]


def _unsaid(deletion: Event) -> str:
    """The words about a pod on a node whose kubelet had no time to end it.

    Nothing shows then whether its containers run on, or have given their devices back.
    """
    is_confirmed = deletion.stamp.actor.user.startswith(sources.USERS_OF_NODES)
    is_running = core.has_node(deletion.object) and not core.is_finished(deletion.object)
    is_known = deletion.stamp.origin is None or not deletion.stamp.origin.losses
    is_forced = is_known and is_running and not is_confirmed
    return " before its kubelet confirmed its end" if is_forced else ""


async def _registered_anew(evidence: ExplainedMoment, node: str, since: Revision) -> list[Reason]:
    """The recreation of a node that was deleted after a revision; empty if it was not deleted."""
    if not node:
        return []
    events = await evidence.changes(ObjectKey(*api_resources.NODES, "", node))
    made = sources.creation(events)
    if made is None or not any(
        event.type is EventType.OBJECT_DELETED and since < event.revision < made.revision
        for event in events
    ):
        return []
    return (
        [kept(made, f"node {node} was deleted and made anew")] if evidence.sight.sees(made) else []
    )


def _failing_pods(evidence: ExplainedMoment, node: str) -> list[Reason]:
    """The pods without claims on a node whose containers fail: one may be the driver of devices.

    A driver runs once on each node, so only DaemonSet pods, static pods and single pods count.
    """
    reasons: list[Reason] = []
    objects = evidence.views.objects
    for key in objects.keys(*api_resources.PODS) if node else ():
        event = objects.event(key)
        if event is None or core.node_name(event.object) != node:
            continue
        maker = meta.controller(event.object)
        if maker is not None and maker.kind not in _NODE_WORKLOADS:
            continue
        waits = [*lives.container_waits(event.object)]
        if waits and not pods.facts(event.object).entries and evidence.sight.sees(event):
            text = f"pod {key.namespace}/{key.name} on that node fails: {waits[0]}"
            reasons.append(Reason(text=text, revision=event.revision, about=key, is_kept=True))
            if len(reasons) == NAMES_MAX:
                break
    return reasons


async def _shrunk(evidence: ExplainedMoment, nodes: Sequence[NodeReason]) -> list[Reason]:
    """The capacities and counters that were larger before a slice was written again."""
    lacking: dict[tuple[str, str], str] = {}
    for group in circumstances.excluded(nodes, CauseKind.CAPACITY, CauseKind.COUNTERS):
        cause = group.reason.cause
        for device in group.devices[:NAMES_MAX] if cause is not None else ():
            if cause is not None and len(lacking) < NAMES_MAX:
                subject = device.rpartition("/")[0] if cause.kind is CauseKind.COUNTERS else device
                lacking[(subject, cause.about)] = device
    reasons: list[Reason] = []
    for (_, about), device in lacking.items():
        reasons += await _smaller(evidence, device, about)
    return reasons


async def _smaller(evidence: ExplainedMoment, device: str, about: str) -> list[Reason]:
    *_, name = identity = identifiers.parse_device(device)
    for one in newest(evidence.views.inventory.slices_of(identity[:2])):
        now = _published(one.tree, name, about)
        if now is None:
            continue
        key = ObjectKey(*api_resources.RESOURCE_SLICES, "", one.name)
        lost = loss(await evidence.changes(key), partial(_is_more, name, about, now))
        if lost is None or not evidence.sight.sees(lost[1]):
            return []
        old, new = (_published(event.object, name, about) for event in lost)
        what = f"{about} of {name}" if about.startswith(CAPACITY) else about
        texts = [str(old), "none"]
        if old is not None and new is not None:
            texts = notation.alike([old.nanos, new.nanos], old.format)
        text = f"slice {one.name} had {texts[0]} for {what} until it was written with {texts[1]}"
        return [kept(lost[1], text)]
    return []


def _is_more(device: str, about: str, now: Quantity, tree: JsonView) -> bool:
    amount = _published(tree, device, about)
    return amount is not None and amount.nanos > now.nanos


def _published(tree: JsonView, device: str, about: str) -> Quantity | None:
    """The amount that a slice publishes for the subject of a cause; None when it has none.

    Causes are about `capacity NAME` of the device or `counter NAME of set SET` of its pool.
    """
    if about.startswith(CAPACITY):
        amount = about.removeprefix(CAPACITY)
        holders = [each for each in dra.devices(tree) if each.get("name") == device]
        amounts = [dra.capacity(each).get(amount) for each in holders]
    else:
        amount, _, name = about.removeprefix(COUNTER).partition(" of set ")
        sets = [each for each in dra.shared_counters(tree) if each.get("name") == name]
        amounts = [dra.counters(each).get(amount) for each in sets]
    try:
        return next((quantity.from_json(_value(each or {})) for each in amounts), None)
    except QuantityError:
        return None


async def changed(
    evidence: ExplainedMoment, kind: tuple[str, str], name: str = ""
) -> list[ObjectKey]:
    """The changed objects of a kind, last changes first, then the deleted ones.

    Returns at most `places_max` of them; only those with the given `name`, unless it is empty.
    """
    bounds = evidence.bounds
    gone: list[ObjectKey] = []
    changed: list[tuple[int, ObjectKey]] = []
    for key in await _known(evidence, kind, name):
        event = evidence.views.objects.event(key)
        if event is None:
            gone.append(key)
        elif event.type is not EventType.OBJECT_CREATED:
            changed.append((event.revision, key))
    newest_first = [key for _, key in sorted(changed, reverse=True)]
    return [*newest_first, *gone][: bounds.places_max]


async def gone_of_kind(
    evidence: ExplainedMoment, kind: tuple[str, str], nodes: Sequence[str]
) -> list[ObjectKey]:
    """The deleted objects of a kind; first those whose names contain one of the nodes.

    Returns at most `places_max` of them.
    """
    known = [key for key in await _known(evidence, kind) if not evidence.views.objects.event(key)]
    known.sort(key=lambda key: not any(name in key.name for name in nodes))
    return known[: evidence.bounds.places_max]


async def _known(
    evidence: ExplainedMoment, kind: tuple[str, str], name: str = ""
) -> list[ObjectKey]:
    """The keys of a kind that the reader may see, up to a bound; with one `name` unless empty."""
    known = await evidence.log.keys(
        evidence.info.id,
        KeyFilter(*kind, name=name),
        until=evidence.views.revision,
        limit=evidence.bounds.names_max,
    )
    return list(filter(evidence.sight.sees_key, known))


def kept(event: Event, text: str) -> Reason:
    """A reason with its event, which pages always show."""
    change = sources.made(event, text)
    return Reason(text=change.text, revision=change.revision, about=change.about, is_kept=True)
