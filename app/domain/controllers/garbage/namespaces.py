"""Deletion of namespaces: contents first, then the namespace itself.

Five seconds after the DELETE the contents are deleted, pods before everything else; the namespace
waits until they are gone (claims in use wait for their pods), its status shows what remains, and
the update of `finalize` with an empty list ends it. Parity: controllers.md 5.5.
"""

from collections.abc import Iterable, Iterator

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import Plan, Reads, Views
from app.domain.controllers.resources import is_of
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects import history_kinds
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, DeleteObject, Propagation, UpdateObject
from app.domain.values import api_groups, api_resources, json_tree, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant

NAME = "namespaces"

GRACE = 5 * SECOND
"""The time for which the contents of a namespace are kept after its DELETE."""

DELETED_MAX = 200
"""The most objects that one step deletes."""

CONTENT = f"{NAME}/content"
"""The name of the queue in a pace for deletions, by namespace, group and resource."""

END = f"{NAME}/end"
"""The name of the queue in a pace for writes to the namespace itself."""

_ORDER = (
    api_resources.PODS,
    api_resources.EVENTS,
    (api_groups.EVENTS, "events"),
    api_resources.DEPLOYMENTS,
    api_resources.DAEMON_SETS,
    api_resources.RESOURCE_CLAIM_TEMPLATES,
    api_resources.STATEFUL_SETS,
    api_resources.RESOURCE_CLAIMS,
    api_resources.REPLICA_SETS,
)

_NOTHING: JsonObject = {}

_Conditions = tuple[tuple[str, str, str, str], ...]


class NamespaceReconciler(KeyedController[tuple[str], Views]):
    """Empties and removes deleted namespaces."""

    name = NAME
    reads: Reads = None

    def __init__(self, pace: Pace | None = None) -> None:
        super().__init__(pace=pace)
        self._pace = pace
        self._ending: set[str] = set()
        self._started: set[str] = set()

    def keys_of(self, event: Event, views: Views) -> Iterable[tuple[str]]:
        """Terminating namespaces from which an object is deleted."""
        key = event.key
        if is_of(key, api_resources.NAMESPACES):
            if event.type is EventType.OBJECT_DELETED:
                self._ending.discard(key.name)
                self._started.discard(key.name)
                self.queue.drop((key.name,), event.revision)
            elif "deletionTimestamp" in event.object["metadata"] and key.name not in self._ending:
                self._ending.add(key.name)
                marked = event.stamp.time if self._pace is None else self._pace.seen_from(event)
                self.queue.add_at((key.name,), Instant(marked + GRACE), event.revision)
        elif key.namespace in self._started:
            return ((key.namespace,),)
        return ()

    def reconcile(self, views: Views, key: tuple[str], now: Instant) -> Work | None:
        """Deletes the contents of one namespace, reports what remains, or removes it."""
        (name,) = key
        namespace = views.objects.get(ObjectKey(*api_resources.NAMESPACES, "", name))
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            # The namespace is gone; a new one with the same name is not deleted.
            return None
        self._started.add(name)
        remaining = [key for key in contents(views.objects, name) if views.objects.get(key)]
        if doomed := _doomed(views.objects, remaining):
            ready, due = self._ready(name, doomed, now)
            return Work(tuple(_deletions(views.objects, ready)), due=due)
        due = self._not_before(END, (name,), now)
        if due is not None:
            return Work(due=due)
        return Work(tuple(_end(views.objects, namespace, name, remaining, now)))

    def _ready(
        self, name: str, doomed: list[ObjectKey], now: Instant
    ) -> tuple[list[ObjectKey], Instant | None]:
        """The objects to delete now, and the instant for the others; kind after kind."""
        dues = {
            place: self._not_before(CONTENT, (name, *place), now)
            for place in dict.fromkeys(key[:2] for key in doomed)
        }
        ready = [key for key in doomed if dues[key[:2]] is None]
        return ready, min((due for due in dues.values() if due is not None), default=None)

    def _not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant | None:
        """The later instant at which the pace allows a key; None when it allows it now."""
        due = now if self._pace is None else self._pace.not_before(queue, key, now)
        return due if due > now else None

    def has_more(self, plan: Plan) -> bool:
        """True while the namespace is there, because more objects of it may remain."""
        return plan.key in self._ending


def contents(objects: ObjectsReader, namespace: str) -> Iterator[ObjectKey]:
    """All objects in the namespace, in the order in which upstream deletes them."""
    places = [
        (kind.group, kind.plural) for kind in history_kinds.all_kinds(objects) if kind.namespaced
    ]
    first = [place for place in _ORDER if place in places]
    for group, resource in (*first, *(place for place in places if place not in _ORDER)):
        yield from objects.keys(group, resource, namespace)


