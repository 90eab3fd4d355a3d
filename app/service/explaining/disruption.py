"""The disruption of a pod: its eviction for a taint or for another pod, with the state before."""

from collections.abc import Sequence

from app.analysis.explain import devices as device_reasons
from app.analysis.explain import preemption, sources
from app.analysis.explain.reasons import Reason
from app.analysis.explain.workloads import budgets
from app.analysis.recordings import uncertainty
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling.scheduling_cycle import default_preemption
from app.domain.log import Event, ObjectKey, Revision
from app.domain.values import condition_types
from app.domain.values.fields import dra, meta
from app.domain.values.fields.meta import Condition
from app.domain.values.json_tree import JsonView
from app.service.explaining import closed_nodes, templates
from app.service.explaining.evidence import ExplainedMoment, drive

BY_PREEMPTION = default_preemption.CONDITION_REASON

BY_NODE_TAINT = "DeletionByTaintManager"
"""The reason of the condition on pods that were evicted for a taint of their node."""

BY_REQUEST = "EvictionByEvictionAPI"
"""The reason of the condition on pods whose eviction was requested, as by a drain."""

BY_TAINT = "DeletionByDeviceTaintManager"
"""The reason of the condition on pods that were evicted for a taint of their device."""


def marked(pod: JsonView) -> Condition | None:
    """The condition DisruptionTarget of a pod, where it holds."""
    condition = meta.condition(pod, condition_types.DISRUPTION_TARGET)
    return condition if condition is not None and condition.status == "True" else None


_EVICTIONS = frozenset((BY_NODE_TAINT, BY_PREEMPTION, BY_REQUEST, BY_TAINT))


def is_evicted(pod: JsonView) -> bool:
    """Whether a condition marks a pod as evicted, whoever evicted it."""
    condition = marked(pod)
    return condition is not None and condition.reason in _EVICTIONS


def _unrecorded(before: LiveViews, pod: JsonView, *, is_without_rules: bool) -> Reason:
    """No recorded object of the moment shows the taint for which a pod was evicted."""
    facts = pods.facts(pod)
    keys = [claim_key(facts.namespace, named.name or "") for named in pods.named_claims(facts)]
    if not any(dra.results(before.objects.get(key) or {}) for key in keys):
        text = "the devices that it had were not recorded, so the taint is not known"
        return Reason(text=text, is_kept=True, unexplained=uncertainty.NO_ALLOCATION)
    text = "the taint was not recorded"
    doubt = uncertainty.NO_CAUSE
    if is_without_rules:
        text += "; a DeviceTaintRule may have set it, but none was recorded"
        doubt = uncertainty.NO_RULE
    return Reason(text=text, is_kept=True, unexplained=doubt)


async def of(evidence: ExplainedMoment, key: ObjectKey) -> list[Reason]:
    """The disruption of a pod, with the taints that its devices had at that time."""
    events = await evidence.changes(key)
    if events and events[0].type == "ObjectDeleted":
        events = events[1:]
    return await among(evidence, events)


async def among(evidence: ExplainedMoment, events: Sequence[Event]) -> list[Reason]:
    """The disruption of a pod, from its states, newest first and without its deletion."""
    since = sources.since(
        events, lambda tree: meta.condition(tree, condition_types.DISRUPTION_TARGET) is not None
    )
    condition = (
        None if since is None else meta.condition(since.object, condition_types.DISRUPTION_TARGET)
    )
    if since is None or condition is None:
        return []
    children: list[Reason] = []
    if condition.reason == BY_TAINT:
        before = await evidence.views_at(Revision(since.revision - 1))
        quirks = evidence.rules.quirks
        children = await drive(device_reasons.evicting(before, since.object, quirks))
        children += await templates.too_late(evidence, since.object)
        children += budgets.passed_over(before, since.key, since.object)
        if not children and evidence.info.is_recorded:
            is_blind = evidence.lacks_rules(evidence.views)
            children = [_unrecorded(before, since.object, is_without_rules=is_blind)]
    elif condition.reason == BY_PREEMPTION:
        before = await evidence.views_at(Revision(since.revision - 1))
        last = await evidence.before(since.revision, preemption.EFFECTS_MAX)
        evicting = preemption.decision_about(last, since.object)
        views = evidence.views if evicting is None else before
        reads = evidence.sight.reads_events
        if evicting is not None or reads:
            children = [*preemption.evicted_for(evicting, views.objects, since.object)]
    elif condition.reason in (BY_REQUEST, BY_NODE_TAINT):
        is_drain = condition.reason == BY_REQUEST
        children = await closed_nodes.before_eviction(evidence, since, is_drain=is_drain)
        if not is_drain:
            before = await evidence.views_at(Revision(since.revision - 1))
            children += budgets.passed_over(before, since.key, since.object)
    text = f"{condition.reason}: {condition.message}"
    return [
        Reason(
            text=text,
            children=tuple(children),
            revision=since.revision,
            about=since.key,
            is_kept=True,
        )
    ]
