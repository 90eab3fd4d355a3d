"""Tells kubelets on their nodes how long they may keep what they have read.

The number grows with the cluster, in steps that overlap, so that a node more or less does not move
it to and fro. A node is only written when something else changes it, as upstream. Parity:
controllers.md 5.5 (the annotation), upstream's ttl controller (the steps).
"""

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.plan import Plan, Reads, Views
from app.domain.controllers.resources import is_of
from app.domain.controllers.work_queue import AnyQueue, WorkQueue
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import api_resources, json_tree
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

NAME = "node-ttl"

ANNOTATION = "node.alpha.kubernetes.io/ttl"

STEPS = ((0, 100, 0), (90, 500, 15), (450, 1_000, 30), (900, 2_000, 60), (1_800, 2**31 - 1, 300))
"""From how many nodes on, up to how many, and how many seconds."""


class NodeTtlReconciler:
    """Keeps the annotation of each node that is touched."""

    name = NAME
    reads: Reads = frozenset({api_resources.NODES})

    def __init__(self) -> None:
        self._queue: WorkQueue[tuple[str]] = WorkQueue()
        self._nodes: set[str] = set()
        self._step = 0

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """What waits for this controller, for metrics."""
        return (self._queue,)

    def fold(self, event: Event, views: Views) -> None:
        """Count the nodes, and queue the one that changed."""
        if not event.is_about_object or not is_of(event.key, api_resources.NODES):
            return
        if event.type is EventType.OBJECT_DELETED:
            self._nodes.discard(event.key.name)
        else:
            self._nodes.add(event.key.name)
            self._queue.add((event.key.name,), event.revision)
        self._move()

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Write one node."""
        while found := self._queue.take(now):
            (name,), cause = found
            key = ObjectKey(*api_resources.NODES, "", name)
            tree = views.objects.get(key)
            if tree is None or _told(tree) == self._seconds:
                continue
            patch = PatchObject(
                key=key,
                version="v1",
                type=PatchType.STRATEGIC,
                body={"metadata": {"annotations": {ANNOTATION: str(self._seconds)}}},
                options=MANAGER,
            )
            return Plan(
                controller=NAME,
                key=name,
                commands=(patch,),
                cause=cause,
                observed=views.objects.revision,
            )
        return None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Try again after a refusal."""
        self._queue.settle((plan.key,), problem, now)

    def due(self) -> Instant | None:
        """When a refused write is tried again."""
        return self._queue.due()

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """An annotation records no decision."""
        return None

    @property
    def _seconds(self) -> int:
        return STEPS[self._step][2]

    def _move(self) -> None:
        """Go up or down when the number of nodes has left the present step."""
        while len(self._nodes) > STEPS[self._step][1]:
            self._step += 1
        while len(self._nodes) < STEPS[self._step][0]:
            self._step -= 1


def _told(tree: JsonView) -> int | None:
    """What the node says now; None when it says nothing that is a number."""
    text = json_tree.text(tree, "metadata", "annotations", ANNOTATION)
    return int(text) if text.isdecimal() else None
