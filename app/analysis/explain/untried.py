"""Pods that no node is asked about: the cause, and what keeps them waiting.

PreEnqueue holds such pods back without a message (upstream's c11); the known facts about the cause
are in other objects.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cache, partial

from app.analysis import scope
from app.analysis.explain import node_answers, quota_use, waits
from app.analysis.explain.nearby import names, reviews, volumes
from app.analysis.explain.reasons import Reason, listed
from app.domain.allocation.reasons.explanation import CANNOT_ALLOCATE
from app.domain.controllers import pods
from app.domain.controllers.plan import Views
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.controllers.work_queue import RETRY_MAX_MICROS
from app.domain.errors import Forbidden
from app.domain.log import Event, ObjectKey
from app.domain.objects import registry
from app.domain.objects.quota import limits
from app.domain.values import api_resources, condition_types, counts, event_reasons, well_known
from app.domain.values.fields import core, dra, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant

_GATED = "SchedulingGated"
"""The reason of the condition PodScheduled of a pod with gates, and its status in tables."""


def cause(views: Views, tree: JsonObject, rules: SchedulerRules) -> str:
    """The cause in one sentence; empty for a pod about which nodes are asked."""
    if _is_left(tree, rules):
        return _left_to(views, core.scheduler_name(tree))
    if not core.node_name(tree):
        gates = core.scheduling_gates(tree)
        if gates:
            names = [entries.name(gate) for gate in gates]
            noun = counts.plural(len(names), "scheduling gate")
            hold = counts.verb(len(names), "holds")
            return f"{noun} {listed(names, len(names))} {hold} it back"
        scheduled = meta.condition(tree, condition_types.POD_SCHEDULED)
        if scheduled is not None and scheduled.reason == _GATED:
            return "scheduling gates hold it back, which the recording does not show"
    return node_answers.before_nodes(views, tree, rules)


def _is_left(tree: JsonObject, rules: SchedulerRules) -> bool:
    """Whether a pod without a node is left to another scheduler."""
    return not core.node_name(tree) and not pod_spec.is_ours(tree, rules.profiles)


def _left_to(views: Views, name: str) -> str:
    """The reason that another scheduler is responsible, with similar names of known schedulers."""
    text = f"it is left to the scheduler {name}, which does not run here"
    trees = (views.objects.get(key) or {} for key in views.objects.keys(*api_resources.PODS))
    binding = {core.scheduler_name(tree) for tree in trees if core.node_name(tree)} - {""}
    if name in binding:
        return text
    near = scope.nearest(name, sorted({pod_spec.DEFAULT_SCHEDULER, *binding}))
    return f"{text}; {near}" if near else text


def shared_causes(
    views: Views,
    rules: SchedulerRules,
    now: Instant,
    *,
    reads_events: bool,
    unseen: Collection[str] = (),
    is_recorded: bool = False,
) -> Callable[[JsonObject], str]:
    """The cause of a pod without the names that differ between pods with the same cause.

    There is none where the pod needs an object of an `unseen` resource, of which a recording may
    lack objects, nor where the recorded scheduler knew a class that the recording lacks.

    Pods that have their claims and wait for their binding have a cause, too. If a claim cannot be
    created, an Event about the pod has the reason of the refusal.
    """
    refusals = cache(lambda: _refusals(views) if reads_events else {})
    left_to = cache(partial(_left_to, views))

    def shared(tree: JsonObject) -> str:
        if _is_left(tree, rules):
            return left_to(core.scheduler_name(tree))
        if unseen and _needs_unseen(views, tree, unseen):
            return ""
        if is_recorded and _was_tried(tree) and missing_classes(views, tree):
            return ""
        text = cause(views, tree, rules)
        if not text:
            return waits.shared_cause(views, tree, now, rules.binding_timeout)
        if not text.startswith(_OF_POD):
            return text
        text = text.partition(": ")[2]
        refusal = refusals().get(meta.uid(tree))
        if refusal is None or not _lacks_claim(pods.facts(tree)):
            return text
        return f"{text}: {_OF_CLAIM.split(core.event_object(refusal.object).message, 1)[-1]}"

    return shared


def _was_tried(tree: JsonObject) -> bool:
    """Whether a scheduler looked for devices for the pod, and so knew the classes."""
    placed = meta.condition(tree, condition_types.POD_SCHEDULED)
    return placed is not None and CANNOT_ALLOCATE in placed.message


def _needs_unseen(views: Views, tree: JsonObject, unseen: Collection[str]) -> bool:
    pod = pods.facts(tree)
    claims = [claim_key(pod.namespace, each.name) for each in pods.named_claims(pod) if each.name]
    is_gone = any(views.objects.get(key) is None for key in claims)
    if is_gone and api_resources.RESOURCE_CLAIMS[1] in unseen:
        return True
    return api_resources.DEVICE_CLASSES[1] in unseen and bool(missing_classes(views, tree))


def background(
    views: Views, tree: JsonObject, rules: SchedulerRules, *, reads_events: bool
) -> tuple[Reason, ...]:
    """The facts about the cause in other objects: claims being deleted, not created or not bound.

    Why a claim was not created is known from Events.
    """
    return (
        *_ending(views, tree),
        *_elsewhere(views, tree),
        *(_not_made(views, tree) if reads_events else ()),
        *_named_alike(views, tree),
        *volumes.refusing(views, tree, rules),
    )


def of_scheduler(views: Views, tree: JsonObject, rules: SchedulerRules) -> Iterator[Reason]:
    """The signs, in the pods of a namespace, of another scheduler to which one of them is left."""
    if not _is_left(tree, rules):
        return
    name, namespace = core.scheduler_name(tree), meta.namespace(tree)
    keys = views.objects.keys(*api_resources.PODS, namespace)
    trees = (views.objects.get(key) or {} for key in keys)
    nodes = [core.node_name(other) for other in trees if core.scheduler_name(other) == name]
    named, placed = len(nodes), sum(map(bool, nodes))
    text = f"{counts.of(named, 'pod')} of namespace {namespace} "
    text += f"{counts.verb(named, 'names')} that scheduler, "
    if placed:
        text += f"{placed} of them with a node: somebody places its pods"
    else:
        text += "without a node: nothing shows that it runs"
    yield Reason(text=text, count=named)


def nearby(views: Views, tree: JsonObject) -> tuple[Reason, ...]:
    """The facts of `background` that no message of a controller tells."""
    return (*_ending(views, tree), *_elsewhere(views, tree), *_named_alike(views, tree))


def _named_alike(views: Views, tree: JsonObject) -> Iterator[Reason]:
    yield from names.classes(views, missing_classes(views, tree))
    yield from names.templates(views, pods.facts(tree))
    yield from names.claims(views, pods.facts(tree))


def remedies(
    views: Views,
    tree: JsonObject,
    rules: SchedulerRules,
    reads_events: bool,
    sees_key: Callable[[ObjectKey], bool],
) -> list[str]:
    """The changes after which nodes would be asked about the pod, as far as they are known.

    What a claim that was not created needs is known from Events; the present state, from a
    namespace and a quota, if the reader may see these.
    """
    if _is_left(tree, rules):
        return [f"create the pod again with schedulerName {pod_spec.DEFAULT_SCHEDULER}"]
    changes = [
        f"remove {counts.plural(len(gates), 'scheduling gate')} {listed(gates, len(gates))}"
        for gates in [[entries.name(gate) for gate in core.scheduling_gates(tree)]]
        if gates and not core.node_name(tree)
    ]
    changes += [f"create DeviceClass {name}" for name in missing_classes(views, tree)]
    pod = pods.facts(tree)
    changes += [
        f"create ResourceClaimTemplate {key.name} in namespace {key.namespace}"
        for key in names.missing_templates(views, pod)
        if sees_key(key)
    ]
    changes += [
        f"create ResourceClaim {entry.claim} in namespace {pod.namespace}"
        for entry in pod.entries
        if entry.claim
        and sees_key(key := claim_key(pod.namespace, entry.claim))
        and views.objects.get(key) is None
    ]
    changes += volumes.remedies(views, tree, rules, sees_key)
    for named in pods.named_claims(pod):
        claim = views.objects.get(claim_key(pod.namespace, named.name or "")) or {}
        others = [name for name in meta.finalizers(claim) if name != well_known.CLAIM_PROTECTION]
        if meta.is_deleting(claim) and others and not dra.consumers(claim):
            noun = counts.plural(len(others), "finalizer")
            changes.append(
                f"have {noun} {listed(others, len(others))} of claim {named.name} removed, and "
                "create the claim again"
            )
    if reads_events and (refusal := refusal_of_claim(views, tree)):
        key = ObjectKey(*api_resources.NAMESPACES, "", pod.namespace)
        space = views.objects.get(key) if sees_key(key) else None
        lacks_label = meta.labels(space or {}).get(well_known.ADMIN_ACCESS) != "true"
        if lacks_label and f"`{well_known.ADMIN_ACCESS}: true` label" in refusal:
            changes.append(
                f"see that namespace {pod.namespace} has the label {well_known.ADMIN_ACCESS}=true"
            )
        changes += quota_use.remedies(views, pod.namespace, refusal, sees_key)
        template, _ = _spec_refused(views, pod, refusal)
        changes += filter(None, [reviews.remedy(views, refusal, template, sees_key)])
    return changes


def refusal_of_claim(views: Views, tree: JsonObject) -> str:
    """The last message about a claim of the pod that could not be created; empty without one."""
    if not _lacks_claim(pods.facts(tree)):
        return ""
    refusal = _refusals(views, meta.namespace(tree)).get(meta.uid(tree))
    return "" if refusal is None else core.event_object(refusal.object).message


def refused_claims(views: Views, namespace: str) -> dict[str, list[tuple[ObjectKey, Event]]]:
    """The waiting pods of a namespace by the refusal of their claims, with the newest Event."""
    refused: dict[str, list[tuple[ObjectKey, Event]]] = {}
    refusals = _refusals(views, namespace)
    for key in views.objects.keys(*api_resources.PODS, namespace) if refusals else ():
        tree = views.objects.get(key) or {}
        event = refusals.get(meta.uid(tree))
        if event is not None and _lacks_claim(pods.facts(tree)):
            text = _OF_CLAIM.split(core.event_object(event.object).message, 1)[-1]
            refused.setdefault(text, []).append((key, event))
    return refused


def of_quota(
    views: Views, key: ObjectKey, tree: JsonObject, *, reads_events: bool
) -> Iterator[Reason]:
    """The use of a quota, and the waiting pods whose claims it refuses, known from Events."""
    yield from quota_use.of_quota(views, key.namespace, key.name, tree)
    if not reads_events:
        return
    refused = []
    for place in views.objects.keys(*api_resources.PODS, key.namespace):
        message = refusal_of_claim(views, views.objects.get(place) or {})
        if f"exceeded quota: {key.name}," in message:
            refused.append(place.name)
    if refused:
        text = f"{counts.plural(len(refused), 'pod')} {listed(refused, len(refused))} "
        text += f"{counts.verb(len(refused), 'waits')} for a claim that it refuses"
        yield Reason(text=text, count=len(refused), is_kept=True)


def of_template(views: Views, key: ObjectKey, *, reads_events: bool) -> Iterator[Reason]:
    """The pods that name a claim template, and those for which no claim was made from it.

    The latter are known from Events.
    """
    users: list[str] = []
    refused: dict[str, list[str]] = {}
    for place in views.objects.keys(*api_resources.PODS, key.namespace):
        tree = views.objects.get(place) or {}
        if not any(entry.template == key.name for entry in pods.facts(tree).entries):
            continue
        users.append(place.name)
        if reads_events and (message := refusal_of_claim(views, tree)):
            refused.setdefault(_OF_CLAIM.split(message, 1)[-1], []).append(place.name)
    if not users:
        yield Reason(text="no pod names it")
        return
    text = f"{counts.of(len(users), 'pod')} {counts.verb(len(users), 'names')} it: "
    yield Reason(text=text + listed(users, len(users)), count=len(users))
    for reason, waiting in refused.items():
        noun = counts.plural(len(waiting), "pod")
        yield Reason(
            text=f"no claim was made from it for {noun} {listed(waiting, len(waiting))}: {reason}",
            count=len(waiting),
            is_kept=True,
        )


def waiting_for_class(views: Views, name: str) -> Iterator[Reason]:
    """The pods that wait for a device class that is missing."""
    waiting = [
        f"{key.namespace}/{key.name}"
        for key in views.objects.keys(*api_resources.PODS)
        if name in missing_classes(views, views.objects.get(key) or {})
    ]
    if waiting:
        text = f"{counts.of(len(waiting), 'pod')} {counts.verb(len(waiting), 'waits')} for it: "
        yield Reason(text=text + listed(waiting, len(waiting)), count=len(waiting), is_kept=True)


def missing_classes(views: Views, tree: JsonObject) -> list[str]:
    """The missing DeviceClasses that unallocated claims of the pod name."""
    pod = pods.facts(tree)
    missing: dict[str, None] = {}
    for named in pods.named_claims(pod):
        claim = views.objects.get(claim_key(pod.namespace, named.name or "")) or {}
        if dra.allocation(claim) is not None:
            continue
        for request in dra.requests(claim):
            for wish in (request.exactly, *request.first_available):
                name = "" if wish is None else wish.device_class_name
                key = ObjectKey(*api_resources.DEVICE_CLASSES, "", name)
                if name and views.objects.get(key) is None:
                    missing[name] = None
    return list(missing)


def _ending(views: Views, tree: JsonObject) -> Iterator[Reason]:
    pod = pods.facts(tree)
    for named in pods.named_claims(pod):
        key = claim_key(pod.namespace, named.name or "")
        claim = views.objects.get(key) or {}
        if meta.is_deleting(claim):
            yield Reason(
                text=f"claim {named.name} was deleted{_keeping(claim)}",
                about=key,
                holds=meta.is_deleting,
                is_kept=True,
            )


def _keeping(claim: JsonView) -> str:
    """The consumers and the foreign finalizers that keep a claim that was deleted."""
    text = ""
    if consumers := dra.consumers(claim):
        users = [consumer.name for consumer in consumers]
        noun = "pod" if all(each.resource == "pods" for each in consumers) else "consumer"
        ends = counts.verb(len(users), "ends")
        text = f"; it is kept until {counts.plural(len(users), noun)} {listed(users, len(users))} "
        text += ends
    others = [name for name in meta.finalizers(claim) if name != well_known.CLAIM_PROTECTION]
    if others:
        keep = counts.verb(len(others), "keeps")
        text += f"; {counts.plural(len(others), 'finalizer')} {listed(others, len(others))} "
        text += f"{keep} it until its owner removes {'it' if len(others) == 1 else 'them'}"
    return text


def _elsewhere(views: Views, tree: JsonObject) -> Iterator[Reason]:
    """Claims with the names that the pod uses, in namespaces other than its own."""
    pod = pods.facts(tree)
    for named in pods.named_claims(pod):
        if not named.name or views.objects.get(claim_key(pod.namespace, named.name)) is not None:
            continue
        others = [
            key.namespace
            for key in views.objects.keys(*api_resources.RESOURCE_CLAIMS)
            if key.name == named.name
        ]
        if others:
            where = f"{counts.plural(len(others), 'namespace')} {listed(others, len(others))}"
            text = f"there is a claim {named.name} in {where}, and a pod can only use claims of "
            yield Reason(text=f"{text}its own namespace", is_kept=True)


def _not_made(views: Views, tree: JsonObject) -> Iterator[Reason]:
    """The last message of the claim controller about a claim that is still missing."""
    if not _lacks_claim(pods.facts(tree)):
        return
    refusal = _refusals(views, meta.namespace(tree)).get(meta.uid(tree))
    if refusal is not None:
        message = core.event_object(refusal.object).message
        yield Reason(
            text=f"{event_reasons.FAILED_CLAIM_CREATION}: {message}",
            revision=refusal.revision,
            about=refusal.key,
            is_kept=True,
        )
        pause = RETRY_MAX_MICROS // SECOND
        yield Reason(
            text="the claim controller tries again by itself, after pauses that double up to "
            f"{pause} s; for a new pod it tries at once"
        )
        template, spec = _spec_refused(views, pods.facts(tree), message)
        yield from quota_use.reasons(views, meta.namespace(tree), message, spec, template=template)
    elif message := foreseen_refusal(views, tree):
        template, spec = _spec_refused(views, pods.facts(tree), message)
        quota = quota_use.refusing(message)
        rests_on = ObjectKey(*api_resources.RESOURCE_QUOTAS, meta.namespace(tree), quota)
        yield Reason(
            text=f"a claim from its template would be refused now: {message.partition(': ')[2]}",
            about=template,
            is_kept=True,
            rests_on=(rests_on, *(() if template is None else (template,))),
        )
        for reason in quota_use.reasons(
            views, meta.namespace(tree), message, spec, template=template
        ):
            yield replace(reason, rests_on=(rests_on, *reason.rests_on))


def foreseen_refusal(views: Views, tree: JsonObject) -> str:
    """The refusal that a quota has for the claim that a pod lacks, if nothing says why it does.

    Not every recording has Events.
    """
    pod = pods.facts(tree)
    kind = registry.find(*api_resources.RESOURCE_CLAIMS)
    if kind is None or not _lacks_claim(pod):
        return ""
    if meta.uid(tree) in _refusals(views, meta.namespace(tree)):
        return ""
    _, spec = _spec_refused(views, pod, "")
    claim = {"metadata": {"namespace": pod.namespace}, "spec": dict(spec)}
    try:
        limits.check_create(views.objects, kind, claim_key(pod.namespace, pod.name), claim)
    except Forbidden as refusal:
        return refusal.message
    return ""


def _spec_refused(
    views: Views, pod: pods.PodFacts, message: str
) -> tuple[ObjectKey | None, JsonView]:
    """The spec of the claim that could not be created, with its template; empty if that is gone."""
    of_entry = _OF_ENTRY.match(message)
    for entry in pod.entries:
        lacks = bool(entry.template and pods.entry_claim(pod, entry).problem)
        if lacks and (of_entry is None or of_entry[1] == entry.name):
            key = ObjectKey(*api_resources.RESOURCE_CLAIM_TEMPLATES, pod.namespace, entry.template)
            return key, meta.spec(meta.spec(views.objects.get(key) or {}))
    return None, {}


def _refusals(views: Views, namespace: str | None = None) -> dict[str, Event]:
    """The newest Event that says why a claim could not be made, by the uid of its pod."""
    refusals: dict[str, Event] = {}
    for key in views.objects.keys(*api_resources.EVENTS, namespace):
        event = views.objects.event(key)
        # The text of most Events tells that they are others; they are not decoded.
        if event is None or event_reasons.FAILED_CLAIM_CREATION.encode() not in event.body:
            continue
        if event.object.get("reason") != event_reasons.FAILED_CLAIM_CREATION:
            continue
        uid = core.event_object(event.object).involved_object.uid
        if uid not in refusals or event.revision > refusals[uid].revision:
            refusals[uid] = event
    return refusals


def _lacks_claim(pod: pods.PodFacts) -> bool:
    """Whether a claim has yet to be created from a template."""
    return any(entry.template and pods.entry_claim(pod, entry).problem for entry in pod.entries)


_OF_POD = 'pod "'
"""The beginning of causes that name their pod."""

_OF_ENTRY = re.compile(r"PodResourceClaim ([^:]+): ")
"""The part of a refusal that names the pod's entry whose claim could not be created."""

_OF_CLAIM = re.compile(r'^.*?"[^"]*" is (?:forbidden|invalid): ')
"""The part of a refusal with the generated name of a claim, which differs at each try."""
