"""A deleted definition loses its objects first, then its finalizer; freed names are given away.

Parity: the finalizing and naming controllers of apiextensions.k8s.io/v1.
"""

from collections.abc import Iterator

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.plan import Plan, Reads, Views
from app.domain.controllers.resources import is_of
from app.domain.controllers.work_queue import WorkQueue
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.custom import definitions, naming
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, DeleteObject, PatchObject, PatchType
from app.domain.values import api_resources, json_tree
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

NAME = "definitions"

DELETED_MAX = 200
"""How many objects one step deletes."""

_Place = tuple[str, str]


class DefinitionReconciler:
    """Empties and ends definitions, and settles who has which name."""

    name = NAME
    reads: Reads = None

    def __init__(self) -> None:
        self._queue: WorkQueue[tuple[str]] = WorkQueue()
        self._ending: dict[_Place, str] = {}
        self._nameless: set[str] = set()

    def fold(self, event: Event, views: Views) -> None:
        """Follow definitions that end or lack names, and objects that disappear."""
        if not event.is_about_object:
            return
        key = event.key
        if not is_of(key, api_resources.CUSTOM_RESOURCE_DEFINITIONS):
            name = self._ending.get((key.group, key.resource))
            if name is not None and event.type is EventType.OBJECT_DELETED:
                self._queue.add((name,), event.revision)
            return
        tree = event.object
        place = _place(tree)
        self._nameless.discard(key.name)
        if event.type is EventType.OBJECT_DELETED:
            self._ending.pop(place, None)
        elif "deletionTimestamp" in tree["metadata"]:
            self._ending[place] = key.name
            self._queue.add((key.name,), event.revision)
        elif not _has_names(tree):
            self._nameless.add(key.name)
        # Whatever happened to this one, others may have waited for its names.
        for name in sorted(self._nameless - {key.name}):
            self._queue.add((name,), event.revision)

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Delete some objects of a definition, end it, or look at its names again."""
        while found := self._queue.take(now):
            (name,), cause = found
            tree = views.objects.get(
                ObjectKey(*api_resources.CUSTOM_RESOURCE_DEFINITIONS, "", name)
            )
            if tree is None:
                continue
            commands = tuple(_commands(views.objects, name, tree, now))
            if commands:
                return Plan(
                    controller=NAME,
                    key=name,
                    commands=commands,
                    cause=cause,
                    observed=views.objects.revision,
                )
        return None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Go on after a success, back off after a refusal."""
        if problem is None:
            self._queue.forget((plan.key,))
            self._queue.add((plan.key,), plan.observed)
        else:
            self._queue.retry((plan.key,), now)

    def due(self) -> Instant | None:
        """When the next definition is to be looked at."""
        return self._queue.due()

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """Definitions record no decisions."""
        return None


def _commands(
    objects: ObjectsReader, name: str, tree: JsonObject, now: Instant
) -> Iterator[Command]:
    if "deletionTimestamp" not in tree["metadata"]:
        status = naming.status(objects, tree, now)
        if status != tree.get("status"):
            yield _status_patch(name, status)
        return
    if naming.CLEANUP not in json_tree.texts(tree, "metadata", "finalizers"):
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
        kept = [
            finalizer
            for finalizer in json_tree.texts(tree, "metadata", "finalizers")
            if finalizer != naming.CLEANUP
        ]
        yield _patch(name, {"metadata": {"finalizers": kept}})


def _place(tree: JsonView) -> _Place:
    spec = json_tree.mapping(tree, "spec")
    return json_tree.text(spec, "group"), json_tree.text(spec, "names", "plural")


def _is_ending(objects: ObjectsReader, key: ObjectKey) -> bool:
    tree = objects.get(key)
    return tree is None or "deletionTimestamp" in tree["metadata"]


def _has_names(tree: JsonView) -> bool:
    return any(
        condition.get("type") == "NamesAccepted" and condition.get("status") == "True"
        for condition in json_tree.objects(tree, "status", "conditions")
    )


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
