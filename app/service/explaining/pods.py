"""The explanation of a pod: its state, its attempts, its devices and their taints."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from app.analysis.explain import attempts, choices, circumstances, lives, scores, sources, verdicts
from app.analysis.explain import decisions as decision_reasons
from app.analysis.explain import devices as device_reasons
from app.analysis.explain import pods as pod_reasons
from app.analysis.explain import preemption as preemption_reasons
from app.analysis.explain.attempts import PodAttempt
from app.analysis.explain.hardware import devices as hardware
from app.analysis.explain.hardware import selected
from app.analysis.explain.nearby import successors, volumes
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.observed import announcements, containers, kubelet_logs
from app.analysis.explain.pods import PodFindings, WantedHelp
from app.analysis.explain.questions import ObjectExplanation, Question
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.verdicts import SchedulerMessage
from app.domain.allocation.reasons.explanation import CANNOT_ALLOCATE
from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling.plugins.dynamic_resources import pod_claims
from app.domain.devices.nodes import node_of
from app.domain.log import Event, ObjectKey, Revision
from app.domain.values import api_resources, condition_types, counts
from app.domain.values.fields import core, decision_body, dra, meta
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.explaining import (
    absent,
    closed_nodes,
    disruption,
    former_circumstances,
    holds,
    lost_claims,
    node_states,
    published,
    refusals,
    selections,
    taints,
    templates,
    unfinished,
)
from app.service.explaining.evidence import ExplainedMoment, body, drive


async def answer(
    evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject, question: Question
) -> ObjectExplanation:
    """The pod's state, its causes and then what was decided. Raises NotFound without the node."""
    node = core.node_name(tree)
    decisions = await evidence.decisions(key)
    decision = next(iter(decisions), None)
    if node and not question.node:
        return await _placed(evidence, key, tree, decisions)
    is_going = meta.is_deleting(tree)
    observed = await evidence.observed(key)
    events = [event for event in observed if event.is_about_object]
    if not node and (sources.is_printed(events) if is_going else core.needs_no_node(tree)):
        return await _somewhere(evidence, key, tree)
    above: list[Reason] = []
    after: tuple[Reason, ...] = ()
    decided = [] if decision is None else [decision_reasons.reason_of(decision)]
    details: JsonObject = {}
    if node:
        placed = await _when_placed(evidence, key, tree, question)
    elif is_going:
        ending = tuple(lives.of_pod(evidence.views, events, tree))
        placed = PodFindings(text="is being deleted and was never placed", children=ending)
    else:
        above += preemption_reasons.awaited(evidence.views.objects, tree)
        own = attempts.made_by_scheduler(decisions)[::-1]
        tried = attempts.of_decisions(own, await evidence.repeated_attempts(own))
        above += attempts.failed_bindings(tried)
        placed = await _findings(evidence, tree, decision, question)
        children = placed.children
        children = await evidence.run(lambda views: selected.with_values(views, children))
        placed = replace(placed, children=children)
        attempt_reasons = attempts.reasons(
            tried,
            await _causes(evidence, tried),
            await evidence.now(),
            has_claims=pod_claims.are_there(evidence.views.objects, pods.facts(tree)),
        )
        about = evidence.views.objects if evidence.sight.reads_events else None
        verdict = None if tried else verdicts.last(about, tree, events, observed)
        placed = await absent.without_unrecorded(evidence, tree, placed, verdict)
        placed = _without_unknown_claims(placed, tree, events, verdict)
        if verdict is not None:
            causes = []
            if placed.nodes and not verdicts.agrees(verdict, placed.nodes):
                causes.append(await refusals.reason(evidence, key, verdict))
                placed = replace(placed, text=_beside_refusal(placed))
            said = verdicts.reason(verdict, placed.nodes, *causes)
            (decided if placed.nodes and not causes else above).append(said)
            details["recorded"] = verdicts.to_json(verdict, placed.nodes)
            if not evidence.views.objects.keys(*api_resources.NODES):
                placed = replace(placed, text=verdicts.ALONE)
        elif placed.text == pod_reasons.NO_NODES and sources.is_recorded(events):
            placed = replace(placed, text=verdicts.NO_NODE_RECORDED)
        above += await gates(evidence, key, tree)
        if about is not None:
            above += announcements.about(about, tree)
        placed = await _with_origins(evidence, tree, placed)
        after = (*attempt_reasons, *(() if tried else lives.origin(events)))
    outcome = decision_body.read(body(decision)).outcome or "Pending"
    subject = f"pod {key.namespace}/{key.name}"
    return ObjectExplanation(
        subject=subject,
        outcome="Scheduled" if node else "Terminating" if is_going else outcome,
        revision=evidence.views.revision,
        text=placed.text,
        reason=Reason(text=subject, children=(*above, *placed.children, *decided, *after)),
        decision=body(decision),
        details={**placed.to_json(), **details},
    )


