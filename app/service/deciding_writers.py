"""Who wrote what in a recording: outsiders, controllers that decide again, controllers that do not.

A decide replay keeps what came from outside (users, drivers, kubelets, and controllers that are not
emulated) and leaves out what the controllers here decide again. The user name of a write tells; a
write without a named actor is judged by what it changed.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any

from app.domain.controllers import registry
from app.domain.log import Event, EventType
from app.domain.objects import extended_resources
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView

UNNAMED = "redra:import"
"""The actor of events whose source does not say who wrote them."""

DECIDED = (
    "garbage",
    "namespaces",
    "node-lifecycle",
    "pod-gc",
    "claims",
    "rule-status",
    "eviction",
    "scheduling",
)
"""The controllers that decide again. What others wrote (replicas, kubelets) is kept as recorded."""

ENTRY_ANNOTATION = "resource.kubernetes.io/pod-claim-name"

CONTROLLER_PREFIX = "system:serviceaccount:kube-system:"
KUBELET_PREFIX = "system:node:"

_SHORT = {
    "system:kube-scheduler": "scheduler",
    "system:serviceaccount:kube-system:": "",
}


class Writer(StrEnum):
    """What a decide replay does with a write."""

    OUTSIDE = "outside"
    DECIDED = "decided again"
    NOT_EMULATED = "controller that is not emulated"
    ECHO = "part of another write"


class Writers:
    """Sorts the events of a recording by who wrote them.

    `running` are the names of the controllers that decide again.
    """

    def __init__(self, running: Collection[str]) -> None:
        self._decided: dict[str, list[str]] = {}
        for name in running:
            self._decided.setdefault(registry.actor_of(name).user, []).append(name)

    def of(self, event: Event, before: JsonView | None) -> Writer:
        """The sort of one event about an object; `before` is the recorded object before it."""
        user = event.stamp.actor.user
        if user in self._decided:
            return Writer.DECIDED
        if user == UNNAMED:
            return self._unnamed(event, before)
        if user.startswith(CONTROLLER_PREFIX):
            return Writer.NOT_EMULATED
        return Writer.OUTSIDE

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """The names of controllers by the user name of their writes."""
        return self._decided

    def controllers_of(self, event: Event) -> Sequence[str]:
        """The names of the controllers that write under the name of the event's actor."""
        return self._decided.get(event.stamp.actor.user, ())

    def _unnamed(self, event: Event, before: JsonView | None) -> Writer:
        """Judge by the content: what only a controller writes was written by one."""
        if is_announcement(event, before):
            return Writer.ECHO
        resource = event.key.resource
        if before is None:
            is_ours = (resource == "resourceclaims" and _is_made(event.object)) or (
                resource == "events" and _reporter(event.object) in _REPORTERS
            )
            return Writer.DECIDED if is_ours else Writer.OUTSIDE
        if resource == "events":
            return Writer.DECIDED if _reporter(event.object) in _REPORTERS else Writer.OUTSIDE
        if event.type is EventType.OBJECT_DELETED:
            is_made = resource == "resourceclaims" and _is_made(event.object)
            return Writer.DECIDED if is_made else Writer.OUTSIDE
        changed = any(
            json_tree.get(before, *path) != json_tree.get(event.object, *path)
            for path in _CONTROLLERS_WRITE.get(resource, ())
        )
        if resource == "pods" and not changed:
            changed = _is_told(before, event.object)
        return Writer.DECIDED if changed else Writer.OUTSIDE


def is_kubelet(event: Event) -> bool:
    """Whether a node wrote it, or may have: what an unnamed writer says of a pod is taken so."""
    user = event.stamp.actor.user
    return user.startswith(KUBELET_PREFIX) or user == UNNAMED


def is_announcement(event: Event, before: JsonView | None) -> bool:
    """The first of the two revisions in which a pod goes away: nothing but deletion fields."""
    if before is None or event.key.resource != "pods":
        return False
    if event.type is not EventType.OBJECT_UPDATED:
        return False
    metadata = json_tree.mapping(event.object, "metadata")
    if metadata.get("deletionGracePeriodSeconds") != 0:
        return False
    return bool(_without_deletion(before) == _without_deletion(event.object))


def short_name(user: str) -> str:
    """The account without what all have in common."""
    for prefix, short in _SHORT.items():
        if user.startswith(prefix):
            return short + user[len(prefix) :]
    return user


_DELETION = frozenset(
    ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion")
)

_REPORTERS = frozenset(
    ("default-scheduler", "device-taint-eviction-controller", "resource_claim", "node-controller")
)

_CONTROLLERS_WRITE = {
    "pods": (
        ("spec", "nodeName"),
        ("status", "nominatedNodeName"),
        ("status", "resourceClaimStatuses"),
        ("status", "extendedResourceClaimStatus"),
    ),
    "resourceclaims": (
        ("status", "allocation"),
        ("status", "reservedFor"),
        ("metadata", "finalizers"),
    ),
    "devicetaintrules": (("status", "conditions"),),
    "nodes": (("spec", "taints"),),
    "namespaces": (("status", "conditions"),),
}


_ENDED_BY_US = (("DeletionByDeviceTaintManager",), ("PreemptionByScheduler",))
"""Reasons of pods that a controller here deletes after having told them."""


def _is_made(claim: JsonView) -> bool:
    """Whether a controller made the claim: from a template, or for extended resources."""
    annotations = json_tree.mapping(claim, "metadata", "annotations")
    return ENTRY_ANNOTATION in annotations or extended_resources.ANNOTATION in annotations


def _is_told(before: JsonView, after: JsonView) -> bool:
    """Whether the write says why the pod is not scheduled or is evicted, or ends one evicted."""
    path = ("metadata", "deletionTimestamp")
    begins = not json_tree.get(before, *path) and bool(json_tree.get(after, *path))
    evicted = _told(before, "DisruptionTarget")[:1] in _ENDED_BY_US
    return (begins and evicted) or any(
        _told(before, name) != _told(after, name) for name in ("DisruptionTarget", "PodScheduled")
    )


def _told(pod: JsonView, name: str) -> tuple[str, ...]:
    """Reason and message of a condition."""
    for condition in json_tree.objects(pod, "status", "conditions"):
        if condition.get("type") == name:
            return json_tree.text(condition, "reason"), json_tree.text(condition, "message")
    return ()


def _reporter(event: JsonView) -> str:
    return json_tree.text(event, "reportingComponent") or json_tree.text(
        event, "reportingController"
    )


def _without_deletion(tree: JsonView) -> Any:
    metadata = json_tree.mapping(tree, "metadata")
    kept = {name: value for name, value in metadata.items() if name not in _DELETION}
    return _bare({**tree, "metadata": kept})


def _bare(tree: Any) -> Any:
    """Without empty values, which sources write or leave out as they like."""
    if isinstance(tree, dict):
        kept = {name: _bare(value) for name, value in tree.items() if name != "managedFields"}
        return {name: value for name, value in kept.items() if value not in (None, {}, [], "")}
    if isinstance(tree, list):
        return [_bare(item) for item in tree]
    return tree
