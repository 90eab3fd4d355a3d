"""The tables of the timeline: the followed fields of each kind of object, and names of changes.

This module is not a view; `timeline` uses it. A `FollowedKind` reads only the followed fields of
an object and names the difference between two states. Names begin with `word`: `PodScheduled`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import msgspec

from app.domain.log import Event, EventType, ObjectKey, refusals, replays
from app.domain.log.pages import Page
from app.domain.log.records import KUBELET_FAILURE, KUBELET_REPORT
from app.domain.values import api_groups, api_resources, condition_types, json_tree
from app.domain.values.fields import core
from app.domain.values.identifiers import GroupResource
from app.domain.values.json_tree import JsonObject
from projections import outlines

TEXT_MAX = 1000
"""Longest text of an entry, in characters; a longer text is cut and marked."""

NAMED_MAX = 8
"""Devices, claims or consumers that a text names; the others are counted."""

TAINTS_MAX = 1000
"""Taints whose texts are kept for the next device with the same one."""

DECISION = "Decision"
"""A recorded decision of a controller."""

WARNING = "Warning"
"""A Kubernetes Event that warns."""

WRITE_REFUSED = "WriteRefused"
"""A write that the API refused, from an audit log."""

ATTEMPT_FAILED = "AttemptFailed"
"""An attempt to place a pod that failed, from the log of a scheduler."""

ATTEMPT_SUCCEEDED = "AttemptSucceeded"
"""An attempt after which the pod was bound, from the same log."""

POD_EVICTED, POD_DELETION, AFTER = "PodEvicted", "PodDeletionAsked", "after "
"""The kinds of the condition DisruptionTarget and of a deletion, whose text begins so with it."""

LOGGED_ATTEMPTS = {
    "unschedulable": ATTEMPT_FAILED,
    "error": ATTEMPT_FAILED,
    "bound": ATTEMPT_SUCCEEDED,
    KUBELET_FAILURE: "KubeletFailed",
    KUBELET_REPORT: "KubeletReported",
}
"""The names of what components logged about pods, by the verb of the observed request."""

OF_OTHER_EVENTS = {
    *(DECISION, WARNING, WRITE_REFUSED, *LOGGED_ATTEMPTS.values()),
    *(EventType.CONFLICT_OBSERVED, EventType.GAP_OBSERVED),
    *(EventType.HISTORY_FORKED, EventType.HISTORY_IMPORTED),
}
"""The kinds of entries of events that change no followed object."""

_OF_PRINTED = {
    "uses no claims": "its claims were not recorded",
    "with no devices": "with devices that were not recorded",
    "no devices": "devices that were not recorded",
}
"""Beginnings of texts that tables of kubectl do not prove, and what is true then."""

_LOGGED_VERBS = [f'"verb":"{verb}"'.encode() for verb in LOGGED_ATTEMPTS]

_Outline = TypeVar("_Outline")

Description: TypeAlias = tuple[str, str]
"""The name of a change, and the text about it."""


class PodState(msgspec.Struct, frozen=True, gc=False, tag="p", array_like=True):
    """The followed fields of a Pod."""

    node: str
    phase: str
    deleting: bool
    disruption: str
    unschedulable: str
    claims: tuple[str, ...]


class ClaimState(msgspec.Struct, frozen=True, gc=False, tag="c", array_like=True):
    """The followed fields of a ResourceClaim."""

    allocated: bool
    devices: tuple[str, ...]
    reserved: tuple[str, ...]
    deleting: bool
    reports: tuple[str, ...] = ()


class SliceState(msgspec.Struct, frozen=True, gc=False, tag="s", array_like=True):
    """The followed fields of a ResourceSlice; `generation` is the object's, `pool` the pool's."""

    place: str
    pool: int
    generation: int
    devices: tuple[str, ...]
    taints: tuple[str, ...]


class RuleState(msgspec.Struct, frozen=True, gc=False, tag="r", array_like=True):
    """The followed fields of a DeviceTaintRule."""

    taint: str
    selector: str
    condition: str


class NodeState(msgspec.Struct, frozen=True, gc=False, tag="n", array_like=True):
    """The followed fields of a Node."""

    ready: str
    unschedulable: bool
    taints: tuple[str, ...]
    labels: tuple[str, ...] = ()


class PlainState(msgspec.Struct, frozen=True, gc=False, tag="o", array_like=True):
    """The followed fields of other objects; the generation stands for the specification."""

    generation: int
    deleting: bool


State: TypeAlias = PodState | ClaimState | SliceState | RuleState | NodeState | PlainState


States: TypeAlias = Sequence[tuple[Event, State | None]]
"""Events about objects of one kind, each with the state of the object; None for deletions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedKind:
    """A kind that the timeline follows: `states` reads a page, `describe` names a difference.

    `describe` returns None when the difference is not shown.
    """

    word: str
    states: Callable[[Page, GroupResource], States]
    describe: Callable[[Any, Any], Description | None]


