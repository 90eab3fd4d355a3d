"""Controllers that are off and scheduling gates: they hold a pod back until somebody acts."""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import pairwise

from app.analysis.explain import sources
from app.analysis.explain.observed import announcements
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.explain.workloads import admission
from app.domain.controllers import pods, switching
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.service.explaining.evidence import ExplainedMoment

_OTHERS_MAX = 10
"""Other pods of a namespace that are read for the removal of a gate, the newest first."""


async def switched_off(evidence: ExplainedMoment, pod: JsonObject) -> list[Reason]:
    """The controllers that are off without which the pod goes on waiting, with who did it."""
    off = switching.switched_off(evidence.views.objects)
    needed = [(name, so) for name, so in _needed(pod, evidence.rules.profiles) if name in off]
    events = await evidence.changes(switching.KUBE_SYSTEM) if needed else []
    reasons: list[Reason] = []
    for name, so in needed:

        def is_off(tree: JsonView, name: str = name) -> bool:
            return name in switching.named(tree)

        text = f"controller {name} is off, so {so}"
        since = sources.since(events, is_off)
        if since is None or not evidence.sight.sees(since):
            reasons.append(Reason(text=text, about=switching.KUBE_SYSTEM, is_kept=True))
        else:
            made = sources.made(since, f"{text}; switched off")
            reasons.append(replace(made, is_kept=True))
    return reasons


def _needed(pod: JsonView, profiles: Set[str]) -> Iterator[tuple[str, str]]:
    """The controllers that have to act on a pod before it gets a node, and what they do not do."""
    facts = pods.facts(pod)
    if any(entry.template and not pods.entry_claim(facts, entry).name for entry in facts.entries):
        yield "claims", "no claim is made for the pod"
    if pod_spec.is_ours(pod, profiles) and not core.has_node(pod):
        yield "scheduling", "redra's scheduler does not place the pod"


async def gates(evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject) -> list[Reason]:
    """The authors of a pod's scheduling gates, who removed them elsewhere, and queues' words."""
    names = _names(tree)
    if not names:
        return []
    events = await evidence.changes(key)
    set_by = [one for name in names[:NAMES_MAX] for one in _setting(events, name)]
    removed = [
        Reason(
            text=f"gate {name} was removed from pod {event.key.namespace}/{event.key.name}, "
            f"{sources.by(event)}; of this pod nobody has removed it",
            revision=event.revision,
            about=event.key,
            is_kept=True,
        )
        for name, event in (await _removals(evidence, key, names)).items()
    ]
    said = announcements.of_gates(tree)
    return [*said, *set_by, *removed, *admission.reasons(evidence.views, tree)]


def _names(pod: JsonView) -> list[str]:
    return [entries.name(gate) for gate in core.scheduling_gates(pod)]


def _setting(events: Sequence[Event], name: str) -> Iterator[Reason]:
    """The write that gave a pod its gate; none where the gate is older than the recording."""
    event = sources.since(events, lambda tree: name in _names(tree))
    if event is not None and sources.creation(events) is not None:
        text = f"gate {name} was set with the pod, {sources.by(event)}"
        yield Reason(text=text, revision=event.revision, about=event.key, is_kept=True)


async def _removals(
    evidence: ExplainedMoment, key: ObjectKey, names: Iterable[str]
) -> dict[str, Event]:
    """The newest removal of each gate from another pod of the namespace."""
    objects = evidence.views.objects
    others = [
        (event.revision, other)
        for other in objects.keys(*api_resources.PODS, key.namespace)
        if other != key and evidence.sight.sees_key(other)
        for event in [objects.event(other)]
        if event is not None and not core.scheduling_gates(event.object)
    ]
    removals: dict[str, Event] = {}
    for _, other in sorted(others, reverse=True)[:_OTHERS_MAX]:
        for after, before in pairwise(await evidence.changes(other)):
            if meta.uid(after.object) != meta.uid(before.object):
                continue
            gone = {*_names(before.object)} - {*_names(after.object)}
            for name in gone.intersection(names):
                if name not in removals or removals[name].revision < after.revision:
                    removals[name] = after
    return {name: removals[name] for name in names if name in removals}
