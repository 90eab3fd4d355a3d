"""What the timeline follows of each kind of object, and what a change of it is called.

Not a view itself: the tables behind `timeline`. A `Kind` reads from an object only what is followed
and names the difference between two readings. `word` begins every name: `PodScheduled`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject

TEXT_MAX = 1000
"""Longest text of an entry, in characters; the rest is cut and marked."""

NAMED_MAX = 8
"""How many devices, claims or consumers a text names; the rest is counted."""

Told: TypeAlias = tuple[str, str]
"""What the change is called, and the text about it."""


class PodState(msgspec.Struct, frozen=True, gc=False, tag="p", array_like=True):
    """What is followed of a Pod."""

    node: str
    phase: str
    deleting: bool
    disruption: str
    unschedulable: str
    claims: tuple[str, ...]


class ClaimState(msgspec.Struct, frozen=True, gc=False, tag="c", array_like=True):
    """What is followed of a ResourceClaim."""

    allocated: bool
    devices: tuple[str, ...]
    reserved: tuple[str, ...]
    deleting: bool


class SliceState(msgspec.Struct, frozen=True, gc=False, tag="s", array_like=True):
    """What is followed of a ResourceSlice; `generation` is the object's, `pool` the pool's."""

    place: str
    pool: int
    generation: int
    devices: tuple[str, ...]
    taints: tuple[str, ...]


class RuleState(msgspec.Struct, frozen=True, gc=False, tag="r", array_like=True):
    """What is followed of a DeviceTaintRule."""

    taint: str
    selector: str
    condition: str


class NodeState(msgspec.Struct, frozen=True, gc=False, tag="n", array_like=True):
    """What is followed of a Node."""

    ready: str
    unschedulable: bool
    taints: tuple[str, ...]


class PlainState(msgspec.Struct, frozen=True, gc=False, tag="o", array_like=True):
    """What is followed of everything else: its specification, by its generation."""

    generation: int
    deleting: bool


State: TypeAlias = PodState | ClaimState | SliceState | RuleState | NodeState | PlainState


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How one kind is read, and what a difference is called (None: nothing to tell)."""

    word: str
    read: Callable[[JsonObject], State]
    tell: Callable[[Any, Any], Told | None]


def kind_of(key: ObjectKey) -> Kind | None:
    """How objects of that group and resource are followed; None when they are not."""
    place = (key.group, key.resource)
    kind = _KINDS.get(place, _OTHER)
    return kind if kind is not _OTHER or place not in _UNTOLD else None


def tell_fact(event: Event) -> Told | None:
    """What an event that is not about an object means."""
    body = event.object
    if event.type is EventType.DECISION_RECORDED:
        controller = json_tree.text(body, "controller")
        outcome = json_tree.text(body, "outcome")
        message = json_tree.text(body, "summary", "message")
        text = f"{controller} decided {outcome}"
        return "Decision", _cut(f"{text}: {message}" if message else text)
    if event.type is EventType.REQUEST_OBSERVED:
        return None
    return event.type.value, _cut(json_tree.text(body, "message") or json_tree.text(body, "reason"))


def subject_of_fact(event: Event) -> ObjectKey:
    """What such an event is about: for a decision its subject, else the key as stored."""
    key = event.key
    resource = json_tree.text(event.object, "resource")
    if event.type is not EventType.DECISION_RECORDED or not resource:
        return key
    return ObjectKey(_DECIDED_GROUPS.get(resource, ""), resource, key.namespace, key.name)


def tell_event_object(event: Event) -> Told | None:
    """A Kubernetes Event that warns, when it is made; its repetitions are not told."""
    if event.type is not EventType.OBJECT_CREATED or event.object.get("type") != "Warning":
        return None
    tree = event.object
    reason = json_tree.text(tree, "reason")
    note = json_tree.text(tree, "message") or json_tree.text(tree, "note")
    return "Warning", _cut(f"{reason}: {note}")


