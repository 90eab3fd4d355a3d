"""Objects that a waiting pod needs and that are not there: deleted ones, and unrecorded ones.

In a complete recording, an object that no record shows was not there. Where whole objects of its
kind may be missing, nothing follows: neither that it does not exist, nor what the nodes would say.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from app.analysis import scheduler_messages, scope
from app.analysis.explain import sources, untried
from app.analysis.explain.circumstances import NO_SLICES, without_devices
from app.analysis.explain.nearby import accounts as accounts_nearby
from app.analysis.explain.nearby import names as names_nearby
from app.analysis.explain.nearby import volumes as volumes_nearby
from app.analysis.explain.observed import refused_writes
from app.analysis.explain.pods import PodFindings
from app.analysis.explain.questions import named
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.explain.verdicts import SchedulerMessage
from app.domain.allocation.reasons.explanation import CANNOT_ALLOCATE
from app.domain.controllers import pods, registry
from app.domain.controllers.resources import claim_key
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.kinds import extended_resources, pod_resources
from app.domain.values import api_resources, counts, well_known
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.texts import kind_words
from app.service.explaining import former_circumstances, quotas
from app.service.explaining.evidence import ExplainedMoment


async def reasons(
    evidence: ExplainedMoment, tree: JsonObject, refusals: Sequence[str] = ()
) -> list[Reason]:
    """The deletions of claims, templates, classes and volume claims that the pod names.

    Extended resources that it lacks by the refusals of nodes, and no class stands for, are there,
    too.
    """
    pod = pods.facts(tree)
    wanted = [claim_key(pod.namespace, each.name) for each in pods.named_claims(pod) if each.name]
    wanted += [
        ObjectKey(*api_resources.DEVICE_CLASSES, "", name)
        for name in untried.missing_classes(evidence.views, tree)
    ]
    wanted += names_nearby.missing_templates(evidence.views, pod)
    wanted += volumes_nearby.claims(tree)
    reasons: list[Reason] = []
    for key in wanted:
        if evidence.views.objects.get(key) is not None:
            continue
        observed = await evidence.observed(key)
        if (request := refused_writes.newest(observed)) and evidence.sight.sees(request):
            reasons += [
                replace(one, text=f"{named(key)}: {one.text}")
                for one in refused_writes.reasons(observed)
            ]
        states = [event for event in observed if event.is_about_object]
        if not states or states[0].type is not EventType.OBJECT_DELETED:
            continue
        if evidence.sight.sees(last := states[0]):
            deletion = sources.deletion(states, f"{named(key)} was deleted", *_owners(last))
            reasons.append(replace(deletion, is_kept=True))
            reasons += _successors(evidence, observed)
    reasons += await _extended(evidence, tree, refusals)
    if not evidence.sight.reads_events:
        return reasons
    refusal = untried.refusal_of_claim(evidence.views, tree)
    refusal = refusal or untried.foreseen_refusal(evidence.views, tree)
    reasons += await _label_lost(evidence, meta.namespace(tree), refusal)
    reasons += await quotas.of_policy(evidence, refusal)
    return [*reasons, *await quotas.of_claim(evidence, meta.namespace(tree), refusal)]


async def without_unrecorded(
    evidence: ExplainedMoment,
    tree: JsonObject,
    placed: PodFindings,
    verdict: SchedulerMessage | None,
) -> PodFindings:
    """The findings of a waiting pod, in which no object is called absent that is only not recorded.

    The words of the recorded scheduler stay.
    """
    what = await _first_unrecorded(evidence, tree, placed, verdict)
    if not what or (verdict is not None and not placed.nodes and placed.text in verdict.message):
        return placed
    blind = without_devices(placed.nodes)
    if placed.nodes and len(blind) < len(placed.nodes):
        return replace(placed, text=f"{placed.text}, but {what}", children=_instead(placed, what))
    text = f"{what}, so no node can be tried"
    if verdict is not None:
        text = f"refused by the recorded scheduler; {what}, so it cannot be tried again"
    children = () if placed.nodes else placed.children
    helps = None if placed.helps is None else ()
    return replace(
        placed,
        text=text,
        children=_instead(replace(placed, children=children), what),
        nodes=(),
        helps=helps,
    )


def _instead(placed: PodFindings, what: str) -> tuple[Reason, ...]:
    """The reasons, with the object that is not recorded instead of the words that it is absent."""
    kept = (child for child in placed.children if child.text not in (placed.text, NO_SLICES))
    return (Reason(text=what, is_kept=True), *kept)


async def _first_unrecorded(
    evidence: ExplainedMoment,
    tree: JsonObject,
    placed: PodFindings,
    verdict: SchedulerMessage | None,
) -> str:
    """The first object that the pod needs, of a kind of which objects may be missing.

    A class without which the recorded scheduler could not have looked at devices is missing.
    """
    pod = pods.facts(tree)
    lacks = {*evidence.lacks}
    if verdict is not None and CANNOT_ALLOCATE in verdict.message:
        lacks.add(api_resources.DEVICE_CLASSES[1])
    wanted = [
        (claim_key(pod.namespace, each.name), f"ResourceClaim {pod.namespace}/{each.name}")
        for each in pods.named_claims(pod)
        if each.name
    ]
    wanted += [
        (ObjectKey(*api_resources.DEVICE_CLASSES, "", name), f"DeviceClass {name}")
        for name in untried.missing_classes(evidence.views, tree)
    ]
    for key, noun in wanted:
        if key.resource not in lacks or evidence.views.objects.get(key) is not None:
            continue
        if not any(event.is_about_object for event in await evidence.observed(key)):
            return f"{noun} was not recorded"
    is_blind = api_resources.RESOURCE_SLICES[1] in evidence.lacks
    if is_blind and not evidence.views.inventory.pool_ids() and without_devices(placed.nodes):
        return "no ResourceSlice was recorded"
    return ""


def _successors(evidence: ExplainedMoment, observed: Sequence[Event]) -> Iterator[Reason]:
    """The classes that select what a deleted one selected; its events are newest first.

    A class cannot be renamed: it is made anew, and pods that name the old one wait.
    """
    deletion = next(event for event in observed if event.is_about_object)
    if deletion.key[:2] != api_resources.DEVICE_CLASSES:
        return
    known = [event for event in observed if event.is_about_object]
    selectors = _selectors(known[1].object if len(known) > 1 else deletion.object)
    objects = evidence.views.objects
    for key in objects.keys(*api_resources.DEVICE_CLASSES) if selectors else ():
        event = objects.event(key)
        if event is None or _selectors(event.object) != selectors or not evidence.sight.sees(event):
            continue
        text = f"{named(key)} has the selectors that {deletion.key.name} had"
        holds = partial(_has_selectors, selectors)
        yield Reason(text=text, about=key, holds=holds, since="; so written", is_kept=True)


def _has_selectors(selectors: Sequence[JsonView], tree: JsonView) -> bool:
    return _selectors(tree) == selectors


def _selectors(tree: JsonView) -> list[JsonView]:
    return [dict(each) for each in dra.class_selectors(tree)]


async def _label_lost(evidence: ExplainedMoment, namespace: str, refusal: str) -> list[Reason]:
    """The write that removed the label for administrative access from a namespace.

    If the namespace has the label again, that is the reason: the refused claim is tried again
    after a pause.
    """
    if well_known.ADMIN_ACCESS not in refusal:
        return []
    key = ObjectKey(*api_resources.NAMESPACES, "", namespace)
    event = evidence.views.objects.event(key)
    if event is not None and evidence.sight.sees(event) and _admits(event.object):
        text = f"namespace {namespace} has the label {well_known.ADMIN_ACCESS}=true by now"
        text += f": {quotas.NEXT}"
        return [Reason(text=text, about=key, holds=_admits, is_kept=True)]
    lost = former_circumstances.loss(await evidence.changes(key), _admits)
    if lost is None or not evidence.sight.sees(lost[1]):
        return []
    text = f"namespace {key.name} had the label {well_known.ADMIN_ACCESS}=true until it was changed"
    return [replace(sources.made(lost[1], text), is_kept=True)]


def _admits(tree: JsonView) -> bool:
    return meta.labels(tree).get(well_known.ADMIN_ACCESS) == "true"


async def accounts(evidence: ExplainedMoment, namespace: str, pod: JsonView) -> list[Reason]:
    """The absent ServiceAccount that a pod or a template names, and who deleted it."""
    reasons: list[Reason] = []
    for reason in accounts_nearby.missing(evidence.views, namespace, pod):
        (key,) = reason.rests_on
        last = next(iter(await evidence.observed(key)), None)
        if last is not None and last.type is EventType.OBJECT_DELETED:
            deletion = sources.made(last, "it was deleted", *_owners(last))
            reason = replace(reason, children=(*reason.children, deletion))
        reasons.append(reason)
    return reasons


def _owners(deletion: Event) -> Iterator[Reason]:
    """The owners of a deleted object, and whether the garbage collector deleted it with them."""
    is_collected = deletion.stamp.actor.user == registry.actor_of("garbage").user
    for owner in meta.owners(deletion.object):
        prefix = f"{deletion.key.namespace}/" if deletion.key.namespace else ""
        text = f"it belonged to {kind_words.in_sentence(owner.kind)} {prefix}{owner.name}"
        yield Reason(text=f"{text}, and went with it" if is_collected else text, is_kept=True)


async def _extended(
    evidence: ExplainedMoment, pod: JsonObject, refusals: Sequence[str]
) -> list[Reason]:
    """The extended resources that a pod lacks by these refusals and that no class stands for.

    Where nodes offer one themselves, only the class is named that stood for it.
    """
    requests = pod_resources.effective(meta.spec(pod), "requests")
    lacking = [
        name
        for name in requests
        if extended_resources.is_extended(name)
        and any(scheduler_messages.names_lack_of(text, name) for text in refusals)
    ]
    reasons: list[Reason] = []
    for name in lacking[:NAMES_MAX]:
        if _is_served(evidence, name):
            continue
        if not _is_offered(evidence, name):
            reasons.append(Reason(text=_unserved(evidence, name), is_kept=True))
        for key in await former_circumstances.changed(evidence, api_resources.DEVICE_CLASSES):
            lost = former_circumstances.loss(
                await evidence.changes(key), partial(_stands_for, name)
            )
            if lost is None or not evidence.sight.sees(lost[1]):
                continue
            after = lost[1]
            became = dra.extended_resource_name(after.object)
            text = f"DeviceClass {key.name} stood for {name} until it was "
            if after.type is EventType.OBJECT_DELETED:
                text += "deleted"
            else:
                text += f"written with {became}" if became else "written without a resource"
            reasons.append(former_circumstances.kept(after, text))
    return reasons


def _unserved(evidence: ExplainedMoment, resource: str) -> str:
    """The extended resource for which no class stands, with the names of similar ones."""
    text = f"no DeviceClass stands for {resource}"
    if not evidence.rules.gates.enabled(gate := "DRAExtendedResource"):
        return f"{text}: the gate {gate} is off"
    if resource.startswith(extended_resources.IMPLICIT):
        name = resource.removeprefix(extended_resources.IMPLICIT)
        text += f": DeviceClass {name} does not exist"
        near = scope.nearest(name, sorted(map(meta.name, _classes(evidence))))
    else:
        known = map(dra.extended_resource_name, _classes(evidence))
        near = scope.nearest(resource, sorted({*known} - {""})) or _nameless(evidence)
    return f"{text}; {near}" if near else text


def _nameless(evidence: ExplainedMoment) -> str:
    """The classes that stand for no extended resource."""
    names = [meta.name(one) for one in _classes(evidence) if not dra.extended_resource_name(one)]
    if not names:
        return ""
    noun, stands = counts.plural(len(names), "DeviceClass"), counts.verb(len(names), "stands")
    shown = listed(names, len(names))
    return f"{noun} {shown} {stands} for no resource: spec.extendedResourceName is not set"


def _is_offered(evidence: ExplainedMoment, resource: str) -> bool:
    """Whether a node offers the resource itself."""
    objects = evidence.views.objects
    nodes = (objects.get(key) or {} for key in objects.keys(*api_resources.NODES))
    return any(resource in core.allocatable(node) for node in nodes)


def _classes(evidence: ExplainedMoment) -> Iterator[JsonObject]:
    objects = evidence.views.objects
    trees = map(objects.get, objects.keys(*api_resources.DEVICE_CLASSES))
    yield from (tree for tree in trees if tree is not None)


def _stands_for(resource: str, tree: JsonView) -> bool:
    own = f"{extended_resources.IMPLICIT}{meta.name(tree)}"
    return resource in (dra.extended_resource_name(tree), own)


def _is_served(evidence: ExplainedMoment, resource: str) -> bool:
    return any(_stands_for(resource, tree) for tree in _classes(evidence))
