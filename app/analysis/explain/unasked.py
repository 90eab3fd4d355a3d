"""Why no node is asked about a pod that waits, and what keeps it so.

PreEnqueue holds such pods back without a word (upstream's c11); what is known about the cause
stands on other objects.
"""

from collections.abc import Iterator

from app.analysis.explain import node_answers
from app.analysis.explain.reasons import Reason, listed
from app.domain.controllers import pods
from app.domain.controllers.plan import Views
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject

FAILED_CLAIM = "FailedResourceClaimCreation"


def cause(views: Views, tree: JsonObject, rules: SchedulerRules) -> str:
    """One sentence; empty for a pod about which nodes are asked."""
    if not core.node_name(tree):
        if not pod_spec.is_ours(tree):
            name = core.scheduler_name(tree)
            return f"it is left to the scheduler {name}, which does not run here"
        gates = json_tree.objects(tree, "spec", "schedulingGates")
        if gates:
            names = [json_tree.text(gate, "name") for gate in gates]
            return f"scheduling gates hold it back: {listed(names, len(names))}"
    return node_answers.before_nodes(views, tree, rules)


def background(views: Views, tree: JsonObject) -> tuple[Reason, ...]:
    """What other objects tell about the cause: claims that end, and why one could not be made."""
    return tuple(_ending(views, tree)) + tuple(_not_made(views, tree))


def missing_classes(views: Views, tree: JsonObject) -> list[str]:
    """The DeviceClasses that do not exist and that claims of the pod without devices name."""
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
        claim = views.objects.get(claim_key(pod.namespace, named.name or "")) or {}
        if meta.is_deleting(claim):
            users = [consumer.name for consumer in dra.consumers(claim)]
            ends = "ends" if len(users) == 1 else "end"
            until = f", which goes on until {listed(users, len(users))} {ends}" if users else ""
            yield Reason(text=f"claim {named.name} was deleted{until}")


def _not_made(views: Views, tree: JsonObject) -> Iterator[Reason]:
    """What the claim controller said last about a claim that is still missing."""
    pod = pods.facts(tree)
    if not any(entry.template and _is_unmade(pod, entry) for entry in pod.entries):
        return
    said: Event | None = None
    for key in views.objects.keys(*api_resources.EVENTS, pod.namespace):
        event = views.objects.event(key)
        if event is None or event.object.get("reason") != FAILED_CLAIM:
            continue
        is_about = core.event_object(event.object).involved_object.uid == pod.uid
        if is_about and (said is None or event.revision > said.revision):
            said = event
    if said is not None:
        yield Reason(text=f"{FAILED_CLAIM}: {core.event_object(said.object).message}")


def _is_unmade(pod: pods.PodFacts, entry: pods.ClaimEntry) -> bool:
    return bool(pods.entry_claim(pod, entry).problem)