async def gates(evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject) -> list[Reason]:
    """The authors of a pod's scheduling gates, who removed them elsewhere, and queues' words."""
    return await holds.gates(evidence, key, tree)


async def _placed(
    evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject, decisions: Sequence[Event]
) -> ObjectExplanation:
    """The explanation of a pod with a node: its state there, what delays its start, its devices."""
    events = await evidence.changes(key)
    decision = next(iter(decisions), None)
    quirks = evidence.rules.quirks
    now = await evidence.now()
    state = await _state_reasons(evidence, key, tree, events)
    decided = [] if decision is None else [decision_reasons.reason_of(decision)]
    if attempts.made_by_scheduler(decisions) and not core.is_finished(tree):
        decided += volumes.unjudged(evidence.views, tree, evidence.rules)
    holdings = await evidence.run(lambda views: device_reasons.claims_of(views, tree, quirks, now))
    held = _held(evidence, tree)
    patched = [line for result in held for line in hardware.patched(evidence.views, result.id)]
    changed = await published.renewed(evidence, held)
    for claim in _claims(evidence, tree):
        results = dra.results(claim)
        changed += await selections.outgrown(evidence, claim, results)
        named = claim_key(key.namespace, meta.name(claim))
        changes = await evidence.changes(named)
        changed += await published.withdrawn(evidence, changes, claim, results)
    chosen = await _scores(evidence, key, tree, decisions)
    # What was written since the allocation comes before the devices, which may be many.
    devices = (*changed, *holdings, *patched)
    subject = f"pod {key.namespace}/{key.name}"
    return ObjectExplanation(
        subject=subject,
        outcome=_outcome(tree),
        revision=evidence.views.revision,
        text=await _place_text(evidence, events, tree),
        reason=Reason(text=subject, children=(*state, *decided, *devices, *chosen)),
        decision=body(decision),
    )


async def causes(evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject) -> PodFindings:
    """The causes that keep a pod from running, as text and as reasons, without its attempts."""
    if core.has_node(tree) or core.needs_no_node(tree) or meta.is_deleting(tree):
        events = await evidence.changes(key)
        node = core.node_name(tree)
        text = await _place_text(evidence, events, tree) if node else _state(tree)
        state = await _state_reasons(evidence, key, tree, events)
        return PodFindings(text=text, children=tuple(state))
    decision = next(iter(await evidence.decisions(key)), None)
    question = Question(kind="pod", namespace=key.namespace, name=key.name)
    waiting = await _findings(evidence, tree, decision, question)
    children = waiting.children
    children = await evidence.run(lambda views: selected.with_values(views, children))
    return await _with_origins(evidence, tree, replace(waiting, children=children))


async def losses(
    evidence: ExplainedMoment, tree: JsonObject, nodes: Sequence[NodeReason]
) -> list[Reason]:
    """The writes that took devices or amounts from nodes, and those that set taints of devices."""
    former = await former_circumstances.reasons(evidence, tree, nodes)
    return [*former, *await taints.reasons(evidence, nodes)]


