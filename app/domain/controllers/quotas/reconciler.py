"""The reconciler of ResourceQuotas: keeps their status in line with their namespaces' objects.

Only events on resources that a quota of the namespace counts queue a quota. Limits that are not
counted here are in `hard` and not in `used`.
"""

from collections.abc import Iterator

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.plan import Reads, Views
from app.domain.controllers.resources import is_of
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.quota import limits as quota
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import meta
from app.domain.values.identifiers import GroupResource
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

NAME = "quotas"


class QuotaReconciler(KeyedController[ObjectKey, Views]):
    """Counts the usage of namespaces with quotas."""

    name = NAME
    reads: Reads = None

    def __init__(self) -> None:
        super().__init__()
        self._counted: dict[str, dict[ObjectKey, frozenset[GroupResource]]] = {}

    def keys_of(self, event: Event, views: Views) -> Iterator[ObjectKey]:
        """The quotas that count the object of the event."""
        key = event.key
        if is_of(key, api_resources.RESOURCE_QUOTAS):
            held = self._counted.setdefault(key.namespace, {})
            if event.type is EventType.OBJECT_DELETED:
                held.pop(key, None)
            else:
                named = (quota.places_of(name) for name in quota.hard(event.object))
                held[key] = frozenset().union(*named)
                yield key
        for counting, places in self._counted.get(key.namespace, {}).items():
            if (key.group, key.resource) in places:
                yield counting

    def reconcile(self, views: Views, key: ObjectKey, now: Instant) -> Work | None:
        """Writes the status when it is not as it should be."""
        objects = views.objects
        status = _status(objects, key)
        tree = objects.get(key)
        if tree is None or status == meta.status(tree):
            return None
        patch = PatchObject(
            key=key,
            version="v1",
            type=PatchType.MERGE,
            body={"status": _replacement(tree, status)},
            subresource="status",
            options=MANAGER,
        )
        return Work((patch,))


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
    """A merge patch that replaces the old status completely."""
    amounts: JsonObject = {}
    for field in ("hard", "used"):
        old = json_tree.mapping(tree, "status", field)
        new = status.get(field) or {}
        amounts[field] = dict.fromkeys(set(old) - set(new)) | new
    return amounts
