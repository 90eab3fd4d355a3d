"""The pods of a workload: their creation, deletion and counts.

Parity: controllers.md 5.5 and the replica controllers' visible behaviour.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.workloads.answer import Situation
from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import CreateObject, DeleteObject, UpdateObject
from app.domain.values import api_resources, condition_types, json_tree, names, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant, TimestampError

NAME_ATTEMPTS_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCounts:
    """The counts of pods that are not being deleted. `due` is when one more becomes available."""

    all: int
    ready: int
    available: int
    due: Instant | None


def is_active(pod: JsonView) -> bool:
    """True when the pod is neither finished nor being deleted."""
    return not meta.is_deleting(pod) and not core.is_finished(pod)


def ready_since(pod: JsonView) -> Instant | None:
    """The instant since which the pod is ready; None when it is not."""
    for condition in meta.conditions(pod):
        if (condition.type, condition.status) == (condition_types.READY, "True"):
            try:
                return timestamps.parse(condition.last_transition_time)
            except TimestampError:
                return Instant(0)
    return None


def available_at(pod: JsonView, min_ready_seconds: int) -> Instant | None:
    """The instant at which the pod counts as available; None while it is not ready."""
    since = ready_since(pod)
    return None if since is None else Instant(since + min_ready_seconds * SECOND)


def count(pods: Iterable[JsonView], min_ready_seconds: int, now: Instant) -> PodCounts:
    """PodCounts a set of pods."""
    total = ready = available = 0
    due: list[Instant] = []
    for pod in pods:
        total += 1
        at = available_at(pod, min_ready_seconds)
        if at is None:
            continue
        ready += 1
        if at <= now:
            available += 1
        else:
            due.append(at)
    return PodCounts(all=total, ready=ready, available=available, due=min(due, default=None))


def owner_reference(situation: Situation, api_version: str, kind: str) -> JsonObject:
    """The controller reference for objects that a workload creates."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": situation.key.name,
        "uid": situation.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def from_template(situation: Situation, template: JsonView, owner: JsonObject) -> JsonObject:
    """A new pod from the template, without a name, with the given owner."""
    written = meta.metadata(template)
    metadata: JsonObject = {"namespace": situation.key.namespace}
    for field in ("labels", "annotations", "finalizers"):
        if written.get(field):
            metadata[field] = json_tree.copy(written[field])
    metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": json_tree.copy(template.get("spec") or {}),
    }


def create(pod: JsonObject) -> CreateObject:
    """The command that creates a pod whose name is set."""
    metadata = pod["metadata"]
    key = ObjectKey(*api_resources.PODS, metadata["namespace"], metadata["name"])
    return CreateObject(key=key, version="v1", tree=pod, options=MANAGER)


def delete(pod: JsonView) -> DeleteObject:
    """The command that deletes a pod, with its grace period."""
    metadata = meta.metadata(pod)
    key = ObjectKey(*api_resources.PODS, metadata["namespace"], metadata["name"])
    return DeleteObject(key=key, uid=meta.uid(pod), options=MANAGER)


def fresh_name(
    objects: ObjectsReader, namespace: str, base: str, seed: str, used_names: set[str]
) -> str:
    """A free name: the base and five characters derived from the seed.

    Upstream's API server adds them when the pod is created. Here the Event that names the pod is
    part of the same plan, so the controller adds them.
    """
    name = ""
    for attempt in range(NAME_ATTEMPTS_MAX):
        name = names.generated(base, seed, attempt)
        if (
            name not in used_names
            and objects.event(ObjectKey(*api_resources.PODS, namespace, name)) is None
        ):
            break
    used_names.add(name)
    return name


def with_status(situation: Situation, status: JsonObject) -> UpdateObject:
    """The command that writes the status and, with it, the annotations of the tree."""
    tree = {**situation.tree, "status": status}
    tree["metadata"] = {
        key: value for key, value in tree["metadata"].items() if key != "resourceVersion"
    }
    return UpdateObject(
        key=situation.key, version="v1", tree=tree, subresource="status", options=MANAGER
    )


def without_zeros(status: JsonObject, *kept: str) -> JsonObject:
    """The status as the API writes it: numbers that are 0 are left out, except those in `kept`."""
    return {key: value for key, value in status.items() if value != 0 or key in kept}
