"""The pods of a Job: those that have ended, those that run, and new ones.

A pod has a finalizer until the Job has counted it; one plan contains the count and the removal of
the finalizer, so that no pod is counted twice or lost.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.controllers import failure_policies
from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.workloads import pods_of
from app.domain.controllers.workloads.answer import Report, Situation, Step
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import api_resources, condition_types, decimals, json_tree, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant, TimestampError

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"

BACKOFF_FIRST_SECONDS = 10
BACKOFF_MAX_SECONDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPods:
    """The pods of a Job. The pods in `ended` still have the finalizer and must be counted."""

    all: tuple[JsonObject, ...]
    active: tuple[JsonObject, ...]
    ended: tuple[JsonObject, ...]
    leaving: int

    @property
    def restarts(self) -> int:
        """The number of restarts of containers in active pods."""
        return sum(
            status.restart_count
            for pod in self.active
            for status in (*core.init_container_statuses(pod), *core.container_statuses(pod))
        )


def of_job(situation: Situation) -> JobPods:
    """All pods of the Job, grouped by their state."""
    pods = situation.owned(api_resources.PODS)
    only_failed = replaces_failed_only(meta.spec(situation.tree))
    ended = tuple(
        pod
        for pod in pods
        if FINALIZER in meta.finalizers(pod)
        and (core.is_finished(pod) or (meta.is_deleting(pod) and not only_failed))
    )
    return JobPods(
        all=tuple(pods),
        active=tuple(pod for pod in pods if pods_of.is_active(pod)),
        ended=ended,
        leaving=sum(1 for p in pods if meta.is_deleting(p) and not core.is_finished(p)),
    )


def replaces_failed_only(spec: JsonView) -> bool:
    """Whether the Job waits for terminating pods: by its policy, or because it judges failures."""
    if json_tree.text(spec, "podReplacementPolicy") == "Failed":
        return True
    return failure_policies.has_failure_policy(spec)


def has_succeeded(pod: JsonView) -> bool:
    """True when the pod's phase is Succeeded."""
    return meta.phase(pod) == "Succeeded"


def index_of(pod: JsonView) -> int | None:
    """The completion index of a pod of an indexed Job."""
    return decimals.natural(meta.annotation(pod, INDEX))


def freed(pod: JsonView) -> PatchObject | None:
    """The command that removes the finalizer; None when the pod has none."""
    metadata = meta.metadata(pod)
    finalizers = meta.finalizers_of(metadata)
    if FINALIZER not in finalizers:
        return None
    left = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
    return PatchObject(
        key=ObjectKey(*api_resources.PODS, metadata["namespace"], metadata["name"]),
        version="v1",
        type=PatchType.MERGE,
        body={"metadata": {**meta.same_object(pod), "finalizers": left or None}},
        options=MANAGER,
    )


def creates(situation: Situation, indexes: Iterable[int | None]) -> list[Step]:
    """Creates a pod for each index; None is for a pod without an index."""
    names: set[str] = set()
    steps: list[Step] = []
    for number, index in enumerate(indexes):
        base = f"{situation.key.name}-" if index is None else f"{situation.key.name}-{index}-"
        seed = f"{situation.uid}/{situation.objects.revision}/{number}"
        name = pods_of.fresh_name(situation.objects, situation.key.namespace, base, seed, names)
        pod = _pod(situation, index)
        pod["metadata"] |= {"generateName": base, "name": name}
        steps.append(pods_of.create(pod))
        steps.append(Report(reason="SuccessfulCreate", message=f"Created pod: {name}"))
    return steps


def deletes(pods: Iterable[JsonObject]) -> list[Step]:
    """Deletes pods, each with its report."""
    steps: list[Step] = []
    for pod in pods:
        name = pod["metadata"]["name"]
        steps.append(pods_of.delete(pod))
        steps.append(Report(reason="SuccessfulDelete", message=f"Deleted pod: {name}"))
    return steps


def backoff_until(pods: JobPods) -> Instant | None:
    """The instant until which no pod is created because the last pods failed; None without.

    The delay is 10 s after the first failure, doubled with each further one without a success.
    """
    ends = sorted(
        (_ended_at(pod), has_succeeded(pod)) for pod in pods.all if not pods_of.is_active(pod)
    )
    failures = 0
    for _, is_success in ends:
        failures = 0 if is_success else failures + 1
    if not failures:
        return None
    delay = min(BACKOFF_FIRST_SECONDS << min(failures - 1, 16), BACKOFF_MAX_SECONDS)
    return Instant(ends[-1][0] + delay * SECOND)


def _ended_at(pod: JsonView) -> Instant:
    texts = [
        status.state.terminated.finished_at
        for status in core.container_statuses(pod)
        if status.state.terminated is not None
    ]
    texts += [
        condition.last_transition_time
        for condition in meta.conditions(pod)
        if condition.type == condition_types.READY
    ]
    texts.append(meta.deletion_timestamp(pod))
    for text in texts:
        try:
            return timestamps.parse(text)
        except TimestampError:
            continue
    return Instant(0)


def _pod(situation: Situation, index: int | None) -> JsonObject:
    template = core.template(situation.tree)
    owner = pods_of.owner_reference(situation, "batch/v1", "Job")
    pod = pods_of.from_template(situation, template, owner)
    metadata = pod["metadata"]
    metadata["finalizers"] = [*meta.finalizers_of(metadata), FINALIZER]
    if index is None:
        return pod
    text = str(index)
    metadata["annotations"] = meta.annotations_of(metadata) | {INDEX: text}
    metadata["labels"] = meta.labels_of(metadata) | {INDEX: text}
    spec = pod["spec"]
    spec["hostname"] = f"{situation.key.name}-{index}"
    variable = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
    }
    for field in ("containers", "initContainers"):
        for container in json_tree.objects(spec, field):
            container["env"] = [*container.get("env", ()), json_tree.copy(variable)]
    return pod
