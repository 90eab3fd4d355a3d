"""StatefulSet: pods with ordinals, one after the other unless the policy is parallel.

A pod is replaced only when the old pod of the same name is gone. Volume claims are created from the
templates and kept.
"""

from dataclasses import dataclass

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.workloads import pods_of, revisions, templates
from app.domain.controllers.workloads.answer import Report, Situation, Step, WorkloadSteps
from app.domain.controllers.workloads.revisions import Revision
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import CreateObject
from app.domain.values import api_groups, api_resources, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True, kw_only=True)
class _StatefulSetPods:
    situation: Situation
    revision: Revision
    current: str
    start: int
    replicas: int
    partition: int
    is_ordered: bool
    ready_seconds: int
    pods: dict[int, JsonObject]

    @property
    def ordinals(self) -> range:
        return range(self.start, self.start + self.replicas)

    def is_available(self, pod: JsonObject) -> bool:
        """Whether the pod has been ready for `minReadySeconds`, which the next pod waits for."""
        since = pods_of.available_at(pod, self.ready_seconds)
        return since is not None and since <= self.situation.now


def sync(situation: Situation) -> WorkloadSteps:
    """Creates, replaces or removes pods in the order of their ordinals; then writes the status."""
    stateful_set = _read(situation)
    steps: list[Step] = []
    if not situation.is_ending:
        if stateful_set.revision.create is not None:
            steps.append(stateful_set.revision.create)
            if situation.is_careful:
                return WorkloadSteps(steps=tuple(steps))
        steps += _present(stateful_set)
        if not steps:
            steps = _surplus(stateful_set) or _outdated(stateful_set)
        if steps:
            return WorkloadSteps(steps=tuple(steps))
    return _status(stateful_set)


def failed(situation: Situation, _problem: str) -> tuple[Step, ...]:
    """The status after a refused pod: that of the pods that are there."""
    return _status(_read(situation)).steps


def _read(situation: Situation) -> _StatefulSetPods:
    tree = situation.tree
    spec = meta.spec(tree)
    revision = revisions.present(situation, "StatefulSet")
    pods: dict[int, JsonObject] = {}
    for pod in situation.owned(api_resources.PODS):
        base, _, number = pod["metadata"]["name"].rpartition("-")
        if base == situation.key.name and number.isdecimal():
            pods[int(number)] = pod
    partition = json_tree.integer(spec, "updateStrategy", "rollingUpdate", "partition")
    return _StatefulSetPods(
        situation=situation,
        revision=revision,
        current=json_tree.text(tree, "status", "currentRevision") or revision.name,
        start=json_tree.integer(spec, "ordinals", "start") or 0,
        replicas=core.replicas(tree) or 0,
        partition=partition or 0,
        is_ordered=spec.get("podManagementPolicy") != "Parallel",
        ready_seconds=core.min_ready_seconds(tree) or 0,
        pods=pods,
    )


def _present(stateful_set: _StatefulSetPods) -> list[Step]:
    """Creates missing pods and replaces finished ones.

    The number of pods is bounded, because a set may request billions of them.
    """
    steps: list[Step] = []
    changed = 0
    for ordinal in stateful_set.ordinals:
        if changed == stateful_set.situation.pods_max:
            break
        before = len(steps)
        pod = stateful_set.pods.get(ordinal)
        if pod is None:
            steps += _create(stateful_set, ordinal)
        elif meta.is_deleting(pod):
            pass
        elif core.is_finished(pod):
            steps += _recreate(stateful_set, pod)
        elif stateful_set.is_available(pod):
            continue
        changed += len(steps) > before
        if stateful_set.is_ordered:
            break
    return steps


def _create(stateful_set: _StatefulSetPods, ordinal: int) -> list[Step]:
    situation = stateful_set.situation
    is_old = ordinal < stateful_set.partition and stateful_set.current != stateful_set.revision.name
    revision = stateful_set.current if is_old else stateful_set.revision.name
    template = (
        revisions.template_at(situation, revision) if is_old else core.template(situation.tree)
    )
    owner = pods_of.owner_reference(situation, api_groups.APPS_V1, "StatefulSet")
    pod = pods_of.from_template(situation, template, owner)
    name = f"{situation.key.name}-{ordinal}"
    metadata = pod["metadata"]
    metadata |= {"name": name, "generateName": f"{situation.key.name}-"}
    metadata["labels"] = meta.labels_of(metadata) | {
        NAME_LABEL: name,
        INDEX_LABEL: str(ordinal),
        templates.REVISION_LABEL: revision,
    }
    pod["spec"]["hostname"] = name
    if service := json_tree.text(situation.tree, "spec", "serviceName"):
        pod["spec"]["subdomain"] = service
    steps = _volume_claims(stateful_set, pod)
    steps.append(pods_of.create(pod))
    text = f"create Pod {name} in StatefulSet {situation.key.name} successful"
    steps.append(Report(reason="SuccessfulCreate", message=text))
    return steps


