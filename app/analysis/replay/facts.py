"""Facts: what one write of a controller did, as values. Traces consist of facts.

Classes and hypotheses match these values; texts are only for reports (`text`). A fact contains
nothing random and no time of a clock.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from app.analysis import meanings
from app.analysis.masks import changes, masked, masked_where_different, without
from app.analysis.replay.writers import is_announcement
from app.domain.controllers.scheduling.reports import messages
from app.domain.controllers.scheduling.reports.events import COMPONENT
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.objects import registry
from app.domain.objects.schema.structural import SchemaNode, Schemas
from app.domain.values import api_resources, condition_types, event_reasons, json_tree
from app.domain.values.fields import core, dra, meta
from app.domain.values.fields.meta import Reference
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.names import SUFFIX_ALPHABET, SUFFIX_LENGTH

_REFUSED = re.compile(
    rf'("[a-z0-9.-]+-)[{SUFFIX_ALPHABET}]{{{SUFFIX_LENGTH}}}'
    r'(" (?:is forbidden|is invalid|already exists))'
)
"""The generated name of a refused object, which is random and belongs to no recorded object."""

_MADE_WITH = ("annotations", "finalizers", "labels", "ownerReferences")
"""The metadata that the creator of an object sets, besides its name."""

_NOT_MADE = frozenset(("apiVersion", "kind", "metadata", "status"))
_NOTHING: tuple[Any, ...] = (None, {}, [])

UNSCHEDULED = frozenset(("Unschedulable", "SchedulerError"))
"""Reasons of the condition PodScheduled that a failed attempt gives."""


@dataclass(frozen=True, slots=True)
class Created:
    """The object was created, with this content as canonical JSON (see `content_of`)."""

    content: str = ""


@dataclass(frozen=True, slots=True)
class Removed:
    """The object was removed."""


@dataclass(frozen=True, slots=True)
class DeletionAsked:
    """The object got a deletion timestamp, with this grace period in seconds."""

    grace: int | None


@dataclass(frozen=True, slots=True)
class ClaimsNamed:
    """The pod's status names the claims of its entries: pairs of entry and claim."""

    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Nominated:
    """The pod was nominated for a node."""

    node: str


@dataclass(frozen=True, slots=True)
class NominationEnded:
    """The pod, which has no node, lost its nominated one: of a bound pod, a server removes it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The pod got its node."""

    node: str


@dataclass(frozen=True, slots=True)
class ConditionSet:
    """A condition was set or changed.

    `observed` is the generation that it is about. `is_dated` is false for one without a time.
    """

    type: str
    status: str
    reason: str
    message: str
    observed: int | None = None
    is_dated: bool = True


@dataclass(frozen=True, slots=True)
class ConditionRemoved:
    """The pod lost a condition."""

    type: str


@dataclass(frozen=True, slots=True)
class FinalizerAdded:
    """The object got a finalizer."""

    name: str


@dataclass(frozen=True, slots=True)
class FinalizerRemoved:
    """The object lost a finalizer."""

    name: str


@dataclass(frozen=True, slots=True)
class Allocated:
    """The claim got devices: `request: pool/device` of each result."""

    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Released:
    """The claim released its devices."""


