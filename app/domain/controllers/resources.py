"""The keys of the objects that controllers read, and lists of them."""

from collections.abc import Iterable
from typing import Protocol

from app.domain.log import Event, ObjectKey, Revision
from app.domain.values import api_resources


def pod_key(namespace: str, name: str) -> ObjectKey:
    """The key of a pod."""
    return ObjectKey(*api_resources.PODS, namespace, name)


def claim_key(namespace: str, name: str) -> ObjectKey:
    """The key of a claim."""
    return ObjectKey(*api_resources.RESOURCE_CLAIMS, namespace, name)


def is_of(key: ObjectKey, place: tuple[str, str]) -> bool:
    """True when the key belongs to that group and resource."""
    return key.resource == place[1] and key.group == place[0]


class Listing(Protocol):
    """Lists the last events of all objects, by resource."""

    def resources(self) -> Iterable[tuple[str, str]]:
        """Group and plural of each resource that has objects."""
        ...

    def events(self, group: str, resource: str) -> Iterable[Event]:
        """The last event of each object of one resource."""
        ...


def left_over(objects: Listing, until: Revision) -> list[Event]:
    """The last events of the objects that have not changed since a revision, in their order.

    A controller that starts at that revision reads these, as upstream's reads a list: earlier
    changes were handled by another process.
    """
    events = [
        event
        for group, resource in objects.resources()
        for event in objects.events(group, resource)
        if event.revision <= until
    ]
    return sorted(events, key=lambda event: event.revision)
