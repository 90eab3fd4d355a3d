"""Objects, commands and a dict-backed world for tests of the object rules."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from app.adapters import schemas
from app.domain.log import Actor, Draft, Event, EventType, ObjectKey, Revision, Stamp, chain
from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.objects.rules import Rules
from app.domain.objects.schema.structural import SchemaNode, Schemas
from app.domain.objects.write import lifecycle
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchType,
    UpdateObject,
    WriteOptions,
)
from app.domain.objects.write.decided import Decided
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject

RESOURCE = "resource.k8s.io"
START = timestamps.parse("2026-03-01T10:00:00Z")


def release(version: str = "1.37") -> Schemas:
    """The schemas of a release."""
    return schemas.load(version)


def node(plural: str, version: str = "v1", group: str = RESOURCE) -> SchemaNode:
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


@dataclass
class Cluster:
    """A world with rules: commands in, answers out, drafts appended."""

    rules: Rules = field(default_factory=lambda: Rules(profile=Profile(), schemas=release()))
    world: World = field(default_factory=World)
    seconds: float = 0
    last: Decided = field(default_factory=Decided)

    def do(self, command: Command) -> JsonObject:
        """Decide and append; the answer, which every command of these tests has."""
        self.seconds += 1
        self.last = lifecycle.decide(self.world, command, stamp(seconds=self.seconds), self.rules)
        for draft, event in zip(self.last.drafts, self.world.append(self.last.drafts), strict=True):
            if draft.tree is self.last.tree:
                self.last = replace(self.last, tree=event.object)
        assert self.last.tree is not None
        return self.last.tree

    @property
    def types(self) -> list[str]:
        """The types of the events that the last command gave."""
        return [str(draft.type) for draft in self.last.drafts]

    def namespace(self, name: str = "default") -> None:
        """Make a namespace."""
        tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.do(CreateObject(key=key("namespaces", ""), version="v1", tree=tree))

    def create(self, tree: JsonObject, **options: Any) -> JsonObject:
        """Create an object from its tree; the key follows from it."""
        place, version = placed(tree)
        self.do(
            CreateObject(key=place, version=version, tree=tree, options=WriteOptions(**options))
        )
        return self.last.tree or {}

    def update(self, tree: JsonObject, subresource: str = "", **options: Any) -> JsonObject:
        """Replace an object by its tree."""
        place, version = placed(tree)
        return self.do(
            UpdateObject(
                key=place,
                version=version,
                tree=tree,
                subresource=subresource,
                options=WriteOptions(**options),
            )
        )

    def patch(
        self,
        place: ObjectKey,
        body: Any,
        type: PatchType = PatchType.MERGE,
        version: str = "v1",
        subresource: str = "",
        **options: Any,
    ) -> JsonObject:
        """Patch an object."""
        return self.do(
            PatchObject(
                key=place,
                version=version,
                type=type,
                body=body,
                subresource=subresource,
                options=WriteOptions(**options),
            )
        )

    def delete(self, place: ObjectKey, **more: Any) -> JsonObject:
        """Delete an object."""
        return self.do(DeleteObject(key=place, **more))

    def get(self, place: ObjectKey) -> JsonObject | None:
        """The object as stored, or None."""
        return self.world.get(place)


def cluster(version: str = "1.37", *, tracks_managers: bool = False, **gates: bool) -> Cluster:
    """A cluster with the namespace `default`; managed fields only where a test is about them."""
    profile = Profile(version=version, gates=gates)
    rules = Rules(profile=profile, schemas=release(version), tracks_managers=tracks_managers)
    found = Cluster(rules=rules)
    found.namespace()
    return found


def placed(tree: JsonObject) -> tuple[ObjectKey, str]:
    """Key and version of a tree, as a client would put them into the path."""
    group, version = registry.split_api_version(tree["apiVersion"])
    kind = registry.find_kind(group, version, tree["kind"])
    assert kind is not None, tree["kind"]
    metadata = tree.get("metadata", {})
    namespace = metadata.get("namespace", "") if kind.namespaced else ""
    return ObjectKey(group, kind.plural, namespace, metadata.get("name", "")), version
