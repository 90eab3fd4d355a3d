"""The pods that a DeviceTaintRule evicted, present and gone: which, when, and for which devices."""

from collections.abc import Iterator, Sequence

from app.analysis.explain import sources
from app.analysis.explain.reasons import Reason, listed
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
from app.domain.values.json_tree import JsonView
from app.service.explaining import disruption
from app.service.explaining.evidence import ExplainedMoment

_SHOWN_MAX = 10
_CLAIM_STATES = 8
"""The last states of a claim in which the pod is looked for among its users."""


async def reasons(evidence: ExplainedMoment, key: ObjectKey) -> list[Reason]:
    """The evictions for the taint of a rule, the newest first; empty if there are none.

    Pods of which only the names that came last are examined are bounded as those of a workload.
    """
    states = [each for each in await evidence.changes(key) if each.is_about_object]
    if not any(dra.taint(each.object).get("effect") == NO_EXECUTE for each in states):
        return []
    bounds, revision = evidence.bounds, evidence.views.revision
    names = await evidence.log.keys(
        evidence.info.id,
        KeyFilter(*api_resources.PODS),
        until=revision,
        limit=bounds.cause_workload_pods_max,
        newest_first=True,
    )
    evictions: list[Reason] = []
    for pod in names:
        for since in _evictions(await evidence.observed(pod)):
            if not evidence.sight.sees(since):
                continue
            rule = _rule_at(states, since.revision)
            devices = [] if rule is None else await _devices(evidence, rule, since)
            if devices:
                text = f"pod {pod.namespace}/{pod.name}, at {sources.when(since.stamp.time)}: "
                text += listed(devices, len(devices))
                evictions.append(
                    Reason(text=text, revision=since.revision, about=pod, is_kept=True)
                )
    if not evictions:
        return []
    evictions.sort(key=lambda reason: -reason.revision)
    count = len(evictions)
    are = "1 pod was evicted" if count == 1 else f"{counts.of(count, 'pod')} were evicted"
    at_least = "at least " if len(names) >= bounds.cause_workload_pods_max else ""
    shown = evictions[:_SHOWN_MAX]
    if count > _SHOWN_MAX:
        shown.append(Reason(text=f"{counts.of(count - _SHOWN_MAX, 'earlier one')}"))
    return [
        Reason(
            text=f"{at_least}{are} for its taint",
            children=tuple(shown),
            count=count,
            is_kept=True,
        )
    ]


def _evictions(events: Sequence[Event]) -> Iterator[Event]:
    """The events that marked the pods of one name for a device's taint, newest first."""
    for event, earlier in zip(events, (*events[1:], None), strict=True):
        if not event.is_about_object or event.type is EventType.OBJECT_DELETED:
            continue
        before = None if earlier is None or earlier.uid != event.uid else earlier.object
        if _is_marked(event.object) and (before is None or not _is_marked(before)):
            yield event


def _is_marked(pod: JsonView) -> bool:
    condition = disruption.marked(pod)
    return condition is not None and condition.reason == disruption.BY_TAINT


def _rule_at(states: Sequence[Event], revision: Revision) -> TaintRule | None:
    """The rule as it was before an event; None if it did not exist, or evicts nobody."""
    last = next((each for each in states if each.revision < revision), None)
    if last is None or last.type is EventType.OBJECT_DELETED:
        return None
    try:
        rule = taints.rule_of(last.object)
    except InputError:
        return None
    return rule if rule.taint.effect == NO_EXECUTE else None


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
        held = next((each for each in states if _is_held(each.object, since.uid)), None)
        for result in () if held is None else dra.results(held.object):
            is_borne = eviction_time(read, result.tolerations) is None
            if not is_borne and rule.matches(result.id, without_selector=False):
                devices.append(result.text)
    return devices


def _is_held(claim: JsonView, uid: str) -> bool:
    return any(consumer.uid == uid for consumer in dra.consumers(claim))
