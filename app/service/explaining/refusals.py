"""Refusals of the recorded scheduler for pods that nodes would take when they are tried again.

Two causes show in no object of that moment. Devices may have been in flight: promised to pods whose
claims were written a little later. Or the recorded scheduler may have seen DeviceTaintRules, unlike
its release, or may not have seen them although its release does (C24). Both are tried: if the nodes
then refuse as recorded, that is a possible cause. Otherwise the cause is not known.

A refusal for the volumes of a pod is not searched for: recorded pods are tried without regard to
them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

from msgspec import structs

from app.analysis import scheduler_messages, scheduling_rules
from app.analysis.explain import node_answers, verdicts
from app.analysis.explain.nearby import volumes
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.pods import Steps
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.explain.tallies import nodes_text
from app.analysis.explain.verdicts import SchedulerMessage
from app.analysis.recordings import uncertainty
from app.analysis.views import LiveViews
from app.domain.allocation.reasons.explanation import CANNOT_ALLOCATE
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import ClaimsNotReady
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects import profile as profiles
from app.domain.values import api_resources, counts, json_tree
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service import moments
from app.service.explaining import closed_nodes
from app.service.explaining.evidence import ExplainedMoment, drive


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variant:
    """The rules and profile that the recorded scheduler may have had, with a text about them."""

    rules: SchedulerRules
    profile: profiles.Profile
    text: str = ""

    def seen(self, views: LiveViews) -> LiveViews:
        """The views as that scheduler would have them."""
        if views.profile == self.profile:
            return views
        made = LiveViews(self.profile)
        made.load_objects(b"".join(views.objects.dump_parts()))
        return made


async def reason(evidence: ExplainedMoment, pod: ObjectKey, verdict: SchedulerMessage) -> Reason:
    """The first cause with which the nodes refuse as recorded, or that none is known."""
    if of_volumes := scheduler_messages.about_volumes(verdict.message):
        tree = evidence.views.objects.get(pod) or {}
        near = (
            *await closed_nodes.but_for_volumes(
                evidence,
                pod,
                await evidence.views_at(verdict.event.revision),
                Instant(verdict.event.stamp.time),
            ),
            *volumes.reasons(evidence.views, tree, is_elsewhere=True),
        )
        return Reason(text=_of_volumes(of_volumes), children=near, is_kept=True)
    refused = verdict.event.revision
    then = await evidence.views_at(refused)
    nodes = then.objects.count(*api_resources.NODES)
    if nodes > evidence.bounds.refusal_nodes_max:
        text = f"why it was refused is not known: {nodes} nodes are too many to be tried again"
        return Reason(text=text, is_kept=True)
    later = await _allocated_later(evidence, pod, then)
    variants = [*_variants(await _as_of(evidence, then), then)]
    for number in range(len(later) + 1):
        in_flight = later[:number]
        revision = in_flight[-1].revision if in_flight else refused
        views = then if not in_flight else await evidence.views_at(Revision(revision))
        for variant in variants:
            answers = await _ask(variant, views, pod, Instant(verdict.event.stamp.time))
            if answers and verdicts.agrees(verdict, answers):
                return _possible(variant, in_flight, refused)
    tried = ["as of the refusal"]
    if later:
        tried.append(
            "after the later allocation"
            if len(later) == 1
            else f"after each of {len(later)} later allocations"
        )
    if len(variants) > 1:
        tried.append("with and without DeviceTaintRules")
    text = f"why it was refused is not known: tried again {', '.join(tried)}, the nodes give "
    text += "another answer"
    doubt = uncertainty.NO_CAUSE
    is_of_devices = CANNOT_ALLOCATE in verdict.message
    known = scheduler_messages.counted_nodes(verdict.message)
    if known and known != nodes:
        text += f"; it knew {counts.of(known, 'node')}, and the recording has {nodes}: a change of "
        text += "nodes may be missing"
        answers = await _ask(variants[0], then, pod, Instant(verdict.event.stamp.time))
        text += _unknown(verdict, answers, nodes - known, evidence.bounds.refusal_choices_max)
    elif is_of_devices and evidence.lacks_rules(then) and not then.profile.ignores_rules:
        text += "; a DeviceTaintRule may be the cause, but none was recorded"
        doubt = uncertainty.NO_RULE
    return Reason(text=text, is_kept=True, unexplained=doubt)


def _unknown(
    verdict: SchedulerMessage, nodes: Sequence[NodeReason], count: int, choices_max: int
) -> str:
    """The nodes without which the others give the recorded answer, as text; empty if none do.

    The scheduler knew `count` nodes less than the recording has, and none that takes the pod. Of
    more than `choices_max` choices none is named.
    """
    free = [one for one in nodes if not one.text]
    others = [one for one in nodes if one.text]
    left = count - len(free)
    if count < 1 or not 0 <= left < len(others) or comb(len(others), left) > choices_max:
        return ""
    choices: list[tuple[NodeReason, ...]] = []
    is_answer: dict[tuple[str, ...], bool] = {}
    for left_out in combinations(others, left):
        # Nodes that say the same are alike here; of a large cluster, most do.
        texts = tuple(sorted(one.text for one in left_out))
        if texts not in is_answer:
            names = {one.node for one in left_out}
            rest = [one for one in others if one.node not in names]
            is_answer[texts] = verdicts.agrees(verdict, rest)
        if is_answer[texts]:
            choices.append((*free, *left_out))
    if not 0 < len(choices) <= NAMES_MAX:
        return ""
    noun = counts.plural(count, "node")
    without = [
        f"without {noun} {' and '.join(one.node for one in left_out)}" for left_out in choices
    ]
    return f"; {', or '.join(without)}, the nodes give the recorded answer"


def _of_volumes(reasons: Sequence[tuple[str, int]]) -> str:
    lines = [f"{text} ({nodes_text(count)})" if count else text for text, count in reasons]
    return (
        "the scheduler refused the pod for its volumes, at which redra does not look when it tries "
        f"again (A18): {listed(lines, len(lines))}"
    )


def _possible(variant: _Variant, in_flight: list[Event], refused: int) -> Reason:
    parts = [variant.text] if variant.text else []
    if in_flight:
        names = [f"{event.key.namespace}/{event.key.name}" for event in in_flight]
        noun = counts.plural(len(names), "claim")
        parts.append(
            f"devices that were written for {noun} {listed(names, len(names))} later may have been "
            "in flight"
        )
    if not parts:
        text = (
            f"tried again as of revision {refused}, the nodes give the same answer; "
            "now they give another"
        )
        return Reason(text=text, is_kept=True)
    text = f"a possible cause, with which the nodes give the same answer: {', and '.join(parts)}"
    revision = in_flight[-1].revision if in_flight else 0
    about = in_flight[-1].key if in_flight else None
    return Reason(text=text, revision=revision, about=about, is_kept=True)


async def _as_of(evidence: ExplainedMoment, views: LiveViews) -> ExplainedMoment:
    """The evidence with the settings in force at the revision of the views."""
    info = await moments.history_at(evidence.log, evidence.info, views.revision)
    return replace(evidence, info=info, rules=await evidence.rules_at(views))


def _variants(evidence: ExplainedMoment, views: LiveViews) -> Iterator[_Variant]:
    """The scheduler of the history's profile, and the same one with the other setting of C24."""
    profile = views.profile
    yield _Variant(rules=evidence.rules, profile=profile)
    if not views.objects.count(*api_resources.DEVICE_TAINT_RULES):
        return
    settings = evidence.info.settings
    quirks = {**json_tree.mapping(settings, "quirks"), "c24": not profile.ignores_rules}
    info = structs.replace(evidence.info, settings={**settings, "quirks": quirks})
    other = profiles.from_settings(info.settings)
    rules = scheduling_rules.of(info, other, evidence.rules.compiler)
    if rules.features == evidence.rules.features:
        return
    text = "the recorded scheduler saw DeviceTaintRules, unlike its release (C24)"
    if not profile.ignores_rules:
        text = "the recorded scheduler did not see DeviceTaintRules (C24)"
    yield _Variant(rules=rules, profile=other, text=text)


