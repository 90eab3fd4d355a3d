"""The condition of a rule: status, reason and the exact message. Parity: controllers.md 1.6."""

import re
from dataclasses import dataclass

from app.domain.controllers.eviction.state import TaintState
from app.domain.controllers.eviction.taints import NO_EXECUTE, EvictionRule
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, condition_types, counts, json_tree
from app.domain.values.fields import dra, entries, meta
from app.domain.values.identifiers import NamespacedName, PoolId
from app.domain.values.json_tree import JsonObject

TYPE = condition_types.EVICTION_IN_PROGRESS

_NO_EFFECT = "NoEffect"

_EVICTED = re.compile(r"(\d{1,18}) pods? evicted since starting the controller\.$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The number of pods that a rule still has to evict, and of their namespaces."""

    pods: int
    namespaces: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionCondition:
    """A computed condition without its times."""

    status: str
    reason: str
    message: str


def compute(
    objects: ObjectsReader, state: TaintState, rule: EvictionRule, evicted: int
) -> EvictionCondition:
    """The condition for the current state."""
    if rule.effect == NO_EXECUTE:
        pending = pending_pods(state, rule)
        if pending.pods:
            need = counts.verb(pending.pods, "needs")
            message = (
                f"{_count(pending.pods, 'pod')} {need} to be evicted "
                f"in {_namespaces(pending.namespaces)}."
            )
            verdict = EvictionCondition(
                status="True", reason="PodsPendingEviction", message=message
            )
        elif evicted:
            verdict = EvictionCondition(status="False", reason="Completed", message="")
        else:
            verdict = EvictionCondition(status="False", reason="NotStarted", message="")
    elif rule.effect == "None":
        verdict = EvictionCondition(
            status="False", reason=_NO_EFFECT, message=preview(objects, state, rule)
        )
    else:
        message = "Eviction only happens for the NoExecute effect."
        verdict = EvictionCondition(status="False", reason="OtherEffect", message=message)
    if not evicted:
        return verdict
    suffix = f"{_count(evicted, 'pod')} evicted since starting the controller."
    message = f"{verdict.message} {suffix}" if verdict.message else suffix
    return EvictionCondition(status=verdict.status, reason=verdict.reason, message=message)


def preview(objects: ObjectsReader, state: TaintState, rule: EvictionRule) -> str:
    """The text of what a rule with effect None would do with effect NoExecute."""
    published = published_devices(objects, state, rule)
    allocated = sum(
        state.selects(rule, result.driver, result.pool, result.device)
        for claim in state.claims.values()
        for result in claim.results
    )
    would = would_evict(state, rule)
    return (
        f"{_count(published, 'published device')} selected. "
        f"{_count(allocated, 'allocated device')} selected. "
        f"{_count(would.pods, 'pod')} would be evicted in {_namespaces(would.namespaces)} "
        "if the effect was NoExecute. This information will not be updated again. "
        "Recreate the DeviceTaintRule to trigger an update."
    )


def published_devices(objects: ObjectsReader, state: TaintState, rule: EvictionRule) -> int:
    """The number of devices that the rule selects in the newest generation of each pool."""
    pools: dict[PoolId, tuple[int, int]] = {}
    for key in objects.keys(*api_resources.RESOURCE_SLICES):
        tree = objects.get(key) or json_tree.EMPTY
        driver, of_pool = dra.driver(tree), dra.pool(tree)
        pool, generation = of_pool.name, of_pool.generation
        newest, count = pools.get((driver, pool), (generation, 0))
        if generation < newest:
            continue
        here = sum(
            state.selects(rule, driver, pool, entries.name(device)) for device in dra.devices(tree)
        )
        pools[(driver, pool)] = (generation, here + (count if generation == newest else 0))
    return sum(count for _, count in pools.values())


def pending_pods(state: TaintState, rule: EvictionRule) -> Pending:
    """The pods, not yet terminating, whose eviction has this rule as a reason, due or not."""
    places: set[NamespacedName] = set()
    for claim in state.claims.values():
        if claim.eviction is None:
            continue
        if all(reason.rule_uid != rule.uid for reason in claim.eviction.reasons):
            continue
        for name, _ in claim.reserved:
            place = (claim.namespace, name)
            if place in places or place not in state.pods or state.pods[place].is_deleting:
                continue
            eviction = state.pod_eviction(place)
            if eviction and any(reason.rule_uid == rule.uid for reason in eviction.reasons):
                places.add(place)
    return Pending(pods=len(places), namespaces=len({namespace for namespace, _ in places}))


def would_evict(state: TaintState, rule: EvictionRule) -> Pending:
    """The pods that this rule would evict if it were the only taint, with effect NoExecute."""
    alone = {
        rule.name: EvictionRule(
            name=rule.name,
            uid=rule.uid,
            generation=rule.generation,
            effect=NO_EXECUTE,
            taint=rule.taint,
            selector=rule.selector,
            spec=rule.spec,
        )
    }
    places: set[NamespacedName] = set()
    for claim in state.claims.values():
        if not any(state.selects(rule, r.driver, r.pool, r.device) for r in claim.results):
            continue
        eviction = state.claim_eviction(claim.results, alone)
        if eviction is None or all(r.rule_uid != rule.uid for r in eviction.reasons):
            continue
        for name, uid in claim.reserved:
            pod = state.pods.get((claim.namespace, name))
            if pod is None or pod.uid != uid or pod.is_deleting or not state.may_evict(pod):
                continue
            if any(used is claim for used in state.claims_of(pod)):
                places.add((pod.namespace, pod.name))
    return Pending(pods=len(places), namespaces=len({namespace for namespace, _ in places}))


def stored(rule: JsonObject) -> JsonObject | None:
    """The stored condition of the rule, or None."""
    return meta.condition_tree(rule, TYPE)


def is_current(rule: JsonObject) -> bool:
    """Whether the stored condition is about the newest generation of the rule."""
    condition = stored(rule)
    return condition is not None and condition.get("observedGeneration") == meta.generation(rule)


def is_final(rule: JsonObject) -> bool:
    """Whether a process that has written this status writes no other for this generation.

    What a rule without an effect would evict is counted once.
    """
    condition = stored(rule)
    return condition is not None and condition.get("reason") == _NO_EFFECT and is_current(rule)


def evicted_in(message: str) -> int:
    """The number of evicted pods in a message; 0 when the message has none."""
    match = _EVICTED.search(message)
    return int(match.group(1)) if match else 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _namespaces(number: int) -> str:
    return "1 namespace" if number == 1 else f"{number} different namespaces"
