"""The explanation of a claim: its state, and the recomputed choice of its devices."""

from collections.abc import Sequence
from dataclasses import replace

from app.analysis.explain import choices, sources
from app.analysis.explain import claims as claim_reasons
from app.analysis.explain import decisions as decision_reasons
from app.analysis.explain import pods as pod_reasons
from app.analysis.explain.choices import Choice
from app.analysis.explain.hardware import selected
from app.analysis.explain.questions import ObjectExplanation, Question
from app.analysis.explain.reasons import Reason
from app.analysis.explain.tallies import devices_text
from app.domain.controllers.resources import pod_key
from app.domain.errors import NotFound
from app.domain.log import Event, ObjectKey
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.explaining import closed_nodes, pods, published, selections
from app.service.explaining.evidence import ExplainedMoment, body, drive


async def answer(
    evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject, question: Question
) -> ObjectExplanation:
    """The claim's state, devices and consumers, and why these devices or none were chosen."""
    subject = f"resourceclaim {key.namespace}/{key.name}"
    decision = next(iter(await evidence.decisions(key)), None)
    events = await evidence.changes(key)
    children = list(
        claim_reasons.state_of(
            evidence.views, events, tree, evidence.rules.quirks, await evidence.now()
        )
    )
    for node in claim_reasons.nodes_of_users(evidence.views, tree):
        children += await closed_nodes.deleted(evidence, node)
    results = dra.results(tree)
    is_allocated = dra.allocation(tree) is not None
    details: JsonObject = {}
    if results:
        children += await published.renewed(evidence, results)
        children += await published.withdrawn(evidence, events, tree, results)
        children += await selections.outgrown(evidence, tree, results)
        chosen = await _choice(evidence, key, tree, events, claim_reasons.consumers_of(tree))
        children += chosen.children
        details = chosen.details
    elif not is_allocated:
        users = claim_reasons.users_of(evidence.views, key, tree)
        if not users:
            children.append(Reason(text=_unused(evidence, events, key.namespace)))
        for user in users[:1]:
            user_answer = await _of_user(evidence, replace(question, kind="pod", name=user))
            if user_answer is not None:
                children.append(
                    Reason(text=user_answer.subject, children=user_answer.reason.children)
                )
                details = user_answer.details
    if decision is not None:
        children.append(decision_reasons.reason_of(decision))
    outcome = "Allocated" if is_allocated else "Pending"
    devices = devices_text(len({result.id for result in results}))
    if len({result.id for result in results}) < len(results):
        devices = f"{len(results)} shares of {devices}"
    devices = devices if results else "no device is allocated"
    if is_allocated and not results:
        devices = "its allocation names no device"
        if sources.is_printed(events):
            devices = "its devices were not recorded"
    return ObjectExplanation(
        subject=subject,
        outcome="Terminating" if meta.is_deleting(tree) else outcome,
        revision=evidence.views.revision,
        text=devices,
        reason=Reason(text=subject, children=tuple(children)),
        decision=body(decision),
        details=details,
    )


def _unused(evidence: ExplainedMoment, events: Sequence[Event], namespace: str) -> str:
    """The reason why no pod is named: none uses the claim, or the recording does not show it."""
    is_shown = claim_reasons.users_are_shown(evidence.views, namespace)
    if sources.is_recorded(events) and not is_shown:
        return "the recording does not show which pod uses the claim"
    return "no pod uses the claim, so no devices are requested"


async def _of_user(evidence: ExplainedMoment, question: Question) -> ObjectExplanation | None:
    key = pod_key(question.namespace, question.name)
    tree = evidence.views.objects.get(key)
    if tree is None:
        return None
    try:
        return await pods.answer(evidence, key, tree, question)
    except NotFound:
        return None


async def _choice(
    evidence: ExplainedMoment,
    key: ObjectKey,
    tree: JsonObject,
    events: Sequence[Event],
    users: Sequence[str],
) -> Choice:
    """The reasons for these devices: the allocation, recomputed at the moment it was made."""
    moment = choices.moment_of(events, tree)
    # The devices were chosen for the consumers of that time, which may have been deleted since.
    chosen_for = (
        claim_reasons.consumers_of(event.object) for event in events if event.revision == moment
    )
    users = next(filter(None, chosen_for), users)
    if moment is None or not users:
        text = "the history does not show who chose these devices"
        if moment is None and len(events) == evidence.bounds.cause_changes_max:
            text = f"the last {len(events)} changes of the claim do not show who chose its devices"
        return Choice(children=(Reason(text=text),))
    decisions = await evidence.decisions(pod_key(key.namespace, users[0]), until=moment)
    before = choices.revision_before(decisions, moment)
    node = choices.node_of(evidence.views, key.namespace, users[0], tree)
    if not node:
        states = await evidence.changes(pod_key(key.namespace, users[0]))
        node = next(filter(None, (core.node_name(event.object) for event in states)), "")
    views = await evidence.views_at(before)
    pod = views.objects.get(pod_key(key.namespace, users[0]))
    if pod is None or not node:
        text = (
            "the state of the pod or its node at that time is not known, so the choice is not "
            "made again"
        )
        return Choice(children=(Reason(text=text),))
    rules = await evidence.rules_at(views)
    reasons = pod_reasons.waiting(
        rules, views, pod, evidence.bounds,
        now=Instant(0), node=node, help=None, reads_events=evidence.sight.reads_events,
        sees_key=evidence.sight.sees_key,
    )  # fmt: skip
    try:
        chosen = await drive(reasons)
    except NotFound:
        text = f"node {node} has no known state at that time, so the choice is not made again"
        return Choice(children=(Reason(text=text),))
    choice = choices.compared(chosen, key, tree, before)
    children = await drive(selected.with_values(views, choice.children))
    choice = replace(choice, children=children)
    own = choices.ranks(tree, [result.request for result in dra.results(tree)])
    if not any(own.values()):
        return choice
    better = await drive(
        choices.elsewhere(
            rules, views, pod, tree, own,
            name=f"{key.namespace}/{key.name}", node=node,
            nodes_max=evidence.bounds.help_nodes_max,
        )
    )  # fmt: skip
    return replace(choice, children=(*better, *choice.children))
