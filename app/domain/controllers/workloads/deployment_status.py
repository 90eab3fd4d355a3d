"""The status of a Deployment: sums over its ReplicaSets, and two conditions.

Parity: controllers.md 5.5: `Progressing` goes NewReplicaSetCreated, ReplicaSetUpdated,
NewReplicaSetAvailable; `Available` follows the pods that must be available.
"""

from collections.abc import Sequence

from app.domain.controllers.workloads import pods_of
from app.domain.controllers.workloads.answer import Situation, WorkloadSteps
from app.domain.objects.write.commands import UpdateObject
from app.domain.values import json_tree, timestamps
from app.domain.values.condition_types import REPLICA_FAILURE
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant, TimestampError


def answer(
    situation: Situation,
    new: JsonObject | None,
    sets: Sequence[JsonObject],
    *,
    replicas: int,
    unavailable_max: int,
    annotations: dict[str, str],
) -> WorkloadSteps:
    """Writes the status and the revision when they have changed."""
    tree = situation.tree
    numbers = _numbers(tree, new, sets)
    conditions = _Conditions(tree, situation.now)
    is_available = numbers["availableReplicas"] >= replicas - unavailable_max
    conditions.put(
        "Available",
        "True" if is_available else "False",
        "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable",
        "Deployment has minimum availability."
        if is_available
        else "Deployment does not have minimum availability.",
    )
    due = None
    if new is not None:
        due = _judge_progress(situation, conditions, new, numbers, replicas)
    conditions.take_over(_failure_of(new, sets))
    status: JsonObject = pods_of.without_zeros({**numbers}, "terminatingReplicas")
    if collisions := json_tree.integer(tree, "status", "collisionCount"):
        status["collisionCount"] = collisions
    status["conditions"] = conditions.found
    kept = meta.annotations(tree)
    if status == tree.get("status") and annotations.items() <= kept.items():
        return WorkloadSteps(due=due)
    command: UpdateObject = pods_of.with_status(situation, status)
    if annotations:
        command.tree["metadata"]["annotations"] = kept | annotations
    return WorkloadSteps(steps=(command,), due=due)


def _failure_of(new: JsonView | None, sets: Sequence[JsonView]) -> JsonView:
    """The condition of a set whose pods could not be created, the new set first; empty if none."""
    for replica_set in (*(() if new is None else (new,)), *sets):
        for condition in meta.condition_trees(replica_set):
            if condition.get("type") == REPLICA_FAILURE:
                return condition
    return json_tree.EMPTY


def _numbers(tree: JsonView, new: JsonView | None, sets: Sequence[JsonView]) -> dict[str, int]:
    def total(field: str) -> int:
        return sum(json_tree.integer(replica_set, "status", field) or 0 for replica_set in sets)

    wanted = sum(core.replicas(replica_set) or 0 for replica_set in sets)
    available = total("availableReplicas")
    updated = 0 if new is None else json_tree.integer(new, "status", "replicas") or 0
    return {
        "observedGeneration": meta.generation(tree) or 0,
        "replicas": total("replicas"),
        "updatedReplicas": updated,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted - available),
        "terminatingReplicas": total("terminatingReplicas"),
    }


def _judge_progress(
    situation: Situation,
    conditions: "_Conditions",
    new: JsonView,
    numbers: dict[str, int],
    replicas: int,
) -> Instant | None:
    """Sets `Progressing`; returns the instant at which the rollout exceeds its deadline."""
    name = meta.name(new)
    before = meta.status(situation.tree)
    present = conditions.of("Progressing")
    reason = json_tree.text(present, "reason")
    is_complete = (
        numbers["updatedReplicas"] == numbers["replicas"] == numbers["availableReplicas"]
        and numbers["updatedReplicas"] == replicas
    )
    if not present:
        text = f'Created new replica set "{name}"'
        conditions.put("Progressing", "True", "NewReplicaSetCreated", text)
    elif is_complete:
        text = f'ReplicaSet "{name}" has successfully progressed.'
        if reason != "NewReplicaSetAvailable" or present.get("message") != text:
            conditions.put("Progressing", "True", "NewReplicaSetAvailable", text)
        return None
    elif reason == "NewReplicaSetAvailable" and numbers["updatedReplicas"] == numbers["replicas"]:
        return None  # a pod of a finished rollout is being replaced: no new rollout
    elif _has_progressed(before, numbers):
        conditions.put(
            "Progressing",
            "True",
            "ReplicaSetUpdated",
            f'ReplicaSet "{name}" is progressing.',
        )
    deadline = json_tree.integer(situation.tree, "spec", "progressDeadlineSeconds")
    if deadline is None or reason == "ProgressDeadlineExceeded":
        return None
    updated = conditions.updated("Progressing")
    due = Instant(updated + deadline * SECOND)
    if due > situation.now:
        return due
    text = f'ReplicaSet "{name}" has timed out progressing.'
    conditions.put("Progressing", "False", "ProgressDeadlineExceeded", text)
    return None


def _has_progressed(before: JsonView, numbers: dict[str, int]) -> bool:
    def old(field: str) -> int:
        return json_tree.integer(before, field) or 0

    return (
        numbers["updatedReplicas"] > old("updatedReplicas")
        or numbers["replicas"] - numbers["updatedReplicas"]
        < old("replicas") - old("updatedReplicas")
        or numbers["readyReplicas"] > old("readyReplicas")
        or numbers["availableReplicas"] > old("availableReplicas")
    )


class _Conditions:
    """The conditions of a Deployment; `found` is the list to store."""

    def __init__(self, tree: JsonView, now: Instant) -> None:
        self._now = now
        self.found: list[JsonObject] = [dict(condition) for condition in meta.condition_trees(tree)]

    def of(self, kind: str) -> JsonView:
        for condition in self.found:
            if condition.get("type") == kind:
                return condition
        return json_tree.EMPTY

    def updated(self, kind: str) -> Instant:
        try:
            return timestamps.parse(json_tree.text(self.of(kind), "lastUpdateTime"))
        except TimestampError:
            return self._now

    def take_over(self, failure: JsonView) -> None:
        """Copies the failure condition of a set; removes it when there is no failure."""
        if failure:
            self.put(
                REPLICA_FAILURE,
                json_tree.text(failure, "status"),
                json_tree.text(failure, "reason"),
                json_tree.text(failure, "message"),
            )
        else:
            self.found = [one for one in self.found if one.get("type") != REPLICA_FAILURE]

    def put(self, kind: str, status: str, reason: str, message: str) -> None:
        """Sets a condition; keeps Available and ReplicaFailure if status and reason are equal."""
        present = self.of(kind)
        is_same = (present.get("status"), present.get("reason")) == (status, reason)
        if is_same and kind in ("Available", REPLICA_FAILURE):
            return
        text = timestamps.seconds_text(self._now)
        since = present["lastTransitionTime"] if present.get("status") == status else text
        made: JsonObject = {
            "type": kind,
            "status": status,
            "lastUpdateTime": text,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
        self.found = [c for c in self.found if c.get("type") != kind] + [made]
