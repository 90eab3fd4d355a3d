"""The objects that exist: the view from which every other part reads.

The view keeps the last event of each object. Its body is the object as stored, so a reader that
wants bytes gets them without encoding. Trees are decoded on first use, and the trees decoded first
are dropped, so that memory grows with the size of the bodies and not of Python's dictionaries. Of
many objects, those that nobody has read for long are compressed (`last_events`).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.log.pages import Page, Split
from app.domain.log.projection import Row, RowKey, RowSetHash, Table
from app.domain.objects.quota.usage import RunningUsage, Scopes
from app.domain.values import api_resources, well_known
from app.domain.values.bounded import Bounded
from app.domain.values.fields import meta
from app.domain.values.identifiers import GroupResource, Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.multimap import Multimap
from projections import kept_objects, outlines
from projections.kept_objects import KeptObjects
from projections.last_events import HeldEvents, LastEvent, LastEvents, Marks, PackedEvent
from projections.sorted_keys import SortedKeys
from projections.tables import OBJECTS

DECODED_MAX = 5_000
"""Decoded trees that are kept; an older tree is decoded again when it is read."""

TALLIES_MAX = 4_096
"""Namespaces whose tallies are kept; beyond this number all are counted anew."""

Look = Callable[[LastEvent, Revision], object]
"""Sees an event that is loaded, and the revision at which its object was created."""


class ObjectsProjection:
    """Folds object events; the `ObjectsReader` of the present.

    Example: an object created at 5 and updated at 9: `event(key).revision` is 9, its row says
    created_revision 5; deleted at 12: `get(key)` is None and the row is gone.

    With `tells_changes` the view remembers which rows changed, including removed rows, until
    `take_changed` is called. Set it to false where nothing calls `take_changed`: the set of
    changed rows would grow without bound. With more than `plain_max` objects, those are compressed
    whose trees were dropped; without `plain_max`, none are.
    """

    name = "objects"
    version = 3

    def __init__(
        self,
        decoded_max: int = DECODED_MAX,
        *,
        tells_changes: bool = True,
        plain_max: int | None = None,
    ) -> None:
        self._revision = Revision(0)
        self._events = LastEvents(plain_max)
        self._created: dict[ObjectKey, int] = {}
        self._sorted: dict[GroupResource, SortedKeys] = {}
        self._uids: dict[Uid, ObjectKey] = {}
        self._unowned: set[ObjectKey] = set()
        self._owned: Multimap[Uid, ObjectKey] = Multimap()
        self._owners: dict[ObjectKey, tuple[Uid, ...]] = {}
        self._unusual: set[ObjectKey] = set()
        self._decoded: deque[Event] = deque()
        self._decoded_max = decoded_max
        self._tells_changes = tells_changes
        self._changed: set[RowKey] = set()
        self._hash = RowSetHash()
        self._unhashed: set[RowKey] = set()
        self._tallies: Bounded[str, RunningUsage] = Bounded(TALLIES_MAX)

    @property
    def revision(self) -> Revision:
        """The revision last folded."""
        return self._revision

    def fold(self, event: Event, created: Revision = Revision(0)) -> None:
        """Apply the event; an event that is not about an object only moves the revision.

        `created` is the revision of the object's creation where earlier events are not folded.
        """
        self._take(((event, None),))
        self._revision = event.revision
        if created and event.key in self._created:
            self._created[event.key] = created

    def fold_page(self, page: Page) -> None:
        """Fold the events of a page."""
        self._take(page.splits)
        if page.events:
            self._revision = page.events[-1].revision

    def _take(self, events: Iterable[Split]) -> None:
        """Apply the events that are about objects; with its raw parts, no body is searched."""
        known, uids, created = self._events.held, self._uids, self._created
        changed, unowned, decoded = self._changed, self._unowned, self._decoded
        owners, unusual = self._owners, self._unusual
        tells_changes, is_counting = self._tells_changes, bool(self._tallies)
        for event, parts in events:
            kind = event.type
            if not (kind is _UPDATED or kind is _CREATED or kind is _DELETED):
                continue
            key = event.key
            if tells_changes:
                changed.add(key)
            old = known.get(key)
            if is_counting:
                self._count(event)
            if kind is _DELETED:
                self._remove(key)
                continue
            uid = event.uid
            if old is None:
                self._keys(key[:2]).add(key)
                created[key] = event.revision
            elif old.uid != uid:
                uids.pop(old.uid, None)
                created[key] = event.revision
            else:
                # One key and one uid for all events of an object, and for whoever keeps them.
                event.uid = uid = old.uid
                event.key = key = old.key
            known[key] = event
            if uid:
                uids[uid] = key
            # The body was just read and is at hand; a look at all bodies later takes far longer.
            names_owners = (
                outlines.names_owners(event.body)
                if parts is None
                else parts.metadata.owner_references
            )
            if names_owners or key in owners:
                unowned.add(key)
            if key.resource == "events":
                (unusual.add if Marks.of(event).is_unusual else unusual.discard)(key)
            # Also when the tree is not decoded yet: a view that folds later may decode it.
            decoded.append(event)
        self._let_go()

    def show_as_of(self, revision: Revision) -> None:
        """Set the revision; nothing changed between the last folded event and `revision`."""
        self._revision = revision

    def get(self, key: ObjectKey) -> JsonObject | None:
        """The object, shared: never change it; None when it does not exist."""
        kept = self._events.held.get(key)
        # Nearly every look is at an object that is decoded: no call is made for those.
        if isinstance(kept, Event) and (tree := kept.tree) is not None:
            return tree
        event = self._events.get(key)
        return None if event is None else self._read(event)

    def event(self, key: ObjectKey) -> Event | None:
        """The last event of an object; None when the object does not exist."""
        return self._events.look(key)

    def uid(self, key: ObjectKey) -> Uid | None:
        """The uid of an object, also of a compressed one; None when the object does not exist."""
        kept = self._events.held.get(key)
        return None if kept is None else kept.uid

    def created(self, key: ObjectKey) -> Revision:
        """The revision at which an existing object was created."""
        return Revision(self._created[key])

    def keys(self, group: str, resource: str, namespace: str | None = None) -> Iterable[ObjectKey]:
        """Keys sorted by namespace and name; a copy, so it stays valid while folding goes on."""
        keys = self._sorted.get((group, resource))
        if not keys:
            return []
        if namespace is None:
            return list(keys.all())
        first = ObjectKey(group, resource, namespace, "")
        return keys.between(first, ObjectKey(group, resource, namespace + "\x00", ""))

    def events(self, group: str, resource: str, namespace: str | None = None) -> Iterator[Event]:
        """The last events of one resource, in the order of `keys`."""
        events = self._events
        return (events[key] for key in self.keys(group, resource, namespace))

    def kept(
        self, group: str, resource: str, namespace: str | None = None
    ) -> Iterator[tuple[ObjectKey, LastEvent]]:
        """The objects of one resource as they are kept, in the order of `keys`.

        It takes a fraction of the time that `events` takes where many objects are compressed.
        """
        held = self._events.held
        return ((key, held[key]) for key in self.keys(group, resource, namespace))

    def left_over(self, until: Revision) -> Sequence[Event]:
        """The last events of the objects that have not changed since a revision, in their order.

        A controller that starts at that revision reads these, as upstream's reads a list: earlier
        changes were handled by another process. Each is decoded when it is read.
        """
        kept = (each for each in self._events.held.values() if each.revision <= until)
        return HeldEvents(sorted(kept, key=lambda each: each.revision))

    def unusual_events(self, namespace: str | None = None) -> list[Event]:
        """The last events of the Events that may be warnings, sorted by key.

        The text of the others says that they are normal. Those are nearly all, a long history keeps
        many, and nobody has to look at each of them.
        """
        keys = sorted(
            key
            for key in self._unusual
            if key[:2] == api_resources.EVENTS and namespace in (None, key.namespace)
        )
        return [self._events[key] for key in keys]

    def resources(self) -> list[tuple[str, str]]:
        """Group and resource of every kind that has objects, sorted."""
        return sorted(place for place, keys in self._sorted.items() if keys)

    def count(self, group: str, resource: str) -> int:
        """The number of objects of a resource."""
        return len(self._sorted.get((group, resource), ()))

    @property
    def total(self) -> int:
        """The number of objects."""
        return len(self._events.held)

    def dependents(self, owner_uid: Uid) -> Iterable[ObjectKey]:
        """Keys of objects that name this uid as an owner, sorted."""
        if self._unowned:
            self._read_owners()
        return sorted(self._owned.of(owner_uid))

    def by_uid(self, uid: Uid) -> ObjectKey | None:
        """The key of the object with that uid; None when it does not exist."""
        return self._uids.get(uid)

    def tally(self, namespace: str, scopes: Scopes | None = None) -> RunningUsage:
        """The quota usage of the objects in a namespace; kept up to date after the first call.

        The usage of the pods within `scopes` is kept up to date as well once it was read.
        """
        tally = self._tallies.get(namespace)
        if tally is None:
            tally = RunningUsage()
            for group, resource in self.resources():
                for event in self.events(group, resource, namespace):
                    tally.add(group, resource, self._read(event))
            self._tallies[namespace] = tally
        if scopes and tally.within(scopes) is None:
            pods = self.events(*api_resources.PODS, namespace)
            tally.keep_within(scopes, (self._read(event) for event in pods))
        return tally

    def tables(self) -> tuple[Table, ...]:
        """One row per object."""
        return (OBJECTS,)

    def take_changed(self) -> dict[str, set[RowKey]]:
        """Keys touched since the last call."""
        changed, self._changed = self._changed, set()
        self._unhashed |= changed
        return {OBJECTS.name: changed} if changed else {}

    def row(self, table: str, key: RowKey) -> Row | None:
        """The row of an object, None when it is gone; the object is given as its stored bytes.

        The row of a Secret leaves out the values.
        """
        place = ObjectKey(*(str(part) for part in key))
        row = self._row(place) if table == OBJECTS.name else None
        if key in self._unhashed:
            self._hash.put(OBJECTS.name, key, row)
            self._unhashed.discard(key)
        return row

    def state_hash(self) -> str:
        """The hash over all rows; costs only the changed rows when `tells_changes` is set."""
        if not self._tells_changes:
            self._hash = RowSetHash()
            self._unhashed = {tuple(key) for key in self._events}
        self._unhashed |= self._changed
        for key in tuple(self._unhashed):
            self.row(OBJECTS.name, key)
        self._unhashed.clear()
        return self._hash.text()

    def dump(self) -> bytes:
        """All last events, sorted by key, with the revision folded so far; none is compressed.

        Raises ValueError where a loaded state says another thing of an object than its event.
        """
        held = self._events.held
        events = [(key, held[key]) for key in sorted(held)]
        return b"".join(kept_objects.as_events(self._revision, self._created, events))

    def dump_parts(self) -> Iterator[bytes]:
        """A state for `load` in parts of bounded size, with compressed events as they are.

        It holds the state at the time of the first part; the view may fold further events then.
        """
        held = self._events.held
        events = [(key, held[key]) for key in sorted(held)]
        yield from kept_objects.as_kept(self._revision, dict(self._created), events, self._events)

    def load(self, state: bytes, look: Look | None = None) -> None:
        """Restore a dumped state; the view must be empty.

        `look` sees each event, by key, before its tree is dropped. Of many objects only a few are
        plain at a time: a start takes no more memory than the objects take later.
        """
        for _ in self.load_in_steps(state, look):
            pass

    def load_in_steps(self, state: bytes, look: Look | None = None) -> Iterator[None]:
        """Restore a dumped state as `load` does, some objects with each step."""
        kept = KeptObjects(state)
        with self._events.loading(kept.count):
            for packed in kept.packed():
                self._put(packed)
                if look is not None:
                    for created, each in packed:
                        look(each, Revision(created))
                yield
            for plain in kept.plain():
                if look is not None:
                    for created, event in plain:
                        look(event, Revision(created))
                        event.forget_tree()
                self._take((event, None) for _, event in plain)
                self._created.update({event.key: created for created, event in plain})
                yield
        self._revision = kept.revision

    def _put(self, events: Iterable[tuple[int, PackedEvent]]) -> None:
        """Add compressed events of objects that are not known yet; none is decoded."""
        held, uids, dates = self._events.held, self._uids, self._created
        unowned, unusual, changed = self._unowned, self._unusual, self._changed
        for created, event in events:
            key = event.key
            held[key], dates[key] = event, created
            self._keys(key[:2]).add(key)
            if event.uid:
                uids[event.uid] = key
            if event.marks.names_owners:
                unowned.add(key)
            if event.marks.is_unusual:
                unusual.add(key)
            if self._tells_changes:
                changed.add(key)

    def _row(self, place: ObjectKey) -> Row | None:
        event = self._events.look(place)
        if event is None:
            return None
        return {
            "api_group": place.group,
            "resource": place.resource,
            "namespace": place.namespace,
            "name": place.name,
            "uid": event.uid,
            "created_revision": self._created[place],
            "revision": event.revision,
            "object": _shown(event),
        }

    def _keys(self, place: GroupResource) -> SortedKeys:
        keys = self._sorted.get(place)
        if keys is None:
            keys = self._sorted[place] = SortedKeys()
        return keys

    def _remove(self, key: ObjectKey) -> None:
        event = self._events.held.pop(key, None)
        if event is None:
            return
        self._created.pop(key, None)
        self._sorted[key[:2]].remove(key)
        if self._uids.get(event.uid) == key:
            del self._uids[event.uid]
        self._unowned.discard(key)
        self._unusual.discard(key)
        self._set_owners(key, ())

    def _read_owners(self) -> None:
        """Note the owners of the objects that may have others since the last such call."""
        for key in self._unowned:
            self._set_owners(key, outlines.owner_uids(self._events[key].body))
        self._unowned.clear()

    def _set_owners(self, key: ObjectKey, owners: tuple[Uid, ...]) -> None:
        before = self._owners.get(key, ())
        if before == owners:
            return
        for uid in before:
            self._owned.discard(uid, key)
        for uid in owners:
            self._owned.add(uid, key)
        if owners:
            self._owners[key] = owners
        else:
            self._owners.pop(key, None)

    def _count(self, event: Event) -> None:
        """Update the tally of the namespace, if there is one."""
        key = event.key
        tally = self._tallies.get(key.namespace)
        if tally is None:
            return
        old = self._events.get(key)
        if old is not None:
            tally.remove(key.group, key.resource, self._read(old))
        if event.type is not EventType.OBJECT_DELETED:
            tally.add(key.group, key.resource, event.object)

    def _read(self, event: Event) -> JsonObject:
        if event.tree is None:
            self._remember(event)
        return event.object

    def _remember(self, event: Event) -> None:
        self._decoded.append(event)
        self._let_go()

    def _let_go(self) -> None:
        """Drop the trees that were decoded first, when more than the maximum are kept."""
        decoded = self._decoded
        excess = len(decoded) - self._decoded_max
        if excess <= 0:
            return
        packs = self._events.packs
        for _ in range(excess):
            event = decoded.popleft()
            # `forget_tree`, without a call for each event.
            event.tree = event.reading = None
            if packs:
                self._events.pack(event)


def _shown(event: Event) -> msgspec.Raw | JsonObject:
    """The object for its row; for a Secret the names of the values without the values."""
    if event.key[:2] != api_resources.SECRETS:
        return msgspec.Raw(event.body)
    return without_values(event.object) if isinstance(event.object, dict) else {}


def without_values(secret: JsonObject) -> JsonObject:
    """The Secret with the names of its values and without the values."""
    tree: JsonObject = dict(secret)
    for field in ("data", "stringData"):
        values = tree.get(field)
        if values is not None:
            tree[field] = dict.fromkeys(values) if isinstance(values, dict) else None
    annotations = meta.annotations_as_stored(tree)
    if well_known.LAST_APPLIED in annotations:
        kept = {name: annotations[name] for name in annotations if name != well_known.LAST_APPLIED}
        tree["metadata"] = {**meta.metadata(tree), "annotations": kept}
    return tree


_CREATED, _UPDATED, _DELETED = (
    EventType.OBJECT_CREATED,
    EventType.OBJECT_UPDATED,
    EventType.OBJECT_DELETED,
)