@dataclass(frozen=True, slots=True)
class AllocationChanged:
    """The claim's allocation was replaced by a different one."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """The claim is reserved for the consumer of this name and uid."""

    pod: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Unreserved:
    """The claim is no longer reserved for the consumer of this name and uid."""

    pod: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class FieldChanged:
    """Any other field changed; values as canonical JSON."""

    path: str
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class EventSeen:
    """A Kubernetes Event was written.

    `about` is the object that its reference names, if the uid is that of another object. `action`
    and `reporter` are those that no controller gives an Event of this reason.
    """

    type: str
    reason: str
    note: str
    about: str = ""
    action: str = ""
    reporter: str = ""


Fact: TypeAlias = (
    Created
    | Removed
    | DeletionAsked
    | ClaimsNamed
    | Nominated
    | NominationEnded
    | Bound
    | ConditionSet
    | ConditionRemoved
    | FinalizerAdded
    | FinalizerRemoved
    | Allocated
    | Released
    | AllocationChanged
    | Reserved
    | Unreserved
    | FieldChanged
    | EventSeen
)


def text(fact: Fact) -> str:
    """The fact as text, for reports."""
    match fact:
        case Created(content=content):
            return f"created {content}" if content else "created"
        case Removed():
            return "removed"
        case DeletionAsked(grace=grace):
            return f"deletion asked for, grace {grace}"
        case ClaimsNamed(entries=entries):
            return f"claims {', '.join(f'{entry}={claim}' for entry, claim in entries)}"
        case Nominated(node=node):
            return f"nominated {node}"
        case NominationEnded():
            return "no nominated node"
        case Bound(node=node):
            return f"bound to {node}"
        case ConditionSet():
            return f"{fact.type} {_condition_text(fact)}"
        case ConditionRemoved(type=type_):
            return f"no condition {type_}"
        case FinalizerAdded(name=name):
            return f"finalizer {name}"
        case FinalizerRemoved(name=name):
            return f"no finalizer {name}"
        case Allocated(devices=devices):
            return f"allocated {', '.join(devices)}"
        case Released():
            return "released"
        case AllocationChanged():
            return "allocation changed"
        case Reserved(pod=pod, uid=uid):
            return f"reserved for {_consumer(pod, uid)}"
        case Unreserved(pod=pod, uid=uid):
            return f"no longer reserved for {_consumer(pod, uid)}"
        case FieldChanged():
            return f"{fact.path}: {fact.was} -> {fact.now}"
        case EventSeen():
            odd = {"about": fact.about, "action": fact.action, "reported by": fact.reporter}
            said = [f"({name} {value})" for name, value in odd.items() if value]
            return " ".join((f"{fact.type} {fact.reason}: {fact.note}", *said))
        case _:
            assert_never(fact)


def is_failed_attempt(fact: Fact) -> bool:
    """Whether the fact is the failure of an attempt to place a pod."""
    match fact:
        case ConditionSet(type=condition_types.POD_SCHEDULED, status="False", reason=reason):
            return reason in UNSCHEDULED
        case EventSeen(reason=reason):
            return reason == event_reasons.FAILED_SCHEDULING
        case _:
            return False


def meets_claim_in_flight(fact: Fact) -> bool:
    """Whether the fact is of an attempt that met a claim while it was being allocated."""
    match fact:
        case ConditionSet(message=said) | EventSeen(note=said):
            return is_failed_attempt(fact) and messages.BEING_ALLOCATED in said
        case _:
            return False


def is_skip(fact: Fact) -> bool:
    """Whether the fact says that the scheduler skipped a pod that was being deleted."""
    return (
        isinstance(fact, EventSeen)
        and fact.reason == event_reasons.FAILED_SCHEDULING
        and fact.note.startswith(messages.SKIPPED)
    )


def is_placement(fact: Fact) -> bool:
    """Whether the fact gives a node or devices to a pod."""
    match fact:
        case Nominated() | Bound() | Allocated() | FinalizerAdded() | Reserved():
            return True
        case EventSeen(reason=reason):
            return reason == event_reasons.SCHEDULED
        case ConditionSet(type=condition_types.POD_SCHEDULED, status=status):
            return status == "True"
        case _:
            return False


def facts_of(
    event: Event, before: JsonObject | None, schemas: Schemas | None = None
) -> Iterator[Fact]:
    """The facts of a write; none for the first half of a pod's removal.

    With schemas, the content of a created object is normalized to its meaning, and changes of
    fields that its kind does not declare are left out.
    """
    node = None if schemas is None else meanings.node_of(schemas, event.key)
    for fact in _facts_of(event, before, node):
        if not isinstance(fact, FieldChanged) or meanings.is_declared(node, fact.path.split(".")):
            yield fact


def _facts_of(event: Event, before: JsonObject | None, node: SchemaNode | None) -> Iterator[Fact]:
    if event.type is EventType.OBJECT_DELETED:
        yield Removed()
        return
    if before is None:
        yield Created(content_of(event.object, node))
        return
    if is_announcement(event, before):
        return
    old, new = masked_where_different(before, event.object)
    yield from _deletion(before, event.object)
    match event.key.resource:
        case "pods":
            yield from _of_pod(old, new, node)
        case "resourceclaims":
            yield from _of_claim(old, new, node)
        case _:
            yield from _changed(old, new, node)


def event_seen(tree: JsonView, key: ObjectKey | None = None, scheduler: str = "") -> EventSeen:
    """The content of an Event object, without the random end of the name of a refused object.

    `key` is that of the object with the uid of the reference, and `scheduler` the name of the
    scheduler of that pod, if they are known. What the Event leaves out agrees with any.
    """
    event_object = core.event_object(tree)
    reason, action = event_object.reason, event_object.action
    reporter = event_object.reporting_component or event_object.reporting_controller
    # Parity: controllers.md 11.1. A further profile reports under its name, redra's under one.
    is_right = not scheduler or reporter in ("", scheduler, COMPONENT)
    return EventSeen(
        type=event_object.type,
        reason=reason,
        note=_REFUSED.sub(r"\1…\2", event_object.note or event_object.message),
        about="" if key is None else _another(event_object.subject, key),
        action="" if action == event_reasons.ACTIONS.get(reason, "") else action,
        reporter="" if is_right or reason not in event_reasons.ACTIONS else reporter,
    )


def _another(reference: Reference, key: ObjectKey) -> str:
    """The object that a reference names; empty if it is the one with the key.

    What the reference leaves out agrees with any object.
    """
    kind = registry.find(key.group, key.resource)
    same = "" if kind is None else kind.kind
    is_key = (
        reference.kind in ("", same or reference.kind)
        and reference.namespace in ("", key.namespace)
        and reference.name in ("", key.name)
    )
    return "" if is_key else f"{reference.kind} {reference.namespace}/{reference.name}"


def subject_of(tree: JsonView) -> str:
    """The uid of the object that an Event object is about."""
    about = "regarding" if "regarding" in tree else "involvedObject"
    return json_tree.text(tree, about, "uid")


def content_of(tree: JsonView, node: SchemaNode | None) -> str:
    """The content of a created object as canonical JSON: all but its identity, status and times."""
    content = masked(meanings.of(tree, node))
    if not isinstance(content, dict):
        return ""
    metadata = content.get("metadata", {})
    kept = {part: metadata[part] for part in _MADE_WITH if part in metadata}
    body = {part: value for part, value in content.items() if part not in _NOT_MADE}
    return _shown({**body, "metadata": kept} if kept else body)


def consumers(claim: JsonView | None) -> dict[str, str]:
    """The consumers for which a claim is reserved: uid to name, with the kind of those but pods."""
    if claim is None:
        return {}
    return {
        consumer.uid: consumer.name
        if (consumer.api_group, consumer.resource) == api_resources.PODS
        else f"{consumer.resource}.{consumer.api_group}/{consumer.name}"
        for consumer in dra.consumers(claim)
    }


def condition_changes(before: JsonView | None, after: JsonView) -> Iterator[ConditionSet]:
    """Each condition that a write set or changed."""
    olds = {} if before is None else _conditions(before)
    for type_, condition in _conditions(after).items():
        if olds.get(type_) != condition:
            yield condition


def _consumer(name: str, uid: str) -> str:
    return f"{name} ({uid})" if uid else name


def _conditions(tree: JsonView) -> dict[str, ConditionSet]:
    return {
        each.type: ConditionSet(
            type=each.type,
            status=each.status,
            reason=each.reason,
            message=each.message,
            observed=each.observed_generation,
            is_dated=bool(each.last_transition_time),
        )
        for each in meta.conditions(tree)
    }


def _condition_text(condition: ConditionSet) -> str:
    words = condition.status
    if condition.reason or condition.message:
        words += f" {condition.reason}: {condition.message}"
    if condition.observed is not None:
        words += f" (generation {condition.observed})"
    return words if condition.is_dated else f"{words} (no time)"


def _deletion(before: JsonView, after: JsonView) -> Iterator[Fact]:
    if meta.deletion_timestamp(after) and not meta.deletion_timestamp(before):
        yield DeletionAsked(meta.deletion_grace_seconds(after))


def _of_pod(old: JsonObject, new: JsonObject, schema: SchemaNode | None) -> Iterator[Fact]:
    seen: list[tuple[str, ...]] = [
        ("metadata", "deletionGracePeriodSeconds"),
        ("status", "conditions"),
        named := ("status", "resourceClaimStatuses"),
        ("status", "nominatedNodeName"),
        ("spec", "nodeName"),
    ]
    if json_tree.get(old, *named) != json_tree.get(new, *named):
        yield ClaimsNamed(
            tuple(
                (str(item.get("name")), str(item.get("resourceClaimName")))
                for item in core.resource_claim_statuses(new)
            )
        )
    is_bound = core.node_name(new) != core.node_name(old)
    if (node := core.nominated_node_name(new)) != core.nominated_node_name(old):
        if node:
            yield Nominated(node)
        elif not core.node_name(new):
            yield NominationEnded()
    if is_bound:
        yield Bound(core.node_name(new))
    yield from condition_changes(old, new)
    kept = _conditions(new).keys()
    yield from (ConditionRemoved(type_) for type_ in _conditions(old) if type_ not in kept)
    yield from _changed(without(old, seen), without(new, seen), schema)


def _of_claim(old: JsonObject, new: JsonObject, schema: SchemaNode | None) -> Iterator[Fact]:
    seen: list[tuple[str, ...]] = [
        ("metadata", "finalizers"),
        ("metadata", "deletionGracePeriodSeconds"),
        ("status", "allocation"),
        ("status", "reservedFor"),
    ]
    olds = set(meta.finalizers(old))
    news = set(meta.finalizers(new))
    yield from (FinalizerAdded(name) for name in sorted(news - olds))
    yield from (FinalizerRemoved(name) for name in sorted(olds - news))
    held = dra.allocation(old)
    allocation = dra.allocation(new)
    if held is None and allocation is not None:
        yield Allocated(dra.device_names(allocation))
    elif held is not None and allocation is None:
        yield Released()
    elif held != allocation:
        yield AllocationChanged()
    left, right = consumers(old), consumers(new)
    yield from (Reserved(right[uid], uid) for uid in sorted(right.keys() - left.keys()))
    yield from (Unreserved(left[uid], uid) for uid in sorted(left.keys() - right.keys()))
    yield from _changed(without(old, seen), without(new, seen), schema)


def _changed(old: JsonObject, new: JsonObject, schema: SchemaNode | None) -> Iterator[Fact]:
    for path, was, now in changes(old, new):
        if was in _NOTHING and now in _NOTHING:
            continue
        part = meanings.at(schema, path.split("."))
        if part is not None and all(meanings.of(one, part) in _NOTHING for one in (was, now)):
            continue
        yield FieldChanged(path, _shown(was), _shown(now))


def _shown(value: Any) -> str:
    """A value as text in which the order of fields does not matter."""
    return canonical_json(value).decode()