def _doomed(objects: ObjectsReader, remaining: list[ObjectKey]) -> list[ObjectKey]:
    """The remaining objects of a namespace that are deleted next.

    Parity: controllers.md 5.5; pods first, everything else once no pod remains.
    """
    doomed = [key for key in remaining if not meta.deletion_timestamp(objects.get(key) or _NOTHING)]
    if any(is_of(key, api_resources.PODS) for key in remaining):
        return [key for key in doomed if is_of(key, api_resources.PODS)]
    return doomed


def _deletions(objects: ObjectsReader, doomed: list[ObjectKey]) -> Iterator[Command]:
    for key in doomed[:DELETED_MAX]:
        kind = history_kinds.find(objects, key.group, key.resource)
        assert kind is not None, "contents are of kinds that are served"
        yield DeleteObject(
            key=key,
            version=kind.storage_version,
            propagation=Propagation.BACKGROUND,
            options=MANAGER,
        )


def _end(
    objects: ObjectsReader,
    namespace: JsonObject,
    name: str,
    remaining: list[ObjectKey],
    now: Instant,
) -> Iterator[Command]:
    """The update of the status that reports what remains, or the removal of the namespace."""
    if update := _status_update(objects, namespace, name, remaining, now):
        yield update
        return
    if not remaining and core.namespace_finalizers(namespace):
        tree = json_tree.copy(namespace)
        tree["spec"]["finalizers"] = []
        yield UpdateObject(
            key=ObjectKey(*api_resources.NAMESPACES, "", name),
            version="v1",
            tree=tree,
            subresource="finalize",
            options=MANAGER,
        )


def _status_update(
    objects: ObjectsReader,
    namespace: JsonObject,
    name: str,
    remaining: list[ObjectKey],
    now: Instant,
) -> UpdateObject | None:
    tree = json_tree.copy(namespace)
    status = tree.setdefault("status", {})
    status["phase"] = "Terminating"
    held = {condition.type: condition for condition in meta.conditions(namespace)}
    conditions: list[JsonObject] = []
    for kind, state, reason, message in _conditions(objects, name, remaining):
        old = held.get(kind)
        since = timestamps.seconds_text(now)
        if old is not None and old.status == state:
            since = old.last_transition_time
        conditions.append(
            {
                "type": kind,
                "status": state,
                "lastTransitionTime": since,
                "reason": reason,
                "message": message,
            }
        )
    status["conditions"] = conditions
    if status == namespace.get("status"):
        return None
    return UpdateObject(
        key=ObjectKey(*api_resources.NAMESPACES, "", name),
        version="v1",
        tree=tree,
        subresource="status",
        options=MANAGER,
    )


def _conditions(objects: ObjectsReader, name: str, remaining: list[ObjectKey]) -> _Conditions:
    pods_left = any(is_of(key, api_resources.PODS) for key in remaining)
    finalizers: dict[str, int] = {}
    counts: dict[str, int] = {}
    for key in remaining:
        place = f"{key.resource}.{key.group}"
        counts[place] = counts.get(place, 0) + 1
        tree = objects.get(key)
        for finalizer in [] if tree is None else meta.finalizers(tree):
            finalizers[finalizer] = finalizers.get(finalizer, 0) + 1
    content = ("False", "ContentDeleted")
    text = "All content successfully deleted, may be waiting on finalization"
    if pods_left:
        content = ("True", "ContentDeletionFailed")
        text = (
            "Failed to delete all resource types, 1 remaining: unexpected items still remain "
            f"in namespace: {name} for gvr: /v1, Resource=pods"
        )
    left = ", ".join(f"{place} has {n} resource instances" for place, n in sorted(counts.items()))
    held = ", ".join(f"{f} in {n} resource instances" for f, n in sorted(finalizers.items()))
    discovered = "All resources successfully discovered"
    parsed = "All legacy kube types successfully parsed"
    remain = ("False", "ContentRemoved", "All content successfully removed")
    if counts and not pods_left:
        remain = ("True", "SomeResourcesRemain", f"Some resources are remaining: {left}")
    waits = ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
    if finalizers and not pods_left:
        waits = ("True", "SomeFinalizersRemain", f"Some content in the namespace has {held}")
    return (
        ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", discovered),
        ("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions", parsed),
        ("NamespaceDeletionContentFailure", *content, text),
        ("NamespaceContentRemaining", *remain),
        ("NamespaceFinalizersRemaining", *waits),
    )
