"""Controllers that a waiting pod needs and that a user has switched off."""

from collections.abc import Iterator, Set
from dataclasses import replace

from app.analysis.explain import sources
from app.analysis.explain.reasons import Reason
from app.domain.controllers import pods, switching
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonObject, JsonView
from app.service.explaining.evidence import ExplainedMoment


async def reasons(evidence: ExplainedMoment, pod: JsonObject) -> list[Reason]:
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
