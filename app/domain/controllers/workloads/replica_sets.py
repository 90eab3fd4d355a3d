"""ReplicaSet: keeps the requested number of pods.

A finished or terminating pod does not count, so the replacement of an evicted pod is created as
soon as the eviction has begun. Parity: controllers.md 5.5.
"""

from collections import Counter

from app.domain.controllers.workloads import pods_of
from app.domain.controllers.workloads.answer import Report, Situation, Step, WorkloadSteps
from app.domain.values import api_groups, api_resources, decimals, json_tree, timestamps
from app.domain.values.condition_types import REPLICA_FAILURE
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def sync(situation: Situation) -> WorkloadSteps:
    """Creates or deletes pods; when the number is right, writes the status."""
    pods = situation.owned(api_resources.PODS)
    active = [pod for pod in pods if pods_of.is_active(pod)]
    if not situation.is_ending:
        wanted = core.replicas(situation.tree) or 0
        missing = wanted - len(active)
        if missing > 0:
            return WorkloadSteps(steps=_creates(situation, min(missing, situation.pods_max)))
        if missing < 0:
            return WorkloadSteps(steps=_deletes(active, min(-missing, situation.pods_max)))
    return _status(situation, active, _leaving(pods))


def failed(situation: Situation, problem: str) -> tuple[Step, ...]:
    """The status of a set whose pods could not be created; the next successful status clears it.

    Parity: controllers.md 5.5; the condition ReplicaFailure, which Deployments take over.
    """
    pods = situation.owned(api_resources.PODS)
    active = [pod for pod in pods if pods_of.is_active(pod)]
    return _status(situation, active, _leaving(pods), problem).steps


def _leaving(pods: list[JsonObject]) -> int:
    return sum(1 for pod in pods if meta.is_deleting(pod) and not core.is_finished(pod))


def _creates(situation: Situation, count: int) -> tuple[Step, ...]:
    template = core.template(situation.tree)
    owner = pods_of.owner_reference(situation, api_groups.APPS_V1, "ReplicaSet")
    names: set[str] = set()
    steps: list[Step] = []
    for index in range(count):
        pod = pods_of.from_template(situation, template, owner)
        base = f"{situation.key.name}-"
        seed = f"{situation.uid}/{situation.objects.revision}/{index}"
        name = pods_of.fresh_name(situation.objects, situation.key.namespace, base, seed, names)
        pod["metadata"] |= {"generateName": base, "name": name}
        steps.append(pods_of.create(pod))
        steps.append(Report(reason="SuccessfulCreate", message=f"Created pod: {name}"))
    return tuple(steps)


def _deletes(active: list[JsonObject], count: int) -> tuple[Step, ...]:
    on_node = Counter(core.node_name(pod) for pod in active)
    order = sorted(active, key=lambda pod: _worth(pod, on_node))
    steps: list[Step] = []
    for pod in order[:count]:
        steps.append(pods_of.delete(pod))
        name = pod["metadata"]["name"]
        steps.append(Report(reason="SuccessfulDelete", message=f"Deleted pod: {name}"))
    return tuple(steps)


def _worth(pod: JsonView, on_node: Counter[str]) -> tuple[object, ...]:
    """Sorts what is deleted first to the front: upstream's ranking of active pods."""
    node = core.node_name(pod)
    since = pods_of.ready_since(pod)
    cost = meta.annotation(pod, DELETION_COST)
    return (
        bool(node),
        ("Pending", "Unknown", "Running").index(_phase(pod)),
        since is not None,
        decimals.integer(cost) or 0,
        -on_node[node],
        -(since or 0),
        _reversed(meta.creation_timestamp(pod)),
        meta.name(pod),
    )


def _phase(pod: JsonView) -> str:
    phase = meta.phase(pod)
    return phase if phase in ("Pending", "Running") else "Unknown"


def _reversed(text: str) -> tuple[int, ...]:
    """Newer times first."""
    return tuple(-ord(char) for char in text)


def _status(
    situation: Situation, active: list[JsonObject], leaving: int, problem: str = ""
) -> WorkloadSteps:
    tree = situation.tree
    seconds = core.min_ready_seconds(tree) or 0
    counts = pods_of.count(active, seconds, situation.now)
    labels = json_tree.labels(tree, "spec", "template", "metadata", "labels").items()
    status: JsonObject = pods_of.without_zeros(
        {
            "replicas": counts.all,
            "fullyLabeledReplicas": sum(1 for pod in active if labels <= meta.labels(pod).items()),
            "readyReplicas": counts.ready,
            "availableReplicas": counts.available,
            "terminatingReplicas": leaving,
            "observedGeneration": meta.generation(tree) or 0,
        },
        "replicas",
        "terminatingReplicas",
    )
    if problem:
        status["conditions"] = [_failure(tree, problem, situation.now)]
    if status == tree.get("status"):
        return WorkloadSteps(due=counts.due)
    return WorkloadSteps(steps=(pods_of.with_status(situation, status),), due=counts.due)


def _failure(tree: JsonView, problem: str, now: Instant) -> JsonObject:
    """The failure condition; an existing one is kept unchanged."""
    for condition in meta.condition_trees(tree):
        if condition.get("type") == REPLICA_FAILURE:
            return condition
    return {
        "type": REPLICA_FAILURE,
        "status": "True",
        "lastTransitionTime": timestamps.seconds_text(now),
        "reason": "FailedCreate",
        "message": problem,
    }