async def _allocated_later(
    evidence: ExplainedMoment, pod: ObjectKey, then: LiveViews
) -> list[Event]:
    """The allocations that were written after the refusal, up to the next change of the pod."""
    bounds = evidence.bounds
    events = await evidence.log.read(
        evidence.info.id, after=then.revision, limit=bounds.refusal_events_max
    )
    allocated: dict[ObjectKey, Event] = {}
    for event in events:
        if event.key == pod and event.is_about_object:
            break
        is_claim = (event.key.group, event.key.resource) == api_resources.RESOURCE_CLAIMS
        if not is_claim or event.type is EventType.OBJECT_DELETED or not event.is_about_object:
            continue
        before = then.objects.get(event.key)
        is_new = before is not None and dra.allocation(before) is None
        if is_new and dra.allocation(event.object) is not None and evidence.sight.sees(event):
            allocated.setdefault(event.key, event)
    return [*allocated.values()][: bounds.refusal_allocations_max]


async def _ask(
    variant: _Variant, views: LiveViews, pod: ObjectKey, now: Instant
) -> list[NodeReason]:
    """The answers of all nodes to the pod; empty when no node can be asked."""
    tree = views.objects.get(pod)
    if tree is None:
        return []
    seen = variant.seen(views)
    try:
        return await drive(_asking(variant, seen, tree, now))
    except ClaimsNotReady:
        return []


def _asking(
    variant: _Variant, views: LiveViews, tree: JsonObject, now: Instant
) -> Steps[list[NodeReason]]:
    answers: list[NodeReason] = []
    for answer in node_answers.ask_nodes(variant.rules, views, tree, now=now):
        yield
        if answer is not None:
            answers.append(NodeReason(node=answer.node, text=answer.text))
    return answers
