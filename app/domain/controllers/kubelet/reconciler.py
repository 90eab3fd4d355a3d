"""All emulated kubelets in one queue of nodes and pods.

    bound ── start-seconds ──▶ Running ── run-seconds ──▶ Succeeded | Failed | started again
                                  │
                 deletionTimestamp ── min(grace, stop-seconds) ──▶ last phase, then gone

The instants at which pods were bound or started and drivers were lost are folded from the log, so
that a restart only waits for the remaining time. Parity: controllers.md 5.3.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.domain.controllers import pods
from app.domain.controllers.batching import BATCH_MAX
from app.domain.controllers.event_objects import Reporter, reference
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.kubelet import annotations, node_status, pod_status
from app.domain.controllers.kubelet.pod_status import KILLED, KUBELET, Exit
from app.domain.controllers.plan import Reads, Views
from app.domain.controllers.pods import PodFacts
from app.domain.controllers.resources import claim_key, is_of
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, DeleteObject
from app.domain.values import api_resources, json_tree, timestamps
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant, TimestampError

NAME = "kubelet"

DRIVER_WIPE_DELAY = 30 * SECOND
"""The time for which the slices of a lost driver stay, as with real kubelets."""

RESTART_DELAY_SECONDS = 10
RESTART_DELAY_MAX_SECONDS = 300

_DEADLINE = Exit(
    code=KILLED,
    reason="DeadlineExceeded",
    message="Pod was active on the node longer than the specified deadline",
)


@dataclass(slots=True)
class _StartedPod:
    """A bound pod: the instants of its binding and of the last start of its containers.

    A pod that `rests` has ended, or runs without a known end: nothing is due before it changes.
    """

    uid: Uid
    node: str
    bound: Instant
    started: Instant | None = None
    first_started: Instant | None = None
    restarts: int = 0
    rests: bool = False


class KubeletReconciler(KeyedController[ObjectKey, Views]):
    """Emulates the kubelet of every node that has none."""

    name = NAME
    reads: Reads = frozenset(
        {
            api_resources.PODS,
            api_resources.NODES,
            api_resources.RESOURCE_CLAIMS,
            api_resources.EVENTS,
            api_resources.LEASES,
        }
    )

    counts_looks = True

    def __init__(self) -> None:
        super().__init__(batch_max=BATCH_MAX)
        self._pods: dict[ObjectKey, _StartedPod] = {}
        self._by_node: dict[str, dict[ObjectKey, None]] = {}
        self._lost: dict[str, dict[str, Instant]] = {}
        self._waiting: dict[ObjectKey, dict[ObjectKey, None]] = {}
        self._told: dict[ObjectKey, str] = {}
        self._reporter = Reporter(NAME, KUBELET)

    def keys_of(self, event: Event, views: Views) -> Iterable[ObjectKey]:
        """Bound pods, nodes with lost drivers, and pods that wait for a claim."""
        key = event.key
        if is_of(key, api_resources.PODS):
            return self._fold_pod(event)
        if is_of(key, api_resources.NODES):
            return self._fold_node(event)
        if is_of(key, api_resources.RESOURCE_CLAIMS):
            return self._waiting.pop(key, {})
        if key.namespace == annotations.LEASE_NAMESPACE and key.resource == "leases":
            return self._by_node.get(key.name, ())
        self._reporter.fold(event)
        return ()

    def reconcile(self, views: Views, key: ObjectKey, now: Instant) -> Work | None:
        """The next writes for one node or pod."""
        act = self._pod if is_of(key, api_resources.PODS) else self._node
        return Work(act(views.objects, key, now))

    def _fold_pod(self, event: Event) -> Iterator[ObjectKey]:
        key, tree = event.key, event.object
        held = self._pods.get(key)
        if held is not None and (event.type is EventType.OBJECT_DELETED or held.uid != event.uid):
            del self._pods[key]
            self._by_node.get(held.node, {}).pop(key, None)
            self._told.pop(key, None)
            held = None
        if event.type is EventType.OBJECT_DELETED:
            return
        facts = pods.facts_of(event)
        if not facts.node:
            return
        if held is None:
            held = _StartedPod(event.uid, facts.node, event.stamp.time)
            self._pods[key] = held
            self._by_node.setdefault(facts.node, {})[key] = None
        if facts.phase == "Running":
            restarts = pod_status.restart_count(tree)
            if held.started is None or restarts != held.restarts:
                held.started = event.stamp.time
                held.restarts = restarts
            held.first_started = held.first_started or event.stamp.time
        held.rests = not facts.is_deleting and (
            facts.phase in core.FINISHED or (held.started is not None and _has_no_end(tree))
        )
        yield key

    def _fold_node(self, event: Event) -> Iterator[ObjectKey]:
        name = event.key.name
        if event.type is EventType.OBJECT_DELETED:
            self._lost.pop(name, None)
            return
        known = self._lost.get(name, {})
        lost = {
            driver: known.get(driver, event.stamp.time)
            for driver in annotations.lost_drivers(event.object)
        }
        if lost:
            self._lost[name] = lost
            for since in lost.values():
                self.queue.add_at(event.key, Instant(since + DRIVER_WIPE_DELAY), event.revision)
        else:
            self._lost.pop(name, None)
        yield event.key
        yield from self._by_node.get(name, ())

    def _node(self, objects: ObjectsReader, key: ObjectKey, now: Instant) -> tuple[Command, ...]:
        node = objects.get(key)
        if node is None or not annotations.is_emulated(objects, node):
            return ()
        commands: list[Command] = []
        if not node_status.is_reported(node):
            commands += node_status.registration(node, now)
        for driver, since in self._lost.get(key.name, {}).items():
            if since + DRIVER_WIPE_DELAY <= now:
                commands += _wiped(objects, key.name, driver)
        return tuple(commands)

    def _pod(self, objects: ObjectsReader, key: ObjectKey, now: Instant) -> tuple[Command, ...]:
        held = self._pods.get(key)
        # A start looks at all pods, nearly all of which rest.
        event = None if held is None or held.rests else objects.event(key)
        if held is None or event is None:
            return ()
        node = objects.get(ObjectKey(*api_resources.NODES, "", held.node))
        if node is None or not annotations.is_emulated(objects, node):
            return ()
        tree, facts = event.object, pods.facts_of(event)
        if facts.is_deleting:
            return self._stop(key, tree, facts, now)
        if facts.phase in core.FINISHED:
            return ()
        if held.started is None:
            return self._start(objects, key, tree, facts, node, held, now)
        return self._run(key, tree, held, held.started, now)

    def _start(
        self,
        objects: ObjectsReader,
        key: ObjectKey,
        tree: JsonObject,
        facts: PodFacts,
        node: JsonView,
        held: _StartedPod,
        now: Instant,
    ) -> tuple[Command, ...]:
        due = Instant(held.bound + annotations.start_delay(tree))
        if due > now:
            self.queue.add_at(key, due)
            return ()
        problem = self._claim_problem(objects, key, facts)
        if not problem:
            return (pod_status.running(tree, node, now),)
        if self._told.get(key) == problem:
            return ()
        self._told[key] = problem
        return (
            self._reporter.report(
                objects,
                now,
                reference(tree, kind="Pod", with_revision=True),
                kind="Warning",
                reason="FailedPrepareDynamicResources",
                message=f"Failed to prepare dynamic resources: {problem}",
            ),
        )

    def _claim_problem(self, objects: ObjectsReader, key: ObjectKey, facts: PodFacts) -> str:
        """The reason why a pod may not start yet and waits for a claim; empty when it may."""
        wanted: list[str] = []
        for entry in facts.entries:
            named = pods.entry_claim(facts, entry)
            if named.problem:
                return named.problem
            if named.name is not None:
                wanted.append(named.name)
        if facts.extended_claim:
            wanted.append(facts.extended_claim)
        for name in wanted:
            place = claim_key(facts.namespace, name)
            claim = objects.get(place)
            if claim is None:
                problem = f"fetch ResourceClaim {facts.namespace}/{name}: not found"
            elif not pods.is_allocated(claim) or not pods.is_reserved_for(claim, facts.uid):
                uid = meta.uid(claim)
                problem = (
                    f"pod {facts.name} ({facts.uid}) is not allowed to use ResourceClaim "
                    f"{name} ({uid})"
                )
            else:
                continue
            self._waiting.setdefault(place, {})[key] = None
            return problem
        return ""

    def _run(
        self, key: ObjectKey, tree: JsonObject, held: _StartedPod, started: Instant, now: Instant
    ) -> tuple[Command, ...]:
        deadline = _deadline_seconds(tree)
        if deadline is not None:
            due = Instant((held.first_started or started) + deadline * SECOND)
            if due <= now:
                return (pod_status.ended(tree, _DEADLINE, now),)
            self.queue.add_at(key, due)
        seconds = annotations.run_time(tree)
        if seconds is None:
            return ()
        policy = json_tree.text(tree, "spec", "restartPolicy")
        result = pod_status.exit_of(tree, 0)
        starts_again = policy == "Always" or (policy == "OnFailure" and result.code != 0)
        if starts_again and held.restarts:
            # One write covers exit, back-off and restart; the pause is part of the run.
            pause = RESTART_DELAY_SECONDS << min(held.restarts - 1, 16)
            seconds += min(pause, RESTART_DELAY_MAX_SECONDS) * SECOND
        due = Instant(started + seconds)
        if due > now:
            self.queue.add_at(key, due)
            return ()
        if starts_again:
            return (pod_status.restarted(tree, result, now),)
        return (pod_status.ended(tree, result, now),)

    def _stop(
        self, key: ObjectKey, tree: JsonObject, facts: PodFacts, now: Instant
    ) -> tuple[Command, ...]:
        metadata = tree["metadata"]
        grace = json_tree.integer(metadata, "deletionGracePeriodSeconds") or 0
        try:
            end = timestamps.parse(metadata["deletionTimestamp"])
        except TimestampError:
            end = now
        due = min(end, Instant(end - grace * SECOND + annotations.stop_delay(tree)))
        if due > now and facts.phase not in core.FINISHED:
            self.queue.add_at(key, due)
            return ()
        commands: list[Command] = []
        if facts.phase not in core.FINISHED:
            commands.append(pod_status.ended(tree, pod_status.exit_of(tree, KILLED), now))
        if grace or not metadata.get("finalizers"):
            commands.append(
                DeleteObject(key=key, grace_seconds=0, uid=meta.uid(tree), options=KUBELET)
            )
        return tuple(commands)


def _has_no_end(pod: JsonView) -> bool:
    """Whether nothing in the pod says when its containers end."""
    return _deadline_seconds(pod) is None and annotations.run_time(pod) is None


def _deadline_seconds(pod: JsonView) -> int | None:
    return json_tree.integer(pod, "spec", "activeDeadlineSeconds")


def _wiped(objects: ObjectsReader, node: str, driver: str) -> list[Command]:
    """Deletes the slices that a driver published for a node."""
    commands: list[Command] = []
    for key in objects.keys(*api_resources.RESOURCE_SLICES):
        tree = objects.get(key)
        if tree is not None and dra.driver(tree) == driver and dra.node_name(tree) == node:
            uid = meta.uid(tree)
            commands.append(DeleteObject(key=key, uid=uid, options=KUBELET))
    return commands
