"""Garbage collection through owner references.

Background: when an owner is gone, dependents without another existing owner are deleted; with one,
only the dangling reference is removed. Foreground: an owner with the finalizer waits until the
dependents that block it are gone. Orphan: references are removed first, then the finalizer.
Parity: controllers.md 6.6.
"""

from collections.abc import Iterator, Sequence

from app.domain.controllers.batching import BATCH_MAX
from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import Plan, Reads, Views
from app.domain.log import Event, EventType, ObjectKey
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
from app.domain.values.fields import meta
from app.domain.values.fields.meta import Owner
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

NAME = "garbage"

FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"

_UNBLOCKING: JsonObject = {"blockOwnerDeletion": False}

DEPENDENTS_MAX = 100
"""The most dependents that one step processes; the owner is processed again afterwards."""


class GarbageReconciler(KeyedController[ObjectKey, Views]):
    """Collects objects that have lost their owners."""

    name = NAME
    reads: Reads = None

    def __init__(self, pace: Pace | None = None) -> None:
        super().__init__(pace=pace, batch_max=BATCH_MAX)
        self._blocked: dict[Uid, set[ObjectKey]] = {}
        """By dependent the owners that wait for it."""

    def keys_of(self, event: Event, views: Views) -> Iterator[ObjectKey]:
        """Dependents of deleted objects, objects with dangling owners, and waiting owners."""
        objects = views.objects
        tree = event.object
        owners = meta.owners(tree)
        if event.type is EventType.OBJECT_DELETED:
            self._blocked.pop(event.uid, None)
            yield from objects.dependents(event.uid)
            for owner in owners:
                yield from _waiting_owner(objects, owner)
            return
        if "deletionTimestamp" in tree["metadata"] and (policy := _policy_finalizer(tree)):
            if policy == FOREGROUND_FINALIZER:
                for dependent in _blocking(objects, event.uid):
                    self._blocked.setdefault(dependent, set()).add(event.key)
            yield event.key
        yield from self._released(event.uid, owners, objects)
        if any(_is_dangling(objects, event.key, owner) for owner in owners):
            yield event.key

    def _released(
        self, uid: Uid, owners: Sequence[Owner], objects: ObjectsReader
    ) -> Iterator[ObjectKey]:
        """The waiting owners that an object blocks no longer; those that it blocks are noted."""
        blocked = {
            key
            for owner in owners
            if owner.block_owner_deletion is True
            for key in _waiting_owner(objects, owner)
        }
        before = self._blocked.pop(uid, set())
        if blocked:
            self._blocked[uid] = blocked
        yield from sorted(before - blocked)

    def reconcile(self, views: Views, key: ObjectKey, now: Instant) -> Work | None:
        """Processes one object in its current state."""
        tree = views.objects.get(key)
        return None if tree is None else Work(tuple(_commands(views.objects, key, tree)))

    def has_more(self, plan: Plan) -> bool:
        """More dependents may remain."""
        return len(plan.commands) >= DEPENDENTS_MAX


def _waiting_owner(objects: ObjectsReader, owner: Owner) -> Iterator[ObjectKey]:
    key = objects.by_uid(owner.uid)
    tree = None if key is None else objects.get(key)
    if key is not None and tree is not None and _policy_finalizer(tree):
        yield key


def _blocking(objects: ObjectsReader, uid: Uid) -> Iterator[Uid]:
    """The dependents that an owner waits for when it is deleted in the foreground."""
    for key in objects.dependents(uid):
        tree = objects.get(key)
        if tree is not None and _blocks(tree, uid):
            yield meta.uid(tree)


def _blocks(tree: JsonView, uid: Uid) -> bool:
    return any(
        owner.uid == uid and owner.block_owner_deletion is True for owner in meta.owners(tree)
    )


def _commands(objects: ObjectsReader, key: ObjectKey, tree: JsonObject) -> Iterator[Command]:
    is_deleting = "deletionTimestamp" in tree["metadata"]
    if is_deleting:
        finalizer = _policy_finalizer(tree)
        if finalizer == ORPHAN_FINALIZER:
            yield from _orphan(objects, key, tree)
        elif finalizer == FOREGROUND_FINALIZER:
            yield from _delete_dependents(objects, key, tree)
        return
    solid = _solid(objects, key, tree)
    if len(solid) == len(meta.owners(tree)):
        return
    if solid:
        yield _owners_patch(key, tree, solid)
        return
    yield DeleteObject(
        key=key,
        version=_version_of(tree),
        uid=meta.uid(tree),
        propagation=_propagation(tree),
        options=MANAGER,
    )


