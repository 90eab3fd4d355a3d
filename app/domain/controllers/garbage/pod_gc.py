"""PodGC: pods bound to a node that no longer exists.

A node that is gone stays in quarantine for 40 s; the next round on a 20 s grid then marks its pods
failed and removes them at once. Parity: controllers.md 5.4. Terminated pods beyond a threshold and
out-of-service nodes are left alone.
"""

from app.domain.controllers import conditions
from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.plan import DECISIONS, Decision, Plan, Reads, Views
from app.domain.controllers.resources import NODES, PODS, is_of, pod_key
from app.domain.controllers.work_queue import WorkQueue
from app.domain.log import DECISION, Event, EventType, ObjectKey, Revision
from app.domain.objects.commands import Command, DeleteObject, PatchObject, PatchType
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant

NAME = "pod-gc"

QUARANTINE = 40 * SECOND
ROUND = 20 * SECOND

_PodId = tuple[str, str, str]


class PodGcReconciler:
    """Removes pods whose node is gone."""

    name = NAME
    reads: Reads = frozenset({PODS, NODES, DECISIONS})

    def __init__(self) -> None:
        self._nodes: set[str] = set()
        self._by_node: dict[str, dict[_PodId, None]] = {}
        self._node_of: dict[_PodId, str] = {}
        self._queue: WorkQueue[_PodId] = WorkQueue()

    def fold(self, event: Event, views: Views) -> None:
        """Follow which pods are bound where, and which nodes are gone."""
        key = event.key
        if event.type is EventType.DECISION_RECORDED:
            body = event.object
            if key.resource == DECISION.resource and body.get("controller") == NAME:
                uid = json_tree.text(body, "inputs", "uid")
                pod_id = (key.namespace, key.name, uid)
                self._queue.drop(pod_id, Revision(event.stamp.observed))
        elif is_of(key, PODS):
            self._fold_pod(event)
        elif is_of(key, NODES):
            self._fold_node(event)

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Remove one pod."""
        while found := self._queue.take(now):
            (namespace, name, uid), cause = found
            tree = views.objects.get(pod_key(namespace, name))
            if tree is None or json_tree.text(tree, "metadata", "uid") != uid:
                continue
            node = json_tree.text(tree, "spec", "nodeName")
            if views.objects.event(ObjectKey(*NODES, "", node)) is not None:
                continue
            return Plan(
                controller=NAME,
                key=f"{namespace}/{name}",
                commands=_commands(tree, now),
                decision=Decision(
                    controller=NAME,
                    resource="pods",
                    namespace=namespace,
                    name=name,
                    outcome="Removed",
                    inputs={"now": now, "uid": uid},
                    summary={"node": node, "why": "node no longer exists"},
                ),
                cause=cause,
                observed=views.objects.revision,
            )
        return None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Try again after a refusal."""
        if problem is not None and plan.decision is not None:
            found = plan.decision
            uid = json_tree.text(found.inputs, "uid")
            self._queue.retry((found.namespace, found.name, uid), now)

    def due(self) -> Instant | None:
        """When the next pod may have to go."""
        return self._queue.due()

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """The plan again from the pod as it was."""
        body = decision.object
        namespace, name = json_tree.text(body, "namespace"), json_tree.text(body, "name")
        uid = json_tree.text(body, "inputs", "uid")
        again = PodGcReconciler()
        again._queue.add((namespace, name, uid), Revision(json_tree.integer(body, "cause") or 0))
        now = Instant(json_tree.integer(body, "inputs", "now") or decision.stamp.time)
        return again.step(views, now)

    def _fold_node(self, event: Event) -> None:
        pods = self._by_node.get(event.key.name, {})
        if event.type is EventType.OBJECT_DELETED:
            self._nodes.discard(event.key.name)
            for pod_id in pods:
                self._schedule(pod_id, event)
        elif event.key.name not in self._nodes:
            self._nodes.add(event.key.name)
            for pod_id in pods:
                self._queue.drop(pod_id, event.revision)

    def _fold_pod(self, event: Event) -> None:
        pod_id = (event.key.namespace, event.key.name, event.uid)
        node = json_tree.text(event.object, "spec", "nodeName")
        if event.type is EventType.OBJECT_DELETED:
            if held := self._by_node.get(self._node_of.pop(pod_id, "")):
                held.pop(pod_id, None)
            return
        if not node or pod_id in self._node_of:
            return
        self._node_of[pod_id] = node
        self._by_node.setdefault(node, {})[pod_id] = None
        if node not in self._nodes:
            self._schedule(pod_id, event)

    def _schedule(self, pod_id: _PodId, event: Event) -> None:
        end = event.stamp.time + QUARANTINE
        self._queue.add_at(pod_id, Instant(end + (-end) % ROUND), event.revision)


def _commands(tree: JsonObject, now: Instant) -> tuple[Command, ...]:
    metadata = tree["metadata"]
    key = pod_key(metadata["namespace"], metadata["name"])
    generation = metadata.get("generation")
    condition: JsonObject = {
        "type": conditions.DISRUPTION,
        "status": "True",
        "observedGeneration": generation,
        "lastProbeTime": None,
        "lastTransitionTime": _disrupted_since(tree) or timestamps.seconds_text(now),
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
    }
    status: JsonObject = {
        **conditions.patch_of(tree, condition),
        "observedGeneration": generation,
    }
    commands: list[Command] = []
    if json_tree.text(tree, "status", "phase") not in ("Succeeded", "Failed"):
        status["phase"] = "Failed"
        commands.append(
            PatchObject(
                key=key,
                version="v1",
                type=PatchType.STRATEGIC,
                body={"metadata": {"uid": metadata["uid"]}, "status": status},
                subresource="status",
                options=MANAGER,
            )
        )
    commands.append(DeleteObject(key=key, grace_seconds=0, options=MANAGER))
    return tuple(commands)


def _disrupted_since(tree: JsonObject) -> str:
    """When the pod was first said to be disrupted: a time of transition moves with the status."""
    for found in json_tree.objects(tree, "status", "conditions"):
        if found.get("type") == conditions.DISRUPTION and found.get("status") == "True":
            return json_tree.text(found, "lastTransitionTime")
    return ""
