"""Nodes that are closed to a pod, or gone, and the user who did it.

The message of the scheduler names neither the taint that is not tolerated, nor the label for want
of which the devices of a claim cannot be used there, nor a node that was deleted.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from app.analysis.explain import node_answers, sources, waits
from app.analysis.explain.nearby import nodes as nodes_nearby
from app.analysis.explain.nearby import taints_and_cordons, volumes
from app.analysis.explain.nearby.taints_and_cordons import Closing
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.pods import Steps, WantedHelp
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.explain.remedies import SpecChange, spec_changes
from app.analysis.findings.outgrown import SelectingRequest
from app.analysis.views import LiveViews
from app.domain.controllers import daemon_nodes, pods
from app.domain.controllers.eviction.taints import NO_EXECUTE
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling.framework import filters, pod_spec
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import ClaimsNotReady
from app.domain.controllers.scheduling.scheduling_cycle.cycle import NOT_AVAILABLE
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Slice
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, counts, json_tree, selectors
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import NodeSelector, SelectorError
from app.domain.values.timestamps import Instant
from app.service.explaining import former_circumstances, selections
from app.service.explaining.evidence import ExplainedMoment, drive

_CLOSED = frozenset((*filters.TAINTED.reasons, *filters.UNSCHEDULABLE.reasons))


async def reasons(
    evidence: ExplainedMoment, pod: JsonObject, nodes: Sequence[NodeReason]
) -> tuple[list[Reason], list[Reason]]:
    """The taints, cordons and lost labels that close nodes to the pod, with the write of each.

    The first list has those of nodes that would take the pod if they were open.
    """
    trees = {
        name: evidence.views.objects.get(ObjectKey(*api_resources.NODES, "", name)) or {}
        for name in (one.node for one in nodes if one.text in _CLOSED)
    }
    fitting = {one.node for one in nodes if one.opened is not None and not one.opened.text}
    closed = taints_and_cordons.of_pod(pod_spec.read(pod), trees)
    deciding = [one for one in closed if fitting.intersection(one.nodes)][:NAMES_MAX]
    others = [one for one in closed if one not in deciding][: NAMES_MAX - len(deciding)]
    first = await with_authors(evidence, pod, deciding)
    if any(one.text in NOT_AVAILABLE.reasons for one in nodes):
        first += await unclaimed(evidence, pod)
    return first, await with_authors(evidence, pod, others)


async def unclaimed(evidence: ExplainedMoment, pod: JsonObject) -> list[Reason]:
    """The nodes that had the labels for which claims of a pod are allocated, until a write.

    Those on which pods use the claims come first.
    """
    facts, objects = pods.facts(pod), evidence.views.objects
    reasons: list[Reason] = []
    for named in pods.named_claims(facts):
        claim = objects.get(claim_key(facts.namespace, named.name or "")) or {}
        where = json_tree.mapping(dra.allocation(claim) or {}, "nodeSelector")
        wanted = waits.label_names(where)
        try:
            chosen = partial(_is_selected, selectors.node_selector_of(where))
        except SelectorError:
            continue
        users = [
            objects.get(ObjectKey(*api_resources.PODS, facts.namespace, consumer.name)) or {}
            for consumer in dra.consumers(claim)
        ]
        nodes = api_resources.NODES
        last = await former_circumstances.changed(evidence, nodes) if wanted else []
        names = dict.fromkeys((*map(core.node_name, users), *(key.name for key in last)))
        reasons += await former_circumstances.unlabelled(evidence, [*names], chosen, wanted)
    return reasons


async def wanted_help(evidence: ExplainedMoment, pod: JsonObject) -> WantedHelp:
    """The former states of classes and nodes, with which a waiting pod is tried."""
    classes = await selections.former_classes(evidence, pod)
    return WantedHelp(former=(*classes, *await _former_nodes(evidence, pod)))


async def _former_nodes(
    evidence: ExplainedMoment, pod: JsonObject
) -> list[tuple[ObjectKey, SpecChange]]:
    """The nodes that changed last, each with the former labels of those that decide for a pod.

    These are the labels by which its node selector and affinity, its allocated claims and the
    slices choose nodes.
    """
    facts, views = pods.facts(pod), evidence.views
    claims = [
        views.objects.get(claim_key(facts.namespace, named.name or "")) or {}
        for named in pods.named_claims(facts)
    ]
    choices = [json_tree.mapping(dra.allocation(one) or {}, "nodeSelector") for one in claims]
    choices += [one.node.tree or {} for one in views.inventory.slices()]
    wanted = {name for one in choices for name in waits.label_names(one)}
    wanted.update(former_circumstances.label_names(pod_spec.read(pod)))
    nodes: list[tuple[ObjectKey, SpecChange]] = []
    for key in await former_circumstances.changed(evidence, api_resources.NODES) if wanted else ():
        present = views.objects.get(key)
        labels = meta.labels(present or {})
        for event in await evidence.changes(key) if present is not None else ():
            old = {} if event.type is EventType.OBJECT_DELETED else meta.labels(event.object)
            names = [name for name in sorted(wanted) if old.get(name) != labels.get(name)]
            if names and old and evidence.sight.sees(event):
                former = {name: old.get(name) for name in names}
                nodes.append((key, spec_changes.labelled(present or {}, former)))
                break
    return nodes[:NAMES_MAX]


def _is_selected(selector: NodeSelector, node: JsonView) -> bool:
    return selector.matches(meta.name(node), meta.labels(node))


async def with_authors(
    evidence: ExplainedMoment, pod: JsonObject, closed: Sequence[Closing]
) -> list[Reason]:
    """The taints and cordons with the write that set each, and the tolerations that do not fit."""
    spec = pod_spec.read(pod)
    reasons: list[Reason] = []
    for closing in closed:
        key = ObjectKey(*api_resources.NODES, "", closing.nodes[0])
        since = sources.since(await evidence.changes(key), closing.is_of)
        is_seen = since is not None and evidence.sight.sees(since)
        by = sources.by(since) if since is not None and is_seen else ""
        sentence = closing.sentence
        if by:
            sentence += f", {by}" if len(closing.nodes) == 1 else f" ({key.name} {by})"
        reasons.append(
            Reason(
                text=sentence,
                count=len(closing.nodes),
                revision=since.revision if since is not None and is_seen else 0,
                about=key,
                children=tuple(
                    Reason(text=text, is_kept=True)
                    for text in taints_and_cordons.misfits(spec, closing)
                ),
                is_kept=True,
            )
        )
    return reasons


async def to_drivers(evidence: ExplainedMoment, names: Sequence[str]) -> list[Reason]:
    """The taints that keep pods of a DaemonSet, perhaps a driver's, from nodes without slices.

    `names` are nodes that see no device; their taints may well be tolerated by the waiting pod.
    """
    reasons: dict[str, Reason] = {}
    for unserved in nodes_nearby.without_driver(evidence.views, names):
        for about in dict.fromkeys(one.about for one in unserved.children):
            tree = None if about is None else evidence.views.objects.get(about)
            if about is None or tree is None or about[:2] != api_resources.DAEMON_SETS:
                continue
            if not evidence.sight.sees_key(about):
                continue
            spec = dict(meta.spec(core.template(tree)))
            own = [*core.tolerations_of(spec), *daemon_nodes.tolerations_of(spec)]
            spec["tolerations"] = own
            made: JsonObject = {"metadata": {"namespace": about.namespace}, "spec": spec}
            nodes = {
                name: evidence.views.objects.get(ObjectKey(*api_resources.NODES, "", name)) or {}
                for name in names[: evidence.bounds.cause_nodes_max]
            }
            closed = taints_and_cordons.of_pod(pod_spec.read(made), nodes)[:NAMES_MAX]
            for one in await with_authors(evidence, made, closed):
                reasons.setdefault(one.text, one)
    return [*reasons.values()][:NAMES_MAX]


async def deleted(evidence: ExplainedMoment, name: str) -> list[Reason]:
    """The deletion of a node that is gone; empty if it is there, or was never recorded."""
    key = ObjectKey(*api_resources.NODES, "", name)
    if not name or evidence.views.objects.event(key) is not None:
        return []
    last = next(iter(await evidence.changes(key)), None)
    if last is None or last.type is not EventType.OBJECT_DELETED or not evidence.sight.sees(last):
        return []
    return [former_circumstances.kept(last, f"node {name} was deleted")]


async def withdrawn(
    evidence: ExplainedMoment, pod: JsonObject, known: Collection[ObjectKey | None] = ()
) -> list[Reason]:
    """The deletions of nodes that went with slices whose devices a waiting pod asks for.

    Each has the deletion of its slices below it, except of those that are `known`. Nodes that
    the pod is not for are left out; their taints and cordons are not looked at, as these come
    before a deletion.
    """
    wishes = [*selections.requests_of(evidence, pod)]
    gone: dict[str, list[tuple[Slice, Event]]] = {}
    slices = api_resources.RESOURCE_SLICES
    for key in await former_circumstances.gone_of_kind(evidence, slices, ()) if wishes else ():
        events = await evidence.changes(key)
        if not events or events[0].type is not EventType.OBJECT_DELETED:
            continue
        last = (events[1] if len(events) > 1 else events[0]).object
        for one in Inventory.of_slices([last]).slices():
            node = ObjectKey(*api_resources.NODES, "", one.node.name)
            if one.node.name and evidence.views.objects.event(node) is None:
                gone.setdefault(one.node.name, []).append((one, events[0]))
    spec = pod_spec.read(pod)
    reasons: list[Reason] = []
    for name, ended in gone.items():
        events = await evidence.changes(ObjectKey(*api_resources.NODES, "", name))
        is_deleted = bool(events) and events[0].type is EventType.OBJECT_DELETED
        if not is_deleted or not evidence.sight.sees(events[0]):
            continue
        is_for = former_circumstances.is_chosen(spec, (*events[1:2], events[0])[0].object)
        if is_for and (having := _having(name, [one for one, _ in ended], wishes)):
            below = (
                sources.made(event, f"slice {one.name} of pool {'/'.join(one.pool)} was deleted")
                for one, event in ended
                if event.key not in known and evidence.sight.sees(event)
            )
            reason = sources.deletion(events, having, *below)
            reasons.append(replace(reason, is_kept=True))
    return sorted(reasons, key=lambda one: -one.revision)[:NAMES_MAX]


def _having(node: str, slices: Sequence[Slice], wishes: Sequence[SelectingRequest]) -> str:
    """The deletion of a node with devices for each request as text; empty if some has none."""
    matching: dict[str, set[str]] = {}
    for wish in wishes:
        ids = {each.id[2] for one in slices for each in one.devices if wish.matches(each)}
        matching.setdefault(wish.name, set()).update(ids)
    if not all(matching.values()):
        return ""
    count = len(set.union(*matching.values()))
    noun, names = counts.plural(len(slices), "slice"), [one.name for one in slices]
    text = f"node {node}, for which {noun} {listed(names, len(names))} had "
    text += f"{counts.of(count, 'device')} that {counts.verb(count, 'matches')} "
    return f"{text}{listed([*matching], len(matching))}, was deleted"


async def before_eviction(
    evidence: ExplainedMoment, since: Event, *, is_drain: bool
) -> list[Reason]:
    """The cordon (of a drain), or the taints that evict, which the pod's node had before an event.

    `since` is the pod's event with the eviction. A user who drains a node cordons it first.
    """
    name = core.node_name(since.object)
    if not name:
        return []
    key = ObjectKey(*api_resources.NODES, "", name)
    earlier = [each for each in await evidence.changes(key) if each.revision < since.revision]
    if not earlier or earlier[0].type is EventType.OBJECT_DELETED:
        return []
    node = earlier[0].object
    if is_drain:
        closed = [taints_and_cordons.cordon(name)] if core.unschedulable(node) else []
    else:
        tainted = (one for one in core.taints(node) if one.get("effect") == NO_EXECUTE)
        closed = [taints_and_cordons.taint(name, node, one) for one in tainted]
    reasons = []
    for closing in closed:
        set_by = sources.since(earlier, closing.is_of)
        is_seen = set_by is not None and evidence.sight.sees(set_by)
        by = f", {sources.by(set_by)}" if set_by is not None and is_seen else ""
        reasons.append(
            Reason(
                text=f"its node {name} was {closing.text}{by}",
                revision=set_by.revision if set_by is not None and is_seen else 0,
                about=key,
                is_kept=True,
            )
        )
    return reasons


async def but_for_volumes(
    evidence: ExplainedMoment, pod: ObjectKey, views: LiveViews, now: Instant
) -> list[Reason]:
    """The nodes that would take a pod at a moment, were it not for a volume claim of it."""
    tree = views.objects.get(pod)
    nodes = views.objects.count(*api_resources.NODES)
    if tree is None or nodes > evidence.bounds.refusal_nodes_max:
        return []
    excluded: dict[tuple[ObjectKey, str], list[str]] = {}
    for node in await drive(_taking(evidence, views, tree, now)):
        for claim in volumes.claims(tree):
            if why := volumes.obstacle(views, tree, claim, node):
                excluded.setdefault((claim, why), []).append(node)
    reasons: list[Reason] = []
    for (claim, why), names in [*excluded.items()][:NAMES_MAX]:
        noun = counts.plural(len(names), "node")
        text = f"but for its volumes the pod would fit on {noun} {listed(names, len(names))}: "
        text += f"PersistentVolumeClaim {claim.namespace}/{claim.name} {why}"
        rests_on = (claim, *volumes.sources(views, claim))
        reasons.append(Reason(text=text, count=len(names), is_kept=True, rests_on=rests_on))
    return reasons


def _taking(
    evidence: ExplainedMoment, views: LiveViews, tree: JsonObject, now: Instant
) -> Steps[list[str]]:
    """The nodes that take a pod whose volumes are not looked at; none if none can be asked."""
    names: list[str] = []
    try:
        for answer in node_answers.ask_nodes(evidence.rules, views, tree, now=now):
            yield
            if answer is not None and not answer.text:
                names.append(answer.node)
    except ClaimsNotReady:
        return []
    return names
