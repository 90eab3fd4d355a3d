"""Garbage collection through owner references.

Background: when an owner is gone, dependents without another living owner are deleted; with one,
only the dangling reference is taken off. Foreground: an owner that carries the finalizer waits
until the dependents that block it are gone. Orphan: references come off first, then the finalizer.
Parity: controllers.md 6.6.
"""

from collections.abc import Iterator

from app.domain.controllers.batching import Batcher
from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import Plan, Reads, Views
from app.domain.controllers.work_queue import AnyQueue, WorkQueue
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects import history_kinds, registry
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import (
    Command,
    DeleteObject,
    PatchObject,
    PatchType,
    Propagation,
    UpdateObject,
)
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

NAME = "garbage"

FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"

_UNBLOCKING: JsonObject = {"blockOwnerDeletion": False}

DEPENDENTS_MAX = 100
"""How many dependents one step deals with; the owner is looked at again afterwards."""


class GarbageReconciler:
    """Collects what has lost its owners."""

    name = NAME
    reads: Reads = None

    def __init__(self, pace: Pace | None = None) -> None:
        self._queue: WorkQueue[ObjectKey] = WorkQueue(NAME, pace)
        self._batcher = Batcher()

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """What waits for this controller, for metrics."""
        return (self._queue,)

    def fold(self, event: Event, views: Views) -> None:
        """Queue dependents of what is gone, objects with dangling owners, owners that wait."""
        if not event.is_about_object:
            return
        objects = views.objects
        tree = event.object
        owners = json_tree.objects(tree, "metadata", "ownerReferences")
        if event.type is EventType.OBJECT_DELETED:
            for key in objects.dependents(event.uid):
                self._queue.add(key, event.revision)
            for owner in owners:
                self._queue_waiting_owner(objects, owner, event.revision)
            return
        if "deletionTimestamp" in tree["metadata"] and _policy_finalizer(tree):
            self._queue.add(event.key, event.revision)
        for owner in owners:
            if owner.get("blockOwnerDeletion") is False:
                self._queue_waiting_owner(objects, owner, event.revision)
        if any(_is_dangling(objects, event.key, owner) for owner in owners):
            self._queue.add(event.key, event.revision)

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Deal with as many objects as go together, each as it is now.

        What one of them changes for another is seen with the next step, as it is from a cache.
        """
        return self._batcher.collect(lambda: self._next(views, now), self._put_back)

    def _next(self, views: Views, now: Instant) -> Plan | None:
        while found := self._queue.take(now):
            key, cause = found
            tree = views.objects.get(key)
            commands = () if tree is None else tuple(_commands(views.objects, key, tree))
            if commands:
                return Plan(
                    controller=NAME,
                    key="/".join(key),
                    commands=commands,
                    cause=cause,
                    observed=views.objects.revision,
                )
        return None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Look again after a refusal; after a success when more dependents may remain."""
        if problem is None:
            self._batcher.passed()
        elif plan.parts:
            self._batcher.refused(plan)
            for part in plan.parts:
                self._put_back(part)
            return
        for part in plan.parts or (plan,):
            key = _key_of(part)
            if problem is not None:
                self._queue.retry(key, now)
                continue
            self._queue.forget(key)
            if len(part.commands) >= DEPENDENTS_MAX:
                self._queue.add(key, part.observed)

    def _put_back(self, plan: Plan) -> None:
        self._queue.add_first(_key_of(plan), Revision(plan.cause))

    def due(self) -> Instant | None:
        """When the next retry is due."""
        return self._queue.due()

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """Collection records no decisions: its plans follow from the objects alone."""
        return None

    def _queue_waiting_owner(
        self, objects: ObjectsReader, owner: JsonView, revision: Revision
    ) -> None:
        key = objects.by_uid(json_tree.text(owner, "uid"))
        tree = None if key is None else objects.get(key)
        if key is not None and tree is not None and _policy_finalizer(tree):
            self._queue.add(key, revision)


def _key_of(plan: Plan) -> ObjectKey:
    return ObjectKey(*plan.key.split("/", 3))


def _commands(objects: ObjectsReader, key: ObjectKey, tree: JsonObject) -> Iterator[Command]:
    is_deleting = "deletionTimestamp" in tree["metadata"]
    if is_deleting:
        finalizer = _policy_finalizer(tree)
        if finalizer == ORPHAN_FINALIZER:
            yield from _orphan(objects, key, tree)
        elif finalizer == FOREGROUND_FINALIZER:
            yield from _delete_dependents(objects, key, tree)
        return
    owners = json_tree.objects(tree, "metadata", "ownerReferences")
    dangling = [owner for owner in owners if _is_dangling(objects, key, owner)]
    if not dangling:
        return
    solid = [owner for owner in owners if owner not in dangling]
    if solid:
        yield _owners_patch(key, tree, solid)
        return
    yield DeleteObject(
        key=key,
        version=_version_of(tree),
        uid=json_tree.text(tree, "metadata", "uid"),
        propagation=_propagation(tree),
        options=MANAGER,
    )


