"""DaemonSet: one pod on each node that it may run on.

The scheduler binds the pod, which has an affinity to its node by name, and tolerations for the
taints that controllers put on nodes.
"""

from dataclasses import dataclass

from app.domain.controllers import daemon_nodes
from app.domain.controllers.workloads import pods_of, revisions, templates
from app.domain.controllers.workloads.answer import Report, Situation, Step, WorkloadSteps
from app.domain.controllers.workloads.revisions import Revision
from app.domain.values import api_groups, api_resources, decimals, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView

GENERATION_LABEL = "pod-template-generation"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True, kw_only=True)
class _DaemonSetPods:
    """A DaemonSet: `wanted` are the nodes that need a pod, `pods` all pods by node.

    `pods` include terminating ones. Nodes in `keep` keep their pod but get no new one, because a
    taint with NoSchedule does not evict pods.
    """

    situation: Situation
    revision: Revision
    wanted: tuple[str, ...]
    keep: frozenset[str]
    pods: dict[str, list[JsonObject]]


def sync(situation: Situation) -> WorkloadSteps:
    """Creates missing pods, deletes misplaced ones, and rolls out a new template."""
    daemon_set = _read(situation)
    if not situation.is_ending:
        steps: list[Step] = []
        if daemon_set.revision.create is not None:
            steps.append(daemon_set.revision.create)
            if situation.is_careful:
                return WorkloadSteps(steps=tuple(steps))
        steps += _missing(daemon_set) + _misplaced(daemon_set)
        steps = steps or _outdated(daemon_set)
        if steps:
            return WorkloadSteps(steps=tuple(steps))
    return _status(daemon_set)


def failed(situation: Situation, _problem: str) -> tuple[Step, ...]:
    """The status after a refused pod: it counts the nodes that are to have one, with or without."""
    return _status(_read(situation)).steps


def _read(situation: Situation) -> _DaemonSetPods:
    objects = situation.objects
    template = core.template(situation.tree)
    nodes = [
        node for key in objects.keys(*api_resources.NODES) if (node := objects.get(key)) is not None
    ]
    wanted = tuple(
        node["metadata"]["name"] for node in nodes if not daemon_nodes.refusal(template, node)
    )
    pods: dict[str, list[JsonObject]] = {}
    for pod in situation.owned(api_resources.PODS):
        pods.setdefault(_node_of(pod), []).append(pod)
    return _DaemonSetPods(
        situation=situation,
        revision=revisions.present(situation, "DaemonSet"),
        wanted=wanted,
        keep=frozenset(
            node["metadata"]["name"]
            for node in nodes
            if not daemon_nodes.refusal(template, node, ("NoExecute",))
        ),
        pods=pods,
    )


def _node_of(pod: JsonView) -> str:
    """The node of a pod, bound or selected by its affinity."""
    node = core.node_name(pod)
    if node:
        return node
    affinity = json_tree.mapping(pod, "spec", "affinity", "nodeAffinity", _REQUIRED)
    for term in core.node_selector_terms(affinity):
        for field in core.field_requirements(term):
            if field.key == "metadata.name" and len(field.values) == 1:
                return field.values[0]
    return ""


def _missing(daemon_set: _DaemonSetPods) -> list[Step]:
    situation = daemon_set.situation
    bare = [node for node in daemon_set.wanted if not daemon_set.pods.get(node)]
    names: set[str] = set()
    steps: list[Step] = []
    for node in bare[: situation.pods_max]:
        base = f"{situation.key.name}-"
        seed = f"{situation.uid}/{situation.objects.revision}/{node}"
        name = pods_of.fresh_name(situation.objects, situation.key.namespace, base, seed, names)
        pod = _pod(daemon_set, node)
        pod["metadata"] |= {"generateName": base, "name": name}
        steps.append(pods_of.create(pod))
        steps.append(Report(reason="SuccessfulCreate", message=f"Created pod: {name}"))
    return steps


