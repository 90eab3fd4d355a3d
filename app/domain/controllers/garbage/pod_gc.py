"""PodGC: removes pods that no other component removes.

- Orphaned: the node of the pod is gone. It stays in quarantine for 40 s.
- Out of service: the pod is terminating, its node is not ready and has the taint that says so.
- Unscheduled: the pod is terminating and has no node; finalizers keep it.
- Terminated: there are more finished pods than the threshold; those that were evicted go first,
  then the oldest.

Due pods are removed in the next round of a 20 s grid: marked failed unless they are finished, and
deleted at once. Only orphaned pods get the disruption condition. The rounds of a real controller
count from its start, so a replay removes pods at the recorded instants instead. Parity:
controllers.md 5.4.
"""

import heapq
from collections.abc import Iterable

from app.domain.controllers import conditions, registry
from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import DECISIONS, Decision, Plan, Reads, Views
from app.domain.controllers.pods import facts_of
from app.domain.controllers.resources import is_of, pod_key
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects.write.commands import Command, DeleteObject, PatchObject, PatchType
from app.domain.values import api_resources, condition_types, timestamps
from app.domain.values.fields import core, decision_body, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant

NAME = "pod-gc"

QUARANTINE = 40 * SECOND
ROUND = 20 * SECOND

OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"

ORPHANED = "orphaned"
OUT_OF_SERVICE = "out-of-service"
UNSCHEDULED = "unscheduled"
TERMINATED = "terminated"

_WHY = {
    ORPHANED: "node no longer exists",
    OUT_OF_SERVICE: "node is out of service",
    UNSCHEDULED: "it is terminating and has no node",
    TERMINATED: "there are too many finished pods",
}

REASONS = tuple(_WHY)
"""The reasons for which pods are removed."""

_PodId = tuple[str, str, str]
_Key = tuple[str, str, str, str]
"""The reason for removing a pod, its namespace, name and uid."""

_Rank = tuple[bool, str, str]
"""The sort key of finished pods for removal: evicted ones first, then by age and name."""


