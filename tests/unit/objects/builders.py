"""Objects, commands and a dict-backed world for tests of the object rules."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from app.adapters import schemas
from app.domain.log import Actor, Draft, Event, EventType, ObjectKey, Revision, Stamp, chain
from app.domain.objects import registry
from app.domain.objects.schema import Node, Schemas
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject

RESOURCE = "resource.k8s.io"
START = timestamps.parse("2026-03-01T10:00:00Z")


def release(version: str = "1.37") -> Schemas:
    """The schemas of a release."""
    return schemas.load(version)


def node(plural: str, version: str = "v1", group: str = RESOURCE) -> Node:
    """The schema of a kind in the newest release."""
    kind = registry.find(group, plural)
    assert kind is not None
    return release().node(kind, group, version)


def key(resource: str, name: str, namespace: str = "", group: str | None = None) -> ObjectKey:
    """A key; the group is looked up by the plural."""
    if group is None:
        group = next(kind.group for kind in registry.kinds() if kind.plural == resource)
    return ObjectKey(group, resource, namespace, name)


def stamp(*, seconds: float = 0, uid: str = "", user: str = "alice", verb: str = "create") -> Stamp:
    """A stamp `seconds` after START; the uid derives from the time unless given."""
    time = timestamps.Instant(START + int(seconds * timestamps.SECOND))
    derived = uid or f"00000000-0000-4000-8000-{int(seconds * 1000):012d}"
    return Stamp(time=time, actor=Actor(user=user, agent="test/1"), verb=verb, uid=derived)


@dataclass
class World:
    """Objects as a reader, grown by appending drafts."""

    events: list[Event] = field(default_factory=list)
    last: dict[ObjectKey, Event] = field(default_factory=dict)

    @property
    def revision(self) -> Revision:
        return Revision(len(self.events))

    def get(self, key: ObjectKey) -> JsonObject | None:
        found = self.last.get(key)
        return found.object if found is not None else None

    def event(self, key: ObjectKey) -> Event | None:
        return self.last.get(key)

    def keys(self, group: str, resource: str, namespace: str | None = None) -> Iterable[ObjectKey]:
        return sorted(
            key
            for key in self.last
            if key[:2] == (group, resource) and namespace in (None, key.namespace)
        )

    def dependents(self, owner_uid: str) -> Iterable[ObjectKey]:
        return sorted(
            key
            for key, event in self.last.items()
            if owner_uid
            in [
                owner.get("uid")
                for owner in json_tree.objects(event.object, "metadata", "ownerReferences")
            ]
        )

    def by_uid(self, uid: str) -> ObjectKey | None:
        return next((key for key, event in self.last.items() if event.uid == uid), None)

    def append(self, drafts: Iterable[Draft]) -> list[Event]:
        """Seal the drafts and fold them."""
        sealed = []
        for draft in drafts:
            previous = self.events[-1].hash if self.events else b"\0" * 32
            event = chain.seal(draft, Revision(len(self.events) + 1), previous)
            self.events.append(event)
            sealed.append(event)
            if event.type is EventType.OBJECT_DELETED:
                self.last.pop(event.key, None)
            elif event.is_about_object:
                self.last[event.key] = event
        return sealed


def claim(name: str = "c", namespace: str = "default", **more: Any) -> JsonObject:
    """A claim with one request, as a user writes it."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]},
        },
        **more,
    }


def pod(name: str = "p", namespace: str = "default", **spec: Any) -> JsonObject:
    """A pod with one container, as a user writes it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "busybox"}], **spec},
    }