async def _with_origins(
    evidence: ExplainedMoment, tree: JsonObject, placed: PodFindings
) -> PodFindings:
    """The findings about a waiting pod, after the writes that made their causes so.

    A taint or a cordon without which its nodes would not take the pod, either, stands behind them.
    """
    refused = meta.condition(tree, condition_types.POD_SCHEDULED)
    is_tried_here = refused is None or not evidence.info.is_decided_elsewhere
    nodes = placed.nodes
    deciding, others = await closed_nodes.reasons(evidence, tree, nodes)
    former = await former_circumstances.reasons(evidence, tree, nodes)
    gone: list[Reason] = []
    if nodes or not evidence.views.objects.keys(*api_resources.NODES):
        gone = await closed_nodes.withdrawn(evidence, tree, {each.about for each in former})
    first = [
        *await absent.reasons(evidence, tree, [one.text for one in nodes]),
        *await absent.accounts(evidence, meta.namespace(tree), tree),
        *await holds.switched_off(evidence, tree),
        *former,
        *gone,
        *deciding,
        *await selections.reasons(evidence, tree, nodes),
        *await templates.reasons(evidence, tree),
        *await templates.replaced(evidence, tree),
        *await taints.reasons(evidence, nodes),
        *await unfinished.reasons(evidence, nodes),
        *await published.under_claims(evidence, tree),
        *await published.taken_away(evidence, tree, nodes, former),
        *published.useless(evidence, tree, nodes),
    ]
    is_judged = not nodes or not is_tried_here
    unjudged = () if is_judged else volumes.unjudged(evidence.views, tree, evidence.rules)
    last = [
        *others,
        *await closed_nodes.to_drivers(evidence, circumstances.without_devices(nodes)),
        *unjudged,
    ]
    return replace(placed, children=(*first, *placed.children, *last))


async def _state_reasons(
    evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject, events: Sequence[Event]
) -> list[Reason]:
    """The reasons for the state of a pod that has, had or needs no node."""
    state = await disruption.of(evidence, key)
    unseen = await lost_claims.unseen(evidence, events, tree)
    state += lost_claims.unseen_reasons(unseen)
    state += lives.of_pod(evidence.views, events, tree, unseen)
    if not core.is_finished(tree):
        state += await closed_nodes.deleted(evidence, core.node_name(tree))
        state += await absent.accounts(evidence, key.namespace, tree)
    state += await lost_claims.reasons(evidence, tree, unseen)
    state += await _held_up(evidence, key, tree)
    return state + containers.reasons(evidence.views, tree)


async def _held_up(evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject) -> list[Reason]:
    """The reasons why a pod does not run on its node: what its kubelet said, and its status.

    When devices could not be prepared, a driver may have left the node: the pods of the node that
    were deleted before are named, and those that fail.
    """
    is_ending = lives.is_ending(tree)
    if not is_ending and not lives.is_starting(tree) and not lives.is_failing(tree):
        return []
    warnings: Mapping[str, lives.KubeletWarning] = {}
    if evidence.sight.reads_events:
        warnings = lives.warnings(evidence.views.objects.unusual_events(meta.namespace(tree)))
    if is_ending:
        warning = lives.warning_of_end(warnings, tree)
        return [] if warning is None else [await _warning_reason(evidence, warning, tree)]
    warning = lives.warning_about(warnings, tree)
    warning = warning or await node_states.expired_warning(evidence, key, tree)
    reasons = [*lives.held_up(warning, tree)]
    requests = await evidence.observed(key)
    if warning is None:
        reasons += kubelet_logs.failures(requests)
    newest = partial(lives.newest_report, evidence.views)
    silent = lives.silence(evidence.views, tree, await evidence.now(), newest)
    if silent and not reasons and not kubelet_logs.is_logged(requests):
        return [Reason(text=silent, is_kept=True)]
    if warning is not None and reasons:
        reasons[0] = await _warning_reason(evidence, warning, tree)
    reasons += await node_states.reboots(evidence, key, tree)
    return reasons + node_states.unready(evidence, tree)


async def _warning_reason(
    evidence: ExplainedMoment, warning: lives.KubeletWarning, tree: JsonObject
) -> Reason:
    """A kubelet's warning; one about a driver has the node's pods that were deleted, or fail."""
    report = lives.warning_reason(warning, tree)
    held = [result.id for result in _held(evidence, tree)]
    drivers = {driver for driver, _, _ in held}
    if warning.reason != lives.FAILED_PREPARE and not any(
        driver and driver in warning.message for driver in drivers
    ):
        return report
    first = await evidence.changes(warning.event.key)
    revision = min((event.revision for event in first), default=warning.event.revision)
    drivers_pods = await former_circumstances.of_drivers(evidence, revision, core.node_name(tree))
    node = evidence.views.objects.get(ObjectKey(*api_resources.NODES, "", core.node_name(tree)))
    places = [] if node is None else [node_of(node)]
    renamed = successors.of_other_drivers(evidence.views, held, places)
    return replace(report, children=(*drivers_pods, *renamed))