def subject_of_event_object(event: Event) -> ObjectKey:
    """The object that a Kubernetes Event is about."""
    tree = event.object
    about = json_tree.mapping(tree, "involvedObject") or json_tree.mapping(tree, "regarding")
    group, slash, _ = json_tree.text(about, "apiVersion").partition("/")
    kind = json_tree.text(about, "kind").lower()
    plural = kind + ("es" if kind.endswith("s") else "s")
    namespace, name = json_tree.text(about, "namespace"), json_tree.text(about, "name")
    return ObjectKey(group if slash else "", plural, namespace, name)


def _read_pod(tree: JsonObject) -> PodState:
    spec = _part(tree, "spec")
    status = _part(tree, "status")
    disruption = unschedulable = ""
    for condition in _list(status, "conditions"):
        if not isinstance(condition, dict):
            continue
        kind = condition.get("type")
        if kind == "DisruptionTarget" and condition.get("status") == "True":
            disruption = f"{_text(condition, 'reason')}: {_text(condition, 'message')}"
        elif kind == "PodScheduled" and condition.get("status") == "False":
            unschedulable = f"{_text(condition, 'reason')}: {_text(condition, 'message')}"
    return PodState(
        _text(spec, "nodeName"),
        _text(status, "phase"),
        "deletionTimestamp" in _part(tree, "metadata"),
        disruption,
        unschedulable,
        tuple(
            _text(entry, "resourceClaimName") or "from " + _text(entry, "resourceClaimTemplateName")
            for entry in _list(spec, "resourceClaims")
            if isinstance(entry, dict)
        ),
    )


def _tell_pod(old: PodState | None, new: PodState) -> Told | None:
    if old is None:
        claims = f"uses claims {_named(new.claims)}" if new.claims else "uses no claims"
        placed = f", on {new.node}" if new.node else ""
        return "PodCreated", _cut(claims + placed)
    if new.node and not old.node:
        return "PodScheduled", f"to {new.node}"
    if new.deleting and not old.deleting:
        return "PodDeletionAsked", _cut(f"after {new.disruption}") if new.disruption else ""
    if new.disruption != old.disruption and new.disruption:
        return "PodEvicted", _cut(new.disruption)
    if new.phase != old.phase:
        return "PodFinished" if new.phase in _FINAL else "PodPhase", new.phase
    if new.unschedulable != old.unschedulable and new.unschedulable:
        return "PodUnschedulable", _cut(new.unschedulable)
    return None


def _read_claim(tree: JsonObject) -> ClaimState:
    status = _part(tree, "status")
    allocation = status.get("allocation")
    results = _list(_part(_part(status, "allocation"), "devices"), "results")
    return ClaimState(
        isinstance(allocation, dict),
        tuple(
            f"{_text(result, 'driver')}/{_text(result, 'pool')}/{_text(result, 'device')}"
            for result in results
            if isinstance(result, dict)
        ),
        tuple(
            _text(consumer, "name")
            for consumer in _list(status, "reservedFor")
            if isinstance(consumer, dict)
        ),
        "deletionTimestamp" in _part(tree, "metadata"),
    )


def _tell_claim(old: ClaimState | None, new: ClaimState) -> Told | None:
    use = f", reserved for {_named(new.reserved)}" if new.reserved else ""
    got = _named(new.devices) if new.devices else "no devices"
    if old is None:
        return "ClaimCreated", _cut(f"with {got}{use}" if new.allocated else "without allocation")
    if new.allocated and not old.allocated:
        return "ClaimAllocated", _cut(f"{got}{use}")
    if old.allocated and not new.allocated:
        return "ClaimDeallocated", _cut(f"{_named(old.devices) or 'no devices'} given back")
    if new.devices != old.devices:
        return "ClaimReallocated", _cut(f"{_named(old.devices)} became {got}")
    if new.deleting and not old.deleting:
        return "ClaimDeletionAsked", _cut(
            f"still reserved for {_named(new.reserved)}" if use else ""
        )
    added = tuple(name for name in new.reserved if name not in old.reserved)
    if added:
        return "ClaimReserved", _cut(f"for {_named(added)}")
    gone = tuple(name for name in old.reserved if name not in new.reserved)
    if gone:
        return "ClaimReleased", _cut(f"by {_named(gone)}")
    return None


