"""The pods that a rule evicted, or that were evicted past a budget: which, when, and why."""

from collections.abc import Collection, Iterator, Sequence

from app.analysis.explain import sources
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.workloads import budgets
from app.domain.controllers import pods
from app.domain.controllers.eviction.taints import NO_EXECUTE, eviction_time, read_taint
from app.domain.controllers.resources import claim_key
from app.domain.devices import taints
from app.domain.devices.taints import TaintRule
from app.domain.errors import InputError
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.log.event import KeyFilter
from app.domain.values import api_resources, counts
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonObject, JsonView
from app.service.explaining import disruption
from app.service.explaining.evidence import ExplainedMoment

_SHOWN_MAX = 10
_OF_DEVICES = (disruption.BY_TAINT,)
_CLAIM_STATES = 8
"""The last states of a claim in which the pod is looked for among its users."""


async def of_rule(evidence: ExplainedMoment, key: ObjectKey) -> list[Reason]:
    """The evictions for the taint of a rule, the newest first; empty if there are none."""
    states = [each for each in await evidence.changes(key) if each.is_about_object]
    if not any(dra.taint(each.object).get("effect") == NO_EXECUTE for each in states):
        return []
    evictions, is_cut = await _marked(evidence, KeyFilter(*api_resources.PODS), _OF_DEVICES)
    shown: list[Reason] = []
    for since in evictions:
        rule = _rule_at(states, since.revision)
        devices = [] if rule is None else await _devices(evidence, rule, since)
        if devices:
            shown.append(_eviction(since, listed(devices, len(devices))))
    return _summary(shown, "for its taint", is_cut=is_cut)


async def past_budget(evidence: ExplainedMoment, key: ObjectKey) -> list[Reason]:
    """The evictions for taints of devices or nodes while a budget allowed none, the newest first.

    Parity: controllers.md 1.5.
    """
    states = [each for each in await evidence.changes(key) if each.is_about_object]
    wanted = KeyFilter(*api_resources.PODS, key.namespace)
    evictions, is_cut = await _marked(evidence, wanted, (*_OF_DEVICES, disruption.BY_NODE_TAINT))
    shown: list[Reason] = []
    for since in evictions:
        budget = _before(states, since.revision)
        if budget is not None and budgets.allows_none(budget, since.object):
            condition = disruption.marked(since.object)
            why = "" if condition is None else f"{condition.reason}: {condition.message}"
            shown.append(_eviction(since, why))
    taints_text = "a taint" if len(shown) == 1 else "taints"
    return _summary(shown, f"past it, for {taints_text}: no budget is asked then", is_cut=is_cut)


async def _marked(
    evidence: ExplainedMoment, wanted: KeyFilter, kinds: Collection[str]
) -> tuple[list[Event], bool]:
    """The events that marked pods for a taint, newest first, and whether there may be more.

    Of the names of pods, those that came last are examined: as many as those of a workload.
    """
    bounds = evidence.bounds
    names = await evidence.log.keys(
        evidence.info.id,
        wanted,
        until=evidence.views.revision,
        limit=bounds.cause_workload_pods_max,
        newest_first=True,
    )
    events = [
        since
        for pod in names
        for since in _evictions(await evidence.observed(pod), kinds)
        if evidence.sight.sees(since)
    ]
    events.sort(key=lambda event: -event.revision)
    return events, len(names) >= bounds.cause_workload_pods_max


def _eviction(since: Event, why: str) -> Reason:
    pod = since.key
    text = f"pod {pod.namespace}/{pod.name}, at {sources.when(since.stamp.time)}: {why}"
    return Reason(text=text, revision=since.revision, about=pod, is_kept=True)


def _summary(evictions: Sequence[Reason], why: str, *, is_cut: bool) -> list[Reason]:
    """The number of evictions with the newest ones; empty if there are none."""
    if not evictions:
        return []
    count = len(evictions)
    are = "1 pod was evicted" if count == 1 else f"{counts.of(count, 'pod')} were evicted"
    at_least = "at least " if is_cut else ""
    shown = list(evictions[:_SHOWN_MAX])
    if count > _SHOWN_MAX:
        shown.append(Reason(text=f"{counts.of(count - _SHOWN_MAX, 'earlier one')}"))
    text = f"{at_least}{are} {why}"
    return [Reason(text=text, children=tuple(shown), count=count, is_kept=True)]


def _evictions(events: Sequence[Event], kinds: Collection[str]) -> Iterator[Event]:
    """The events that marked the pods of one name for a taint, newest first."""
    for event, earlier in zip(events, (*events[1:], None), strict=True):
        if not event.is_about_object or event.type is EventType.OBJECT_DELETED:
            continue
        before = None if earlier is None or earlier.uid != event.uid else earlier.object
        if _is_marked(event.object, kinds) and (before is None or not _is_marked(before, kinds)):
            yield event


def _is_marked(pod: JsonView, kinds: Collection[str]) -> bool:
    condition = disruption.marked(pod)
    return condition is not None and condition.reason in kinds


def _before(states: Sequence[Event], revision: Revision) -> JsonObject | None:
    """An object as it was before an event; None if it did not exist. The newest state is first."""
    last = next((each for each in states if each.revision < revision), None)
    return None if last is None or last.type is EventType.OBJECT_DELETED else last.object


def _rule_at(states: Sequence[Event], revision: Revision) -> TaintRule | None:
    """The rule as it was before an event; None if it did not exist, or evicts nobody."""
    last = _before(states, revision)
    try:
        rule = None if last is None else taints.rule_of(last)
    except InputError:
        return None
    return rule if rule is not None and rule.taint.effect == NO_EXECUTE else None


async def _devices(evidence: ExplainedMoment, rule: TaintRule, since: Event) -> list[str]:
    """The devices of a pod that the rule tainted when it was evicted, and that it bore not."""
    facts = pods.facts(since.object)
    read = read_taint({"key": rule.taint.key, "value": rule.taint.value})
    devices: list[str] = []
    for entry in pods.named_claims(facts):
        claim = claim_key(facts.namespace, entry.name or "")
        states = await evidence.log.read_object(
            evidence.info.id, claim, until=since.revision, limit=_CLAIM_STATES
        )
        held = next((each for each in states if dra.has_consumer(each.object, since.uid)), None)
        for result in () if held is None else dra.results(held.object):
            is_borne = eviction_time(read, result.tolerations) is None
            if not is_borne and rule.matches(result.id, without_selector=False):
                devices.append(result.text)
    return devices