async def _somewhere(
    evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject
) -> ObjectExplanation:
    """The explanation of a pod that has no node and waits for none; a recording may lack it."""
    events = await evidence.changes(key)
    subject = f"pod {key.namespace}/{key.name}"
    waits = (Reason(text=text, is_kept=True) for text in lives.waiting_containers(tree))
    is_known = core.is_finished(tree) and not sources.is_recorded(events)
    place = " and never had a node" if is_known else "; its node was not recorded"
    if meta.is_deleting(tree):
        children = (*waits, *lives.ending(events, tree), *lives.origin(events))
    else:
        children = (*waits, *lives.of_pod(evidence.views, events, tree), *lives.origin(events))
    return ObjectExplanation(
        subject=subject,
        outcome=_outcome(tree),
        revision=evidence.views.revision,
        text=f"{_state(tree)}{place}",
        reason=Reason(text=subject, children=children),
    )


def _held(evidence: ExplainedMoment, tree: JsonObject) -> list[DeviceResult]:
    """The devices of the claims that the pod names."""
    return [result for claim in _claims(evidence, tree) for result in dra.results(claim)]


def _claims(evidence: ExplainedMoment, tree: JsonObject) -> list[JsonObject]:
    """The claims that the pod names, as far as they exist."""
    pod = pods.facts(tree)
    keys = [claim_key(pod.namespace, named.name or "") for named in pods.named_claims(pod)]
    trees = [evidence.views.objects.get(key) for key in keys]
    return [claim for claim in trees if claim is not None]


async def _scores(
    evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject, decisions: Sequence[Event]
) -> list[Reason]:
    """The reasons why this node won over the others that fit, recomputed at its decision."""
    for event in attempts.made_by_scheduler(decisions):
        decision = decision_body.read(event.object)
        summary = decision_body.summary_of(event.object)
        if decision.outcome not in choices.SUCCESSES or (summary.feasible or 0) < 2:
            continue
        views = await evidence.views_at(Revision(event.revision - 1))
        unbound = views.objects.get(key)
        if unbound is None or core.node_name(unbound):
            continue
        return await drive(
            scores.reasons(
                await evidence.rules_at(views), views, unbound, core.node_name(tree),
                now=event.stamp.time, start=decision.inputs.start,
            )
        )  # fmt: skip
    return []


async def _causes(evidence: ExplainedMoment, tried: Sequence[PodAttempt]) -> dict[int, Event]:
    """The events that caused the attempts that are shown, by revision."""
    events: dict[int, Event] = {}
    for revision in attempts.causes_of(attempts.shown(tried)):
        if revision not in events and (event := await evidence.event(revision)) is not None:
            events[revision] = event
    return events


async def _when_placed(
    evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject, question: Question
) -> PodFindings:
    """The verdict of a node about a bound pod, at the moment when the pod was placed.

    The present state says nothing about that: later pods may use the node, and the pod's claims
    are bound to its own node now.
    """
    bound = choices.first_with(await evidence.changes(key), "spec", "nodeName")
    if bound is None:
        return PodFindings(text="when it was placed is not in the history", children=())
    written = [bound.revision]
    pod = pods.facts(tree)
    for entry in pods.named_claims(pod):
        claim = claim_key(key.namespace, entry.name or "")
        allocated = choices.first_with(await evidence.changes(claim), "status", "allocation")
        if allocated is not None and pods.is_reserved_for(allocated.object, pod.uid):
            written.append(allocated.revision)
    decisions = await evidence.decisions(key, until=min(written))
    before = choices.revision_before(decisions, min(written))
    views = await evidence.views_at(before)
    unbound = views.objects.get(key)
    if unbound is None:
        return PodFindings(text="it was made for its node, so no other was asked", children=())
    reasons = pod_reasons.waiting(
        await evidence.rules_at(views), views, unbound, evidence.bounds,
        now=bound.stamp.time, node=question.node, help=WantedHelp() if question.help else None,
        reads_events=evidence.sight.reads_events, sees_key=evidence.sight.sees_key,
    )  # fmt: skip
    answer = await drive(reasons)
    return replace(answer, text=f"when it was placed (revision {before}), {answer.text}")


async def _findings(
    evidence: ExplainedMoment, tree: JsonObject, decision: Event | None, question: Question
) -> PodFindings:
    now = Instant(decision.stamp.time if decision is not None else 0)
    wanted = await closed_nodes.wanted_help(evidence, tree) if question.help else None
    return await evidence.run(
        lambda views: pod_reasons.waiting(
            evidence.rules,
            views,
            tree,
            evidence.bounds,
            now=now,
            node=question.node,
            help=wanted,
            reads_events=evidence.sight.reads_events,
            sees_key=evidence.sight.sees_key,
        )
    )