def _read_slice(tree: JsonObject) -> SliceState:
    spec = _part(tree, "spec")
    pool = _part(spec, "pool")
    devices = [device for device in _list(spec, "devices") if isinstance(device, dict)]
    return SliceState(
        f"{_text(spec, 'driver')}/{_text(pool, 'name')}",
        _integer(pool, "generation"),
        _integer(_part(tree, "metadata"), "generation"),
        tuple(_text(device, "name") for device in devices),
        tuple(
            f"{_text(device, 'name')} {_taint(taint)}"
            for device in devices
            if "taints" in device
            for taint in _list(device, "taints")
            if isinstance(taint, dict)
        ),
    )


def _tell_slice(old: SliceState | None, new: SliceState) -> Told | None:
    place = f"pool {new.place} generation {new.pool}"
    if old is None:
        tainted = f", tainted: {_named(new.taints)}" if new.taints else ""
        return "SlicePublished", _cut(f"{place} with {_count(new.devices, 'device')}{tainted}")
    if (old.place, old.pool) != (new.place, new.pool):
        change = f"{place} with {_count(new.devices, 'device')}"
        return "SliceChanged", _cut(f"{change}, before: pool {old.place} generation {old.pool}")
    parts = _differences("devices", old.devices, new.devices)
    parts += _differences("taints", old.taints, new.taints)
    if parts:
        return "SliceChanged", _cut(f"{place}: {'; '.join(parts)}")
    return "SliceChanged", f"{place}: what devices have or consume"


def _read_rule(tree: JsonObject) -> RuleState:
    spec = _part(tree, "spec")
    selector = spec.get("deviceSelector")
    named = _part(spec, "deviceSelector")
    text = "/".join(_text(named, part) or "*" for part in ("driver", "pool", "device"))
    condition = ""
    for found in _list(_part(tree, "status"), "conditions"):
        if isinstance(found, dict) and found.get("type") == "EvictionInProgress":
            condition = f"{_text(found, 'reason')}: {_text(found, 'message')}"
    return RuleState(
        _taint(_part(spec, "taint")),
        text if isinstance(selector, dict) else "no selector",
        condition,
    )


def _tell_rule(old: RuleState | None, new: RuleState) -> Told | None:
    if old is None:
        return "RuleCreated", _cut(f"{new.taint} on {new.selector}")
    if (old.taint, old.selector) != (new.taint, new.selector):
        before = f"{old.taint} on {old.selector}"
        return "RuleChanged", _cut(f"{new.taint} on {new.selector}, before: {before}")
    return "RuleStatus", _cut(new.condition)


def _read_node(tree: JsonObject) -> NodeState:
    spec = _part(tree, "spec")
    ready = ""
    for condition in _list(_part(tree, "status"), "conditions"):
        if isinstance(condition, dict) and condition.get("type") == "Ready":
            ready = _text(condition, "status")
    return NodeState(
        ready,
        spec.get("unschedulable") is True,
        tuple(_taint(taint) for taint in _list(spec, "taints") if isinstance(taint, dict)),
    )


def _tell_node(old: NodeState | None, new: NodeState) -> Told | None:
    if old is None:
        return "NodeCreated", "ready" if new.ready == "True" else "not ready"
    if new.ready != old.ready:
        return "NodeReady" if new.ready == "True" else "NodeNotReady", f"Ready is {new.ready}"
    if new.unschedulable != old.unschedulable:
        return "NodeChanged", "cordoned" if new.unschedulable else "uncordoned"
    return "NodeChanged", _cut("; ".join(_differences("taints", old.taints, new.taints)))