def _orphan(objects: ObjectsReader, key: ObjectKey, tree: JsonObject) -> Iterator[Command]:
    uid = meta.uid(tree)
    dependents = list(objects.dependents(uid))[:DEPENDENTS_MAX]
    for dependent in dependents:
        dependent_tree = objects.get(dependent)
        if dependent_tree is not None:
            owners = meta.owner_references(dependent_tree)
            yield _owners_patch(
                dependent, dependent_tree, [o for o in owners if o.get("uid") != uid]
            )
    if len(dependents) < DEPENDENTS_MAX:
        yield _without_finalizer(key, tree, ORPHAN_FINALIZER)


def _delete_dependents(
    objects: ObjectsReader, key: ObjectKey, tree: JsonObject
) -> Iterator[Command]:
    uid = meta.uid(tree)
    is_blocked = False
    sent = 0
    for dependent in objects.dependents(uid):
        dependent_tree = objects.get(dependent)
        if dependent_tree is None:
            continue
        blocks = _blocks(dependent_tree, uid)
        is_blocked |= blocks
        if sent >= DEPENDENTS_MAX:
            continue
        if blocks and _waits_in_circle(objects, dependent_tree):
            sent += 1
            trees = meta.owner_references(dependent_tree)
            yield _owners_patch(dependent, dependent_tree, [tree | _UNBLOCKING for tree in trees])
        if "deletionTimestamp" in dependent_tree["metadata"]:
            continue
        others = [o for o in _solid(objects, dependent, dependent_tree) if o.get("uid") != uid]
        sent += 1
        if others:
            yield _owners_patch(dependent, dependent_tree, others)
        else:
            yield DeleteObject(
                key=dependent,
                version=_version_of(dependent_tree),
                uid=meta.uid(dependent_tree),
                propagation=Propagation.FOREGROUND,
                options=MANAGER,
            )
    if not is_blocked:
        yield _without_finalizer(key, tree, FOREGROUND_FINALIZER)


def _waits_in_circle(objects: ObjectsReader, tree: JsonView) -> bool:
    """True for an object that owns another one which waits for its own dependents.

    If it also blocked its owner, each could wait for the other. Parity: controllers.md 6.6;
    upstream's detection, which checks one step and thereby breaks every circle.
    """
    for key in objects.dependents(meta.uid(tree)):
        blocking = objects.get(key)
        if blocking is not None and _policy_finalizer(blocking) == FOREGROUND_FINALIZER:
            return True
    return False


def _solid(objects: ObjectsReader, key: ObjectKey, tree: JsonView) -> list[JsonObject]:
    """The owner references that do not dangle, as stored."""
    references = zip(meta.owners(tree), meta.owner_references(tree), strict=True)
    return [written for owner, written in references if not _is_dangling(objects, key, owner)]


def _is_dangling(objects: ObjectsReader, key: ObjectKey, owner: Owner) -> bool:
    """True when the owner does not exist where the object with this key may have it.

    Owners are in the same namespace or cluster-scoped. An owner of a kind that is not served, or a
    namespaced owner of a cluster-scoped object, does not count as dangling, so nothing is deleted.
    """
    group, version = registry.split_api_version(owner.api_version)
    kind = history_kinds.find_kind(objects, group, version, owner.kind)
    if kind is None or (kind.namespaced and not key.namespace):
        return False
    owner_key = objects.by_uid(owner.uid)
    namespace = key.namespace if kind.namespaced else ""
    expected = ObjectKey(kind.group, kind.plural, namespace, owner.name)
    return owner_key != expected


def _policy_finalizer(tree: JsonView) -> str:
    finalizers = meta.finalizers(tree)
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
                "uid": meta.uid(tree),
                "ownerReferences": owners or None,
            }
        },
        options=MANAGER,
    )


def _without_finalizer(key: ObjectKey, tree: JsonObject, finalizer: str) -> UpdateObject:
    changed = json_tree.copy(tree)
    left = [f for f in meta.finalizers(changed) if f != finalizer]
    if left:
        changed["metadata"]["finalizers"] = left
    else:
        changed["metadata"].pop("finalizers", None)
    return UpdateObject(key=key, version=_version_of(tree), tree=changed, options=MANAGER)


def _version_of(tree: JsonView) -> str:
    """The version in which the object is stored."""
    return registry.split_api_version(meta.api_version(tree))[1]
