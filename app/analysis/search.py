"""Search for objects by a part of the name, optionally with kind or namespace."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from app.domain.log import ObjectKey, Revision
from app.domain.objects import history_kinds
from app.domain.objects.registry import is_called
from projections.objects import ObjectsProjection

HITS_MAX = 50
"""The number of objects in one answer."""


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


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that match a query, the likeliest first; `more` tells that there are others."""

    query: str
    revision: Revision
    items: tuple[Hit, ...]
    more: bool = False


def find(
    objects: ObjectsProjection,
    query: str,
    sees: Callable[[ObjectKey], bool],
    *,
    hits_max: int = HITS_MAX,
) -> Hits:
    """Finds the objects whose name contains the query; equal names first, then equal beginnings.

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
        query=query, revision=objects.revision, items=tuple(hits), more=len(keys) > hits_max
    )


def _likest(objects: ObjectsProjection, text: str) -> Iterator[ObjectKey]:
    """The matching keys: those that begin with the name and then the others, short names first.

    The likest may be the last one of all, so all are looked at. An equal name is the shortest one
    that begins so.
    """
    name = text.rpartition("/")[2]
    beginning: defaultdict[int, list[ObjectKey]] = defaultdict(list)
    others: defaultdict[int, list[ObjectKey]] = defaultdict(list)
    for keys in _possible(objects, text):
        for key in [key for key in keys if name in key.name.lower()]:
            begins = key.name[: len(name)].lower() == name
            (beginning if begins else others)[len(key.name)].append(key)
    for by_length in (beginning, others):
        for length in sorted(by_length):
            yield from by_length[length]


def _possible(objects: ObjectsProjection, text: str) -> Iterator[Iterable[ObjectKey]]:
    """The keys of each kind that match a query but for the name."""
    if not text:
        return
    place, slash, _ = text.rpartition("/")
    for group, resource in objects.resources():
        is_any = not slash or place == resource
        if not is_any:
            kind = history_kinds.find(objects, group, resource)
            is_any = kind is not None and is_called(kind, place)
        yield objects.keys(group, resource, None if is_any else place)