def _orphan(objects: ObjectsReader, key: ObjectKey, tree: JsonObject) -> Iterator[Command]:
    uid = json_tree.text(tree, "metadata", "uid")
    dependents = list(objects.dependents(uid))[:DEPENDENTS_MAX]
    for dependent in dependents:
        found = objects.get(dependent)
        if found is not None:
            owners = json_tree.objects(found, "metadata", "ownerReferences")
            yield _owners_patch(dependent, found, [o for o in owners if o.get("uid") != uid])
    if len(dependents) < DEPENDENTS_MAX:
        yield _without_finalizer(key, tree, ORPHAN_FINALIZER)


def _delete_dependents(
    objects: ObjectsReader, key: ObjectKey, tree: JsonObject
) -> Iterator[Command]:
    uid = json_tree.text(tree, "metadata", "uid")
    blocking = 0
    sent = 0
    for dependent in objects.dependents(uid):
        found = objects.get(dependent)
        if found is None:
            continue
        owners = json_tree.objects(found, "metadata", "ownerReferences")
        blocks = any(o.get("uid") == uid and o.get("blockOwnerDeletion") is True for o in owners)
        if blocks:
            blocking += 1
        if sent >= DEPENDENTS_MAX:
            continue
        if blocks and _waits_in_circle(objects, found):
            sent += 1
            yield _owners_patch(dependent, found, [o | _UNBLOCKING for o in owners])
        if "deletionTimestamp" in found["metadata"]:
            continue
        others = [
            o for o in owners if o.get("uid") != uid and not _is_dangling(objects, dependent, o)
        ]
        sent += 1
        if others:
            yield _owners_patch(dependent, found, others)
        else:
            yield DeleteObject(
                key=dependent,
                version=_version_of(found),
                uid=json_tree.text(found, "metadata", "uid"),
                propagation=Propagation.FOREGROUND,
                options=MANAGER,
            )
    if not blocking:
        yield _without_finalizer(key, tree, FOREGROUND_FINALIZER)


def _waits_in_circle(objects: ObjectsReader, tree: JsonView) -> bool:
    """True for an object that owns one which waits for its own dependents.

    Were it to block its owner too, each could wait for the other. Parity: upstream's detection,
    which looks one step far and ends every circle by that.
    """
    for key in objects.dependents(json_tree.text(tree, "metadata", "uid")):
        found = objects.get(key)
        if found is not None and _policy_finalizer(found) == FOREGROUND_FINALIZER:
            return True
    return False


def _is_dangling(objects: ObjectsReader, key: ObjectKey, owner: JsonView) -> bool:
    """True when the owner is not where the object of that key may have it.

    Owners are in the same namespace or in none. Kinds that are not served may live elsewhere, and
    the namespaced owner of a cluster-scoped object is no owner, but nothing goes because of it.
    """
    group, version = registry.split_api_version(json_tree.text(owner, "apiVersion"))
    kind = history_kinds.find_kind(objects, group, version, json_tree.text(owner, "kind"))
    if kind is None or (kind.namespaced and not key.namespace):
        return False
    found = objects.by_uid(json_tree.text(owner, "uid"))
    namespace = key.namespace if kind.namespaced else ""
    expected = ObjectKey(kind.group, kind.plural, namespace, json_tree.text(owner, "name"))
    return found != expected


def _policy_finalizer(tree: JsonView) -> str:
    finalizers = json_tree.texts(tree, "metadata", "finalizers")
    for name in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER):
        if name in finalizers:
            return name
    return ""


def _propagation(tree: JsonView) -> Propagation:
    match _policy_finalizer(tree):
        case "orphan":
            return Propagation.ORPHAN
        case "foregroundDeletion":
            return Propagation.FOREGROUND
        case _:
            return Propagation.BACKGROUND


def _owners_patch(key: ObjectKey, tree: JsonView, owners: list[JsonObject]) -> PatchObject:
    return PatchObject(
        key=key,
        version=_version_of(tree),
        type=PatchType.MERGE,
        body={
            "metadata": {
                "uid": json_tree.text(tree, "metadata", "uid"),
                "ownerReferences": owners or None,
            }
        },
        options=MANAGER,
    )


def _without_finalizer(key: ObjectKey, tree: JsonObject, finalizer: str) -> UpdateObject:
    changed = json_tree.copy(tree)
    left = [f for f in json_tree.texts(changed, "metadata", "finalizers") if f != finalizer]
    if left:
        changed["metadata"]["finalizers"] = left
    else:
        changed["metadata"].pop("finalizers", None)
    return UpdateObject(key=key, version=_version_of(tree), tree=changed, options=MANAGER)


def _version_of(tree: JsonView) -> str:
    """The version in which the object is stored."""
    return registry.split_api_version(json_tree.text(tree, "apiVersion"))[1]
