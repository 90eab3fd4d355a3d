"""The facts of an incident, checked with the objects and events of a history that was played."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.analysis.incidents.incident import Fact
from app.analysis.verify.invariants import InvariantWatch
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, condition_types
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject

NAMESPACE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A history that was played: its final objects, its events, and the API's refusals."""

    objects: ObjectsReader
    events: Sequence[Event]
    refusals: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactCheck:
    """A fact, and whether it holds; `seen` is the observed state if it does not."""

    fact: Fact
    holds: bool
    seen: str = ""


def judge(facts: Iterable[Fact], played: Played) -> list[FactCheck]:
    """Each fact with its verdict."""
    return [_judge(fact, played) for fact in facts]


def _judge(fact: Fact, played: Played) -> FactCheck:
    seen: list[str] = []
    if fact.pod or fact.claim:
        _object(fact, played, seen)
    if fact.says is not None:
        texts = _messages(fact, played)
        if not any(fact.says in text for text in texts):
            seen.append(f"messages: {texts[-3:]}")
    if fact.refused is not None and not any(fact.refused in text for text in played.refusals):
        seen.append(f"refusals: {list(played.refusals)}")
    if fact.violated is not None:
        rules = violated(played.events)
        if fact.violated not in rules:
            seen.append(f"violated: {sorted(rules)}")
    return FactCheck(fact=fact, holds=not seen, seen="; ".join(seen))


def violated(events: Iterable[Event]) -> set[str]:
    """The rules of the invariants that are violated."""
    watch = InvariantWatch()
    watch.follow(list(events))
    return {violation.rule for violation in watch.violations()}


def _object(fact: Fact, played: Played, seen: list[str]) -> None:
    resource = api_resources.PODS if fact.pod else api_resources.RESOURCE_CLAIMS
    key = ObjectKey(*resource, NAMESPACE, fact.pod or fact.claim)
    tree = played.objects.get(key)
    if fact.gone is not None and fact.gone is not (tree is None):
        seen.append("it is gone" if tree is None else "it is there")
    if fact.evicted is not None and fact.evicted is not _was_evicted(key, played):
        seen.append("it was not evicted" if fact.evicted else "it was evicted")
    if tree is None:
        if fact.gone is None and fact.evicted is None and fact.says is None:
            seen.append("it does not exist")
        return
    if fact.node is not None and core.node_name(tree) != fact.node:
        seen.append(f"node {core.node_name(tree)!r}")
    if fact.reserved is not None and len(dra.reserved_for(tree)) != fact.reserved:
        seen.append(f"{len(dra.reserved_for(tree))} consumers")
    if fact.devices is not None:
        claims = _claims_of(tree, played) if fact.pod else [tree]
        held = sorted(
            f"{each.pool}/{each.device}" for claim in claims for each in dra.results(claim)
        )
        if held != sorted(fact.devices):
            seen.append(f"devices {held}")


def _claims_of(pod: JsonObject, played: Played) -> list[JsonObject]:
    entries = [*core.resource_claims(pod), *core.resource_claim_statuses(pod)]
    names = dict.fromkeys(str(entry.get("resourceClaimName") or "") for entry in entries)
    keys = [
        ObjectKey(*api_resources.RESOURCE_CLAIMS, meta.namespace(pod), name)
        for name in names
        if name
    ]
    return [tree for key in keys if (tree := played.objects.get(key)) is not None]


def _was_evicted(key: ObjectKey, played: Played) -> bool:
    for event in reversed(played.events):
        if event.key == key and event.type is not EventType.OBJECT_DELETED:
            condition = meta.condition(event.object, condition_types.DISRUPTION_TARGET)
            return condition is not None and condition.status == "True"
    return False


def _messages(fact: Fact, played: Played) -> list[str]:
    """The messages about the object in conditions and Events, in order."""
    name = fact.pod or fact.claim or fact.rule
    texts: list[str] = []
    for event in played.events:
        if not event.is_about_object:
            continue
        tree = event.object
        if (event.key.group, event.key.resource) == api_resources.EVENTS:
            report = core.event_object(tree)
            if report.subject.name == name:
                texts.append(report.text)
        elif event.key.name == name:
            texts += [condition.message for condition in meta.conditions(tree)]
    return [text for text in dict.fromkeys(texts) if text]
