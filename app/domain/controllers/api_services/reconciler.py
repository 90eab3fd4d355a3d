"""Writes the condition Available of APIServices that name a service, which is never contacted.

Parity: controllers.md 5.5; upstream's available controller reports an absent service; where it
would contact the service, this one reports that no requests are passed on.
"""

from collections.abc import Iterator

from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.plan import Reads, Views
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.kinds import api_services
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import api_groups, api_resources, json_tree
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

NAME = "api-services"
API_SERVICES = (api_groups.API_REGISTRATION, api_services.RESOURCE)


class ApiServiceReconciler(KeyedController[tuple[str], Views]):
    """Follows APIServices, and the creation and deletion of services."""

    name = NAME
    reads: Reads = frozenset({API_SERVICES, api_resources.SERVICES})

    def __init__(self) -> None:
        super().__init__()
        self._named: dict[str, tuple[str, str]] = {}

    def keys_of(self, event: Event, views: Views) -> Iterator[tuple[str]]:
        """A changed APIService, and the APIServices of a created or deleted service."""
        key = event.key
        if (key.group, key.resource) == API_SERVICES:
            self._named.pop(key.name, None)
            if event.type is not EventType.OBJECT_DELETED and api_services.is_remote(event.object):
                self._named[key.name] = _service(event.object)
            yield (key.name,)
        elif self._named and event.type is not EventType.OBJECT_UPDATED:
            for name in sorted(self._named):
                if self._named[name] == (key.namespace, key.name):
                    yield (name,)

    def reconcile(self, views: Views, key: tuple[str], now: Instant) -> Work | None:
        """Writes the condition when it is not as it should be."""
        place = ObjectKey(*API_SERVICES, "", key[0])
        tree = views.objects.get(place)
        if tree is None:
            return None
        wanted = _condition(views.objects, tree, now)
        held = next(iter(meta.condition_trees(tree)), {})
        if _condition_facts(held) == _condition_facts(wanted):
            return None
        patch = PatchObject(
            key=place,
            version="v1",
            type=PatchType.STRATEGIC,
            body={"status": {"conditions": [wanted]}},
            subresource="status",
        )
        return Work((patch,))


def _condition(objects: ObjectsReader, tree: JsonView, now: Instant) -> JsonObject:
    if not api_services.is_remote(tree):
        return api_services.local(now)
    namespace, name = _service(tree)
    if objects.get(ObjectKey(*api_resources.SERVICES, namespace, name)) is None:
        text = f'service/{name} in "{namespace}" is not present'
        return api_services.unavailable("ServiceNotFound", text, now)
    return api_services.unavailable("FailedDiscoveryCheck", api_services.NOT_PASSED_ON, now)


def _service(tree: JsonView) -> tuple[str, str]:
    place = json_tree.mapping(tree, "spec", "service")
    return json_tree.text(place, "namespace"), entries.name(place)


def _condition_facts(condition: JsonView) -> tuple[str, str, str]:
    status, reason, message = (
        json_tree.text(condition, field) for field in ("status", "reason", "message")
    )
    return status, reason, message