def _volume_claims(stateful_set: _StatefulSetPods, pod: JsonObject) -> list[Step]:
    """The pod's own volume claims; those that exist already are kept. Adds them to its volumes."""
    situation = stateful_set.situation
    steps: list[Step] = []
    own: list[JsonObject] = []
    for template in json_tree.objects(situation.tree, "spec", "volumeClaimTemplates"):
        volume = meta.name(template)
        name = f"{volume}-{pod['metadata']['name']}"
        own.append({"name": volume, "persistentVolumeClaim": {"claimName": name}})
        key = ObjectKey(*api_resources.PERSISTENT_VOLUME_CLAIMS, situation.key.namespace, name)
        if situation.objects.event(key) is not None:
            continue
        tree: JsonObject = json_tree.copy(template)
        tree.pop("status", None)
        labels = json_tree.labels(situation.tree, "spec", "selector", "matchLabels")
        tree |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        metadata = tree.setdefault("metadata", {})
        metadata |= {"name": name, "namespace": situation.key.namespace}
        metadata["labels"] = meta.labels(template) | labels
        steps.append(CreateObject(key=key, version="v1", tree=tree, options=MANAGER))
    if own:
        names = {volume["name"] for volume in own}
        others = core.volumes(pod)
        pod["spec"]["volumes"] = own + [v for v in others if v.get("name") not in names]
    return steps


def _recreate(stateful_set: _StatefulSetPods, pod: JsonObject) -> list[Step]:
    """Deletes a finished pod; it is created again when it is gone."""
    name = pod["metadata"]["name"]
    key = stateful_set.situation.key
    is_failed = meta.phase(pod) == "Failed"
    word = "Failed" if is_failed else "Succeeded"
    text = f"StatefulSet {key.namespace}/{key.name} is recreating {word} Pod {name}"
    report = Report(
        kind="Warning" if is_failed else "Normal",
        reason="RecreatingFailedPod" if is_failed else "RecreatingTerminatedPod",
        message=text,
    )
    return [report, *_delete(stateful_set, pod)]


def _surplus(stateful_set: _StatefulSetPods) -> list[Step]:
    """Deletes pods beyond the wanted number, highest ordinal first."""
    wanted = stateful_set.ordinals
    extra = sorted(
        (ordinal for ordinal in stateful_set.pods if ordinal not in wanted), reverse=True
    )
    if stateful_set.is_ordered:
        if any(meta.is_deleting(pod) for pod in stateful_set.pods.values()):
            return []
        extra = extra[:1]
    steps: list[Step] = []
    for ordinal in extra[: stateful_set.situation.pods_max]:
        if not meta.is_deleting(stateful_set.pods[ordinal]):
            steps += _delete(stateful_set, stateful_set.pods[ordinal])
    return steps


def _outdated(stateful_set: _StatefulSetPods) -> list[Step]:
    """Deletes the highest pod of an old revision, when all pods above it are available."""
    if json_tree.text(stateful_set.situation.tree, "spec", "updateStrategy", "type") == "OnDelete":
        return []
    for ordinal in reversed(stateful_set.ordinals):
        pod = stateful_set.pods.get(ordinal)
        if ordinal < stateful_set.partition or pod is None or meta.is_deleting(pod):
            return []
        if templates.revision_of(pod) != stateful_set.revision.name:
            return _delete(stateful_set, pod)
        if not stateful_set.is_available(pod):
            return []
    return []


def _delete(stateful_set: _StatefulSetPods, pod: JsonObject) -> list[Step]:
    name = pod["metadata"]["name"]
    text = f"delete Pod {name} in StatefulSet {stateful_set.situation.key.name} successful"
    return [pods_of.delete(pod), Report(reason="SuccessfulDelete", message=text)]


def _status(stateful_set: _StatefulSetPods) -> WorkloadSteps:
    situation = stateful_set.situation
    tree = situation.tree
    pods = [pod for pod in stateful_set.pods.values() if not core.is_finished(pod)]
    staying = [pod for pod in pods if not meta.is_deleting(pod)]
    counts = pods_of.count(staying, stateful_set.ready_seconds, situation.now)
    updated = sum(1 for pod in staying if templates.revision_of(pod) == stateful_set.revision.name)
    is_done = (
        updated == counts.ready == len(pods) == stateful_set.replicas and not stateful_set.partition
    )
    current = stateful_set.revision.name if is_done else stateful_set.current
    status: JsonObject = pods_of.without_zeros(
        {
            "observedGeneration": meta.generation(tree) or 0,
            "replicas": len(pods),
            "readyReplicas": counts.ready,
            "currentReplicas": sum(1 for pod in staying if templates.revision_of(pod) == current),
            "updatedReplicas": updated,
            "availableReplicas": counts.available,
            "currentRevision": current,
            "updateRevision": stateful_set.revision.name,
            "collisionCount": 0,
        },
        "replicas",
        "availableReplicas",
        "collisionCount",
    )
    if status == tree.get("status"):
        return WorkloadSteps(due=counts.due)
    return WorkloadSteps(steps=(pods_of.with_status(situation, status),), due=counts.due)