def _plain(word: str) -> Kind:
    """Follow a kind by its generation: creation, change of the specification, deletion."""

    def tell(old: PlainState | None, new: PlainState) -> Told | None:
        if old is None:
            return f"{word}Created", ""
        if new.deleting and not old.deleting:
            return f"{word}DeletionAsked", ""
        if new.generation != old.generation:
            return f"{word}Changed", f"generation {new.generation}"
        return None

    return Kind(word=word, read=_read_plain, tell=tell)


def _read_plain(tree: JsonObject) -> PlainState:
    metadata = _part(tree, "metadata")
    return PlainState(_integer(metadata, "generation"), "deletionTimestamp" in metadata)


def _differences(what: str, old: tuple[str, ...], new: tuple[str, ...]) -> list[str]:
    before, after = set(old), set(new)
    added = tuple(name for name in new if name not in before)
    gone = tuple(name for name in old if name not in after)
    parts = [f"{what} added: {_named(added)}"] if added else []
    if gone:
        parts.append(f"{what} removed: {_named(gone)}")
    if not parts and old != new:
        parts.append(f"{what} in another order")
    return parts


def _taint(taint: JsonObject) -> str:
    value = _text(taint, "value")
    return f"{_text(taint, 'key')}{'=' + value if value else ''}:{_text(taint, 'effect')}"


def _named(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:NAMED_MAX])
    return shown if len(names) <= NAMED_MAX else f"{shown} and {len(names) - NAMED_MAX} more"


def _count(things: tuple[str, ...], word: str) -> str:
    return f"1 {word}" if len(things) == 1 else f"{len(things)} {word}s"


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"


# Typed access as in `json_tree`, for one step on trees known to be dictionaries: every object event
# passes here, and a step through the general functions costs four times as much.


def _part(tree: JsonObject, name: str) -> JsonObject:
    found = tree.get(name)
    return found if isinstance(found, dict) else _NOTHING


def _list(tree: JsonObject, name: str) -> list[Any]:
    found = tree.get(name)
    return found if isinstance(found, list) else []


def _text(tree: JsonObject, name: str) -> str:
    found = tree.get(name)
    return found if isinstance(found, str) else ""


def _integer(tree: JsonObject, name: str) -> int:
    found = tree.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


_NOTHING: JsonObject = {}
_FINAL = frozenset(("Succeeded", "Failed"))
_UNTOLD = frozenset((("coordination.k8s.io", "leases"), ("", "endpoints")))
_DRA = "resource.k8s.io"
_DECIDED_GROUPS = {
    "resourceclaims": _DRA,
    "resourceclaimtemplates": _DRA,
    "resourceslices": _DRA,
    "resourceslicepatches": _DRA,
    "deviceclasses": _DRA,
    "devicetaintrules": _DRA,
    "workloads": "scheduling.k8s.io",
    "podgroups": "scheduling.k8s.io",
}
_KINDS: dict[tuple[str, str], Kind] = {
    ("", "pods"): Kind(word="Pod", read=_read_pod, tell=_tell_pod),
    ("", "nodes"): Kind(word="Node", read=_read_node, tell=_tell_node),
    (_DRA, "resourceclaims"): Kind(word="Claim", read=_read_claim, tell=_tell_claim),
    (_DRA, "resourceslices"): Kind(word="Slice", read=_read_slice, tell=_tell_slice),
    (_DRA, "devicetaintrules"): Kind(word="Rule", read=_read_rule, tell=_tell_rule),
    ("", "namespaces"): _plain("Namespace"),
    (_DRA, "deviceclasses"): _plain("Class"),
    (_DRA, "resourceclaimtemplates"): _plain("Template"),
    (_DRA, "resourceslicepatches"): _plain("Patch"),
}
_OTHER = _plain("Object")