def kind_of(place: GroupResource) -> FollowedKind | None:
    """The kind of a group and resource; None when the timeline does not follow it."""
    kind = _KINDS.get(place, _OTHER)
    return kind if kind is not _OTHER or place not in _NOT_SHOWN else None


def is_of_another_event(kind: str) -> bool:
    """Whether entries of a kind come from events that store nothing of their subject."""
    return kind in OF_OTHER_EVENTS


def is_by_own_request(kind: str) -> bool:
    """Whether only a deletion or a binding makes the change that entries of a kind name."""
    return kind == condition_types.POD_SCHEDULED or kind.endswith(_DELETION_ASKED)


def describe_fact(event: Event) -> Description | None:
    """The name and text of an event that is not about an object; None when it is not shown."""
    if event.type is EventType.REQUEST_OBSERVED:
        return _describe_refusal(event) or _describe_attempt(event)
    if event.type is EventType.DECISION_RECORDED:
        return describe_decision(outlines.decision(event.body))
    body = event.object
    if event.type is EventType.HISTORY_FORKED:
        return event.type.value, f"of {body.get('parent')} after revision {body.get('revision')}"
    return event.type.value, cut(json_tree.text(body, "message") or json_tree.text(body, "reason"))


def of_printed(text: str) -> str:
    """The text of an entry about an object of which kubectl printed some fields."""
    for beginning, known in _OF_PRINTED.items():
        if text.startswith(beginning):
            return known + text.removeprefix(beginning)
    return text


def _describe_refusal(event: Event) -> Description | None:
    """The reason why the API refused a write of a kind that is followed."""
    place = event.key.group, event.key.resource
    if place == api_resources.EVENTS or kind_of(place) is None or not refusals.is_refusal(event):
        return None
    return WRITE_REFUSED, cut(f"{refusals.verb(event)}: {refusals.message(event)}")


def _describe_attempt(event: Event) -> Description | None:
    """The entry of a line that a scheduler or kubelet logged about a pod; None for others."""
    if not any(verb in event.body for verb in _LOGGED_VERBS):
        return None
    kind = LOGGED_ATTEMPTS.get(json_tree.text(event.object, "verb"))
    return None if kind is None else (kind, cut(json_tree.text(event.object, "message")))


def describe_decision(decided: outlines.DecisionOutline) -> Description:
    """The name and text of a decision."""
    text = f"{decided.controller} decided {decided.outcome}"
    message = decided.summary.message
    return DECISION, cut(f"{text}: {message}" if message else text)


def subject_of_decision(event: Event, decided: outlines.DecisionOutline) -> ObjectKey:
    """The object that a decision is about."""
    key, resource = event.key, decided.resource
    if not resource:
        return key
    return ObjectKey(_DECIDED_GROUPS.get(resource, ""), resource, key.namespace, key.name)


def subject_of_fact(event: Event) -> ObjectKey:
    """The subject of a decision or conflict; of other events the key as stored."""
    key = event.key
    if event.type is EventType.CONFLICT_OBSERVED:
        return replays.conflict_of(event).subject
    if event.type is not EventType.DECISION_RECORDED:
        return key
    return subject_of_decision(event, outlines.decision(event.body))


def _pod_states(page: Page, place: GroupResource) -> States:
    return [
        (
            event,
            None
            if pod is None
            else PodState(
                pod.node, pod.phase, pod.deleting, pod.disruption, pod.unschedulable, pod.named
            ),
        )
        for event, pod in page.read(place, outlines.seen_pod)
    ]


def _describe_pod(old: PodState | None, new: PodState) -> Description | None:
    if old is None:
        claims = f"uses claims {_named(new.claims)}" if new.claims else "uses no claims"
        placed = f", on {new.node}" if new.node else ""
        return "PodCreated", cut(claims + placed)
    if new.node and not old.node:
        return condition_types.POD_SCHEDULED, f"to {new.node}"
    if new.deleting and not old.deleting:
        return POD_DELETION, cut(f"{AFTER}{new.disruption}") if new.disruption else ""
    if new.disruption != old.disruption and new.disruption:
        return POD_EVICTED, cut(new.disruption)
    if new.phase != old.phase:
        return "PodFinished" if new.phase in core.FINISHED else "PodPhase", new.phase
    if new.unschedulable != old.unschedulable and new.unschedulable:
        return "PodUnschedulable", cut(new.unschedulable)
    return None