def _pod(daemon_set: _DaemonSetPods, node: str) -> JsonObject:
    situation = daemon_set.situation
    template = core.template(situation.tree)
    owner = pods_of.owner_reference(situation, api_groups.APPS_V1, "DaemonSet")
    pod = pods_of.from_template(situation, template, owner)
    pod["metadata"]["labels"] = meta.labels(pod) | {
        templates.REVISION_LABEL: daemon_set.revision.hash,
        GENERATION_LABEL: str(meta.generation(situation.tree) or 1),
    }
    spec = pod["spec"]
    present = spec.get("tolerations") or []
    spec["tolerations"] = present + [
        added for added in daemon_nodes.tolerations_of(spec) if added not in present
    ]
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity[_REQUIRED] = {"nodeSelectorTerms": [by_name]}
    return pod


def _misplaced(daemon_set: _DaemonSetPods) -> list[Step]:
    """Deletes pods on nodes that may not have one, second pods of a node, and failed pods."""
    steps: list[Step] = []
    for node in sorted(daemon_set.pods):
        pods = [pod for pod in daemon_set.pods[node] if not meta.is_deleting(pod)]
        kept = 1 if node in daemon_set.keep else 0
        pods.sort(key=lambda pod: (core.is_finished(pod), pod["metadata"]["creationTimestamp"]))
        for index, pod in enumerate(pods):
            name = pod["metadata"]["name"]
            if core.is_finished(pod) and index < kept:
                place = f"{daemon_set.situation.key.namespace}/{name}"
                text = f"Found failed daemon pod {place} on node {node}, will try to kill it"
                steps.append(Report(kind="Warning", reason="FailedDaemonPod", message=text))
            elif index < kept:
                continue
            steps += _delete(pod)
    return steps


def _outdated(daemon_set: _DaemonSetPods) -> list[Step]:
    """Deletes pods of older templates, as many as may be unavailable at a time."""
    tree = daemon_set.situation.tree
    strategy = json_tree.mapping(tree, "spec", "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return []
    allowed = _allowed(json_tree.get(strategy, "rollingUpdate", "maxUnavailable"), daemon_set)
    old: list[JsonObject] = []
    for node in daemon_set.wanted:
        pods = daemon_set.pods.get(node, [])
        ready = [p for p in pods if not meta.is_deleting(p) and pods_of.ready_since(p)]
        staying = [p for p in pods if not meta.is_deleting(p)]
        outdated = [
            pod for pod in staying if templates.revision_of(pod) != daemon_set.revision.hash
        ]
        if not ready:
            # Replacing a pod that is not ready costs no availability.
            old = outdated + old
            allowed -= 0 if outdated else 1
        else:
            old += outdated
    steps: list[Step] = []
    for pod in old[: max(0, allowed)]:
        steps += _delete(pod)
    return steps


def _allowed(value: object, daemon_set: _DaemonSetPods) -> int:
    return max(1, decimals.share(value, len(daemon_set.wanted)))


def _delete(pod: JsonObject) -> list[Step]:
    name = pod["metadata"]["name"]
    report = Report(reason="SuccessfulDelete", message=f"Deleted pod: {name}")
    return [pods_of.delete(pod), report]


def _status(daemon_set: _DaemonSetPods) -> WorkloadSteps:
    situation = daemon_set.situation
    tree = situation.tree
    seconds = core.min_ready_seconds(tree) or 0
    first: list[JsonObject] = []
    for node in daemon_set.wanted:
        staying = [pod for pod in daemon_set.pods.get(node, ()) if not meta.is_deleting(pod)]
        first += staying[:1]
    counts = pods_of.count(first, seconds, situation.now)
    wanted = len(daemon_set.wanted)
    status: JsonObject = pods_of.without_zeros(
        {
            "currentNumberScheduled": len(first),
            "numberMisscheduled": len(set(daemon_set.pods) - set(daemon_set.wanted)),
            "desiredNumberScheduled": wanted,
            "numberReady": counts.ready,
            "observedGeneration": meta.generation(tree) or 0,
            "updatedNumberScheduled": sum(
                1 for p in first if templates.revision_of(p) == daemon_set.revision.hash
            ),
            "numberAvailable": counts.available,
            "numberUnavailable": wanted - counts.available,
        },
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
    )
    if status == tree.get("status"):
        return WorkloadSteps(due=counts.due)
    return WorkloadSteps(steps=(pods_of.with_status(situation, status),), due=counts.due)
