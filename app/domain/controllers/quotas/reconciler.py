"""Keeps the status of quotas as the objects say.

Only events on what some quota of the namespace counts queue a quota. Limits that are not counted
here stand in `hard` and not in `used`.
"""

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.plan import Plan, Reads, Views
from app.domain.controllers.resources import is_of
from app.domain.controllers.work_queue import AnyQueue, WorkQueue
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.quota import limits as quota
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import api_resources, json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

NAME = "quotas"

_Place = tuple[str, str]


class QuotaReconciler:
    """Counts what namespaces with quotas use."""

    name = NAME
    reads: Reads = None

    def __init__(self) -> None:
        self._queue: WorkQueue[ObjectKey] = WorkQueue()
        self._counted: dict[str, dict[ObjectKey, frozenset[_Place]]] = {}

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """What waits for this controller, for metrics."""
        return (self._queue,)

    def fold(self, event: Event, views: Views) -> None:
        """Queue the quotas that count the object of the event."""
        if not event.is_about_object:
            return
        key = event.key
        if is_of(key, api_resources.RESOURCE_QUOTAS):
            held = self._counted.setdefault(key.namespace, {})
            if event.type is EventType.OBJECT_DELETED:
                held.pop(key, None)
            else:
                named = (quota.places_of(name) for name in quota.hard(event.object))
                held[key] = frozenset().union(*named)
                self._queue.add(key, event.revision)
        for found, places in self._counted.get(key.namespace, {}).items():
            if (key.group, key.resource) in places:
                self._queue.add(found, event.revision)

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Write one status that is not right."""
        objects = views.objects
        while found := self._queue.take(now):
            key, cause = found
            status = _status(objects, key)
            tree = objects.get(key)
            if tree is None or status == json_tree.mapping(tree, "status"):
                continue
            patch = PatchObject(
                key=key,
                version="v1",
                type=PatchType.MERGE,
                body={"status": _replacement(tree, status)},
                subresource="status",
                options=MANAGER,
            )
            return Plan(
                controller=NAME,
                key="/".join(key),
                commands=(patch,),
                cause=cause,
                observed=objects.revision,
            )
        return None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Try again after a refusal."""
        self._queue.settle(ObjectKey(*plan.key.split("/", 3)), problem, now)

    def due(self) -> Instant | None:
        """When a refused status is tried again."""
        return self._queue.due()

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """Counting records no decisions."""
        return None


def _status(objects: ObjectsReader, key: ObjectKey) -> JsonObject:
    tree = objects.get(key)
    if tree is None:
        return {}
    limits = json_tree.mapping(tree, "spec", "hard")
    amounts = quota.used(objects, key, tree, quota.hard(tree))
    return {
        "hard": dict(limits),
        "used": {name: str(amounts[name]) for name in sorted(amounts)},
    }


def _replacement(tree: JsonObject, status: JsonObject) -> JsonObject:
    """A merge patch that leaves nothing of the old status behind."""
    found: JsonObject = {}
    for field in ("hard", "used"):
        old = json_tree.mapping(tree, "status", field)
        new = status.get(field) or {}
        found[field] = dict.fromkeys(set(old) - set(new)) | new
    return found