def _claim_states(page: Page, place: GroupResource) -> States:
    return [
        (
            event,
            None
            if claim is None
            else ClaimState(
                claim.held is not None,
                tuple([f"{each.driver}/{each.pool}/{each.device}" for each in claim.held or ()]),
                tuple([consumer.name for consumer in claim.consumers]),
                claim.deleting,
                claim.reports,
            ),
        )
        for event, claim in page.read(place, outlines.seen_claim)
    ]


def _followed(
    word: str,
    read: Callable[[bytes], _Outline],
    state_of: Callable[[_Outline], State],
    describe: Callable[[Any, Any], Description | None],
) -> FollowedKind:
    """A kind whose followed fields are in an outline."""

    def states(page: Page, place: GroupResource) -> States:
        return [
            (event, None if outline is None else state_of(outline))
            for event, outline in page.read(place, read)
        ]

    return FollowedKind(word=word, states=states, describe=describe)


def _describe_claim(old: ClaimState | None, new: ClaimState) -> Description | None:
    use = f", reserved for {_named(new.reserved)}" if new.reserved else ""
    got = _named(new.devices) if new.devices else "no devices"
    if old is None:
        return "ClaimCreated", cut(f"with {got}{use}" if new.allocated else "without allocation")
    if new.allocated and not old.allocated:
        return "ClaimAllocated", cut(f"{got}{use}")
    if old.allocated and not new.allocated:
        return "ClaimDeallocated", cut(f"{_named(old.devices) or 'no devices'} given back")
    if new.devices != old.devices:
        return "ClaimReallocated", cut(f"{_named(old.devices)} became {got}")
    if new.deleting and not old.deleting:
        return f"Claim{_DELETION_ASKED}", cut(
            f"still reserved for {_named(new.reserved)}" if use else ""
        )
    added = tuple(name for name in new.reserved if name not in old.reserved)
    if added:
        return "ClaimReserved", cut(f"for {_named(added)}")
    gone = tuple(name for name in old.reserved if name not in new.reserved)
    if gone:
        return "ClaimReleased", cut(f"by {_named(gone)}")
    return _describe_reports(old, new)


def _describe_reports(old: ClaimState, new: ClaimState) -> Description | None:
    """The entry of a change of the drivers' reports of a claim; another order is no change."""
    added = tuple(text for text in new.reports if text not in old.reports)
    if added:
        return "ClaimReported", cut(_named(added))
    gone = tuple(text for text in old.reports if text not in new.reports)
    return ("ClaimReported", cut(f"no longer: {_named(gone)}")) if gone else None


def _slice_state(slice_outline: outlines.SliceOutline) -> SliceState:
    spec = slice_outline.spec
    return SliceState(
        f"{spec.driver}/{spec.pool.name}",
        spec.pool.generation,
        slice_outline.metadata.generation,
        tuple(device.name for device in spec.devices),
        tuple(
            f"{device.name} {_taint_of_tree(taint)}"
            for device in spec.devices
            for taint in device.taints
        ),
    )


def _describe_slice(old: SliceState | None, new: SliceState) -> Description | None:
    place = f"pool {new.place} generation {new.pool}"
    if old is None:
        tainted = f", tainted: {_named(new.taints)}" if new.taints else ""
        return "SlicePublished", cut(f"{place} with {_count(new.devices, 'device')}{tainted}")
    if (old.place, old.pool) != (new.place, new.pool):
        change = f"{place} with {_count(new.devices, 'device')}"
        return "SliceChanged", cut(f"{change}, before: pool {old.place} generation {old.pool}")
    parts = _differences("devices", old.devices, new.devices)
    parts += _differences("taints", old.taints, new.taints)
    if parts:
        return "SliceChanged", cut(f"{place}: {'; '.join(parts)}")
    return "SliceChanged", f"{place}: what devices have or consume"


def _rule_state(rule: outlines.RuleOutline) -> RuleState:
    selector = rule.spec.device_selector
    text = "no selector"
    if selector is not None:
        text = f"{selector.driver or '*'}/{selector.pool or '*'}/{selector.device or '*'}"
    condition = ""
    for listed in rule.status.conditions:
        if listed.type == condition_types.EVICTION_IN_PROGRESS:
            condition = f"{listed.reason}: {listed.message}"
    return RuleState(_taint(rule.spec.taint), text, condition)


def _describe_rule(old: RuleState | None, new: RuleState) -> Description | None:
    if old is None:
        return "RuleCreated", cut(f"{new.taint} on {new.selector}")
    if (old.taint, old.selector) != (new.taint, new.selector):
        before = f"{old.taint} on {old.selector}"
        return "RuleChanged", cut(f"{new.taint} on {new.selector}, before: {before}")
    return "RuleStatus", cut(new.condition)