def _without_unknown_claims(
    placed: PodFindings, tree: JsonObject, events: Sequence[Event], verdict: SchedulerMessage | None
) -> PodFindings:
    """The findings; without answers of nodes for a printed pod that was refused for its claims.

    kubectl prints no claims of a pod, so each node would take the pod as it is known.
    """
    is_known = verdict is None or CANNOT_ALLOCATE not in verdict.message
    if is_known or core.resource_claims(tree) or not sources.is_printed(events):
        return placed
    return replace(placed, text=verdicts.NO_CLAIMS, nodes=(), children=())


def _beside_refusal(placed: PodFindings) -> str:
    """The text of findings that a recorded refusal contradicts, if any node would take the pod."""
    if all(node.text for node in placed.nodes):
        return placed.text
    return f"refused by the recorded scheduler; tried again, {placed.text}"


def _state(tree: JsonObject) -> str:
    """The state of a pod whose node is not known, as text."""
    if core.is_finished(tree):
        return "has finished"
    if meta.is_deleting(tree):
        return "is being deleted"
    if meta.phase(tree) == "Running":
        return "runs"
    return "has a node and has not started" if meta.phase(tree) == "Pending" else "has a node"


def _outcome(tree: JsonObject) -> str:
    if core.is_finished(tree):
        return meta.phase(tree)
    return "Terminating" if meta.is_deleting(tree) else "Scheduled"


async def _place_text(evidence: ExplainedMoment, events: Sequence[Event], pod: JsonObject) -> str:
    node = core.node_name(pod)
    key = ObjectKey(*api_resources.NODES, "", node)
    unknown = ""
    if evidence.views.objects.event(key) is None:
        if not sources.is_recorded(events) or await evidence.changes(key):
            return f"is bound to node {node}, which is gone; PodGC removes it after 40 to 60 s"
        unknown = ", of which nothing was recorded"
    if core.is_finished(pod) and meta.is_deleting(pod) and meta.finalizers(pod):
        return f"has ended on node {node}{unknown}, and finalizers keep it"
    if core.is_finished(pod) and meta.is_deleting(pod):
        return f"has ended on node {node}{unknown}, and its kubelet has to confirm it"
    if meta.is_deleting(pod):
        return f"ends on node {node}{unknown}; its devices are free when it has"
    if core.is_finished(pod):
        return f"has ended on node {node}{unknown}"
    if condition := disruption.marked(pod):
        return f"is on node {node}{unknown} and is marked for disruption: {condition.reason}"
    if unseen := await lost_claims.unseen(evidence, events, pod):
        noun = counts.plural(len(unseen), "claim")
        place = "runs on" if meta.phase(pod) == lost_claims.RUNNING else "is bound to"
        claims = f"{noun} {listed(unseen, len(unseen))}"
        return f"{place} node {node}{unknown}; no allocation of {claims} for it was recorded"
    if lost := lost_claims.names(evidence, pod):
        claims = f"{counts.plural(len(lost), 'claim')} {listed(lost, len(lost))}"
        return f"runs on node {node}{unknown} and has lost {claims}"
    if meta.phase(pod) != lost_claims.RUNNING and [*lives.unready(evidence.views, events, pod)]:
        return f"is bound to node {node}{unknown} and cannot start there"
    if lives.is_starting(pod):
        return f"is bound to node {node}{unknown} and has not started there"
    if lives.is_initialising(pod):
        return f"is bound to node {node}{unknown}, where its init containers run"
    if lives.is_failing(pod):
        return f"is on node {node}{unknown}, where a container waits to run again"
    if withdrawn := _withdrawn(evidence, pod):
        these = "devices that are" if withdrawn > 1 else "a device that is"
        return f"runs on node {node}{unknown}, with {these} not published any more"
    return f"runs on node {node}{unknown}"


def _withdrawn(evidence: ExplainedMoment, pod: JsonObject) -> int:
    """The number of devices of a pod that the newest slices of their pools do not have."""
    return sum(
        len(list(device_reasons.unpublished(evidence.views, key, dra.results(claim))))
        for claim in _claims(evidence, pod)
        for key in [claim_key(meta.namespace(claim), meta.name(claim))]
    )
