"""Preemption: why pods were evicted for another pod, and which terminating pods a pod waits for."""

from collections.abc import Iterator, Sequence

from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.tallies import nodes_text
from app.domain.controllers.resources import pod_key
from app.domain.controllers.scheduling.scheduling_cycle import default_preemption
from app.domain.log import Event, EventType
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, event_reasons
from app.domain.values.fields import core, decision_body, meta
from app.domain.values.fields.decision_body import PreemptionSummary
from app.domain.values.json_tree import JsonView

EFFECTS_MAX = 512
"""The number of events before a victim's condition that are searched for its decision."""


def chosen_text(preemption: PreemptionSummary) -> str:
    """The text of a decision about its victims; empty when it has none."""
    victims = preemption.victims
    if not victims:
        return ""
    count = preemption.victims_count or len(victims)
    text = f"evicted {listed(victims, count)} on node {preemption.node} for it: "
    text += _cost_text(preemption)
    return text


def awaited(objects: ObjectsReader, pod: JsonView) -> list[Reason]:
    """The terminating victims that a pod waits for on its nominated node."""
    node = core.nominated_node_name(pod)
    if not node or core.node_name(pod):
        return []
    ending: list[Reason] = []
    for key in objects.keys(*api_resources.PODS):
        tree = objects.get(key)
        if tree is None or core.node_name(tree) != node:
            continue
        if default_preemption.is_victim(objects, (key.namespace, key.name)):
            until = meta.deletion_timestamp(tree)
            ending.append(Reason(text=f"{key.namespace}/{key.name} ends by {until}"))
    if not ending:
        return [Reason(text=f"node {node} is kept for it (status.nominatedNodeName)")]
    which = "an evicted pod ends" if len(ending) == 1 else f"{len(ending)} evicted pods end"
    text = f"waits until {which} on node {node}, which is kept for it"
    return [Reason(text=text, children=tuple(ending))]


def declined(objects: ObjectsReader, pod: JsonView) -> Iterator[Reason]:
    """The policy for which a waiting pod evicts none, where pods of lower priority are placed."""
    spec, own = meta.spec(pod), core.priority(pod) or 0
    if spec.get("preemptionPolicy") != "Never":
        return
    others = (objects.get(key) or {} for key in objects.keys(*api_resources.PODS))
    if any(core.has_node(other) and (core.priority(other) or 0) < own for other in others):
        name = spec.get("priorityClassName")
        text = "the pod evicts none of lower priority: its preemptionPolicy is Never"
        yield Reason(text=f"{text}, by PriorityClass {name}" if name else text, is_kept=True)


def decision_about(events: Sequence[Event], victim: JsonView) -> Event | None:
    """The decision that evicted a pod; `events` come before its condition, oldest first."""
    wanted = _place(victim)
    for event in reversed(events):
        if event.type is not EventType.DECISION_RECORDED:
            continue
        preemption = decision_body.summary_of(event.object).preemption
        is_cut = preemption.victims_count > len(preemption.victims)
        if wanted in preemption.victims or is_cut:
            return event
    return None


def evicted_for(
    decision: Event | None, objects: ObjectsReader, victim: JsonView
) -> Iterator[Reason]:
    """For which pod a victim was evicted and why; `objects` are those before the eviction."""
    if decision is None:
        yield from _reported(objects, victim)
        return
    summary = decision_body.summary_of(decision.object)
    namespace, name = decision_body.read(decision.object).place
    other = objects.get(pod_key(namespace, name)) or {}
    yield Reason(
        text=f"for pod {namespace}/{name} of priority {_priority(other)}; "
        f"its own is {_priority(victim)}",
        children=(Reason(text=summary.message),),
    )
    preemption = summary.preemption
    others = [name for name in preemption.victims if name != _place(victim)]
    count = (preemption.victims_count or 1) - 1
    also = f"with {listed(others, count)}; " if others else ""
    yield Reason(text=f"on node {preemption.node}: {also}{_cost_text(preemption)}")


def _reported(objects: ObjectsReader, victim: JsonView) -> Iterator[Reason]:
    """The message of the Event, when the decision is not in the history."""
    uid = meta.uid(victim)
    namespace = meta.namespace(victim)
    for key in objects.keys(*api_resources.EVENTS, namespace):
        event_object = core.event_object(objects.get(key) or {})
        if (
            event_object.involved_object.uid == uid
            and event_object.reason == event_reasons.PREEMPTED
        ):
            yield Reason(text=event_object.message)


def _cost_text(preemption: PreemptionSummary) -> str:
    violations = preemption.violations
    text = "no other node would fit by evictions"
    if preemption.candidates > 1:
        text = f"the cheapest of {nodes_text(preemption.candidates)} that would fit by evictions"
    if violations:
        budgets = "a disruption budget" if violations == 1 else "disruption budgets"
        text += f"; {violations} against {budgets}"
    return text


def _place(pod: JsonView) -> str:
    return f"{meta.namespace(pod)}/{meta.name(pod)}"


def _priority(pod: JsonView) -> int:
    return core.priority(pod) or 0