class PodGcReconciler(KeyedController[_Key, Views]):
    """Removes pods that no other component removes, one at a time."""

    name = NAME
    reads: Reads = frozenset({api_resources.PODS, api_resources.NODES, DECISIONS})

    def __init__(
        self, terminated_max: int = registry.TERMINATED_MAX, pace: Pace | None = None
    ) -> None:
        """At most `terminated_max` finished pods are kept; 0: all. A `pace` has no grid."""
        super().__init__(pace=pace)
        self._is_paced = pace is not None
        self._terminated_max = terminated_max
        self._nodes: set[str] = set()
        self._out_of_service: set[str] = set()
        self._by_node: dict[str, dict[_PodId, None]] = {}
        self._node_of: dict[_PodId, str] = {}
        self._finished: dict[_PodId, _Rank] = {}
        self._counted_at: Instant | None = None

    def keys_of(self, event: Event, views: Views) -> Iterable[_Key]:
        """No keys at once: pods that the event makes due are removed in a later round."""
        if is_of(event.key, api_resources.PODS):
            self._fold_pod(event)
        elif is_of(event.key, api_resources.NODES):
            self._fold_node(event)
        return ()

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Removes one pod."""
        if self._counted_at is not None and self._counted_at <= now:
            self._counted_at = None
            self._queue_terminated(views.objects.revision)
        return super().step(views, now)

    def reconcile(self, views: Views, key: _Key, now: Instant) -> Work | None:
        """Removes the pod if the reason still applies."""
        reason, namespace, name, uid = key
        tree = views.objects.get(pod_key(namespace, name))
        if tree is None or meta.uid(tree) != uid:
            return None
        node = core.node_name(tree)
        if not _still_applies(
            reason, tree, views.objects.get(ObjectKey(*api_resources.NODES, "", node))
        ):
            return None
        if self._is_paced and reason == TERMINATED and key not in self._too_many():
            return None
        inputs: JsonObject = {"now": now, "uid": uid}
        if reason != ORPHANED:
            inputs["reason"] = reason
        decision = Decision(
            controller=NAME,
            resource="pods",
            namespace=namespace,
            name=name,
            outcome="Removed",
            inputs=inputs,
            summary={"node": node, "why": _WHY[reason]},
        )
        return Work(_commands(tree, now, is_orphan=reason == ORPHANED), decision)

    def decided_key(self, decision: Event) -> _Key:
        """The removed pod, and the reason."""
        inputs = decision_body.read(decision.object).inputs
        return inputs.reason or ORPHANED, decision.key.namespace, decision.key.name, inputs.uid

    def text_of(self, key: _Key) -> str:
        """The pod as `namespace/name`."""
        return f"{key[1]}/{key[2]}"

    def settle(self, key: _Key, plan: Plan, problem: str | None, now: Instant) -> None:
        """Retries after a refusal; the delays of a pod that is not removed keep growing."""
        if problem is not None:
            self.queue.retry(key, now)

    def due(self) -> Instant | None:
        """The instant at which the next pod may have to be removed."""
        instants = [due for due in (self.queue.due(), self._counted_at) if due is not None]
        return min(instants, default=None)

    def _fold_node(self, event: Event) -> None:
        name = event.key.name
        pods = self._by_node.get(name, {})
        if event.type is EventType.OBJECT_DELETED:
            self._nodes.discard(name)
            self._out_of_service.discard(name)
            for pod_id in pods:
                # A list of objects shows its pods without the node: they wait from now on.
                self.queue.drop((ORPHANED, *pod_id), event.revision)
                self._schedule(ORPHANED, pod_id, event, QUARANTINE)
            return
        if name not in self._nodes:
            self._nodes.add(name)
            for pod_id in pods:
                self.queue.drop((ORPHANED, *pod_id), event.revision)
        if not _is_out_of_service(event.object):
            self._out_of_service.discard(name)
        elif name not in self._out_of_service:
            self._out_of_service.add(name)
            for pod_id in pods:
                self._schedule(OUT_OF_SERVICE, pod_id, event)

    def _fold_pod(self, event: Event) -> None:
        pod_id = (event.key.namespace, event.key.name, event.uid)
        if event.type is EventType.OBJECT_DELETED:
            self._finished.pop(pod_id, None)
            if held := self._by_node.get(self._node_of.pop(pod_id, "")):
                held.pop(pod_id, None)
            return
        facts = facts_of(event)
        node = facts.node
        if facts.phase in core.FINISHED:
            self._fold_finished(pod_id, event.object, event)
        if facts.is_deleting:
            if not node:
                self._schedule(UNSCHEDULED, pod_id, event)
            elif node in self._out_of_service:
                self._schedule(OUT_OF_SERVICE, pod_id, event)
        if not node or pod_id in self._node_of:
            return
        self._node_of[pod_id] = node
        self._by_node.setdefault(node, {})[pod_id] = None
        if node not in self._nodes:
            self._schedule(ORPHANED, pod_id, event, QUARANTINE)

    def _fold_finished(self, pod_id: _PodId, pod: JsonView, event: Event) -> None:
        if pod_id in self._finished:
            return
        is_evicted = core.status_reason(pod) == "Evicted"
        created = meta.creation_timestamp(pod)
        self._finished[pod_id] = (not is_evicted, created, event.key.name)
        if self._terminated_max and len(self._finished) > self._terminated_max:
            due = self._round(event.stamp.time)
            self._counted_at = min(due, self._counted_at or due)

    def _queue_terminated(self, revision: Revision) -> None:
        """Queues the finished pods beyond the threshold."""
        for key in self._too_many():
            self.queue.add(key, revision)

    def _too_many(self) -> list[_Key]:
        over = len(self._finished) - self._terminated_max
        ranked = heapq.nsmallest(max(0, over), self._finished, key=self._finished.__getitem__)
        return [(TERMINATED, *pod_id) for pod_id in ranked]

    def _schedule(self, reason: str, pod_id: _PodId, event: Event, delay: int = 0) -> None:
        due = self._round(Instant(event.stamp.time + delay))
        self.queue.add_at((reason, *pod_id), due, event.revision)

    def _round(self, at: Instant) -> Instant:
        """The first round from an instant on; at a recorded pace, that instant."""
        return at if self._is_paced else _next_round(at)


def longest_wait(key: tuple[str, ...]) -> int:
    """The microseconds for which a pod whose reason applies waits for rounds at most.

    The quarantine of an orphaned pod begins with a round, too.
    """
    return 2 * ROUND if key[0] == ORPHANED else ROUND


def _next_round(at: Instant) -> Instant:
    return Instant(at + (-at) % ROUND)


def _is_out_of_service(node: JsonView) -> bool:
    """Whether the node is not ready and has the out-of-service taint."""
    if meta.is_true(node, condition_types.READY):
        return False
    taints = core.taints(node)
    return any(taint.get("key") == OUT_OF_SERVICE_TAINT for taint in taints)


def _still_applies(reason: str, pod: JsonView, node: JsonView | None) -> bool:
    """Whether the reason still applies; a pod that only finalizers keep is done."""
    if reason == ORPHANED:
        return node is None
    metadata = meta.metadata(pod)
    is_leaving = "deletionTimestamp" in metadata
    is_finished = core.is_finished(pod)
    if is_leaving and is_finished and metadata.get("deletionGracePeriodSeconds") == 0:
        return False
    if reason == TERMINATED:
        return is_finished
    if reason == UNSCHEDULED:
        return is_leaving and not core.node_name(pod)
    return is_leaving and node is not None and _is_out_of_service(node)


def _commands(tree: JsonObject, now: Instant, *, is_orphan: bool) -> tuple[Command, ...]:
    metadata = tree["metadata"]
    key = pod_key(metadata["namespace"], metadata["name"])
    commands: list[Command] = []
    if not core.is_finished(tree):
        commands.append(
            PatchObject(
                key=key,
                version="v1",
                type=PatchType.STRATEGIC,
                body={
                    "metadata": meta.same_object(tree),
                    "status": _failed(tree, now, is_orphan=is_orphan),
                },
                subresource="status",
                options=MANAGER,
            )
        )
    commands.append(DeleteObject(key=key, grace_seconds=0, options=MANAGER))
    return tuple(commands)


def _failed(tree: JsonObject, now: Instant, *, is_orphan: bool) -> JsonObject:
    """The status patch that ends the pod; an orphan also gets the disruption condition."""
    generation = tree["metadata"].get("generation")
    status: JsonObject = {}
    if is_orphan:
        condition: JsonObject = {
            "type": conditions.DISRUPTION,
            "status": "True",
            "observedGeneration": generation,
            "lastProbeTime": None,
            "lastTransitionTime": _disrupted_since(tree) or timestamps.seconds_text(now),
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
        }
        status |= conditions.patch_of(tree, condition)
    return {**status, "observedGeneration": generation, "phase": "Failed"}


def _disrupted_since(tree: JsonObject) -> str:
    """The transition time of the pod's disruption condition; empty when it is not true."""
    disrupted = (condition_types.DISRUPTION_TARGET, "True")
    for condition in meta.conditions(tree):
        if (condition.type, condition.status) == disrupted:
            return condition.last_transition_time
    return ""
