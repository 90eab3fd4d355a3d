"""The committed objects with the changes of decided commands that are not stored yet.

The commands of a batch are decided one after another before any of them is stored, so each command
must see the effects of the commands before it. The changes of one command can be undone without
those of the others.
"""

from collections.abc import Iterable
from typing import cast

from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.log.event import GENESIS
from app.domain.objects.kinds import secret_values
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.objects.quota import limits
from app.domain.objects.quota.usage import RunningUsage, Scopes
from app.domain.objects.reader import ObjectsReader
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_UNTOUCHED = object()

Mark = tuple[int, Revision, bytes, Instant]
"""A point to which staging returns: length of the undo list, revision, hash and time there."""


class StagedObjects:
    """The objects at the head with the changes that the current batch has made so far.

    With a cipher, Secrets are shown with their values, because writes are decided on the values.
    """

    def __init__(
        self,
        base: ObjectsReader,
        secrets: SecretCipher | None = None,
        *,
        hash: bytes = GENESIS,
        time: Instant = Instant(0),
    ) -> None:
        """`hash` and `time` are those of the last event of the base."""
        self._base = base
        self._secrets = secrets
        self._events: dict[ObjectKey, Event | None] = {}
        self._by_place: dict[tuple[str, str], set[ObjectKey]] = {}
        self._uids: dict[Uid, ObjectKey] = {}
        self._undo: list[tuple[ObjectKey, object]] = []
        self._tallies: dict[str, tuple[int, RunningUsage]] = {}
        self._revision = base.revision
        self._hash = hash
        self.time = time

    @property
    def revision(self) -> Revision:
        """The revision of the last staged event."""
        return self._revision

    @property
    def hash(self) -> bytes:
        """The hash of the last staged event."""
        return self._hash

    def stage(self, events: Iterable[Event]) -> None:
        """Adds events, whose effects are visible from now on."""
        for event in events:
            self._revision, self._hash = event.revision, event.hash
            self.time = event.stamp.time
            if not event.is_about_object:
                continue
            key = event.key
            gone = event.type is EventType.OBJECT_DELETED
            self._undo.append((key, self._events.get(key, _UNTOUCHED)))
            self._events[key] = None if gone else event
            self._by_place.setdefault((key.group, key.resource), set()).add(key)
            if event.uid and not gone:
                self._uids[event.uid] = key

    def mark(self) -> Mark:
        """Returns a point to restore."""
        return len(self._undo), self._revision, self._hash, self.time

    def restore(self, mark: Mark) -> None:
        """Undoes the changes that were staged after the mark."""
        length, self._revision, self._hash, self.time = mark
        self._tallies = {
            namespace: held for namespace, held in self._tallies.items() if held[0] <= length
        }
        while len(self._undo) > length:
            key, event = self._undo.pop()
            if event is _UNTOUCHED:
                del self._events[key]
            else:
                self._events[key] = cast("Event | None", event)

    def get(self, key: ObjectKey) -> JsonObject | None:
        """The object after the staged changes; None if there is none."""
        if key in self._events:
            event = self._events[key]
            tree = None if event is None else event.object
        else:
            tree = self._base.get(key)
        if self._secrets is None or key.resource != "secrets" or tree is None or key.group:
            return tree
        return secret_values.revealed(key, tree, self._secrets)

    def event(self, key: ObjectKey) -> Event | None:
        """The last event of the object."""
        if key in self._events:
            return self._events[key]
        return self._base.event(key)

    def keys(self, group: str, resource: str, namespace: str | None = None) -> Iterable[ObjectKey]:
        """The keys of a resource, sorted."""
        places = self._by_place.get((group, resource))
        if not places:
            return self._base.keys(group, resource, namespace)
        touched = {
            key
            for key in places
            if key in self._events and (namespace is None or key.namespace == namespace)
        }
        if not touched:
            return self._base.keys(group, resource, namespace)
        stored = set(self._base.keys(group, resource, namespace)) - touched
        return sorted(stored | {key for key in touched if self._events[key] is not None})

    def tally(self, namespace: str, scopes: Scopes | None = None) -> RunningUsage:
        """The amounts that the objects of a namespace use in quotas, after the staged changes.

        The tally is kept with the length of the undo list that it covers, so each staged event is
        counted once. For scopes that the kept tally lacks, a new one is taken from the base.
        """
        held = self._tallies.get(namespace)
        if held is None or (scopes and held[1].within(scopes) is None):
            held = 0, limits.tally_of(self._base, namespace, scopes).copy()
        covered, tally = held
        before: dict[ObjectKey, object] = {}
        for key, previous in self._undo[covered:]:
            if key.namespace == namespace:
                before.setdefault(key, previous)
        for key, previous in before.items():
            if previous is _UNTOUCHED:
                previous = self._base.event(key)
            for event, count in ((previous, tally.remove), (self._events[key], tally.add)):
                if isinstance(event, Event):
                    count(key.group, key.resource, event.object)
        self._tallies[namespace] = (len(self._undo), tally)
        return tally

    def dependents(self, owner_uid: Uid) -> Iterable[ObjectKey]:
        """The keys of objects with that owner, sorted; staged objects are searched one by one."""
        stored = {key for key in self._base.dependents(owner_uid) if key not in self._events}
        for key, event in self._events.items():
            owners = [] if event is None else event.object["metadata"].get("ownerReferences") or []
            if any(owner.get("uid") == owner_uid for owner in owners):
                stored.add(key)
        return sorted(stored)

    def by_uid(self, uid: Uid) -> ObjectKey | None:
        """The key of the object with that uid."""
        key = self._uids.get(uid) or self._base.by_uid(uid)
        event = None if key is None else self.event(key)
        return key if event is not None and event.uid == uid else None
