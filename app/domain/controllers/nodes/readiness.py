"""Readiness taints: a node whose `Ready` condition is true loses them, one that is not gets them.

Admission puts `node.kubernetes.io/not-ready:NoSchedule` on each new node; it goes once the node
says that it is ready. Parity: controllers.md 5.5. A node without a `Ready` condition is left as it
is.
"""

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.plan import Decision, Plan, Views
from app.domain.controllers.resources import NODES, is_of
from app.domain.controllers.work_queue import WorkQueue
from app.domain.log import DECISION, Event, EventType, ObjectKey, Revision
from app.domain.objects.commands import PatchObject, PatchType
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

NAME = "node-lifecycle"

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"

_TAINT_OF = {"False": NOT_READY, "Unknown": UNREACHABLE}


class NodeReconciler:
    """Keeps readiness taints as the `Ready` condition says."""

    name = NAME

    def __init__(self) -> None:
        self._queue: WorkQueue[tuple[str]] = WorkQueue()

    def fold(self, event: Event, views: Views) -> None:
        """Queue every node that changed."""
        key = event.key
        if event.type is EventType.DECISION_RECORDED:
            if key.resource == DECISION.resource and event.object.get("controller") == NAME:
                self._queue.drop((key.name,), Revision(event.stamp.observed))
        elif is_of(key, NODES) and event.type is not EventType.OBJECT_DELETED:
            self._queue.add((key.name,), event.revision)

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Mend the taints of one node."""
        while found := self._queue.take(now):
            (name,), cause = found
            plan = self._plan(views, name, cause)
            if plan is not None:
                return plan
        return None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Try again after a refusal."""
        if problem is not None:
            self._queue.retry((plan.key,), now)
        else:
            self._queue.forget((plan.key,))

    def due(self) -> Instant | None:
        """When a refused node is tried again."""
        return self._queue.due()

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """The plan again from the node as it was."""
        name = json_tree.text(decision.object, "name")
        cause = Revision(json_tree.integer(decision.object, "cause") or 0)
        return self._plan(views, name, cause)

    def _plan(self, views: Views, name: str, cause: Revision) -> Plan | None:
        key = ObjectKey(*NODES, "", name)
        tree = views.objects.get(key)
        if tree is None:
            return None
        taints = json_tree.objects(tree, "spec", "taints")
        wanted = _wanted(tree, taints)
        if wanted == taints:
            return None
        body: JsonObject = {
            "metadata": {"resourceVersion": json_tree.text(tree, "metadata", "resourceVersion")},
            "spec": {"taints": wanted or None},
        }
        patch = PatchObject(
            key=key, version="v1", type=PatchType.STRATEGIC, body=body, options=MANAGER
        )
        kept = [json_tree.text(taint, "key") for taint in wanted]
        return Plan(
            controller=NAME,
            key=name,
            commands=(patch,),
            decision=Decision(
                controller=NAME,
                resource="nodes",
                namespace="",
                name=name,
                outcome="Tainted" if len(wanted) > len(taints) else "Untainted",
                inputs={},
                summary={"ready": _ready(tree), "taints": kept},
            ),
            cause=cause,
            observed=views.objects.revision,
        )


def _ready(tree: JsonView) -> str:
    for condition in json_tree.objects(tree, "status", "conditions"):
        if condition.get("type") == "Ready":
            return json_tree.text(condition, "status")
    return ""


def _wanted(tree: JsonView, taints: list[JsonObject]) -> list[JsonObject]:
    ready = _ready(tree)
    if not ready:
        return taints
    needed = _TAINT_OF.get(ready)
    kept = [
        taint
        for taint in taints
        if taint.get("key") not in (NOT_READY, UNREACHABLE)
        or taint.get("effect") != "NoSchedule"
        or taint.get("key") == needed
    ]
    if needed is not None and all(taint.get("key") != needed for taint in kept):
        kept.append({"key": needed, "effect": "NoSchedule"})
    return kept