def _node_state(node: outlines.NodeOutline) -> NodeState:
    ready = [
        condition.status
        for condition in node.status.conditions
        if condition.type == condition_types.READY
    ]
    return NodeState(
        ready[0] if ready else "",
        node.spec.unschedulable,
        tuple(_taint(taint) for taint in node.spec.taints),
        tuple(sorted(f"{name}={value}" for name, value in node.metadata.labels.items())),
    )


def _describe_node(old: NodeState | None, new: NodeState) -> Description | None:
    if old is None:
        return "NodeCreated", "ready" if new.ready == "True" else "not ready"
    if new.ready != old.ready:
        return "NodeReady" if new.ready == "True" else "NodeNotReady", f"Ready is {new.ready}"
    if new.unschedulable != old.unschedulable:
        return "NodeChanged", "cordoned" if new.unschedulable else "uncordoned"
    parts = _differences("taints", old.taints, new.taints)
    return "NodeChanged", cut("; ".join(parts + _differences("labels", old.labels, new.labels)))


def _plain(word: str) -> FollowedKind:
    """A kind that is followed by its generation: creation, change of the spec, deletion."""

    def describe(old: PlainState | None, new: PlainState) -> Description | None:
        if old is None:
            return f"{word}Created", ""
        if new.deleting and not old.deleting:
            return f"{word}{_DELETION_ASKED}", ""
        if new.generation != old.generation:
            return f"{word}Changed", f"generation {new.generation}"
        return None

    return _followed(word, outlines.outline, _plain_state, describe)


def _plain_state(outline: outlines.Outline) -> PlainState:
    metadata = outline.metadata
    return PlainState(metadata.generation, metadata.deletion_timestamp != "")


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


def _taint(taint: outlines.TaintOutline) -> str:
    return f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"


def _taint_of_tree(tree: JsonObject) -> str:
    text = json_tree.text
    return _taint_text(text(tree, "key"), text(tree, "value"), text(tree, "effect"))


@lru_cache(TAINTS_MAX)
def _taint_text(key: str, value: str, effect: str) -> str:
    """The text of a taint; the devices of a slice often have the same one."""
    return _taint(outlines.TaintOutline(key=key, value=value, effect=effect))


def _named(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:NAMED_MAX])
    return shown if len(names) <= NAMED_MAX else f"{shown} and {len(names) - NAMED_MAX} more"


def _count(things: tuple[str, ...], word: str) -> str:
    return f"1 {word}" if len(things) == 1 else f"{len(things)} {word}s"


def cut(text: str, end: str = "") -> str:
    """The text of an entry, cut and marked where it is longer than TEXT_MAX with its end."""
    length_max = TEXT_MAX - len(end)
    return (text if len(text) <= length_max else text[: length_max - 1] + "…") + end


_DELETION_ASKED = "DeletionAsked"
_NOT_SHOWN = frozenset((api_resources.LEASES, ("", "endpoints")))

_DECIDED_GROUPS = {
    "resourceclaims": api_groups.RESOURCE,
    "resourceclaimtemplates": api_groups.RESOURCE,
    "resourceslices": api_groups.RESOURCE,
    "resourceslicepatches": api_groups.RESOURCE,
    "deviceclasses": api_groups.RESOURCE,
    "devicetaintrules": api_groups.RESOURCE,
    "workloads": api_groups.SCHEDULING,
    "podgroups": api_groups.SCHEDULING,
}
_KINDS: dict[tuple[str, str], FollowedKind] = {
    api_resources.PODS: FollowedKind(word="Pod", states=_pod_states, describe=_describe_pod),
    api_resources.NODES: _followed("Node", outlines.node, _node_state, _describe_node),
    api_resources.RESOURCE_CLAIMS: FollowedKind(
        word="Claim", states=_claim_states, describe=_describe_claim
    ),
    api_resources.RESOURCE_SLICES: _followed(
        "Slice", outlines.slice, _slice_state, _describe_slice
    ),
    api_resources.DEVICE_TAINT_RULES: _followed("Rule", outlines.rule, _rule_state, _describe_rule),
    api_resources.NAMESPACES: _plain("Namespace"),
    api_resources.DEVICE_CLASSES: _plain("Class"),
    api_resources.RESOURCE_CLAIM_TEMPLATES: _plain("Template"),
    api_resources.RESOURCE_SLICE_PATCHES: _plain("Patch"),
}
_OTHER = _plain("Object")
