"""Deletes the objects of a deleted definition, then its finalizer, and assigns freed names.

Parity: objects.md 15.5, the finalizing and naming controllers of apiextensions.k8s.io/v1.
"""

from collections.abc import Iterator

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.plan import Plan, Reads, Views
from app.domain.controllers.resources import is_of
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.custom import definitions, naming
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, DeleteObject, PatchObject, PatchType
from app.domain.values import api_resources, condition_types, json_tree
from app.domain.values.fields import meta
from app.domain.values.identifiers import GroupResource
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

NAME = "definitions"

DELETED_MAX = 200
"""The most objects that one step deletes."""


class DefinitionReconciler(KeyedController[tuple[str], Views]):
    """Empties and removes deleted definitions, and decides which definition has which names."""

    name = NAME
    reads: Reads = None

    def __init__(self) -> None:
        super().__init__()
        self._ending: dict[GroupResource, str] = {}
        self._nameless: set[str] = set()

    def keys_of(self, event: Event, views: Views) -> Iterator[tuple[str]]:
        """Definitions that are deleted or lack names, and the definitions of deleted objects."""
        key = event.key
        if not is_of(key, api_resources.CUSTOM_RESOURCE_DEFINITIONS):
            name = self._ending.get((key.group, key.resource))
            if name is not None and event.type is EventType.OBJECT_DELETED:
                yield (name,)
            return
        tree = event.object
        place = _place(tree)
        self._nameless.discard(key.name)
        if event.type is EventType.OBJECT_DELETED:
            self._ending.pop(place, None)
        elif "deletionTimestamp" in tree["metadata"]:
            self._ending[place] = key.name
            yield (key.name,)
        elif not _has_names(tree):
            self._nameless.add(key.name)
        # After any change of this definition, others may get names that they waited for.
        for name in sorted(self._nameless - {key.name}):
            yield (name,)

    def reconcile(self, views: Views, key: tuple[str], now: Instant) -> Work | None:
        """Deletes objects of a definition, removes it, or checks its names again."""
        (name,) = key
        place = ObjectKey(*api_resources.CUSTOM_RESOURCE_DEFINITIONS, "", name)
        tree = views.objects.get(place)
        return None if tree is None else Work(tuple(_commands(views.objects, name, tree, now)))

    def has_more(self, plan: Plan) -> bool:
        """True, because more objects of the definition may remain."""
        return True


def _commands(
    objects: ObjectsReader, name: str, tree: JsonObject, now: Instant
) -> Iterator[Command]:
    if "deletionTimestamp" not in tree["metadata"]:
        status = naming.status(objects, tree, now)
        if status != tree.get("status"):
            yield _status_patch(name, status)
        return
    if naming.CLEANUP not in meta.finalizers(tree):
        return
    remaining = list(objects.keys(*_place(tree)))
    doomed = [key for key in remaining if not _is_ending(objects, key)]
    if remaining:
        reason, text = "InstanceDeletionInProgress", "CustomResource deletion is in progress"
    else:
        reason, text = "InstanceDeletionCompleted", "removed all instances"
    status = naming.terminating(tree, reason, text, now)
    if status != tree.get("status"):
        yield _status_patch(name, status)
    version = definitions.kind_of(tree).storage_version
    for key in doomed[:DELETED_MAX]:
        yield DeleteObject(key=key, version=version, options=MANAGER)
    if not remaining:
        kept = [finalizer for finalizer in meta.finalizers(tree) if finalizer != naming.CLEANUP]
        yield _patch(name, {"metadata": {"finalizers": kept}})


def _place(tree: JsonView) -> GroupResource:
    spec = meta.spec(tree)
    return json_tree.text(spec, "group"), json_tree.text(spec, "names", "plural")


def _is_ending(objects: ObjectsReader, key: ObjectKey) -> bool:
    tree = objects.get(key)
    return tree is None or "deletionTimestamp" in tree["metadata"]


def _has_names(tree: JsonView) -> bool:
    return meta.is_true(tree, condition_types.NAMES_ACCEPTED)


def _status_patch(name: str, status: JsonObject) -> PatchObject:
    return _patch(name, {"status": status}, subresource="status")


def _patch(name: str, body: JsonObject, *, subresource: str = "") -> PatchObject:
    return PatchObject(
        key=ObjectKey(*api_resources.CUSTOM_RESOURCE_DEFINITIONS, "", name),
        version="v1",
        type=PatchType.MERGE,
        body=body,
        subresource=subresource,
        options=MANAGER,
    )
