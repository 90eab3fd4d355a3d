"""Search for objects by a part of the name, optionally with kind or namespace."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from app.analysis.chronicle import Chronicle
from app.domain.log import ObjectKey, Revision, records
from app.domain.objects import history_kinds
from app.domain.objects.registry import is_called
from app.domain.values import api_resources, timestamps
from app.domain.values.timestamps import Instant
from projections.objects import ObjectsProjection
from projections.timeline import Entry

HITS_MAX = 50
"""The number of objects in one answer."""

DELETIONS_MAX = 5_000
"""The number of deletions of a kind that are looked at."""

_DELETED = "Deleted"
"""The end of the kinds of entries that are deletions."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """An object that exists, and the revision of its last change."""

    group: str
    resource: str
    namespace: str
    name: str
    revision: Revision

    @property
    def key(self) -> ObjectKey:
        """The key of the object."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)


class GoneHit(msgspec.Struct, frozen=True, kw_only=True):
    """An object that was deleted: the revision and time of that, and the author."""

    group: str
    resource: str
    namespace: str
    name: str
    revision: Revision
    time: str
    by: str

    @property
    def key(self) -> ObjectKey:
        """The key of the object."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that match a query, the likeliest first; `more` tells that there are others.

    `gone` are those that were deleted, and are not there again.
    """

    query: str
    revision: Revision
    items: tuple[Hit, ...]
    more: bool = False
    gone: tuple[GoneHit, ...] = ()

    @property
    def objects(self) -> tuple[Hit, ...]:
        """The objects that are there, without Event objects."""
        return tuple(one for one in self.items if not _is_event(one.key))

    @property
    def events(self) -> tuple[Hit, ...]:
        """The Event objects that are there."""
        return tuple(one for one in self.items if _is_event(one.key))


def find(
    objects: ObjectsProjection,
    query: str,
    sees: Callable[[ObjectKey], bool],
    *,
    hits_max: int = HITS_MAX,
    gone: tuple[GoneHit, ...] = (),
) -> Hits:
    """Finds the objects whose name contains the query; equal names first, then equal beginnings.

    Event objects, which have the names of what they are about, come after all others.

    The query is `NAME`, `NAMESPACE/NAME` or `KIND/NAME`, each part in any case. Objects for which
    `sees` is false are left out.
    """
    text = query.strip().lower()
    keys = list(islice(filter(sees, _likest(objects, text)), hits_max + 1))
    hits = []
    for key in keys[:hits_max]:
        event = objects.event(key)
        revision = event.revision if event is not None else Revision(0)
        hits.append(
            Hit(
                group=key.group,
                resource=key.resource,
                namespace=key.namespace,
                name=key.name,
                revision=revision,
            )
        )
    return Hits(
        query=query,
        revision=objects.revision,
        items=tuple(hits),
        more=len(keys) > hits_max,
        gone=gone,
    )


def deleted(
    chronicle: Chronicle,
    objects: ObjectsProjection,
    query: str,
    sees: Callable[[ObjectKey], bool],
    *,
    hits_max: int = HITS_MAX,
) -> tuple[GoneHit, ...]:
    """Finds the deleted objects whose name contains the query; equal names first, then the last.

    Event objects come after all others.

    The newest DELETIONS_MAX deletions of each kind are looked at. The query is that of `find`.
    """
    place, slash, name = query.strip().lower().rpartition("/")
    if not name and not slash:
        return ()
    last: dict[ObjectKey, Entry] = {}
    for kind in chronicle.kinds():
        if not kind.endswith(_DELETED):
            continue
        numbers = chronicle.numbers(kind=kind)
        newest = chronicle.newest(numbers, until=objects.revision)
        for entry in islice(newest, DELETIONS_MAX):
            key = entry.subject
            is_named = name in key.name.lower() and key not in last
            if not is_named or objects.event(key) is not None or not sees(key):
                continue
            if not slash or place == key.namespace or _is_kind(objects, key, place):
                last[key] = entry
    likest = sorted(
        last.items(),
        key=lambda one: (_is_event(one[0]), one[0].name.lower() != name, -one[1].revision),
    )
    return tuple(
        GoneHit(
            group=key.group,
            resource=key.resource,
            namespace=key.namespace,
            name=key.name,
            revision=entry.revision,
            time=timestamps.micro_text(Instant(entry.time)),
            by=records.shown_author(entry.actor, entry.kind),
        )
        for key, entry in likest[:hits_max]
    )


def _is_kind(objects: ObjectsProjection, key: ObjectKey, word: str) -> bool:
    """Whether a word names the kind of an object."""
    kind = history_kinds.find(objects, key.group, key.resource)
    return word == key.resource or (kind is not None and is_called(kind, word))


def _likest(objects: ObjectsProjection, text: str) -> Iterator[ObjectKey]:
    """The matching keys: those that begin with the name and then the others, short names first.

    The likest may be the last one of all, so all are looked at. An equal name is the shortest one
    that begins so.
    """
    name = text.rpartition("/")[2]
    by_rank: defaultdict[tuple[bool, bool, int], list[ObjectKey]] = defaultdict(list)
    for keys in _possible(objects, text):
        for key in [key for key in keys if name in key.name.lower()]:
            begins = key.name[: len(name)].lower() == name
            by_rank[_is_event(key), not begins, len(key.name)].append(key)
    for rank in sorted(by_rank):
        yield from by_rank[rank]


def _is_event(key: ObjectKey) -> bool:
    return key[:2] == api_resources.EVENTS


def _possible(objects: ObjectsProjection, text: str) -> Iterator[Iterable[ObjectKey]]:
    """The keys of each kind that match a query but for the name."""
    if not text:
        return
    place, slash, _ = text.rpartition("/")
    for group, resource in objects.resources():
        is_any = not slash or _is_kind(objects, ObjectKey(group, resource, "", ""), place)
        yield objects.keys(group, resource, None if is_any else place)
